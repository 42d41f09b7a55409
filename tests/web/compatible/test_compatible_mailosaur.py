"""The API of Mailosaur: each of its routes answers as Mailosaur's clients expect."""

import base64
import re
from typing import Any

import pytest

from mailcheck.core.rights import Rights, make_rights
from mailcheck.web.compatible.mailosaur.routes import MAILOSAUR
from mailcheck.web.site.likeness import Like
from tests.house import House
from tests.table import rows
from tests.web.compatible.mailosaur import PNG, SERVER, Client, address, sign_up
from tests.web.scored_house import ScoredHouse


@pytest.fixture
def client(house: House) -> Client:
    """A client with the key of the first account."""
    return Client(house)


def receive(house: House, name: str = "ann", server: str = SERVER, **words: str) -> str:
    """Receive a mail and return its address."""
    to = address(house, name, server)
    house.receive(to, raw=sign_up(to, **words))
    return to


def first_id(client: Client, server: str = SERVER) -> str:
    """Return the id of the newest message of a server."""
    found: str = client.get(f"/api/messages?server={server}").json["items"][0]["id"]
    return found


def limited(house: House, rights: Rights) -> Client:
    """Return a client with a limited key."""
    return Client(house, house.issue_key(house.account, rights=rights))


@pytest.fixture
def analysed() -> Client:
    """A client of a house that analyses the mails of tests."""
    return Client(ScoredHouse().house)


class TestMessages:
    """Lists, messages and their files."""

    def test_a_list_has_the_messages_of_its_server(self, house: House, client: Client) -> None:
        """A list has the summaries of one server's messages, newest first."""
        to = receive(house, subject="one")
        house.pass_time(1)
        receive(house, subject="two")
        receive(house, server="zzzz9999", subject="other")
        house.receive(house.address("shop"))
        found = client.get(f"/api/messages?server={SERVER}").json["items"]
        assert [one["subject"] for one in found] == ["two", "one"]
        assert found[1] == {
            "id": found[1]["id"],
            "type": "Email",
            "server": SERVER,
            "from": [{"name": "Shop", "email": "shop@example.com", "phone": None}],
            "to": [{"name": "", "email": to, "phone": None}],
            "cc": [],
            "bcc": [],
            "received": found[1]["received"],
            "subject": "one",
            "summary": found[1]["summary"],
            "attachments": 1,
        }
        assert found[1]["summary"].startswith("Your code is 482913")

    def test_a_whole_message(self, house: House, client: Client) -> None:
        """A message has its people, texts, links, codes, pictures, files and envelope."""
        to = receive(house)
        found = client.get(f"/api/messages/{first_id(client)}").json
        assert found["to"] == [{"name": "Ann", "email": to, "phone": None}]
        assert found["cc"] == [{"name": "Bob", "email": "bob@example.com", "phone": None}]
        link = "https://shop.example/verify?token=abc"
        assert found["html"]["links"] == [
            {"href": link, "text": "Verify"},
            {"href": "https://shop.example/", "text": None},
        ]
        assert found["html"]["images"] == [{"src": "cid:cat", "alt": "A cat"}]
        assert found["html"]["codes"] == found["text"]["codes"] == [{"value": "482913"}]
        assert found["text"]["links"] == [{"href": link, "text": link}]
        assert found["text"]["body"].startswith("Your code is 482913")
        metadata = found["metadata"]
        assert metadata["ehlo"] == "mx.example.com"
        assert metadata["mailFrom"] == "shop@example.com"
        assert [one["email"] for one in metadata["rcptTo"]] == [to]
        assert {"field": "Subject", "value": "Welcome"} in metadata["headers"]
        files = {one["fileName"]: one for one in found["attachments"]}
        assert files["cat.png"]["contentId"] == "cat"
        assert files["a.csv"]["length"] == 7
        url = f"http://127.0.0.1:8080/mailosaur/api/files/attachments/{files['a.csv']['id']}"
        assert files["a.csv"]["url"] == url

    def test_files(self, house: House, client: Client) -> None:
        """An attachment has its exact bytes, and the file of a message the whole mail."""
        to = receive(house)
        message_id = first_id(client)
        (picture, _) = client.get(f"/api/messages/{message_id}").json["attachments"]
        answer = client.get(f"/api/files/attachments/{picture['id']}")
        assert (answer.body, answer.headers["content-type"]) == (PNG, "image/png")
        raw = client.get(f"/api/files/email/{message_id}").body
        assert f"To: Ann <{to}>".encode() in raw

    def test_deletion(self, house: House, client: Client) -> None:
        """A message is deleted once, and a server's messages are deleted together."""
        for _ in range(3):
            receive(house)
        receive(house, server="zzzz9999")
        path = f"/api/messages/{first_id(client)}"
        assert client.send("DELETE", path).status == 204
        assert client.send("DELETE", path).status == 404
        assert client.send("DELETE", f"/api/messages?server={SERVER}").status == 204
        assert client.get(f"/api/messages?server={SERVER}").json["items"] == []
        assert len(client.get("/api/messages?server=zzzz9999").json["items"]) == 1


class TestSearch:
    """The criteria of a search, and how it waits."""

    def test_criteria(self, house: House, client: Client) -> None:
        """A search finds the messages that match all criteria, or any of them."""
        receive(house, "ann")
        receive(house, "bob", subject="Invoice", text="Your invoice is attached")
        receive(house, "bob", "zzzz9999", subject="Invoice", text="Your invoice is attached")
        bob = address(house, "bob")
        nobody = {"sentFrom": "nobody@example.com"}
        table: list[tuple[dict[str, Any], list[str]]] = [
            ({"sentTo": bob}, ["Invoice"]),
            ({"sentTo": address(house, "BOB")}, ["Invoice"]),
            ({"sentFrom": "shop@example.com", "subject": "welc"}, ["Welcome"]),
            ({"subject": "WELCOME"}, ["Welcome"]),
            ({"body": "your INVOICE is"}, ["Invoice"]),
            ({"subject": "Welcome", "body": "invoice"}, []),
            ({"subject": "Welcome", "body": "invoice", "match": "ANY"}, ["Invoice", "Welcome"]),
            ({**nobody, "sentTo": bob, "match": "ANY"}, ["Invoice"]),
            (nobody, []),
        ]
        for criteria, subjects in table:
            asked = client.search(**criteria)
            client.pass_time(1)
            found = asked.answer().json["items"]
            assert [one["subject"] for one in found] == subjects, criteria

    def test_a_search_ends_without_mail(self, client: Client) -> None:
        """A search is empty after the hold, and the client is told when to ask again."""
        asked = client.search(subject="Welcome")
        assert not asked.is_answered
        client.pass_time(1)
        answer = asked.answer()
        assert answer.json == {"items": []}
        assert answer.headers["x-ms-delay"] == "250"
        assert client.subjects(subject="Welcome", query="dir=Sent") == []


@pytest.fixture
def metered(house: House) -> Client:
    """A client whose key has the default limits: 60 requests a minute, 1,000 a day."""
    return Client(house, house.issue_key(house.account, per_minute=60, per_day=1_000))


class TestWaits:
    """Clients wait by repeating a search, which counts once."""

    def test_waits_of_any_length(self, house: House, metered: Client) -> None:
        """Four waits at once are beyond the limit of a minute in no time, and find their mail."""
        names = [f"name{number}" for number in range(4)]
        for _ in range(16):
            asked = [metered.search(sentTo=address(house, name)) for name in names]
            metered.pass_time(0.8)
            assert [one.answer().json for one in asked] == [{"items": []}] * 4
            metered.pass_time(0.25)
        to = receive(house, "name2")
        assert metered.subjects(sentTo=to) == ["Welcome"]

    def test_searches_that_are_counted(self, house: House, metered: Client) -> None:
        """Counted are the first one, another at the same time, a late one, and one after mail."""

        def cost(*searches: str) -> int:
            before = remaining(house, metered)
            for one in [metered.search(subject=subject) for subject in searches]:
                metered.pass_time(0.8)
                assert one.answer().status == 200
            return before - remaining(house, metered) - 1

        for searches, expected in (
            (["one"], 1),
            (["one"], 0),
            (["one", "one"], 1),
            (["other"], 1),
            (["one", "other"], 0),
        ):
            assert cost(*searches) == expected, searches
        receive(house, subject="one")
        assert [cost("one"), cost("one"), cost("other")] == [0, 1, 0]
        metered.pass_time(11)
        assert cost("other") == 1

    def test_a_key_is_checked_each_time(self, house: House, metered: Client) -> None:
        """A search that repeats that of another key is no repetition, and needs a valid key."""
        metered.search(subject="one")
        metered.pass_time(0.8)
        assert Client(house, "unknown").search(subject="one").answer().status == 401


def remaining(house: House, client: Client) -> int:
    """Return how many requests the key of a client has left in this minute, after this one."""
    key = base64.b64decode(client.headers["Authorization"].partition(" ")[2]).decode()[:-1]
    answer = house.get("/inbox", key=key)
    return int(answer.headers["x-ratelimit-remaining"])


class TestServers:
    """Servers are the beginnings of tags."""

    def test_a_server_from_creation_to_deletion(self, house: House, client: Client) -> None:
        """A created server has its name, counts its mail, and is gone with it once deleted."""
        made = client.send("POST", "/api/servers", {"name": "My test"}).json
        assert re.fullmatch("[a-z2-7]{8}", made["id"])
        assert made == {"id": made["id"], "name": "My test", "users": [], "messages": 0}
        path = f"/api/servers/{made['id']}"
        assert client.get(path).json == made
        assert client.send("PUT", path, {**made, "name": "Ünser …"}).json["name"] == "Ünser …"
        receive(house, server=made["id"])
        receive(house)
        assert client.get(path).json == {**made, "name": "Ünser …", "messages": 1}
        assert client.get(f"{path}/password").json == {"value": house.key}
        assert client.send("DELETE", path).status == 204
        assert client.send("DELETE", path).status == 404
        assert client.get(path).status == 404
        assert [one["id"] for one in client.get("/api/servers").json["items"]] == [SERVER]

    @rows(None, "", " ", "x" * 201)
    def test_a_bad_name(self, client: Client, name: str | None) -> None:
        """A server without a name, or with a long one, is refused with the error of Mailosaur."""
        answer = client.send("POST", "/api/servers", {"name": name})
        assert answer.status == 400
        assert answer.body.startswith(b'{"type":')
        assert answer.json["errors"][0]["field"] == "name"

    @rows(SERVER, "short", "efe907e9-74ed", "abcd-234", "é" * 8)
    def test_an_unknown_server(self, client: Client, server_id: str) -> None:
        """A server without a name and without mail is not found."""
        for method, path in (("GET", ""), ("DELETE", ""), ("GET", "/password")):
            assert client.send(method, f"/api/servers/{server_id}{path}").status == 404
        answer = client.send("PUT", f"/api/servers/{server_id}", {"name": "x"})
        assert answer.status == 404


class TestAnalysis:
    """Analyses show the report of mailcheck, and leave no test behind."""

    def test_spam(self, analysed: Client) -> None:
        """The rules of a spam analysis are the deductions of the report, with their points."""
        receive(analysed.house)
        asked = analysed.ask("GET", f"/api/analysis/spam/{first_id(analysed)}")
        analysed.pass_time(1)
        found = asked.answer().json
        rules = found["spamFilterResults"]["spamAssassin"]
        assert found["score"] == round(sum(one["score"] for one in rules), 1) > 0
        assert "dkim.unsigned" in [one["rule"] for one in rules]
        assert all(one["description"] for one in rules)
        assert analysed.house.get("/test").json["tests"] == []

    def test_deliverability(self, analysed: Client) -> None:
        """A deliverability report has a result for each check; undetermined is never a failure."""
        receive(analysed.house)
        asked = analysed.ask("GET", f"/api/analysis/deliverability/{first_id(analysed)}")
        analysed.pass_time(1)
        found = asked.answer().json
        assert found["spf"]["result"] in ("Pass", "Warning", "Fail", "Timeout")
        assert found["dkim"] == []
        assert found["content"]["missingListUnsubscribe"]
        assert not found["content"]["script"]
        assert found["spamAssassin"]["result"] in ("Pass", "Fail", "Timeout")
        assert {one["result"] for one in found["blockLists"]} <= {"Pass", "Fail", "Timeout"}
        assert set(found["dnsRecords"]) == {"a", "mx", "ptr"}


class TestUsage:
    """The use of an account."""

    def test_limits(self, house: House, client: Client) -> None:
        """Limits are those of the inbox."""
        receive(house)
        found = client.get("/api/usage/limits").json
        assert found["email"] == {"limit": 10_000, "current": 1}
        assert found["servers"]["current"] == 1
        assert found["sms"] == {"limit": 0, "current": 0}

    def test_days(self, house: House, client: Client) -> None:
        """The messages of the last 31 days are counted by day, newest first."""
        receive(house)
        house.pass_time(86_400 / 2)
        receive(house)
        receive(house)
        days = client.get("/api/usage/transactions").json["items"]
        assert len(days) == 31
        assert sum(one["email"] for one in days) == 3
        assert days == sorted(days, key=lambda one: one["timestamp"], reverse=True)


class TestErrors:
    """Errors have the form that Mailosaur's clients print."""

    @rows(
        ("server=short", {"subject": "x"}, "server"),
        ("", {"subject": "x"}, "server"),
        (f"server={SERVER}", {}, "criteria"),
        (f"server={SERVER}&page=-1", {"subject": "x"}, "page"),
        (f"server={SERVER}&page=99999999999999999999", {"subject": "x"}, "page"),
        (f"server={SERVER}&itemsPerPage=1001", {"subject": "x"}, "itemsPerPage"),
        (f"server={SERVER}&receivedAfter=now", {"subject": "x"}, "receivedAfter"),
        (f"server={SERVER}", {"subject": "x", "match": "SOME"}, "match"),
    )
    def test_bad_input(self, client: Client, query: str, body: Any, field: str) -> None:
        """An invalid search is refused, and the error names the parameter."""
        answer = client.send("POST", f"/api/messages/search?{query}", body)
        assert answer.status == 400
        assert answer.body.startswith(b'{"type":')
        (problem,) = answer.json["errors"]
        assert problem["field"] == field
        assert problem["detail"][0]["description"]

    def test_what_is_not_offered(self, client: Client) -> None:
        """A route that is not offered is refused with its reason, which the clients print."""
        refused = [one for one in MAILOSAUR.routes if one.like is Like.NOT_OFFERED]
        assert len(refused) == 10
        for route in refused:
            answer = client.send(route.method, route.path.replace("<id>", "x"))
            assert answer.status == 400, route
            assert answer.json["errors"][0]["detail"][0]["description"] == route.note

    @rows(None, "Basic", "Basic !", "Basic Og==", "Bearer {key}", "Basic eDo=")
    def test_no_key(self, house: House, client: Client, header: str | None) -> None:
        """A request without a valid key as the user is refused with 401."""
        client.headers = {} if header is None else {"Authorization": header.format(key=house.key)}
        assert client.get("/api/servers").status == 401

    @rows(
        "/api/messages/efe907e9-74ed-4113-a3e0-a3d41d914765",
        "/api/files/attachments/x",
        "/api/files/attachments/efe907e9-74ed-4113-a3e0-a3d41d914765.1",
        "/api/files/email/x",
        "/api/analysis/spam/x",
        "/api/elsewhere",
    )
    def test_not_found(self, client: Client, path: str) -> None:
        """What does not exist is answered with 404."""
        assert client.get(path).status == 404


class TestLimitedKeys:
    """A key that is limited to tags sees no other mail through this API (attack)."""

    def test_other_tags_do_not_exist(self, house: House, client: Client) -> None:
        """A limited key cannot list, search, read or delete messages with other tags."""
        receive(house, "ann", subject="mine")
        receive(house, "bob", subject="theirs")
        theirs = next(
            one["id"]
            for one in client.get(f"/api/messages?server={SERVER}").json["items"]
            if one["subject"] == "theirs"
        )
        file_id = client.get(f"/api/messages/{theirs}").json["attachments"][0]["id"]
        mallory = limited(house, make_rights(tags=[f"{SERVER}-ann"]))
        listed = mallory.get(f"/api/messages?server={SERVER}").json["items"]
        assert [one["subject"] for one in listed] == ["mine"]
        for criteria in (
            {"sentTo": address(house), "sentFrom": "shop@example.com"},
            {"sentFrom": "shop@example.com", "match": "ANY"},
            {"subject": "i", "body": "482913", "match": "ANY"},
        ):
            assert mallory.subjects(**criteria) == ["mine"]
        asked = mallory.search(sentTo=address(house, "bob"))
        mallory.pass_time(1)
        assert asked.answer().json == {"items": []}
        for method, path in (
            ("GET", f"/api/messages/{theirs}"),
            ("DELETE", f"/api/messages/{theirs}"),
            ("GET", f"/api/files/attachments/{file_id}"),
            ("GET", f"/api/files/email/{theirs}"),
        ):
            assert mallory.send(method, path).status == 404
        assert mallory.send("DELETE", f"/api/messages?server={SERVER}").status == 204
        assert client.subjects(sentFrom="shop") == ["theirs"]

    def test_servers_of_others(self, house: House, client: Client) -> None:
        """A limited key sees no other server, and neither names nor deletes one."""
        receive(house, server="zzzz9999")
        receive(house, "ann")
        client.send("PUT", "/api/servers/zzzz9999", {"name": "secret"})
        mallory = limited(house, make_rights(tags=[f"{SERVER}-ann"]))
        (mine,) = mallory.get("/api/servers").json["items"]
        assert (mine["id"], mine["messages"]) == (SERVER, 1)
        assert mallory.get("/api/servers/zzzz9999").status == 404
        assert mallory.send("DELETE", f"/api/servers/{SERVER}").status == 403
        assert mallory.send("PUT", f"/api/servers/{SERVER}", {"name": "x"}).status == 403
        assert mallory.send("POST", "/api/servers", {"name": "x"}).status == 403
        assert mallory.get("/api/usage/limits").json["email"]["current"] == 1

    def test_a_key_for_a_whole_server(self, house: House) -> None:
        """A key that is limited to the prefix of a server may do everything with that server."""
        receive(house)
        own = limited(house, make_rights(tag_prefix="abcd"))
        assert own.send("POST", "/api/servers", {"name": "x"}).json["id"].startswith("abcd")
        assert own.send("PUT", f"/api/servers/{SERVER}", {"name": "x"}).status == 200
        assert own.send("DELETE", f"/api/servers/{SERVER}").status == 204

    @rows(
        ("GET", f"/api/messages?server={SERVER}", "inbox:write"),
        ("DELETE", f"/api/messages?server={SERVER}", "inbox:read"),
        ("GET", "/api/analysis/spam/x", "inbox:read"),
    )
    def test_scopes(self, house: House, method: str, path: str, scope: str) -> None:
        """A key without the scope of a route is refused."""
        client = limited(house, make_rights([scope]))
        assert client.send(method, path).status == 403

    def test_another_account(self, house: House, client: Client) -> None:
        """Another account finds neither the messages nor the names of servers."""
        receive(house)
        message_id = first_id(client)
        client.send("PUT", f"/api/servers/{SERVER}", {"name": "secret"})
        other = Client(house, house.issue_key(house.add_account("second")))
        assert other.get(f"/api/messages/{message_id}").status == 404
        assert other.get(f"/api/servers/{SERVER}").status == 404
        assert other.get(f"/api/messages?server={SERVER}").json["items"] == []

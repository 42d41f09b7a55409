"""The API of MailSlurp: each of its routes answers as MailSlurp's clients expect."""

import base64
import hashlib
import json
import uuid
from typing import Any

import pytest

from mailcheck.checks.content.patterns import find_pattern
from mailcheck.core.errors import InvalidParameter
from mailcheck.core.rights import make_rights
from mailcheck.web.compatible.mailslurp.facade import MAILSLURP
from mailcheck.web.site.likeness import Like
from tests.house import House
from tests.table import rows
from tests.web.compatible.mailosaur import PNG
from tests.web.compatible.mailslurp import INBOX, Client, receive


@pytest.fixture
def client(house: House) -> Client:
    """A client with the key of the first account."""
    return Client(house)


def only_email(client: Client, inbox: str = INBOX) -> str:
    """Return the id of the newest message of an inbox."""
    found: str = client.get(f"/inboxes/{inbox}/emails").json[0]["id"]
    return found


def subjects(answer: Any) -> list[str]:
    """Return the subjects of a list or a page."""
    found = answer.json
    listed = found["content"] if isinstance(found, dict) else found
    return [one["subject"] for one in listed]


class TestInboxes:
    """An inbox is a tag, and its id is the tag."""

    @rows("/inboxes", "/inboxes/withDefaults", "/createInbox", "/newEmailAddress")
    def test_a_new_inbox(self, house: House, client: Client, path: str) -> None:
        """A new inbox has a random id, and an address that receives its mail."""
        answer = client.send("POST", f"{path}?name=My%20test&tags=a&tags=b")
        assert answer.status == 201
        made = answer.json
        assert uuid.UUID(made["id"]).version == 4
        assert made["emailAddress"] == house.address(made["id"])
        assert (made["name"], made["tags"], made["readOnly"]) == ("My test", ["a", "b"], False)
        house.receive(made["emailAddress"])
        assert len(client.get(f"/inboxes/{made['id']}/emails").json) == 1
        found = client.get(f"/inboxes/{made['id']}").json
        assert (found["id"], found["emailAddress"]) == (made["id"], made["emailAddress"])

    def test_names(self, house: House, client: Client) -> None:
        """Names are shown until they are changed, to their account only, and have a maximum."""
        made = client.send("POST", "/inboxes", {"name": "One", "tags": ["a"]}).json["id"]
        found = client.get(f"/inboxes/{made}").json
        assert (found["name"], found["description"], found["tags"]) == ("One", None, ["a"])
        body = {"name": "Two", "description": "For sign-ups", "tags": []}
        changed = client.send("PATCH", f"/inboxes/{made}", body)
        assert (changed.status, changed.json["name"]) == (200, "Two")
        receive(house, made)
        for path in ("/inboxes", "/inboxes/paginated"):
            listed = client.get(path).json
            (one,) = listed["content"] if isinstance(listed, dict) else listed
            assert (one["name"], one["description"], one["tags"]) == ("Two", "For sign-ups", [])
        other = Client(house, house.issue_key(house.add_account("other")))
        assert other.get(f"/inboxes/{made}").json["name"] is None
        reader = Client(house, house.issue_key(house.account, rights=make_rights(["inbox:read"])))
        assert reader.send("POST", "/inboxes").status == 201
        assert reader.send("POST", "/inboxes", {"name": "Three"}).status == 403
        answer = client.send("PATCH", f"/inboxes/{made}", {"description": "x" * 2_001})
        assert (answer.status, "2,000 characters" in answer.json["message"]) == (400, True)

    def test_options(self, house: House, client: Client) -> None:
        """The prefix of an address is kept, and an address of this inbox can be chosen."""
        made = client.send("POST", "/inboxes/withOptions", {"prefix": "shop"}).json
        assert made["id"].startswith("shop-")
        made = client.send("POST", "/inboxes", {"emailAddress": house.address("Shop")}).json
        assert (made["id"], made["emailAddress"]) == ("Shop", house.address("Shop"))
        for bad in ("ann@example.com", house.address(), "dev-other+a@mailcheck.example", "x"):
            answer = client.send("POST", "/inboxes", {"emailAddress": bad})
            assert answer.status == 400
            assert (
                "emailAddress" in answer.json["errorClass"] + answer.json["message"]
                or bad in (answer.json["message"])
            )

    def test_lists(self, house: House, client: Client) -> None:
        """Lists have the tags with mail, newest first, and can be paged."""
        for tag in ("a", "b", "c"):
            receive(house, tag)
            house.pass_time(1)
        house.receive(house.address())
        assert [one["id"] for one in client.get("/inboxes").json] == ["c", "b", "a"]
        page = client.get("/inboxes/paginated?page=1&size=2").json
        assert [one["id"] for one in page["content"]] == ["a"]
        assert (page["totalElements"], page["totalPages"], page["last"]) == (3, 2, True)
        ids = client.get("/inboxes/ids").json["inboxIds"]
        assert ids[0]["emailAddress"] == house.address("c")
        assert client.get("/inboxes/count").json == {"totalElements": 3}
        assert len(client.get("/inboxes/offset-paginated").json["content"]) == 3

    @rows("/inboxes/byEmailAddress", "/inboxes/exists")
    def test_the_inbox_of_an_address(self, house: House, client: Client, path: str) -> None:
        """The id of an inbox is found by its address, also with the tag in front of the domain."""
        name = house.account.mailbox_name
        for address in (house.address("ann"), f"ann@{name}.mailcheck.example"):
            found = client.send("GET", f"{path}?emailAddress={address.replace('+', '%2B')}").json
            assert found == {"exists": True, "inboxId": "ann"}
        found = client.get(f"{path}?emailAddress=ann@example.com").json
        assert found == {"exists": False, "inboxId": None}

    @rows(
        f"/inboxes/{INBOX}",
        f"/inboxes/{INBOX}/deleteAllInboxEmails",
        f"/emptyInbox?inboxId={INBOX}",
        f"/deleteEmailAddress?inboxId={INBOX}",
    )
    def test_emptying(self, house: House, client: Client, path: str) -> None:
        """The messages of one inbox are deleted."""
        receive(house)
        receive(house)
        receive(house, "other")
        assert client.send("DELETE", path).status == 204
        assert client.get(f"/inboxes/{INBOX}/emails/count").json == {"totalElements": 0}
        assert client.get("/inboxes/other/emails/count").json == {"totalElements": 1}
        assert client.send("DELETE", "/inboxes/other").status == 204


class TestWaits:
    """Waits are answered as soon as their mail is there."""

    def test_unread_messages_only(self, house: House, client: Client) -> None:
        """A message that a wait has returned is read, so the next wait returns the next one."""
        path = f"/waitForLatestEmail?inboxId={INBOX}&timeout=30000&unreadOnly=true"
        receive(house, subject="one")
        assert client.get(f"/emails/unreadCount?inboxId={INBOX}").json == {"count": 1}
        assert client.get(path).json["subject"] == "one"
        assert client.get(f"/emails/unreadCount?inboxId={INBOX}").json == {"count": 0}
        asked = client.ask("GET", path)
        assert not asked.is_answered
        receive(house, subject="two")
        assert asked.answer().json["subject"] == "two"

    def test_a_timeout(self, client: Client) -> None:
        """A wait ends at its timeout with 408, as MailSlurp's does."""
        asked = client.ask("GET", f"/waitForLatestEmail?inboxId={INBOX}&timeout=3000")
        client.pass_time(2.9)
        assert not asked.is_answered
        client.pass_time(0.2)
        answer = asked.answer()
        assert answer.status == 408
        assert answer.json["message"] == "0 of 1 matching messages arrived within 3000 ms"

    def test_the_nth_email(self, house: House, client: Client) -> None:
        """The index of a message is counted from the oldest one."""
        receive(house, subject="one")
        receive(house, subject="two")
        path = f"/waitForNthEmail?inboxId={INBOX}&timeout=30000&index="
        assert client.get(f"{path}0").json["subject"] == "one"
        asked = client.ask("GET", f"{path}2")
        assert not asked.is_answered
        receive(house, subject="three")
        assert asked.answer().json["subject"] == "three"

    @rows(
        ("GET", f"/waitForEmailCount?inboxId={INBOX}&count=2&timeout=30000"),
        ("POST", f"/waitForMatchingEmails?inboxId={INBOX}&count=2&timeout=30000"),
        ("POST", "/waitFor"),
    )
    def test_several_emails(self, house: House, client: Client, method: str, path: str) -> None:
        """A wait for several messages returns their previews when all have arrived."""
        matches = [{"field": "SUBJECT", "should": "CONTAIN", "value": "mail"}]
        body: dict[str, Any] = {"matches": matches} if method == "POST" else {}
        if path == "/waitFor":
            body |= {"inboxId": INBOX, "count": 2, "timeout": 30_000, "sortDirection": "ASC"}
        asked = client.ask(method, path, **({"json": body} if body else {}))
        receive(house, subject="mail one")
        assert not asked.is_answered
        receive(house, subject="mail two")
        found = subjects(asked.answer())
        assert sorted(found) == ["mail one", "mail two"]
        assert (found[0] == "mail one") == (path == "/waitFor")
        assert client.send("DELETE", f"/inboxes/{INBOX}").status == 204

    @rows(
        ("SUBJECT", "EQUAL", "your invoice"),
        ("SUBJECT", "MATCH", "^Your [A-Z]nvoice$"),
        ("FROM", "EQUAL", "shop@example.com"),
        ("FROM", "CONTAIN", "shop"),
        ("TO", "CONTAIN", INBOX),
        ("CC", "EQUAL", "bob@example.com"),
        ("HEADERS", "CONTAIN", "subject: your"),
    )
    def test_conditions(
        self, house: House, client: Client, field: str, should: str, value: str
    ) -> None:
        """A message that meets all conditions ends the wait; one that does not meet one doesn't."""
        wanted = {"field": field, "should": should, "value": value}
        invoice = {"field": "SUBJECT", "should": "CONTAIN", "value": "invoice"}
        path = f"/waitForMatchingFirstEmail?inboxId={INBOX}&timeout=30000"
        asked = client.ask("POST", path, json={"matches": [wanted, invoice]})
        never = {**wanted, "should": "EQUAL", "value": "nothing of it"}
        unmet = client.ask("POST", path, json={"matches": [never, invoice]})
        receive(house)
        assert not asked.is_answered
        receive(house, subject="Your Invoice")
        assert asked.answer().json["subject"] == "Your Invoice"
        assert not unmet.is_answered
        unmet.hang_up()
        assert client.send("DELETE", f"/inboxes/{INBOX}").status == 204

    def test_lists_of_an_inbox(self, house: House, client: Client) -> None:
        """A list is newest first, limited, held while it is empty, and for a minimum."""
        asked = client.ask("GET", f"/inboxes/{INBOX}/emails")
        assert not asked.is_answered
        receive(house, subject="one")
        assert subjects(asked.answer()) == ["one"]
        asked = client.ask("GET", f"/inboxes/{INBOX}/emails?minCount=2&retryTimeout=30000")
        client.pass_time(5)
        receive(house, subject="two")
        assert subjects(asked.answer()) == ["two", "one"]
        assert subjects(client.get(f"/inboxes/{INBOX}/emails?sort=ASC&limit=1")) == ["two"]
        for path in ("/emails/latestIn", "/inboxes/getLatestEmail"):
            assert client.get(f"{path}?inboxId={INBOX}").json["subject"] == "two"
            assert client.get(f"{path}?inboxId=other").status == 404
        asked = client.ask("GET", "/inboxes/getLatestEmail?inboxId=other&timeoutMillis=5000")
        client.pass_time(4)
        assert not asked.is_answered
        receive(house, "other", subject="three")
        assert asked.answer().json["subject"] == "three"
        assert client.get("/emails/latest").json["subject"] == "three"
        assert client.send("DELETE", "/inboxes/other").status == 204
        for path in ("/emails", "/emails/offset-paginated", f"/inboxes/{INBOX}/emails/paginated"):
            assert subjects(client.get(f"{path}?page=1&size=1")) == ["one"]
        assert subjects(client.get(f"/emails?inboxId={INBOX}&searchFilter=two")) == ["two"]

    def test_times(self, house: House, client: Client) -> None:
        """Messages before ``since`` and after ``before`` do not count."""
        receive(house)
        at = client.get(f"/inboxes/{INBOX}/emails").json[0]["createdAt"]
        house.pass_time(60)
        path = f"/waitForLatestEmail?inboxId={INBOX}&timeout=0"
        assert client.get(f"{path}&since={at}&before={at}").status == 200
        assert client.get(f"{path}&since=2126-01-01T00:00:00Z").status == 408
        assert client.get(f"{path}&before=2020-01-01T00:00:00Z").status == 408


class TestEmails:
    """The parts of a message."""

    def test_a_whole_message(self, house: House, client: Client) -> None:
        """A message has every field that the strict clients need."""
        receive(house)
        found = client.get(f"/emails/{only_email(client)}").json
        to = house.address(INBOX)
        assert found["inboxId"] == INBOX
        assert (found["to"], found["cc"], found["bcc"]) == ([to], ["bob@example.com"], [])
        assert found["from"] == "shop@example.com"
        assert found["sender"] == {
            "rawValue": "Shop <shop@example.com>",
            "emailAddress": "shop@example.com",
            "name": "Shop",
        }
        assert found["recipients"]["to"][0]["name"] == "Ann"
        assert found["headers"]["Subject"] == "Welcome"
        assert found["headersMap"]["Subject"] == ["Welcome"]
        assert "<b>482913</b>" in found["body"]
        assert (found["isHTML"], found["read"], len(found["attachments"])) == (True, True, 2)
        assert found["bodyMD5Hash"] == hashlib.md5(found["body"].encode()).hexdigest()
        assert found["bodyPartContentTypes"] == ["text/plain", "text/html"]
        assert None not in [
            found[name]
            for name in ("id", "userId", "domainId", "createdAt", "updatedAt", "teamAccess")
        ]

    def test_parts(self, house: House, client: Client) -> None:
        """Body, source, text, links, codes and matches of a pattern."""
        receive(house)
        path = f"/emails/{only_email(client)}"
        assert b"<b>482913</b>" in client.get(f"{path}/body").body
        assert client.get(f"{path}/html").body == client.get(f"{path}/body").body
        assert b"Subject: Welcome" in client.get(f"{path}/raw").body
        assert "Subject: Welcome" in client.get(f"{path}/raw/json").json["content"]
        assert client.get(f"{path}/summary").json["subject"] == "Welcome"
        links = client.get(f"{path}/links").json["links"]
        assert links[0] == "https://shop.example/verify?token=abc"
        assert client.get(f"{path}/textLines").json["lines"][0].startswith("Your code is")
        codes = client.send("POST", f"{path}/codes", {}).json
        assert (codes["found"], codes["code"]) == (True, "482913")
        assert not client.send("POST", f"{path}/codes", {"maxLength": 4}).json["found"]
        own = {"customPatterns": [r"nothing", r"token=(\w+)"]}
        assert client.send("POST", f"{path}/codes", own).json["code"] == "abc"
        pattern = {"pattern": r"code is <b>(\d{3})(\d+)"}
        found = client.send("POST", f"{path}/contentMatch", pattern).json
        assert found["matches"] == ["code is <b>482913", "482", "913"]
        found = client.send("POST", f"{path}/contentMatch", {"pattern": "nothing"}).json
        assert found["matches"] == []

    def test_read_marks(self, house: House, client: Client) -> None:
        """A message, an inbox or everything can be marked as read, and as unread again."""
        receive(house)
        receive(house, "other")
        path = f"/emails/{only_email(client)}/read"
        for asked, is_read, counts in (
            (path, True, (0, 1)),
            (f"{path}?read=false", False, (1, 1)),
            (f"/emails/read?inboxId={INBOX}", None, (0, 1)),
            ("/emails/read?read=false", None, (1, 1)),
            ("/emails/read", None, (0, 0)),
        ):
            answer = client.send("PATCH", asked)
            assert answer.status == (204 if is_read is None else 200)
            assert is_read is None or answer.json["read"] is is_read
            found = [
                client.get(f"/emails/unreadCount?inboxId={one}").json for one in (INBOX, "other")
            ]
            assert found == [{"count": one} for one in counts], asked

    def test_files(self, house: House, client: Client) -> None:
        """An attachment is found below its message and alone: bytes, Base64 and facts."""
        receive(house)
        message_id = only_email(client)
        (picture, table) = client.get(f"/emails/{message_id}/attachments").json
        assert (picture["name"], picture["contentLength"]) == ("cat.png", len(PNG))
        path = f"/emails/{message_id}/attachments/{picture['id']}"
        assert client.get(path).body == PNG
        assert base64.b64decode(client.get(f"{path}/base64").json["base64FileContents"]) == PNG
        assert client.get(f"{path}/metadata").json == picture
        path = f"/attachments/{table['id']}"
        assert client.get(f"{path}/bytes").body == b"one,two"
        assert client.get(f"{path}/base64").json["sizeBytes"] == 7
        assert client.get(f"{path}/metadata").json == table
        assert client.get(f"/attachments/{message_id}.9/metadata").status == 404

    def test_deletion(self, house: House, client: Client) -> None:
        """A message is deleted once."""
        receive(house)
        path = f"/emails/{only_email(client)}"
        assert client.send("DELETE", path).status == 204
        assert client.send("DELETE", path).status == 404


class TestWebhooks:
    """Webhooks are those of mailcheck."""

    def test_a_webhook_from_creation_to_deletion(self, house: House, client: Client) -> None:
        """A webhook of an inbox is made, listed, shown and deleted."""
        wanted = {"url": "https://ci.example.com/mail", "eventName": "NEW_EMAIL"}
        made = client.send("POST", f"/inboxes/{INBOX}/webhooks", wanted)
        assert made.status == 201
        hook = made.json
        assert (hook["inboxId"], hook["url"], hook["enabled"]) == (INBOX, wanted["url"], True)
        every = client.send("POST", "/webhooks", wanted).json
        assert every["inboxId"] is None
        assert client.get(f"/inboxes/{INBOX}/webhooks").json == [hook]
        assert client.get(f"/webhooks/{hook['id']}").json == hook
        page = client.get(f"/inboxes/{INBOX}/webhooks/paginated").json
        assert (page["content"], page["totalElements"]) == ([hook], 1)
        pages = [client.get(f"/webhooks/paginated?size=1&page={one}").json for one in (0, 1)]
        assert {one["content"][0]["id"] for one in pages} == {hook["id"], every["id"]}
        assert [one["last"] for one in pages] == [False, True]
        assert client.send("DELETE", f"/webhooks/{every['id']}").status == 204
        path = f"/inboxes/{INBOX}/webhooks/{hook['id']}"
        assert client.send("DELETE", path).status == 204
        assert client.send("DELETE", path).status == 404
        assert house.get("/inbox/webhooks").json["webhooks"] == []

    @rows({"eventName": "BOUNCE"}, {"basicAuth": {"username": "a", "password": "b"}}, {"url": "x"})
    def test_other_webhooks(self, client: Client, more: dict[str, Any]) -> None:
        """An event or a form that mailcheck does not have is refused."""
        answer = client.send("POST", "/webhooks", {"url": "https://ci.example.com/", **more})
        assert answer.status == 400


@pytest.fixture
def two(house: House, client: Client) -> Client:
    """A client whose inbox has two messages."""
    for _ in range(2):
        receive(house)
    return client


class TestCountType:
    """A wait may be for an exact number of messages."""

    @rows(
        ("ATLEAST", 1, 200),
        ("ATLEAST", 2, 200),
        ("EXACTLY", 2, 200),
        ("EXACTLY", 1, 408),
        ("EXACTLY", 3, 408),
        (None, 1, 200),
        ("ABOUT", 1, 400),
    )
    def test_a_number_of_messages(
        self, two: Client, count_type: str | None, count: int, status: int
    ) -> None:
        """More messages than an exact number are no match."""
        body = {"inboxId": INBOX, "count": count, "countType": count_type, "timeout": 0}
        answer = two.send("POST", "/waitFor", json=body)
        assert answer.status == status
        assert status != 200 or len(answer.json) == 2


class TestErrors:
    """Errors name what was wrong."""

    @rows(
        ("/waitForLatestEmail", "inboxId is missing"),
        ("/waitForLatestEmail?inboxId=a..b", "'a..b' is not an id of an inbox"),
        (f"/waitForLatestEmail?inboxId={INBOX}&timeout=-1", "you sent -1"),
        (f"/waitForLatestEmail?inboxId={INBOX}&timeout=300001", "you sent 300001"),
        (f"/waitForLatestEmail?inboxId={INBOX}&since=x", "you sent 'x'"),
        (f"/waitForLatestEmail?inboxId={INBOX}&sort=UP", "sort"),
        (f"/waitForNthEmail?inboxId={INBOX}&index=-1", "you sent -1"),
        (f"/waitForEmailCount?inboxId={INBOX}&count=0", "you sent 0"),
        (f"/inboxes/{INBOX}/emails?limit=101", "you sent 101"),
        ("/emails?page=-1", "you sent -1"),
        ("/emails?page=99999999999999999999", "you sent 99999999999999999999"),
        ("/inboxes/paginated?page=-1", "you sent -1"),
    )
    def test_bad_input(self, client: Client, path: str, part: str) -> None:
        """An invalid parameter is refused with a message that says what to send."""
        answer = client.get(path)
        assert answer.status == 400
        assert part in answer.json["message"]

    @rows(
        ("(", "is not a regular expression"),
        ("x" * 501, "at most 500 characters"),
        ("(a+)+$", "takes too long"),
    )
    def test_bad_patterns(self, pattern: str, part: str) -> None:
        """A pattern that is invalid, or would take for ever, is refused (attack)."""
        with pytest.raises(InvalidParameter) as refused:
            find_pattern(pattern, "a" * 40 + "b")
        assert part in str(refused.value)

    @rows(
        ("GET", "/inboxes/imap-smtp-access?inboxId=x"),
        ("GET", "/inboxes/smtp-access"),
        ("GET", "/inboxes/tags"),
        ("GET", "/inboxes/organization"),
        ("PATCH", "/inboxes/imap-access"),
        ("POST", "/inboxes/search"),
        ("DELETE", "/inboxes/by-tag?tag=x"),
        ("DELETE", "/inboxes/expired?before=2026-01-01"),
        ("GET", "/emails/threads"),
        ("GET", "/webhooks/results"),
    )
    def test_a_word_is_no_id(self, house: House, client: Client, method: str, path: str) -> None:
        """No inbox, message or webhook is invented for a word of another path of MailSlurp."""
        receive(house, path.rpartition("/")[2].partition("?")[0])
        answer = client.send(method, path, json={"name": "x"} if method[0] == "P" else None)
        assert (answer.status, answer.json["errorClass"]) == (501, "NotOffered")
        assert client.get("/emails").json["totalElements"] > 0

    def test_what_is_not_offered(self, client: Client) -> None:
        """A route that is not offered is refused with its reason."""
        refused = [one for one in MAILSLURP.routes if one.like is Like.NOT_OFFERED]
        assert len(refused) == 55
        for route in refused:
            answer = client.send(route.method, route.path.replace("<id>", "x"))
            assert (answer.status, answer.json["message"]) == (501, route.note)

    @rows({}, {"x-api-key": " "}, {"x-api-key": "wrong"})
    def test_no_key(self, client: Client, headers: dict[str, str]) -> None:
        """A request without a valid key is refused with 401."""
        client.headers = headers
        assert client.get("/inboxes").status == 401

    def test_an_unknown_path(self, client: Client) -> None:
        """A path that does not exist is not offered: MailSlurp has about 850 calls."""
        answer = client.get("/elsewhere")
        assert answer.status == 501
        assert set(json.loads(answer.body)) == {"message", "errorClass", "status"}


class TestLimitedKeys:
    """A key that is limited to tags sees no other mail through this API (attack)."""

    def test_other_inboxes(self, house: House, client: Client) -> None:
        """A limited key can neither wait in other inboxes, nor read or delete their messages."""
        receive(house, "mine", subject="mine")
        receive(house, "theirs", subject="theirs")
        theirs = only_email(client, "theirs")
        file_id = client.get(f"/emails/{theirs}/attachments").json[0]["id"]
        mallory = Client(
            house, house.issue_key(house.account, rights=make_rights(tags=["mine", "own"]))
        )
        for method, path in (
            ("GET", "/waitForLatestEmail?inboxId=theirs"),
            ("GET", "/inboxes/theirs"),
            ("GET", "/inboxes/theirs/emails"),
            ("GET", "/inboxes/theirs/emails/count"),
            ("GET", "/inboxes/theirs/emails/paginated"),
            ("GET", "/emails?inboxId=theirs"),
            ("DELETE", "/inboxes/theirs"),
            ("DELETE", "/emptyInbox?inboxId=theirs"),
            ("POST", "/inboxes"),
            ("POST", "/webhooks"),
            ("GET", "/inboxes/theirs/webhooks"),
            ("GET", "/webhooks/paginated"),
        ):
            json = {"url": "https://ci.example.com/"} if path == "/webhooks" else None
            assert mallory.send(method, path, json).status == 403, path
        for path in ("", "/body", "/raw", "/raw/json", "/links", "/attachments", "/summary"):
            assert mallory.get(f"/emails/{theirs}{path}").status == 404
        for path in ("/bytes", "/base64", "/metadata"):
            assert mallory.get(f"/attachments/{file_id}{path}").status == 404
        assert mallory.send("DELETE", f"/emails/{theirs}").status == 404
        assert mallory.send("PATCH", f"/emails/{theirs}/read").status == 404
        assert mallory.send("POST", f"/emails/{theirs}/codes", {}).status == 404
        match = {"pattern": "."}
        assert mallory.send("POST", f"/emails/{theirs}/contentMatch", match).status == 404
        assert subjects(mallory.get("/emails")) == ["mine"]
        assert [one["id"] for one in mallory.get("/inboxes").json] == ["mine"]
        assert mallory.get("/emails/unreadCount").json == {"count": 1}
        assert mallory.get("/emails/unreadCount?inboxId=theirs").json == {"count": 0}
        address = house.address("theirs").replace("+", "%2B")
        assert not mallory.get(f"/inboxes/exists?emailAddress={address}").json["exists"]
        assert mallory.get("/emails/emails/count").json == {"totalElements": 1}
        assert mallory.send("PATCH", "/emails/read").status == 204
        assert client.get("/emails/unreadCount?inboxId=theirs").json == {"count": 1}
        assert mallory.send("DELETE", "/emails").status == 204
        assert subjects(client.get("/emails")) == ["theirs"]

    def test_a_key_with_a_prefix(self, house: House) -> None:
        """A key that is limited to a prefix makes inboxes within it."""
        rights = make_rights(tag_prefix="run-")
        own = Client(house, house.issue_key(house.account, rights=rights))
        made = own.send("POST", "/inboxes").json
        assert made["id"].startswith("run-")
        house.receive(made["emailAddress"])
        assert len(own.get(f"/inboxes/{made['id']}/emails").json) == 1

    def test_another_account(self, house: House, client: Client) -> None:
        """Another account finds no message, though the inbox has the same id."""
        receive(house)
        message_id = only_email(client)
        other = Client(house, house.issue_key(house.add_account("second")))
        assert other.get(f"/emails/{message_id}").status == 404
        assert other.get(f"/inboxes/{INBOX}/emails/count").json == {"totalElements": 0}

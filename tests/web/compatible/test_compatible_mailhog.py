"""Every route of MailHog's API, and what its clients rely on."""

import base64
from typing import Any

from mailcheck.web.compatible.mailhog import MAILHOG
from mailcheck.web.site.application import Route
from mailcheck.web.site.likeness import Like
from tests.table import rows
from tests.web.compatible.open_site import RICH, TEXT, OpenSite, mail

FILE_PART = (
    'Content-Type: text/plain\r\nContent-Disposition: attachment; filename="a.txt"\r\n'
    "Content-Transfer-Encoding: base64\r\n\r\naGVsbG8="
)


def items(site: OpenSite, path: str = "/api/v2/messages") -> list[Any]:
    """Return the messages of a list."""
    found = site.get(path).json
    assert found["count"] == len(found["items"])
    return list(found["items"])


def test_a_message_has_its_envelope_and_raw_content(site: OpenSite) -> None:
    """Addresses are split at the @, and headers are lists of undecoded values."""
    site.send("jane@customer.example", "joe@other.example", raw=mail())
    (message,) = items(site)
    assert message["From"] == {
        "Relays": None,
        "Mailbox": "shop",
        "Domain": "example.com",
        "Params": "",
    }
    assert [one["Mailbox"] for one in message["To"]] == ["jane", "joe"]
    assert message["Content"]["Headers"]["Subject"] == ["Welcome"]
    assert message["Content"]["Body"] == TEXT
    assert message["MIME"] is None
    assert message["Raw"]["To"] == ["jane@customer.example", "joe@other.example"]
    assert message["Raw"]["Data"] == mail().decode().removesuffix("\r\n")
    assert message["Content"]["Size"] == len(message["Raw"]["Data"])
    assert message["Created"].endswith("Z")


def test_parts_are_encoded_as_they_were_sent(site: OpenSite) -> None:
    """Clients decode bodies, attachments and encoded words themselves."""
    site.send(raw=RICH)
    (message,) = items(site)
    assert message["Content"]["Headers"]["Subject"] == ["=?utf-8?q?Invoice_=E2=82=AC?="]
    related, file = message["MIME"]["Parts"]
    assert (file["Body"], file["Size"]) == ("aGVsbG8=", len(FILE_PART))
    assert file["Headers"]["Content-Disposition"] == ['attachment; filename="a.txt"']
    assert base64.b64decode(file["Body"]) == b"hello"
    assert related["MIME"]["Parts"][0]["Body"].startswith("<p")


def test_pages_of_the_list(site: OpenSite) -> None:
    """``start`` and ``limit`` choose a page of the newest messages."""
    for number in range(3):
        site.send(raw=mail(str(number)))
    found = site.get("/api/v2/messages?start=1&limit=1").json
    assert (found["total"], found["count"], found["start"]) == (3, 1, 1)
    assert found["items"][0]["Content"]["Headers"]["Subject"] == ["1"]


def test_a_search(site: OpenSite) -> None:
    """It finds senders, recipients with blind copies, or content."""
    site.send("jane@customer.example", "hidden@customer.example", raw=mail())
    for kind, query, is_found in (
        ("from", "shop@example.com", True),
        ("from", "jane", False),
        ("to", "jane@customer.example", True),
        ("to", "hidden@", True),
        ("to", "shop", False),
        ("containing", "482913", True),
        ("containing", "your code", True),
        ("containing", "nothing", False),
    ):
        found = items(site, f"/api/v2/search?kind={kind}&query={query}")
        assert len(found) == is_found, (kind, query)


@rows(
    ("?kind=subject&query=x", "containing"),
    ("?query=x", "containing"),
    ("?kind=to", "query"),
    ("?kind=to&query=", "query"),
)
def test_a_search_without_a_kind_or_a_query(site: OpenSite, query: str, words: str) -> None:
    """It is an error that says what is missing, as with MailHog."""
    answer = site.get(f"/api/v2/search{query}")
    assert (answer.status, words in answer.json["error"]) == (400, True)


def test_numbers_that_mailhog_ignores(site: OpenSite) -> None:
    """A text that is no positive number is the same as none."""
    for number in range(3):
        site.send(raw=mail(str(number)))
    for query, start, count in (
        ("start=x&limit=y", 0, 3),
        ("start=-1&limit=-1", 0, 3),
        ("start=1.5&limit=0", 0, 3),
        ("start=99999999999999999999&limit=%2B2", 0, 2),
        ("start=2&limit=9999", 2, 1),
    ):
        found = site.get(f"/api/v2/messages?{query}").json
        assert (found["start"], found["count"]) == (start, count), query


def test_the_header_has_the_fields_that_mailhog_adds(site: OpenSite) -> None:
    """They stand at the end of fields of the same name, in any case."""
    site.send(raw=b"from: shop@example.com\r\nRECEIVED: by x\r\nX: a\r\n\tb\r\nX: c\r\n\r\nhi\r\n")
    site.send(raw=mail())
    second, first = items(site)
    headers = first["Content"]["Headers"]
    assert headers["Message-ID"] == [first["ID"]]
    assert headers["Return-Path"] == ["<shop@example.com>"]
    assert headers["X"] == ["a\tb", "c"]
    theirs, ours = headers["RECEIVED"]
    assert theirs == "by x"
    assert ours.startswith("from client by mailcheck.example (mailcheck)\r\n          id ")
    assert second["Content"]["Headers"]["Message-ID"] == ["<one@example.com>"]
    assert len(second["Content"]["Headers"]["Received"]) == 1


def test_one_message(site: OpenSite) -> None:
    """It can be read, downloaded and deleted by its id."""
    site.send()
    site.send(raw=mail("Second"))
    (identity,) = {one["ID"] for one in items(site)[:1]}
    path = f"/api/v1/messages/{identity}"
    assert site.get(path).json["Content"]["Headers"]["Subject"] == ["Second"]
    assert site.get(f"{path}/download").body == mail("Second")
    assert site.get(f"{path}/mime/part/0/download").status == 404
    for _ in range(2):
        deleted = site.ask("DELETE", path).answer()
        assert (deleted.status, deleted.body) == (200, b"")
        assert len(items(site)) == 1
    unknown = site.get(path)
    assert (unknown.status, unknown.body) == (200, b"null")
    assert site.get(f"{path}/download").status == 404
    deleted = site.ask("DELETE", "/api/v1/messages").answer()
    assert (deleted.status, deleted.body, items(site)) == (200, b"", [])


def test_a_part_of_a_message(site: OpenSite) -> None:
    """It is given as it was sent, by its number from 0."""
    site.send(raw=RICH)
    path = f"/api/v1/messages/{items(site)[0]['ID']}/mime/part"
    part = site.get(f"{path}/1/download")
    assert (part.body, "part-1" in part.headers["content-disposition"]) == (b"aGVsbG8=", True)
    for number in ("2", "-1", "x", "9" * 30):
        assert site.get(f"{path}/{number}/download").status == 404


def test_a_slash_at_the_end(site: OpenSite) -> None:
    """A path may end with one, but nothing is deleted by it: an id before it may be missing."""
    site.send()
    (message,) = site.get("/api/v2/messages/").json["items"]
    assert site.get(f"/api/v1/messages/{message['ID']}/").json["ID"] == message["ID"]
    assert site.get("/api/v2/messages//").status == 404
    for path in ("", message["ID"] + "/"):
        assert site.ask("DELETE", f"/api/v1/messages/{path}").answer().status == 404
    assert len(items(site)) == 1


def test_jim(site: OpenSite) -> None:
    """Jim is 404 while he is away; his chances reject mail until he is sent away."""
    assert site.get("/api/v2/jim").status == 404
    body = {"RejectRecipientChance": 1.0, "RejectSenderChance": 0, "DisconnectChance": 0.5}
    for method in ("PUT", "DELETE"):
        assert site.ask(method, "/api/v2/jim").answer().status == 404
    assert site.ask("POST", "/api/v2/jim", json=body).answer().status == 201
    assert site.ask("POST", "/api/v2/jim", json=body).answer().status == 400
    found = site.get("/api/v2/jim").json
    assert (found["DisconnectChance"], found["AcceptChance"], len(found)) == (0, 1, 8)
    assert (found["RejectRecipientChance"], found["RejectSenderChance"]) == (1.0, 0)
    assert "451" in site.talk(b"EHLO x", b"MAIL FROM:<a@b.example>", b"RCPT TO:<c@d.example>")
    assert site.ask("PUT", "/api/v2/jim", json={}).answer().status == 200
    assert site.get("/api/v2/jim").json["RejectRecipientChance"] == 0.05
    assert site.ask("DELETE", "/api/v2/jim").answer().status == 200
    assert site.get("/api/v2/jim").status == 404
    assert site.send().startswith("250")


@rows(*MAILHOG.routes)
def test_every_declared_route(site: OpenSite, route: Route[Any]) -> None:
    """A route that is offered answers without an error; the others answer with their reason."""
    site.ask("DELETE", "/api/v2/jim").answer()
    site.send(raw=RICH)
    if route.method != "POST":
        site.ask("POST", "/api/v2/jim", json={}).answer()
    path = route.path.replace("<id>", items(site)[0]["ID"]).replace("<part>", "1")
    path = path.replace("/search", "/search?kind=to&query=jane")
    answer = site.ask(route.method, path, json={}).answer()
    if route.like is Like.NOT_OFFERED:
        assert (answer.status, answer.json["error"]) == (501, route.note)
    elif path.endswith("/release"):
        assert answer.status == 403, "[release] is not set"
    else:
        assert answer.status == (201 if route.method == "POST" else 200)

"""Every route of MailHog's API, and what its clients rely on."""

import base64
from typing import Any

import pytest

from mailcheck.web.compatible.mailhog import MAILHOG
from mailcheck.web.site.application import Route
from mailcheck.web.site.likeness import Like
from tests.web.compatible.open_site import RICH, TEXT, OpenSite, mail


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
    assert message["Content"]["Body"].strip() == TEXT
    assert message["MIME"] is None
    assert message["Raw"]["To"] == ["jane@customer.example", "joe@other.example"]
    assert message["Raw"]["Data"] == mail().decode()
    assert message["Created"].endswith("Z")


def test_parts_are_encoded_as_they_were_sent(site: OpenSite) -> None:
    """Clients decode bodies, attachments and encoded words themselves."""
    site.send(raw=RICH)
    (message,) = items(site)
    assert message["Content"]["Headers"]["Subject"] == ["=?utf-8?q?Invoice_=E2=82=AC?="]
    related, file = message["MIME"]["Parts"]
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


@pytest.mark.parametrize(
    ("kind", "query", "is_found"),
    [
        ("from", "shop@example.com", True),
        ("from", "jane", False),
        ("to", "jane@customer.example", True),
        ("to", "hidden@", True),
        ("to", "shop", False),
        ("containing", "482913", True),
        ("containing", "your code", True),
        ("containing", "nothing", False),
        ("containing", "", True),
    ],
)
def test_a_search(site: OpenSite, kind: str, query: str, is_found: bool) -> None:
    """It finds senders, recipients with blind copies, or content."""
    site.send("jane@customer.example", "hidden@customer.example", raw=mail())
    assert len(items(site, f"/api/v2/search?kind={kind}&query={query}")) == is_found


def test_an_unknown_kind_of_search(site: OpenSite) -> None:
    """It is an error that names the kinds."""
    answer = site.get("/api/v2/search?kind=subject&query=x")
    assert (answer.status, "containing" in answer.json["error"]) == (400, True)


def test_one_message(site: OpenSite) -> None:
    """It can be read, downloaded and deleted by its id."""
    site.send()
    site.send(raw=mail("Second"))
    (identity,) = {one["ID"] for one in items(site)[:1]}
    path = f"/api/v1/messages/{identity}"
    assert site.get(path).json["Content"]["Headers"]["Subject"] == ["Second"]
    assert site.get(f"{path}/download").body == mail("Second")
    assert site.ask("DELETE", path).answer().status == 200
    assert site.get(path).status == 404
    assert len(items(site)) == 1


def test_jim(site: OpenSite) -> None:
    """Jim is 404 while he is away; his chances reject mail until he is sent away."""
    assert site.get("/api/v2/jim").status == 404
    body = {"RejectRecipientChance": 1.0, "RejectSenderChance": 0, "DisconnectChance": 0.5}
    assert site.ask("POST", "/api/v2/jim", json=body).answer().status == 200
    found = site.get("/api/v2/jim").json
    assert (found["RejectRecipientChance"], found["RejectSenderChance"]) == (1.0, 0)
    assert "451" in site.talk(b"EHLO x", b"MAIL FROM:<a@b.example>", b"RCPT TO:<c@d.example>")
    assert site.ask("PUT", "/api/v2/jim", json={}).answer().status == 200
    assert site.get("/api/v2/jim").json["RejectRecipientChance"] == 0.05
    assert site.ask("DELETE", "/api/v2/jim").answer().status == 200
    assert site.get("/api/v2/jim").status == 404
    assert site.send().startswith("250")


@pytest.mark.parametrize("route", MAILHOG.routes, ids=lambda one: f"{one.method} {one.path}")
def test_every_declared_route(site: OpenSite, route: Route[Any]) -> None:
    """A route that is offered answers without an error; the others answer with their reason."""
    site.send()
    site.ask("POST", "/api/v2/jim", json={}).answer()
    path = route.path.replace("<id>", items(site)[0]["ID"])
    answer = site.ask(route.method, path, json={}).answer()
    if route.like is Like.NOT_OFFERED:
        assert (answer.status, answer.json["error"]) == (
            403 if "release" in path else 501,
            route.note,
        )
    else:
        assert answer.status == 200

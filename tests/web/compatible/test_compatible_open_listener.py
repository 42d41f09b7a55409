"""Attacks on the listeners that need no API key, and their passwords."""

import base64

import pytest

from tests.house import run
from tests.table import rows
from tests.web.compatible.open_site import RICH, OpenSite, mail
from tests.web.raw_http import RawHttp

STRANGER = "8.8.8.8"


def get(
    site: OpenSite, *headers: str, host: str = "localhost:8025", peer: str = "127.0.0.1"
) -> int:
    """Return the status of a list of messages with these headers."""
    lines = "".join(f"{one}\n" for one in headers)
    head = f"GET /api/v1/messages HTTP/1.1\nHost: {host}\n{lines}\n"
    return site.raw_http(head, peer).status


def delete(site: OpenSite, *headers: str) -> int:
    """Return the status of a deletion of all messages with these headers."""
    lines = "".join(f"{one}\n" for one in headers)
    head = f"DELETE /api/v1/messages HTTP/1.1\nHost: localhost:8025\n{lines}\n"
    return site.raw_http(head).status


@pytest.fixture
def site(site: OpenSite) -> OpenSite:
    """The listeners have a message."""
    site.send()
    return site


@rows("127.0.0.1", "10.1.2.3", "172.17.0.5", "192.168.1.9")
def test_private_clients_are_accepted(site: OpenSite, peer: str) -> None:
    """Clients on this machine, containers and the private network may read and send."""
    assert get(site, peer=peer) == 200
    assert site.talk(peer=peer).startswith("220")


def test_strangers_are_rejected(site: OpenSite) -> None:
    """A public client can neither read nor send, and cannot pretend to be private."""
    assert get(site, peer=STRANGER) == 403
    assert get(site, "X-Forwarded-For: 127.0.0.1", peer=STRANGER) == 403
    assert site.talk(peer=STRANGER).startswith("554 5.7.1")


@rows("attacker.example", "attacker.example:8025", "1.2.3.4.nip.io")
def test_dns_rebinding_is_rejected(site: OpenSite, host: str) -> None:
    """A page of a stranger whose name leads to this machine has that name in Host."""
    assert get(site, host=host) == 403
    head = f"DELETE /api/v1/messages HTTP/1.1\nHost: {host}\n\n"
    assert site.raw_http(head).status == 403
    assert site.get("/api/v1/messages").json["total"] == 1


@rows(
    "localhost",
    "127.0.0.1:8025",
    "[::1]:8025",
    "192.168.1.9:8025",
    "mailpit",
    "mailpit:8025",
    "host.docker.internal:8025",
    "shop.localhost",
    "mailpit.default.svc.cluster.local",
    "LOCALHOST.:8025",
)
def test_own_names_are_accepted(site: OpenSite, host: str) -> None:
    """Addresses, names without a dot, and names that public DNS does not have are ours."""
    assert get(site, host=host) == 200


def test_a_configured_name_is_accepted() -> None:
    """The operator can name further hosts, such as those of DDEV."""
    site = OpenSite(hosts=("shop.ddev.site",))
    assert get(site, host="shop.ddev.site:8025") == 200
    assert get(site, host="other.ddev.site:8025") == 403


@rows(
    ["Origin: https://attacker.example"],
    ["Origin: null"],
    ["Origin: http://localhost:3000"],
    ["Origin: http://localhost:8025.attacker.example"],
    ["Sec-Fetch-Site: cross-site"],
    ["Sec-Fetch-Site: same-site", "Sec-Fetch-Mode: no-cors"],
    ["Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: navigate"],
)
def test_a_page_of_another_site_deletes_nothing(site: OpenSite, headers: list[str]) -> None:
    """Browsers name the page, or tell that it is of another site."""
    assert delete(site, *headers) == 403
    assert site.get("/api/v1/messages").json["total"] == 1


def test_forms_and_texts_of_other_sites_are_rejected(site: OpenSite) -> None:
    """A request that needs no permission of CORS is rejected all the same."""
    for kind in ("text/plain", "application/x-www-form-urlencoded"):
        head = (
            "POST /api/v1/send HTTP/1.1\nHost: localhost:8025\nOrigin: https://a.example\n"
            f"Content-Type: {kind}\nContent-Length: 2\n\n{{}}"
        )
        assert site.raw_http(head).status == 403


def test_own_pages_and_links_are_accepted(site: OpenSite) -> None:
    """A page of the listener itself may send requests, and other sites may link to messages."""
    assert get(site, "Origin: http://localhost:8025", "Sec-Fetch-Site: same-origin") == 200
    assert get(site, "Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: navigate") == 200
    assert get(site, "Sec-Fetch-Site: none") == 200
    own = "Host: localhost:8025\nOrigin: http://localhost:8025\nContent-Length: 2"
    assert site.raw_http(f"PUT /api/v1/messages HTTP/1.1\n{own}\n\n{{}}").status == 200


def test_preflights_get_no_permission(site: OpenSite) -> None:
    """No answer has a header of CORS, also to the request that asks for it."""
    answer = site.raw_http(
        "OPTIONS /api/v1/messages HTTP/1.1\nHost: localhost:8025\nOrigin: https://a.example\n"
        "Access-Control-Request-Method: DELETE\n\n"
    )
    assert answer.status == 403
    assert not [name for name in answer.headers if name.startswith("access-control")]


def test_a_web_socket_of_another_site_is_rejected(site: OpenSite) -> None:
    """A page of a stranger does not learn of new messages."""
    answer = site.raw_http(handshake("Origin: https://attacker.example"))
    assert answer.status == 403
    connection = RawHttp(site)
    connection.send(handshake("Origin: http://localhost:8025").replace("\n", "\r\n").encode())
    assert connection.received().startswith(b"HTTP/1.1 101 ")
    connection.hang_up()


def handshake(*headers: str) -> str:
    """Return the request of a WebSocket."""
    lines = "".join(f"{one}\n" for one in headers)
    return (
        "GET /api/events HTTP/1.1\nHost: localhost:8025\nUpgrade: websocket\n"
        "Connection: Upgrade\nSec-WebSocket-Version: 13\n"
        f"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\n{lines}\n"
    )


def basic(user: str, password: str) -> str:
    """Return the header of HTTP Basic authentication."""
    return "Authorization: Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()


@pytest.fixture
def locked() -> OpenSite:
    """The listeners with passwords."""
    return OpenSite(ui_password="ann:secret bob:other", smtp_password="ann:mail")


def test_a_password_admits_clients_from_everywhere(locked: OpenSite) -> None:
    """With the right user and password, the address and the name do not matter."""
    for user, password in (("ann", "secret"), ("bob", "other")):
        sent = basic(user, password)
        assert get(locked, sent, host="mail.example", peer=STRANGER) == 200
        assert get(locked, sent) == 200


@rows("", basic("ann", "other"), basic("ann", ""), "Authorization: Basic !")
def test_a_wrong_password_is_rejected(locked: OpenSite, header: str) -> None:
    """The answer names the scheme, also for a client of this machine."""
    line = f"{header}\n" if header else ""
    answer = locked.raw_http(f"GET /api/v1/info HTTP/1.1\nHost: localhost\n{line}\n")
    assert (answer.status, answer.headers["www-authenticate"][:5]) == (401, "Basic")


def test_health_checks_need_no_password(locked: OpenSite) -> None:
    """The checks of containers have none; other pages of a browser are still rejected."""
    for path in ("/livez", "/readyz"):
        assert locked.raw_http(f"GET {path} HTTP/1.1\nHost: localhost\n\n").status == 200
        lines = "Host: localhost\nOrigin: https://evil.example\n"
        assert locked.raw_http(f"GET {path} HTTP/1.1\n{lines}\n").status == 403


def test_guessing_passwords_is_limited(locked: OpenSite) -> None:
    """An address may send 60 wrong passwords a minute."""
    statuses = [get(locked, basic("ann", str(one)), peer=STRANGER) for one in range(61)]
    assert (statuses[0], statuses[-1]) == (401, 429)


def test_a_password_does_not_admit_pages_of_other_sites(locked: OpenSite) -> None:
    """A browser that remembers the password sends it for every page."""
    assert get(locked, basic("ann", "secret"), "Origin: https://attacker.example") == 403


def test_mail_needs_the_password(locked: OpenSite) -> None:
    """Without the right user and password, mail is rejected."""
    said = locked.talk(b"EHLO x", b"MAIL FROM:<a@b.example>")
    assert "530" in said
    wrong, right = (base64.b64encode(f"\0ann\0{one}".encode()) for one in ("secret", "mail"))
    assert "535" in locked.talk(b"EHLO x", b"AUTH PLAIN " + wrong)
    assert "235" in locked.talk(b"EHLO x", b"AUTH PLAIN " + right)


def test_any_password_is_accepted_without_one(site: OpenSite) -> None:
    """Programs that always authenticate can send."""
    said = site.talk(
        b"EHLO x", b"AUTH PLAIN AGEAYg==", b"MAIL FROM:<a@b.example>", b"RCPT TO:<c@d.example>"
    )
    assert "235" in said
    assert said.splitlines()[-1].startswith("250")


def test_a_web_root() -> None:
    """All routes are below it, links include it, and the root has no route."""
    site = OpenSite(web_root="/mail/pit")
    site.send(raw=RICH)
    found = site.get("/mail/pit/api/v1/messages").json["messages"]
    page = f"/mail/pit/view/{found[0]['ID']}"
    led = site.ask("GET", page).answer()
    assert led.headers["location"] == f"{site.url}{page}.html"
    assert site.get(f"{page}.html").status == 200
    assert site.get("/mail/pit/api/v2/messages").json["total"] == 1
    large = {
        "Text": "x" * 2_000_000,
        "From": {"Email": "a@b.example"},
        "To": [{"Email": "c@d.example"}],
    }
    assert site.ask("POST", "/mail/pit/api/v1/send", json=large).answer().status == 200
    assert site.get("/api/v1/messages").status == 404


def test_the_inbox_is_that_of_the_project() -> None:
    """Mail goes to the named account, and no other account sees it."""
    site = OpenSite(project="second")
    answer = site.get("/api/v1/messages")
    assert (answer.status, b"'second'" in answer.body) == (503, True)
    assert "451" in site.talk(b"EHLO x", b"MAIL FROM:<a@b.example>", b"RCPT TO:<c@d.example>")
    second = site.house.add_account("second")
    assert site.send(raw=mail()).startswith("250")
    assert site.get("/api/v1/messages").json["total"] == 1
    assert site.house.get("/inbox/messages").json["messages"] == []
    caller = run(site.house.assembly.accounts.authenticator.identify(site.house.issue_key(second)))
    assert run(site.house.assembly.inbox.read.state(caller.account_id)).message_count == 1

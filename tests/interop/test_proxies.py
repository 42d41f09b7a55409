"""Behind a real HAProxy and a real Postfix the daemon knows the address of the real client.

Roles are distinguished by loopback addresses: clients and proxies connect from addresses of their
own in 127.0.0.0/8, and only those of the proxies are configured.
"""

import contextlib
import smtplib
import socket
import subprocess
from collections.abc import Callable, Iterator
from http.client import HTTPConnection
from typing import Any
from urllib.parse import urlsplit

import pytest

from tests.servers.daemon import ANSWER_DEADLINE, API, HOST, Answer, Daemon, Pending, running_daemon
from tests.servers.haproxy import HaProxy, running_haproxy
from tests.servers.name_server import has_address
from tests.servers.postfix import Postfix, running_postfix
from tests.servers.programs import find_program

pytestmark = pytest.mark.end_to_end

LAPTOP, PHONE, TABLET = (f"127.0.0.{number}" for number in range(2, 5))
HAPROXY, POSTFIX, WEB_PROXY = (f"127.0.0.{number}" for number in range(7, 10))
OUTSIDE = "203.0.113.9"

DOMAIN = "mailcheck.example"
BUDGET = 60  # requests without a key in a minute

MAIL = "From: shop@example.com\r\nSubject: Welcome\r\n\r\nYour code is 482913\r\n"


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    """A daemon that trusts one HAProxy, one Postfix and one web proxy."""
    if not has_address(LAPTOP):
        pytest.skip(f"{LAPTOP} is not an address of this machine: sudo ifconfig lo0 alias {LAPTOP}")
    with running_daemon(
        tmp_path_factory.mktemp("daemon"),
        inbox_domain=DOMAIN,
        smtp_proxy_protocol_from=HAPROXY,
        smtp_xclient_from=POSTFIX,
        web_trusted_proxies=WEB_PROXY,
    ) as daemon:
        yield daemon


@pytest.fixture(scope="module")
def haproxy(daemon: Daemon) -> Iterator[HaProxy]:
    """HAProxy for mail with both protocol versions, and for requests.

    The port ``outer`` is behind another proxy in turn, which names a remote client.
    """
    mail = f"{HOST}:{daemon.smtp_port}"
    behind_another = "tcp-request connection expect-proxy layer4"
    sections = {
        "v1": f"server daemon {mail} source {HAPROXY} send-proxy",
        "v2": f"server daemon {mail} source {HAPROXY} send-proxy-v2",
        "v2-more": (
            f"server daemon {mail} source {HAPROXY} send-proxy-v2"
            " proxy-v2-options crc32c,unique-id,authority"
        ),
        "checked": (
            "option smtpchk EHLO haproxy.example\noption log-health-checks\n"
            # Without a time-out of its own, a check may take as long as the interval only.
            "timeout check 20s\n"
            f"server daemon {mail} source {HAPROXY} send-proxy-v2 check inter 1s"
        ),
        "outer": f"{behind_another}\nserver daemon {mail} source {HAPROXY} send-proxy-v2",
        "web": (
            "mode http\noption forwardfor\nhttp-request set-header X-Forwarded-Proto https\n"
            f"server daemon {HOST}:{daemon.http_port} source {WEB_PROXY}"
        ),
    }
    with running_haproxy(sections) as haproxy:
        yield haproxy


@pytest.fixture(scope="module")
def postfix(daemon: Daemon) -> Iterator[Postfix]:
    """Postfix, which relays mail from a listed address."""
    with running_postfix(daemon.smtp_port, {DOMAIN: POSTFIX}) as postfix:
        yield postfix


def connect(port: int, client_ip: str, helo: str = "laptop.example") -> smtplib.SMTP:
    """Connect to a mail port from an address."""
    return smtplib.SMTP(HOST, port, helo, ANSWER_DEADLINE, (client_ip, 0))


def send(client: smtplib.SMTP, recipient: str, sender: str = "shop@example.com") -> None:
    """Send a mail."""
    client.sendmail(sender, [recipient], MAIL)


def arrived(daemon: Daemon, recipient: str) -> Any:
    """Wait for the mail to a recipient, and return it."""
    answer = daemon.get("/inbox/wait", to=recipient, after="c0", timeout=40)
    assert answer.status == 200, answer.body
    return answer.json


def sender_of(daemon: Daemon, recipient: str) -> tuple[str, str]:
    """Wait for the mail to a recipient, and return its client's address and HELO name."""
    envelope = arrived(daemon, recipient)["envelope"]
    return envelope["clientAddress"], envelope["helo"]


def header_of(client_ip: str) -> bytes:
    """Return the PROXY header with which a proxy names its client (version 1)."""
    family, us = ("TCP6", "::1") if ":" in client_ip else ("TCP4", HOST)
    return f"PROXY {family} {client_ip} {us} 40000 25\r\n".encode()


def talk(port: int, data: bytes, source: str = HOST) -> bytes:
    """Send all bytes, and return the replies until the connection is closed."""
    with socket.create_connection((HOST, port), ANSWER_DEADLINE, (source, 0)) as connection:
        connection.sendall(data)
        heard = b""
        with contextlib.suppress(ConnectionResetError):
            while more := connection.recv(65_536):
                heard += more
        return heard


def run_swaks(port: int, recipient: str, *options: str) -> "subprocess.CompletedProcess[str]":
    """Send a mail with swaks."""
    command = [find_program("swaks"), "--server", HOST, "--port", str(port), "--to", recipient]
    command += ["--from", "shop@example.com", "--helo", "laptop.example", *options]
    return subprocess.run(command, capture_output=True, text=True, timeout=60)


# Mail through HAProxy.


@pytest.mark.parametrize("way", ["v1", "v2", "v2-more"])
def test_mail_through_haproxy_has_its_true_client(
    way: str, daemon: Daemon, haproxy: HaProxy
) -> None:
    """The message shows the client of HAProxy, with both versions, for each of its clients."""
    for client_ip, helo in ((LAPTOP, "laptop.example"), (PHONE, "phone.example")):
        recipient = daemon.address(f"{way}-{helo[:5]}")
        with connect(haproxy.ports[way], client_ip, helo) as client:
            send(client, recipient)
        assert sender_of(daemon, recipient) == (client_ip, helo)


def test_health_checks_of_haproxy_succeed(haproxy: HaProxy) -> None:
    """The daemon passes the health checks of HAProxy, whose header names no client."""
    haproxy.when_logged("Health check for server checked/daemon succeeded")
    assert "DOWN" not in haproxy.log()


def test_a_mail_server_from_outside_gets_tls_through_haproxy(
    daemon: Daemon, haproxy: HaProxy
) -> None:
    """TLS starts after the PROXY header, and is offered as without HAProxy."""
    recipient = daemon.address("tls")
    header = header_of(OUTSIDE).decode().strip().removeprefix("PROXY ")
    done = run_swaks(haproxy.ports["outer"], recipient, "--proxy", header, "--tls")
    if "requires Net::SSLeay" in done.stderr:
        pytest.skip("swaks was built without TLS: apt-get install libio-socket-ssl-perl")
    assert done.returncode == 0, done.stdout + done.stderr
    assert sender_of(daemon, recipient) == (OUTSIDE, "laptop.example")
    assert arrived(daemon, recipient)["envelope"]["tls"] is not None
    greeting = talk(haproxy.ports["outer"], header_of(LAPTOP) + b"EHLO x\r\nQUIT\r\n")
    assert b"250" in greeting
    assert b"STARTTLS" not in greeting


# XCLIENT and XFORWARD.


@pytest.mark.parametrize("way", ["direct", "v2"])
def test_a_listed_host_names_its_client_by_xclient(
    way: str, daemon: Daemon, haproxy: HaProxy
) -> None:
    """XCLIENT of a listed host is accepted, also when that host is behind HAProxy."""
    recipient = daemon.address(f"named-{way}")
    done = run_swaks(
        {"direct": daemon.smtp_port, **haproxy.ports}[way],
        recipient,
        *("--local-interface", POSTFIX, "--xclient-addr", OUTSIDE),
        *("--xclient-helo", "mx.example", "--xclient-name", "mx.example"),
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert sender_of(daemon, recipient) == (OUTSIDE, "mx.example")


# Mail through Postfix.


def test_mail_through_postfix_has_its_true_client(daemon: Daemon, postfix: Postfix) -> None:
    """Each message shows the client of Postfix, though one connection carries several messages."""
    clients = [(LAPTOP, "laptop.example"), (PHONE, "phone.example"), (TABLET, "tablet.example")]
    for round_ in ("first", "second"):
        for client_ip, helo in clients:
            recipient = daemon.address(f"{round_}-{helo}")
            with connect(postfix.port, client_ip, helo) as client:
                send(client, recipient)
            assert sender_of(daemon, recipient) == (client_ip, helo)
    # Postfix keeps a connection for a moment; under load the next mail may be sent before.
    assert "conn_use=" in postfix.log(), "no connection was reused"


def test_an_unknown_recipient_bounces_at_postfix(daemon: Daemon, postfix: Postfix) -> None:
    """The sender gets Postfix's report with our reply, and the report is Postfix's own mail."""
    sender = daemon.address("bounces")
    with connect(postfix.port, LAPTOP) as client:
        send(client, f"dev-nobody@{DOMAIN}", sender)
    report = arrived(daemon, sender)
    assert "550 5.1.1 no inbox has the address" in " ".join(report["text"].split())
    assert report["envelope"]["mailFrom"] == ""
    assert report["envelope"]["clientAddress"] == POSTFIX


# Requests through HAProxy.


def begin(port: int, client_ip: str, path: str, **headers: str) -> Pending:
    """Send a request from an address; an underscore in a header's name stands for a hyphen."""
    connection = HTTPConnection(HOST, port, ANSWER_DEADLINE, (client_ip, 0))
    fields = {name.replace("_", "-"): value for name, value in headers.items()}
    connection.request("GET", path, headers=fields)
    return Pending("GET", path, connection)


def ask(port: int, client_ip: str, path: str = f"{API}/inbox", **headers: str) -> Answer:
    """Send a request from an address, and return its response."""
    return begin(port, client_ip, path, **headers).answer()


def is_spent(ask_once: Callable[[int], Answer]) -> bool:
    """Send requests without a key until the limit is exceeded; a new minute may begin meanwhile."""
    return any(ask_once(number).status == 429 for number in range(2 * BUDGET + 1))


def test_requests_are_counted_by_true_client(daemon: Daemon, haproxy: HaProxy) -> None:
    """A client behind HAProxy that guesses keys uses its own budget, and not that of others."""
    assert is_spent(lambda _: ask(haproxy.ports["web"], LAPTOP))
    neighbour = ask(haproxy.ports["web"], PHONE)
    assert neighbour.status == 401
    assert neighbour.headers["x-ratelimit-remaining"] == str(BUDGET - 1)


def test_links_lead_back_through_haproxy(daemon: Daemon, haproxy: HaProxy) -> None:
    """Links have the scheme and name of the client's request, and work there."""
    port = haproxy.ports["web"]
    path = f"{API}/inbox/wait?tag=links&after=c0"
    waiting = begin(port, LAPTOP, path, X_API_Key=daemon.key)
    with connect(haproxy.ports["v2"], LAPTOP) as client:
        send(client, daemon.address("links"))
    message = waiting.answer().json
    link = message["shareUrl"]
    assert link.startswith(f"https://{HOST}:{port}/share/")
    opened = ask(port, PHONE, urlsplit(link).path, Host="mail.example")
    assert opened.json["id"] == message["id"]
    assert opened.json["shareUrl"].startswith("https://mail.example/share/")

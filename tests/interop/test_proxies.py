"""Behind a real HAProxy and a real Postfix the daemon knows the address of the real client.

Roles are distinguished by loopback addresses: clients and proxies connect from addresses of their
own in 127.0.0.0/8, and only those of the proxies are configured.
"""

import contextlib
import smtplib
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from http.client import HTTPConnection
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from tests.servers.daemon import ANSWER_DEADLINE, API, HOST, Answer, Daemon, Pending, running_daemon
from tests.servers.haproxy import HaProxy, running_haproxy
from tests.servers.name_server import has_address
from tests.servers.postfix import Postfix, running_postfix
from tests.servers.programs import find_program

pytestmark = pytest.mark.end_to_end

LAPTOP, PHONE, TABLET, WATCH, CAMERA = (f"127.0.0.{number}" for number in range(2, 7))
HAPROXY, POSTFIX, WEB_PROXY, STRANGER = (f"127.0.0.{number}" for number in range(7, 11))
OUTSIDE, CROWD, ELSEWHERE = "203.0.113.9", "203.0.113.10", "203.0.113.11"
OUTSIDE_6 = "2606:2800:220:1::1"

DOMAIN, ALIAS = "mailcheck.example", "alias.example"
CONNECTIONS = 3  # of one public address
BUDGET = 60  # requests without a key in a minute

MAIL = "From: shop@example.com\r\nSubject: Welcome\r\n\r\nYour code is 482913\r\n"
BINARY_HEADER = (
    b"\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0c"
    + socket.inet_aton(OUTSIDE)
    + socket.inet_aton(HOST)
    + b"\x9c\x40\0\x19"
)


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    """A daemon that trusts one HAProxy, one Postfix and one web proxy."""
    if not has_address(LAPTOP):
        pytest.skip(f"{LAPTOP} is not an address of this machine: sudo ifconfig lo0 alias {LAPTOP}")
    with running_daemon(
        tmp_path_factory.mktemp("daemon"),
        inbox_domain=DOMAIN,
        inbox_aliases=ALIAS,
        smtp_proxy_protocol_from=HAPROXY,
        smtp_xclient_from=POSTFIX,
        smtp_max_connections_per_address=CONNECTIONS,
        web_trusted_proxies=WEB_PROXY,
    ) as daemon:
        yield daemon


@pytest.fixture(scope="module")
def haproxy(daemon: Daemon) -> Iterator[HaProxy]:
    """HAProxy for mail with both protocol versions, from an unlisted address, and for requests.

    The ports ``outer`` and ``submission`` are behind another proxy in turn, which names a remote
    client.
    """
    mail, submission = f"{HOST}:{daemon.smtp_port}", f"{HOST}:{daemon.submission_port}"
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
        "unlisted": f"server daemon {mail} source {STRANGER} send-proxy",
        "outer": f"{behind_another}\nserver daemon {mail} source {HAPROXY} send-proxy-v2",
        "submission": f"{behind_another}\nserver daemon {submission} source {HAPROXY} send-proxy",
        "web": (
            "mode http\noption forwardfor\nhttp-request set-header X-Forwarded-Proto https\n"
            f"server daemon {HOST}:{daemon.http_port} source {WEB_PROXY}"
        ),
    }
    with running_haproxy(sections) as haproxy:
        yield haproxy


@pytest.fixture(scope="module")
def postfix(daemon: Daemon) -> Iterator[Postfix]:
    """Postfix, which relays mail for the alias from an unlisted address."""
    with running_postfix(daemon.smtp_port, {DOMAIN: POSTFIX, ALIAS: STRANGER}) as postfix:
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


def test_an_ipv6_client_through_haproxy(daemon: Daemon, haproxy: HaProxy) -> None:
    """An IPv6 client keeps its address, and the data after the header is read."""
    recipient = daemon.address("six")
    conversation = (
        f"EHLO six.example\r\nMAIL FROM:<shop@example.com>\r\nRCPT TO:<{recipient}>\r\n"
        f"BDAT {len(MAIL)} LAST\r\n{MAIL}QUIT\r\n"
    )
    heard = talk(haproxy.ports["outer"], header_of(OUTSIDE_6) + conversation.encode())
    assert b"\r\n221 " in heard
    assert sender_of(daemon, recipient) == (OUTSIDE_6, "six.example")


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


def test_haproxy_makes_nobody_a_neighbour(daemon: Daemon, haproxy: HaProxy) -> None:
    """A remote client needs TLS to send a key, even if HAProxy is on a private address."""
    ehlo = b"EHLO x\r\nQUIT\r\n"
    near, far = (
        talk(haproxy.ports["submission"], header_of(client_ip) + ehlo)
        for client_ip in (LAPTOP, OUTSIDE)
    )
    assert b"AUTH PLAIN" in near
    assert b"250" in far
    assert b"AUTH PLAIN" not in far


def test_connections_are_counted_by_true_client(daemon: Daemon, haproxy: HaProxy) -> None:
    """A client that opens too many connections is rejected, and other clients are not."""
    with contextlib.ExitStack() as stack:

        def greeting(client_ip: str) -> bytes:
            connection = socket.create_connection((HOST, haproxy.ports["outer"]), ANSWER_DEADLINE)
            stack.enter_context(connection)
            connection.sendall(header_of(client_ip))
            return connection.recv(512)[:3]

        assert [greeting(CROWD) for _ in range(CONNECTIONS + 1)] == [b"220"] * 3 + [b"421"]
        assert greeting(ELSEWHERE) == b"220"


def test_a_listed_proxy_must_say_for_whom_it_speaks(daemon: Daemon) -> None:
    """A listed host that sends no PROXY header gets no reply."""
    heard = talk(daemon.smtp_port, b"EHLO laptop.example\r\n", HAPROXY)
    assert heard == b""


def test_a_haproxy_that_is_not_listed_is_not_believed(daemon: Daemon, haproxy: HaProxy) -> None:
    """Its header is rejected as an unknown command, and its mail has its own address."""
    recipient = daemon.address("unlisted")
    with connect(haproxy.ports["unlisted"], LAPTOP) as client:
        assert client.getreply()[0] == 500
        send(client, recipient)
    assert sender_of(daemon, recipient)[0] == STRANGER


@pytest.mark.parametrize(("way", "client_ip"), [("direct", STRANGER), ("v2", LAPTOP)])
def test_a_client_with_a_header_of_its_own_is_not_believed(
    way: str, client_ip: str, daemon: Daemon, haproxy: HaProxy
) -> None:
    """A client's own PROXY header, through HAProxy or directly, is rejected without effect."""
    recipient = daemon.address(f"forged-{way}")
    with connect({"direct": daemon.smtp_port, **haproxy.ports}[way], client_ip) as client:
        assert client.docmd(header_of(OUTSIDE).decode().strip())[0] == 500
        send(client, recipient)
    assert sender_of(daemon, recipient)[0] == client_ip


@pytest.mark.parametrize(("way", "client_ip"), [("direct", STRANGER), ("v2", LAPTOP)])
def test_a_client_with_a_binary_header_is_hung_up_on(
    way: str, client_ip: str, daemon: Daemon, haproxy: HaProxy
) -> None:
    """Version 2 from an unlisted host is not an SMTP command, and the rest is not executed."""
    port = {"direct": daemon.smtp_port, **haproxy.ports}[way]
    heard = talk(port, BINARY_HEADER + b"EHLO laptop.example\r\n", client_ip)
    assert heard.startswith(b"220 ")
    assert b"500" in heard
    assert b"250" not in heard


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


@pytest.mark.parametrize("verb", ["XCLIENT", "XFORWARD"])
@pytest.mark.parametrize(("way", "client_ip"), [("direct", STRANGER), ("v1", LAPTOP)])
def test_anyone_else_speaks_for_nobody(
    verb: str, way: str, client_ip: str, daemon: Daemon, haproxy: HaProxy
) -> None:
    """Unlisted hosts are not offered these commands, and their attempts are rejected."""
    recipient = daemon.address(f"{verb}-{way}")
    with connect({"direct": daemon.smtp_port, **haproxy.ports}[way], client_ip) as client:
        client.ehlo()
        assert not {"xclient", "xforward"} & set(client.esmtp_features)
        assert client.docmd(verb, f"ADDR={OUTSIDE} NAME=mx.example HELO=mx.example")[0] == 550
        send(client, recipient)
    assert sender_of(daemon, recipient) == (client_ip, "laptop.example")


def test_swaks_from_anywhere_else_gives_up(daemon: Daemon) -> None:
    """A client that requires XCLIENT finds that it is not offered."""
    options = ("--local-interface", STRANGER, "--xclient-addr", OUTSIDE)
    done = run_swaks(daemon.smtp_port, daemon.address("insists"), *options)
    assert done.returncode != 0
    assert "XCLIENT" in done.stdout + done.stderr
    assert daemon.get("/inbox/messages", tag="insists").json["total"] == 0


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


def test_a_postfix_that_is_not_listed_speaks_for_nobody(daemon: Daemon, postfix: Postfix) -> None:
    """Without XFORWARD the mail has the address of Postfix itself."""
    recipient = daemon.address("unlisted-postfix").replace(DOMAIN, ALIAS)
    with connect(postfix.port, LAPTOP) as client:
        send(client, recipient)
    assert sender_of(daemon, recipient) == (STRANGER, "relay.example")


def test_an_unknown_recipient_bounces_at_postfix(daemon: Daemon, postfix: Postfix) -> None:
    """The sender gets Postfix's report with our reply, and the report is Postfix's own mail."""
    sender = daemon.address("bounces")
    with connect(postfix.port, LAPTOP) as client:
        send(client, f"dev-nobody@{DOMAIN}", sender)
    report = arrived(daemon, sender)
    assert "550 5.1.1 no inbox has the address" in " ".join(report["text"].split())
    assert report["envelope"]["mailFrom"] == ""
    assert report["envelope"]["clientAddress"] == POSTFIX


def test_mail_for_a_full_inbox_waits_at_postfix(daemon: Daemon, postfix: Postfix) -> None:
    """Mail over the quota is deferred, and delivered when there is room again."""
    recipient = run_mailcheck(daemon, "account", "add", "small", "--max-messages", "1")
    key = {"X-API-Key": run_mailcheck(daemon, "key", "issue", "small")}
    path = "/inbox/wait?after=c0&timeout=20"
    with connect(postfix.port, LAPTOP, "laptop.example") as client:
        send(client, recipient)
        first = daemon.request("GET", path, key).json
        send(client, recipient)
    assert "said: 452 4.2.2" in " ".join(postfix.when_deferred(recipient).split())
    assert daemon.request("GET", "/inbox", key).json["total"] == 1
    deleted = daemon.request("DELETE", f"/inbox/messages/{first['id']}", key)
    assert deleted.status == 200
    postfix.flush()
    second = daemon.request("GET", path, key).json
    assert second["id"] != first["id"]
    assert second["envelope"]["clientAddress"] == LAPTOP


def run_mailcheck(daemon: Daemon, *arguments: str) -> str:
    """Run the command line beside the daemon, and return the first line of its output."""
    program = Path(sys.executable).with_name("mailcheck")
    done = subprocess.run(
        [program, *arguments],
        cwd=daemon.folder,
        env=daemon.environment,
        check=True,
        capture_output=True,
        text=True,
        timeout=60,
    )
    return done.stdout.splitlines()[0]


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


@pytest.mark.parametrize(
    ("way", "client_ip", "victim"), [("web", TABLET, WATCH), ("direct", STRANGER, CAMERA)]
)
def test_nobody_escapes_by_making_addresses_up(
    way: str, client_ip: str, victim: str, daemon: Daemon, haproxy: HaProxy
) -> None:
    """A client's own X-Forwarded-For, through HAProxy or directly, changes no budget."""
    port = {"direct": daemon.http_port, **haproxy.ports}[way]
    assert is_spent(lambda number: ask(port, client_ip, X_Forwarded_For=f"198.51.100.{number}"))
    ask(port, client_ip, X_Forwarded_For=victim)
    answer = ask(daemon.http_port, victim)
    assert answer.status == 401
    assert answer.headers["x-ratelimit-remaining"] == str(BUDGET - 1)


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


def test_no_links_by_the_word_of_anyone_else(daemon: Daemon) -> None:
    """Scheme and name from a host that is not a trusted proxy do not change the links."""
    with connect(daemon.smtp_port, LAPTOP) as client:
        send(client, daemon.address("ours"))
    arrived(daemon, daemon.address("ours"))
    listed = ask(
        daemon.http_port,
        STRANGER,
        f"{API}/inbox/messages?tag=ours",
        X_API_Key=daemon.key,
        X_Forwarded_Proto="https",
        Host="evil.example",
    )
    ours = f"http://{HOST}:{daemon.http_port}/share/"
    assert listed.json["messages"][0]["shareUrl"].startswith(ours)

"""Mails to applications on this machine, over real connections, and targets that get none."""

import socket
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from pytest_twisted import async_yield_fixture
from twisted.internet.task import deferLater
from twisted.internet.threads import deferToThread

from mailcheck.core.errors import InvalidParameter
from mailcheck.core.inbound import ANSWER_KEPT, InboundFormat, InboundRequest
from mailcheck.ports.probes import InboundAnswer
from mailcheck.probes.inbound_sender import CUT_OFF, FOREIGN, ApplicationSender
from mailcheck.probes.trust import TrustRoots
from tests.engines.deliveries import inbound_mail, inbound_route
from tests.probes.test_probes_webhooks_loopback import posts
from tests.servers.http_stub import QuietHandler
from tests.servers.mail_relay import running_relay
from tests.table import rows

BODY = bytes(range(256)) * 20


def sender(**rules: Any) -> ApplicationSender:
    """Return the sender of the account "ann", which may send to this machine."""
    from twisted.internet import reactor

    anything: Any = reactor
    return ApplicationSender(anything, posts(**rules), TrustRoots(()), "here.example")


def request(url: str, body: bytes = BODY) -> InboundRequest:
    """Return a request with a repeated header."""
    headers = (("Content-Type", "application/x-test"), ("X-A", "1"), ("X-A", "ü"))
    return InboundRequest(url, headers, body)


@async_yield_fixture(autouse=True)
async def _closed() -> AsyncIterator[None]:
    from twisted.internet import reactor

    yield
    await deferLater(reactor, 0.02)


@contextmanager
def application() -> Iterator[tuple[str, list[tuple[Any, bytes]]]]:
    """Yield the URL of an application, and the headers and bodies that it gets."""
    got: list[tuple[Any, bytes]] = []

    class Handler(QuietHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            """Answer as the path says."""
            body = self.rfile.read(int(self.headers["Content-Length"]))
            got.append((self.headers, body))
            answer = b"x" * 200_000 if self.path == "/long" else b"taken"
            self.send_response(303 if self.path == "/303" else 202)
            self.send_header("Content-Length", str(len(answer)))
            self.send_header("Location", "http://127.0.0.1:1/")
            self.send_header("X-B", "2")
            self.end_headers()
            self.wfile.write(answer)

    handler: type[BaseHTTPRequestHandler] = Handler
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", got
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


async def test_a_request_arrives_as_it_is() -> None:
    """The application gets the headers and the body, and its answer is the result."""
    with application() as (url, got):
        answer = await sender().post_inbound("ann", request(f"{url}/in"), 60, is_cut_off=False)
        moved = await sender().post_inbound("ann", request(f"{url}/303"), 60, is_cut_off=False)
    (headers, body), _ = got
    assert body == BODY
    assert headers["Content-Type"] == "application/x-test"
    assert [one.encode("latin-1").decode() for one in headers.get_all("X-A")] == ["1", "ü"]
    assert (answer.status, answer.body, answer.problem) == (202, b"taken", "")
    assert ("X-B", "2") in answer.headers
    assert (moved.status, len(got)) == (303, 2)


async def test_the_beginning_of_a_long_answer_is_kept() -> None:
    """A long answer is an answer: its status counts, and its beginning is kept."""
    with application() as (url, _):
        answer = await sender().post_inbound("ann", request(f"{url}/long"), 60, is_cut_off=False)
    assert (answer.status, answer.body) == (202, b"x" * ANSWER_KEPT)


async def test_a_cut_off_body_is_incomplete() -> None:
    """The application gets less than Content-Length announces."""
    listener = socket.create_server(("127.0.0.1", 0))
    received: list[bytes] = []

    def take() -> None:
        connection, _ = listener.accept()
        with connection, suppress(ConnectionResetError):
            while data := connection.recv(65_536):
                received.append(data)

    thread = threading.Thread(target=take)
    thread.start()
    url = f"http://127.0.0.1:{listener.getsockname()[1]}/"
    answer = await sender().post_inbound("ann", request(url), 60, is_cut_off=True)
    await deferToThread(thread.join)
    listener.close()
    head, _, body = b"".join(received).partition(b"\r\n\r\n")
    assert answer == InboundAnswer(problem=CUT_OFF)
    assert f"content-length: {len(BODY)}".encode() in head.lower()
    assert BODY.startswith(body)
    assert 0 < len(body) < len(BODY)


async def test_an_application_that_does_not_answer() -> None:
    """A refused connection and an answer that does not come are described."""
    listener = socket.create_server(("127.0.0.1", 0))
    url = f"http://127.0.0.1:{listener.getsockname()[1]}/"
    late = await sender().post_inbound("ann", request(url), 0.05, is_cut_off=False)
    listener.close()
    refused = await sender().post_inbound("ann", request(url), 60, is_cut_off=False)
    assert late == InboundAnswer(problem="no answer within 0.05 seconds")
    assert refused == InboundAnswer(problem="its host refuses connections")


async def test_only_allowed_networks_are_contacted() -> None:
    """An account without the operator's permission reaches no address of this machine."""
    with application() as (url, got):
        refused = sender(allowed=())
        answer = await refused.post_inbound("ann", request(url), 60, is_cut_off=False)
        with running_relay() as server:
            route = inbound_route(
                "one", format=InboundFormat.SMTP, url=f"smtp://localhost:{server.port}"
            )
            mailed = await refused.mail_inbound(route, inbound_mail("a"), 60, is_cut_off=False)
        own = sender(own_ports=frozenset({int(url.rpartition(":")[2])}))
        to_itself = await own.post_inbound("ann", request(url), 60, is_cut_off=False)
    assert (got, server.taken) == ([], [])
    assert "not allowed" in answer.problem
    assert "not allowed" in mailed.problem
    assert "a port of this service" in to_itself.problem
    with pytest.raises(InvalidParameter):
        refused.posts.require_allowed("smtp://127.0.0.1:25", "ann")


async def test_mail_does_not_go_to_the_mail_server_of_strangers() -> None:
    """A public server at port 25 takes mail for its users from anybody, so the operator decides."""
    to_anybody = inbound_route("one", format=InboundFormat.SMTP, url="smtp://8.8.8.8")
    answer = await sender(allowed=()).mail_inbound(
        to_anybody, inbound_mail("a"), 0.2, is_cut_off=False
    )
    assert answer == InboundAnswer(problem=FOREIGN)


async def test_a_mail_arrives_over_smtp() -> None:
    """The server of the application gets the mail byte for byte, with its envelope."""
    mail = inbound_mail("a", envelope_sender="", recipients=("a@app.test", "b@app.test"))
    with running_relay() as server:
        url = f"smtp://127.0.0.1:{server.port}"
        route = inbound_route("one", format=InboundFormat.SMTP, url=url)
        answer = await sender().mail_inbound(route, mail, 60, is_cut_off=False)
        cut = await sender().mail_inbound(route, mail, 60, is_cut_off=True)
    taken, part = server.taken  # this server takes the end of a connection for that of a mail
    assert (taken.raw, taken.sender, taken.recipients) == (
        mail.raw_message,
        "",
        ("a@app.test", "b@app.test"),
    )
    assert (answer.status, answer.problem) == (250, "")
    assert answer.body == b"a@app.test: 250 ok\nb@app.test: 250 ok"
    assert cut == InboundAnswer(problem=CUT_OFF)
    assert len(part.raw) < len(mail.raw_message)


@rows("ü@x.example", "a b@x.example", "a@x.example> X=Y")
async def test_an_address_that_smtp_cannot_carry(address: str) -> None:
    """The mail is not sent, and the attempt says why: it must not be tried for ever."""
    with running_relay() as server:
        url = f"smtp://127.0.0.1:{server.port}"
        route = inbound_route("one", format=InboundFormat.SMTP, url=url)
        for envelope_sender, recipient in ((address, "a@app.test"), ("", address)):
            mail = inbound_mail("a", envelope_sender=envelope_sender, recipients=(recipient,))
            answer = await sender().mail_inbound(route, mail, 60, is_cut_off=False)
            assert "address of the envelope" in answer.problem
    assert server.taken == []

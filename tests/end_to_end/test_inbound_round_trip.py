"""Mail into an application of a real daemon: the round trip of a ticket system, and a kill."""

import json
import smtplib
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from standardwebhooks import Webhook

from tests.servers.daemon import HOST, Daemon, free_ports, running_daemon
from tests.servers.http_stub import QuietHandler

pytestmark = pytest.mark.end_to_end

PATIENCE = 60.0  # seconds, on a busy machine


class TicketSystem:
    """An application that receives mail, verifies its signature, and answers the author."""

    def __init__(self, daemon: Daemon) -> None:
        self.daemon = daemon
        self.secret = ""
        self.taken: list[str] = []

    def receive(self, body: bytes, headers: Any) -> int:
        """Handle a request."""
        Webhook(self.secret).verify(body, dict(headers.items()))
        mail = json.loads(body)["data"]
        self.taken.append(mail["subject"])
        if mail["subject"].startswith("Re:"):
            return 200
        answer = (
            f"From: Support <support@shop.test>\r\nTo: {mail['envelope']['mailFrom']}\r\n"
            f"Subject: Re: {mail['subject']}\r\n\r\nWe look into it.\r\n"
        )
        with smtplib.SMTP(HOST, self.daemon.submission_port, timeout=PATIENCE) as smtp:
            smtp.login("developer", self.daemon.key)
            smtp.sendmail("support@shop.test", [mail["envelope"]["mailFrom"]], answer)
        return 200


@contextmanager
def running(system: TicketSystem, port: int) -> Iterator[None]:
    """Run the web server of the application."""

    class Handler(QuietHandler):
        def do_POST(self) -> None:
            """Take a mail."""
            body = self.rfile.read(int(self.headers["Content-Length"]))
            self.send_response(system.receive(body, self.headers))
            self.end_headers()

    server = ThreadingHTTPServer((HOST, port), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def post(daemon: Daemon, path: str, **body: Any) -> Any:
    """Post a JSON object, and return the answer."""
    answer = daemon.post(path, json.dumps(body).encode())
    assert answer.status == 200, answer
    return answer.json


def test_a_ticket_makes_its_round_trip_and_survives_a_kill(tmp_path: Path) -> None:
    """A mail reaches the application, whose answer is waited for; a mail outlives a kill."""
    (port,) = free_ports(1)
    allowed = ["developer=127.0.0.0/8"]
    with running_daemon(tmp_path, webhooks_allow=allowed) as daemon:
        system = TicketSystem(daemon)
        url = f"http://{HOST}:{port}/in"
        route = post(daemon, "/inbound/routes", to="support@*", format="mailcheck", url=url)
        system.secret = route["secret"]
        messages = f"/inbound/routes/{route['id']}/messages"
        with running(system, port):
            sent = post(
                daemon, messages, **{"from": "ana@customer.test"}, subject="Ticket", text="Help"
            )
            page = daemon.get(f"/inbound/attempts?mail={sent['id']}&wait=30").json
            assert page["delivered"] is True
            answer = daemon.get("/inbox/wait?to=ana@customer.test&after=c0&timeout=30").json
            assert answer["subject"] == "Re: Ticket"
        lost = post(daemon, messages, subject="Re: Second", text="While the application is down")
        daemon.kill()
        daemon.start()
        with running(system, port):
            page = daemon.get(f"/inbound/attempts?mail={lost['id']}&wait=60").json
        assert page["delivered"] is True
        assert page["deliveries"][0]["state"] == "delivered"
        assert system.taken == ["Ticket", "Re: Second"]

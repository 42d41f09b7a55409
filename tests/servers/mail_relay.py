"""An SMTP server that accepts any mail on a separate port, and stores it.

    with running_relay() as relay:
        ...  # f"127.0.0.1:{relay.port}"; relay.wait_for(3)

It sends ``replies`` for the commands in it ("RCPT": b"550 no"), and accepts all others. With a
certificate it offers STARTTLS, and AUTH after that.
"""

import base64
import socketserver
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from email import message_from_bytes
from email.message import EmailMessage
from email.policy import SMTP
from pathlib import Path
from typing import Any

from tests.servers.certificates import Issued

PATIENCE = 60.0  # seconds


@dataclass(frozen=True)
class Taken:
    """A mail with its envelope; ``login`` is the user name and password of the client."""

    sender: str
    recipient: str
    mail: EmailMessage
    is_encrypted: bool
    login: tuple[str, str] | None
    raw: bytes = b""
    recipients: tuple[str, ...] = ()
    mail_command: str = ""


@dataclass
class MailRelay:
    """The received mails, and the replies to send. ``offers`` are extensions for EHLO."""

    port: int = 0
    offers: tuple[bytes, ...] = ()
    tls: ssl.SSLContext | None = None
    replies: dict[str, bytes] = field(default_factory=dict)
    taken: list[Taken] = field(default_factory=list)
    _changed: threading.Condition = field(default_factory=threading.Condition)

    def add(self, one: Taken) -> None:
        """Store a mail."""
        with self._changed:
            self.taken.append(one)
            self._changed.notify_all()

    def wait_for(self, count: int) -> list[Taken]:
        """Wait until a number of mails has arrived."""
        with self._changed:
            assert self._changed.wait_for(lambda: len(self.taken) >= count, PATIENCE), self.taken
        return self.taken


class _Session:
    def __init__(self, relay: MailRelay, connection: Any) -> None:
        self.relay = relay
        self.connection = connection
        self.lines = connection.makefile("rb")
        self.sender = self.recipient = self.mail_command = ""
        self.recipients: list[str] = []
        self.is_encrypted = False
        self.login: tuple[str, str] | None = None

    def run(self) -> None:
        """Serve until the client disconnects."""
        self.say(b"220 relay.test")
        while line := self.lines.readline():
            verb, _, rest = line.decode().strip().partition(" ")
            replies = self.relay.replies
            reply = replies.get(line.decode().strip()) or replies.get(verb.upper())
            if reply is not None:
                self.say(reply)
            elif not self.handle(verb.upper(), rest):
                return

    def handle(self, verb: str, rest: str) -> bool:
        """Handle a command; return false after the last one."""
        if verb == "EHLO":
            self.say(*self.greeting())
        elif verb == "STARTTLS" and self.relay.tls is not None:
            self.say(b"220 go on")
            self.connection = self.relay.tls.wrap_socket(self.connection, server_side=True)
            self.lines, self.is_encrypted = self.connection.makefile("rb"), True
        elif verb == "AUTH":
            _, user, password = base64.b64decode(rest.split()[1]).decode().split("\0")
            self.login = (user, password)
            self.say(b"235 welcome")
        elif verb == "MAIL":
            self.sender = rest.partition("<")[2].partition(">")[0]
            self.recipients, self.mail_command = [], rest
            self.say(b"250 ok")
        elif verb == "RCPT":
            self.recipient = rest.partition("<")[2].partition(">")[0]
            self.recipients.append(self.recipient)
            self.say(b"250 ok")
        elif verb == "DATA":
            self.take()
        elif verb == "RSET":
            self.say(b"250 ok")
        else:
            self.say(b"221 bye" if verb == "QUIT" else b"502 what?")
        return verb != "QUIT"

    def greeting(self) -> list[bytes]:
        """Return the extensions."""
        lines = [b"relay.test", *self.relay.offers]
        if self.relay.tls is not None:
            lines.append(b"AUTH PLAIN" if self.is_encrypted else b"STARTTLS")
        return [*(b"250-" + one for one in lines[:-1]), b"250 " + lines[-1]]

    def take(self) -> None:
        """Receive a mail."""
        self.say(b"354 go on")
        lines = []
        while (line := self.lines.readline()) not in (b".\r\n", b""):
            lines.append(line.removeprefix(b".") if line.startswith(b"..") else line)
        raw = b"".join(lines)
        mail: Any = message_from_bytes(raw, policy=SMTP)
        envelope = self.sender, self.recipient
        more = tuple(self.recipients), self.mail_command
        self.relay.add(Taken(*envelope, mail, self.is_encrypted, self.login, raw, *more))
        self.say(b"250 taken")

    def say(self, *lines: bytes) -> None:
        """Send a reply."""
        self.connection.sendall(b"".join(line + b"\r\n" for line in lines))


@contextmanager
def running_relay(folder: Path | None = None, issued: Issued | None = None) -> Iterator[MailRelay]:
    """Run a relay; with a certificate, which is written to the folder, it offers STARTTLS."""
    relay = MailRelay()
    if folder is not None and issued is not None:
        relay.tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        relay.tls.load_cert_chain(*issued.write_to(folder, "relay"))

    class Handler(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            """Serve a client; ignore a lost connection."""
            self.request.settimeout(PATIENCE)
            session = _Session(relay, self.request)
            try:
                session.run()
            except OSError:
                pass
            finally:
                session.lines.close()
                session.connection.close()

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        relay.port = server.server_address[1]
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            yield relay
        finally:
            server.shutdown()
            thread.join()

"""The listeners of Mailpit's clients over a house, and mail to any recipient."""

from typing import Any

from msgspec.structs import replace
from twisted.internet.address import IPv4Address
from twisted.internet.testing import StringTransport

from mailcheck.assembly.doors.compatible import OpenListeners, build_open
from mailcheck.config.options import CompatibleOptions, MailpitOptions, ReleaseOptions
from mailcheck.connections.policies import offer_no_tls
from tests.house import Answer, House, config_in_memory
from tests.web.compatible.sites import Requests
from tests.web.raw_http import RawHttp, read_answer

TEXT = "Your code is 482913: https://example.com/confirm?t=7f3a"


class OpenSite(Requests):
    """A house with both listeners.

    :param hold: seconds for which a search that finds nothing is held.
    """

    def __init__(
        self, hold: float = 0.0, release: ReleaseOptions | None = None, **options: Any
    ) -> None:
        config = config_in_memory(
            mailpit=MailpitOptions(**options), release=release or ReleaseOptions()
        )
        house = House(replace(config, compatible=CompatibleOptions(hold=hold)))
        self.listeners: OpenListeners = build_open(house.assembly, offer_no_tls)
        super().__init__(house, self.listeners.site.resource)
        self.site = self.listeners.site

    def send(
        self, *recipients: str, raw: bytes | None = None, sender: str = "shop@example.com"
    ) -> str:
        """Send a mail to any recipients over SMTP; return the last reply."""
        to = recipients or ("jane@customer.example",)
        raw = mail(to=", ".join(to)) if raw is None else raw
        lines = [b"EHLO client", f"MAIL FROM:<{sender}>".encode()]
        lines += [f"RCPT TO:<{one}>".encode() for one in to]
        return str(self.talk(*lines, b"DATA", raw + b".", b"QUIT").split("\r\n")[-3])

    def talk(self, *lines: bytes, peer: str = "127.0.0.1") -> str:
        """Send lines to the SMTP listener, and return everything that it sends."""
        protocol = self.listeners.mail.buildProtocol(None)
        transport = StringTransport(peerAddress=_address(peer))
        protocol.makeConnection(transport)
        for line in lines:
            protocol.dataReceived(line + b"\r\n")
            self.house.clock.advance(0.1)
        return str(transport.value().decode())

    def raw_http(self, head: str, peer: str = "127.0.0.1") -> Answer:
        """Send a request as it is written, from any address, and return its answer."""
        connection = RawHttp(self, peer)
        connection.send(head.replace("\n", "\r\n").encode())
        return read_answer(connection.received(), head.partition(" ")[0])[0]


def _address(peer: str) -> Any:
    return IPv4Address("TCP", peer, 40_000)


def mail(
    subject: str = "Welcome",
    body: str = TEXT,
    to: str = "jane@customer.example",
    more: str = "",
) -> bytes:
    """Return an ordinary mail; ``more`` are further header fields."""
    return (
        f"From: Shop <shop@example.com>\r\nTo: {to}\r\nSubject: {subject}\r\n"
        f"Message-ID: <one@example.com>\r\nDate: Sat, 21 Nov 2026 10:00:00 +0100\r\n{more}"
        f"\r\n{body}\r\n"
    ).encode()


RICH = (
    b"From: =?utf-8?q?Sh=C3=B6p?= <shop@example.com>\r\nTo: Jane <jane@customer.example>\r\n"
    b"Cc: Boss <boss@customer.example>\r\nReply-To: help@example.com\r\n"
    b"Subject: =?utf-8?q?Invoice_=E2=82=AC?=\r\nMessage-ID: <rich@example.com>\r\n"
    b"Date: Sat, 21 Nov 2026 10:00:00 +0100\r\n"
    b"List-Unsubscribe: <https://example.com/leave>, <mailto:leave@example.com>\r\n"
    b"List-Unsubscribe-Post: List-Unsubscribe=One-Click\r\nMIME-Version: 1.0\r\n"
    b"Content-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\n"
    b"Content-Type: multipart/related; boundary=r\r\n\r\n--r\r\n"
    b"Content-Type: text/html; charset=utf-8\r\n\r\n"
    b'<p style="display:flex">Hi <img src="cid:logo"> <a href="https://example.com/a">a</a></p>'
    b"\r\n--r\r\nContent-Type: image/png\r\nContent-ID: <logo>\r\n"
    b"Content-Disposition: inline; filename=logo.png\r\nContent-Transfer-Encoding: base64\r\n\r\n"
    b"iVBORw0KGgo=\r\n--r--\r\n--b\r\nContent-Type: text/plain\r\n"
    b'Content-Disposition: attachment; filename="a.txt"\r\n'
    b"Content-Transfer-Encoding: base64\r\n\r\naGVsbG8=\r\n--b--\r\n"
)
"""A mail with HTML, an inline picture and an attachment."""

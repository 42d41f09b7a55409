"""What all ready-made mails are written from: an occasion, and the parts of a mail."""

import hashlib
from collections.abc import Sequence
from email.utils import formatdate

from msgspec import Struct

from mailcheck.checks.content.decoding import end_lines
from mailcheck.core.addresses import Mailbox
from mailcheck.core.instants import HOUR, SECOND, Instant
from mailcheck.operations.inbound.quoting import read_quoted
from mailcheck.operations.write_mail import OutgoingMail, Person, write_header, write_mail

SUBJECT = 2_000
"""Number of characters of the long subject."""

_ORDER = """\
Hello,

thank you for your order {order}. It leaves our house tomorrow.

Is the address right? Answer this mail if it is not.

Your shop
"""


_ORDER_HTML = """\
<!doctype html>
<html><body style="font-family: Arial, sans-serif">
<p>Hello,</p>
<p>thank you for your order <b>{order}</b>. It leaves our house tomorrow.</p>
<p>Is the address right? Answer this mail if it is not.</p>
<p>Your shop</p>
</body></html>
"""


class Original(Struct, frozen=True):
    """A stored message that a ready-made mail refers to.

    ``recipient`` is the address of the envelope to which it was sent.
    """

    raw_message: bytes
    envelope_sender: str
    recipient: str


class Occasion(Struct, frozen=True, kw_only=True):
    """The author, the recipient and the time of a ready-made mail.

    The recipient is an address of the application. A bounce is about a mail to the author.
    ``seed`` is random: the Message-ID and the boundaries are made from it. Without an ``original``,
    one is invented.
    """

    author: Person
    recipient: Mailbox
    now: Instant
    seed: bytes
    original: Original | None = None


class Scene:
    """An occasion, with the values that are derived from it."""

    def __init__(self, occasion: Occasion) -> None:
        self.author = occasion.author
        self.recipient = occasion.recipient
        self.now = occasion.now
        self.seed = occasion.seed
        self.host = _host("mail", occasion.recipient)
        """The mail server of the application."""
        self.server = _host("mx", occasion.author.mailbox)
        """The mail server of the author."""
        self.feedback = Mailbox("feedback", domain_of(occasion.author.mailbox))
        """The address that the provider of the author sends complaints from."""
        self.application = Person("", occasion.recipient)
        self.lost = str(occasion.author.mailbox)
        """The address that a mail did not reach."""
        self.original = occasion.original or self._invent()
        self.quoted = read_quoted(self.original.raw_message, self.now)

    def digest(self, purpose: str) -> str:
        """Return 32 random hexadecimal digits, which differ for each purpose."""
        return hashlib.sha256(self.seed + purpose.encode()).hexdigest()[:32]

    def message_id(self) -> str:
        """Return the Message-ID of a mail of the author, without brackets."""
        return f"{self.digest('mail')}@{domain_of(self.author.mailbox)}"

    def date(self, earlier: int = 0) -> str:
        """Return a date for a header field."""
        return formatdate((self.now - earlier) / SECOND)

    def mail(
        self,
        subject: str,
        text: str | None,
        html: str | None = None,
        headers: tuple[tuple[str, str], ...] = (),
    ) -> OutgoingMail:
        """Return a mail from the author to the application."""
        return OutgoingMail(
            author=self.author,
            to=(self.application,),
            subject=subject[:SUBJECT],
            text=text,
            html=html,
            headers=headers,
        )

    def written(self, mail: OutgoingMail) -> bytes:
        """Return a mail as it is sent."""
        return write_mail(mail, self.message_id(), self.now)

    def header(self, subject: str) -> bytes:
        """Return the header of a mail from the author, without the fields of the content."""
        return write_header(self.mail(subject, None), self.message_id(), self.now)

    def _invent(self) -> Original:
        """Return a mail from the application to the author."""
        order = int(self.digest("order")[:6], 16) % 9_000 + 1_000
        mail = OutgoingMail(
            author=self.application,
            to=(self.author,),
            subject=f"Your order {order}",
            text=_ORDER.format(order=order),
            html=_ORDER_HTML.format(order=order),
        )
        message_id = f"{self.digest('original')}@{domain_of(self.recipient)}"
        raw_message = write_mail(mail, message_id, Instant(self.now - HOUR))
        return Original(raw_message, str(self.recipient), str(self.author.mailbox))


def domain_of(mailbox: Mailbox) -> str:
    """Return the domain of an address for names of hosts and Message-IDs."""
    domain = mailbox.domain.rstrip(".")
    return domain if domain.isascii() and domain and domain[0] != "[" else "example.com"


def _host(name: str, mailbox: Mailbox) -> str:
    return f"{name}.{domain_of(mailbox)}"


class Part(Struct, frozen=True):
    """A part of a multipart: lines of its header, and its body."""

    header: tuple[str, ...]
    body: bytes


def text_part(text: str, kind: str = "plain", *header: str) -> Part:
    """Return a part with text in UTF-8."""
    return octets_part(
        end_lines(text.encode()), *header, f"Content-Type: text/{kind}; charset=utf-8"
    )


def octets_part(body: bytes, *header: str) -> Part:
    """Return a part that is not encoded."""
    encoding = () if body.isascii() else ("Content-Transfer-Encoding: 8bit",)
    return Part((*header, *encoding), body)


def multipart(kind: str, boundary: str, parts: Sequence[Part]) -> Part:
    """Return a part with parts. ``kind`` is the subtype with its other parameters."""
    pieces = []
    for part in parts:
        head = "\r\n".join((f"--{boundary}", *part.header, "", "")).encode()
        pieces += [head, part.body, b"\r\n"]
    content_type = f'Content-Type: multipart/{kind};\r\n boundary="{boundary}"'
    return Part((content_type,), b"".join((*pieces, f"--{boundary}--\r\n".encode())))


def write_whole(header: Sequence[str] | bytes, part: Part) -> bytes:
    """Return a mail with these fields and this content."""
    given = header if isinstance(header, bytes) else join_lines(header)
    return given + join_lines(("MIME-Version: 1.0", *part.header, "")) + part.body


def write_mixed(scene: Scene, header: Sequence[str] | bytes, parts: Sequence[Part]) -> bytes:
    """Return a mail with these fields, and with attachments."""
    return write_whole(header, multipart("mixed", scene.digest("b"), parts))


def join_lines(lines: Sequence[str]) -> bytes:
    """Return lines with CRLF line ends."""
    return "".join(f"{line}\r\n" for line in lines).encode()

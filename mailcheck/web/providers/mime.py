"""The mail that a provider would send, written from the fields of a request."""

import mimetypes
import re
from collections.abc import Callable, Iterable
from email.headerregistry import Address, HeaderRegistry
from email.message import EmailMessage
from email.policy import SMTP
from email.utils import formatdate, getaddresses
from typing import Any

from msgspec import Struct

from mailcheck.core.addresses import Mailbox, parse_mailbox
from mailcheck.core.errors import InvalidParameter
from mailcheck.core.instants import SECOND, Instant

OWN_FIELDS = frozenset(
    (
        *("from", "to", "cc", "bcc", "subject", "sender", "return-path", "mime-version"),
        *("content-type", "content-length", "content-transfer-encoding", "content-disposition"),
        *("content-id",),
    )
)
"""Header fields that follow from other fields of a request. Providers do not accept them either."""

MAX_HEADERS = 200
"""Maximum number of header fields of a request."""

MAX_HEADER_TEXT = 20_000
"""Maximum number of characters of the subject, header fields and file names of a mail.

Folding and encoding of longer texts takes seconds.
"""

MAX_NAMES = 20_000
"""Maximum number of characters of all display names of a mail."""

MAX_NAME = 320
"""Maximum number of characters of a display name. Long ones take seconds to encode."""

_FIELD_NAME = re.compile(r"[!-9;-~]{1,200}")
_CONTROLS = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]+")
_CONTENT_TYPE = re.compile(r"([A-Za-z0-9!#$&^_.+-]{1,64})/([A-Za-z0-9!#$&^_.+-]{1,64})\s*(?:;.*)?")
# Any value is valid as unstructured text, also that of a field with a syntax of its own.
_UNSTRUCTURED = HeaderRegistry(use_default_map=False)
_OCTETS = ("application", "octet-stream")


class Person(Struct, frozen=True):
    """An address with its display name, which may be empty."""

    name: str
    mailbox: Mailbox

    @property
    def shown(self) -> str:
        """The name, in quotes if it needs them, with the address; or the address alone."""
        return str(Address(self.name, self.mailbox.local_part, self.mailbox.domain))


class File(Struct, frozen=True):
    """An attachment. With a ``content_id`` it is an inline image of the HTML."""

    filename: str
    content_type: str
    data: bytes
    content_id: str = ""


class RawMail(Struct, frozen=True):
    """A mail that the request has in its final form."""

    envelope_sender: str
    recipients: tuple[Mailbox, ...]
    raw_message: bytes


class OutgoingMail(Struct, frozen=True, kw_only=True):
    """The content of a mail. ``headers`` are further fields, in order."""

    author: Person
    to: tuple[Person, ...] = ()
    cc: tuple[Person, ...] = ()
    bcc: tuple[Person, ...] = ()
    reply_to: tuple[Person, ...] = ()
    subject: str = ""
    text: str | None = None
    html: str | None = None
    headers: tuple[tuple[str, str], ...] = ()
    files: tuple[File, ...] = ()

    @property
    def envelope_sender(self) -> str:
        """The address of the author."""
        return str(self.author.mailbox)

    @property
    def header_texts(self) -> tuple[str, ...]:
        """The subject, the values of header fields, and the names and Content-IDs of files."""
        files = (text for file in self.files for text in (file.filename, file.content_id))
        return (self.subject, *(value for _, value in self.headers), *files)

    @property
    def names(self) -> tuple[str, ...]:
        """The display names of all people in the header."""
        return tuple(one.name for one in (self.author, *self.to, *self.cc, *self.reply_to))

    @property
    def header_size(self) -> int:
        """The number of characters that are written into headers."""
        return sum(map(len, (*self.header_texts, *self.names)))

    @property
    def body_size(self) -> int:
        """The number of characters and bytes of the texts and files."""
        texts = len(self.text or "") + len(self.html or "")
        return texts + sum(len(file.data) for file in self.files)

    @property
    def recipients(self) -> tuple[Mailbox, ...]:
        """The distinct recipients of the envelope."""
        everyone = (one.mailbox for one in (*self.to, *self.cc, *self.bcc))
        return tuple({mailbox.folded: mailbox for mailbox in everyone}.values())


def read_people(name: str, value: str | Iterable[str] | None) -> tuple[Person, ...]:
    """Parse addresses: a text with commas, or a list of texts.

    :raises InvalidParameter: a text has no valid address; the message has its value.
    """
    texts = [value] if isinstance(value, str) else list(value or ())
    people: list[Person] = []
    for text in texts:
        try:
            found = getaddresses([_CONTROLS.sub(" ", text)])
        except RecursionError:  # comments and groups may be nested
            problem = f"`{name}` has an address that is nested too deeply; got {text[:100]!r}"
            raise InvalidParameter(name, problem) from None
        people += [make_person(name, shown, address or text) for shown, address in found]
    return tuple(people)


def make_person(name: str, shown: str, address: str) -> Person:
    """Return an address with its display name.

    :raises InvalidParameter: the address is invalid; the message has its value.
    """
    try:
        return Person(_CONTROLS.sub(" ", shown).strip(), parse_mailbox(address.strip()))
    except ValueError as problem:
        sent = address[:100]
        raise InvalidParameter(
            name, f"`{name}` must have addresses like name@example.com; got {sent!r}: {problem}"
        ) from None


def make_headers(name: str, pairs: Iterable[tuple[str, str]]) -> tuple[tuple[str, str], ...]:
    """Return header fields, except fields that follow from other fields of a request.

    :raises InvalidParameter: a name is not a field name, or there are too many.
    """
    found = []
    for field, value in pairs:
        if _FIELD_NAME.fullmatch(field) is None:
            raise InvalidParameter(
                name, f"`{name}` has an invalid header name; got {field[:100]!r}"
            )
        if field.lower() not in OWN_FIELDS:
            found.append((field, _CONTROLS.sub(" ", value).strip()))
    if len(found) > MAX_HEADERS:
        raise InvalidParameter(name, f"`{name}` may have {MAX_HEADERS} fields; got {len(found)}")
    return tuple(found)


def write_mail(mail: OutgoingMail, message_id: str, sent_at: Instant) -> bytes:
    """Return the mail with CRLF line ends. A Message-ID or Date in its headers is kept.

    :raises InvalidParameter: its subject, names or header fields are too long.
    """
    _require_short(mail)
    people = (mail.author, *mail.to, *mail.cc, *mail.reply_to)
    # Such an address exists in a mail of SMTPUTF8 only (RFC 6532).
    is_utf8 = not all(str(one.mailbox).isascii() for one in people)
    message = EmailMessage(SMTP.clone(utf8=True) if is_utf8 else SMTP)
    message["From"] = _address(mail.author)
    for name, people in (("To", mail.to), ("Cc", mail.cc), ("Reply-To", mail.reply_to)):
        if people:
            message[name] = tuple(map(_address, people))
    message["Subject"] = _header_text(mail.subject)
    given = {name.lower() for name, _ in mail.headers}
    if "message-id" not in given:
        message["Message-ID"] = f"<{message_id}>"
    if "date" not in given:
        message["Date"] = formatdate(sent_at / SECOND)
    _write_bodies(message, mail)
    for name, value in mail.headers:
        if SMTP.header_max_count(name) is not None:
            del message[name]  # of a field that occurs once, the last value counts
        message[name] = _UNSTRUCTURED(name, _header_text(value))
    return message.as_bytes()


def _require_short(mail: OutgoingMail) -> None:
    for name, what, texts, most in (
        (
            "subject",
            "the subject, header fields and file names",
            mail.header_texts,
            MAX_HEADER_TEXT,
        ),
        ("name", "the names of all people", mail.names, MAX_NAMES),
    ):
        length = sum(map(len, texts))
        if length > most:
            problem = f"{what} may have {most:,} characters together; got {length:,}"
            raise InvalidParameter(name, problem)
    longest = max(map(len, mail.names))
    if longest > MAX_NAME:
        problem = f"a name may have {MAX_NAME} characters; got {longest:,}"
        raise InvalidParameter("name", problem)


def _address(person: Person) -> Address:
    mailbox = person.mailbox
    return Address(_header_text(person.name), mailbox.local_part, mailbox.domain)


def _write_bodies(message: EmailMessage, mail: OutgoingMail) -> None:
    if mail.text is not None or mail.html is None:
        text = _clean(mail.text or "")
        message.set_content(text, subtype="plain", charset="utf-8", cte=_encoding_of(text))
    if mail.html is not None:
        html = _clean(mail.html)
        options: dict[str, Any] = {"subtype": "html", "charset": "utf-8", "cte": _encoding_of(html)}
        part: Any = message
        if mail.text is None:
            message.set_content(html, **options)
        else:
            message.add_alternative(html, **options)
            *_, part = message.iter_parts()
        for one in mail.files:
            if one.content_id:
                _attach(part.add_related, one, "inline")
    for one in mail.files:
        if mail.html is None or not one.content_id:
            _attach(message.add_attachment, one, "attachment")


def _attach(add: Callable[..., None], file: File, disposition: str) -> None:
    content_id = _header_text(file.content_id, "").strip("<> ")
    add(
        file.data,
        *_type_of(file),
        cid=f"<{content_id}>" if content_id else None,
        filename=_header_text(file.filename, "_") or "attachment",
        disposition=disposition,
    )


def _encoding_of(text: str) -> str | None:
    # A NUL is not allowed in 7bit and 8bit content (RFC 2045 2.7, 2.8).
    return "base64" if "\0" in text else None


def _type_of(file: File) -> tuple[str, str]:
    given = file.content_type or mimetypes.guess_type(file.filename)[0] or ""
    match = _CONTENT_TYPE.fullmatch(given.strip())
    # The content is bytes, which these types do not describe.
    if match is None or match[1].lower() in ("multipart", "message"):
        return _OCTETS
    return match[1].lower(), match[2].lower()


def _header_text(text: str, blank: str = " ") -> str:
    """Return a text for a header field, with ``blank`` in place of control characters.

    The standard library decodes encoded words (RFC 2047) in the text. A line break in one would
    begin another field, so such words are changed to ordinary text.
    """
    plain = _CONTROLS.sub(blank, _clean(text))
    if "=?" in plain and _CONTROLS.search(_UNSTRUCTURED("Subject", plain)):
        return plain.replace("=?", "= ?")
    return plain


def _clean(text: str) -> str:
    """Replace lone surrogates, which UTF-8 cannot encode."""
    return text.encode("utf-8", "replace").decode("utf-8")

"""Mail that is written from fields: those of a request to a provider, of a page or of a command."""

import mimetypes
import re
from base64 import encodebytes
from collections.abc import Callable, Iterable
from email.headerregistry import Address, HeaderRegistry
from email.message import EmailMessage
from email.policy import SMTP
from email.policy import EmailPolicy as Policy
from email.utils import formatdate, getaddresses, quote
from typing import Any

from msgspec import Struct, structs
from werkzeug.http import parse_options_header

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

MAX_MEDIA_TYPE = 1_000
"""Maximum number of characters of a content type with its parameters."""

MAX_NAMES = 20_000
"""Maximum number of characters of all display names of a mail."""

LINE = 78
"""Recommended maximum number of characters of a line (RFC 5322 2.1.1)."""

MAX_NAME = 320
"""Maximum number of characters of a display name. Long ones take seconds to encode."""

_FIELD_NAME = re.compile(r"[!-9;-~]{1,200}")
_CONTROLS = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]+")
_MEDIA_TYPE = re.compile(r"([a-z0-9!#$&^_.+-]{1,64})/([a-z0-9!#$&^_.+-]{1,64})")
_TOKEN = re.compile(r"[A-Za-z0-9!#$&^_.+-]{1,200}")
# Any value is valid as unstructured text, also that of a field with a syntax of its own.
_UNSTRUCTURED = HeaderRegistry(use_default_map=False)


class Person(Struct, frozen=True):
    """An address with its display name, which may be empty."""

    name: str
    mailbox: Mailbox

    @property
    def shown(self) -> str:
        """The name, in quotes if it needs them, with the address; or the address alone."""
        return str(Address(self.name, self.mailbox.local_part, self.mailbox.domain))


class MediaType(Struct, frozen=True):
    """The value of Content-Type: the type in lower case, and the parameters."""

    main: str
    sub: str
    parameters: tuple[tuple[str, str], ...] = ()

    @property
    def name(self) -> str:
        """Type and subtype, with a slash."""
        return f"{self.main}/{self.sub}"

    @property
    def header(self) -> str:
        """The value of the header field. Values that are not tokens are in quotes."""
        shown = (
            f"; {name}={value if _TOKEN.fullmatch(value) else chr(34) + quote(value) + chr(34)}"
            for name, value in self.parameters
        )
        return f"{self.name}{''.join(shown)}"


PLAIN, HTML, AMP = (MediaType("text", sub) for sub in ("plain", "html", "x-amp-html"))
_OCTETS = MediaType("application", "octet-stream")
_RANKS = {kind.name: number for number, kind in enumerate((PLAIN, AMP, HTML))}


class Alternative(Struct, frozen=True):
    """A form of the text: plain text, HTML, AMP, or an invitation."""

    media_type: MediaType
    text: str


class File(Struct, frozen=True):
    """An attachment, or a file that is shown inline."""

    filename: str
    content_type: str
    data: bytes
    content_id: str = ""
    is_inline: bool = False
    description: str = ""

    @property
    def is_image(self) -> bool:
        """Whether it belongs to the HTML, which names its Content-ID."""
        return self.is_inline and bool(self.content_id)


class RawMail(Struct, frozen=True):
    """A mail that the request has in its final form."""

    envelope_sender: str
    recipients: tuple[Mailbox, ...]
    raw_message: bytes


class OutgoingMail(Struct, frozen=True, kw_only=True):
    """The content of a mail. ``headers`` are further fields, in order.

    ``other_forms`` are forms of the text besides ``text`` and ``html``.
    """

    author: Person
    to: tuple[Person, ...] = ()
    cc: tuple[Person, ...] = ()
    bcc: tuple[Person, ...] = ()
    reply_to: tuple[Person, ...] = ()
    subject: str = ""
    text: str | None = None
    html: str | None = None
    other_forms: tuple[Alternative, ...] = ()
    headers: tuple[tuple[str, str], ...] = ()
    files: tuple[File, ...] = ()
    returns_to: Person | None = None

    @property
    def envelope_sender(self) -> str:
        """The address for bounces: ``returns_to``, or the author."""
        return str((self.returns_to or self.author).mailbox)

    @property
    def header_texts(self) -> tuple[str, ...]:
        """The subject, the values of header fields, and what the headers of parts consist of."""
        parts = [
            value
            for alternative in self.other_forms
            for _, value in alternative.media_type.parameters
        ]
        for file in self.files:
            parameters = file.content_type.partition(";")[2]
            parts += (file.filename, parameters, file.content_id, file.description)
        return (self.subject, *(value for _, value in self.headers), *parts)

    @property
    def names(self) -> tuple[str, ...]:
        """The display names of all people in the header."""
        return tuple(person.name for person in (self.author, *self.to, *self.cc, *self.reply_to))

    @property
    def header_size(self) -> int:
        """The number of characters that are written into headers."""
        return sum(map(len, (*self.header_texts, *self.names)))

    @property
    def body_size(self) -> int:
        """The number of characters and bytes of the texts and files."""
        texts = (
            self.text or "",
            self.html or "",
            *(alternative.text for alternative in self.other_forms),
        )
        return sum(map(len, texts)) + sum(len(file.data) for file in self.files)

    @property
    def recipients(self) -> tuple[Mailbox, ...]:
        """The distinct recipients of the envelope."""
        everyone = (person.mailbox for person in (*self.to, *self.cc, *self.bcc))
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
    message = _begin(mail, message_id, sent_at)
    _write_bodies(message, mail)
    _add_headers(message, mail)
    return message.as_bytes()


def write_header(mail: OutgoingMail, message_id: str, sent_at: Instant) -> bytes:
    """Return the fields that `write_mail` writes, except those of the content.

    The lines end with CRLF. The empty line that ends a header is not among them.

    :raises InvalidParameter: its subject, names or header fields are too long.
    """
    message = _begin(mail, message_id, sent_at)
    _add_headers(message, mail)
    return message.as_bytes().removesuffix(b"\r\n")


def _begin(mail: OutgoingMail, message_id: str, sent_at: Instant) -> EmailMessage:
    """Return a mail with the fields that each mail has, and without content."""
    _require_short(mail)
    people = (mail.author, *mail.to, *mail.cc, *mail.reply_to)
    # Such an address exists in a mail of SMTPUTF8 only (RFC 6532).
    is_utf8 = not all(str(person.mailbox).isascii() for person in people)
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
    return message


def _add_headers(message: EmailMessage, mail: OutgoingMail) -> None:
    for name, value in mail.headers:
        if SMTP.header_max_count(name) is not None:
            del message[name]  # of a field that occurs once, the last value counts
        message[name] = _write_field(name, _header_text(value))


MAX_WORD = 900
"""Maximum number of characters of a word that is written as it is. Lines have at most 998 (RFC 5322
2.1.1)."""


class _AsciiField(str):
    """The value of a header field that is folded at its blanks and never encoded.

    The standard library encodes long words, such as the identifiers in ``References``. Encoded
    words are not allowed there (RFC 2047 5), and programs do not find the thread.
    """

    __slots__ = ("name",)
    name: str

    def fold(self, *, policy: Policy) -> str:
        """Return the whole field. Called by the standard library."""
        lines = [f"{self.name}:"]
        for word in self.split(" "):
            if word and lines[-1].strip() and len(lines[-1]) + len(word) >= LINE:
                lines.append("")
            lines[-1] += f" {word}"
        return policy.linesep.join((*lines, ""))


def _write_field(name: str, text: str) -> str:
    """Return the value of a field with any syntax, as the standard library takes it."""
    is_plain = text.isascii() and "=?" not in text
    if not is_plain or max(map(len, text.split(" "))) > MAX_WORD:
        written: str = _UNSTRUCTURED(name, text)
        return written
    field = _AsciiField(text)
    field.name = name
    return field


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


def parse_media_type(text: str) -> MediaType | None:
    """Parse the value of Content-Type, or return `None` if it is not valid.

    :raises InvalidParameter: it is too long.
    """
    if len(text) > MAX_MEDIA_TYPE:
        problem = f"a content type may have {MAX_MEDIA_TYPE:,} characters; got {len(text):,}"
        raise InvalidParameter("content type", problem)
    head, options = parse_options_header(text)
    match = _MEDIA_TYPE.fullmatch(head.strip().lower())
    if match is None:
        return None
    # Encoded words are not allowed in parameters (RFC 2047 5), and some programs decode them.
    given = ((name, _header_text(value).replace("=?", "= ?")) for name, value in options.items())
    kept = ((name, value) for name, value in given if value and _TOKEN.fullmatch(name))
    return MediaType(match[1], match[2], tuple(kept))


def _write_bodies(message: EmailMessage, mail: OutgoingMail) -> None:
    """Write the forms of the text, the preferred one last (RFC 2046 5.1.4), and the files.

    AMP stands before the HTML, which programs without AMP show, and an invitation after it.
    """
    given = ((PLAIN, mail.text), (HTML, mail.html))
    forms = [Alternative(kind, text) for kind, text in given if text is not None]
    forms = sorted((*forms, *mail.other_forms), key=_rank) or [Alternative(PLAIN, "")]
    for form in forms:
        _write_form(message, form, is_first=form is forms[0])
    html: Any = message.get_body(("html",))
    for file in mail.files:
        if html is not None and file.is_image:
            _attach(html.add_related, html, file)
    for file in mail.files:
        if html is None or not file.is_image:
            _attach(message.add_attachment, message, file)


def _rank(form: Alternative) -> int:
    return _RANKS.get(form.media_type.name, len(_RANKS))


def _write_form(message: EmailMessage, form: Alternative, *, is_first: bool) -> None:
    add, kind = message.set_content if is_first else message.add_alternative, form.media_type
    text = _clean(form.text)
    if kind.main != "text":
        add(text.encode(), kind.main, kind.sub)
        _set_media_type(_last_part(message), kind)
        return
    # A NUL is not allowed in 7bit and 8bit content (RFC 2045 2.7, 2.8).
    encoding = "base64" if "\0" in text else None
    add(text, subtype=kind.sub, charset="utf-8", cte=encoding)
    part = _last_part(message)
    parameters = [(name, value) for name, value in kind.parameters if name != "charset"]
    if parameters:
        _set_media_type(part, structs.replace(kind, parameters=(*parameters, ("charset", "utf-8"))))
    if not text.endswith(("\r", "\n")):
        _remove_line_end(part, text)


def _last_part(message: EmailMessage) -> Any:
    return message.get_payload(-1) if message.is_multipart() else message


def _set_media_type(part: EmailMessage, kind: MediaType) -> None:
    del part["Content-Type"]
    # The standard library writes each value in quotes. It encodes other characters than ASCII.
    value = kind.header
    part["Content-Type"] = _UNSTRUCTURED("Content-Type", value) if value.isascii() else value


def _remove_line_end(part: EmailMessage, text: str) -> None:
    """Remove the line end that the standard library adds to a text without one."""
    if part["Content-Transfer-Encoding"] == "base64":
        payload = encodebytes(b"\r\n".join(text.encode().splitlines()))
    else:
        payload = str(part.get_payload()).removesuffix("\n").encode()
    part.set_payload(payload.decode("ascii", "surrogateescape"))


def _attach(add: Callable[..., None], message: EmailMessage, file: File) -> None:
    content_id = _header_text(file.content_id, "").strip("<> ")
    kind, data, encoding = _media_type_of(file), file.data, "base64"
    if kind.main == "message" and _is_plain(data):
        # Base64 is not allowed in a mail that is attached (RFC 2046 5.2.1).
        data, encoding = b"\r\n".join(data.splitlines()) + b"\r\n", "7bit"
    add(
        data,
        kind.main,
        kind.sub,
        cte=encoding,
        cid=f"<{content_id}>" if content_id else None,
        filename=_header_text(file.filename, "_") or "attachment",
        disposition="inline" if file.is_inline else "attachment",
    )
    part = _last_part(message)
    if kind.parameters:
        _set_media_type(part, kind)
    if file.description:
        part["Content-Description"] = _UNSTRUCTURED(
            "Content-Description", _header_text(file.description)
        )


def _is_plain(data: bytes) -> bool:
    return (
        data.isascii() and b"\0" not in data and max(map(len, data.splitlines()), default=0) <= 998
    )


def _media_type_of(file: File) -> MediaType:
    given = file.content_type or mimetypes.guess_type(file.filename)[0] or ""
    kind = parse_media_type(given)
    # The content is bytes, which no multipart is.
    return _OCTETS if kind is None or kind.main == "multipart" else kind


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

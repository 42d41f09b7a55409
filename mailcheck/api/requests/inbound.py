"""Requests of mail into applications: routes, mails and attempts."""

import base64
import binascii
from typing import Annotated, ClassVar

from msgspec import convert, field
from msgspec.structs import replace

from mailcheck.api.requests.fields import (
    FLAG,
    INTEGER,
    LONGEST_WAIT,
    SECONDS,
    SHORTEST_WAIT,
    TEXT,
    Limit,
    PageNumber,
    object_of,
    one_of,
    required_text,
)
from mailcheck.api.requests.parsing import Description, FieldType, Request
from mailcheck.core.errors import InvalidParameter
from mailcheck.core.identifiers import MessageId
from mailcheck.core.inbound import (
    LONGEST_PATTERN,
    MOST_SPEED,
    InboundFault,
    InboundFormat,
    InboundMailId,
    InboundRouteId,
    InboundVerdict,
    MailProgram,
    Place,
    ReadyMail,
    Verdicts,
)
from mailcheck.core.webhooks import LONGEST_URL
from mailcheck.operations.inbound.manage_routes import RouteSettings
from mailcheck.operations.inbound.send_mail import MOST_RECIPIENTS, Letter
from mailcheck.operations.write_mail import File

MOST_FILES = 100
"""Maximum number of files of a mail. The ready-made mail with many files has as many."""

MOST_POINTS = 1_000
"""Maximum points of a spam filter, and minimum below zero."""

LARGEST_LETTER = 8 * 2**20
"""Maximum octets of the body of a request with a mail. It is parsed in the main process, which
takes some ten milliseconds. Larger mails are sent again from the inbox, or are ready-made."""

DEFAULT_ATTEMPTS = 20
"""Default number of attempts on a page. Each may have an answer of 64 KiB."""

FORMATS = tuple(InboundFormat)
FAULTS = ("", *InboundFault)
"""The faults, and an empty text for none."""

OPEN_TEXT = FieldType({"type": "string", "pattern": r"^[^\x00]*$"}, longest=None)
"""A text of any length, which may be empty."""


def _text(longest: int) -> FieldType:
    """Return the type of a text of a maximum length, which may be empty."""
    return FieldType({**OPEN_TEXT.schema, "maxLength": longest}, longest=longest)


def _read_base64(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error as problem:
        raise ValueError(str(problem)) from None


BASE64 = FieldType(
    {
        "type": "string",
        "contentEncoding": "base64",
        "pattern": "^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$",
    },
    _read_base64,
    "{name} must be Base64: {error}",
    longest=None,
    write=lambda octets: base64.b64encode(octets).decode(),
)


_URL = _text(LONGEST_URL)


def _read_points(text: str) -> float:
    value = float(text)
    if not -MOST_POINTS <= value <= MOST_POINTS:
        raise ValueError(text)
    return value


POINTS = FieldType(
    {"type": "number", "minimum": -MOST_POINTS, "maximum": MOST_POINTS},
    _read_points,
    f"{{name}} must be a number from -{MOST_POINTS} to {MOST_POINTS}; got {{sent}}",
)


class RouteToCreate(Request, frozen=True, kw_only=True):
    """A new route."""

    example: ClassVar = (
        '{"to": "support@*", "format": "postmark", "url": "http://127.0.0.1:8000/in"}'
    )

    to: Annotated[
        str,
        required_text(LONGEST_PATTERN),
        Description(
            "recipients whose mail goes to the application, with * for any characters",
            brief="recipients, like support@* or *+ticket-*@*",
        ),
    ]
    format: Annotated[
        str,
        one_of(FORMATS),
        Description("the provider whose requests the application gets"),
    ]
    url: Annotated[
        str,
        required_text(LONGEST_URL),
        Description(
            "http or https URL of the application; smtp://host:port for the format smtp",
            brief="URL of the application",
        ),
    ]
    secret: Annotated[
        str | None,
        TEXT,
        Description("secret that signs the requests; a new one by default"),
    ] = None
    user: Annotated[
        str | None, TEXT, Description("user for Basic authentication, or of the SMTP server")
    ] = None
    password: Annotated[str | None, TEXT, Description("the password of that user")] = None
    speed: Annotated[
        int | None,
        INTEGER,
        Description(
            "factor by which the provider's schedule of retries is shortened; 60 by default",
            low=1,
            high=MOST_SPEED,
        ),
    ] = None
    fault: Annotated[
        str | None, one_of(FAULTS), Description("fault of each mail; empty for none")
    ] = None

    @property
    def settings(self) -> RouteSettings:
        """The settings of the route."""
        return convert(self, RouteSettings, from_attributes=True)


class RouteChange(Request, frozen=True, kw_only=True):
    """Changes of a route. Fields that are left out stay."""

    example: ClassVar = '{"speed": 1}'

    to: Annotated[str | None, TEXT, Description("recipients, with *")] = None
    url: Annotated[str | None, _URL, Description("URL of the application")] = None
    secret: Annotated[str | None, TEXT, Description("secret that signs the requests")] = None
    user: Annotated[str | None, TEXT, Description("user; empty for none")] = None
    password: Annotated[str | None, TEXT, Description("password; empty for none")] = None
    speed: Annotated[
        int | None,
        INTEGER,
        Description("factor of the schedule of retries", low=1, high=MOST_SPEED),
    ] = None
    fault: Annotated[
        str | None, one_of(FAULTS), Description("fault of each mail; empty for none")
    ] = None

    @property
    def settings(self) -> RouteSettings:
        """The settings that change."""
        return convert(self, RouteSettings, from_attributes=True)


class InboundFile(Request, frozen=True, kw_only=True):
    """A file of a mail."""

    example: ClassVar = '{"name": "a.txt", "content": "SGk="}'

    content: Annotated[bytes | None, BASE64, Description("the file in Base64")] = None
    name: Annotated[str | None, TEXT, Description("file name")] = None
    type: Annotated[str | None, TEXT, Description("media type; guessed from the name")] = None
    content_id: Annotated[
        str | None, TEXT, Description("Content-ID of an inline picture, without brackets")
    ] = None


_ADDRESS = _text(1_000)


def _addresses(description: str) -> Description:
    return Description(description, brief=description, at_most=MOST_RECIPIENTS)


class LetterFields(Request, frozen=True, kw_only=True):
    """The fields of a mail to an application that REST and agents have in common."""

    author: Annotated[
        str | None,
        _ADDRESS,
        Description("author, like Ana <ana@customer.example>", brief="author"),
    ] = field(name="from", default=None)
    to: Annotated[
        tuple[Annotated[str, _ADDRESS], ...],
        _addresses("recipients; an address that matches the route by default"),
    ] = ()
    subject: Annotated[str | None, OPEN_TEXT, Description("subject")] = None
    text: Annotated[str | None, OPEN_TEXT, Description("plain text")] = None
    html: Annotated[str | None, OPEN_TEXT, Description("HTML")] = None
    ready: Annotated[
        str | None,
        one_of(tuple(ReadyMail)),
        Description(
            "a ready-made mail, about the message with messageId if it refers to one",
            brief="ready-made mail",
        ),
    ] = None
    message_id: Annotated[
        str | None,
        TEXT,
        Description(
            "a stored message: with text it is answered, with ready it is what the ready-made mail "
            "refers to, and alone it is sent again",
            brief="stored message to answer, or to send again",
        ),
    ] = None
    fault: Annotated[
        str | None,
        one_of(FAULTS),
        Description("fault of the mail; empty for none. Default: that of the route", brief="fault"),
    ] = None

    @property
    def letter(self) -> Letter:
        """The mail to write or to send."""
        return Letter(
            author=self.author or "",
            to=self.to,
            subject=self.subject,
            text=self.text,
            html=self.html,
            ready=None if self.ready is None else ReadyMail(self.ready),
            message_id=None if self.message_id is None else MessageId(self.message_id),
            fault=self.fault,
        )


def _verdict(what: str) -> Description:
    return Description(f"result of {what} that the provider reports; pass by default")


_VERDICT = one_of(tuple(InboundVerdict))


class MailToSend(LetterFields, frozen=True, kw_only=True):
    """A mail to an application."""

    example: ClassVar = (
        '{"from": "ana@customer.example", "subject": "Re: Ticket 9", "text": "It works now."}'
    )

    cc: Annotated[tuple[Annotated[str, _ADDRESS], ...], _addresses("recipients in Cc")] = ()
    bcc: Annotated[
        tuple[Annotated[str, _ADDRESS], ...], _addresses("recipients that no field shows")
    ] = ()
    files: Annotated[
        tuple[Annotated[InboundFile, object_of(InboundFile)], ...],
        Description("files of the mail", at_most=MOST_FILES),
    ] = ()
    raw: Annotated[
        bytes | None, BASE64, Description("the whole mail (RFC 5322), in Base64; sent as it is")
    ] = None
    mail_id: Annotated[
        str | None, TEXT, Description("an earlier mail to an application, which is sent again")
    ] = None
    program: Annotated[
        str,
        one_of(tuple(MailProgram)),
        Description("the mail program that quotes the answered message"),
    ] = MailProgram.GMAIL.value
    place: Annotated[
        str,
        one_of(tuple(Place)),
        Description("where the text of the answer is: above, below or between the quoted lines"),
    ] = Place.ABOVE.value
    envelope_from: Annotated[
        str | None,
        TEXT,
        Description("envelope sender; empty as of a bounce. Default: the author"),
    ] = None
    spf: Annotated[str | None, _VERDICT, _verdict("SPF")] = None
    dkim: Annotated[str | None, _VERDICT, _verdict("DKIM")] = None
    dmarc: Annotated[str | None, _VERDICT, _verdict("DMARC")] = None
    spam: Annotated[bool | None, FLAG, Description("whether the provider takes it for spam")] = None
    spam_score: Annotated[
        float | None,
        POINTS,
        Description("points of the spam filter"),
    ] = None

    @property
    def letter(self) -> Letter:
        """The mail to write or to send."""
        return replace(
            super().letter,
            cc=self.cc,
            bcc=self.bcc,
            files=tuple(map(_file_of, self.files)),
            raw_message=self.raw,
            mail_id=None if self.mail_id is None else InboundMailId(self.mail_id),
            program=MailProgram(self.program),
            place=Place(self.place),
            envelope_sender=self.envelope_from,
            verdicts=self.verdicts,
        )

    @property
    def verdicts(self) -> Verdicts | None:
        """The verdicts, or `None` if none was sent."""
        given = (self.spf, self.dkim, self.dmarc, self.spam, self.spam_score)
        if all(value is None for value in given):
            return None
        return Verdicts(
            spf=InboundVerdict(self.spf or InboundVerdict.PASS),
            dkim=InboundVerdict(self.dkim or InboundVerdict.PASS),
            dmarc=InboundVerdict(self.dmarc or InboundVerdict.PASS),
            is_spam=bool(self.spam),
            spam_score=self.spam_score or 0.0,
        )


def _file_of(file: InboundFile) -> File:
    return File(
        file.name or "",
        file.type or "",
        file.content or b"",
        content_id=file.content_id or "",
        is_inline=file.content_id is not None,
    )


class ListAttempts(Request, frozen=True, kw_only=True):
    """The attempts to list, or to wait for."""

    route: Annotated[
        str | None, TEXT, Description("Only attempts of this route.", brief="id of a route")
    ] = None
    mail: Annotated[
        str | None, TEXT, Description("Only attempts of this mail.", brief="id of a mail")
    ] = None
    limit: Limit = DEFAULT_ATTEMPTS
    page: PageNumber = 1
    wait: Annotated[
        float | None,
        SECONDS,
        Description(
            "Wait for at most so many seconds until the application has taken the mail, that is, "
            "until it has answered with a status that ends the delivery. Returns earlier if no "
            "attempt follows. Without `mail`, any mail counts.",
            brief="seconds to wait until the application has taken it",
            low=SHORTEST_WAIT,
            high=LONGEST_WAIT,
        ),
    ] = None

    @property
    def route_id(self) -> InboundRouteId | None:
        """The route."""
        return None if self.route is None else InboundRouteId(self.route)

    @property
    def inbound_mail_id(self) -> InboundMailId | None:
        """The mail."""
        return None if self.mail is None else InboundMailId(self.mail)

    def require_first_page(self) -> None:
        """Check that a wait asks for the first page.

        :raises InvalidParameter: it asks for another one.
        """
        if self.wait is not None and self.page != 1:
            raise InvalidParameter("page", "`page` must be 1 with `wait`")

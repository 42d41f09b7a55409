"""Mail into an application: routes, the mails that they carry, and the attempts to deliver them.

A route stands for the setting of a mail provider that receives mail for an application: mail to
matching recipients becomes a request to its URL, in the format of the provider. The formats are in
``mailcheck.web.providers.inbound``; operations get them as `InboundProviders`.
"""

from collections.abc import Callable, Collection, Mapping
from enum import StrEnum
from typing import NewType

from msgspec import Struct

from mailcheck.core.identifiers import AccountId
from mailcheck.core.instants import DAY, HOUR, SECOND, Instant

InboundRouteId = NewType("InboundRouteId", str)
"""A short id (`mailcheck.core.identifiers.new_short_id`)."""

InboundMailId = NewType("InboundMailId", str)
"""A UUID in lower case (`mailcheck.core.identifiers.new_time_ordered_id`)."""

InboundDeliveryId = NewType("InboundDeliveryId", str)
"""A UUID in lower case. All attempts of a delivery have it, as the ids of providers do."""

MOST_ROUTES = 50
"""Maximum number of routes of one account."""

MOST_SPEED = 3_600
"""Maximum factor by which the schedule of retries is shortened."""

MOST_MAILS = 1_000
"""Maximum number of stored mails of one account. The oldest ones are deleted first."""

MOST_OCTETS = 256 * 2**20
"""Maximum octets of the stored mails of one account."""

MOST_ATTEMPTS = 2_000
"""Maximum number of stored attempts of one account."""

MOST_ANSWERS = 200
"""Number of attempts of one account, the newest, whose answers are stored."""

KEPT = 4 * DAY
"""Time for which mails and attempts are stored, in milliseconds. SendGrid, whose schedule is the
longest, tries for three days."""

LONGEST_PATTERN = 320
"""Maximum number of characters of a pattern of recipients."""

LONGEST_SECRET = 256
"""Maximum number of characters of a secret, a user or a password of a route."""

ANSWER_KEPT = 65_536
"""Maximum octets of the body of an answer that are stored with an attempt."""

OLD_TIME_STAMP = 24 * HOUR
"""Age of the signature of a mail with the fault `InboundFault.OLD_TIME_STAMP`, in milliseconds.
Receivers tolerate between 15 seconds and an hour."""

SENDER_IP = "203.0.113.9"
"""Address of the client of a mail that did not come over SMTP (RFC 5737)."""

SENDER_HELO = "mail.example.com"
"""HELO name of such a client."""


class InboundFormat(StrEnum):
    """The formats of routes: a provider and, where it has several, its setting."""

    SENDGRID = "sendgrid"
    """Inbound Parse, with the fields of the mail."""
    SENDGRID_RAW = "sendgrid-raw"
    """Inbound Parse with ``send_raw``."""
    MAILGUN = "mailgun"
    """A route with ``forward()``, with the fields of the mail."""
    MAILGUN_MIME = "mailgun-mime"
    """A route with ``forward()`` to a URL that ends in ``mime``."""
    MAILGUN_STORE = "mailgun-store"
    """A route with ``store(notify=...)``: files are fetched."""
    POSTMARK = "postmark"
    RESEND = "resend"
    BREVO = "brevo"
    MAILTRAP = "mailtrap"
    SES = "ses"
    """Amazon SES with the action SNS."""
    CLOUDFLARE = "cloudflare"
    """The local handler of wrangler for Email Workers."""
    RAILS = "rails"
    """The ingress ``relay`` of Rails Action Mailbox."""
    SMTP = "smtp"
    """A mail server, at a URL like ``smtp://127.0.0.1:2525``."""
    MAILCHECK = "mailcheck"
    """Our own JSON, signed according to Standard Webhooks."""


class InboundVerdict(StrEnum):
    """A result of SPF, DKIM or DMARC (RFC 8601 2.7)."""

    PASS = "pass"  # noqa: S105
    FAIL = "fail"
    SOFTFAIL = "softfail"
    NEUTRAL = "neutral"
    NONE = "none"
    TEMPERROR = "temperror"
    PERMERROR = "permerror"


class Verdicts(Struct, frozen=True):
    """What the provider says about the sender and the content of a mail.

    ``spam_score`` is in points of SpamAssassin; ``is_spam`` is independent of it.
    """

    spf: InboundVerdict = InboundVerdict.PASS
    dkim: InboundVerdict = InboundVerdict.PASS
    dmarc: InboundVerdict = InboundVerdict.PASS
    is_spam: bool = False
    spam_score: float = 0.0


class InboundFault(StrEnum):
    """What goes wrong with a delivery, on request."""

    TWICE = "twice"
    """The request is repeated after the application has taken it, with the same ids."""
    LATE = "late"
    """The first request is made `LATE_BY` later than the mail arrives."""
    OUT_OF_ORDER = "out-of-order"
    """The request is made after that of the next mail of the route."""
    WRONG_SIGNATURE = "wrong-signature"
    """The signature, or the password of a format without signatures, is wrong. Sent once."""
    OLD_TIME_STAMP = "old-time-stamp"
    """The time stamp that is signed is old. Sent once."""
    CUT_OFF = "cut-off"
    """The connection is closed in the middle of the body of the first request."""


LATE_BY = 10 * SECOND
"""Delay of a mail with the fault `InboundFault.LATE`, in milliseconds."""

HELD_FOR = 30 * SECOND
"""Maximum delay of a mail with the fault `InboundFault.OUT_OF_ORDER`, in milliseconds. It is
delivered then even if no other mail has come."""


class InboundRoute(Struct, frozen=True):
    """A route of an account.

    :param to: a pattern of recipients, in which ``*`` stands for any characters.
    :param url: the application: http or https, or ``smtp://host:port`` for the format ``smtp``.
    :param secret: signs requests, in the formats that have a signature; never empty.
    :param user: for Basic authentication, or of the SMTP server; empty without.
    :param speed: the provider's schedule of retries is shortened by this factor.
    :param fault: the fault of mails for which none was chosen.
    :param is_confirmed: whether the application has confirmed it, where the format requires that
        (`InboundProvider.open`).
    """

    id: InboundRouteId
    account_id: AccountId
    account_name: str
    to: str
    format: InboundFormat
    url: str
    secret: str
    created_at: Instant
    user: str = ""
    password: str = ""
    speed: int = 60
    fault: InboundFault | None = None
    is_confirmed: bool = True


class InboundMail(Struct, frozen=True):
    """A mail for an application.

    In a delivery, ``recipients`` are the recipients that the delivery is for: one, if
    `InboundProvider.is_per_recipient`. They are envelope recipients, so blind copies are among
    them. ``envelope_sender`` is empty for bounces. ``raw_message`` has CRLF line ends, but any
    octets: it may be malformed.
    """

    id: InboundMailId
    account_id: AccountId
    envelope_sender: str
    recipients: tuple[str, ...]
    raw_message: bytes
    received_at: Instant
    verdicts: Verdicts = Verdicts()
    client_ip: str = SENDER_IP
    helo_name: str = SENDER_HELO


class InboundMoment(Struct, frozen=True):
    """One attempt of a delivery: its time, its number from 1, and its fault.

    ``delivery_id`` is the same for all attempts, as ``svix-id`` is.
    """

    delivery_id: InboundDeliveryId
    at: Instant
    number: int = 1
    fault: InboundFault | None = None

    @property
    def signed_at(self) -> Instant:
        """The time stamp of the signature."""
        is_old = self.fault is InboundFault.OLD_TIME_STAMP
        return Instant(self.at - OLD_TIME_STAMP) if is_old else self.at

    @property
    def has_wrong_signature(self) -> bool:
        """Whether the signature, or the password in a format without signatures, must be wrong."""
        return self.fault is InboundFault.WRONG_SIGNATURE


class InboundRequest(Struct, frozen=True):
    """A request of a provider.

    :param url: the URL of the route, with the query that the format adds, without credentials.
    :param headers: names and values, Content-Type and Authorization included, without Host,
        Content-Length and Connection.
    :param authorization_if_asked: the value of Authorization for a second request, which is made
        only after a 401 with WWW-Authenticate, as SNS does.
    """

    url: str
    headers: tuple[tuple[str, str], ...]
    body: bytes
    method: str = "POST"
    authorization_if_asked: str = ""


WriteInboundRequest = Callable[[InboundMail, InboundRoute, InboundMoment], InboundRequest]
"""Writes the request of one attempt. It has no side effects and never fails, whatever the mail is:
the same arguments give the same request, but for signatures that are random by nature."""

OpenInboundRoute = Callable[[InboundRoute, InboundMoment], InboundRequest]
"""Writes the request that a provider makes when a route is created."""


NO_LIMIT = 104_857_600
"""Limit, in octets, of formats whose provider documents none. No mail here is larger."""

SUCCESS = range(200, 300)
"""The statuses after which a provider has delivered the mail."""


class InboundProvider(Struct, frozen=True):
    """A format: the requests of its provider, and the effect of each answer.

    :param write: `None` for the format ``smtp``, whose mails are not requests.
    :param final: the statuses after which the provider never tries again; `None` stands for no
        answer. All others are retried.
    :param schedule: the seconds from each attempt to the next one. The mail is given up after the
        last one.
    :param most_octets: the largest mail that the provider accepts.
    :param is_per_recipient: whether each recipient gets a request of its own.
    :param faults: the faults that the format can have. Formats without a signature and without a
        password have no wrong signature, those without a time stamp have no old one.
    :param open: the request that has to be confirmed before the first mail; `None` if there is
        none.
    :param seconds: how long the provider waits for the answer.
    """

    write: WriteInboundRequest | None
    final: Collection[int | None]
    schedule: tuple[int, ...]
    most_octets: int = NO_LIMIT
    is_per_recipient: bool = False
    faults: frozenset[InboundFault] = frozenset(InboundFault)
    open: OpenInboundRoute | None = None
    seconds: float = 15.0


InboundProviders = Mapping[InboundFormat, InboundProvider]
"""All formats. Assembly gets them from ``mailcheck.web.providers.inbound``."""


class InboundState(StrEnum):
    """The state of a delivery."""

    WAITING = "waiting"
    """The first attempt has not been made."""
    RETRYING = "retrying"
    """The last attempt failed, and another one follows."""
    DELIVERED = "delivered"
    """The application has taken the mail."""
    FAILED = "failed"
    """The provider does not try again."""
    STOPPED = "stopped"
    """The mail was part of a loop (`mailcheck.core.inbound.MOST_A_LOOP`), and was not sent."""


MOST_A_LOOP = 5
"""Maximum number of mails with the same route and the same two addresses in `LOOP_WINDOW`. Further
ones are not sent: the application answers its own answers."""

LOOP_WINDOW = 60 * SECOND


class InboundAttempt(Struct, frozen=True):
    """An attempt to deliver a mail.

    :param number: counts the attempts of a delivery from 1.
    :param status: the HTTP status, or the code of an SMTP reply; `None` without an answer.
    :param problem: why the mail was not taken; empty if it was.
    :param request_headers: the sent headers, without credentials.
    :param answer_headers: the headers of the answer.
    :param answer: the first `ANSWER_KEPT` octets of its body.
    """

    delivery_id: InboundDeliveryId
    route_id: InboundRouteId
    mail_id: InboundMailId
    number: int
    at: Instant
    status: int | None
    milliseconds: int
    problem: str
    request_headers: tuple[tuple[str, str], ...] = ()
    answer_headers: tuple[tuple[str, str], ...] = ()
    answer: bytes = b""


class InboundDelivery(Struct, frozen=True):
    """A mail for one route, or the request that opens the route: then ``mail_id`` is `None`.

    :param due_at: when the next attempt is due; `None` after the last one.
    :param attempts: the number of attempts so far.
    :param taken_at: when the application first took it.
    """

    id: InboundDeliveryId
    account_id: AccountId
    route_id: InboundRouteId
    mail_id: InboundMailId | None
    recipients: tuple[str, ...]
    fault: InboundFault | None
    state: InboundState
    created_at: Instant
    due_at: Instant | None
    attempts: int = 0
    taken_at: Instant | None = None


MOST_HEADERS_KEPT = 8_192
"""Maximum number of characters of all headers of an answer that are stored with an attempt."""

LONGEST_HEADER_KEPT = 2_048
"""Maximum number of characters of a header that are stored with an attempt."""

LEAST_WAIT = 50
"""Minimum milliseconds between two attempts of a delivery, however short its schedule is."""

SENT_ONCE = frozenset({InboundFault.WRONG_SIGNATURE, InboundFault.OLD_TIME_STAMP})
"""Faults that an attacker causes. The provider that is imitated does not know of the request."""


class NextStep(Struct, frozen=True):
    """What follows an attempt: the new state, and the milliseconds until the next attempt."""

    state: InboundState
    wait: int | None = None


def judge_attempt(
    provider: InboundProvider, delivery: InboundDelivery, speed: int, status: int | None
) -> NextStep:
    """Return what a provider does after an attempt that is not counted in ``delivery`` yet.

    :param status: the status of the answer, or `None` without an answer.
    """
    number = delivery.attempts + 1
    if delivery.taken_at is not None:
        return NextStep(InboundState.DELIVERED)  # the repetition, whatever its answer is
    if status is not None and status in SUCCESS:
        if delivery.fault is InboundFault.TWICE:
            return NextStep(InboundState.RETRYING, LEAST_WAIT)
        return NextStep(InboundState.DELIVERED)
    is_cut_off = delivery.fault is InboundFault.CUT_OFF and number == 1
    is_final = status in provider.final and not is_cut_off
    if is_final or delivery.fault in SENT_ONCE or number > len(provider.schedule):
        return NextStep(InboundState.FAILED)
    wait = provider.schedule[number - 1] * SECOND // speed
    return NextStep(InboundState.RETRYING, max(LEAST_WAIT, wait))


def first_delay(fault: InboundFault | None) -> int:
    """Return the milliseconds until the first attempt of a mail with a fault."""
    if fault is InboundFault.LATE:
        return LATE_BY
    return HELD_FOR if fault is InboundFault.OUT_OF_ORDER else 0


def matches_recipient(pattern: str, recipient: str) -> bool:
    """Return whether a recipient matches the pattern of a route, compared case-insensitively.

    ``*`` stands for any number of any characters. The time is linear in the product of the lengths.
    """
    first, *others = pattern.casefold().split("*")
    text = recipient.casefold()
    if not others:
        return text == first
    *middle, last = others
    if not text.startswith(first) or not text[len(first) :].endswith(last):
        return False
    text = text[len(first) : len(text) - len(last)]
    for part in middle:
        found = text.find(part)
        if found < 0:
            return False
        text = text[found + len(part) :]
    return True


# The ready-made mails that an application must survive. `mailcheck.operations.inbound.ready_mails`
# writes them. Their names are the values of the API, of tools, of commands and of the pages.


class MailProgram(StrEnum):
    """A mail program whose way to quote is known."""

    OUTLOOK = "outlook"
    GMAIL = "gmail"
    APPLE_MAIL = "apple"

    @property
    def shown(self) -> str:
        """The name of the program."""
        return _PROGRAMS[self]


_PROGRAMS: Mapping[MailProgram, str] = {
    MailProgram.OUTLOOK: "Outlook",
    MailProgram.GMAIL: "Gmail",
    MailProgram.APPLE_MAIL: "Apple Mail",
}


class Place(StrEnum):
    """Where the text of a reply is, relative to the quoted mail."""

    ABOVE = "above"
    BELOW = "below"
    BETWEEN = "between"


class ReadyMail(StrEnum):
    """The name of a ready-made mail."""

    HARD_BOUNCE = "bounce-hard"
    SOFT_BOUNCE = "bounce-soft"
    DELAYED = "delayed"
    OUT_OF_OFFICE = "out-of-office"
    COMPLAINT = "complaint"
    REPLY_OUTLOOK_ABOVE = "reply-outlook-above"
    REPLY_OUTLOOK_BELOW = "reply-outlook-below"
    REPLY_OUTLOOK_BETWEEN = "reply-outlook-between"
    REPLY_GMAIL_ABOVE = "reply-gmail-above"
    REPLY_GMAIL_BELOW = "reply-gmail-below"
    REPLY_GMAIL_BETWEEN = "reply-gmail-between"
    REPLY_APPLE_ABOVE = "reply-apple-above"
    REPLY_APPLE_BELOW = "reply-apple-below"
    REPLY_APPLE_BETWEEN = "reply-apple-between"
    EMPTY = "empty"
    LARGE = "25-mb"
    MANY_FILES = "100-files"
    FORWARDED = "forwarded"
    ISO_2022_JP = "iso-2022-jp"
    LONG_SUBJECT = "long-subject"
    INJECTION = "injection"


class ReadyMailFacts(Struct, frozen=True):
    """Title and explanation of a ready-made mail.

    A mail that ``refers`` is about a mail of the application. Without a stored message to refer
    to, it is about an invented one.
    """

    title: str
    explanation: str
    refers: bool = False


_PLACES: Mapping[Place, str] = {
    Place.ABOVE: "above the quoted mail",
    Place.BELOW: "below the quoted mail",
    Place.BETWEEN: "between the quoted lines",
}

_QUOTES: Mapping[MailProgram, str] = {
    MailProgram.OUTLOOK: (
        "Outlook does not mark quoted lines: a line of underscores and the header of the "
        "mail precede them."
    ),
    MailProgram.GMAIL: (
        "Gmail writes “On ... wrote:”, which may be two lines, with a narrow no-break space in "
        "the time, and quotes with “>” and in `div.gmail_quote`."
    ),
    MailProgram.APPLE_MAIL: (
        "Apple Mail quotes the line “On ... wrote:” as well, with “>” and in "
        "`blockquote[type=cite]`."
    ),
}

READY_MAILS: Mapping[ReadyMail, ReadyMailFacts] = {
    ReadyMail.HARD_BOUNCE: ReadyMailFacts(
        "Hard bounce",
        "Google's notification that an address does not exist (RFC 3464, 5.1.1), with an empty "
        "envelope sender. Stop sending to the address.",
        refers=True,
    ),
    ReadyMail.SOFT_BOUNCE: ReadyMailFacts(
        "Soft bounce",
        "Postfix's notification that a mailbox is full (RFC 3464, 4.2.2), with an empty "
        "envelope sender and without In-Reply-To. The address may work later.",
        refers=True,
    ),
    ReadyMail.DELAYED: ReadyMailFacts(
        "Delay notice",
        "Postfix's warning that a mail has not been delivered for four hours and is still tried "
        "(RFC 3464, action “delayed”). The mail has not failed.",
        refers=True,
    ),
    ReadyMail.OUT_OF_OFFICE: ReadyMailFacts(
        "Out of office",
        "An automatic reply (RFC 3834) with Auto-Submitted and an empty envelope sender. Do not "
        "answer it, and open no ticket.",
        refers=True,
    ),
    ReadyMail.COMPLAINT: ReadyMailFacts(
        "Complaint",
        "A provider's report that a recipient marked a mail as spam (RFC 5965). Stop sending to "
        "the recipient.",
        refers=True,
    ),
    **{
        ReadyMail(f"reply-{program}-{place}"): ReadyMailFacts(
            f"Reply from {program.shown}, {place}",
            f"A reply whose text is {_PLACES[place]}. {_QUOTES[program]}",
            refers=True,
        )
        for program in MailProgram
        for place in Place
    },
    ReadyMail.EMPTY: ReadyMailFacts(
        "Empty mail", "A mail without subject, text and Content-Type. Phones send such mails."
    ),
    ReadyMail.LARGE: ReadyMailFacts(
        "25 MB",
        "A mail of 25 MB with one file, as large as Gmail sends. Some providers do not pass on "
        "mails of this size.",
    ),
    ReadyMail.MANY_FILES: ReadyMailFacts(
        "100 files",
        "A mail with 100 small files. Ten have the same name, one has an empty name, and one has "
        "the name “../../etc/passwd”.",
    ),
    ReadyMail.FORWARDED: ReadyMailFacts(
        "Forwarded mail",
        "A mail with another mail inside (message/rfc822). The text and the files of the mail "
        "inside are not those of the mail.",
        refers=True,
    ),
    ReadyMail.ISO_2022_JP: ReadyMailFacts(
        "ISO-2022-JP",
        "A Japanese mail in the charset ISO-2022-JP: a name, a subject and a text that are not "
        "UTF-8.",
    ),
    ReadyMail.LONG_SUBJECT: ReadyMailFacts(
        "Subject of 2,000 characters",
        "A mail whose subject has 2,000 characters in many lines. Columns of databases often have "
        "255.",
    ),
    ReadyMail.INJECTION: ReadyMailFacts(
        "Injection attempt",
        "A mail that tries to add header fields, scripts, SQL, templates and paths by its names, "
        "subject, texts and file. None of them may have an effect.",
    ),
}
"""All ready-made mails, in the order in which they are listed."""

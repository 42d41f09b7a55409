"""The declarations of a provider's module: routes, errors, and how requests become mails."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from urllib.parse import parse_qsl

from msgspec import Struct, field

from mailcheck.core.errors import (
    AddressUsed,
    ExpectedFailure,
    FaultMet,
    InboundMailNotFound,
    InboxFull,
    InvalidCredentials,
    InvalidParameter,
    LimitExceeded,
    MailTooLarge,
    MessageNotFound,
    NotPermitted,
    RecipientUnknown,
    RequestRepeated,
    RequestRunning,
    nearest,
)
from mailcheck.core.identifiers import DeliveryId
from mailcheck.core.inbound import InboundFormat, InboundMail, InboundRoute
from mailcheck.core.instants import Instant
from mailcheck.core.messages import PROVIDER_TITLES, StoredMessage
from mailcheck.operations.write_mail import OutgoingMail, RawMail
from mailcheck.web.providers.events import Event, TestRecipients
from mailcheck.web.site.failures import (
    RETRY_AFTER_SECONDS,
    UNAUTHORIZED,
    Crash,
    PathUnknown,
    Problem,
    WrongMethod,
)
from mailcheck.web.site.likeness import Like
from mailcheck.web.site.replies import Reply


class KeyMissing(InvalidCredentials):
    """The request has no API key where the provider expects it."""


class WrongSignature(InvalidCredentials):
    """The request is not signed with the API key."""


class BadBody(InvalidParameter):
    """The body is not JSON, or not of the type that the route needs."""

    def __init__(self, problem: str) -> None:
        super().__init__("body", problem)


class FieldMissing(InvalidParameter):
    """A required field of the body is missing."""


MEANINGS: Mapping[type[ExpectedFailure], str] = {
    KeyMissing: "the key is missing",
    InvalidCredentials: "the key is unknown, revoked or expired",
    WrongSignature: "the request is not signed with the key",
    NotPermitted: "the key lacks a scope",
    BadBody: "the body cannot be parsed",
    FieldMissing: "a required field is missing",
    InvalidParameter: "a field has an invalid value",
    MailTooLarge: "the body or the mail is too large",
    PathUnknown: "the path or the mail does not exist",
    WrongMethod: "the path does not support the method",
    LimitExceeded: "a rate limit, or a temporary failure that asks to slow down",
    InboxFull: "the inbox is full",
    RecipientUnknown: "a recipient is rejected for good",
    RequestRepeated: "the idempotency key was used for another request",
    RequestRunning: "the request with this idempotency key is not answered yet",
    ExpectedFailure: "the service cannot store the mail now",
    Crash: "an internal error",
}
"""The failures for which each provider has a status and a code, with their text on the page."""

_KINDS: Mapping[type[ExpectedFailure], type[ExpectedFailure]] = {
    **{kind: kind for kind in MEANINGS},
    AddressUsed: RecipientUnknown,
    MessageNotFound: PathUnknown,
    InboundMailNotFound: PathUnknown,
}


def kind_of(failure: ExpectedFailure) -> type[ExpectedFailure]:
    """Return the class of `MEANINGS` that a failure is."""
    if isinstance(failure, FaultMet):
        code, enhanced = failure.reply
        if code >= 500:
            return RecipientUnknown
        # Greylisting and a full mailbox ask the sender to slow down; others are outages.
        return LimitExceeded if code == 452 or enhanced == "4.7.1" else Crash
    return nearest(failure, _KINDS) or ExpectedFailure


STATUSES_WITHOUT_CODES: Mapping[type[ExpectedFailure], tuple[int, str]] = {
    InvalidCredentials: (401, ""),
    NotPermitted: (403, ""),
    InvalidParameter: (400, ""),
    MailTooLarge: (413, ""),
    PathUnknown: (404, ""),
    WrongMethod: (405, ""),
    LimitExceeded: (429, ""),
    RecipientUnknown: (400, ""),
    RequestRepeated: (409, ""),
    ExpectedFailure: (503, ""),
    Crash: (500, ""),
}
"""The statuses of providers whose errors have no codes. The row of `InboxFull` differs."""


class Posting(Struct, frozen=True):
    """A request as the functions of a provider get it.

    ``target`` is the path and the query of the request line. ``headers`` are by lower-case name.
    ``path`` has the values of the path variables. ``domain`` is the mail domain of this server.
    """

    method: str
    target: str
    headers: Mapping[str, str]
    body: bytes
    path: Mapping[str, str] = field(default_factory=dict)
    domain: str = ""

    @property
    def content_type(self) -> str:
        """The value of Content-Type, or an empty text."""
        return self.headers.get("content-type", "")

    @property
    def query(self) -> Mapping[str, str]:
        """The parameters of the query, the last one of each name."""
        return dict(parse_qsl(self.target.partition("?")[2]))


class Sending(Struct, frozen=True):
    """One mail of a request, with the part of the request that it was made from.

    ``shown`` are values for the answer. A mail of the provider's test mode is checked and not
    stored.
    """

    mail: OutgoingMail | RawMail
    source: object
    shown: Mapping[str, str] = field(default_factory=dict)
    is_stored: bool = True


CREATED_AT = "2026-01-01T00:00:00.000Z"
"""The time at which the domains of accounts were created, for answers that need one."""

Mails = Iterable[Sending | InvalidParameter]
"""The mails of a request, made one at a time, so that a request that is too large is rejected
before all of them are built. An `InvalidParameter` stands for one mail of a batch that the provider
rejects separately."""

Read = Callable[[Posting], Mails | Reply]
"""Turns a request into mails, or answers a question for which none is sent. A raised
`ExpectedFailure` rejects the whole request."""


class Outcome(Struct, frozen=True):
    """The result of one mail of a request: its id, `None` if it is not stored, or a failure; and
    ``shown`` of its `Sending`.
    """

    result: DeliveryId | ExpectedFailure | None
    shown: Mapping[str, str] = field(default_factory=dict)

    @property
    def failure(self) -> ExpectedFailure | None:
        """The failure of a mail that was rejected."""
        return self.result if isinstance(self.result, ExpectedFailure) else None

    @property
    def id(self) -> str:
        """The id of a stored mail, or an empty text."""
        return str(self.result) if isinstance(self.result, str) else ""


class Submission(Struct, frozen=True):
    """A request and the outcomes of its mails, in their order."""

    outcomes: Sequence[Outcome]
    posting: Posting
    sent_at: Instant


class SendRoute(Struct, frozen=True):
    """A route that sends mail.

    ``is_partial``: a rejected mail of a batch does not reject the others.
    ``idempotency``: the lower-case name of the header with the idempotency key, if there is one.
    """

    path: str
    read: Read
    answer: Callable[[Submission], Reply]
    is_partial: bool = False
    idempotency: str = ""
    method: str = "POST"


class AskRoute(Struct, frozen=True):
    """A route that answers a question about the account, which changes nothing."""

    path: str
    answer: Callable[[Posting], Reply]
    method: str = "GET"


class ShowRoute(Struct, frozen=True):
    """A route that shows a sent mail; ``<id>`` in its path is the id that sending returned."""

    path: str
    show: Callable[[StoredMessage], Reply]
    method: str = "GET"


class Page(Struct, frozen=True):
    """A page of mails, newest first, that begins or ends with the mail of an id."""

    limit: int
    after: str | None = None
    before: str | None = None


class ListRoute(Struct, frozen=True):
    """A route that lists the mails that came over the API of the provider, newest first.

    :param page: returns the page that a request asks for.
    :param show: gets the mails of the page, and whether there are more.
    """

    path: str
    page: Callable[[Posting], Page]
    show: Callable[[Sequence[StoredMessage], bool], Reply]
    method: str = "GET"


class Fetched(Struct, frozen=True):
    """A mail that an inbound route has brought to an application, with that route.

    ``base`` is the URL of the providers' APIs here. ``files`` is the URL of the parts of the mail.
    It needs no key, and is valid until ``ends_at``.
    """

    mail: InboundMail
    route: InboundRoute
    posting: Posting
    base: str
    files: str
    ends_at: Instant

    def file_url(self, name: str) -> str:
        """Return the URL of a part: ``raw``, or the number of a file."""
        return f"{self.files}/{name}"


Has = Callable[[InboundRoute, Posting], bool]
"""Returns whether the mails of an inbound route are behind a route."""


def has_format(kind: InboundFormat, route: InboundRoute, _: Posting) -> bool:
    """Return whether an inbound route brings its mails in a format."""
    return route.format is kind


def _id_in_path(posting: Posting) -> tuple[str, str]:
    return posting.path["id"], posting.path["id"]


class FetchRoute(Struct, frozen=True):
    """A route that shows a mail which an inbound route has brought to the application.

    :param has: whether the mails of an inbound route are behind this route.
    :param show: returns the answer. It runs in a worker process.
    :param find: returns the ids between which the id of the mail is, which may be equal. By
        default this is ``<id>`` in the path.
    """

    path: str
    has: Has
    show: Callable[[Fetched], Reply]
    find: Callable[[Posting], tuple[str, str]] = _id_in_path
    method: str = "GET"


class FetchListRoute(Struct, frozen=True):
    """A route that lists these mails.

    :param page: returns the page that a request asks for.
    :param show: returns the facts of a mail. It runs in a worker process.
    :param answer: returns the answer with the facts of all mails, and whether there are more.
    """

    path: str
    has: Has
    page: Callable[[Posting], Page]
    show: Callable[[Fetched], object]
    answer: Callable[[Sequence[object], bool], Reply]
    method: str = "GET"


Route = SendRoute | AskRoute | ShowRoute | ListRoute | FetchRoute | FetchListRoute


class Support(Struct, frozen=True):
    """A row of the table in the documentation."""

    what: str
    like: Like
    note: str = ""


WriteError = Callable[[int, str, str], Reply]
"""Returns the answer with a status, a code of the provider, and a message."""


Verify = Callable[[Posting, str], None]
"""Checks that a request is signed with the key, or raises `WrongSignature`."""


WriteEvent = Callable[[Event], object]
"""Returns the JSON of an event in the format of the provider."""


class Provider(Struct, frozen=True):
    """The API of one provider.

    ``name`` is in paths, in ``via`` of messages and in searches. ``statuses`` are the status and
    the code of each class of `MEANINGS`. A class without a row has those of the nearest class that
    it inherits from.
    ``test_recipients`` are addresses whose mail the provider reports as bounced or complained.
    ``ignored`` are fields of requests that are accepted and change nothing.
    ``switches`` tell how each SDK is redirected: ``{base}`` in their text is the base URL, and
    ``{host}`` the same without its scheme.
    """

    name: str
    read_key: Callable[[Mapping[str, str]], str]
    routes: Sequence[Route]
    statuses: Mapping[type[ExpectedFailure], tuple[int, str]]
    write_error: WriteError
    switches: Sequence[tuple[str, str]]
    support: Sequence[Support]
    ignored: Sequence[str] = ()
    verify: Verify | None = None
    write_event: WriteEvent | None = None
    test_recipients: TestRecipients = {}

    @property
    def title(self) -> str:
        """The name as the provider writes it."""
        return PROVIDER_TITLES[self.name]

    def status_of(self, kind: type[ExpectedFailure]) -> tuple[int, str]:
        """Return the status and the code of a class of `MEANINGS`."""
        return next(self.statuses[base] for base in kind.__mro__ if base in self.statuses)

    def respond(self, problem: Problem) -> Reply:
        """Return the error of the provider for a problem."""
        kind = kind_of(problem.failure)
        status, code = self.status_of(kind)
        response = self.write_error(status, code, problem.sentence)
        headers = {**response.headers}
        if "Allow" in problem.headers:
            headers["Allow"] = problem.headers["Allow"]
        if status in (429, 503) or kind is LimitExceeded:
            headers["Retry-After"] = str(problem.retry_after or RETRY_AFTER_SECONDS)
        if status == UNAUTHORIZED:
            headers["WWW-Authenticate"] = "Bearer"
        return Reply(status, response.body, response.content_type, headers)


def bearer_key(headers: Mapping[str, str]) -> str:
    """Return the key of ``Authorization: Bearer``.

    :raises KeyMissing: there is none.
    """
    scheme, _, secret = headers.get("authorization", "").strip().partition(" ")
    if scheme.lower() != "bearer" or not secret.strip():
        raise KeyMissing("send the API key of mailcheck as Authorization: Bearer <key>")
    return secret.strip()


def header_key(name: str, headers: Mapping[str, str]) -> str:
    """Return the key from a header.

    :raises KeyMissing: there is none.
    """
    secret = headers.get(name.lower(), "").strip()
    if not secret:
        raise KeyMissing(f"send the API key of mailcheck as {name}")
    return secret

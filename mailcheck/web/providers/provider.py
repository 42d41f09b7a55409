"""The declarations of a provider's module: routes, errors, and how requests become mails."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from urllib.parse import parse_qsl

from msgspec import Struct, field

from mailcheck.api.shapes import dump_json
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
from mailcheck.core.inbound import InboundMail, InboundRoute
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
    KeyMissing: (401, ""),
    InvalidCredentials: (401, ""),
    WrongSignature: (401, ""),
    NotPermitted: (403, ""),
    BadBody: (400, ""),
    FieldMissing: (400, ""),
    InvalidParameter: (400, ""),
    MailTooLarge: (413, ""),
    PathUnknown: (404, ""),
    WrongMethod: (405, ""),
    LimitExceeded: (429, ""),
    RecipientUnknown: (400, ""),
    RequestRepeated: (409, ""),
    RequestRunning: (409, ""),
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

JSON = "application/json; charset=utf-8"


class Response(Struct, frozen=True):
    """An answer of a provider."""

    status: int
    body: bytes
    content_type: str = JSON
    headers: Mapping[str, str] = field(default_factory=dict)


def json_response(
    value: object, status: int = 200, headers: Mapping[str, str] | None = None
) -> Response:
    """Return an answer with a JSON value."""
    return Response(status, dump_json(value), JSON, headers or {})


Mails = Iterable[Sending | InvalidParameter]
"""The mails of a request, made one at a time, so that a request that is too large is rejected
before all of them are built. An `InvalidParameter` stands for one mail of a batch that the provider
rejects separately."""

Read = Callable[[Posting], Mails | Response]
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
    answer: Callable[[Submission], Response]
    is_partial: bool = False
    idempotency: str = ""
    method: str = "POST"


class AskRoute(Struct, frozen=True):
    """A route that answers a question about the account, which changes nothing."""

    path: str
    answer: Callable[[Posting], Response]
    method: str = "GET"


class ShowRoute(Struct, frozen=True):
    """A route that shows a sent mail; ``<id>`` in its path is the id that sending returned."""

    path: str
    show: Callable[[StoredMessage], Response]
    method: str = "GET"


class ListRoute(Struct, frozen=True):
    """A route that lists the mails that came over the API of the provider, newest first.

    ``show`` gets a page of mails, and whether there are more. The query has ``limit``, and the id
    after or before which the page begins.
    """

    path: str
    show: Callable[[Sequence[StoredMessage], bool], Response]
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


class Page(Struct, frozen=True):
    """A page of mails, newest first, that begins or ends with the mail of an id."""

    limit: int
    after: str = ""
    before: str = ""


class FetchRoute(Struct, frozen=True):
    """A route that shows a mail which an inbound route has brought to the application.

    :param has: whether the mails of an inbound route are behind this route.
    :param find: returns the ids between which the id of the mail is, which may be equal.
    :param show: returns the answer. It runs in a worker process.
    """

    path: str
    has: Callable[[InboundRoute, Posting], bool]
    find: Callable[[Posting], tuple[str, str]]
    show: Callable[[Fetched], Response]
    method: str = "GET"


class FetchListRoute(Struct, frozen=True):
    """A route that lists these mails.

    :param page: returns the page that a request asks for.
    :param show: returns the facts of a mail. It runs in a worker process.
    :param answer: returns the answer with the facts of all mails, and whether there are more.
    """

    path: str
    has: Callable[[InboundRoute, Posting], bool]
    page: Callable[[Posting], Page]
    show: Callable[[Fetched], object]
    answer: Callable[[Sequence[object], bool], Response]
    method: str = "GET"


Route = SendRoute | AskRoute | ShowRoute | ListRoute | FetchRoute | FetchListRoute


class Support(Struct, frozen=True):
    """A row of the table in the documentation."""

    what: str
    like: Like
    note: str = ""


WriteError = Callable[[int, str, str], Response]
"""Returns the answer with a status, a code of the provider, and a message."""


Verify = Callable[[Posting, str], None]
"""Checks that a request is signed with the key, or raises `WrongSignature`."""


WriteEvent = Callable[[Event], object]
"""Returns the JSON of an event in the format of the provider."""


class Provider(Struct, frozen=True):
    """The API of one provider.

    ``name`` is in paths, in ``via`` of messages and in searches. ``statuses`` are the status and
    the code of each class of `MEANINGS`.
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

    def respond(self, problem: Problem) -> Reply:
        """Return the error of the provider for a problem."""
        kind = kind_of(problem.failure)
        status, code = self.statuses[kind]
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

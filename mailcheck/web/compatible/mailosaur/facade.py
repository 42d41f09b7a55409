"""The declaration of Mailosaur's API."""

from collections.abc import Sequence

from twisted.web.server import Request

from mailcheck.api.shapes import Shape
from mailcheck.core.errors import ExpectedFailure, InvalidParameter
from mailcheck.core.rights import Scope
from mailcheck.web.compatible.facade import (
    SENDS_NOTHING,
    AnyRoute,
    Facade,
    NoParameters,
    NotOffered,
    Route,
    with_notes,
)
from mailcheck.web.compatible.mailosaur.handlers import (
    ListMessages,
    Mailosaur,
    NamedServer,
    OfServer,
    SearchMessages,
    key_of_headers,
)
from mailcheck.web.site.replies import Reply, json_reply
from mailcheck.web.site.requests import header_values

_REQUEST = "request"


class Detail(Shape):
    """A description of a problem."""

    description: str


class Problem(Shape):
    """A field and its problems."""

    field: str
    detail: tuple[Detail, ...]


class Errors(Shape):
    """An error of Mailosaur, which its clients print."""

    type: str
    message: str
    errors: tuple[Problem, ...]


def write_error(status: int, message: str, failure: ExpectedFailure | None) -> Reply:
    """Return an error as Mailosaur's clients parse it."""
    field = failure.name if isinstance(failure, InvalidParameter) else _REQUEST
    kind = "ValidationError" if status == 400 else "Error"
    problem = Problem(field, (Detail(message),))
    return json_reply(Errors(kind, message, (problem,)), status)


def read_key(request: Request) -> str:
    """Return the API key of a request.

    :raises InvalidCredentials: there is none.
    """
    values = header_values(request, b"Authorization")
    return key_of_headers({"authorization": values[0] if values else ""})


_READ, _WRITE = (Scope.INBOX_READ,), (Scope.INBOX_WRITE,)
_BOTH = (*_READ, *_WRITE)
_TESTS = (Scope.TESTS, Scope.INBOX_READ)

_NO_PREVIEWS = "mailcheck takes no pictures of mail in other mail programs"
_NO_DEVICES = "mailcheck has no devices for one-time passwords: a library such as pyotp makes them"

_NOTES = {
    "GET /api/messages": "`to` is the recipient of the envelope; `cc` and `bcc` are empty in lists",
    "POST /api/messages/search": "held until mail arrives; `sentTo` is the recipient of the "
    "envelope, and `body` is searched in the text, or in the HTML if the mail has no text",
    "GET /api/messages/<id>": "mail to several addresses of a server is several messages",
    "GET /api/servers": "the servers with mail among the newest 200 tags",
    "POST /api/servers": "not necessary: each id of eight letters and digits receives mail; the "
    "name is forgotten after 30 days",
    "GET /api/servers/<id>/password": "the API key of the request, which is the SMTP password",
    "GET /api/analysis/spam/<id>": "the rules are the deductions of mailcheck's report, which is "
    "made for each request",
    "GET /api/analysis/deliverability/<id>": "`Timeout` is a result that could not be determined; "
    "`mx` is empty",
    "GET /api/usage/limits": "the limit of messages is that of the inbox",
    "GET /api/usage/transactions": "deleted and expired mail is not counted",
}
_REFUSED = (
    ("POST", "/api/messages", f"{SENDS_NOTHING}; send mail over SMTP"),
    ("POST", "/api/messages/<id>/forward", SENDS_NOTHING),
    ("POST", "/api/messages/<id>/reply", SENDS_NOTHING),
    ("POST", "/api/messages/<id>/screenshots", _NO_PREVIEWS),
    ("GET", "/api/files/screenshots/<id>", _NO_PREVIEWS),
    ("GET", "/api/screenshots/clients", _NO_PREVIEWS),
    ("GET", "/api/devices", _NO_DEVICES),
    ("POST", "/api/devices", _NO_DEVICES),
    ("DELETE", "/api/devices/<id>", _NO_DEVICES),
    ("GET", "/api/devices/<id>/otp", _NO_DEVICES),
    ("POST", "/api/devices/otp", _NO_DEVICES),
)
_MESSAGES, _SERVERS = "/api/messages", "/api/servers"
_ANALYSIS, _USAGE, _FILES = "/api/analysis", "/api/usage", "/api/files"
_ROUTES: Sequence[AnyRoute] = (
    Route("GET", _MESSAGES, Mailosaur.list_messages, ListMessages, _READ),
    Route("POST", f"{_MESSAGES}/search", Mailosaur.search, SearchMessages, _READ),
    Route("DELETE", _MESSAGES, Mailosaur.delete_messages, OfServer, _WRITE),
    Route("GET", f"{_MESSAGES}/<id>", Mailosaur.message, NoParameters, _READ),
    Route("DELETE", f"{_MESSAGES}/<id>", Mailosaur.delete_message, NoParameters, _BOTH),
    Route("GET", f"{_FILES}/attachments/<id>", Mailosaur.file, NoParameters, _READ),
    Route("GET", f"{_FILES}/email/<id>", Mailosaur.raw_message, NoParameters, _READ),
    Route("GET", _SERVERS, Mailosaur.servers, NoParameters, _READ),
    Route("POST", _SERVERS, Mailosaur.create_server, NamedServer, _WRITE),
    Route("GET", f"{_SERVERS}/<id>", Mailosaur.server, NoParameters, _READ),
    Route("PUT", f"{_SERVERS}/<id>", Mailosaur.rename_server, NamedServer, _WRITE),
    Route("DELETE", f"{_SERVERS}/<id>", Mailosaur.delete_server, NoParameters, _WRITE),
    Route("GET", f"{_SERVERS}/<id>/password", Mailosaur.password, NoParameters, _READ),
    Route("GET", f"{_ANALYSIS}/spam/<id>", Mailosaur.spam, NoParameters, _TESTS),
    Route(
        "GET", f"{_ANALYSIS}/deliverability/<id>", Mailosaur.deliverability, NoParameters, _TESTS
    ),
    Route("GET", f"{_USAGE}/limits", Mailosaur.limits, NoParameters, _READ),
    Route("GET", f"{_USAGE}/transactions", Mailosaur.days, NoParameters, _READ),
    # With 400, the clients print the reason.
    *(NotOffered(*one, 400) for one in _REFUSED),
)

MAILOSAUR = Facade(
    name="mailosaur",
    title="Mailosaur",
    base="/mailosaur",
    read_key=read_key,
    write_error=write_error,
    routes=with_notes(_ROUTES, _NOTES),
)

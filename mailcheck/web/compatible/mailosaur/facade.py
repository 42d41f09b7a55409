"""The declaration of Mailosaur's API."""

from twisted.web.server import Request

from mailcheck.api.shapes import Shape
from mailcheck.core.errors import ExpectedFailure, InvalidParameter
from mailcheck.core.rights import Scope
from mailcheck.web.compatible.facade import (
    SENDS_NOTHING,
    Facade,
    Like,
    NoParameters,
    NotOffered,
    Route,
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

MAILOSAUR = Facade(
    name="mailosaur",
    title="Mailosaur",
    base="/mailosaur",
    read_key=read_key,
    write_error=write_error,
    routes=(
        Route(
            "GET",
            "/api/messages",
            Mailosaur.list_messages,
            ListMessages,
            _READ,
            Like.CLOSE,
            "`to` is the recipient of the envelope; `cc` and `bcc` are empty in lists",
        ),
        Route(
            "POST",
            "/api/messages/search",
            Mailosaur.search,
            SearchMessages,
            _READ,
            Like.CLOSE,
            "held until mail arrives; `sentTo` is the recipient of the envelope, and `body` is "
            "searched in the text, or in the words of the HTML if there is no text",
        ),
        Route("DELETE", "/api/messages", Mailosaur.delete_messages, OfServer, _WRITE),
        Route(
            "GET",
            "/api/messages/<id>",
            Mailosaur.message,
            NoParameters,
            _READ,
            Like.CLOSE,
            "mail to several addresses of a server is several messages",
        ),
        Route("DELETE", "/api/messages/<id>", Mailosaur.delete_message, NoParameters, _BOTH),
        NotOffered("POST", "/api/messages", f"{SENDS_NOTHING}; send mail over SMTP", 400),
        NotOffered("POST", "/api/messages/<id>/forward", SENDS_NOTHING, 400),
        NotOffered("POST", "/api/messages/<id>/reply", SENDS_NOTHING, 400),
        NotOffered("POST", "/api/messages/<id>/screenshots", _NO_PREVIEWS, 400),
        Route("GET", "/api/files/attachments/<id>", Mailosaur.file, NoParameters, _READ),
        Route("GET", "/api/files/email/<id>", Mailosaur.raw_message, NoParameters, _READ),
        NotOffered("GET", "/api/files/screenshots/<id>", _NO_PREVIEWS, 400),
        NotOffered("GET", "/api/screenshots/clients", _NO_PREVIEWS, 400),
        Route(
            "GET",
            "/api/servers",
            Mailosaur.servers,
            NoParameters,
            _READ,
            Like.CLOSE,
            "the servers with mail among the newest 200 tags",
        ),
        Route(
            "POST",
            "/api/servers",
            Mailosaur.create_server,
            NamedServer,
            _WRITE,
            Like.CLOSE,
            "not necessary: each id of eight letters and digits receives mail; the name is "
            "forgotten after 30 days",
        ),
        Route("GET", "/api/servers/<id>", Mailosaur.server, NoParameters, _READ),
        Route("PUT", "/api/servers/<id>", Mailosaur.rename_server, NamedServer, _WRITE),
        Route("DELETE", "/api/servers/<id>", Mailosaur.delete_server, NoParameters, _WRITE),
        Route(
            "GET",
            "/api/servers/<id>/password",
            Mailosaur.password,
            NoParameters,
            _READ,
            Like.CLOSE,
            "the API key of the request, which is the password for SMTP",
        ),
        Route(
            "GET",
            "/api/analysis/spam/<id>",
            Mailosaur.spam,
            NoParameters,
            _TESTS,
            Like.CLOSE,
            "the rules are the deductions of mailcheck's report, which is made for each request",
        ),
        Route(
            "GET",
            "/api/analysis/deliverability/<id>",
            Mailosaur.deliverability,
            NoParameters,
            _TESTS,
            Like.CLOSE,
            "`Timeout` is a result that could not be determined; `mx` is empty",
        ),
        Route(
            "GET",
            "/api/usage/limits",
            Mailosaur.limits,
            NoParameters,
            _READ,
            Like.CLOSE,
            "the limit of messages is that of the inbox",
        ),
        Route(
            "GET",
            "/api/usage/transactions",
            Mailosaur.days,
            NoParameters,
            _READ,
            Like.CLOSE,
            "deleted and expired mail is not counted",
        ),
        NotOffered("GET", "/api/devices", _NO_DEVICES, 400),
        NotOffered("POST", "/api/devices", _NO_DEVICES, 400),
        NotOffered("DELETE", "/api/devices/<id>", _NO_DEVICES, 400),
        NotOffered("GET", "/api/devices/<id>/otp", _NO_DEVICES, 400),
        NotOffered("POST", "/api/devices/otp", _NO_DEVICES, 400),
    ),
)

"""Every request gets an answer: a reply, an expected failure, or a bland 500 with a reference."""

import uuid
from collections.abc import Awaitable, Callable

from twisted.internet.defer import CancelledError
from twisted.logger import Logger
from twisted.web.server import Request
from werkzeug.exceptions import MethodNotAllowed

from mailcheck.core.errors import ExpectedFailure
from mailcheck.web.site.connection import PacedRequest
from mailcheck.web.site.errors import CRASHED, NOWHERE, WRONG_METHOD
from mailcheck.web.site.replies import Reply, error_reply, json_reply, reply_to_failure, write_reply
from mailcheck.web.site.request_urls import shown_path

_log = Logger()

MAX_SHOWN = 200
"""Characters of a wrong path that an error repeats."""

MoreHeaders = dict[str, str]


async def answer(request: Request, handle: Callable[[MoreHeaders], Awaitable[Reply]]) -> bytes:
    """Run a handler and write what comes of it; gives the body.

    The handler may put headers into the dictionary that it is given: they are
    sent whether it ends well or not.
    """
    headers: MoreHeaders = {}
    try:
        reply = await handle(headers)
    except CancelledError:
        return b""  # the client has gone
    except ExpectedFailure as failure:
        reply = reply_to_failure(failure)
    except Exception:
        reply = reply_to_crash(request)
    return write_reply(request, reply, headers)


def reply_to_wrong_path(request: Request, problem: BaseException | None) -> Reply:
    """Answer a path that leads nowhere, or a method that it does not take."""
    path = request.path.decode("ascii", "replace")
    path = path if len(path) <= MAX_SHOWN else path[:MAX_SHOWN] + "..."
    if isinstance(problem, MethodNotAllowed):
        allowed = ", ".join(sorted(problem.valid_methods or ()))
        method = request.method.decode("ascii", "replace")
        return error_reply(
            WRONG_METHOD, f"{path} takes {allowed}, not {method}", {"Allow": allowed}
        )
    return error_reply(NOWHERE, f"there is nothing at {path}")


def reply_to_crash(request: Request) -> Reply:
    """Answer for a fault of ours, and log it under a reference that the answer repeats."""
    reference = uuid.uuid4().hex[:12]
    _log.failure(
        "request {method} {path} failed, reference {reference}",
        method=request.method.decode("ascii", "replace"),
        path=shown_path(request.path),
        reference=reference,
    )
    if isinstance(request, PacedRequest):
        request.reference = reference
    error = "the service failed; the cause is in its log under the reference"
    return json_reply({"error": error, "reference": reference}, CRASHED)

"""Which HTTP status each expected failure becomes. The only place that says so."""

from mailcheck.core.errors import (
    AttachmentNotFound,
    ExpectedFailure,
    InvalidCredentials,
    InvalidParameter,
    LimitExceeded,
    MessageNotFound,
    ShareNotFound,
    ShuttingDown,
    StoreUnavailable,
    WaitInterrupted,
)
from mailcheck.web.replies import Reply, json_reply

STATUSES: dict[type[ExpectedFailure], int] = {
    InvalidParameter: 400,
    InvalidCredentials: 401,
    MessageNotFound: 404,
    AttachmentNotFound: 404,
    ShareNotFound: 404,
    LimitExceeded: 429,
    WaitInterrupted: 503,
    ShuttingDown: 503,
    StoreUnavailable: 503,
}

TRY_AGAIN = 2
"""Seconds after which a request that met a fault of ours is worth repeating."""


def reply_to_failure(failure: ExpectedFailure) -> Reply:
    """Render an expected failure; one that is missing in the table is our own mistake."""
    status = next((status for kind, status in STATUSES.items() if isinstance(failure, kind)), None)
    if status is None:
        raise failure
    body = {"error": str(failure)}
    headers: dict[str, str] = {}
    if isinstance(failure, LimitExceeded):
        headers["Retry-After"] = str(failure.retry_after)
    if status == 503:
        headers["Retry-After"] = str(TRY_AGAIN)
    if status == 401:
        headers["WWW-Authenticate"] = "Bearer"
    if isinstance(failure, WaitInterrupted) and failure.cursor is not None:
        body["cursor"] = failure.cursor
    return json_reply(body, status, headers)

"""Which HTTP status each expected failure becomes. The only place that says so."""

from mailcheck.core.errors import (
    AccountNameTaken,
    AttachmentNotFound,
    DeliverabilityTestNotFound,
    ExpectedFailure,
    FormExpired,
    InvalidCredentials,
    InvalidParameter,
    InvitationInvalid,
    KeyNotFound,
    LimitExceeded,
    MessageNotFound,
    NoMailYet,
    NotOperator,
    Overloaded,
    RegistrationClosed,
    ShareNotFound,
    ShuttingDown,
    SignInFailed,
    StoreUnavailable,
    TooManyKeys,
    WaitInterrupted,
)
from mailcheck.web.site.replies import Reply, json_reply

STATUSES: dict[type[ExpectedFailure], int] = {
    InvalidParameter: 400,
    InvalidCredentials: 401,
    SignInFailed: 403,
    RegistrationClosed: 403,
    InvitationInvalid: 403,
    FormExpired: 403,
    NotOperator: 403,
    MessageNotFound: 404,
    AttachmentNotFound: 404,
    DeliverabilityTestNotFound: 404,
    NoMailYet: 400,
    ShareNotFound: 404,
    KeyNotFound: 404,
    AccountNameTaken: 409,
    TooManyKeys: 409,
    LimitExceeded: 429,
    WaitInterrupted: 503,
    ShuttingDown: 503,
    StoreUnavailable: 503,
    Overloaded: 503,
}

TRY_AGAIN = 2
"""Seconds after which a request that met a fault of ours is worth repeating."""


def reply_to_failure(failure: ExpectedFailure) -> Reply:
    """Render an expected failure; one that is missing in the table is our own mistake."""
    status = status_of(failure)
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


def status_of(failure: ExpectedFailure) -> int:
    """Give the status of an expected failure; one that is missing in the table is raised."""
    status = next((status for kind, status in STATUSES.items() if isinstance(failure, kind)), None)
    if status is None:
        raise failure
    return status

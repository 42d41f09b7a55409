"""Which HTTP status an error is. The only place that says so.

What a client of MCP is told of its tools' failures stands in ``web/mcp/dispatch.py``,
and which status the protocol wants for an error of JSON-RPC in ``web/mcp/protocol_modes.py``.
"""

from mailcheck.core.errors import (
    AccountNameTaken,
    AlertNotFound,
    AttachmentNotFound,
    DeliverabilityTestNotFound,
    ExpectedFailure,
    FaultMet,
    FormExpired,
    InboxFull,
    InvalidCredentials,
    InvalidParameter,
    InvitationInvalid,
    KeyNotFound,
    LimitExceeded,
    MessageNotFound,
    NoMailYet,
    NotOperator,
    OutOfSpace,
    Overloaded,
    RegistrationClosed,
    ReportBusy,
    ReportNotFound,
    ReportRefused,
    ShareNotFound,
    ShuttingDown,
    SignInFailed,
    StoreUnavailable,
    TooManyKeys,
    TooManyWatches,
    TooManyWebhooks,
    WaitInterrupted,
    WatchBusy,
    WatchExists,
    WatchNotFound,
    WebhookEnded,
    WebhookNotFound,
)

UNAUTHORIZED = 401
"""Comes with ``WWW-Authenticate``: how to send a key."""

SERVICE_UNAVAILABLE = 503
"""Comes with ``Retry-After``: the same request works again in a moment."""

STATUSES: dict[type[ExpectedFailure], int] = {
    InvalidParameter: 400,
    InvalidCredentials: UNAUTHORIZED,
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
    WebhookNotFound: 404,
    WatchNotFound: 404,
    AlertNotFound: 404,
    AccountNameTaken: 409,
    TooManyKeys: 409,
    TooManyWebhooks: 409,
    WebhookEnded: 409,
    TooManyWatches: 409,
    WatchExists: 409,
    WatchBusy: 409,
    ReportNotFound: 404,
    ReportBusy: 409,
    FaultMet: 409,
    ReportRefused: 400,
    InboxFull: 409,
    LimitExceeded: 429,
    WaitInterrupted: SERVICE_UNAVAILABLE,
    ShuttingDown: SERVICE_UNAVAILABLE,
    StoreUnavailable: SERVICE_UNAVAILABLE,
    Overloaded: SERVICE_UNAVAILABLE,
    OutOfSpace: SERVICE_UNAVAILABLE,
}

# What no exception tells: conditions of HTTP itself, which no operation knows.

BAD_REQUEST = 400
"""What came over the connection is none."""

NOT_FOUND = 404
"""A path that leads nowhere, or names a file that there is not."""

METHOD_NOT_ALLOWED = 405
"""The path does not take the method; ``Allow`` lists those that it takes."""

NOT_ACCEPTABLE = 406
"""The client takes no answer of the only kind there is."""

CONTENT_TOO_LARGE = 413
"""The body of the request is longer than is read."""

UNSUPPORTED_MEDIA_TYPE = 415
"""The body of the request is of a kind that is not read."""

FORBIDDEN_ORIGIN = 403
"""A page of another site asks, in somebody's browser."""

NOT_SIGNED_IN = 401
"""Nobody is signed in, and what asks is no person who could be led to do so."""

INTERNAL_SERVER_ERROR = 500
"""A fault of ours; the answer names the reference under which the log tells it."""

NOT_READY = SERVICE_UNAVAILABLE
"""The store does not answer."""

BUFFERS_FULL = SERVICE_UNAVAILABLE
"""The client has not read what it was sent before, or all clients together have not."""

TOO_MANY_CONNECTIONS = SERVICE_UNAVAILABLE
"""There is no connection left for the client."""

# And answers that hold more than an error.

WAIT_TIMED_OUT = 408
"""What was waited for has not come in time; the answer says what has, and where to go on."""

UNEXPECTED_MESSAGE = 409
"""A message came where the client wants to be told that none does; the answer holds it."""

UNDETERMINED = 500
"""A check could not find out what it is asked for; the answer holds the part that it knows."""

RETRY_AFTER_SECONDS = 2
"""Seconds after which a request that met a fault of ours is worth repeating."""

ERRORS = range(400, 600)
"""All statuses that are no success (RFC 9110 15.5, 15.6)."""

SERVER_ERRORS = range(500, 600)
"""Those of them that say that the fault is ours (RFC 9110 15.6)."""


def status_of(failure: ExpectedFailure) -> int:
    """Give the status of an expected failure; one that is missing in the table is raised."""
    status = next((status for kind, status in STATUSES.items() if isinstance(failure, kind)), None)
    if status is None:
        raise failure
    return status

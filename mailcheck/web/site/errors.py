"""The HTTP statuses of errors. All of them are defined here, with two exceptions.

The messages about failures of MCP tools are in ``web/mcp/dispatch.py``. The statuses that the
protocol requires for JSON-RPC errors are in ``web/mcp/protocol_modes.py``.
"""

from mailcheck.core.errors import (
    AccountDisabled,
    AccountIsOperator,
    AccountNameTaken,
    AccountNotFound,
    AlertNotFound,
    AttachmentNotFound,
    DeliverabilityTestNotFound,
    ExpectedFailure,
    FaultMet,
    FormExpired,
    IdentityTaken,
    InboxDisabled,
    InboxFull,
    InvalidCredentials,
    InvalidParameter,
    InvitationInvalid,
    KeyNotFound,
    LimitExceeded,
    MemberNotFound,
    MessageNotFound,
    NoMailYet,
    NotOperator,
    NotPermitted,
    OnlyOwner,
    OutOfSpace,
    Overloaded,
    PageNotFound,
    PasskeyNeeded,
    RegistrationClosed,
    ReportBusy,
    ReportNotFound,
    ReportRefused,
    ShareNotFound,
    ShuttingDown,
    SignInFailed,
    SignInUnavailable,
    StoreUnavailable,
    TooManyDecisions,
    TooManyKeys,
    TooManyProjects,
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
"""Sent with ``WWW-Authenticate``, which names the authentication scheme."""

SERVICE_UNAVAILABLE = 503
"""Sent with ``Retry-After``. The same request can succeed a moment later."""

STATUSES: dict[type[ExpectedFailure], int] = {
    InvalidParameter: 400,
    InvalidCredentials: UNAUTHORIZED,
    NotPermitted: 403,
    SignInFailed: 403,
    PasskeyNeeded: 403,
    RegistrationClosed: 403,
    InvitationInvalid: 403,
    FormExpired: 403,
    NotOperator: 403,
    MessageNotFound: 404,
    AttachmentNotFound: 404,
    PageNotFound: 404,
    DeliverabilityTestNotFound: 404,
    NoMailYet: 400,
    ShareNotFound: 404,
    KeyNotFound: 404,
    WebhookNotFound: 404,
    WatchNotFound: 404,
    AlertNotFound: 404,
    AccountNameTaken: 409,
    IdentityTaken: 409,
    SignInUnavailable: SERVICE_UNAVAILABLE,
    AccountNotFound: 404,
    AccountDisabled: 403,
    AccountIsOperator: 409,
    InboxDisabled: 409,
    OnlyOwner: 409,
    MemberNotFound: 404,
    TooManyProjects: 409,
    TooManyKeys: 409,
    TooManyWebhooks: 409,
    WebhookEnded: 409,
    TooManyDecisions: 409,
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

# Conditions of HTTP that operations do not know, so they have no exception.

BAD_REQUEST = 400
"""The data is not a valid HTTP request."""

NOT_FOUND = 404
"""The path, or the file that it names, does not exist."""

METHOD_NOT_ALLOWED = 405
"""The path does not support the method. ``Allow`` lists the supported methods."""

NOT_ACCEPTABLE = 406
"""The client does not accept the only available media type."""

CONTENT_TOO_LARGE = 413
"""The request body exceeds the maximum."""

UNSUPPORTED_MEDIA_TYPE = 415
"""The media type of the request body is not supported."""

INSUFFICIENT_SCOPE = 403
"""An OAuth client may ask the person for more scopes (RFC 6750 3.1)."""

CONFIRMATION_NEEDED = 403
"""The person signed in too long ago for an action, and is asked to confirm who they are."""

FORBIDDEN_ORIGIN = 403
"""A page of another site sent the request in a browser."""

NOT_SIGNED_IN = 401
"""A script or program sent a request without a valid session, so it gets no redirect to sign in."""

INTERNAL_SERVER_ERROR = 500
"""An internal error. The response contains a reference to the cause in the log."""

NOT_READY = SERVICE_UNAVAILABLE
"""The store is unavailable."""

BUFFERS_FULL = SERVICE_UNAVAILABLE
"""Too much response data is buffered, for this client or in total."""

TOO_MANY_CONNECTIONS = SERVICE_UNAVAILABLE
"""The maximum number of connections is reached."""

# Statuses of responses that contain more than an error.

WAIT_TIMED_OUT = 408
"""A wait timed out. The response contains what did arrive, and how to continue."""

UNEXPECTED_MESSAGE = 409
"""A message arrived although none was expected. The response contains it."""

UNDETERMINED = 500
"""A check is undetermined. The response contains the known part of the result."""

RETRY_AFTER_SECONDS = 2
"""Seconds after which a request with a temporary failure may be repeated."""

ERRORS = range(400, 600)
"""All error statuses (RFC 9110 15.5, 15.6)."""

SERVER_ERRORS = range(500, 600)
"""The error statuses that are the fault of the service (RFC 9110 15.6)."""


def status_of(failure: ExpectedFailure) -> int:
    """Return the status of an expected failure, or raise the failure if it has none (a bug)."""
    status = next((status for kind, status in STATUSES.items() if isinstance(failure, kind)), None)
    if status is None:
        raise failure
    return status

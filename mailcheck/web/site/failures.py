"""The HTTP status of each failure: one table for all doors, and the names of all statuses.

A failure is looked up by its class, then by the classes that it inherits from: the nearest row
counts, so a new subclass always has a status. Conditions of HTTP itself, such as an unknown path,
are failures too. The statuses that the protocol requires for JSON-RPC errors are in
``web/mcp/protocol_modes.py``.
"""

from collections.abc import Mapping

from msgspec import Struct, field

from mailcheck.core import errors
from mailcheck.core.errors import ExpectedFailure, LimitExceeded, nearest
from mailcheck.core.oauth.grants import OAuthRefused
from mailcheck.core.signing_in.provisioning import (
    AlreadyProvisioned,
    ChangedMeanwhile,
    ProvisionedNotFound,
    ProvisioningRefused,
)
from mailcheck.operations.incidents import public_failure

BAD_REQUEST = 400
"""The request, or the data on the connection, is not valid."""

UNAUTHORIZED = 401
"""Sent with ``WWW-Authenticate``, which names the authentication scheme."""

FORBIDDEN = 403
"""The caller is known, and may not do this."""

NOT_FOUND = 404
"""The path, the object, or the file does not exist."""

METHOD_NOT_ALLOWED = 405
"""The path does not support the method. ``Allow`` lists the supported methods."""

NOT_ACCEPTABLE = 406
"""The client does not accept the only available media type."""

CONFLICT = 409
"""The request is valid, but the state of the account does not allow it."""

CONTENT_TOO_LARGE = 413
"""The request body exceeds the maximum."""

UNSUPPORTED_MEDIA_TYPE = 415
"""The media type of the request body is not supported."""

TOO_MANY_REQUESTS = 429
"""A limit is used up. ``Retry-After`` says when it ends."""

INTERNAL_SERVER_ERROR = 500
"""An internal error. The response contains a reference to the cause in the log."""

NOT_IMPLEMENTED = 501
"""mailcheck does not offer this part of the API of another product."""

BAD_GATEWAY = 502
"""Another server, such as the relay of released mail, rejected the request for good."""

SERVICE_UNAVAILABLE = 503
"""Sent with ``Retry-After``. The same request can succeed a moment later."""

INSUFFICIENT_SCOPE = FORBIDDEN
"""An OAuth client may ask the person for more scopes (RFC 6750 3.1)."""

CONFIRMATION_NEEDED = FORBIDDEN
"""The person signed in too long ago for an action, and is asked to confirm who they are."""

FORBIDDEN_ORIGIN = FORBIDDEN
"""A page of another site sent the request in a browser."""

NOT_SIGNED_IN = UNAUTHORIZED
"""A script or program sent a request without a valid session, so it gets no redirect to sign in."""

NOT_READY = SERVICE_UNAVAILABLE
"""The store is unavailable."""

BUFFERS_FULL = SERVICE_UNAVAILABLE
"""Too much response data is buffered, for this client or in total."""

TOO_MANY_CONNECTIONS = SERVICE_UNAVAILABLE
"""The maximum number of connections is reached."""

WAIT_TIMED_OUT = 408
"""A wait timed out. The response contains what did arrive, and how to continue."""

UNEXPECTED_MESSAGE = CONFLICT
"""A message arrived although none was expected. The response contains it."""

UNDETERMINED = INTERNAL_SERVER_ERROR
"""A check is undetermined. The response contains the known part of the result."""

RETRY_AFTER_SECONDS = 2
"""Seconds after which a request with a temporary failure may be repeated."""

ERRORS = range(400, 600)
"""All error statuses (RFC 9110 15.5, 15.6)."""

SERVER_ERRORS = range(500, 600)
"""The error statuses that are the fault of the service (RFC 9110 15.6)."""


class PathUnknown(ExpectedFailure):
    """No route has this path."""


class WrongMethod(ExpectedFailure):
    """The path does not support the method. ``allowed`` lists the supported ones."""

    def __init__(self, problem: str, allowed: str) -> None:
        super().__init__(problem)
        self.allowed = allowed


class BodyTooLarge(errors.MailTooLarge):
    """The body of a request has more bytes than the maximum of its path."""


class WrongMediaType(ExpectedFailure):
    """The route does not read bodies of this media type."""


class TimeIsUp(ExpectedFailure):
    """A wait with a timeout of its own has ended without its messages."""


class RefusedAsProduct(ExpectedFailure):
    """The request is refused as another product does, with the ``status`` its clients expect."""

    def __init__(self, problem: str, status: int = NOT_IMPLEMENTED) -> None:
        super().__init__(problem)
        self.status = status


class Crash(ExpectedFailure):
    """A bug. The message contains no details, and ``reference`` identifies the cause in the log."""


STATUSES: Mapping[type[ExpectedFailure], int] = {
    errors.InvalidParameter: BAD_REQUEST,
    errors.NoMailYet: BAD_REQUEST,
    errors.ReportRefused: BAD_REQUEST,
    errors.RecipientUnknown: BAD_REQUEST,
    OAuthRefused: BAD_REQUEST,
    ProvisioningRefused: BAD_REQUEST,
    errors.InvalidCredentials: UNAUTHORIZED,
    errors.NotPermitted: FORBIDDEN,
    errors.ReleaseOff: FORBIDDEN,
    errors.SignInFailed: FORBIDDEN,
    errors.PasskeyNeeded: FORBIDDEN,
    errors.RegistrationClosed: FORBIDDEN,
    errors.InvitationInvalid: FORBIDDEN,
    errors.FormExpired: FORBIDDEN,
    errors.NotOperator: FORBIDDEN,
    errors.AccountDisabled: FORBIDDEN,
    errors.MessageNotFound: NOT_FOUND,
    errors.AttachmentNotFound: NOT_FOUND,
    errors.PageNotFound: NOT_FOUND,
    errors.DeliverabilityTestNotFound: NOT_FOUND,
    errors.ShareNotFound: NOT_FOUND,
    errors.KeyNotFound: NOT_FOUND,
    errors.WebhookNotFound: NOT_FOUND,
    errors.InboundRouteNotFound: NOT_FOUND,
    errors.InboundMailNotFound: NOT_FOUND,
    errors.WatchNotFound: NOT_FOUND,
    errors.AlertNotFound: NOT_FOUND,
    errors.AccountNotFound: NOT_FOUND,
    errors.MemberNotFound: NOT_FOUND,
    errors.InvitationNotFound: NOT_FOUND,
    errors.ReportNotFound: NOT_FOUND,
    errors.ClientNotFound: NOT_FOUND,
    ProvisionedNotFound: NOT_FOUND,
    PathUnknown: NOT_FOUND,
    errors.AccountNameTaken: CONFLICT,
    errors.IdentityTaken: CONFLICT,
    AlreadyProvisioned: CONFLICT,
    ChangedMeanwhile: CONFLICT,
    errors.AccountIsOperator: CONFLICT,
    errors.InboxDisabled: CONFLICT,
    errors.OnlyOwner: CONFLICT,
    errors.TooManyProjects: CONFLICT,
    errors.TooManyInvitations: CONFLICT,
    errors.TooManyKeys: CONFLICT,
    errors.TooManyWebhooks: CONFLICT,
    errors.TooManyRoutes: CONFLICT,
    errors.WebhookEnded: CONFLICT,
    errors.TooManyDecisions: CONFLICT,
    errors.TooManyWatches: CONFLICT,
    errors.WatchExists: CONFLICT,
    errors.WatchBusy: CONFLICT,
    errors.ReportBusy: CONFLICT,
    errors.FaultMet: CONFLICT,
    errors.InboxFull: CONFLICT,
    errors.AddressUsed: CONFLICT,
    errors.RequestRepeated: CONFLICT,
    errors.MailTooLarge: CONTENT_TOO_LARGE,
    errors.LimitExceeded: TOO_MANY_REQUESTS,
    errors.RelayRejected: BAD_GATEWAY,
    errors.RelayUnavailable: SERVICE_UNAVAILABLE,
    errors.SignInUnavailable: SERVICE_UNAVAILABLE,
    errors.WaitInterrupted: SERVICE_UNAVAILABLE,
    errors.ShuttingDown: SERVICE_UNAVAILABLE,
    errors.StoreUnavailable: SERVICE_UNAVAILABLE,
    errors.Overloaded: SERVICE_UNAVAILABLE,
    errors.OutOfSpace: SERVICE_UNAVAILABLE,
    errors.OperatorMissing: SERVICE_UNAVAILABLE,
    errors.ConnectionDropped: SERVICE_UNAVAILABLE,
    WrongMethod: METHOD_NOT_ALLOWED,
    WrongMediaType: UNSUPPORTED_MEDIA_TYPE,
    TimeIsUp: WAIT_TIMED_OUT,
    Crash: INTERNAL_SERVER_ERROR,
    RefusedAsProduct: NOT_IMPLEMENTED,
    # The state of the service does not allow it. A test lists the classes that end here.
    ExpectedFailure: CONFLICT,
}


class Problem(Struct, frozen=True):
    """Why a request failed. Each door writes it in its own format.

    ``headers`` belong to every response with this problem.
    """

    status: int
    sentence: str
    failure: ExpectedFailure
    headers: Mapping[str, str] = field(default_factory=dict)

    @property
    def reference(self) -> str:
        """The reference of the cause in the log, or an empty text."""
        return self.failure.reference

    @property
    def parameter(self) -> str:
        """The name of the invalid parameter, or an empty text."""
        return self.failure.name if isinstance(self.failure, errors.InvalidParameter) else ""

    @property
    def retry_after(self) -> int | None:
        """The seconds until the request may succeed, if that is known."""
        seconds = self.headers.get("Retry-After")
        return None if seconds is None else int(seconds)


def status_of(failure: ExpectedFailure) -> int:
    """Return the status of an expected failure."""
    if isinstance(failure, RefusedAsProduct):
        return failure.status
    return nearest(failure, STATUSES) or CONFLICT


def problem_of(failure: ExpectedFailure, challenge: str = "Bearer") -> Problem:
    """Return the problem of a request that failed.

    :param challenge: the value of WWW-Authenticate of a request without a valid key.
    """
    status, failure = status_of(failure), public_failure(failure)
    headers: dict[str, str] = {}
    if isinstance(failure, LimitExceeded):
        headers["Retry-After"] = str(failure.retry_after)
    elif status == SERVICE_UNAVAILABLE:
        headers["Retry-After"] = str(RETRY_AFTER_SECONDS)
    if status == UNAUTHORIZED:
        headers["WWW-Authenticate"] = challenge
    if isinstance(failure, WrongMethod):
        headers["Allow"] = failure.allowed
    return Problem(status, str(failure), failure, headers)

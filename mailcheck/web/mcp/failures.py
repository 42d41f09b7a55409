"""What each expected failure becomes for an MCP client. The only place that says so."""

from collections.abc import Callable

from mailcheck.core.errors import (
    DeliverabilityTestNotFound,
    ExpectedFailure,
    InvalidCredentials,
    InvalidParameter,
    LimitExceeded,
    MessageNotFound,
    ShuttingDown,
    StoreUnavailable,
    WaitInterrupted,
    WatchNotFound,
)
from mailcheck.operations.incidents import shown
from mailcheck.web.mcp.json_rpc import RpcError
from mailcheck.web.site.errors import NOT_NOW, TRY_AGAIN, status_of


def _as_it_is(failure: ExpectedFailure) -> str:
    return str(failure)


def _again(failure: ExpectedFailure) -> str:
    return f"{failure}; the same call may work in {TRY_AGAIN} seconds"


def _again_from(failure: ExpectedFailure) -> str:
    cursor = failure.cursor if isinstance(failure, WaitInterrupted) else None
    return _again(failure) + (f": pass after={cursor}" if cursor else "")


TOOL_FAILURES: dict[type[ExpectedFailure], Callable[[ExpectedFailure], str]] = {
    # The model reads these sentences and can do better with its next call.
    InvalidParameter: _as_it_is,
    MessageNotFound: _as_it_is,
    DeliverabilityTestNotFound: _as_it_is,
    WatchNotFound: _as_it_is,
    WaitInterrupted: _again_from,
    ShuttingDown: _again,
    StoreUnavailable: _again,
}

REFUSALS = (InvalidCredentials, LimitExceeded, ShuttingDown, StoreUnavailable)
"""These are for the client: HTTP says them, as it does on the REST side."""


def explain_failure(failure: ExpectedFailure) -> str:
    """Say a tool's failure in a sentence for the model.

    :raises RpcError: it is the client's to deal with.
    """
    failure = shown(failure)
    for kind, explain in TOOL_FAILURES.items():
        if isinstance(failure, kind):
            return explain(failure)
    raise refuse(failure) from failure


def refuse(failure: ExpectedFailure) -> RpcError:
    """Turn a failure into the refusal of a request; one in no table is our own mistake."""
    if not isinstance(failure, REFUSALS):
        raise failure
    failure = shown(failure)
    status = status_of(failure)
    retry_after = failure.retry_after if isinstance(failure, LimitExceeded) else None
    if status == NOT_NOW:
        retry_after = TRY_AGAIN
    return RpcError(status, str(failure), retry_after=retry_after, reference=failure.reference)

"""The responses to failures, with the codes of RFC 9051 7.1 (RFC 5530)."""

from collections.abc import Mapping

from mailcheck.core.errors import (
    AccountDisabled,
    ExpectedFailure,
    InboxDisabled,
    InboxFull,
    InvalidCredentials,
    LimitExceeded,
    MailTooLarge,
    MessageNotFound,
    NotPermitted,
    OutOfSpace,
    Overloaded,
    ShuttingDown,
    StoreUnavailable,
    nearest,
)
from mailcheck.imap.fetching import UnknownEncoding
from mailcheck.imap.writing import response_text

_CODES: Mapping[type[ExpectedFailure], str] = {
    InvalidCredentials: "AUTHENTICATIONFAILED",
    AccountDisabled: "CONTACTADMIN",
    InboxDisabled: "CONTACTADMIN",
    NotPermitted: "NOPERM",
    LimitExceeded: "LIMIT",
    InboxFull: "OVERQUOTA",
    MailTooLarge: "TOOBIG",
    MessageNotFound: "EXPUNGEISSUED",
    Overloaded: "INUSE",
    OutOfSpace: "UNAVAILABLE",
    ShuttingDown: "UNAVAILABLE",
    StoreUnavailable: "UNAVAILABLE",
    ExpectedFailure: "",
}

_GONE = "a message has been deleted or has expired"


def refusal_of(failure: BaseException | None) -> bytes | None:
    """Return the response to a failure without its tag, or `None` if it is a bug."""
    if isinstance(failure, UnknownEncoding):
        return b"NO [UNKNOWN-CTE] the part has an unknown transfer encoding"
    code = nearest(failure, _CODES)
    if code is None:
        return None
    text = _GONE if isinstance(failure, MessageNotFound) else str(failure)
    return (f"NO [{code}] " if code else "NO ").encode("ascii") + response_text(text)

"""All SMTP replies: their texts, and the table of failures.

RFC 5321 4.2 defines the codes, RFC 3463 the enhanced codes. RFC 2034 requires an enhanced code
in all 2xx, 4xx and 5xx replies except to EHLO and HELO and in the greeting.
"""

import re
from collections.abc import Mapping

from mailcheck.core.errors import (
    AddressUsed,
    ExpectedFailure,
    FaultMet,
    InboxDisabled,
    InboxFull,
    InvalidCredentials,
    LimitExceeded,
    NotPermitted,
    OperatorMissing,
    OutOfSpace,
    Overloaded,
    RecipientUnknown,
    ShuttingDown,
    StoreUnavailable,
    nearest,
)
from mailcheck.core.identifiers import DeliveryId
from mailcheck.ports.mail_receiver import ReceiverReply

MAX_TEXT = 400  # octets: RFC 5321 4.5.3.1.5 allows 512 for a whole reply line

_UNPRINTABLE = re.compile(r"[^ -~]")

FailureTable = Mapping[type[ExpectedFailure], tuple[int, str]]
"""The code and enhanced code of each failure, looked up by `nearest`."""

FAILURES: FailureTable = {
    RecipientUnknown: (550, "5.1.1"),
    AddressUsed: (550, "5.2.1"),
    InboxDisabled: (550, "5.2.1"),
    InboxFull: (452, "4.2.2"),
    OutOfSpace: (452, "4.3.1"),
    OperatorMissing: (451, "4.3.5"),
    StoreUnavailable: (451, "4.3.0"),
    ShuttingDown: (451, "4.3.2"),
    ExpectedFailure: (451, "4.3.0"),
}

AUTH_FAILURES: FailureTable = {
    InvalidCredentials: (535, "5.7.8"),
    NotPermitted: (535, "5.7.8"),
    LimitExceeded: (454, "4.7.0"),
    Overloaded: (454, "4.7.0"),
    StoreUnavailable: (454, "4.7.0"),
    ShuttingDown: (454, "4.3.2"),
    ExpectedFailure: (454, "4.7.0"),
}


def reply(code: int, text: str, enhanced: str = "") -> bytes:
    """Return a reply of one line; characters that are not printable ASCII become ``?``."""
    head = f"{code} {enhanced}" if enhanced else str(code)
    return f"{head} {_UNPRINTABLE.sub('?', text[:MAX_TEXT])}\r\n".encode("ascii")


def delivered(delivery_id: DeliveryId) -> bytes:
    """Return the reply to a stored mail."""
    return f"250 2.0.0 OK, delivery {delivery_id}\r\n".encode("ascii")


def as_receiver(answer: ReceiverReply, delivery_id: DeliveryId) -> bytes:
    """Return the reply of a receiver to a stored mail, with a second line that says so."""
    head = f"{answer.enhanced} " if answer.enhanced else ""
    texts = (answer.text, f"{answer.note} Stored as delivery {delivery_id}")
    return reply_lines(
        answer.code, [head + _UNPRINTABLE.sub("?", text[:MAX_TEXT]) for text in texts]
    )


def reply_lines(code: int, lines: list[str]) -> bytes:
    """Return a reply of several lines (RFC 5321 4.2.1). The lines are ASCII."""
    *first, last = lines
    return "".join(f"{code}-{line}\r\n" for line in first).encode() + f"{code} {last}\r\n".encode()


def log_in_at(port: int) -> bytes:
    """Return the reply to AUTH on a port that offers none."""
    return reply(502, f"Clients log in on the submission port, {port}", "5.5.1")


def reply_to_failure(failure: BaseException | None, table: FailureTable) -> bytes | None:
    """Return the reply to an expected failure, or `None` for a bug."""
    if isinstance(failure, FaultMet):
        code, enhanced = failure.reply
        return reply(code, str(failure), enhanced)
    entry = nearest(failure, table)
    return None if entry is None else reply(entry[0], str(failure), entry[1])


GO_AHEAD = reply(354, "End data with <CR><LF>.<CR><LF>")
SENDER_OK = reply(250, "Sender OK", "2.1.0")
RECIPIENT_OK = reply(250, "Recipient OK", "2.1.5")
OK = reply(250, "OK", "2.0.0")
BYE = reply(221, "Bye", "2.0.0")
CANNOT_VERIFY = reply(252, "Cannot verify addresses; send a message instead", "2.5.0")
READY_FOR_TLS = reply(220, "Ready to start TLS", "2.0.0")
AUTHENTICATED = reply(235, "Authenticated", "2.7.0")

PRIVATE_ONLY = reply(
    554, "Only clients on this machine or in its private network may send mail here", "5.7.1"
)
TOO_MANY_CONNECTIONS = reply(421, "Too many connections, try again later", "4.7.0")
IDLE_TOO_LONG = reply(421, "Idle for too long; closed to make room for other clients", "4.4.2")
TOO_MANY_COMMANDS = reply(421, "Too many commands without a message", "4.7.0")
TOO_MANY_ERRORS = reply(421, "Too many errors", "4.7.0")
TOO_MANY_AUTH_FAILURES = reply(421, "Too many failed attempts to authenticate", "4.7.0")
TIMED_OUT = reply(421, "Timeout: no complete command or message in time", "4.4.2")
ACCESS_ENDED = reply(421, "The access has ended: authenticate again", "4.7.0")
SHUTTING_DOWN = reply(421, "Shutting down, try again in a moment", "4.3.2")

INTERNAL_ERROR = reply(421, "Internal error, try again later", "4.3.0")
LOCAL_ERROR = reply(451, "Internal error, try again later", "4.3.0")
TOO_MANY_RECIPIENTS = reply(
    452, "Too many recipients; send the message to the others separately", "4.5.3"
)
TOO_MANY_SLOW = reply(451, "Too many delayed replies for this inbox at the same time", "4.3.2")
TOO_MUCH_AT_ONCE = reply(452, "The server receives too much mail now, try again later", "4.3.1")
AUTH_UNAVAILABLE = reply(454, "Cannot authenticate now, try again later", "4.7.0")

UNKNOWN_COMMAND = reply(500, "Command not recognized", "5.5.1")
LINE_TOO_LONG = reply(500, "Line too long", "5.5.2")
AUTH_LINE_TOO_LONG = reply(500, "Line too long", "5.5.6")
BARE_LINE_ENDING = reply(500, "Lines must end with CRLF, without a bare CR or LF", "5.5.2")
NO_HTTP = reply(421, "This is an SMTP server, not a web server", "4.7.0")
NOT_IMPLEMENTED = reply(502, "Command not implemented", "5.5.1")
NO_ARGUMENT = reply(501, "This command takes no argument", "5.5.4")
BAD_HELO = reply(501, "Send the name of your host after EHLO: printable text, at most 255 octets")
BAD_BDAT = reply(501, "Syntax: BDAT size [LAST]", "5.5.4")
NOTHING_TO_VERIFY = reply(501, "Syntax: VRFY address", "5.5.4")
INPUT_BEFORE_TLS = reply(501, "Send no command after STARTTLS before its reply", "5.5.1")
BAD_AUTH_RESPONSE = reply(501, "Cannot decode the authentication response", "5.5.2")
AUTH_CANCELLED = reply(501, "Authentication cancelled", "5.7.0")
NO_MECHANISM = reply(501, "Syntax: AUTH PLAIN or AUTH LOGIN", "5.5.4")
UNKNOWN_MECHANISM = reply(504, "Mechanisms: PLAIN, LOGIN", "5.5.4")

HELO_FIRST = reply(503, "Send EHLO first", "5.5.1")
MAIL_IS_OPEN = reply(503, "A message is already in progress; send RSET first", "5.5.1")
MAIL_FIRST = reply(503, "Send MAIL first", "5.5.1")
BDAT_IS_OPEN = reply(503, "BDAT is in progress; finish with BDAT LAST or send RSET", "5.5.1")
BDAT_HAS_FAILED = reply(503, "BDAT failed; send RSET first", "5.5.1")
TLS_IS_ON = reply(503, "TLS is already active", "5.5.1")
IS_AUTHENTICATED = reply(503, "Already authenticated", "5.5.1")

AUTH_REQUIRED = reply(530, "Authentication required", "5.7.0")
TLS_REQUIRED = reply(538, "Encryption required for authentication", "5.7.11")
BAD_ATTRIBUTES = reply(501, "Unknown attribute or invalid value", "5.5.4")
NOT_AUTHORIZED = reply(550, "This command is not allowed for this client", "5.7.0")
BARE_CONTENT = reply(550, "Message contains a bare CR or a NUL", "5.6.0")
BARE_LINE_FEED = reply(
    550,
    "Message contains bare LF, lines must end in CRLF: use send_message or as_bytes(policy=SMTP)",
    "5.6.0",
)
"""Most often Python's ``sendmail`` was called with the bytes of a message."""
MESSAGE_TOO_LARGE = reply(552, "Message too large", "5.3.4")
NO_RECIPIENTS = reply(554, "No valid recipients", "5.5.1")

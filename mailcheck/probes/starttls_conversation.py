"""What is said to a mail host: EHLO, STARTTLS, a TLS handshake, QUIT (RFC 3207).

Never MAIL and never RCPT: who asks whether mailboxes exist ends on blocklists.
A host may stall, talk nonsense or talk for ever; what it says is read up to
`MAX_OCTETS`, judged by its reply codes, and never repeated to anybody.
"""

import re
from collections.abc import Callable

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import (
    IDelayedCall,
    IHandshakeListener,
    IReactorTime,
    ITLSTransport,
)
from twisted.internet.protocol import Protocol, connectionDone
from twisted.python.failure import Failure
from zope.interface import implementer

from mailcheck.checks.starttls import ProbeOutcome
from mailcheck.probes.observed_tls import ObservedTls

MAX_OCTETS = 65_536
"""That a host may say before encryption; a long EHLO reply has a thousand."""

CLOSING_GRACE = 2.0
"""Seconds that a host has to take our QUIT before it is hung up on."""

READY = 220
DONE = 250
UNKNOWN_COMMANDS = (500, 502)  # to EHLO: SMTP without extensions, RFC 5321 3.2
TLS_FAILED = (454, 500, 501, 502, 503, 504, 530, 550, 554)
"""Replies to STARTTLS by which a host that offers it says that it can't; others are moods."""

_REPLY_LINE = re.compile(rb"([2-5][0-9][0-9])(?:([ -])([^\r]*))?\r?", re.ASCII)
_KEYWORD = re.compile(rb"STARTTLS\s*", re.IGNORECASE)


@implementer(IHandshakeListener)
class StarttlsConversation(Protocol):
    """One probe of one host; ``outcome`` fires once, in the end or when it is hung up on."""

    transport: ITLSTransport

    def __init__(self, clock: IReactorTime, helo_name: str, tls: ObservedTls) -> None:
        self._clock = clock
        self._helo_name = helo_name
        self._tls = tls
        self._take_reply: Callable[[int, list[bytes]], None] = self._take_greeting
        self._unread = b""
        self._lines: list[bytes] = []
        self._octets = 0
        self._is_encrypting = False
        self._hang_up: IDelayedCall | None = None
        self.is_over = False
        self.outcome: Deferred[ProbeOutcome] = Deferred(lambda _: self._end())
        self.when_closed: Deferred[StarttlsConversation] = Deferred()

    def dataReceived(self, data: bytes) -> None:
        """Read replies; each is answered before the next is read."""
        self._octets += len(data)
        if self.is_over:
            return
        if self._octets > MAX_OCTETS:
            self._conclude(ProbeOutcome.NO_SMTP)
            return
        *lines, self._unread = (self._unread + data).split(b"\n")
        for number, line in enumerate(lines, 1):
            reply = _REPLY_LINE.fullmatch(line)
            if reply is None:
                self._conclude(ProbeOutcome.NO_SMTP)
                return
            self._lines.append(reply[3] or b"")
            if reply[2] != b"-":
                # What comes behind a whole reply was said out of turn, or slipped
                # in by somebody on the way, to be read as if it were encrypted.
                if number < len(lines) or self._unread:
                    self._conclude(ProbeOutcome.NO_SMTP)
                    return
                said, self._lines = self._lines, []
                self._take_reply(int(reply[1]), said)

    def handshakeCompleted(self) -> None:
        """Learn that the connection is encrypted."""
        self._conclude(ProbeOutcome.ENCRYPTED)

    def connectionLost(self, reason: Failure = connectionDone) -> None:
        """Learn that the host hung up, or the handshake failed."""
        if self._hang_up is not None and self._hang_up.active():
            self._hang_up.cancel()
        self._tell(ProbeOutcome.HANDSHAKE_FAILED if self._is_encrypting else ProbeOutcome.NO_SMTP)
        self.when_closed.callback(self)

    def abort(self) -> None:
        """Hang up at once."""
        self.transport.abortConnection()

    def _take_greeting(self, code: int, _: list[bytes]) -> None:
        if code == READY:
            self._take_reply = self._take_extensions
            self.transport.write(b"EHLO " + self._helo_name.encode("ascii") + b"\r\n")
        else:
            self._conclude(ProbeOutcome.TURNED_AWAY if code >= 400 else ProbeOutcome.NO_SMTP)

    def _take_extensions(self, code: int, lines: list[bytes]) -> None:
        if code == DONE and any(_KEYWORD.fullmatch(line) for line in lines[1:]):
            self._take_reply = self._take_readiness
            self.transport.write(b"STARTTLS\r\n")
        elif code == DONE or code in UNKNOWN_COMMANDS:
            self._conclude(ProbeOutcome.NOT_OFFERED)
        else:
            self._conclude(ProbeOutcome.TURNED_AWAY if code >= 400 else ProbeOutcome.NO_SMTP)

    def _take_readiness(self, code: int, _: list[bytes]) -> None:
        if code == READY:
            self._is_encrypting = True
            self.transport.startTLS(self._tls)
        elif code in TLS_FAILED:
            self._conclude(ProbeOutcome.HANDSHAKE_FAILED)
        else:
            self._conclude(ProbeOutcome.TURNED_AWAY if code >= 400 else ProbeOutcome.NO_SMTP)

    def _conclude(self, outcome: ProbeOutcome) -> None:
        self._tell(outcome)
        if outcome is ProbeOutcome.NO_SMTP:
            self.abort()
        else:
            self.transport.write(b"QUIT\r\n")
            self.transport.loseConnection()
            self._hang_up = self._clock.callLater(CLOSING_GRACE, self.abort)

    def _tell(self, outcome: ProbeOutcome) -> None:
        if not self.is_over:
            self.is_over = True
            self.outcome.callback(outcome)

    def _end(self) -> None:
        """Stop waiting for the outcome."""
        self.is_over = True
        self.abort()

"""SMTP connections, and the factory that counts and limits them."""

from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from functools import partial

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import (
    IAddress,
    IDelayedCall,
    IHandshakeListener,
    IOpenSSLContextFactory,
    IReactorTime,
)
from twisted.internet.protocol import connectionDone
from twisted.logger import Logger
from twisted.mail.smtp import SMTPFactory
from twisted.python.failure import Failure
from zope.interface import implementer

from mailcheck.connections.counting import OpenConnections, Rejection
from mailcheck.connections.lines import CommandError
from mailcheck.connections.policies import client_ip_of, is_in_networks
from mailcheck.connections.proxy_header import ProxyHeaderReader
from mailcheck.connections.receive_path import ReceivePath, ReceiveReplies
from mailcheck.core.accounts import Caller
from mailcheck.core.errors import ExpectedFailure
from mailcheck.core.identifiers import AccountId
from mailcheck.core.memory.client_limits import AMPLE
from mailcheck.core.network_addresses import is_local_client
from mailcheck.ports.mail_receiver import MailJournal, MailReceiver
from mailcheck.smtp import replies
from mailcheck.smtp.client import Client
from mailcheck.smtp.replies import FailureTable, reply_to_failure
from mailcheck.smtp.settings import SmtpSettings
from mailcheck.smtp.transaction import MemoryBudget, Transaction, Transcript

CONNECTING = b"(connecting)"
UNKNOWN = b"(unknown)"
"""Names in the journal for a connection without a command, and for an unknown command."""

FIRST_REJECTION_OCTET = ord("4")
"""First octet of the replies that reject something: this value or a larger one."""

REJECTIONS: Mapping[Rejection, bytes] = {
    Rejection.SHUTTING_DOWN: replies.SHUTTING_DOWN,
    Rejection.TOO_MANY: replies.TOO_MANY_CONNECTIONS,
}

Verb = Callable[["MailProtocol", bytes], None]
"""Runs one command with its argument. Raises `CommandError` to reject it."""


@implementer(IHandshakeListener)
class MailProtocol(ReceivePath):
    """One SMTP connection. The verbs use ``client``, ``transaction``, `reply` and so on."""

    log = Logger()
    own_replies = ReceiveReplies(
        timed_out=replies.TIMED_OUT,
        shutting_down=replies.SHUTTING_DOWN,
        bare_line_ending=replies.BARE_LINE_ENDING,
        line_too_long=replies.LINE_TOO_LONG,
        internal_error=replies.INTERNAL_ERROR,
    )

    def __init__(
        self,
        receiver: MailReceiver,
        settings: SmtpSettings,
        clock: IReactorTime,
        verbs: Mapping[bytes, Verb],
        connections: "MailFactory",
    ) -> None:
        super().__init__(settings.limits.of_lines, clock)
        self.limits = settings.limits
        self.transcript = Transcript()
        self.receiver = receiver
        self.settings = settings
        self.client = Client("")
        self.transaction: Transaction | None = None
        self.memory = connections.memory
        self.slow_replies = connections.slow_replies
        self.commands = 0
        self.auth_failures = 0
        self._slowed_refusals = 0
        self._errors = 0
        self._verbs = verbs
        self._connections = connections
        self._command = CONNECTING
        self.journal = connections.journal
        self._delayed: IDelayedCall | None = None
        self._watch: AbstractContextManager[None] = nullcontext()
        self._when_sent: Deferred[None] | None = None

    # Methods that Twisted calls.

    def connectionMade(self) -> None:
        """Greet the client."""
        super().connectionMade()
        assert self.transport is not None
        self.client = Client(client_ip_of(getattr(self.transport.getPeer(), "host", "")))
        if is_in_networks(self.client.ip, self.settings.proxy_protocol_from):
            header = ProxyHeaderReader()
            self._watchdog.watch(self.limits.proxy_header)
            self.read(
                header,
                self.clock.seconds() + self.limits.proxy_header,
                partial(self._trust_proxy_header, header),
            )
        else:
            self.greet()

    def handshakeCompleted(self) -> None:
        """Record the TLS version and cipher."""
        self.client.tls = self._wire.tls_facts()

    def connectionLost(self, reason: Failure = connectionDone) -> None:
        """Release everything; a delivery in progress continues."""
        super().connectionLost(reason)
        if self._delayed is not None and self._delayed.active():
            self._delayed.cancel()
            self._end_delay()
        self.end_transaction()
        self._watch.__exit__(None, None, None)
        self._connections.open.remove(self)

    def _trust_proxy_header(self, header: ProxyHeaderReader) -> None:
        """Take the client's address from the PROXY header; disconnect after an invalid header."""
        if header.problem is not None:
            self.log.warn(
                "PROXY header from {proxy_ip}: {problem}",
                proxy_ip=self.client.ip,
                problem=header.problem,
            )
            self.abort()
            return
        if header.client_ip is not None:
            self.client = Client(client_ip_of(header.client_ip))
        self.await_first_command()
        self.greet()

    # Methods for the verbs.

    def greet(self) -> None:
        """Send the greeting or reject the client; called again after XCLIENT."""
        client_ip = self.client.claimed_ip
        if self.settings.is_private and not is_local_client(client_ip):
            self.close_with(replies.PRIVATE_ONLY)
            return
        rejection = self._connections.open.admit(self, client_ip)
        if rejection is not None:
            # Close at once, so that rejected clients do not pile up.
            self.close_with(REJECTIONS[rejection])
            return
        self.reply(replies.reply(220, f"{self.settings.host_name} ESMTP mailcheck"))

    def sign_in(self, caller: Caller) -> None:
        """Record who has authenticated. The connection ends with the access of the caller."""

        def end(_: ExpectedFailure) -> None:
            self.close_with(replies.ACCESS_ENDED)

        self._watch.__exit__(None, None, None)
        self._watch = self.receiver.watched(caller, end)
        self._watch.__enter__()
        self.client.signed_in = caller

    def end_transaction(self) -> None:
        """Drop the current transaction, if any, and prepare for the next one."""
        transaction, self.transaction = self.transaction, None
        if transaction is not None:
            if transaction.message is not None:
                transaction.message.discard()
            self.receiver.traffic.note_end(transaction)
        self.client.forwarded = None

    def reset_error_count(self) -> None:
        """Reset the counts of commands and errors, so that a client that sends mail may stay."""
        self.commands = 0
        self._errors = 0

    def reject(self, line: bytes) -> None:
        """Reply to an invalid command; close the connection after too many of them."""
        self._errors += 1
        if self._errors >= self.limits.errors:
            self.half_close_with(replies.TOO_MANY_ERRORS)
        else:
            self.reply(line)

    def reject_slowly(self, line: bytes, *, is_guess: bool = False) -> Deferred[None] | None:
        """Reply to a rejected recipient or message, possibly after a delay.

        A client that guesses addresses waits longer after each guess. So does a client that does
        not wait for replies, since each rejection may add a row to the store.

        :return: a Deferred that fires when a delayed reply was sent, or `None`.
        """
        if is_guess or self.has_more_input:
            self._slowed_refusals += 1
            excess = self._slowed_refusals - self.limits.free_refusals
            if excess > 0:
                return self.reply_after(min(2.0 ** (excess - 1), self.limits.longest_delay), line)
        self.reply(line)
        return None

    def reply_after(self, seconds: float, line: bytes) -> Deferred[None]:
        """Send a reply later; fires when it was sent or the client has disconnected."""
        done: Deferred[None] = Deferred()
        self._when_sent = done

        def send() -> None:
            self.reply(line)
            self._end_delay()

        self._delayed = self.clock.callLater(seconds, send)
        return done

    @property
    def is_reply_delayed(self) -> bool:
        """Whether the only thing left to do for the client is to send a delayed reply."""
        return self.transaction is None and self._delayed is not None and self._delayed.active()

    @property
    def is_displaceable(self) -> bool:
        """Whether no mail is in progress. A delayed reply can be sent at once."""
        return self.is_reply_delayed or (self.is_idle and self.transaction is None)

    def displace(self) -> None:
        """Close the connection for another client, after the delayed reply."""
        if self.is_reply_delayed:
            self.drain(replies.IDLE_TOO_LONG)
        else:
            self.close_with(replies.IDLE_TOO_LONG)

    def drain(self, farewell: bytes = b"") -> None:
        """Close the connection as soon as no mail is in progress; send a delayed reply now."""
        super().drain(farewell)
        if self._delayed is not None and self._delayed.active():
            self._delayed.reset(0)

    def _end_delay(self) -> None:
        done, self._when_sent = self._when_sent, None
        if done is not None:
            done.callback(None)

    def failure_reply(
        self,
        failure: Failure,
        table: FailureTable = replies.FAILURES,
        fault: bytes = replies.LOCAL_ERROR,
    ) -> bytes:
        """Return the reply to a failure; log a bug."""
        line = reply_to_failure(failure.value, table)
        if line is None:
            self.log_failure(failure)
        return line or fault

    def note_reply(self, line: bytes) -> None:
        """Record a reply in the transcript, and a rejection in the journal."""
        if line[0] >= FIRST_REJECTION_OCTET:
            self.journal.note_refusal(self.client.claimed_ip, self._command.decode("ascii"), line)
        self.transcript.record_reply(line)

    def log_failure(self, failure: Failure) -> None:
        """Log an unexpected failure."""
        self.log.failure("Failure while serving {client_ip}", failure, client_ip=self.client.ip)

    def start_tls(self, certificate: IOpenSSLContextFactory) -> None:
        """Start TLS; the client must begin again with EHLO (RFC 3207 4.2)."""
        self.end_transaction()
        self.client.reset()
        super().start_tls(certificate)

    def dispatch(self, line: bytes) -> None:
        """Run a command line, or raise `CommandError`."""
        if self._command is CONNECTING:
            self.await_commands()
        self.commands += 1
        self._connections.open.note_activity(self)
        if self.commands > self.limits.commands:
            self.half_close_with(replies.TOO_MANY_COMMANDS)
            return
        verb, _, argument = line.partition(b" ")
        verb = verb.upper()
        run = self._verbs.get(verb)
        if run is None:
            self._command = UNKNOWN
            # The line is not recorded: it may be a password sent after a rejected AUTH.
            self.transcript.record_command(verb, b"(an unknown command)")
            raise CommandError(replies.UNKNOWN_COMMAND)
        self._command = verb
        self.transcript.record_command(verb, line)
        run(self, argument.strip(b" \t"))


def require_no_argument(argument: bytes) -> None:
    """Reject an argument of a command that takes none (RFC 5321 4.1.1).

    :raises CommandError: there is an argument (501).
    """
    if argument:
        raise CommandError(replies.NO_ARGUMENT)


class MailFactory(SMTPFactory):
    """Creates the connections of one port and limits their number.

    ``memory`` is shared with other ports; by default the port has its own.

    ``verbs`` are the commands of these connections. The factory works with any endpoint. To stop,
    close the port and then call `drain`.
    """

    noisy = False

    def __init__(
        self,
        verbs: Mapping[bytes, Verb],
        receiver: MailReceiver,
        settings: SmtpSettings,
        clock: IReactorTime,
        journal: MailJournal,
        memory: MemoryBudget | None = None,
    ) -> None:
        self._verbs = verbs
        self.domain = settings.host_name.encode("ascii")
        self._receiver = receiver
        self.settings = settings
        self._clock = clock
        self.journal = journal
        self.memory = memory or MemoryBudget(AMPLE.incoming)
        self.slow_replies: Counter[AccountId] = Counter()
        self.open: OpenConnections[MailProtocol] = OpenConnections(
            settings.limits.of_connections, clock
        )

    def change(self, settings: SmtpSettings) -> None:
        """Use other settings for new connections."""
        self.settings = settings
        self.open.limits = settings.limits.of_connections

    @property
    def connection_count(self) -> int:
        """Number of connected clients."""
        return len(self.open)

    @property
    def is_crowded(self) -> bool:
        """Whether the next connection cannot even be rejected."""
        return self.open.is_crowded

    def buildProtocol(self, addr: IAddress | None) -> MailProtocol:
        """Return the protocol of a new connection."""
        connection = MailProtocol(self._receiver, self.settings, self._clock, self._verbs, self)
        connection.factory = self
        self.open.add(connection)
        return connection

    def drain(self, grace: float) -> Deferred[None]:
        """Close all connections: idle ones at once, the others after their mail.

        Fires when all connections are closed. Those left after ``grace`` seconds are aborted.
        """
        return self.open.drain(grace)

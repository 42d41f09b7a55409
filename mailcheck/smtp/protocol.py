"""SMTP connections, and the factory that counts and limits them."""

from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import (
    IDelayedCall,
    IHandshakeListener,
    IOpenSSLContextFactory,
    IReactorTime,
)
from twisted.internet.protocol import connectionDone
from twisted.python.failure import Failure
from zope.interface import implementer

from mailcheck.connections.counting import Rejection
from mailcheck.connections.lines import CommandError
from mailcheck.connections.receive_path import ReceiveReplies
from mailcheck.connections.server import ServerConnection, ServerFactory
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
class MailProtocol(ServerConnection):
    """One SMTP connection. The verbs use ``client``, ``transaction``, `reply` and so on."""

    settings: SmtpSettings
    own_replies = ReceiveReplies(
        timed_out=replies.TIMED_OUT,
        shutting_down=replies.SHUTTING_DOWN,
        bare_line_ending=replies.BARE_LINE_ENDING,
        line_too_long=replies.LINE_TOO_LONG,
        internal_error=replies.INTERNAL_ERROR,
    )

    def __init__(self, factory: "MailFactory") -> None:
        super().__init__(factory.settings, factory.clock, factory.open)
        self.limits = self.settings.limits
        self.transcript = Transcript()
        self.receiver = factory.receiver
        self.client = Client("")
        self.transaction: Transaction | None = None
        self.memory = factory.memory
        self.slow_replies = factory.slow_replies
        self.commands = 0
        self.auth_failures = 0
        self._slowed_refusals = 0
        self._verbs = factory.verbs
        self._command = CONNECTING
        self.journal = factory.journal
        self._delayed: IDelayedCall | None = None
        self._watch: AbstractContextManager[None] = nullcontext()
        self._when_sent: Deferred[None] | None = None

    # Methods that Twisted calls.

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

    def begin(self) -> None:
        """Greet or reject the client, whose address is known."""
        self.client = Client(self.client_ip)
        self.greet()

    # Methods for the verbs.

    def greet(self) -> None:
        """Send the greeting or reject the client; called again after XCLIENT."""
        client_ip = self.client.claimed_ip
        if self.settings.is_private and not is_local_client(client_ip):
            self.close_with(replies.PRIVATE_ONLY)
            return
        rejection = self._open.admit(self, client_ip)
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
        self.note_activity()
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


class MailFactory(ServerFactory[SmtpSettings]):
    """Creates the connections of one port.

    ``memory`` is shared with other ports; by default the port has its own. ``verbs`` are the
    commands of these connections.
    """

    def __init__(
        self,
        verbs: Mapping[bytes, Verb],
        receiver: MailReceiver,
        settings: SmtpSettings,
        clock: IReactorTime,
        journal: MailJournal,
        memory: MemoryBudget | None = None,
    ) -> None:
        super().__init__(settings, clock)
        self.verbs = verbs
        self.receiver = receiver
        self.journal = journal
        self.memory = memory or MemoryBudget(AMPLE.incoming)
        self.slow_replies: Counter[AccountId] = Counter()

    def make(self) -> MailProtocol:
        """Return a new connection."""
        return MailProtocol(self)

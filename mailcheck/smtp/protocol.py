"""The connections of one port, how many there may be, and what each client has begun."""

from collections import Counter, OrderedDict
from collections.abc import Callable, Mapping
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

from mailcheck.core.client_limits import ConnectionCounts
from mailcheck.core.identifiers import AccountId
from mailcheck.core.network_addresses import is_local_client
from mailcheck.ports.mail_receiver import MailJournal, MailReceiver
from mailcheck.smtp import replies
from mailcheck.smtp.client import Client, ProxyHeaderReader
from mailcheck.smtp.commands import CommandError
from mailcheck.smtp.receive_path import ReceivePath
from mailcheck.smtp.replies import FailureTable, reply_to_failure
from mailcheck.smtp.settings import SmtpSettings, client_ip_of, is_in_networks
from mailcheck.smtp.transaction import MemoryBudget, Transaction

CONNECTING = b"(connecting)"
UNKNOWN = b"(unknown)"
"""What stands in the journal for a command that is none, or that is none of ours."""

Verb = Callable[["MailProtocol", bytes], None]
"""Obeys one command, given its argument; raises `CommandError` to refuse it."""


@implementer(IHandshakeListener)
class MailProtocol(ReceivePath):
    """One SMTP connection. The verbs work on it: ``client``, ``transaction``, `reply` and so on."""

    log = Logger()

    def __init__(
        self,
        receiver: MailReceiver,
        settings: SmtpSettings,
        clock: IReactorTime,
        verbs: Mapping[bytes, Verb],
        connections: "MailFactory",
    ) -> None:
        super().__init__(settings.limits, clock)
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
        self._when_sent: Deferred[None] | None = None

    # What Twisted calls.

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
                partial(self._believe, header),
            )
        else:
            self.greet()

    def handshakeCompleted(self) -> None:
        """Take note of what TLS has negotiated."""
        self.client.tls = self._wire.tls_facts()

    def connectionLost(self, reason: Failure = connectionDone) -> None:
        """Let go of everything; a delivery under way goes on."""
        super().connectionLost(reason)
        if self._delayed is not None and self._delayed.active():
            self._delayed.cancel()
            self._end_delay()
        self.end_transaction()
        self._connections.forget(self)

    def _believe(self, header: ProxyHeaderReader) -> None:
        """Take the client's address from the proxy; no word to one who sends nonsense."""
        if header.problem is not None:
            self.log.warn(
                "PROXY header from {proxy_ip}: {problem}",
                proxy_ip=self.client.ip,
                problem=header.problem,
            )
            self.cut_off()
            return
        if header.client_ip is not None:
            self.client = Client(client_ip_of(header.client_ip))
        self.await_first_command()
        self.greet()

    # What the verbs use.

    def greet(self) -> None:
        """Say hello, or turn the client away; again after XCLIENT."""
        refusal = self._connections.admit(self)
        if refusal is not None:
            self.part(refusal)  # at once: those who are too many must not linger
            return
        self.reply(replies.reply(220, f"{self.settings.host_name} ESMTP mailcheck"))

    def end_transaction(self) -> None:
        """Drop the mail that has begun, if any, and be ready for the next."""
        transaction, self.transaction = self.transaction, None
        if transaction is not None:
            if transaction.message is not None:
                transaction.message.discard()
            self.receiver.traffic.ended(transaction)
        self.client.forwarded = None

    def forgive(self) -> None:
        """Count commands and errors anew: a client that brings mail may stay."""
        self.commands = 0
        self._errors = 0

    def refuse(self, line: bytes) -> None:
        """Reply to nonsense; too much of it ends the connection."""
        self._errors += 1
        if self._errors >= self.limits.errors:
            self.close(replies.TOO_MANY_ERRORS)
        else:
            self.reply(line)

    def reject_slowly(self, line: bytes, *, is_guess: bool = False) -> Deferred[None] | None:
        """Reply to a refused recipient or mail; fires when that is sent, where it is sent later.

        A client that guesses addresses waits longer and longer. So does a client that does not
        wait for the reply: each refusal may cost a row in the store.
        """
        if is_guess or self.has_more_input:
            self._slowed_refusals += 1
            excess = self._slowed_refusals - self.limits.free_refusals
            if excess > 0:
                return self.reply_after(min(2.0 ** (excess - 1), self.limits.longest_delay), line)
        self.reply(line)
        return None

    def reply_after(self, seconds: float, line: bytes) -> Deferred[None]:
        """Send a reply later; fires when it is sent, or nobody is there any more to hear it."""
        done: Deferred[None] = Deferred()
        self._when_sent = done

        def send() -> None:
            self.reply(line)
            self._end_delay()

        self._delayed = self.clock.callLater(seconds, send)
        return done

    @property
    def is_reply_delayed(self) -> bool:
        """Tell whether nothing is owed to the client but a reply that is to come late."""
        return self.transaction is None and self._delayed is not None and self._delayed.active()

    def drain(self, farewell: bytes = replies.SHUTTING_DOWN) -> None:
        """Hang up as soon as no mail is on its way; a late reply comes now."""
        super().drain(farewell)
        if self._delayed is not None and self._delayed.active():
            self._delayed.reset(0)

    def _end_delay(self) -> None:
        done, self._when_sent = self._when_sent, None
        if done is not None:
            done.callback(None)

    def explain(
        self,
        failure: Failure,
        table: FailureTable = replies.FAILURES,
        fault: bytes = replies.LOCAL_ERROR,
    ) -> bytes:
        """Give the reply to a failure; one that is not in the table is ours, and logged."""
        line = reply_to_failure(failure.value, table)
        if line is None:
            self.log_fault(failure)
        return line or fault

    def note_refusal(self, line: bytes) -> None:
        """Put a refusal into the journal."""
        self.journal.note_refusal(self.client.claimed_ip, self._command.decode("ascii"), line)

    def log_fault(self, failure: Failure) -> None:
        """Log a failure that nobody expected."""
        self.log.failure("Failure while serving {client_ip}", failure, client_ip=self.client.ip)

    def start_tls(self, certificate: IOpenSSLContextFactory) -> None:
        """Encrypt from here on; the client starts anew (RFC 3207 4.2)."""
        self.end_transaction()
        self.client.forget()
        self._wire.start_tls(certificate)

    def obey(self, line: bytes) -> None:
        """Obey a command line, or refuse it."""
        if self._command is CONNECTING:
            self.await_commands()
        self.commands += 1
        self._connections.note_activity(self)
        if self.commands > self.limits.commands:
            self.close(replies.TOO_MANY_COMMANDS)
            return
        verb, _, argument = line.partition(b" ")
        verb = verb.upper()
        obey = self._verbs.get(verb)
        if obey is None:
            self._command = UNKNOWN
            # Not kept as it is: it may be a password, sent after a refused AUTH.
            self.transcript.hear(verb, b"(an unknown command)")
            raise CommandError(replies.UNKNOWN_COMMAND)
        self._command = verb
        self.transcript.hear(verb, line)
        obey(self, argument.strip(b" \t"))


def require_no_argument(argument: bytes) -> None:
    """Refuse an argument where RFC 5321 4.1.1 has none.

    :raises CommandError: there is one (501).
    """
    if argument:
        raise CommandError(replies.NO_ARGUMENT)


class MailFactory(SMTPFactory):
    """Makes the connections of one port, and counts them: too many clients are turned away.

    ``verbs`` are the commands that they obey. Listen with it on any endpoint. To stop: close the
    port, then `drain`.
    """

    noisy = False

    def __init__(
        self,
        verbs: Mapping[bytes, Verb],
        receiver: MailReceiver,
        settings: SmtpSettings,
        clock: IReactorTime,
        journal: MailJournal,
    ) -> None:
        self._verbs = verbs
        self.domain = settings.host_name.encode("ascii")
        self._receiver = receiver
        self._settings = settings
        self._clock = clock
        self.journal = journal
        self.memory = MemoryBudget(settings.limits.held_bytes)
        self.slow_replies: Counter[AccountId] = Counter()
        self._connections: set[MailProtocol] = set()
        self._admitted: ConnectionCounts[MailProtocol] = ConnectionCounts()
        self._by_activity: OrderedDict[MailProtocol, None] = OrderedDict()
        self._drained: Deferred[None] | None = None

    @property
    def connection_count(self) -> int:
        """How many clients are connected."""
        return len(self._connections)

    def buildProtocol(self, addr: IAddress | None) -> MailProtocol:
        """Make the protocol of a new connection."""
        connection = MailProtocol(self._receiver, self._settings, self._clock, self._verbs, self)
        connection.factory = self
        self._connections.add(connection)
        return connection

    def admit(self, connection: MailProtocol) -> bytes | None:
        """Count a connection under its client's address, or give the reply that turns it away."""
        self._admitted.remove(connection)
        self._by_activity.pop(connection, None)
        limits = self._settings.limits
        if self._drained is not None:
            return replies.SHUTTING_DOWN
        client_ip = connection.client.claimed_ip
        if len(self._admitted) >= limits.connections and not self._make_room(client_ip):
            return replies.TOO_MANY_CONNECTIONS
        has_its_share = self._admitted.of_client(client_ip) >= limits.connections_per_address
        if has_its_share and not is_local_client(client_ip):
            return replies.TOO_MANY_CONNECTIONS
        self._admitted.add(connection, client_ip)
        self._by_activity[connection] = None
        return None

    def note_activity(self, connection: MailProtocol) -> None:
        """Put a connection, which was admitted, behind all that have been idle for longer."""
        self._by_activity.move_to_end(connection)

    def _make_room(self, client_ip: str) -> bool:
        """Hang up on who has been idle longest without a mail, for a client who has nothing yet.

        Who waits for a reply that is to come late gets it now.
        """
        if self._admitted.of_client(client_ip):
            return False
        for idlest in self._by_activity:
            if idlest.is_reply_delayed or (idlest.is_idle and idlest.transaction is None):
                self._admitted.remove(idlest)
                del self._by_activity[idlest]
                if idlest.is_reply_delayed:
                    idlest.drain(replies.ROOM_FOR_OTHERS)
                else:
                    idlest.part(replies.ROOM_FOR_OTHERS)
                return True
        return False

    def forget(self, connection: MailProtocol) -> None:
        """Uncount a connection that has ended."""
        self._admitted.remove(connection)
        self._by_activity.pop(connection, None)
        self._connections.discard(connection)
        self._look_whether_drained()

    def drain(self, grace: float) -> Deferred[None]:
        """Hang up on everyone, idle clients at once, those with a mail on its way after it.

        Fires when all are gone; after ``grace`` seconds the rest are cut off.
        """

        def cut_off_the_rest() -> None:
            for connection in tuple(self._connections):
                connection.cut_off()

        cut_off = self._clock.callLater(grace, cut_off_the_rest)

        def when_gone(_: None) -> None:
            if cut_off.active():
                cut_off.cancel()

        drained: Deferred[None] = Deferred()
        drained.addCallback(when_gone)
        self._drained = drained
        for connection in tuple(self._connections):
            connection.drain()
        self._look_whether_drained()
        return drained

    def _look_whether_drained(self) -> None:
        if self._drained is not None and not self._connections and not self._drained.called:
            self._drained.callback(None)

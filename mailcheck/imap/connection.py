"""IMAP connections: lines and literals, TLS, login, IDLE (RFC 9051, RFC 3501)."""

from collections.abc import Callable, Coroutine, Mapping
from functools import partial
from typing import Any, ClassVar

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IDelayedCall, IOpenSSLContextFactory, IReactorTime
from twisted.internet.protocol import connectionDone
from twisted.python.failure import Failure

from mailcheck.connections.counting import Rejection
from mailcheck.connections.flow import OutputFlow
from mailcheck.connections.receive_path import ReceiveReplies
from mailcheck.connections.sasl import (
    PlainCredentials,
    decode_base64,
    decode_text,
    parse_plain,
)
from mailcheck.connections.server import PortSettings
from mailcheck.core.accounts import Caller
from mailcheck.core.errors import ExpectedFailure
from mailcheck.core.memory.client_limits import AMPLE
from mailcheck.imap.commands import Authenticate, Invalid, Login, Plain, Tagged
from mailcheck.imap.failures import refusal_of
from mailcheck.imap.fetching import BrokenResponse
from mailcheck.imap.literals import (
    BEFORE_LOGIN,
    MAX_LITERALS,
    MAX_STRINGS,
    NON_SYNCHRONIZING,
    LiteralReader,
    MemoryBudget,
    PendingCommand,
    find_literal,
    tag_of,
)
from mailcheck.imap.mail_program import ProgramConnection, ProgramFactory
from mailcheck.imap.parsing import parse_command
from mailcheck.imap.session import Session
from mailcheck.imap.writing import CRLF, response_text
from mailcheck.operations.accounts.log_in import LogIn
from mailcheck.operations.inbox.mailboxes import Mailboxes
from mailcheck.ports.journals import LoginJournal

COMMAND_LINE = 65_536
"""Octets of a command line. Programs send long sets of UIDs; RFC 7162 4 asks for 8,192."""

LITERAL_SECONDS = 900
"""Seconds from the announcement of a literal to its end, as for a mail over SMTP."""

COMMANDS_BEFORE_LOGIN = 50
"""Maximum number of commands before a login. Programs need about five."""

TICK = 120.0
"""Seconds between two looks at the inboxes of idle clients, since expired mail has no
notification. Each client gets a line, so that routers keep the connection."""

STUCK = 120.0
"""Seconds after which a client that does not read a response is disconnected."""

PIECE = 65_536
"""Octets of a response that are given to the transport at once."""

CAPABILITIES = (
    "IMAP4rev2 IMAP4rev1 LITERAL- SASL-IR ID ENABLE IDLE UIDPLUS MOVE NAMESPACE SPECIAL-USE "
    "ESEARCH SEARCHRES LIST-EXTENDED LIST-STATUS STATUS=SIZE UNSELECT CHILDREN CONDSTORE "
    "UTF8=ACCEPT BINARY"
)
"""The extensions (RFC 9051 appendix E has most of them; the registry of IANA has the others)."""

HTTP = b" HTTP/1."
"""The end of the first line of a browser that a web page has made send a request here."""


class ConnectionLost(Exception):
    """The client has gone while a command was running."""


class SharedByConnections:
    """The memory for literals and the ticks of idle clients, for all connections of a port."""

    def __init__(self, clock: IReactorTime, octets: int) -> None:
        self.memory = MemoryBudget(octets)
        self._clock = clock
        self._idle: dict[object, Callable[[], None]] = {}
        self._call: IDelayedCall | None = None

    def add_idle(self, connection: object, tick: Callable[[], None]) -> None:
        """Call ``tick`` every `TICK` seconds."""
        self._idle[connection] = tick
        if self._call is None:
            self._call = self._clock.callLater(TICK, self._tick)

    def remove_idle(self, connection: object) -> None:
        """Call it no more."""
        self._idle.pop(connection, None)
        if not self._idle and self._call is not None:
            self._call.cancel()
            self._call = None

    def _tick(self) -> None:
        self._call = self._clock.callLater(TICK, self._tick)
        for tick in tuple(self._idle.values()):
            tick()


class ImapConnection(ProgramConnection):
    """One IMAP connection: everything up to the login; `Session` is the rest."""

    own_replies = ReceiveReplies(
        timed_out=b"* BYE idle for too long\r\n",
        shutting_down=b"* BYE the server is shutting down\r\n",
        bare_line_ending=b"* BYE lines must end with CR LF, and must not contain NUL\r\n",
        # The rest of the line may announce a literal, which must not be read as commands.
        line_too_long=b"* BYE the line is too long\r\n",
        internal_error=b"* BYE [SERVERBUG] internal error\r\n",
    )
    rejections: ClassVar[Mapping[Rejection, bytes]] = {
        Rejection.SHUTTING_DOWN: b"* BYE the server is shutting down\r\n",
        Rejection.TOO_MANY: b"* BYE [UNAVAILABLE] too many connections\r\n",
    }
    idle_too_long = b"* BYE [UNAVAILABLE] closed for another client\r\n"

    def __init__(self, factory: "ImapFactory") -> None:
        super().__init__(factory)
        self._shared = factory.shared
        self._session: Session | None = None
        self._pending = PendingCommand()
        self._idle_tag: bytes | None = None
        self._syncing: Deferred[None] | None = None
        self._was_woken = False
        self._commands = 0
        self._flow: OutputFlow | None = None

    @property
    def state(self) -> str:
        """The account, the selected mailbox, and whether the client waits."""
        if self._session is None:
            return "not logged in"
        if self._idle_tag is not None:
            return f"{self._session}, in IDLE"
        return f"{self._session}, {'between commands' if self.is_idle else 'in a command'}"

    def greet(self) -> None:
        """Greet an admitted client, with the capabilities (RFC 9051 7.1)."""
        self.reply(b"* OK [%s] mailcheck\r\n" % self._capability())

    def connectionLost(self, reason: Failure = connectionDone) -> None:
        """Release everything; a running command fails."""
        super().connectionLost(reason)
        self._drop_command()
        self._shared.remove_idle(self)

    def dispatch(self, line: bytes) -> None:
        """Take a line of a command. The command runs when its last line is here."""
        self.note_activity()
        if self._idle_tag is not None:
            self._end_idle(self._idle_tag, line)
            return
        self._pending.lines.append(line)
        literal = find_literal(line)
        if literal is None:
            self._run_command()
        else:
            self._await_literal(*literal)

    def reject(self, line: bytes) -> None:
        """Reply to an invalid command, or close the connection if the end of it is not known."""
        self._drop_command()
        if line == self.own_replies.line_too_long:
            self.half_close_with(line)
        else:
            super().reject(line)

    # Literals.

    def _await_literal(self, size: int, is_awaited: bool) -> None:
        """Read a literal, or reject the command (RFC 7888)."""
        pending = self._pending
        allowed = MAX_STRINGS if self._session is not None else BEFORE_LOGIN
        if self._session is not None and pending.is_append:
            allowed += self.mailboxes.settings.max_size
        is_too_large = pending.held + size > allowed or len(pending.literals) == MAX_LITERALS
        if not is_awaited and (is_too_large or size > NON_SYNCHRONIZING):
            # The client sends it anyway, so the connection ends instead of reading commands in it.
            self.half_close_with(b"* BYE [TOOBIG] the literal is too large\r\n")
        elif is_too_large:
            self.reject(pending.tag + b" NO [TOOBIG] the literal is too large\r\n")
        elif not self._shared.memory.take(size):
            refusal = b"[INUSE] too many mails are being appended; try again"
            if is_awaited:
                self.reject(pending.tag + b" NO " + refusal + CRLF)
            else:
                self.half_close_with(b"* BYE " + refusal + CRLF)
        else:
            pending.held += size
            reader = LiteralReader(size)
            deadline = self.clock.seconds() + LITERAL_SECONDS
            self.read(reader, deadline, partial(self._take_literal, reader))
            if is_awaited:
                self.reply(b"+ send the literal\r\n")

    def _take_literal(self, reader: LiteralReader) -> None:
        self._pending.literals.append(reader.octets)

    def _drop_command(self) -> None:
        self._shared.memory.give_back(self._pending.held)
        self._pending = PendingCommand()

    # Commands.

    def _run_command(self) -> None:
        pending = self._pending
        parsed = parse_command(pending.lines, pending.literals)
        if isinstance(parsed, Invalid):
            if self._session is None and pending.lines[0].find(HTTP) > 0:
                self.half_close_with(b"* BYE this is an IMAP server\r\n")
                return
            tag = tag_of(pending.lines[0])
            self.reject(tag + b" BAD " + response_text(parsed.problem) + CRLF)
            return
        if self._session is None:
            self._drop_command()
            self._commands += 1
            if self._commands > COMMANDS_BEFORE_LOGIN:
                self.half_close_with(b"* BYE too many commands without a login\r\n")
            else:
                self._run_before_login(parsed)
        else:
            self._run_in_session(self._session, parsed)

    def _run_before_login(self, parsed: Tagged) -> None:
        command = parsed.command
        if isinstance(command, Plain) and command.verb in _BEFORE_LOGIN:
            _BEFORE_LOGIN[command.verb](self, parsed.tag)
        elif isinstance(command, Login | Authenticate):
            self._begin_login(parsed.tag, command)
        else:
            self.reject(parsed.tag + b" BAD log in first\r\n")

    def _capability(self) -> bytes:
        offers = [CAPABILITIES]
        if self._session is None:
            if self.certificate is not None:
                offers.append("STARTTLS")
            offers.append("AUTH=PLAIN" if self.may_log_in else "LOGINDISABLED")
        return b"CAPABILITY " + " ".join(offers).encode("ascii")

    def _send_capability(self, tag: bytes) -> None:
        self._answer(tag, b"* " + self._capability() + CRLF, b"OK CAPABILITY completed")

    def _answer(self, tag: bytes, response: bytes, outcome: bytes) -> None:
        """Send a response, in a session after those of earlier commands."""
        if self._session is None:
            self.reply(response + tag + b" " + outcome + CRLF)
        else:
            self._serve(tag, self._send_first(response, outcome))

    async def _send_first(self, response: bytes, outcome: bytes) -> bytes:
        self.send(response)
        return outcome

    def _no_operation(self, tag: bytes) -> None:
        self.reply(tag + b" OK NOOP completed\r\n")

    def _log_out(self, tag: bytes) -> None:
        self.half_close_with(b"* BYE logging out\r\n" + tag + b" OK LOGOUT completed\r\n")

    def _identify(self, tag: bytes) -> None:
        """Name the program (RFC 2971 3.1); the version is not for strangers."""
        self._answer(tag, b'* ID ("name" "mailcheck")\r\n', b"OK ID completed")

    def _start_tls(self, tag: bytes) -> None:
        """Start TLS (RFC 9051 6.2.1). Input after the command is not read (CVE-2011-0411)."""
        certificate: IOpenSSLContextFactory | None = self.certificate
        if certificate is None:
            self.reject(tag + b" BAD TLS is not offered, or already in use\r\n")
        elif self.has_more_input:
            self.drop_input()
            self.half_close_with(b"* BYE input after STARTTLS\r\n")
        else:
            self.reply(tag + b" OK begin TLS\r\n")
            self.start_tls(certificate)

    # Login.

    def _begin_login(self, tag: bytes, command: Login | Authenticate) -> None:
        if not self.may_log_in:
            # RFC 9051 7.1: PRIVACYREQUIRED.
            self.reject(tag + b" NO [PRIVACYREQUIRED] send STARTTLS first\r\n")
        elif isinstance(command, Login):
            user, password = decode_text(command.user), decode_text(command.password)
            self._authenticate(tag, PlainCredentials(user, password))
        elif command.mechanism != "PLAIN":
            self.reject(tag + b" NO [CANNOT] the only mechanism is PLAIN\r\n")
        elif command.initial is not None:
            self._take_plain(tag, b"" if command.initial == b"=" else command.initial)
        else:
            seconds = self.settings.lines.first_command
            self.ask(b"+ \r\n", seconds, partial(self._take_response, tag))

    def _take_response(self, tag: bytes, line: bytes | None) -> None:
        if line is None or line == b"*":
            problem = b"the response is too long" if line is None else b"cancelled"
            self.reject(tag + b" BAD " + problem + CRLF)
        else:
            self._take_plain(tag, line)

    def _take_plain(self, tag: bytes, response: bytes) -> None:
        try:
            credentials = parse_plain(decode_base64(response))
        except ValueError as problem:
            self.reject(tag + b" BAD " + response_text(str(problem)) + CRLF)
        else:
            self._authenticate(tag, credentials)

    def _authenticate(self, tag: bytes, credentials: PlainCredentials) -> None:
        login = Deferred.fromCoroutine(self.identify(credentials))
        self.wait_for(login, partial(self._enter, tag), partial(self._refuse_login, tag))

    def _enter(self, tag: bytes, caller: Caller) -> None:
        if self._is_closed:
            return
        self.note_login(caller, self._end_login)
        self._session = Session(self, self.mailboxes, caller)
        self._until_lost.enter_context(self.mailboxes.watched(caller.account_id, self._wake))
        self.await_commands()
        self.reply(tag + b" OK [" + self._capability() + b"] logged in\r\n")

    def _refuse_login(self, tag: bytes, failure: Failure) -> None:
        line = tag + b" " + self._outcome_of(failure) + CRLF
        if self.note_failed_login(failure):
            self.half_close_with(line + b"* BYE too many failed logins\r\n")
        else:
            self.reply(line)

    def _end_login(self, failure: ExpectedFailure) -> None:
        self.close_with(b"* BYE " + response_text(str(failure)) + CRLF)

    def _outcome_of(self, failure: Failure) -> bytes:
        """Return the response to a failure without its tag; log an unexpected one."""
        outcome = refusal_of(failure.value)
        if outcome is None:
            self.log_failure(failure)
        return outcome or b"NO [SERVERBUG] internal error"

    def _count_error(self) -> None:
        """Close the connection after too many errors."""
        self._errors += 1
        if self._errors >= self.settings.errors:
            self.half_close_with(b"* BYE too many errors\r\n")

    # The session.

    def _run_in_session(self, session: Session, parsed: Tagged) -> None:
        command = parsed.command
        if isinstance(command, Plain) and command.verb in _IN_SESSION:
            _IN_SESSION[command.verb](self, parsed.tag)
        else:
            self._serve(parsed.tag, session.run(parsed))

    def _serve(self, tag: bytes, work: Coroutine[Any, Any, bytes]) -> None:
        """Run a command; the next one waits until the client has read most of the responses."""
        self.wait_for(
            Deferred.fromCoroutine(self._run_paced(tag, work)),
            lambda _: self._drop_command(),
            partial(self._fail, tag),
        )

    async def _run_paced(self, tag: bytes, work: Coroutine[Any, Any, bytes]) -> None:
        self._wire.use_buffer()
        self._flow = flow = OutputFlow(self.transport, self.clock, STUCK, self.abort)
        with flow.registered():
            try:
                outcome = await work
            except ConnectionLost:
                return
            except BrokenResponse as broken:
                self.log.warn(
                    "{client_ip} is disconnected in a response: {why}",
                    client_ip=self.client_ip,
                    why=broken.__cause__,
                )
                self.abort()
                return
            except Exception:
                outcome = self._outcome_of(Failure())
            if outcome.startswith(b"BAD"):
                self._count_error()
            else:
                self._errors = 0
            await self.send_large(tag + b" " + outcome + CRLF)

    def _fail(self, tag: bytes, failure: Failure) -> None:
        self._drop_command()
        if not isinstance(failure.value, ConnectionLost):
            self.log_failure(failure)
            self.abort()

    def send(self, response: bytes) -> None:
        """Send a small response."""
        if response and not self._is_closed:
            self._wire.add(response)
            self._wire.flush()

    def note_fetched(self) -> None:
        """Record that the client fetches a whole message."""
        self.journal.note_fetched()

    async def send_large(self, response: bytes) -> None:
        """Send a response of any size, no faster than the client reads.

        :raises ConnectionLost: the client has gone.
        """
        flow = self._flow
        for first in range(0, len(response), PIECE):
            if self._is_closed or flow is None or flow.is_stopped:
                raise ConnectionLost
            await flow.write(response[first : first + PIECE])

    # IDLE (RFC 9051 6.3.13).

    def _begin_idle(self, tag: bytes) -> None:
        self._drop_command()
        self._idle_tag = tag
        self._shared.add_idle(self, self._tick)
        self.reply(b"+ idling\r\n")
        if self._session is not None and self._session.has_news:
            self._sync()

    def _end_idle(self, tag: bytes, line: bytes) -> None:
        self._idle_tag = None
        self._shared.remove_idle(self)
        self._serve(tag, self._finish_idle(is_done=line.upper() == b"DONE"))

    async def _finish_idle(self, *, is_done: bool) -> bytes:
        if self._syncing is not None:
            done: Deferred[None] = Deferred()
            self._syncing.chainDeferred(done)
            await done
        return b"OK IDLE completed" if is_done else b"BAD send DONE"

    def _wake(self) -> None:
        """Tell an idle client what has changed; others are told with their next command."""
        if self._session is not None:
            self._session.note_news()
            self._was_woken = True
            if self._idle_tag is not None:
                self._sync()

    def _tick(self) -> None:
        self._sync()
        self.reply(b"* OK still here\r\n")

    def _sync(self) -> None:
        if self._syncing is None and self._session is not None:
            self._was_woken = False
            self._syncing = Deferred()
            Deferred.fromCoroutine(self._session.sync_idle()).addErrback(
                self._log_unless_expected
            ).addBoth(self._end_sync)

    def _log_unless_expected(self, failure: Failure) -> None:
        # The next notification or tick tries again.
        if not isinstance(failure.value, ExpectedFailure):
            self.log_failure(failure)

    def _end_sync(self, _: object) -> None:
        syncing, self._syncing = self._syncing, None
        if syncing is not None:
            syncing.callback(None)
        if self._was_woken and self._idle_tag is not None:
            self._sync()


_BEFORE_LOGIN: Mapping[str, Callable[[ImapConnection, bytes], None]] = {
    "CAPABILITY": ImapConnection._send_capability,
    "NOOP": ImapConnection._no_operation,
    "LOGOUT": ImapConnection._log_out,
    "STARTTLS": ImapConnection._start_tls,
    "ID": ImapConnection._identify,
}
_IN_SESSION: Mapping[str, Callable[[ImapConnection, bytes], None]] = {
    "CAPABILITY": ImapConnection._send_capability,
    "LOGOUT": ImapConnection._log_out,
    "IDLE": ImapConnection._begin_idle,
    "ID": ImapConnection._identify,
}


class ImapFactory(ProgramFactory):
    """Creates the IMAP connections of one port."""

    def __init__(
        self,
        settings: PortSettings,
        clock: IReactorTime,
        log_in: LogIn,
        mailboxes: Mailboxes,
        journal: LoginJournal,
        appended: int = AMPLE.appended,
    ) -> None:
        super().__init__(settings, clock, log_in, mailboxes, journal)
        self.shared = SharedByConnections(clock, appended)

    def make(self) -> ImapConnection:
        """Return a new connection."""
        return ImapConnection(self)

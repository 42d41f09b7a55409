"""POP3 (RFC 1939) with CAPA (RFC 2449), STLS (RFC 2595) and SASL PLAIN (RFC 5034).

A session sees the messages that were in the inbox when it logged in. Messages are deleted at QUIT.
The unique id of a message is its id in the API.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import AsyncIterator, Callable, Mapping
from functools import partial
from typing import ClassVar

from twisted.internet.defer import Deferred, succeed
from twisted.internet.interfaces import IOpenSSLContextFactory
from twisted.internet.protocol import connectionDone
from twisted.python.failure import Failure

from mailcheck.connections.counting import Rejection
from mailcheck.connections.flow import OutputFlow
from mailcheck.connections.lines import HTTP_METHODS, CommandError
from mailcheck.connections.receive_path import ReceiveReplies
from mailcheck.connections.sasl import (
    PlainCredentials,
    decode_base64,
    decode_text,
    parse_plain,
)
from mailcheck.core.accounts import Caller
from mailcheck.core.cursors import Position
from mailcheck.core.errors import (
    ExpectedFailure,
    InvalidCredentials,
    LimitExceeded,
    MessageNotFound,
    NotPermitted,
    Overloaded,
    ShuttingDown,
    StoreUnavailable,
    nearest,
)
from mailcheck.core.filters import ANY
from mailcheck.core.rights import Scope
from mailcheck.imap.mail_program import ProgramConnection, ProgramFactory
from mailcheck.imap.pop3_lines import MultiLine, TopLines
from mailcheck.operations.inbox.mailboxes import Mailboxes
from mailcheck.store.mailbox_store import MailEntry

PIECE = 262_144
"""Octets of a mail that are read from the store at once."""

LOOK_AHEAD = 50
"""Number of messages whose facts are read at once, since clients retrieve them in order."""

MAX_LISTED = 200
"""Number of messages whose ids are read at once for a list."""

NUMBER = re.compile(rb"[0-9]{1,9}")


def ok(text: str) -> bytes:
    """Return a positive reply."""
    return f"+OK {text}\r\n".encode("ascii", "replace")


def error(text: str, code: str = "") -> bytes:
    """Return a negative reply, with a response code (RFC 2449 8, RFC 3206)."""
    code = f"[{code}] " if code else ""
    return f"-ERR {code}{text}\r\n".encode("ascii", "replace")


SHUTTING_DOWN = error("the server is shutting down", "SYS/TEMP")
UNKNOWN_COMMAND = error("unknown command")
NO_SUCH_MESSAGE = error("no such message")
IS_DELETED = error("the message is marked as deleted")
IS_GONE = error("the message has been deleted or has expired")
LOG_IN_FIRST = error("log in first")
IS_LOGGED_IN = error("already logged in")
TLS_FIRST = error("log in without TLS is not allowed from this address: send STLS first")
NEEDS_NUMBER = error("send the number of a message")
NO_ARGUMENT = error("the command takes no argument")
CANCELLED = error("authentication cancelled")
BAD_RESPONSE = error("the response is not valid base64 of authorization NUL name NUL password")

CODES: Mapping[type[ExpectedFailure], str] = {
    InvalidCredentials: "AUTH",
    NotPermitted: "SYS/PERM",
    LimitExceeded: "SYS/TEMP",
    Overloaded: "SYS/TEMP",
    ShuttingDown: "SYS/TEMP",
    StoreUnavailable: "SYS/TEMP",
    ExpectedFailure: "",
}


class Session:
    """The messages of a login. Numbers of messages are counted from 1."""

    def __init__(self, caller: Caller, positions: array[int], sizes: array[int]) -> None:
        self.caller = caller
        self.positions = positions
        self.sizes = sizes
        self.deleted: set[int] = set()
        self._ahead: dict[int, MailEntry] = {}

    @property
    def numbers(self) -> list[int]:
        """The numbers of the messages that are not marked as deleted."""
        return [n for n in range(1, len(self.positions) + 1) if n not in self.deleted]

    def require(self, argument: bytes) -> int:
        """Return the number of a message that is not marked as deleted.

        :raises CommandError: there is no such message.
        """
        if NUMBER.fullmatch(argument) is None:
            raise CommandError(NEEDS_NUMBER)
        number = int(argument)
        if not 1 <= number <= len(self.positions):
            raise CommandError(NO_SUCH_MESSAGE)
        if number in self.deleted:
            raise CommandError(IS_DELETED)
        return number

    def size(self, number: int) -> int:
        """Return the number of octets of a message with CRLF line ends (RFC 1939 11)."""
        return self.sizes[number - 1]

    def positions_of(self, numbers: list[int]) -> list[Position]:
        """Return the positions of messages."""
        return [Position(self.positions[number - 1]) for number in numbers]

    async def entry(self, mailboxes: Mailboxes, number: int) -> MailEntry:
        """Return a message.

        :raises MessageNotFound: it has been deleted or has expired since the login.
        """
        position = self.positions[number - 1]
        if position not in self._ahead:
            last = min(number + LOOK_AHEAD, len(self.positions) + 1)
            wanted = self.positions_of(list(range(number, last)))
            found = await mailboxes.entries(self.caller, wanted)
            self._ahead = {entry.position: entry for entry in found}
        if position not in self._ahead:
            raise MessageNotFound
        return self._ahead[position]


Command = Callable[["Pop3Connection", bytes], None]


class Pop3Connection(ProgramConnection):
    """One POP3 connection."""

    own_replies = ReceiveReplies(
        timed_out=error("timed out"),
        shutting_down=SHUTTING_DOWN,
        bare_line_ending=error("lines must end with CR LF"),
        line_too_long=error("the line is too long"),
        internal_error=error("internal error", "SYS/TEMP"),
    )
    rejections: ClassVar[Mapping[Rejection, bytes]] = {
        Rejection.SHUTTING_DOWN: SHUTTING_DOWN,
        Rejection.TOO_MANY: error("too many connections", "SYS/TEMP"),
    }
    idle_too_long = error("closed for another client", "SYS/TEMP")

    def __init__(self, factory: ProgramFactory) -> None:
        super().__init__(factory)
        self.user: str | None = None
        self.session: Session | None = None
        self._has_command = False

    @property
    def state(self) -> str:
        """The account and the number of messages of the session."""
        session = self.session
        if session is None:
            return "not logged in"
        return f"account {session.caller.account_id}, {len(session.positions)} messages"

    def greet(self) -> None:
        """Greet an admitted client (RFC 1939 4)."""
        self.reply(ok(f"{self.settings.host_name} POP3 mailcheck"))

    def connectionLost(self, reason: Failure = connectionDone) -> None:
        """Release everything. Without QUIT, no message is deleted (RFC 1939 6)."""
        super().connectionLost(reason)
        self.session = None

    def dispatch(self, line: bytes) -> None:
        """Run a command line, or raise `CommandError`."""
        if not self._has_command:
            self._has_command = True
            self.await_commands()
        self.note_activity()
        verb, _, argument = line.partition(b" ")
        verb = verb.upper()
        run = COMMANDS.get(verb)
        if run is None:
            if verb in HTTP_METHODS:
                self.half_close_with(error("this is a POP3 server"))
                return
            raise CommandError(UNKNOWN_COMMAND)
        run(self, argument)

    def start_tls(self, certificate: IOpenSSLContextFactory) -> None:
        """Start TLS; the client must begin again (RFC 2595 4)."""
        self.user = None
        super().start_tls(certificate)

    def authenticate(self, credentials: PlainCredentials) -> None:
        """Log in and read the inbox."""
        opening = Deferred.fromCoroutine(self._open_inbox(credentials))
        self.wait_for(opening, self._enter, self._refuse_login)

    def require_session(self) -> Session:
        """Return the session.

        :raises CommandError: the client has not logged in.
        """
        if self.session is None:
            raise CommandError(LOG_IN_FIRST)
        return self.session

    def fail(self, failure: Failure) -> None:
        """Reply to a failure; an unexpected one is logged."""
        self.reply(self._reply_to(failure))

    def send_pieces(self, first: bytes, pieces: AsyncIterator[bytes]) -> Deferred[None]:
        """Send a multi-line reply in pieces. Fires when it was sent or the client has gone.

        The reply is incomplete after a failure, so the connection is aborted then.
        """
        if self._is_closed:
            return succeed(None)
        self.reply(first)
        self._wire.use_buffer()
        flow = OutputFlow(self.transport, self.clock, self.settings.lines.idle, self.abort)
        return Deferred.fromCoroutine(flow.send(pieces)).addErrback(self._break_off)

    async def _open_inbox(self, credentials: PlainCredentials) -> Session:
        caller = await self.identify(credentials)
        state = await self.mailboxes.open(caller, ANY)
        positions = [Position(position) for position in state.positions]
        found = await self.mailboxes.entries(caller, positions)
        return Session(
            caller,
            array("Q", [entry.position for entry in found]),
            array("Q", [entry.size + entry.added_octets for entry in found]),
        )

    def _enter(self, session: Session) -> None:
        if self._is_closed:
            return
        self.note_login(session.caller, self._end_login)
        self.session = session
        self.reply(ok(f"logged in, {len(session.positions)} messages"))

    def _end_login(self, failure: ExpectedFailure) -> None:
        self.close_with(error(str(failure), "AUTH"))

    def _refuse_login(self, failure: Failure) -> None:
        line = self._reply_to(failure)
        if self.note_failed_login(failure):
            self.half_close_with(line)
        else:
            self.reply(line)

    def _reply_to(self, failure: Failure) -> bytes:
        code = nearest(failure.value, CODES)
        if code is None:
            self.log_failure(failure)
            return self.own_replies.internal_error
        is_gone = isinstance(failure.value, MessageNotFound)
        return IS_GONE if is_gone else error(str(failure.value), code)

    def _break_off(self, failure: Failure) -> None:
        if not isinstance(failure.value, ExpectedFailure):
            self.log_failure(failure)
        self.abort()


# Commands before the login (RFC 1939 4, 7).


def _require_no_session(connection: Pop3Connection) -> None:
    if connection.session is not None:
        raise CommandError(IS_LOGGED_IN)


def _require_safe_login(connection: Pop3Connection) -> None:
    _require_no_session(connection)
    if not connection.may_log_in:
        raise CommandError(TLS_FIRST)


def user(connection: Pop3Connection, argument: bytes) -> None:
    """Take the name of the account; with an API key as the password, any name will do."""
    _require_safe_login(connection)
    if not argument:
        raise CommandError(error("send a name"))
    connection.user = decode_text(argument)
    connection.reply(ok("send PASS"))


def pass_(connection: Pop3Connection, argument: bytes) -> None:
    """Log in with the name of USER. The password may contain spaces."""
    _require_safe_login(connection)
    if connection.user is None:
        raise CommandError(error("send USER first"))
    name, connection.user = connection.user, None
    connection.authenticate(PlainCredentials(name, decode_text(argument)))


def auth(connection: Pop3Connection, argument: bytes) -> None:
    """Log in with SASL PLAIN (RFC 5034), with or without an initial response."""
    if not argument:  # the list of mechanisms, which older clients ask for
        connection.reply(b"+OK\r\nPLAIN\r\n.\r\n" if connection.may_log_in else b"+OK\r\n.\r\n")
        return
    _require_safe_login(connection)
    mechanism, _, response = argument.partition(b" ")
    if mechanism.upper() != b"PLAIN":
        raise CommandError(error("the only mechanism is PLAIN"))
    if response:
        _take_plain(connection, response)
        return
    seconds = connection.settings.lines.idle
    connection.ask(b"+ \r\n", seconds, partial(_take_response, connection))


def _take_response(connection: Pop3Connection, line: bytes | None) -> None:
    try:
        if line is None:
            raise CommandError(connection.own_replies.line_too_long)
        if line == b"*":
            raise CommandError(CANCELLED)
        _take_plain(connection, line)
    except CommandError as problem:
        connection.reject(problem.reply)


def _take_plain(connection: Pop3Connection, response: bytes) -> None:
    try:
        credentials = parse_plain(decode_base64(response))
    except ValueError:
        raise CommandError(BAD_RESPONSE) from None
    connection.authenticate(credentials)


def stls(connection: Pop3Connection, argument: bytes) -> None:
    """Start TLS (RFC 2595 4). Input after the command is not processed (CVE-2011-0411)."""
    _require_no_session(connection)
    _require_no_argument(argument)
    certificate = connection.certificate
    if certificate is None:
        raise CommandError(error("TLS is not offered, or already in use"))
    if connection.has_more_input:
        connection.drop_input()
        raise CommandError(error("input after STLS"))
    connection.reply(ok("begin TLS"))
    connection.start_tls(certificate)


# Commands at any time.


def capa(connection: Pop3Connection, argument: bytes) -> None:
    """List the capabilities (RFC 2449 5)."""
    _require_no_argument(argument)
    offers = ["TOP", "UIDL", "RESP-CODES", "AUTH-RESP-CODE", "PIPELINING", "UTF8"]
    if connection.may_log_in:
        offers += ["USER", "SASL PLAIN"]
    if connection.session is None and connection.certificate is not None:
        offers.append("STLS")
    offers.append("IMPLEMENTATION mailcheck")
    lines = "".join(f"{offer}\r\n" for offer in offers)
    connection.reply(f"+OK capabilities\r\n{lines}.\r\n".encode("ascii"))


def utf8(connection: Pop3Connection, argument: bytes) -> None:
    """Enter UTF-8 mode (RFC 6856 2.1); mails are always sent as they were received."""
    _require_no_session(connection)
    _require_no_argument(argument)
    connection.reply(ok("UTF-8"))


def noop(connection: Pop3Connection, argument: bytes) -> None:
    """Do nothing."""
    connection.require_session()
    _require_no_argument(argument)
    connection.reply(ok("still here"))


def quit_(connection: Pop3Connection, argument: bytes) -> None:
    """Delete the marked messages, and close the connection (RFC 1939 6)."""
    _require_no_argument(argument)
    session = connection.session
    if session is None or not session.deleted:
        connection.close_with(ok("goodbye"))
        return
    positions = session.positions_of(sorted(session.deleted))

    def finish(_: object) -> None:
        connection.close_with(ok(f"{len(positions)} messages deleted"))

    def refuse(failure: Failure) -> None:
        connection.fail(failure)
        connection.close_silently()

    connection.wait_for(
        Deferred.fromCoroutine(connection.mailboxes.delete(session.caller, positions)),
        finish,
        refuse,
    )


# Commands of a session (RFC 1939 5, 7).


def stat(connection: Pop3Connection, argument: bytes) -> None:
    """Return the number of messages and their octets."""
    session = connection.require_session()
    _require_no_argument(argument)
    numbers = session.numbers
    connection.reply(f"+OK {len(numbers)} {sum(map(session.size, numbers))}\r\n".encode("ascii"))


def list_(connection: Pop3Connection, argument: bytes) -> None:
    """List the sizes of messages."""
    session = connection.require_session()
    if argument:
        number = session.require(argument)
        connection.reply(ok(f"{number} {session.size(number)}"))
        return
    lines = "".join(f"{number} {session.size(number)}\r\n" for number in session.numbers)
    connection.reply(f"+OK\r\n{lines}.\r\n".encode("ascii"))


def uidl(connection: Pop3Connection, argument: bytes) -> None:
    """List the unique ids of messages, which are their ids in the API."""
    session, mailboxes = connection.require_session(), connection.mailboxes
    if not argument:
        sent = connection.send_pieces(ok("unique ids"), _ids(session, mailboxes))
        connection.wait_for(sent, lambda _: None, connection.fail)
        return
    number = session.require(argument)

    def show(entry: MailEntry) -> None:
        connection.reply(ok(f"{number} {entry.id}"))

    connection.wait_for(
        Deferred.fromCoroutine(session.entry(mailboxes, number)), show, connection.fail
    )


async def _ids(session: Session, mailboxes: Mailboxes) -> AsyncIterator[bytes]:
    numbers = session.numbers
    for first in range(0, len(numbers), MAX_LISTED):
        some = numbers[first : first + MAX_LISTED]
        number_at = dict(zip(session.positions_of(some), some, strict=True))
        found = await mailboxes.entries(session.caller, list(number_at))
        text = "".join(f"{number_at[entry.position]} {entry.id}\r\n" for entry in found)
        yield text.encode("ascii")
    yield b".\r\n"


def retr(connection: Pop3Connection, argument: bytes) -> None:
    """Send a message."""
    session = connection.require_session()
    _send(connection, session, session.require(argument), None)


def top(connection: Pop3Connection, argument: bytes) -> None:
    """Send the header of a message and some lines of its body."""
    session = connection.require_session()
    number, _, lines = argument.partition(b" ")
    found = session.require(number)
    if NUMBER.fullmatch(lines) is None:
        raise CommandError(error("send the number of a message and a number of lines"))
    _send(connection, session, found, TopLines(int(lines)))


def _send(
    connection: Pop3Connection, session: Session, number: int, top_lines: TopLines | None
) -> None:
    mailboxes = connection.mailboxes

    async def read_beginning() -> tuple[MailEntry, bytes]:
        entry = await session.entry(mailboxes, number)
        return entry, await mailboxes.octets(entry, 0, PIECE)

    def send(found: tuple[MailEntry, bytes]) -> Deferred[None]:
        entry, beginning = found
        connection.journal.note_fetched()
        return connection.send_pieces(
            ok(f"{session.size(number)} octets"), _mail(mailboxes, entry, beginning, top_lines)
        )

    connection.wait_for(Deferred.fromCoroutine(read_beginning()), send, connection.fail)


async def _mail(
    mailboxes: Mailboxes, entry: MailEntry, piece: bytes, top_lines: TopLines | None
) -> AsyncIterator[bytes]:
    """Yield the lines of a mail, or of its beginning."""
    lines, position = MultiLine(), 0
    while True:
        position += len(piece)
        yield lines.feed(piece if top_lines is None else top_lines.feed(piece))
        is_enough = top_lines is not None and top_lines.is_complete
        if position >= entry.size or is_enough:
            break
        piece = await mailboxes.octets(entry, position, PIECE)
    rest = b"" if top_lines is None else lines.feed(top_lines.end())
    yield rest + lines.end()


def dele(connection: Pop3Connection, argument: bytes) -> None:
    """Mark a message as deleted, until QUIT."""
    session = connection.require_session()
    number = session.require(argument)
    try:
        session.caller.rights.require((Scope.INBOX_WRITE,))
    except NotPermitted as failure:
        raise CommandError(error(str(failure), "SYS/PERM")) from None
    session.deleted.add(number)
    connection.reply(ok(f"message {number} will be deleted at QUIT"))


def rset(connection: Pop3Connection, argument: bytes) -> None:
    """Unmark all messages."""
    session = connection.require_session()
    _require_no_argument(argument)
    session.deleted.clear()
    connection.reply(ok(f"{len(session.positions)} messages"))


def _require_no_argument(argument: bytes) -> None:
    if argument:
        raise CommandError(NO_ARGUMENT)


COMMANDS: Mapping[bytes, Command] = {
    b"AUTH": auth,
    b"CAPA": capa,
    b"DELE": dele,
    b"LIST": list_,
    b"NOOP": noop,
    b"PASS": pass_,
    b"QUIT": quit_,
    b"RETR": retr,
    b"RSET": rset,
    b"STAT": stat,
    b"STLS": stls,
    b"TOP": top,
    b"UIDL": uidl,
    b"USER": user,
    b"UTF8": utf8,
}


class Pop3Factory(ProgramFactory):
    """Creates the POP3 connections of one port."""

    def make(self) -> Pop3Connection:
        """Return a new connection."""
        return Pop3Connection(self)

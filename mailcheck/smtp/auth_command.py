"""AUTH (RFC 4954): an API key as the password, under any user name."""

import binascii
from collections.abc import Callable, Mapping
from functools import partial

from twisted.python.failure import Failure

from mailcheck.core.accounts import Caller
from mailcheck.core.errors import InvalidCredentials
from mailcheck.smtp import replies
from mailcheck.smtp.commands import CommandError
from mailcheck.smtp.protocol import MailProtocol
from mailcheck.smtp.receive_path import CRLF
from mailcheck.smtp.settings import MAX_AUTH_LINE

_CANCEL = b"*"
_EMPTY = b"="  # an initial response that is there and empty, RFC 4954 4

_ASK_FOR_ANYTHING = b"334 \r\n"
_ASK_FOR_USER_NAME = b"334 VXNlcm5hbWU6\r\n"  # "Username:", the words every client waits for
_ASK_FOR_PASSWORD = b"334 UGFzc3dvcmQ6\r\n"  # "Password:"

Take = Callable[[MailProtocol, bytes], None]


class ResponseReader:
    """Reads one line of the exchange: ``line``, nothing when it was too long."""

    __slots__ = ("_is_too_long", "_part", "line")

    def __init__(self) -> None:
        self._part = b""
        self._is_too_long = False
        self.line: bytes | None = None

    def feed(self, data: bytes, start: int) -> int | None:
        """Take in ``data`` from ``start``; give the position behind the line, once complete."""
        window = self._part + data[start:]
        end = window.find(CRLF)
        self._is_too_long = self._is_too_long or end > MAX_AUTH_LINE
        if end < 0:
            self._is_too_long = self._is_too_long or len(window) > MAX_AUTH_LINE
            self._part = window[-1:] if self._is_too_long else window
            return None
        if not self._is_too_long:
            self.line = window[:end]
        return start + end + len(CRLF) - len(self._part)


def may_authenticate(connection: MailProtocol) -> bool:
    """Tell whether a key may travel over this connection."""
    client = connection.client
    return client.tls is not None or connection.settings.auth_without_tls.allows(client.claimed_ip)


def auth(connection: MailProtocol, argument: bytes) -> None:
    """Find out whose account the client uses; on the submission port alone."""
    if not connection.settings.is_submission:
        raise CommandError(replies.NOT_IMPLEMENTED)
    if not connection.client.helo_name:
        raise CommandError(replies.SAY_HELLO_FIRST)
    if connection.client.account_id is not None:
        raise CommandError(replies.IS_AUTHENTICATED)
    if not may_authenticate(connection):
        raise CommandError(replies.TLS_REQUIRED)
    mechanism, _, response = argument.partition(b" ")
    begin = MECHANISMS.get(mechanism.decode("latin-1").upper())
    if begin is None:
        raise CommandError(replies.UNKNOWN_MECHANISM)
    begin(connection, response.strip())


def _plain(connection: MailProtocol, response: bytes) -> None:
    if response:
        _take_plain(connection, _decode(b"" if response == _EMPTY else response))
    else:
        _ask(connection, _ASK_FOR_ANYTHING, _take_plain)


def _take_plain(connection: MailProtocol, response: bytes) -> None:
    """Read ``authorization NUL user NUL password`` (RFC 4616 2)."""
    parts = response.split(b"\0")
    if len(parts) != 3:
        raise CommandError(replies.BAD_AUTH_RESPONSE)
    _check(connection, parts[2])


def _login(connection: MailProtocol, response: bytes) -> None:
    """Ask for user name and password, one by one (draft-murchison-sasl-login)."""
    if response:
        _take_user_name(connection, response)
    else:
        _ask(connection, _ASK_FOR_USER_NAME, _take_user_name)


def _take_user_name(connection: MailProtocol, response: bytes) -> None:
    _ask(connection, _ASK_FOR_PASSWORD, _check)


MECHANISMS: Mapping[str, Take] = {"PLAIN": _plain, "LOGIN": _login}


def _ask(connection: MailProtocol, challenge: bytes, take: Take) -> None:
    reader = ResponseReader()
    deadline = connection.clock.seconds() + connection.limits.idle
    connection.read(reader, deadline, partial(_answered, connection, reader, take))
    connection.reply(challenge)


def _answered(connection: MailProtocol, reader: ResponseReader, take: Take) -> None:
    try:
        if reader.line is None:
            raise CommandError(replies.AUTH_LINE_TOO_LONG)
        if reader.line == _CANCEL:
            raise CommandError(replies.AUTH_CANCELLED)
        take(connection, _decode(reader.line))
    except CommandError as error:
        connection.refuse(error.reply)


def _decode(response: bytes) -> bytes:
    try:
        return binascii.a2b_base64(response, strict_mode=True)
    except binascii.Error:
        raise CommandError(replies.BAD_AUTH_RESPONSE) from None


def _check(connection: MailProtocol, secret: bytes) -> None:
    connection.ask(
        partial(connection.receiver.authenticate, secret.decode("utf-8", "surrogateescape")),
        partial(_accept, connection),
        partial(_refuse, connection),
    )


def _accept(connection: MailProtocol, caller: Caller) -> None:
    connection.client.signed_in = caller
    connection.auth_failures = 0
    connection.reply(replies.AUTHENTICATED)


def _refuse(connection: MailProtocol, failure: Failure) -> None:
    connection.reply(connection.explain(failure, replies.AUTH_FAILURES, replies.AUTH_UNAVAILABLE))
    if isinstance(failure.value, InvalidCredentials):
        connection.auth_failures += 1
        if connection.auth_failures >= connection.limits.auth_failures:
            connection.close(replies.TOO_MANY_AUTH_FAILURES)

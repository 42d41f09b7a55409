"""The SMTP commands except DATA and BDAT, and the table of all commands by their verbs."""

import binascii
import re
from collections.abc import Callable, Mapping
from functools import partial

from msgspec.structs import replace
from twisted.internet.defer import Deferred
from twisted.python.failure import Failure

from mailcheck.core.accounts import Caller
from mailcheck.core.errors import InvalidCredentials, RecipientUnknown
from mailcheck.core.messages import Recipient
from mailcheck.core.network_addresses import parse_ip_address
from mailcheck.smtp import replies
from mailcheck.smtp.client import ClientOverrides
from mailcheck.smtp.commands import (
    CommandError,
    parse_helo,
    parse_mail,
    parse_rcpt,
)
from mailcheck.smtp.content import bdat, data
from mailcheck.smtp.protocol import MailProtocol, Verb, require_no_argument
from mailcheck.smtp.receive_path import CRLF
from mailcheck.smtp.replies import reply_lines
from mailcheck.smtp.settings import MAX_AUTH_LINE, is_in_networks
from mailcheck.smtp.transaction import Stage, Transaction

# AUTH (RFC 4954): an API key is the password, under any user name.

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

    def answered() -> None:
        try:
            if reader.line is None:
                raise CommandError(replies.AUTH_LINE_TOO_LONG)
            if reader.line == _CANCEL:
                raise CommandError(replies.AUTH_CANCELLED)
            take(connection, _decode(reader.line))
        except CommandError as error:
            connection.refuse(error.reply)

    connection.read(reader, deadline, answered)
    connection.reply(challenge)


def _decode(response: bytes) -> bytes:
    try:
        return binascii.a2b_base64(response, strict_mode=True)
    except binascii.Error:
        raise CommandError(replies.BAD_AUTH_RESPONSE) from None


def _check(connection: MailProtocol, secret: bytes) -> None:
    def accept(caller: Caller) -> None:
        connection.client.signed_in = caller
        connection.auth_failures = 0
        connection.reply(replies.AUTHENTICATED)

    def refuse(failure: Failure) -> None:
        line = connection.explain(failure, replies.AUTH_FAILURES, replies.AUTH_UNAVAILABLE)
        connection.reply(line)
        if isinstance(failure.value, InvalidCredentials):
            connection.auth_failures += 1
            if connection.auth_failures >= connection.limits.auth_failures:
                connection.close(replies.TOO_MANY_AUTH_FAILURES)

    connection.ask(
        partial(connection.receiver.authenticate, secret.decode("utf-8", "surrogateescape")),
        accept,
        refuse,
    )


# XCLIENT and XFORWARD: a trusted host speaks for the client that is connected to it, as in
# Postfix's XCLIENT_README and XFORWARD_README. The address and the name of the client are used;
# the other attributes are read and ignored.

XCLIENT_ATTRIBUTES = ("NAME", "ADDR", "PORT", "PROTO", "HELO", "LOGIN")
XFORWARD_ATTRIBUTES = ("NAME", "ADDR", "PORT", "PROTO", "HELO", "IDENT", "SOURCE")

_UNKNOWN = frozenset({"[UNAVAILABLE]", "[TEMPUNAVAIL]"})
_IPV6_PREFIX = "IPV6:"
_MAX_VALUE = 255

_XTEXT_OCTET = re.compile(r"\+([0-9A-F]{2})")  # RFC 3461 4
_VALUE = re.compile(r"[!-~]+")  # neither spaces nor controls after decoding

Attributes = Mapping[str, str | None]


def may_override_client(connection: MailProtocol) -> bool:
    """Tell whether the host that connected is trusted; what it says of itself does not count."""
    return is_in_networks(connection.client.ip, connection.settings.xclient_from)


def xclient(connection: MailProtocol, argument: bytes) -> None:
    """Start anew as another client, to the end of the connection."""
    attributes = _read_attributes(connection, argument, XCLIENT_ATTRIBUTES)
    client = connection.client
    overrides = speak(client.overrides, attributes)
    if attributes.get("ADDR") is not None and overrides.client_ip is None:
        raise CommandError(replies.BAD_ATTRIBUTES)
    client.override(overrides)
    connection.greet()


def xforward(connection: MailProtocol, argument: bytes) -> None:
    """Take the next mail as another client's."""
    attributes = _read_attributes(connection, argument, XFORWARD_ATTRIBUTES)
    client = connection.client
    client.forwarded = speak(client.forwarded or ClientOverrides(), attributes)
    connection.reply(replies.OK)


def _read_attributes(
    connection: MailProtocol, argument: bytes, known: tuple[str, ...]
) -> Attributes:
    if not may_override_client(connection):
        raise CommandError(replies.NOT_AUTHORIZED)
    if connection.transaction is not None:
        raise CommandError(replies.MAIL_IS_OPEN)
    return parse_attributes(argument, known)


def parse_attributes(argument: bytes, known: tuple[str, ...]) -> Attributes:
    """Read ``NAME=value ...`` with values in xtext; nothing for one that is unavailable.

    :raises CommandError: an attribute that is not known, or a bad value (501).
    """
    attributes: dict[str, str | None] = {}
    for word in argument.decode("latin-1").split():
        name, _, value = word.partition("=")
        if name.upper() not in known:
            raise CommandError(replies.BAD_ATTRIBUTES)
        attributes[name.upper()] = None if value.upper() in _UNKNOWN else _undo_xtext(value)
    if not attributes:
        raise CommandError(replies.BAD_ATTRIBUTES)
    return attributes


def _undo_xtext(value: str) -> str:
    """Undo xtext; values that were not encoded, as old Postfixes send them, come through."""
    text = _XTEXT_OCTET.sub(lambda match: chr(int(match[1], 16)), value)
    if len(text) > _MAX_VALUE or _VALUE.fullmatch(text) is None:
        raise CommandError(replies.BAD_ATTRIBUTES)
    return text


def speak(so_far: ClientOverrides, attributes: Attributes) -> ClientOverrides:
    """Add what the attributes say to what was said before."""
    if "ADDR" in attributes:
        so_far = replace(so_far, client_ip=_read_address(attributes["ADDR"]))
    if "HELO" in attributes:
        so_far = replace(so_far, helo_name=attributes["HELO"])
    if "PROTO" in attributes:
        protocol = attributes["PROTO"]
        is_extended = None if protocol is None else protocol.upper() == "ESMTP"
        so_far = replace(so_far, is_extended=is_extended)
    return so_far


def _read_address(value: str | None) -> str | None:
    """Read an address; one that is none (XFORWARD allows it) is not known."""
    if value is None:
        return None
    if value.upper().startswith(_IPV6_PREFIX):
        value = value[len(_IPV6_PREFIX) :]
    address = parse_ip_address(value)
    return None if address is None else str(address)


_HELP = replies.reply_lines(
    214,
    [
        "2.0.0 Commands: EHLO HELO MAIL RCPT DATA BDAT RSET NOOP QUIT",
        "2.0.0 VRFY HELP STARTTLS AUTH",
        "2.0.0 RFC 5321 says what they do",
    ],
)


def rset(connection: MailProtocol, argument: bytes) -> None:
    """Drop the mail that has begun (RFC 5321 4.1.1.5)."""
    require_no_argument(argument)
    connection.end_transaction()
    connection.reply(replies.OK)


def noop(connection: MailProtocol, argument: bytes) -> None:
    """Do nothing; an argument is allowed (RFC 5321 4.1.1.9)."""
    connection.reply(replies.OK)


def vrfy(connection: MailProtocol, argument: bytes) -> None:
    """Tell nobody which inboxes exist (RFC 5321 3.5.3 allows 252)."""
    if not argument:
        raise CommandError(replies.NOTHING_TO_VERIFY)
    connection.reply(replies.CANNOT_VERIFY)


def help_(connection: MailProtocol, argument: bytes) -> None:
    """List the commands."""
    connection.reply(_HELP)


def quit_(connection: MailProtocol, argument: bytes) -> None:
    """Part in peace."""
    require_no_argument(argument)
    connection.part(replies.BYE)


def not_implemented(connection: MailProtocol, argument: bytes) -> None:
    """Refuse a command that exists elsewhere."""
    raise CommandError(replies.NOT_IMPLEMENTED)


def http(connection: MailProtocol, argument: bytes) -> None:
    """Hang up on a browser that was sent here: no line of its request may become a command."""
    connection.close(replies.NO_HTTP)


def ehlo(connection: MailProtocol, argument: bytes) -> None:
    """Start, or start again, with the extensions (RFC 5321 4.1.1.1)."""
    settings, client = connection.settings, connection.client
    client.greet(parse_helo(argument), is_extended=True)
    connection.end_transaction()
    offers = [
        settings.host_name,
        f"SIZE {connection.limits.message_size}",
        "8BITMIME",
        "SMTPUTF8",
        "PIPELINING",
        "CHUNKING",
        "ENHANCEDSTATUSCODES",
        "HELP",
    ]
    if client.tls is None and settings.tls_for(client.claimed_ip) is not None:
        offers.append("STARTTLS")
    if settings.is_submission and may_authenticate(connection):
        offers.append(f"AUTH {' '.join(MECHANISMS)}")
    if may_override_client(connection):
        offers.append(f"XCLIENT {' '.join(XCLIENT_ATTRIBUTES)}")
        offers.append(f"XFORWARD {' '.join(XFORWARD_ATTRIBUTES)}")
    connection.reply(reply_lines(250, offers))


def helo(connection: MailProtocol, argument: bytes) -> None:
    """Start, or start again, without them."""
    connection.client.greet(parse_helo(argument), is_extended=False)
    connection.end_transaction()
    connection.reply(reply_lines(250, [connection.settings.host_name]))


def mail(connection: MailProtocol, argument: bytes) -> None:
    """Begin a mail (RFC 5321 4.1.1.2)."""
    client = connection.client
    if not client.helo_name:
        raise CommandError(replies.SAY_HELLO_FIRST)
    if connection.transaction is not None:
        raise CommandError(replies.MAIL_IS_OPEN)
    if connection.settings.is_submission and client.account_id is None:
        raise CommandError(replies.AUTH_REQUIRED)
    command = parse_mail(argument, has_auth=connection.settings.is_submission)
    if command.size > connection.limits.message_size:
        raise CommandError(replies.MESSAGE_TOO_LARGE)
    connection.transaction = Transaction(
        client.session(), command.envelope_sender, is_utf8=command.is_utf8
    )
    connection.receiver.traffic.moved(connection.transaction)
    connection.transcript.begin_mail()
    connection.reply(replies.SENDER_OK)


def rcpt(connection: MailProtocol, argument: bytes) -> None:
    """Ask whether a recipient has an inbox here (RFC 5321 4.1.1.3)."""
    transaction = connection.transaction
    if transaction is None:
        raise CommandError(replies.MAIL_FIRST)
    if transaction.stage is not Stage.ENVELOPE:  # RFC 3030 2: after BDAT none may follow
        raise CommandError(replies.BDAT_IS_OPEN)
    mailbox = parse_rcpt(argument, is_utf8=transaction.is_utf8)
    address = mailbox.folded
    if address in transaction.recipients:
        connection.reply(replies.RECIPIENT_OK)
        return
    if len(transaction.recipients) >= connection.limits.recipients:
        connection.reply(replies.TOO_MANY_RECIPIENTS)
        return

    def accept(recipient: Recipient) -> None:
        transaction.recipients[address] = recipient
        connection.reply(replies.RECIPIENT_OK)

    connection.ask(
        partial(
            connection.receiver.accept_recipient,
            transaction.session,
            transaction.envelope_sender,
            mailbox,
        ),
        accept,
        partial(_refuse, connection),
    )


def _refuse(connection: MailProtocol, failure: Failure) -> Deferred[None] | None:
    """Reply to a refused recipient."""
    line = connection.explain(failure)
    return connection.reject_slowly(line, is_guess=isinstance(failure.value, RecipientUnknown))


def starttls(connection: MailProtocol, argument: bytes) -> None:
    """Encrypt the connection.

    Input behind the command came in clear. It is not from whom the client
    will have talked to once TLS is on (CVE-2011-0411): it is dropped.
    """
    client = connection.client
    if client.tls is not None:
        raise CommandError(replies.TLS_IS_ON)
    certificate = connection.settings.tls_for(client.claimed_ip)
    if certificate is None:
        raise CommandError(replies.NOT_IMPLEMENTED)
    require_no_argument(argument)
    if connection.has_more_input:
        connection.drop_input()
        raise CommandError(replies.INPUT_BEFORE_TLS)
    connection.reply(replies.READY_FOR_TLS)
    connection.start_tls(certificate)


VERBS: Mapping[bytes, Verb] = {
    b"AUTH": auth,
    b"BDAT": bdat,
    b"DATA": data,
    b"EHLO": ehlo,
    b"HELO": helo,
    b"HELP": help_,
    b"MAIL": mail,
    b"NOOP": noop,
    b"QUIT": quit_,
    b"RCPT": rcpt,
    b"RSET": rset,
    b"STARTTLS": starttls,
    b"VRFY": vrfy,
    b"XCLIENT": xclient,
    b"XFORWARD": xforward,
    # Commands that servers know and we do not have.
    b"ETRN": not_implemented,
    b"EXPN": not_implemented,
    b"SAML": not_implemented,
    b"SEND": not_implemented,
    b"SOML": not_implemented,
    b"TURN": not_implemented,
    # A request that a page in a browser was made to send here.
    b"CONNECT": http,
    b"DELETE": http,
    b"GET": http,
    b"HEAD": http,
    b"OPTIONS": http,
    b"PATCH": http,
    b"POST": http,
    b"PUT": http,
}

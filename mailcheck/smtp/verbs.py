"""The SMTP commands except DATA and BDAT, and the table of all commands."""

import re
from collections.abc import Callable, Mapping
from functools import partial

from msgspec.structs import replace
from twisted.internet.defer import Deferred
from twisted.python.failure import Failure

from mailcheck.connections.lines import HTTP_METHODS, CommandError
from mailcheck.connections.policies import is_in_networks
from mailcheck.connections.sasl import (
    PlainCredentials,
    decode_base64,
    decode_text,
    parse_plain,
)
from mailcheck.core.accounts import Caller
from mailcheck.core.errors import InvalidCredentials, RecipientUnknown
from mailcheck.core.messages import Recipient
from mailcheck.core.network_addresses import is_local_client, parse_ip_address
from mailcheck.smtp import replies
from mailcheck.smtp.client import ClientOverrides
from mailcheck.smtp.commands import (
    parse_helo,
    parse_mail,
    parse_rcpt,
)
from mailcheck.smtp.content import bdat, data
from mailcheck.smtp.protocol import MailProtocol, Verb, require_no_argument
from mailcheck.smtp.replies import reply_lines
from mailcheck.smtp.transaction import Stage, Transaction

_CANCEL = b"*"
_EMPTY = b"="  # an initial response that is present but empty, RFC 4954 4

_ASK_FOR_ANYTHING = b"334 \r\n"
_ASK_FOR_USER_NAME = b"334 VXNlcm5hbWU6\r\n"  # "Username:", which all clients expect
_ASK_FOR_PASSWORD = b"334 UGFzc3dvcmQ6\r\n"  # "Password:"

HandleResponse = Callable[[MailProtocol, bytes], None]

XCLIENT_ATTRIBUTES = ("NAME", "ADDR", "PORT", "PROTO", "HELO", "LOGIN")
XFORWARD_ATTRIBUTES = ("NAME", "ADDR", "PORT", "PROTO", "HELO", "IDENT", "SOURCE")

OF_OTHER_SERVERS = (b"ETRN", b"EXPN", b"SAML", b"SEND", b"SOML", b"TURN")
"""Commands that other servers implement."""

_UNKNOWN = frozenset({"[UNAVAILABLE]", "[TEMPUNAVAIL]"})
_IPV6_PREFIX = "IPV6:"
_MAX_VALUE = 255

_XTEXT_OCTET = re.compile(r"\+([0-9A-F]{2})")  # RFC 3461 4
_VALUE = re.compile(r"[!-~]+")  # neither spaces nor controls after decoding

Attributes = Mapping[str, str | None]

_HELP = replies.reply_lines(
    214,
    [
        "2.0.0 Commands: EHLO HELO MAIL RCPT DATA BDAT RSET NOOP QUIT",
        "2.0.0 VRFY HELP STARTTLS AUTH",
        "2.0.0 See RFC 5321 for their syntax",
    ],
)


def ehlo(connection: MailProtocol, argument: bytes) -> None:
    """Start or restart the session, and list the extensions (RFC 5321 4.1.1.1)."""
    settings, client = connection.settings, connection.client
    client.set_helo_name(parse_helo(argument), is_extended=True)
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
    """Start or restart the session without extensions."""
    connection.client.set_helo_name(parse_helo(argument), is_extended=False)
    connection.end_transaction()
    connection.reply(reply_lines(250, [connection.settings.host_name]))


def mail(connection: MailProtocol, argument: bytes) -> None:
    """Begin a transaction (RFC 5321 4.1.1.2)."""
    client = connection.client
    if not client.helo_name:
        raise CommandError(replies.HELO_FIRST)
    if connection.transaction is not None:
        raise CommandError(replies.MAIL_IS_OPEN)
    settings = connection.settings
    is_auth_required = settings.is_submission and not settings.is_auth_optional
    if is_auth_required and client.account_id is None:
        raise CommandError(replies.AUTH_REQUIRED)
    command = parse_mail(argument, has_auth=connection.settings.is_submission)
    if command.size > connection.limits.message_size:
        raise CommandError(replies.MESSAGE_TOO_LARGE)
    connection.transaction = Transaction(
        client.session(), command.envelope_sender, is_utf8=command.is_utf8
    )
    connection.receiver.traffic.note_progress(connection.transaction)
    connection.transcript.begin_mail()
    connection.reply(replies.SENDER_OK)


def rcpt(connection: MailProtocol, argument: bytes) -> None:
    """Add a recipient, if it has an inbox here (RFC 5321 4.1.1.3)."""
    transaction = connection.transaction
    if transaction is None:
        raise CommandError(replies.MAIL_FIRST)
    if transaction.stage is not Stage.ENVELOPE:  # RFC 3030 2: no RCPT after BDAT
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

    connection.call(
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
    """Reject a recipient, possibly after a delay."""
    line = connection.failure_reply(failure)
    return connection.reject_slowly(line, is_guess=isinstance(failure.value, RecipientUnknown))


def starttls(connection: MailProtocol, argument: bytes) -> None:
    """Start TLS.

    Input after the command was sent in plaintext, perhaps by an attacker (CVE-2011-0411). It is
    discarded.
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


def rset(connection: MailProtocol, argument: bytes) -> None:
    """Discard the current transaction (RFC 5321 4.1.1.5)."""
    require_no_argument(argument)
    connection.end_transaction()
    connection.reply(replies.OK)


def noop(connection: MailProtocol, argument: bytes) -> None:
    """Do nothing; an argument is allowed (RFC 5321 4.1.1.9)."""
    connection.reply(replies.OK)


def vrfy(connection: MailProtocol, argument: bytes) -> None:
    """Reply with 252, which does not disclose whether an inbox exists (RFC 5321 3.5.3)."""
    if not argument:
        raise CommandError(replies.NOTHING_TO_VERIFY)
    connection.reply(replies.CANNOT_VERIFY)


def help_(connection: MailProtocol, argument: bytes) -> None:
    """List the commands."""
    connection.reply(_HELP)


def quit_(connection: MailProtocol, argument: bytes) -> None:
    """Say goodbye and close the connection."""
    require_no_argument(argument)
    connection.close_with(replies.BYE)


def not_implemented(connection: MailProtocol, argument: bytes) -> None:
    """Reject a command that other servers implement."""
    raise CommandError(replies.NOT_IMPLEMENTED)


def http(connection: MailProtocol, argument: bytes) -> None:
    """Disconnect a browser, so that no line of its request is taken for a command."""
    connection.half_close_with(replies.NO_HTTP)


# AUTH (RFC 4954). The password is an API key, or name and password are those of an account.


def may_authenticate(connection: MailProtocol) -> bool:
    """Return whether a key may be sent over this connection."""
    client = connection.client
    return client.tls is not None or connection.settings.auth_without_tls.allows(client.claimed_ip)


def auth(connection: MailProtocol, argument: bytes) -> None:
    """Authenticate the client; only on the submission port."""
    if not connection.settings.is_submission:
        port = connection.settings.submission_port
        if port is None or not is_local_client(connection.client.claimed_ip):
            raise CommandError(replies.NOT_IMPLEMENTED)
        raise CommandError(replies.log_in_at(port))
    if not connection.client.helo_name:
        raise CommandError(replies.HELO_FIRST)
    if connection.client.account_id is not None:
        raise CommandError(replies.IS_AUTHENTICATED)
    if not may_authenticate(connection):
        raise CommandError(replies.TLS_REQUIRED)
    if not argument:
        raise CommandError(replies.NO_MECHANISM)
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
    try:
        credentials = parse_plain(response)
    except ValueError:
        raise CommandError(replies.BAD_AUTH_RESPONSE) from None
    _check(connection, credentials)


def _login(connection: MailProtocol, response: bytes) -> None:
    """Ask for the user name and then the password (draft-murchison-sasl-login)."""
    if response:
        _take_user_name(connection, _decode(b"" if response == _EMPTY else response))
    else:
        _ask(connection, _ASK_FOR_USER_NAME, _take_user_name)


def _take_user_name(connection: MailProtocol, response: bytes) -> None:
    name = decode_text(response)

    def take_password(connection: MailProtocol, password: bytes) -> None:
        _check(connection, PlainCredentials(name, decode_text(password)))

    _ask(connection, _ASK_FOR_PASSWORD, take_password)


MECHANISMS: Mapping[str, HandleResponse] = {"PLAIN": _plain, "LOGIN": _login}


def _ask(connection: MailProtocol, challenge: bytes, handle: HandleResponse) -> None:
    def take(line: bytes | None) -> None:
        try:
            if line is None:
                raise CommandError(replies.AUTH_LINE_TOO_LONG)
            if line == _CANCEL:
                raise CommandError(replies.AUTH_CANCELLED)
            handle(connection, _decode(line))
        except CommandError as error:
            connection.reject(error.reply)

    connection.ask(challenge, connection.limits.idle, take)


def _decode(response: bytes) -> bytes:
    try:
        return decode_base64(response)
    except ValueError:
        raise CommandError(replies.BAD_AUTH_RESPONSE) from None


def _check(connection: MailProtocol, credentials: PlainCredentials) -> None:
    def accept(caller: Caller) -> None:
        connection.sign_in(caller)
        connection.auth_failures = 0
        connection.reply(replies.AUTHENTICATED)

    def reject(failure: Failure) -> None:
        line = connection.failure_reply(failure, replies.AUTH_FAILURES, replies.AUTH_UNAVAILABLE)
        connection.reply(line)
        if isinstance(failure.value, InvalidCredentials):
            connection.auth_failures += 1
            if connection.auth_failures >= connection.limits.auth_failures:
                connection.half_close_with(replies.TOO_MANY_AUTH_FAILURES)

    connection.call(
        partial(
            connection.receiver.authenticate,
            credentials.user,
            credentials.password,
            connection.client.claimed_ip,
        ),
        accept,
        reject,
    )


# XCLIENT and XFORWARD: a trusted host names the client that is connected to it, as in Postfix's
# XCLIENT_README and XFORWARD_README. The address, the HELO name and the protocol of the client are
# used; the other attributes are ignored.


def may_override_client(connection: MailProtocol) -> bool:
    """Return whether the host that connected is trusted, by its real address."""
    return is_in_networks(connection.client.ip, connection.settings.xclient_from)


def xclient(connection: MailProtocol, argument: bytes) -> None:
    """Reset the session to that of another client, until the end of the connection."""
    attributes = _read_attributes(connection, argument, XCLIENT_ATTRIBUTES)
    client = connection.client
    overrides = apply_attributes(client.overrides, attributes)
    if attributes.get("ADDR") is not None and overrides.client_ip is None:
        raise CommandError(replies.BAD_ATTRIBUTES)
    client.override(overrides)
    connection.greet()


def xforward(connection: MailProtocol, argument: bytes) -> None:
    """Attribute the next mail to another client."""
    attributes = _read_attributes(connection, argument, XFORWARD_ATTRIBUTES)
    client = connection.client
    client.forwarded = apply_attributes(client.forwarded or ClientOverrides(), attributes)
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
    """Parse ``NAME=value ...`` with values in xtext; an unavailable value becomes `None`.

    :raises CommandError: an attribute is unknown, or a value is invalid (501).
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
    """Decode xtext; values that are not encoded, as old Postfix versions send them, stay as is."""
    text = _XTEXT_OCTET.sub(lambda match: chr(int(match[1], 16)), value)
    if len(text) > _MAX_VALUE or _VALUE.fullmatch(text) is None:
        raise CommandError(replies.BAD_ATTRIBUTES)
    return text


def apply_attributes(so_far: ClientOverrides, attributes: Attributes) -> ClientOverrides:
    """Return the overrides with the values of the attributes."""
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
    """Parse an IP address; return `None` for any other value, which XFORWARD allows."""
    if value is None:
        return None
    if value.upper().startswith(_IPV6_PREFIX):
        value = value[len(_IPV6_PREFIX) :]
    address = parse_ip_address(value)
    return None if address is None else str(address)


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
    **dict.fromkeys(OF_OTHER_SERVERS, not_implemented),
    **dict.fromkeys(HTTP_METHODS, http),
}

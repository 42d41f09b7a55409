"""Sending mail over a relay of the operator, byte for byte (RFC 5321).

``twisted.mail`` speaks SMTP. It escapes dots inside of a block only, changes line ends, and sends
no parameters with MAIL, so these steps are here.
"""

from collections.abc import Sequence
from io import BytesIO
from typing import Any, cast

from msgspec import Struct
from OpenSSL.SSL import Error as TlsError
from twisted.internet.defer import Deferred
from twisted.mail.smtp import (
    Address,
    AddressError,
    AuthenticationError,
    AUTHRequiredError,
    EHLORequiredError,
    ESMTPSender,
    ESMTPSenderFactory,
    SMTPClientError,
    SMTPConnectError,
    SMTPDeliveryError,
    TLSRequiredError,
)
from twisted.python.failure import Failure

from mailcheck.ports.probes import Relayed, RelayReply
from mailcheck.probes.guarded_dialer import ProbeReactor
from mailcheck.probes.trust import TrustRoots

SECONDS = 60.0
"""Seconds for sending one mail. Servers that scan mail take their time before they reply."""

QUIT_SECONDS = 5.0
"""Seconds for QUIT after it."""

LONGEST_REPLY = 200
"""Maximum length of the relay's reply, in characters, that is shown."""

RELAY = "the relay"
"""What the problems of a mail call the relay."""

REQUIRED, OFFERED, NEVER = "required", "offered", "never"
"""Whether STARTTLS is required, used if offered, or never used."""


class Relay(Struct, frozen=True):
    """The relay, with the name that this server says in EHLO.

    :param owner: says whose user and password they are, such as ``of [alerts]``.
    :param called: what problems call it.
    :param address: the address to connect to; empty for that of the host.
    :param is_cut_off: close the connection in the middle of the mail.
    """

    host: str
    port: int
    tls: str
    user: str
    password: str
    own_name: str
    owner: str
    called: str = RELAY
    address: str = ""
    is_cut_off: bool = False


class SmtpRelay(Struct, frozen=True, eq=False):
    """Sends mails, each over its own connection.

    :param seconds: time limit for one mail.
    """

    reactor: ProbeReactor
    relay: Relay
    trust: TrustRoots
    seconds: float = SECONDS

    async def send_mail(self, sender: str, recipients: Sequence[str], mail: bytes) -> Relayed:
        """Send a mail whose lines end in CRLF. Failures are part of the result."""
        relay, reactor = self.relay, cast(Any, self.reactor)
        if not self.trust and relay.tls != NEVER:
            return Relayed(
                problem="no certificate authorities are installed to verify the certificate of "
                + relay.called
            )
        if not all(map(_is_sendable, (sender, *recipients))):
            problem = f"an address of the envelope cannot be sent to {relay.called}"
            return Relayed(problem=problem, is_permanent=True)
        context = None if relay.tls == NEVER else self.trust.verify_as(relay.host)
        sent: Deferred[Any] = Deferred(lambda _: factory.hang_up())
        factory = _Sending(
            relay.user.encode(),
            relay.password.encode(),
            sender,
            recipients,
            _ReadAtOnce(mail),
            sent,
            retries=0,
            timeout=self.seconds,
            contextFactory=context,
            heloFallback=False,
            requireAuthentication=bool(relay.user),
            requireTransportSecurity=relay.tls == REQUIRED,
        )
        factory.domain = relay.own_name.encode("ascii")
        factory.is_cut_off = relay.is_cut_off
        address = relay.address or relay.host
        factory.connector = reactor.connectTCP(address, relay.port, factory, self.seconds)
        tried: Deferred[Relayed] = sent.addCallbacks(_accepted, self._explain)
        problem = f"{relay.called} did not accept it within {self.seconds:g} seconds"
        tried.addTimeout(self.seconds, self.reactor, lambda *_: Relayed(problem=problem))
        try:
            return await tried
        finally:
            # The result does not depend on QUIT.
            factory.gone.addTimeout(QUIT_SECONDS, self.reactor)
            factory.gone.addErrback(lambda _: factory.hang_up())
            await factory.gone

    def _explain(self, failure: Failure) -> Relayed:
        error, called = failure.value, self.relay.called
        if isinstance(error, _CannotCarry):
            problem = _readable(error.resp).replace(RELAY, called)
            return Relayed(problem=problem, is_permanent=True)
        if isinstance(error, SMTPDeliveryError):
            return _refused(error, called)
        if isinstance(error, TLSRequiredError):
            return Relayed(problem=f"{called} offers no STARTTLS")
        if isinstance(error, EHLORequiredError):
            return Relayed(problem=f"{called} does not support EHLO")
        if isinstance(error, AuthenticationError | AUTHRequiredError):
            owner = self.relay.owner
            return Relayed(problem=f"{called} rejected the user and password {owner}")
        if isinstance(error, SMTPConnectError):
            if isinstance(error.__cause__, TlsError):
                problem = "certificate is not for its host name, or not from a known authority"
                return Relayed(problem=f"{called}'s {problem}")
            return Relayed(problem=f"{called} does not answer, or closed the connection")
        failure.trap(Exception)
        return Relayed(problem=f"{called} does not speak SMTP")


class _CannotCarry(SMTPClientError):
    """The relay has no extension that the mail needs."""


class _Sender(ESMTPSender):
    """Sends one mail as it is, with the parameters of MAIL that it needs."""

    _parameters = b""
    _is_cut = False

    def authenticate(self, code: int, resp: bytes, items: dict[bytes, bytes | None]) -> None:
        """Compare what the relay offers with what the mail needs, and go on."""
        mail = self.factory.file.getvalue()
        offered = {name.upper(): value for name, value in items.items()}
        problem = self._choose_parameters(mail, offered)
        if problem:
            self.sendError(_CannotCarry(552, problem.encode()))
        else:
            super().authenticate(code, resp, items)

    def _choose_parameters(self, mail: bytes, offered: dict[bytes, bytes | None]) -> str:
        """Set the parameters, or return why the relay cannot carry the mail."""
        chosen = []
        if b"SIZE" in offered:
            most = int(limit) if (limit := offered[b"SIZE"] or b"").isdigit() else 0
            if 0 < most < len(mail):
                return f"the mail has {len(mail):,} octets, and the relay accepts {most:,}"
            chosen.append(b"SIZE=%d" % len(mail))
        if not mail.isascii():
            if b"8BITMIME" not in offered:
                return "the mail has 8-bit characters, and the relay does not offer 8BITMIME"
            chosen.append(b"BODY=8BITMIME")
            is_plain = mail.partition(b"\r\n\r\n")[0].isascii()
            if b"SMTPUTF8" in offered and not is_plain:
                chosen.append(b"SMTPUTF8")
        self._parameters = b"".join(b" " + parameter for parameter in chosen)
        return ""

    def sendLine(self, line: bytes) -> None:  # noqa: N802
        """Send a command."""
        is_mail = line.startswith(b"MAIL FROM:")
        if not self._is_cut:  # the end of the mail would follow
            super().sendLine(line + self._parameters if is_mail else line)

    def transformChunk(self, chunk: bytes) -> bytes:  # noqa: N802
        """Return the whole mail with its dots escaped (RFC 5321 4.5.2)."""
        self.resetTimeout()
        escaped = chunk.replace(b"\r\n.", b"\r\n..")
        if escaped.startswith(b"."):
            escaped = b"." + escaped
        if self.factory.is_cut_off:
            self._is_cut = True
            transport: Any = self.transport
            transport.write(escaped[: len(escaped) // 2])
            transport.loseConnection()
            return b""
        return escaped


class _Sending(ESMTPSenderFactory):
    """The factory for one mail. ``gone`` fires when its connection has ended."""

    noisy = False
    protocol = _Sender
    connector: Any = None
    is_cut_off = False

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.gone: Deferred[None] = Deferred()
        self._made: Any = None

    def buildProtocol(self, addr: object) -> Any:
        """Create the protocol."""
        self._made = super().buildProtocol(addr)
        return self._made

    def clientConnectionLost(self, connector: object, err: Failure) -> None:  # noqa: N802
        """Record the end of the connection."""
        super().clientConnectionLost(connector, err)
        self._note_gone()

    def clientConnectionFailed(self, connector: object, err: Failure) -> None:  # noqa: N802
        """Record that no connection was made."""
        super().clientConnectionFailed(connector, err)
        self._note_gone()

    def hang_up(self) -> None:
        """Close the connection in any state. The result is not changed any more."""
        self.sendFinished = True
        transport = getattr(self._made, "transport", None)
        if transport is None:
            self.connector.disconnect()
        else:
            transport.abortConnection()

    def _note_gone(self) -> None:
        if not self.gone.called:
            self.gone.callback(None)


class _ReadAtOnce(BytesIO):
    """A mail that is read as a whole, so that all of its dots are found."""

    def read(self, _: int | None = -1, /) -> bytes:
        """Return the whole mail."""
        return super().read()


def _is_sendable(address: str) -> bool:
    """Return whether ``twisted.mail`` can write an address: ASCII, and of one word."""
    try:
        Address(address)
    except (AddressError, UnicodeEncodeError):
        return False
    return True


def _accepted(result: tuple[int, Sequence[tuple[bytes, int, bytes]]]) -> Relayed:
    return Relayed(250, replies=_replies(result[1]))


def _refused(error: SMTPDeliveryError, called: str) -> Relayed:
    """Return the result of a rejection. Only rejected recipients and mails are permanent.

    A relay that rejects the sender may reject everything until the operator fixes the cause.
    """
    replies = _replies(cast(Any, error.addresses) or ())
    code, said = error.code, _readable(error.resp)
    for reply in replies:
        if not reply.is_accepted:
            code, said = reply.code, reply.text
    problem = f"{called} answered {code} {said}"[:LONGEST_REPLY].rstrip()
    is_permanent = bool(replies) and 500 <= code < 600
    return Relayed(code if code > 0 else None, problem, is_permanent, replies)


def _replies(answered: Sequence[tuple[bytes, int, bytes]]) -> tuple[RelayReply, ...]:
    return tuple(
        RelayReply(address.decode("ascii", "replace"), code, _readable(said)[:LONGEST_REPLY])
        for address, code, said in answered
    )


def _readable(said: bytes | str) -> str:
    words = said.decode("utf-8", "replace") if isinstance(said, bytes) else str(said)
    return " ".join("".join(word if word.isprintable() else " " for word in words).split())

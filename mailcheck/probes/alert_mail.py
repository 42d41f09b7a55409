"""Sending alerts by mail, over the operator's relay, to recipients that the operator allows.

Every account chooses what it watches, and so influences the text of its alerts. Mail is therefore
only sent to addresses that the operator has allowed the account, with a daily limit per address.
"""

from collections.abc import Mapping, Sequence
from io import BytesIO
from typing import Any, cast

from msgspec import Struct
from OpenSSL.SSL import Error as TlsError
from twisted.internet.defer import Deferred
from twisted.mail.smtp import (
    AuthenticationError,
    AUTHRequiredError,
    EHLORequiredError,
    ESMTPSenderFactory,
    SMTPConnectError,
    SMTPDeliveryError,
    TLSRequiredError,
)
from twisted.python.failure import Failure

from mailcheck.core.accounts import EVERY_ACCOUNT
from mailcheck.core.client_limits import DAY_WINDOW
from mailcheck.core.errors import InvalidParameter
from mailcheck.core.keys import key_of
from mailcheck.core.webhooks import ALERT_TO, MAILTO, Attempt, address_of
from mailcheck.ports.clocks import Now
from mailcheck.ports.cluster import Hit, RateCounters
from mailcheck.ports.probes import Post, WebhookLine
from mailcheck.probes.guarded_dialer import ProbeReactor
from mailcheck.probes.trust import TrustRoots
from mailcheck.probes.webhook_sender import HttpWebhookDialer

SECONDS = 60.0
"""Seconds for sending one mail. Servers that scan mail take their time before they reply."""

QUIT_SECONDS = 5.0
"""Seconds for QUIT after it."""

MOST_A_DAY = 100
"""Maximum number of mails to one address per UTC day, from all accounts."""

LONGEST_REPLY = 200
"""Maximum length of the relay's reply, in characters, that is shown to the owner of a watch."""

REQUIRED, OFFERED, NEVER = "required", "offered", "never"
"""Whether STARTTLS is required, used if offered, or never used."""

NO_RELAY = "this service cannot send mail, since its operator has not set [alerts] smtp_relay"


class Relay(Struct, frozen=True):
    """The relay for outgoing mail, with the sender address and the HELO name of this server."""

    host: str
    port: int
    tls: str
    user: str
    password: str
    sender: str
    own_name: str


class AlertMail:
    """Sends mails, each over its own connection.

    :param allowed: addresses, or whole domains as ``@domain``, by account name.
    :param seconds: time limit for one mail.
    """

    def __init__(
        self,
        reactor: ProbeReactor,
        relay: Relay,
        allowed: Mapping[str, Sequence[str]],
        trust: TrustRoots,
        counters: RateCounters,
        now: Now,
        seconds: float = SECONDS,
    ) -> None:
        self._reactor = reactor
        self._relay = relay
        self._allowed = allowed
        self._trust = trust
        self._counters = counters
        self._now = now
        self._seconds = seconds

    def is_allowed(self, address: str, account_name: str) -> bool:
        """Return whether alerts of an account may be sent to an address."""
        folded = address.lower()
        names = (folded, f"@{folded.rpartition('@')[2]}")
        allowed = (*self._allowed.get(account_name, ()), *self._allowed.get(EVERY_ACCOUNT, ()))
        return any(one.lower() in names for one in allowed)

    async def send(self, account_name: str, post: Post) -> Attempt:
        """Send a mail. Failures are part of the result."""
        address = address_of(post.url)
        if not self.is_allowed(address, account_name):
            return Attempt(problem=_not_allowed(address), is_permanent=True)
        if not self._trust and self._relay.tls != NEVER:
            return Attempt(
                problem="no certificate authorities are installed to verify the relay's certificate"
            )
        now = self._now()
        windows = ((DAY_WINDOW, DAY_WINDOW.index(now), MOST_A_DAY),)
        hit = Hit(key_of("alert mail to", address.lower()), windows)
        ((count,),) = await self._counters.hit(hit)
        if count > MOST_A_DAY:
            wait = max(1, DAY_WINDOW.reset_at(now) - now)
            return Attempt(problem=f"it has received {MOST_A_DAY} mails today", wait=wait)
        return await self._send(address, post.body)

    async def _send(self, address: str, mail: bytes) -> Attempt:
        relay, reactor = self._relay, cast(Any, self._reactor)
        context = None if relay.tls == NEVER else self._trust.verify_as(relay.host)
        sent: Deferred[Any] = Deferred(lambda _: factory.hang_up())
        factory = _Sending(
            relay.user.encode(),
            relay.password.encode(),
            relay.sender,
            address,
            _ReadAtOnce(mail.replace(b"\r\n", b"\n")),  # line ends as twisted.mail expects them
            sent,
            retries=0,
            timeout=self._seconds,
            contextFactory=context,
            heloFallback=False,
            requireAuthentication=bool(relay.user),
            requireTransportSecurity=relay.tls == REQUIRED,
        )
        factory.domain = relay.own_name.encode("ascii")
        factory.connector = reactor.connectTCP(relay.host, relay.port, factory, self._seconds)
        tried: Deferred[Attempt] = sent.addCallbacks(lambda _: Attempt(250), _explain)
        problem = f"the relay did not accept it within {self._seconds:g} seconds"
        tried.addTimeout(self._seconds, self._reactor, lambda *_: Attempt(problem=problem))
        try:
            return await tried
        finally:
            # The result does not depend on QUIT.
            factory.gone.addTimeout(QUIT_SECONDS, self._reactor)
            factory.gone.addErrback(lambda _: factory.hang_up())
            await factory.gone


class _Sending(ESMTPSenderFactory):
    """The factory for one mail. ``gone`` fires when its connection has ended."""

    noisy = False
    connector: Any = None

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
    """A mail that is read as a whole, since twisted.mail only escapes dots inside of a block."""

    def read(self, _: int | None = -1, /) -> bytes:
        """Return the whole mail."""
        return super().read()


class WebhookAndMailDialer:
    """The `mailcheck.ports.probes.WebhookDialer` for webhook URLs and for mail addresses.

    :param mail: `None` without a relay.
    """

    def __init__(self, posts: HttpWebhookDialer, mail: AlertMail | None) -> None:
        self._posts = posts
        self._mail = mail

    def require_allowed(self, url: str, account_name: str) -> None:
        """Reject a URL that obviously leads to this service itself or to a private address."""
        self._posts.require_allowed(url, account_name)

    def require_mailable(self, address: str, account_name: str) -> None:
        """Reject an address to which an account may not send alerts."""
        if self._mail is None:
            raise InvalidParameter(ALERT_TO, f"{ALERT_TO}: {NO_RELAY}")
        if not self._mail.is_allowed(address, account_name):
            raise InvalidParameter(ALERT_TO, f"{ALERT_TO}: {_not_allowed(address)}")

    def line(self, account_name: str) -> "WebhookOrMailLine":
        """Return a new line for a webhook of an account. It does not connect yet."""
        return WebhookOrMailLine(self._posts.line(account_name), self._mail, account_name)


class WebhookOrMailLine:
    """Delivers to one receiver, by HTTP or by mail."""

    def __init__(self, posts: WebhookLine, mail: AlertMail | None, account_name: str) -> None:
        self._posts = posts
        self._mail = mail
        self._account_name = account_name

    def post(self, post: Post) -> Deferred[Attempt]:
        """Send an event. Failures are part of the result; cancelling closes the connection."""
        if not post.url.startswith(MAILTO):
            return self._posts.post(post)
        return Deferred.fromCoroutine(self._send(post))

    def hang_up(self) -> None:
        """Close the open connection. A mail closes its own."""
        self._posts.hang_up()

    async def _send(self, post: Post) -> Attempt:
        if self._mail is None:
            return Attempt(problem=NO_RELAY)
        return await self._mail.send(self._account_name, post)


def _not_allowed(address: str) -> str:
    return f"the operator does not allow alerts to {address}; see [alerts] allow_recipients"


def _explain(failure: Failure) -> Attempt:
    error = failure.value
    if isinstance(error, SMTPDeliveryError):
        return _refused(error)
    if isinstance(error, TLSRequiredError):
        return Attempt(problem="the relay offers no STARTTLS")
    if isinstance(error, EHLORequiredError):
        return Attempt(problem="the relay does not support EHLO")
    if isinstance(error, AuthenticationError | AUTHRequiredError):
        return Attempt(problem="the relay rejected the user and password of [alerts]")
    if isinstance(error, SMTPConnectError):
        if isinstance(error.__cause__, TlsError):
            problem = "the relay's certificate is not for its host name, or not from a known"
            return Attempt(problem=f"{problem} authority")
        return Attempt(problem="the relay does not answer, or closed the connection")
    failure.trap(Exception)
    return Attempt(problem="the relay does not speak SMTP")


def _refused(error: SMTPDeliveryError) -> Attempt:
    """Return the result of a rejection. Only rejected recipients and mails are permanent.

    A relay that rejects the sender may reject everything until the operator fixes the cause.
    """
    replies: Any = error.addresses or ()
    code, said = error.code, error.resp
    for _, one_code, one_said in replies:
        if not 200 <= one_code < 300:
            code, said = one_code, one_said
    words = said.decode("utf-8", "replace") if isinstance(said, bytes) else str(said)
    shown = " ".join("".join(one if one.isprintable() else " " for one in words).split())
    problem = f"the relay answered {code} {shown}"[:LONGEST_REPLY].rstrip()
    is_permanent = bool(replies) and 500 <= code < 600
    return Attempt(code if code > 0 else None, problem, is_permanent=is_permanent)

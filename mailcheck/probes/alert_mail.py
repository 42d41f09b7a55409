"""Mailing alerts by the relay that the operator names, to those whom the operator allows.

Whoever may register chooses what is watched, and so in part what an alert says: so there is no mail
but to addresses that the operator has allowed the account, and no more than so many in a day.
"""

from collections.abc import Mapping, Sequence
from io import BytesIO
from typing import Any

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
"""For one mail: servers that look into what they are given take their time before they answer."""

QUIT_SECONDS = 5.0
"""For the goodbye after it."""

MOST_A_DAY = 100
"""Mails that one address gets in a UTC day, of all accounts."""

LONGEST_REPLY = 200
"""Characters of what the relay answered, which the owner of a watch is shown."""

REQUIRED, OFFERED, NEVER = "required", "offered", "never"
"""When STARTTLS is used."""

NO_RELAY = "this service sends no mail: its operator has set no [alerts] smtp_relay"


class Relay(Struct, frozen=True):
    """The server that takes mail for others; ``sender`` is whom it is from, ``own_name`` ours."""

    host: str
    port: int
    tls: str
    user: str
    password: str
    sender: str
    own_name: str


class AlertMail:
    """Mails, one at a time, over a connection for each.

    :param allowed: addresses, or all of a domain as ``@domain``, by the names of accounts.
    :param seconds: for one mail.
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
        """Tell whether alerts of an account may be mailed to an address."""
        folded = address.lower()
        names = (folded, f"@{folded.rpartition('@')[2]}")
        allowed = (*self._allowed.get(account_name, ()), *self._allowed.get(EVERY_ACCOUNT, ()))
        return any(one.lower() in names for one in allowed)

    async def send(self, account_name: str, post: Post) -> Attempt:
        """Send a mail; whatever goes wrong is the result."""
        address = address_of(post.url)
        if not self.is_allowed(address, account_name):
            return Attempt(problem=_not_allowed(address), is_permanent=True)
        if not self._trust and self._relay.tls != NEVER:
            return Attempt(problem="there are no authorities to check the relay's certificate")
        now = self._now()
        windows = ((DAY_WINDOW, DAY_WINDOW.index(now), MOST_A_DAY),)
        hit = Hit(key_of("alert mail to", address.lower()), windows)
        ((count,),) = await self._counters.hit(hit)
        if count > MOST_A_DAY:
            wait = max(1, DAY_WINDOW.reset_at(now) - now)
            return Attempt(problem=f"it has had {MOST_A_DAY} mails in this day", wait=wait)
        return await self._send(address, post.body)

    async def _send(self, address: str, mail: bytes) -> Attempt:
        relay, anything = self._relay, self._reactor
        context = None if relay.tls == NEVER else self._trust.verify_as(relay.host)
        sent: Deferred[Any] = Deferred(lambda _: factory.hang_up())
        factory = _Sending(
            relay.user.encode(),
            relay.password.encode(),
            relay.sender,
            address,
            _InOnePiece(mail.replace(b"\r\n", b"\n")),  # as twisted.mail wants it
            sent,
            retries=0,
            timeout=self._seconds,
            contextFactory=context,
            heloFallback=False,
            requireAuthentication=bool(relay.user),
            requireTransportSecurity=relay.tls == REQUIRED,
        )
        factory.domain = relay.own_name.encode("ascii")
        factory.connector = anything.connectTCP(relay.host, relay.port, factory, self._seconds)
        tried: Deferred[Attempt] = sent.addCallbacks(lambda _: Attempt(250), _explain)
        problem = f"the relay did not take it within {self._seconds:g} seconds"
        tried.addTimeout(self._seconds, self._reactor, lambda *_: Attempt(problem=problem))
        try:
            return await tried
        finally:
            # It says goodbye, which nothing depends on.
            factory.gone.addTimeout(QUIT_SECONDS, self._reactor)
            factory.gone.addErrback(lambda _: factory.hang_up())
            await factory.gone


class _Sending(ESMTPSenderFactory):
    """One mail; ``gone`` fires when its connection is no more."""

    noisy = False
    connector: Any = None

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.gone: Deferred[None] = Deferred()
        self._made: Any = None

    def buildProtocol(self, addr: object) -> Any:
        """Make what talks to the relay."""
        self._made = super().buildProtocol(addr)
        return self._made

    def clientConnectionLost(self, connector: object, err: Failure) -> None:  # noqa: N802
        """Note that it is over."""
        super().clientConnectionLost(connector, err)
        self._note_gone()

    def clientConnectionFailed(self, connector: object, err: Failure) -> None:  # noqa: N802
        """Note that it never began."""
        super().clientConnectionFailed(connector, err)
        self._note_gone()

    def hang_up(self) -> None:
        """Close the connection, in whatever state it is; what comes of it is no result any more."""
        self.sendFinished = True
        transport = getattr(self._made, "transport", None)
        if transport is None:
            self.connector.disconnect()
        else:
            transport.abortConnection()

    def _note_gone(self) -> None:
        if not self.gone.called:
            self.gone.callback(None)


class _InOnePiece(BytesIO):
    """A mail that is read at once: dots are doubled within what is read, not where pieces meet."""

    def read(self, _: int | None = -1, /) -> bytes:
        """Give all of it."""
        return super().read()


class WebhookAndMailDialer:
    """The `mailcheck.operations.inbox.webhook_ports.WebhookDialer` for both: by what a URL is.

    :param mail: nothing where there is no relay.
    """

    def __init__(self, posts: HttpWebhookDialer, mail: AlertMail | None) -> None:
        self._posts = posts
        self._mail = mail

    def require_foreign(self, url: str) -> None:
        """See that a URL does not lead to this service itself, as far as that shows."""
        self._posts.require_foreign(url)

    def require_mailable(self, address: str, account_name: str) -> None:
        """See that an account may have alerts mailed to an address."""
        if self._mail is None:
            raise InvalidParameter(ALERT_TO, f"{ALERT_TO}: {NO_RELAY}")
        if not self._mail.is_allowed(address, account_name):
            raise InvalidParameter(ALERT_TO, f"{ALERT_TO}: {_not_allowed(address)}")

    def line(self, account_name: str) -> "WebhookOrMailLine":
        """Give a line of its own for a webhook of an account; nothing is sent yet."""
        return WebhookOrMailLine(self._posts.line(account_name), self._mail, account_name)


class WebhookOrMailLine:
    """The way to one receiver, by post or by mail."""

    def __init__(self, posts: WebhookLine, mail: AlertMail | None, account_name: str) -> None:
        self._posts = posts
        self._mail = mail
        self._account_name = account_name

    def post(self, post: Post) -> Deferred[Attempt]:
        """Send an event; whatever goes wrong is the result. Cancelling hangs up."""
        if not post.url.startswith(MAILTO):
            return self._posts.post(post)
        return Deferred.fromCoroutine(self._send(post))

    def hang_up(self) -> None:
        """Close what is open: a mail has a connection of its own, which ends with it."""
        self._posts.hang_up()

    async def _send(self, post: Post) -> Attempt:
        if self._mail is None:
            return Attempt(problem=NO_RELAY)
        return await self._mail.send(self._account_name, post)


def _not_allowed(address: str) -> str:
    return f"its operator does not allow alerts to {address}: [alerts] allow_recipients"


def _explain(failure: Failure) -> Attempt:
    error = failure.value
    if isinstance(error, SMTPDeliveryError):
        return _refused(error)
    if isinstance(error, TLSRequiredError):
        return Attempt(problem="the relay offers no STARTTLS")
    if isinstance(error, EHLORequiredError):
        return Attempt(problem="the relay does not take EHLO")
    if isinstance(error, AuthenticationError | AUTHRequiredError):
        return Attempt(problem="the relay does not take the user and password of [alerts]")
    if isinstance(error, SMTPConnectError):
        if isinstance(error.__cause__, TlsError):
            problem = "the relay's certificate is not that of its host, or nobody known vouches"
            return Attempt(problem=f"{problem} for it")
        return Attempt(problem="the relay does not answer, or broke off")
    failure.trap(Exception)
    return Attempt(problem="the relay answers what is no SMTP")


def _refused(error: SMTPDeliveryError) -> Attempt:
    """Say what was refused: the address or the mail for good, all else for the moment.

    Who refuses the sender may refuse everything, for a reason that the operator mends.
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

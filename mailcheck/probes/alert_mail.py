"""Sending alerts by mail, over the operator's relay, to recipients that the operator allows.

Every account chooses what it watches, and so influences the text of its alerts. Mail is therefore
only sent to addresses that the operator has allowed the account, with a daily limit per address.
"""

from msgspec import Struct
from twisted.internet.defer import Deferred

from mailcheck.core.accounts import AllowedRecipients
from mailcheck.core.errors import InvalidParameter
from mailcheck.core.memory.client_limits import DAY_WINDOW
from mailcheck.core.memory.keys import key_of
from mailcheck.core.webhooks import ALERT_TO, MAILTO, Attempt, address_of
from mailcheck.ports.clocks import Now
from mailcheck.ports.cluster import Hit, RateCounters
from mailcheck.ports.probes import MailRelay, Post, WebhookLine
from mailcheck.probes.webhook_sender import HttpWebhookDialer

MOST_A_DAY = 100
"""Maximum number of mails to one address per UTC day, from all accounts."""

NO_RELAY = "this service cannot send mail, since its operator has not set [alerts] smtp_relay"


class AlertMail(Struct, frozen=True, eq=False):
    """Sends alerts over a relay, from one address.

    :param allowed: the recipients of each account.
    """

    relay: MailRelay
    sender: str
    allowed: AllowedRecipients
    counters: RateCounters
    now: Now

    def is_allowed(self, address: str, account_name: str) -> bool:
        """Return whether alerts of an account may be sent to an address."""
        return self.allowed.has(address, account_name)

    async def send(self, account_name: str, post: Post) -> Attempt:
        """Send a mail. Failures are part of the result."""
        address = address_of(post.url)
        if not self.is_allowed(address, account_name):
            return Attempt(problem=_not_allowed(address), is_permanent=True)
        now = self.now()
        windows = ((DAY_WINDOW, DAY_WINDOW.index(now), MOST_A_DAY),)
        hit = Hit(key_of("alert mail to", address.lower()), windows)
        ((count,),) = await self.counters.hit(hit)
        if count > MOST_A_DAY:
            wait = max(1, DAY_WINDOW.reset_at(now) - now)
            return Attempt(problem=f"it has received {MOST_A_DAY} mails today", wait=wait)
        sent = await self.relay.send_mail(self.sender, (address,), post.body)
        return Attempt(sent.status, sent.problem, is_permanent=sent.is_permanent)


class WebhookAndMailDialer(Struct, frozen=True, eq=False):
    """The `mailcheck.ports.probes.WebhookDialer` for webhook URLs and for mail addresses.

    :param mail: `None` without a relay.
    """

    posts: HttpWebhookDialer
    mail: AlertMail | None

    def require_allowed(self, url: str, account_name: str) -> None:
        """Reject a URL that obviously leads to this service itself or to a private address."""
        self.posts.require_allowed(url, account_name)

    def require_mailable(self, address: str, account_name: str) -> None:
        """Reject an address to which an account may not send alerts."""
        if self.mail is None:
            raise InvalidParameter(ALERT_TO, f"{ALERT_TO}: {NO_RELAY}")
        if not self.mail.is_allowed(address, account_name):
            raise InvalidParameter(ALERT_TO, f"{ALERT_TO}: {_not_allowed(address)}")

    def line(self, account_name: str) -> "WebhookOrMailLine":
        """Return a new line for a webhook of an account. It does not connect yet."""
        return WebhookOrMailLine(self.posts.line(account_name), self.mail, account_name)


class WebhookOrMailLine(Struct, frozen=True, eq=False):
    """Delivers to one receiver, by HTTP or by mail."""

    posts: WebhookLine
    mail: AlertMail | None
    account_name: str

    def post(self, post: Post) -> Deferred[Attempt]:
        """Send an event. Failures are part of the result; cancelling closes the connection."""
        if not post.url.startswith(MAILTO):
            return self.posts.post(post)
        return Deferred.fromCoroutine(self._send(post))

    def hang_up(self) -> None:
        """Close the open connection. A mail closes its own."""
        self.posts.hang_up()

    async def _send(self, post: Post) -> Attempt:
        if self.mail is None:
            return Attempt(problem=NO_RELAY)
        return await self.mail.send(self.account_name, post)


def _not_allowed(address: str) -> str:
    return f"the operator does not allow alerts to {address}; see [alerts] allow_recipients"

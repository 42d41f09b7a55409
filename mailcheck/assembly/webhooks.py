"""Builds webhooks: what their owners do with them, and the deliveries."""

from collections.abc import Callable
from functools import cached_property, partial
from typing import Any

from twisted.application.service import Service

from mailcheck.assembly.cluster import Cluster
from mailcheck.assembly.probes import EventDialer
from mailcheck.core.identifiers import RandomBytes
from mailcheck.core.messages import ListedMessage
from mailcheck.core.watches import receiver_key
from mailcheck.core.webhooks import Webhook
from mailcheck.daemon.periodic import PeriodicService
from mailcheck.daemon.services import LeasedWorkService
from mailcheck.operations.domains.watches.receivers import AlertReceivers
from mailcheck.operations.domains.watches.tell import MailHead, write_mail_abroad
from mailcheck.operations.inbox.contents import MessageLoader
from mailcheck.operations.inbox.deliver_webhooks import RENEWAL, DeliverWebhooks
from mailcheck.operations.inbox.feeds import InboxFeeds
from mailcheck.operations.inbox.webhook_ports import WebhookLine
from mailcheck.operations.inbox.webhooks import KeepWebhooks
from mailcheck.operations.ports import MessageStore, Now, WakeUps
from mailcheck.storage.accounts.webhook_store import SqlWebhookStore
from mailcheck.storage.engine import Engine
from mailcheck.wire.inbox.messages import render_listed_message
from mailcheck.wire.shapes import dump_json
from mailcheck.wire.urls import PublicUrls


class DialerWhenNeeded:
    """Makes the dialer when a webhook is first made or told: most daemons have none."""

    def __init__(self, make: Callable[[], EventDialer]) -> None:
        self._make = make

    @cached_property
    def made(self) -> EventDialer:
        """Give it, the same one each time."""
        return self._make()

    def require_foreign(self, url: str) -> None:
        """See that a URL does not lead to this service itself, as far as that shows."""
        self.made.require_foreign(url)

    def require_mailable(self, address: str, account_name: str) -> None:
        """See that an account may have alerts mailed to an address."""
        self.made.require_mailable(address, account_name)

    def line(self, account_name: str) -> WebhookLine:
        """Give a line of its own for a webhook of an account."""
        return self.made.line(account_name)


def write_event(
    sender: str, urls: PublicUrls, webhook: Webhook, message: ListedMessage, text: str
) -> bytes:
    """Write what a webhook is told of a message, the same at each try: a mail is ``sender``'s."""
    if not webhook.is_mail:
        return dump_json(render_listed_message(message, urls))
    summary = message.summary
    token = receiver_key(f"{summary.id} {webhook.url}")
    head = MailHead(sender, webhook.address, token, summary.received_at)
    why = (
        f"You get this since watches of the account {webhook.account_name} name your address.\n"
        "It ends when none of them does: ask who has that account, or the operator of\n"
        f"{urls.public_url}. The watches are at {urls.public_url}/watches."
    )
    return write_mail_abroad(head, summary.header.subject, text, why)


class WebhookAssembly:
    """Everything of webhooks, built once; ``holder`` is the name under which this process delivers.

    :param make_dialer: makes what connects to receivers.
    """

    def __init__(
        self,
        engine: Engine,
        messages: MessageStore,
        feeds: InboxFeeds,
        loader: MessageLoader,
        make_dialer: Callable[[], EventDialer],
        cluster: Cluster,
        urls: PublicUrls,
        alerts_from: str,
        holder: str,
        reactor: Any,
        now: Now,
        expiry_now: Now,
        random_bytes: RandomBytes,
    ) -> None:
        write = partial(write_event, alerts_from, urls)
        self.dialer = DialerWhenNeeded(make_dialer)
        store = SqlWebhookStore(engine)
        changes: WakeUps[str] = cluster.wake_ups("webhooks")
        self.receivers = AlertReceivers(store, self.dialer, changes, now, random_bytes)
        self.keep = KeepWebhooks(store, self.dialer, changes, write, reactor, now, random_bytes)
        self.deliver = DeliverWebhooks(
            store,
            messages,
            feeds,
            loader,
            self.dialer,
            write,
            holder,
            reactor,
            now,
            expiry_now,
            random_bytes,
        )
        self._reactor = reactor
        changes.listen(self.deliver.hear_change)
        cluster.when_hints_are_lost(self.deliver.look)

    def services(self) -> list[Service]:
        """Give what delivers, and what keeps the lease."""
        renewing = PeriodicService(
            "looking after webhooks", RENEWAL, self.deliver.renew, self._reactor
        )
        return [LeasedWorkService(self.deliver), renewing]

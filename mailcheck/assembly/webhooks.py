"""Builds webhooks: what their owners do with them, and the deliveries."""

from collections.abc import Callable
from functools import cached_property
from typing import Any

from twisted.application.service import Service

from mailcheck.assembly.cluster import Cluster
from mailcheck.core.identifiers import RandomBytes
from mailcheck.core.messages import ListedMessage
from mailcheck.daemon.periodic import PeriodicService
from mailcheck.daemon.services import LeasedWorkService
from mailcheck.operations.inbox.contents import MessageLoader
from mailcheck.operations.inbox.deliver_webhooks import RENEWAL, DeliverWebhooks
from mailcheck.operations.inbox.feeds import InboxFeeds
from mailcheck.operations.inbox.webhook_ports import WebhookDialer, WebhookLine
from mailcheck.operations.inbox.webhooks import KeepWebhooks
from mailcheck.operations.ports import MessageStore, Now, WakeUps
from mailcheck.storage.accounts.webhook_store import SqlWebhookStore
from mailcheck.storage.engine import Engine
from mailcheck.wire.inbox.messages import render_listed_message
from mailcheck.wire.shapes import dump_json
from mailcheck.wire.urls import PublicUrls


class DialerWhenNeeded:
    """Makes the dialer when a webhook is first made or told: most daemons have none."""

    def __init__(self, make: Callable[[], WebhookDialer]) -> None:
        self._make = make

    @cached_property
    def made(self) -> WebhookDialer:
        """Give it, the same one each time."""
        return self._make()

    def require_foreign(self, url: str) -> None:
        """See that a URL does not lead to this service itself, as far as that shows."""
        self.made.require_foreign(url)

    def line(self, account_name: str) -> WebhookLine:
        """Give a line of its own for a webhook of an account."""
        return self.made.line(account_name)


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
        make_dialer: Callable[[], WebhookDialer],
        cluster: Cluster,
        urls: PublicUrls,
        holder: str,
        reactor: Any,
        now: Now,
        expiry_now: Now,
        random_bytes: RandomBytes,
    ) -> None:
        def write(message: ListedMessage) -> bytes:
            return dump_json(render_listed_message(message, urls))

        self.dialer = DialerWhenNeeded(make_dialer)
        store = SqlWebhookStore(engine)
        changes: WakeUps[str] = cluster.wake_ups("webhooks")
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

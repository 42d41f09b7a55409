"""Watches of an account: create, list, change, run and delete."""

from collections.abc import Callable, Sequence

from msgspec import Struct
from msgspec.structs import replace

from mailcheck.core.cursors import START
from mailcheck.core.domains.domain_names import (
    MAX_ADDRESSES,
    MAX_SELECTORS,
    parse_blocklist_query,
    parse_host_address,
    parse_selector,
)
from mailcheck.core.domains.watches import (
    ALERT_FIELD,
    ALERT_TAG,
    HISTORY_KEPT,
    LONGEST_INTERVAL,
    MOST_CHANGES,
    MOST_RECEIVERS,
    SHORTEST_INTERVAL,
    Alert,
    AlertId,
    Watch,
    WatchId,
    WatchKind,
    WatchSettings,
    next_run,
    receiver_key,
)
from mailcheck.core.errors import (
    AlertNotFound,
    ExpectedFailure,
    InvalidParameter,
    WatchBusy,
    WatchNotFound,
)
from mailcheck.core.filters import MessageFilter
from mailcheck.core.identifiers import AccountId, WebhookId, new_short_id, new_webhook_secret
from mailcheck.core.instants import Instant
from mailcheck.core.webhooks import (
    ALERT_TO,
    MAILTO,
    Webhook,
    address_of,
    parse_alert_receivers,
    split_kind,
    web_url_of,
)
from mailcheck.operations.concurrency import run_all
from mailcheck.operations.domains.watches.run_watches import RunWatches
from mailcheck.ports.clocks import ClockAndRandomness
from mailcheck.ports.cluster import Notifications
from mailcheck.ports.probes import ReceiverRules
from mailcheck.store.accounts.webhook_store import WebhookStore
from mailcheck.store.domains.watch_store import History, WatchPage, WatchStore


class AlertReceivers(Struct, frozen=True, eq=False):
    """The receivers of a watch's alerts besides the owner's inbox: webhooks and mail addresses.

    Each receiver is a webhook of the account whose filter selects the alerts that name it. It is
    delivered to as any other webhook, and exists as long as a watch names it.
    """

    store: WebhookStore
    rules: ReceiverRules
    changes: Notifications[str]
    clocks: ClockAndRandomness

    async def read(self, account_id: AccountId, named: Sequence[str]) -> tuple[Webhook, ...]:
        """Return webhooks for the receivers that a watch names, as they are stored if new.

        :raises InvalidParameter: a receiver is invalid or not allowed for this account, or there
            are too many.
        """
        receivers = parse_alert_receivers(named)
        if len(receivers) > MOST_RECEIVERS:
            raise InvalidParameter(
                ALERT_TO, f"{ALERT_TO} has {len(receivers)} addresses; {MOST_RECEIVERS} are allowed"
            )
        urls = tuple(dict.fromkeys(url for _, url in map(split_kind, receivers)))
        account_name = await self.store.account_name(account_id) if urls else ""
        for url in urls:
            if url.startswith(MAILTO):
                self.rules.require_mailable(address_of(url), account_name)
            else:
                self.rules.require_allowed(web_url_of(url), account_name)
        return tuple(self._new(account_id, url) for url in urls)

    async def ready(
        self, account_id: AccountId, settings: WatchSettings
    ) -> tuple[WatchSettings, tuple[Webhook, ...]]:
        """Return the settings with the URLs of their receivers, and the receivers; see `read`."""
        receivers = await self.read(account_id, settings.alert_to)
        return replace(settings, alert_to=parse_alert_receivers(settings.alert_to)), receivers

    async def made_of(
        self, account_id: AccountId, receivers: Sequence[Webhook]
    ) -> tuple[Webhook, ...]:
        """Return the receivers that the account did not have before."""
        self.note_change()
        found = [await self.store.find(account_id, receiver.id) for receiver in receivers]
        return tuple(webhook for webhook in found if webhook is not None)

    async def of(self, account_id: AccountId, urls: Sequence[str]) -> list[Webhook]:
        """Return the receivers that a watch names, in its order, without deleted ones.

        :param urls: the receivers as the watch names them, with their kinds.
        """
        urls = tuple(dict.fromkeys(url for _, url in map(split_kind, urls)))
        known = await self.store.of_account(account_id) if urls else []
        stored = {webhook.url: webhook for webhook in known if webhook.is_of_watches}
        return [stored[url] for url in urls if url in stored]

    def note_change(self) -> None:
        """Announce that receivers were created or deleted."""
        self.changes.publish("some")

    def _new(self, account_id: AccountId, url: str) -> Webhook:
        return Webhook(
            id=WebhookId(new_short_id(self.clocks.random_bytes)),
            account_id=account_id,
            account_name="",
            url=url,
            wanted=MessageFilter(tag=ALERT_TAG, headers=((ALERT_FIELD, receiver_key(url)),)),
            created_at=self.clocks.now(),
            position=START,
            secret=new_webhook_secret(self.clocks.random_bytes),
            is_of_watches=True,
        )


SHOWN_ALERTS = 100
"""Maximum number of alerts listed for a watch or an account."""


class WatchDetails(Struct, frozen=True):
    """A watch with its alerts (open ones first) and its receivers."""

    watch: Watch
    alerts: list[Alert]
    receivers: list[Webhook]


class SavedWatch(Struct, frozen=True):
    """A stored watch, and the receivers that are new to the account."""

    watch: Watch
    new_receivers: tuple[Webhook, ...] = ()


class ManageWatches(Struct, frozen=True, eq=False):
    """The operations of an owner on watches. ``hint`` tells the runner that a watch is due."""

    store: WatchStore
    runner: RunWatches
    receivers: AlertReceivers
    hint: Callable[[], None]
    clocks: ClockAndRandomness
    allow_special_use: bool
    allow_private: bool

    async def create(
        self, account_id: AccountId, target: str, settings: WatchSettings
    ) -> SavedWatch:
        """Watch a domain or an address. The first run starts as soon as possible.

        :raises InvalidParameter: the target or a setting is invalid.
        :raises TooManyWatches: the account has the maximum number of watches.
        :raises WatchExists: the account watches this target already.
        :raises TooManyWebhooks: the account has the maximum number of alert receivers.
        """
        added = await self._add(account_id, target, settings)
        self.hint()
        return added

    async def create_many(
        self, account_id: AccountId, wanted: Sequence[tuple[str, WatchSettings]]
    ) -> list[SavedWatch | ExpectedFailure]:
        """Create many watches, and return for each the watch or its error."""

        async def add(target: str, settings: WatchSettings) -> SavedWatch | ExpectedFailure:
            try:
                return await self._add(account_id, target, settings)
            except ExpectedFailure as failure:
                return failure

        outcomes: list[SavedWatch | ExpectedFailure] = await run_all(
            *(add(*pair) for pair in wanted)
        )
        self.hint()
        return outcomes

    async def of_account(self, account_id: AccountId, limit: int, offset: int = 0) -> WatchPage:
        """List the watches of an account, sorted by target."""
        return await self.store.of_account(account_id, limit, offset)

    async def open_alerts(self, account_id: AccountId) -> list[Alert]:
        """List the open alerts of an account, newest first."""
        return await self.store.open_alerts(account_id, SHOWN_ALERTS)

    async def show(self, account_id: AccountId, watch_id: str) -> WatchDetails:
        """Return a watch with its alerts.

        :raises WatchNotFound: the account has no watch with this id.
        """
        watch = _found(await self.store.find(account_id, WatchId(watch_id)))
        alerts = await self.store.alerts(account_id, watch.id, SHOWN_ALERTS)
        receivers = await self.receivers.of(account_id, watch.settings.alert_to)
        return WatchDetails(watch, alerts, receivers)

    async def change(
        self,
        account_id: AccountId,
        watch_id: str,
        choose: Callable[[WatchSettings], WatchSettings],
    ) -> SavedWatch:
        """Change the settings of a watch.

        :raises WatchNotFound: the account has no watch with this id.
        :raises InvalidParameter: a setting is invalid.
        :raises TooManyWebhooks: the account has the maximum number of alert receivers.
        """
        watch = _found(await self.store.find(account_id, WatchId(watch_id)))
        settings, receivers = await self._ready(account_id, watch.kind, choose(watch.settings))
        next_run_at = next_run(watch.id, settings.interval, self.clocks.now())
        changed = _found(
            await self.store.change(account_id, watch.id, settings, next_run_at, receivers)
        )
        return SavedWatch(changed, await self.receivers.made_of(account_id, receivers))

    async def of_target(self, account_id: AccountId, target: str) -> Watch | None:
        """Return the watch of a domain or an address, or `None`."""
        return await self.store.find_target(account_id, target)

    async def switch(
        self,
        account_id: AccountId,
        target: str,
        *,
        is_on: bool,
        settings: WatchSettings,
    ) -> SavedWatch | None:
        """Start or pause the checks of a target. A watch is created if there is none.

        :param settings: the settings of a new watch.
        :returns: the watch, or `None` if there is none to pause.
        """
        watch = await self.store.find_target(account_id, target)
        if watch is not None:
            return await self.change(
                account_id, watch.id, lambda known: replace(known, is_paused=not is_on)
            )
        return await self.create(account_id, target, settings) if is_on else None

    async def save(self, account_id: AccountId, target: str, settings: WatchSettings) -> SavedWatch:
        """Change the settings of the watch of a target, or create it.

        :raises InvalidParameter: the target or a setting is invalid.
        :raises TooManyWatches: the account has the maximum number of watches.
        :raises TooManyWebhooks: the account has the maximum number of alert receivers.
        """
        watch = await self.store.find_target(account_id, target)
        if watch is None:
            return await self.create(account_id, target, settings)
        return await self.change(
            account_id, watch.id, lambda known: replace(settings, is_paused=known.is_paused)
        )

    async def delete(self, account_id: AccountId, watch_id: str) -> None:
        """Delete a watch and its history.

        :raises WatchNotFound: the account has no watch with this id.
        """
        if not await self.store.delete(account_id, WatchId(watch_id)):
            raise _missing()
        self.receivers.note_change()

    async def run(self, account_id: AccountId, watch_id: str) -> WatchDetails:
        """Run a watch now. The time of its next regular run does not change.

        :raises WatchNotFound: the account has no watch with this id.
        :raises WatchBusy: another daemon is running the watch.
        """
        watch = _found(await self.store.find(account_id, WatchId(watch_id)))
        if not await self.runner.run_now(account_id, watch.id):
            raise WatchBusy("this watch is running; try again in a moment")
        return await self.show(account_id, watch_id)

    async def history(
        self, account_id: AccountId, watch_id: str, since: Instant | None = None
    ) -> tuple[Watch, History]:
        """Return a watch and its changes since a moment, or its whole history.

        :raises WatchNotFound: the account has no watch with this id.
        """
        watch = _found(await self.store.find(account_id, WatchId(watch_id)))
        oldest = Instant(self.clocks.now() - HISTORY_KEPT)
        begins = oldest if since is None else max(oldest, since)
        return watch, await self.store.history(watch.id, Instant(begins), MOST_CHANGES)

    async def acknowledge(self, account_id: AccountId, watch_id: str, alert_id: str) -> Alert:
        """Acknowledge an alert. From then on, only its end is reported.

        :raises AlertNotFound: the account has no alert with this id.
        """
        alert = await self.store.acknowledge(
            account_id, WatchId(watch_id), AlertId(alert_id), self.clocks.now()
        )
        if alert is None:
            raise AlertNotFound("this watch has no such alert: the id is wrong or it has expired")
        return alert

    async def _add(self, account_id: AccountId, target: str, settings: WatchSettings) -> SavedWatch:
        query = parse_blocklist_query(
            target,
            name="target",
            allow_special_use=self.allow_special_use,
            allow_private=self.allow_private,
        )
        kind = WatchKind.DOMAIN if isinstance(query, str) else WatchKind.ADDRESS
        ready, receivers = await self._ready(account_id, kind, settings)
        now = self.clocks.now()
        watch = Watch(
            id=WatchId(new_short_id(self.clocks.random_bytes)),
            account_id=account_id,
            kind=kind,
            target=str(query),
            settings=ready,
            created_at=now,
            next_run_at=now,
        )
        added = await self.store.add(watch, receivers)
        new = await self.receivers.made_of(account_id, receivers) if receivers else ()
        return SavedWatch(added, new)

    async def _ready(
        self, account_id: AccountId, kind: WatchKind, settings: WatchSettings
    ) -> tuple[WatchSettings, tuple[Webhook, ...]]:
        """Return the normalised settings and the receivers of alerts.

        :raises InvalidParameter: a setting is invalid.
        """
        return await self.receivers.ready(account_id, self._checked(kind, settings))

    def _checked(self, kind: WatchKind, settings: WatchSettings) -> WatchSettings:
        """Return the normalised settings.

        :raises InvalidParameter: a setting is invalid.
        """
        selectors, addresses = settings.selectors, settings.addresses
        if not SHORTEST_INTERVAL <= settings.interval <= LONGEST_INTERVAL:
            raise InvalidParameter("everyMinutes", "everyMinutes must be from 15 to 1440 (a day)")
        if kind is WatchKind.ADDRESS and (selectors or addresses):
            raise InvalidParameter(
                "target", "selectors and addresses are for domains; the target is an IP address"
            )
        if len(selectors) > MAX_SELECTORS:
            raise InvalidParameter("selectors", f"at most {MAX_SELECTORS} selectors are allowed")
        if len(addresses) > MAX_ADDRESSES:
            raise InvalidParameter("addresses", f"at most {MAX_ADDRESSES} addresses are allowed")
        parsed = [
            str(parse_host_address(address, name="addresses", allow_private=self.allow_private))
            for address in addresses
        ]
        named = [parse_selector(selector, name="selectors") for selector in selectors]
        return replace(
            settings,
            selectors=tuple(dict.fromkeys(named)),
            addresses=tuple(dict.fromkeys(parsed)),
        )


def _found(watch: Watch | None) -> Watch:
    if watch is None:
        raise _missing()
    return watch


def _missing() -> WatchNotFound:
    return WatchNotFound("there is no such watch: the id is wrong or it was deleted")

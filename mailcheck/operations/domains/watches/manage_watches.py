"""Watches of an account: made, looked at, changed, run and deleted by their owner."""

from collections.abc import Callable, Sequence

from msgspec import Struct
from msgspec.structs import replace

from mailcheck.core.cursors import START
from mailcheck.core.domain_names import (
    MAX_ADDRESSES,
    MAX_SELECTORS,
    parse_blocklist_query,
    parse_host_address,
    parse_selector,
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
from mailcheck.core.watches import (
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
from mailcheck.core.webhooks import ALERT_TO, MAILTO, Webhook, address_of, parse_alert_receiver
from mailcheck.operations.concurrency import run_all
from mailcheck.operations.domains.watches.run_watches import RunWatches
from mailcheck.ports.clocks import TimeAndChance
from mailcheck.ports.cluster import WakeUps
from mailcheck.ports.probes import ReceiverRules
from mailcheck.store.accounts.webhook_store import WebhookStore
from mailcheck.store.domains.watch_store import History, WatchPage, WatchStore


class AlertReceivers:
    """The receivers of a watch's alerts beside the owner's inbox: webhooks, and people by mail.

    Each is a webhook of the account that asks for the mails which name it, and is delivered to as
    any other webhook. It exists as long as a watch names it.
    """

    def __init__(
        self,
        store: WebhookStore,
        rules: ReceiverRules,
        changes: WakeUps[str],
        time_and_chance: TimeAndChance,
    ) -> None:
        self._store = store
        self._rules = rules
        self._changes = changes
        self._now = time_and_chance.now
        self._random_bytes = time_and_chance.random_bytes

    async def read(self, account_id: AccountId, named: Sequence[str]) -> tuple[Webhook, ...]:
        """Give those that a watch names, as they are added where they are not there yet.

        :raises InvalidParameter: one can't be told, or not by this account; or they are too many.
        """
        urls = tuple(dict.fromkeys(map(parse_alert_receiver, named)))
        if len(urls) > MOST_RECEIVERS:
            raise InvalidParameter(ALERT_TO, f"{ALERT_TO} are at most {MOST_RECEIVERS} addresses")
        account_name = await self._store.account_name(account_id) if urls else ""
        for url in urls:
            if url.startswith(MAILTO):
                self._rules.require_mailable(address_of(url), account_name)
            else:
                self._rules.require_foreign(url)
        return tuple(self._new(account_id, url) for url in urls)

    async def made_of(
        self, account_id: AccountId, receivers: Sequence[Webhook]
    ) -> tuple[Webhook, ...]:
        """Give those that are new: the account did not have them before."""
        self.note_change()
        found = [await self._store.find(account_id, one.id) for one in receivers]
        return tuple(one for one in found if one is not None)

    async def of(self, account_id: AccountId, urls: Sequence[str]) -> list[Webhook]:
        """Give how those stand which a watch names, in its order: not those that were deleted."""
        known = await self._store.of_account(account_id) if urls else []
        told = {one.url: one for one in known if one.is_of_watches}
        return [told[url] for url in urls if url in told]

    def note_change(self) -> None:
        """Say that some were made, or have gone."""
        self._changes.publish("some")

    def _new(self, account_id: AccountId, url: str) -> Webhook:
        return Webhook(
            id=WebhookId(new_short_id(self._random_bytes)),
            account_id=account_id,
            account_name="",
            url=url,
            wanted=MessageFilter(tag=ALERT_TAG, headers=((ALERT_FIELD, receiver_key(url)),)),
            created_at=self._now(),
            position=START,
            secret=new_webhook_secret(self._random_bytes),
            is_of_watches=True,
        )


SHOWN_ALERTS = 100
"""Of a watch, or of an account, that are listed."""


class WatchDetails(Struct, frozen=True):
    """A watch with its alerts, those that are open first, and who is told of them."""

    watch: Watch
    alerts: list[Alert]
    receivers: list[Webhook]


class SavedWatch(Struct, frozen=True):
    """A watch as its owner wants it, and those who are told of its alerts for the first time."""

    watch: Watch
    new_receivers: tuple[Webhook, ...] = ()


class ManageWatches:
    """The operations of the owner; whoever runs watches is told by ``hint`` that one is due."""

    def __init__(
        self,
        store: WatchStore,
        runner: RunWatches,
        receivers: AlertReceivers,
        hint: Callable[[], None],
        time_and_chance: TimeAndChance,
        *,
        allow_special_use: bool,
        allow_private: bool,
    ) -> None:
        self._store = store
        self._runner = runner
        self._receivers = receivers
        self._hint = hint
        self._now = time_and_chance.now
        self._random_bytes = time_and_chance.random_bytes
        self._allow_special_use = allow_special_use
        self._allow_private = allow_private

    async def create(
        self, account_id: AccountId, target: str, settings: WatchSettings
    ) -> SavedWatch:
        """Watch a domain or an address; the first run is as soon as there is time.

        :raises InvalidParameter: it is none, or something of the settings can't be.
        :raises TooManyWatches: the account has as many as it may.
        :raises WatchExists: it watches this already.
        :raises TooManyWebhooks: it has as many receivers of alerts as it may.
        """
        added = await self._add(account_id, target, settings)
        self._hint()
        return added

    async def create_many(
        self, account_id: AccountId, wanted: Sequence[tuple[str, WatchSettings]]
    ) -> list[SavedWatch | ExpectedFailure]:
        """Watch many; gives for each the watch, or why there is none."""

        async def add(target: str, settings: WatchSettings) -> SavedWatch | ExpectedFailure:
            try:
                return await self._add(account_id, target, settings)
            except ExpectedFailure as failure:
                return failure

        outcomes: list[SavedWatch | ExpectedFailure] = await run_all(*(add(*one) for one in wanted))
        self._hint()
        return outcomes

    async def of_account(self, account_id: AccountId, limit: int, offset: int = 0) -> WatchPage:
        """List the watches of an account, by their targets."""
        return await self._store.of_account(account_id, limit, offset)

    async def open_alerts(self, account_id: AccountId) -> list[Alert]:
        """List what is wrong now and was not when it was first watched, the newest first."""
        return await self._store.open_alerts(account_id, SHOWN_ALERTS)

    async def show(self, account_id: AccountId, watch_id: str) -> WatchDetails:
        """Give a watch with its alerts.

        :raises WatchNotFound: the account has none of this id.
        """
        watch = _found(await self._store.find(account_id, WatchId(watch_id)))
        alerts = await self._store.alerts(account_id, watch.id, SHOWN_ALERTS)
        receivers = await self._receivers.of(account_id, watch.settings.alert_to)
        return WatchDetails(watch, alerts, receivers)

    async def change(
        self,
        account_id: AccountId,
        watch_id: str,
        choose: Callable[[WatchSettings], WatchSettings],
    ) -> SavedWatch:
        """Choose other settings.

        :raises WatchNotFound: the account has none of this id.
        :raises InvalidParameter: something of the settings can't be.
        :raises TooManyWebhooks: it has as many receivers of alerts as it may.
        """
        watch = _found(await self._store.find(account_id, WatchId(watch_id)))
        settings, receivers = await self._ready(account_id, watch.kind, choose(watch.settings))
        next_run_at = next_run(watch.id, settings.interval, self._now())
        changed = _found(
            await self._store.change(account_id, watch.id, settings, next_run_at, receivers)
        )
        return SavedWatch(changed, await self._receivers.made_of(account_id, receivers))

    async def delete(self, account_id: AccountId, watch_id: str) -> None:
        """Delete a watch, with its history.

        :raises WatchNotFound: the account has none of this id.
        """
        if not await self._store.delete(account_id, WatchId(watch_id)):
            raise _missing()
        self._receivers.note_change()

    async def run(self, account_id: AccountId, watch_id: str) -> WatchDetails:
        """Run a watch now, as if it were due; when it is run next stays as it is.

        :raises WatchNotFound: the account has none of this id.
        :raises WatchBusy: it is being run.
        """
        watch = _found(await self._store.find(account_id, WatchId(watch_id)))
        if not await self._runner.run_now(account_id, watch.id):
            raise WatchBusy("this watch is being run: look at it in a moment")
        return await self.show(account_id, watch_id)

    async def history(
        self, account_id: AccountId, watch_id: str, since: Instant | None = None
    ) -> tuple[Watch, History]:
        """Give a watch and what changed since a moment, or all that is kept.

        :raises WatchNotFound: the account has none of this id.
        """
        watch = _found(await self._store.find(account_id, WatchId(watch_id)))
        oldest = Instant(self._now() - HISTORY_KEPT)
        begins = oldest if since is None else max(oldest, since)
        return watch, await self._store.history(watch.id, Instant(begins), MOST_CHANGES)

    async def acknowledge(self, account_id: AccountId, watch_id: str, alert_id: str) -> Alert:
        """Say that one knows of an alert: only its end is told.

        :raises AlertNotFound: the account has none of this id.
        """
        alert = await self._store.acknowledge(
            account_id, WatchId(watch_id), AlertId(alert_id), self._now()
        )
        if alert is None:
            raise AlertNotFound("this watch has no such alert: never opened, or forgotten")
        return alert

    async def _add(self, account_id: AccountId, target: str, settings: WatchSettings) -> SavedWatch:
        query = parse_blocklist_query(
            target,
            name="target",
            allow_special_use=self._allow_special_use,
            allow_private=self._allow_private,
        )
        kind = WatchKind.DOMAIN if isinstance(query, str) else WatchKind.ADDRESS
        ready, receivers = await self._ready(account_id, kind, settings)
        now = self._now()
        watch = Watch(
            id=WatchId(new_short_id(self._random_bytes)),
            account_id=account_id,
            kind=kind,
            target=str(query),
            settings=ready,
            created_at=now,
            next_run_at=now,
        )
        added = await self._store.add(watch, receivers)
        new = await self._receivers.made_of(account_id, receivers) if receivers else ()
        return SavedWatch(added, new)

    async def _ready(
        self, account_id: AccountId, kind: WatchKind, settings: WatchSettings
    ) -> tuple[WatchSettings, tuple[Webhook, ...]]:
        """Give the settings as they are used, and those that alerts go to.

        :raises InvalidParameter: something of them can't be.
        """
        checked = self._checked(kind, settings)
        receivers = await self._receivers.read(account_id, settings.alert_to)
        return replace(checked, alert_to=tuple(one.url for one in receivers)), receivers

    def _checked(self, kind: WatchKind, settings: WatchSettings) -> WatchSettings:
        """Give the settings as they are used.

        :raises InvalidParameter: something of them can't be.
        """
        selectors, addresses = settings.selectors, settings.addresses
        if not SHORTEST_INTERVAL <= settings.interval <= LONGEST_INTERVAL:
            raise InvalidParameter("everyMinutes", "everyMinutes is 15 to 1440 (a day)")
        if kind is WatchKind.ADDRESS and (selectors or addresses):
            raise InvalidParameter("target", "an address has no selectors and addresses of its own")
        if len(selectors) > MAX_SELECTORS:
            raise InvalidParameter("selectors", f"selectors are at most {MAX_SELECTORS}")
        if len(addresses) > MAX_ADDRESSES:
            raise InvalidParameter("addresses", f"addresses are at most {MAX_ADDRESSES}")
        parsed = [
            str(parse_host_address(one, name="addresses", allow_private=self._allow_private))
            for one in addresses
        ]
        named = [parse_selector(one, name="selectors") for one in selectors]
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
    return WatchNotFound("there is no such watch: never made, or deleted")

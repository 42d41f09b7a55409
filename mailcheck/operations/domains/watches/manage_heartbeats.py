"""Heartbeats of an account: create, list, change and delete."""

from collections.abc import Awaitable, Callable, Sequence

from msgspec import Struct
from msgspec.structs import replace

from mailcheck.checks.watching.heartbeats import BeatsState, begin, read_beats_state
from mailcheck.core.accounts import InboxState
from mailcheck.core.addresses import join_subaddress
from mailcheck.core.domains.domain_names import parse_domain
from mailcheck.core.domains.heartbeats import (
    DayOfBeats,
    HeartbeatState,
    JudgedBeat,
    checked_heartbeat,
    parse_heartbeat_name,
    tag_of,
)
from mailcheck.core.domains.watches import (
    Alert,
    AlertId,
    Watch,
    WatchId,
    WatchKind,
    WatchSettings,
    expected_of,
)
from mailcheck.core.errors import AlertNotFound, InvalidParameter, WatchNotFound
from mailcheck.core.identifiers import AccountId, new_short_id
from mailcheck.core.instants import DAY, Instant
from mailcheck.core.webhooks import Webhook
from mailcheck.operations.domains.watches.manage_watches import (
    SHOWN_ALERTS,
    AlertReceivers,
)
from mailcheck.ports.clocks import ClockAndRandomness
from mailcheck.store.domains.heartbeat_store import HeartbeatStore

SHOWN_DAYS = 90
"""Number of days that are shown of a heartbeat, today included."""

FindInbox = Callable[[AccountId], Awaitable[InboxState | None]]


class Heartbeat(Struct, frozen=True):
    """A heartbeat, its address, and its state after the last evaluation.

    ``days`` are those of the last `SHOWN_DAYS` that had a beat or should have had one, oldest
    first.
    """

    watch: Watch
    address: str
    beats: BeatsState
    days: tuple[DayOfBeats, ...] = ()

    @property
    def name(self) -> str:
        """Its name."""
        return self.watch.target

    @property
    def state(self) -> HeartbeatState:
        """Whether its beats come."""
        return HeartbeatState.PAUSED if self.watch.settings.is_paused else self.beats.state

    @property
    def is_well(self) -> bool:
        """Whether its beats come and no problem is open."""
        return not self.beats.misses and not self.beats.alerts


class HeartbeatDetails(Struct, frozen=True):
    """A heartbeat with its newest mails (newest first), alerts (open ones first) and receivers."""

    heartbeat: Heartbeat
    beats: tuple[JudgedBeat, ...]
    alerts: list[Alert]
    receivers: list[Webhook]


class SavedHeartbeat(Struct, frozen=True):
    """A stored heartbeat, and the receivers that are new to the account."""

    heartbeat: Heartbeat
    new_receivers: tuple[Webhook, ...] = ()


class ManageHeartbeats(Struct, frozen=True, eq=False):
    """The operations of an owner on heartbeats.

    :param find_inbox: finds the inbox of an account.
    :param domain: the domain of inboxes.
    """

    store: HeartbeatStore
    receivers: AlertReceivers
    find_inbox: FindInbox
    domain: str
    clocks: ClockAndRandomness
    allow_special_use: bool

    async def create(
        self, account_id: AccountId, name: str, settings: WatchSettings
    ) -> SavedHeartbeat:
        """Create a heartbeat. It expects its first mail at the next time of its schedule.

        :param settings: with ``heartbeat``; its ``since`` is set here.
        :raises InvalidParameter: the name or a setting is invalid.
        :raises TooManyWatches: the account has the maximum number of heartbeats.
        :raises WatchExists: the account has a heartbeat with this name.
        :raises TooManyWebhooks: the account has the maximum number of alert receivers.
        """
        now = self.clocks.now()
        expected = replace(expected_of(self._checked(settings)), since=now)
        ready, receivers = await self.receivers.ready(
            account_id, replace(settings, heartbeat=expected)
        )
        watch = Watch(
            id=WatchId(new_short_id(self.clocks.random_bytes)),
            account_id=account_id,
            kind=WatchKind.HEARTBEAT,
            target=parse_heartbeat_name(name),
            settings=ready,
            created_at=now,
            next_run_at=now,
        )
        added = await self.store.add(watch, receivers)
        # Gaps in the observed time count from the first heartbeat on.
        await self.store.observe(now)
        return await self._saved(added, receivers)

    async def change(
        self,
        account_id: AccountId,
        name: str,
        choose: Callable[[WatchSettings], WatchSettings],
    ) -> SavedHeartbeat:
        """Change the settings of a heartbeat.

        Another schedule, and the end of a pause, begin anew: nothing is expected before.

        :raises WatchNotFound: the account has no heartbeat with this name.
        :raises InvalidParameter: a setting is invalid.
        :raises TooManyWebhooks: the account has the maximum number of alert receivers.
        """
        watch = await self._find(account_id, name)
        before, now = watch.settings, self.clocks.now()
        chosen = self._checked(choose(before))
        expected, known = expected_of(chosen), expected_of(before)
        is_resumed = before.is_paused and not chosen.is_paused
        if expected.schedule != known.schedule or is_resumed:
            chosen = replace(chosen, heartbeat=replace(expected, since=now))
        ready, receivers = await self.receivers.ready(account_id, chosen)
        changed = await self.store.change(account_id, watch.id, ready, now, receivers)
        if changed is None:
            raise _missing()
        return await self._saved(changed, receivers)

    async def save(
        self, account_id: AccountId, name: str, settings: WatchSettings
    ) -> SavedHeartbeat:
        """Change the settings of a heartbeat, or create it; raise as `change` and `create` do."""
        known = await self.store.find_target(account_id, parse_heartbeat_name(name))
        if known is None:
            return await self.create(account_id, name, settings)
        settings = self._checked(settings)
        since = expected_of(known.settings).since

        def choose(_: WatchSettings) -> WatchSettings:
            return replace(settings, heartbeat=replace(expected_of(settings), since=since))

        return await self.change(account_id, name, choose)

    async def all(self, account_id: AccountId) -> list[Heartbeat]:
        """List the heartbeats of an account by name, with their days."""
        watches = await self.store.all_of(account_id)
        since = self._first_day()
        days = await self.store.days([watch.id for watch in watches], since)
        inbox = await self.find_inbox(account_id)
        return [self._heartbeat(watch, inbox, days[watch.id]) for watch in watches]

    async def show(self, account_id: AccountId, name: str) -> HeartbeatDetails:
        """Return a heartbeat with its days, its newest mails and its alerts.

        :raises WatchNotFound: the account has no heartbeat with this name.
        """
        watch = await self._find(account_id, name)
        recent = await self.store.recent(watch.id, self._first_day())
        alerts = await self.store.alerts(account_id, watch.id, SHOWN_ALERTS)
        receivers = await self.receivers.of(account_id, watch.settings.alert_to)
        inbox = await self.find_inbox(account_id)
        return HeartbeatDetails(
            self._heartbeat(watch, inbox, recent.days), recent.beats, alerts, receivers
        )

    async def open_alerts(self, account_id: AccountId) -> list[Alert]:
        """List the open alerts of the heartbeats of an account, newest first."""
        return await self.store.open_alerts(account_id, SHOWN_ALERTS)

    async def delete(self, account_id: AccountId, name: str) -> None:
        """Delete a heartbeat and its history. Mail with its tag is then like any other.

        :raises WatchNotFound: the account has no heartbeat with this name.
        """
        watch = await self._find(account_id, name)
        if not await self.store.delete(account_id, watch.id):
            raise _missing()
        self.receivers.note_change()

    async def acknowledge(self, account_id: AccountId, name: str, alert_id: str) -> Alert:
        """Acknowledge an alert. From then on, only its end is reported.

        :raises WatchNotFound: the account has no heartbeat with this name.
        :raises AlertNotFound: the heartbeat has no alert with this id.
        """
        watch = await self._find(account_id, name)
        alert = await self.store.acknowledge(
            account_id, watch.id, AlertId(alert_id), self.clocks.now()
        )
        if alert is None:
            raise AlertNotFound("this heartbeat has no such alert: the id is wrong or it expired")
        return alert

    async def _find(self, account_id: AccountId, name: str) -> Watch:
        watch = await self.store.find_target(account_id, name.strip().lower())
        if watch is None:
            raise _missing()
        return watch

    async def _saved(self, watch: Watch, receivers: Sequence[Webhook]) -> SavedHeartbeat:
        new = await self.receivers.made_of(watch.account_id, receivers) if receivers else ()
        inbox = await self.find_inbox(watch.account_id)
        return SavedHeartbeat(self._heartbeat(watch, inbox, ()), new)

    def _heartbeat(
        self, watch: Watch, inbox: InboxState | None, days: tuple[DayOfBeats, ...]
    ) -> Heartbeat:
        mailbox_name = "" if inbox is None else inbox.mailbox_name
        address = join_subaddress(mailbox_name, tag_of(watch.target), self.domain)
        state, expected = read_beats_state(watch.state), expected_of(watch.settings)
        if state is None or state.since != expected.since:
            # It is evaluated with its new settings in a moment.
            known = begin(expected, self.clocks.now())
            state = known if state is None else replace(known, last_at=state.last_at)
        return Heartbeat(watch, address, state, days)

    def _first_day(self) -> Instant:
        # Today begins earlier in the east.
        return Instant((self.clocks.now() + DAY // 2) // DAY * DAY - SHOWN_DAYS * DAY)

    def _checked(self, settings: WatchSettings) -> WatchSettings:
        """Return the normalised settings.

        :raises InvalidParameter: a setting is invalid, or there is no schedule.
        """
        expected = settings.heartbeat
        if expected is None:
            raise InvalidParameter("at", "at or everyMinutes is missing: it says when mail is due")
        expected = checked_heartbeat(expected)
        if expected.signed_by:
            domain = parse_domain(
                expected.signed_by, name="signedBy", allow_special_use=self.allow_special_use
            )
            expected = replace(expected, signed_by=domain)
        return replace(settings, heartbeat=expected)


def _missing() -> WatchNotFound:
    return WatchNotFound("there is no such heartbeat: the name is wrong or it was deleted")

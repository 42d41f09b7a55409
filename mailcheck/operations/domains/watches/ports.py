"""What watches need of the outside."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol

from msgspec import Struct

from mailcheck.core.identifiers import AccountId, WebhookId
from mailcheck.core.instants import Instant
from mailcheck.core.watches import (
    Alert,
    AlertId,
    Ended,
    QuietTime,
    Raised,
    Watch,
    WatchChange,
    WatchId,
    WatchScore,
    WatchSettings,
)
from mailcheck.core.webhooks import Webhook

if TYPE_CHECKING:
    from twisted.internet.defer import Deferred


class WatchPage(NamedTuple):
    """Some watches of an account, and how many it has."""

    watches: list[Watch]
    total: int


class Recorded(Struct, frozen=True):
    """What came of a run, to be kept; ``raised`` are problems with the ids of alerts for them."""

    watch: Watch
    at: Instant
    next_run_at: Instant
    state: str
    changes: tuple[WatchChange, ...] = ()
    raised: tuple[tuple[AlertId, Raised], ...] = ()
    ended: tuple[Ended, ...] = ()
    score: WatchScore | None = None
    problem_count: int = 0


class History(Struct, frozen=True):
    """Changes and scores, oldest first; ``is_cut``: there are older changes within the time."""

    changes: tuple[WatchChange, ...]
    scores: tuple[WatchScore, ...]
    is_cut: bool = False


class UntoldAlert(Struct, frozen=True):
    """An alert that its owner is to be told of, or of its end, and the name of their inbox.

    ``alert_to`` are the URLs of the others who are told.
    """

    mailbox_name: str
    quiet: QuietTime | None
    alert: Alert
    alert_to: tuple[str, ...] = ()


class WatchStore(Protocol):
    """Keeps watches, what changed, and alerts."""

    def add(self, watch: Watch, receivers: Sequence[Webhook] = ()) -> Deferred[Watch]:
        """Add one, and of those that its alerts go to all that its account does not have yet.

        :raises TooManyWatches: the account has as many as it may.
        :raises TooManyWebhooks: it has as many receivers as it may.
        :raises WatchExists: it watches this already.
        """

    def of_account(self, account_id: AccountId, limit: int, offset: int = 0) -> Deferred[WatchPage]:
        """List the watches of an account by their targets; without their states."""

    def find(self, account_id: AccountId, watch_id: WatchId) -> Deferred[Watch | None]:
        """Find a watch of an account."""

    def change(
        self,
        account_id: AccountId,
        watch_id: WatchId,
        settings: WatchSettings,
        next_run_at: Instant,
        receivers: Sequence[Webhook] = (),
    ) -> Deferred[Watch | None]:
        """Let its owner choose otherwise; nothing where there is none.

        Receivers of alerts are added as with a watch; those that no watch names any more go.

        :raises TooManyWebhooks: the account has as many receivers as it may.
        """

    def delete(self, account_id: AccountId, watch_id: WatchId) -> Deferred[bool]:
        """Delete a watch with all that was kept of it; false where there is none.

        Receivers of alerts that no other watch names go with it.
        """

    def claim(
        self, holder: str, now: Instant, milliseconds: int, limit: int
    ) -> Deferred[list[Watch]]:
        """Take so many watches that are due, those that wait longest first, for so long.

        None that another holder has taken, as long as that lasts.
        """

    def claim_one(
        self, account_id: AccountId, watch_id: WatchId, holder: str, now: Instant, milliseconds: int
    ) -> Deferred[Watch | None]:
        """Take one, due or not; nothing where it is taken, or there is none."""

    def release(self, holder: str) -> Deferred[None]:
        """Let go of all that a holder has taken; they are due as before."""

    def put_off(self, holder: str, watch_id: WatchId, until: Instant) -> Deferred[None]:
        """Let go of one that could not be run."""

    def record(self, holder: str, recorded: Recorded) -> Deferred[bool]:
        """Keep what came of a run, and let go of its watch.

        False, and nothing is changed, where the holder has it no more, or it was deleted.
        """

    def history(self, watch_id: WatchId, since: Instant, limit: int) -> Deferred[History]:
        """Give what was kept since a moment: of changes the newest ones."""

    def alerts(self, account_id: AccountId, watch_id: WatchId, limit: int) -> Deferred[list[Alert]]:
        """List the alerts of a watch: those that are open first, then the newest."""

    def open_alerts(self, account_id: AccountId, limit: int) -> Deferred[list[Alert]]:
        """List the open alerts of an account, the newest first."""

    def acknowledge(
        self, account_id: AccountId, watch_id: WatchId, alert_id: AlertId, now: Instant
    ) -> Deferred[Alert | None]:
        """Note that its owner knows: that it is open is told no more. Nothing without such one."""

    def untold(self, limit: int) -> Deferred[list[UntoldAlert]]:
        """List alerts of which there is something to tell, oldest first."""

    def note_told(self, alerts: Sequence[Alert]) -> Deferred[None]:
        """Note that all was told of alerts as they are here; what came since is still to tell."""

    def forget(self, before: Instant, limit: int) -> Deferred[int]:
        """Delete at most so many changes, scores and ended alerts from before a moment."""


class ReceiverStore(Protocol):
    """What is asked of the store of webhooks."""

    def account_name(self, account_id: AccountId) -> Deferred[str]:
        """Give the name of an account; empty where there is none."""

    def of_account(self, account_id: AccountId) -> Deferred[list[Webhook]]:
        """List the webhooks of an account, oldest first."""

    def find(self, account_id: AccountId, webhook_id: WebhookId) -> Deferred[Webhook | None]:
        """Find a webhook of an account."""


class ReceiverRules(Protocol):
    """Who may be told."""

    def require_foreign(self, url: str) -> None:
        """See that a URL does not lead to this service itself, as far as that shows.

        :raises InvalidParameter: it does.
        """

    def require_mailable(self, address: str, account_name: str) -> None:
        """See that an account may have alerts mailed to an address.

        :raises InvalidParameter: the operator does not allow it, or no mail is sent.
        """

"""What the reports about an account's domains say, for those who ask."""

from collections.abc import Sequence

import msgspec
from msgspec import Struct

from mailcheck.checks.receiver_reports.tls import TlsSessions
from mailcheck.core.errors import MessageNotFound
from mailcheck.core.identifiers import AccountId
from mailcheck.core.instants import DAY, Instant
from mailcheck.core.receiver_reports import NOWHERE, ReportKind, ReportPlaces
from mailcheck.operations.ports import DeliveryStore, Now
from mailcheck.operations.reports.addresses import ReportAddresses
from mailcheck.operations.reports.look_at_senders import LookAtSenders, ShownOverview
from mailcheck.operations.reports.ports import (
    ReportedDomain,
    ReportPage,
    ReportStore,
    SumOfRows,
)

MOST_ROWS = 20_000
"""Different rows that one overview is made of, the largest first."""


class TlsSum(Struct, frozen=True):
    """Sessions that ended in one way; ``reporters`` have told of them."""

    sessions: TlsSessions
    amount: int
    reporters: tuple[str, ...]
    last_day: Instant


class TlsOverview(Struct, frozen=True):
    """What TLS reports say about a domain: what failed first, the most first."""

    domain: str
    days: int
    successful: int
    failed: int
    reporters: tuple[str, ...]
    results: tuple[TlsSum, ...]


class ShowReports:
    """Reads what was counted."""

    def __init__(
        self,
        store: ReportStore,
        inboxes: DeliveryStore,
        look: LookAtSenders,
        addresses: ReportAddresses,
        now: Now,
    ) -> None:
        self._store = store
        self._inboxes = inboxes
        self._look = look
        self._addresses = addresses
        self._now = now

    async def addresses(self, account_id: AccountId) -> ReportPlaces:
        """Give the addresses of an account.

        :raises MessageNotFound: it has no inbox.
        """
        inbox = await self._inboxes.find_account_inbox(account_id)
        if inbox is None:
            raise MessageNotFound("the account has no inbox")
        return self._addresses.places(inbox.mailbox_name)

    async def to_offer(self, account_id: AccountId) -> ReportPlaces:
        """Give the addresses of an account for advice; none where no mail from outside comes."""
        if not self._addresses.is_offered:
            return NOWHERE
        inbox = await self._inboxes.find_account_inbox(account_id)
        return NOWHERE if inbox is None else self._addresses.places(inbox.mailbox_name)

    async def domains(self, account_id: AccountId) -> Sequence[ReportedDomain]:
        """List the domains that reports were counted about."""
        return await self._store.domains(account_id)

    async def reports(self, account_id: AccountId, limit: int, page: int) -> ReportPage:
        """List the reports themselves, newest first; those that were not counted too."""
        return await self._store.of_account(account_id, limit, (page - 1) * limit)

    async def dmarc(self, account_id: AccountId, domain: str, days: int) -> ShownOverview:
        """Say who sends as a domain, of the last days."""
        found = await self._sums(account_id, ReportKind.DMARC, domain, days)
        told = [
            (one.result, one.amount, one.reporter, one.first_day, one.last_day) for one in found
        ]
        known = await self._store.domains(account_id)
        policy = next(
            (o.policy for o in known if o.kind is ReportKind.DMARC and o.domain == domain), ""
        )
        return await self._look.look(domain, told, policy, account_id)

    async def tls(self, account_id: AccountId, domain: str, days: int) -> TlsOverview:
        """Say whether senders could encrypt on their way to a domain, of the last days."""
        found = await self._sums(account_id, ReportKind.TLS, domain, days)
        results: dict[TlsSessions, TlsSum] = {}
        for one in found:
            sessions = msgspec.json.decode(one.result, type=TlsSessions)
            before = results.get(sessions)
            results[sessions] = TlsSum(
                sessions,
                one.amount + (0 if before is None else before.amount),
                (*(() if before is None else before.reporters), one.reporter),
                max(one.last_day, one.last_day if before is None else before.last_day),
            )
        ordered = sorted(results.values(), key=lambda one: (not one.sessions.result, -one.amount))
        failed = sum(one.amount for one in ordered if one.sessions.result)
        return TlsOverview(
            domain,
            days,
            sum(one.amount for one in ordered) - failed,
            failed,
            tuple(dict.fromkeys(one.reporter for one in found)),
            tuple(ordered),
        )

    async def _sums(
        self, account_id: AccountId, kind: ReportKind, domain: str, days: int
    ) -> list[SumOfRows]:
        now = self._now()
        since = Instant(now - now % DAY - days * DAY)
        return await self._store.sums(account_id, kind, domain, since, MOST_ROWS)

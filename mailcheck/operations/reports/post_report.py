"""A TLS report that is posted (RFC 8460 3): kept, and read later like one that came by mail."""

from collections.abc import Callable

from mailcheck.core.accounts import RequestLimits
from mailcheck.core.errors import MessageNotFound, ReportRefused
from mailcheck.core.identifiers import new_time_ordered_id
from mailcheck.core.keys import Key, key_of
from mailcheck.core.network_addresses import counting_key
from mailcheck.core.receiver_reports import (
    ReceiverReport,
    ReportId,
    ReportKind,
    ReportState,
    parse_report_address,
)
from mailcheck.operations.accounts.authenticate import RequestMeter
from mailcheck.ports.clocks import TimeAndChance
from mailcheck.store.domains.report_store import ReportStore
from mailcheck.store.mail_store import MailStore

PER_CLIENT = RequestLimits(per_minute=60, per_day=1_000)
"""Posts of one client (IPv6: its /64). A sender posts one report a day about each domain."""

PER_ACCOUNT = RequestLimits(per_minute=200, per_day=5_000)
"""Posts for one account, of all clients: an address that is published can be posted to by all."""


class PostReport:
    """Takes reports that are posted; ``when_waiting`` hears of each."""

    def __init__(
        self,
        inboxes: MailStore,
        store: ReportStore,
        meter: RequestMeter,
        when_waiting: Callable[[], None],
        time_and_chance: TimeAndChance,
    ) -> None:
        self._inboxes = inboxes
        self._store = store
        self._meter = meter
        self._when_waiting = when_waiting
        self._now = time_and_chance.now
        self._random_bytes = time_and_chance.random_bytes

    async def post(self, token: str, client_ip: str, body: bytes) -> None:
        """Keep a report.

        :raises LimitExceeded: too many were posted by this client, or to this address.
        :raises MessageNotFound: no account has this address.
        :raises ReportRefused: there is nothing in the body.
        :raises InboxFull: the account holds as many as it may.
        """
        await self._count(key_of("report posts from", counting_key(client_ip)), PER_CLIENT)
        found = parse_report_address(f"{ReportKind.TLS.value}-{token}")
        inbox = None if found is None else await self._inboxes.find_inbox(found[1])
        if inbox is None:
            raise MessageNotFound("nobody takes reports at this address")
        if not body:
            raise ReportRefused("the body is empty: post the report, as JSON or packed with gzip")
        await self._count(key_of("report posts to", inbox.account_id), PER_ACCOUNT)
        now = self._now()
        report = ReceiverReport(
            ReportId(new_time_ordered_id(now, self._random_bytes)),
            inbox.account_id,
            ReportKind.TLS,
            ReportState.WAITING,
            now,
        )
        await self._store.post(report, body)
        self._when_waiting()

    async def _count(self, subject: Key, limits: RequestLimits) -> None:
        usage = await self._meter.count(subject, limits)
        if usage.exhausted is not None:
            raise self._meter.refusal(usage, limits)

"""Report addresses of accounts, and receiving reports by HTTPS."""

from collections.abc import Callable

from msgspec import Struct
from twisted.internet.defer import Deferred

from mailcheck.core.accounts import InboxState, RequestLimits
from mailcheck.core.addresses import INBOX_PREFIX, Mailbox
from mailcheck.core.domains.receiver_reports import (
    ReceiverReport,
    ReportId,
    ReportKind,
    ReportPlaces,
    ReportState,
    parse_report_address,
    report_local_part,
    report_token,
)
from mailcheck.core.errors import MessageNotFound, RecipientUnknown, ReportRefused
from mailcheck.core.identifiers import new_time_ordered_id
from mailcheck.core.memory.keys import Key, key_of
from mailcheck.core.messages import Recipient
from mailcheck.core.network_addresses import counting_key
from mailcheck.operations.accounts.authenticate import RequestMeter
from mailcheck.ports.clocks import ClockAndRandomness
from mailcheck.store.domains.report_store import ReportStore
from mailcheck.store.mail_store import MailStore


class ReceiveReports(Struct, frozen=True):
    """Finds accounts by their report addresses.

    ``domains`` are those of this server. ``when_waiting`` is called for each received report.
    """

    store: MailStore
    when_waiting: Callable[[], None]
    domains: frozenset[str]

    def find_recipient(self, mailbox: Mailbox) -> Deferred[Recipient] | None:
        """Return the account of an address, or `None` if it is not a report address.

        The Deferred fails with `RecipientUnknown` if no account has the address.
        """
        found = parse_report_address(mailbox.local_part)
        if found is None or mailbox.domain.lower().rstrip(".") not in self.domains:
            return None
        kind, mailbox_name = found
        inbox = self.store.find_inbox(mailbox_name)
        return inbox.addCallback(self._recipient, str(mailbox), kind)

    def _recipient(self, inbox: InboxState | None, address: str, kind: ReportKind) -> Recipient:
        if inbox is None:
            raise RecipientUnknown(f"no account has the report address {address}")
        return Recipient(address, inbox.account_id, "", report_kind=kind)


PER_CLIENT = RequestLimits(per_minute=60, per_day=1_000)
"""Posts per client (IPv6: per /64). A sender posts one report a day about each domain."""

PER_ACCOUNT = RequestLimits(per_minute=200, per_day=5_000)
"""Posts per account from all clients. The address is published, so every client can post to it."""


class PostReport(Struct, frozen=True, eq=False):
    """Receives posted reports. ``when_waiting`` is called for each of them."""

    inboxes: MailStore
    store: ReportStore
    meter: RequestMeter
    when_waiting: Callable[[], None]
    clocks: ClockAndRandomness

    async def post(self, token: str, client_ip: str, body: bytes) -> None:
        """Store a report.

        :raises LimitExceeded: this client, or all clients of the account, posted too many.
        :raises MessageNotFound: no account has this address.
        :raises ReportRefused: the body is empty.
        :raises InboxFull: the account has the maximum number of reports.
        """
        await self._count(key_of("report posts from", counting_key(client_ip)), PER_CLIENT)
        found = parse_report_address(report_local_part(ReportKind.TLS, INBOX_PREFIX + token))
        inbox = None if found is None else await self.inboxes.find_inbox(found[1])
        if inbox is None:
            raise MessageNotFound("no account receives reports at this address")
        if not body:
            raise ReportRefused("the body is empty; post the report as JSON, or packed with gzip")
        await self._count(key_of("report posts to", inbox.account_id), PER_ACCOUNT)
        now = self.clocks.now()
        report = ReceiverReport(
            ReportId(new_time_ordered_id(now, self.clocks.random_bytes)),
            inbox.account_id,
            ReportKind.TLS,
            ReportState.WAITING,
            now,
        )
        await self.store.post(report, body)
        self.when_waiting()

    async def _count(self, subject: Key, limits: RequestLimits) -> None:
        usage = await self.meter.count(subject, limits)
        if usage.exhausted is not None:
            raise self.meter.refusal(usage, limits)


TLS_PATH = "/tls-reports/"
"""Path for posted TLS reports. The last segment identifies the account."""


class ReportAddresses(Struct, frozen=True):
    """``domains`` are those of this server, the shown one first; ``url`` is its public URL.

    ``is_offered``: whether this server receives mail from outside, so that advice may name the
    addresses.
    """

    domains: tuple[str, ...]
    url: str
    is_offered: bool = True

    def places(self, mailbox_name: str) -> ReportPlaces:
        """Return the report addresses of an account."""
        dmarc, tls, failures, complaints = (
            self.mail_address(kind, mailbox_name)[0] for kind in ReportKind
        )
        return ReportPlaces(dmarc, tls, self.post_url(mailbox_name), failures, complaints)

    def mail_address(self, kind: ReportKind, mailbox_name: str) -> tuple[str, ...]:
        """Return the mail addresses of an account for reports, the shown one first."""
        local_part = report_local_part(kind, mailbox_name)
        return tuple(f"{local_part}@{domain}" for domain in self.domains)

    def post_url(self, mailbox_name: str) -> str:
        """Return the URL for posted TLS reports."""
        return f"{self.url}{TLS_PATH}{report_token(mailbox_name)}"

    def tls_places(self, mailbox_name: str) -> tuple[str, ...]:
        """Return the URIs with which a TLS-RPT record requests reports to an account."""
        mails = self.mail_address(ReportKind.TLS, mailbox_name)
        return (*(f"mailto:{mail}" for mail in mails), self.post_url(mailbox_name))

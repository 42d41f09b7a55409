"""Mail to the addresses of reports: whose they are, and who hears of them."""

from collections.abc import Callable

from msgspec import Struct
from twisted.internet.defer import Deferred

from mailcheck.core.accounts import InboxState
from mailcheck.core.addresses import Mailbox
from mailcheck.core.errors import RecipientUnknown
from mailcheck.core.messages import Recipient
from mailcheck.core.receiver_reports import ReportKind, parse_report_address
from mailcheck.store.mail_store import MailStore


class ReceiveReports(Struct, frozen=True):
    """Finds accounts by the addresses of their reports.

    ``domains`` are ours; ``when_waiting`` hears that a report waits to be read.
    """

    store: MailStore
    when_waiting: Callable[[], None]
    domains: frozenset[str]

    def find_recipient(self, mailbox: Mailbox) -> Deferred[Recipient] | None:
        """Find the account of an address; nothing where it has not the form of one.

        The Deferred fails with `RecipientUnknown`: nobody has this address.
        """
        found = parse_report_address(mailbox.local_part)
        if found is None or mailbox.domain.lower().rstrip(".") not in self.domains:
            return None
        kind, mailbox_name = found
        inbox = self.store.find_inbox(mailbox_name)
        return inbox.addCallback(self._recipient, str(mailbox), kind)

    def _recipient(self, inbox: InboxState | None, address: str, kind: ReportKind) -> Recipient:
        if inbox is None:
            raise RecipientUnknown(f"no account has the address {address} for reports")
        return Recipient(address, inbox.account_id, "", report_kind=kind)

"""The senders whose mail fails according to the newest DMARC reports, for watches."""

from collections.abc import Mapping

from msgspec import Struct

from mailcheck.checks.watching.facts import SENDERS, Topic, facts_of_senders
from mailcheck.core.identifiers import AccountId
from mailcheck.core.instants import DAY, Instant
from mailcheck.operations.reports.plan_policy import ReportedMail
from mailcheck.ports.clocks import Now

RECENT_DAYS = 7
"""Number of days whose reports count. A problem thus ends a week after the last failure."""


class FindFailingSenders(Struct, frozen=True, eq=False):
    """Reads the reports about a watched domain.

    :param mail: counts the mail in the reports.
    """

    mail: ReportedMail
    now: Now

    async def topics(self, account_id: AccountId, domain: str) -> Mapping[str, Topic]:
        """Return the topic of the senders of a domain; empty without recent reports."""
        now = self.now()
        found = await self.mail.count(
            account_id, domain, Instant(now - now % DAY - RECENT_DAYS * DAY)
        )
        if not found.mail:
            return {}
        topic = facts_of_senders(found.mail, found.decisions, is_complete=found.is_named)
        return {SENDERS: topic}

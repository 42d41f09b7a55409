"""The content filters of this server as one filter."""

from msgspec import Struct

from mailcheck.checks.deliverability.content_filter import FilterOutcome, FilterUnavailable
from mailcheck.ports.probes import ContentFilter


class CountedFilter(Struct, frozen=True, eq=False):
    """Judges mails with SpamAssassin, or with rspamd if this server has no SpamAssassin.

    :param rspamd: `None` without one.
    """

    spamassassin: ContentFilter
    rspamd: ContentFilter | None

    async def judge(self, filtered: bytes) -> FilterOutcome:
        """Return the outcome that counts (`counted_outcome`) without asking both filters."""
        outcome = await self.spamassassin.judge(filtered)
        is_absent = isinstance(outcome, FilterUnavailable) and outcome.is_absent
        if self.rspamd is None or not is_absent:
            return outcome
        return await self.rspamd.judge(filtered)

"""The content filters of this server as one filter."""

from mailcheck.checks.deliverability.content_filter import FilterOutcome, FilterUnavailable
from mailcheck.ports.probes import ContentFilter


class CountedFilter:
    """Judges mails with SpamAssassin, or with rspamd if this server has no SpamAssassin.

    :param rspamd: `None` without one.
    """

    def __init__(self, spamassassin: ContentFilter, rspamd: ContentFilter | None) -> None:
        self._spamassassin = spamassassin
        self._rspamd = rspamd

    async def judge(self, filtered: bytes) -> FilterOutcome:
        """Return the outcome that counts (`counted_outcome`) without asking both filters."""
        outcome = await self._spamassassin.judge(filtered)
        is_absent = isinstance(outcome, FilterUnavailable) and outcome.is_absent
        if self._rspamd is None or not is_absent:
            return outcome
        return await self._rspamd.judge(filtered)

"""What an account may check on the pages: as much as a key may ask of the API."""

from mailcheck.core.accounts import RequestLimits
from mailcheck.core.identifiers import AccountId
from mailcheck.core.keys import Key, key_of
from mailcheck.operations.accounts.authenticate import LimitUse, RequestMeter


class CheckBudget:
    """Counts the checks that an account starts on the pages; looking at results is free.

    Without it the pages would be a way around the limits of the API.
    """

    def __init__(self, meter: RequestMeter, limits: RequestLimits) -> None:
        self._meter = meter
        self._limits = limits

    async def take(self, account_id: AccountId) -> None:
        """Count a check.

        :raises LimitExceeded: says which limit is reached, and when it is free again.
        """
        usage = await self._meter.count(_subject(account_id), self._limits)
        if usage.exhausted is not None:
            raise self._meter.refusal(usage, self._limits, is_of_pages=True)

    async def look(self, account_id: AccountId) -> LimitUse:
        """Say what is used; looking counts nothing."""
        usage = await self._meter.look(_subject(account_id), self._limits)
        return LimitUse(self._limits, usage)


def _subject(account_id: AccountId) -> Key:
    return key_of("checks of account", account_id)

"""Share links of deliverability tests: a report for those who have no account."""

from mailcheck.core.deliverability_tests import DeliverabilityResult
from mailcheck.core.identifiers import (
    AccountId,
    DeliverabilityTestId,
    is_test_id,
    new_share_token,
    parse_test_share_token,
)
from mailcheck.operations.deliverability.find_test import not_found
from mailcheck.operations.shared_links import find_shared
from mailcheck.ports.clocks import TimeAndChance
from mailcheck.store.deliverability_store import DeliverabilityStore


class ShareTest:
    """Opens share links of tests and takes them back."""

    def __init__(self, store: DeliverabilityStore, time_and_chance: TimeAndChance) -> None:
        self._store = store
        self._expiry_now = time_and_chance.expiry_now
        self._random_bytes = time_and_chance.random_bytes

    async def open(self, token: str) -> DeliverabilityResult:
        """Give the test of a share link.

        :raises ShareNotFound: no test has this link (any more).
        """
        return await find_shared(
            token,
            parse_test_share_token,
            lambda test_id: self._store.find_any(test_id, self._expiry_now()),
            lambda found: found.test.share_token,
            "the report has gone",
        )

    async def renew(self, account_id: AccountId, test_id: str) -> DeliverabilityResult:
        """Revoke the share link of a test; a new one takes its place.

        :raises DeliverabilityTestNotFound: the account has no such test.
        """
        if not is_test_id(test_id):
            raise not_found()
        wanted = DeliverabilityTestId(test_id)
        token = new_share_token(self._random_bytes)
        replaced = await self._store.replace_share_token(
            account_id, wanted, token, self._expiry_now()
        )
        found = await self._store.find(account_id, wanted, self._expiry_now())
        if not replaced or found is None:
            raise not_found()
        return found

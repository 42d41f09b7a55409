"""What a test's mail would get if some DNS records were published: nothing is kept of it."""

from collections.abc import Awaitable, Callable, Sequence

from twisted.internet.interfaces import IReactorTime

from mailcheck.checks.deliverability.score import DeliverabilityReport
from mailcheck.checks.findings import RecordToPublish
from mailcheck.core.deliverability_tests import ReceivedMail
from mailcheck.core.errors import Overloaded, TooManyPreflights
from mailcheck.core.identifiers import AccountId
from mailcheck.operations.deliverability.find_test import FindTest
from mailcheck.operations.deliverability.proposed_records import check_records
from mailcheck.operations.places import NoPlace, Places

Score = Callable[[ReceivedMail, Sequence[RecordToPublish]], Awaitable[DeliverabilityReport]]
"""Scores a mail with proposed records (`ScoreMail.score`)."""

MAX_AT_ONCE = 8
"""Pre-flights under way at a time: each holds its mail in memory, as analyses do."""

MAX_OF_ACCOUNT = 2
"""Of those one account may have so many."""

RETRY_AFTER = 5
"""Seconds: few take longer."""


class Preflight:
    """Judges mails that were received against records that are not published yet."""

    def __init__(self, find: FindTest, score: Score, clock: IReactorTime) -> None:
        self._find = find
        self._score = score
        self._places: Places[AccountId] = Places(clock, at_once=MAX_AT_ONCE, of_one=MAX_OF_ACCOUNT)

    async def run(
        self, account_id: AccountId, test_id: str, records: Sequence[RecordToPublish]
    ) -> DeliverabilityReport:
        """Judge the mail of a test; the test, its state and its report stay as they are.

        :param records: each from `parse_record`.
        :raises InvalidParameter: the records can't stand together, or are too many or none.
        :raises DeliverabilityTestNotFound: the account has no such test.
        :raises NoMailYet: the test has no mail.
        :raises TooManyPreflights: the account has as many under way as it may.
        :raises Overloaded: all accounts together have.
        """
        check_records(records, parameter="records")
        try:
            async with self._places.held(account_id):
                mail = await self._find.mail(account_id, test_id)
                return await self._score(mail, records)
        except NoPlace as failure:
            raise _turned_away(failure) from None


def _turned_away(failure: NoPlace) -> TooManyPreflights | Overloaded:
    if not failure.is_own_share:
        return Overloaded("too many pre-flights are under way: try again in a moment")
    return TooManyPreflights(
        f"{MAX_OF_ACCOUNT} pre-flights of this account are under way, its limit;"
        " wait until one has ended",
        RETRY_AFTER,
    )

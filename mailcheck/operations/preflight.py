"""What a test's mail would get if some DNS records were published: nothing is kept of it."""

from collections.abc import Awaitable, Callable, Sequence

from mailcheck.checks.findings import RecordToPublish
from mailcheck.core.deliverability_tests import ReceivedMail
from mailcheck.core.identifiers import AccountId
from mailcheck.operations.find_test import FindTest
from mailcheck.operations.proposed_records import check_records
from mailcheck.operations.score_mail_report import DeliverabilityReport

Score = Callable[[ReceivedMail, Sequence[RecordToPublish]], Awaitable[DeliverabilityReport]]
"""Scores a mail with proposed records (`ScoreMail.score`)."""


class Preflight:
    """Judges mails that were received against records that are not published yet."""

    def __init__(self, find: FindTest, score: Score) -> None:
        self._find = find
        self._score = score

    async def run(
        self, account_id: AccountId, test_id: str, records: Sequence[RecordToPublish]
    ) -> DeliverabilityReport:
        """Judge the mail of a test; the test, its state and its report stay as they are.

        :param records: each from `parse_record`.
        :raises InvalidParameter: the records can't stand together, or are too many or none.
        :raises DeliverabilityTestNotFound: the account has no such test.
        :raises NoMailYet: the test has no mail.
        """
        check_records(records, parameter="records")
        mail = await self._find.mail(account_id, test_id)
        return await self._score(mail, records)

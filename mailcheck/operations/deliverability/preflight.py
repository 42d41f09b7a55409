"""What a test's mail would get if some DNS records were published: nothing is kept of it."""

from collections.abc import Awaitable, Callable, Sequence

import idna
from twisted.internet.interfaces import IReactorTime

from mailcheck.checks.deliverability.score import DeliverabilityReport
from mailcheck.checks.findings import RecordToPublish
from mailcheck.checks.overlay import BadRecord, build_zone, parse_rdata
from mailcheck.core.deliverability_tests import ReceivedMail
from mailcheck.core.domain_names import parse_domain
from mailcheck.core.errors import InvalidParameter, Overloaded, TooManyPreflights
from mailcheck.core.identifiers import AccountId
from mailcheck.operations.deliverability.manage_tests import ManageTests
from mailcheck.operations.semaphores import FairSemaphore, NoPermit

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

    def __init__(self, tests: ManageTests, score: Score, clock: IReactorTime) -> None:
        self._tests = tests
        self._score = score
        self._semaphore: FairSemaphore[AccountId] = FairSemaphore(
            clock, limit=MAX_AT_ONCE, per_owner=MAX_OF_ACCOUNT
        )

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
            async with self._semaphore.held(account_id):
                mail = await self._tests.mail(account_id, test_id)
                return await self._score(mail, records)
        except NoPermit as failure:
            if not failure.is_owner_limit:
                raise Overloaded(
                    "too many pre-flights are under way: try again in a moment"
                ) from None
            raise TooManyPreflights(
                f"{MAX_OF_ACCOUNT} pre-flights of this account are under way, its limit;"
                " wait until one has ended",
                RETRY_AFTER,
            ) from None


MAX_RECORDS = 50
MAX_VALUE = 8_000
"""Characters; the longest DKIM keys in use need 800."""

TYPES = ("TXT", "A", "AAAA", "MX", "CNAME", "PTR", "NS")
"""NS is read and has no effect: a run asks no name server but its resolver."""


def parse_record(name: str, rdtype: str, value: str, *, parameter: str) -> RecordToPublish:
    """Read one record.

    :param parameter: where it came in, such as ``records[0]``, for the error.
    :raises InvalidParameter: says what is wrong with which part.
    """
    owner = parse_domain(_label_by_label(name), name=f"{parameter}.name", allow_special_use=True)
    kind = rdtype.strip().upper()
    if kind not in TYPES:
        raise InvalidParameter(
            parameter, f"{parameter}.type {rdtype[:20]!r} is none of {', '.join(TYPES)}"
        )
    text = value.strip()
    if not text or len(text) > MAX_VALUE:
        problem = f"is longer than {MAX_VALUE} characters" if text else "is missing"
        raise InvalidParameter(parameter, f"{parameter}.value {problem}")
    try:
        parse_rdata(kind, text)
    except BadRecord as problem:
        raise InvalidParameter(parameter, f"{parameter}.value {problem}") from None
    return RecordToPublish(owner, kind, text)


def check_records(records: Sequence[RecordToPublish], *, parameter: str) -> None:
    """Refuse what can't be published together.

    :raises InvalidParameter: too many, none, or something beside a CNAME.
    """
    if not records:
        raise InvalidParameter(
            parameter, f"{parameter} is empty; send the records that you think of publishing"
        )
    if len(records) > MAX_RECORDS:
        raise InvalidParameter(
            parameter, f"{parameter} has {len(records)} records; send at most {MAX_RECORDS}"
        )
    try:
        build_zone(records)
    except BadRecord as problem:
        raise InvalidParameter(parameter, f"{parameter}: {problem}") from None


def _label_by_label(name: str) -> str:
    """Map labels of other scripts alone: IDNA knows no names with an underscore in them."""
    return ".".join(label if label.isascii() else _a_label(label) for label in name.split("."))


def _a_label(label: str) -> str:
    try:
        return idna.encode(label, uts46=True).decode("ascii")
    except idna.IDNAError:
        return label  # named in the error for the whole name

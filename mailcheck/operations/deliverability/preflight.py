"""Preflight: score the mail of a test as if DNS records were published. Nothing is stored."""

from collections.abc import Awaitable, Callable, Sequence

import idna
from twisted.internet.interfaces import IReactorTime

from mailcheck.checks.deliverability.score import DeliverabilityReport
from mailcheck.checks.findings import RecordToPublish
from mailcheck.checks.overlay import BadRecord, build_zone, parse_rdata
from mailcheck.core.deliverability_tests import ReceivedMail
from mailcheck.core.domains.domain_names import parse_domain
from mailcheck.core.errors import InvalidParameter, Overloaded, TooManyPreflights
from mailcheck.core.identifiers import AccountId
from mailcheck.operations.deliverability.manage_tests import ManageTests
from mailcheck.operations.semaphores import FairSemaphore, NoPermit

Score = Callable[[ReceivedMail, Sequence[RecordToPublish]], Awaitable[DeliverabilityReport]]
"""Scores a mail with proposed records (`ScoreMail.score`)."""

MAX_AT_ONCE = 8
"""Maximum number of concurrent preflights. Each keeps its mail in memory, as analyses do."""

MAX_OF_ACCOUNT = 2
"""Maximum number of concurrent preflights per account."""

RETRY_AFTER = 5
"""Seconds until a client should retry. Few preflights take longer."""


class Preflight:
    """Scores received mails with DNS records that are not published yet."""

    def __init__(self, tests: ManageTests, score: Score, clock: IReactorTime) -> None:
        self._tests = tests
        self._score = score
        self._semaphore: FairSemaphore[AccountId] = FairSemaphore(
            clock, limit=MAX_AT_ONCE, per_owner=MAX_OF_ACCOUNT
        )

    async def run(
        self, account_id: AccountId, test_id: str, records: Sequence[RecordToPublish]
    ) -> DeliverabilityReport:
        """Score the mail of a test. The test, its state and its report do not change.

        :param records: proposed records, each from `parse_record`.
        :raises InvalidParameter: the records contradict each other, are too many, or none.
        :raises DeliverabilityTestNotFound: the account has no such test.
        :raises NoMailYet: the test has no mail.
        :raises TooManyPreflights: the account has its maximum number of preflights running.
        :raises Overloaded: all accounts together have the maximum number running.
        """
        check_records(records, parameter="records")
        try:
            async with self._semaphore.held(account_id):
                mail = await self._tests.mail(account_id, test_id)
                return await self._score(mail, records)
        except NoPermit as failure:
            if not failure.is_owner_limit:
                raise Overloaded("too many preflights are running; try again in a moment") from None
            raise TooManyPreflights(
                f"{MAX_OF_ACCOUNT} preflights of this account are running, the maximum;"
                " wait until one has ended",
                RETRY_AFTER,
            ) from None


MAX_RECORDS = 50
MAX_VALUE = 8_000
"""Maximum length of a record's value, in characters. The longest DKIM keys in use need 800."""

TYPES = ("TXT", "A", "AAAA", "MX", "CNAME", "PTR", "NS")
"""Record types that can be proposed. NS is accepted but has no effect, since a preflight sends all
questions to its resolver."""


def parse_record(name: str, rdtype: str, value: str, *, parameter: str) -> RecordToPublish:
    """Parse one proposed record.

    :param parameter: position in the request, such as ``records[0]``, for the error message.
    :raises InvalidParameter: a part of the record is invalid.
    """
    owner = parse_domain(_label_by_label(name), name=f"{parameter}.name", allow_special_use=True)
    kind = rdtype.strip().upper()
    if kind not in TYPES:
        raise InvalidParameter(
            parameter,
            f"{parameter}.type must be one of {', '.join(TYPES)}; got {rdtype[:20]!r}",
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
    """Verify that proposed records can be published together.

    :raises InvalidParameter: there are too many records, none, or another one beside a CNAME.
    """
    if not records:
        raise InvalidParameter(
            parameter, f"{parameter} is empty; send the records that you plan to publish"
        )
    if len(records) > MAX_RECORDS:
        raise InvalidParameter(
            parameter,
            f"{parameter} has {len(records)} records; send at most {MAX_RECORDS}",
        )
    try:
        build_zone(records)
    except BadRecord as problem:
        raise InvalidParameter(parameter, f"{parameter}: {problem}") from None


def _label_by_label(name: str) -> str:
    """Convert only non-ASCII labels to A-labels, since IDNA rejects names with an underscore."""
    return ".".join(label if label.isascii() else _a_label(label) for label in name.split("."))


def _a_label(label: str) -> str:
    try:
        return idna.encode(label, uts46=True).decode("ascii")
    except idna.IDNAError:
        return label  # the error for the whole name names it

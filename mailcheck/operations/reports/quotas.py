"""How much reports may add to the store of an account, and about which domains they are kept.

Anybody can send reports: an address that stands in DNS is public. What they may write is bounded
for each account and day, and for each sender within it.
"""

from collections.abc import Collection, Sequence
from enum import Enum

from msgspec import Struct

from mailcheck.checks.mail_domains import owner_of
from mailcheck.core.instants import Instant
from mailcheck.core.receiver_reports import ReceiverReport


class ReportQuota(Struct, frozen=True):
    """Rows, and octets of them, that reports may add in a day: a report is a row, too."""

    rows: int
    octets: int


OF_ACCOUNT = ReportQuota(rows=60_000, octets=48 * 1024 * 1024)
"""All reports of an account together."""

OF_SENDER = ReportQuota(rows=31_000, octets=24 * 1024 * 1024)
"""Reports that one organization vouches for: a report of the largest size fits."""

OF_STRANGERS = ReportQuota(rows=2_000, octets=1024 * 1024)
"""Reports that nobody vouches for, all together: posted ones, and mail without SPF and DKIM."""

MAX_ROWS_OF_ACCOUNT = 1_000_000
"""Rows that an account has at a time; the owner makes room by deleting reports."""

ROW_OVERHEAD = 150
"""Octets of a row beside its texts: digest, numbers and indexes."""

MOST_UNWATCHED = 5
"""Domains whose reports are counted without a watch: the first ones that are reported about."""


class Outcome(Enum):
    """What became of a report, where it is counted; the values are those of the API."""

    KEPT = "kept"
    OVER_QUOTA = "over-quota"
    FOREIGN = "foreign"
    """It is about a domain that the account neither watches nor owns."""


class Admission(Enum):
    """How much of a report may be stored."""

    WHOLE = "whole"
    LISTED = "listed"
    """The report in the list of reports, without its rows."""
    REPEATED = "repeated"
    """Like `LISTED`: the same report was counted before, and its rows with it."""
    NOTHING = "nothing"


class Claim(Struct, frozen=True):
    """What a report would add to the store.

    ``day`` is when the day begins on which it came; ``sender`` is the organization that vouches
    for it, empty where none does. ``octets`` includes ``listed_octets``, those of its entry in
    the list of reports.
    """

    report: ReceiverReport
    day: Instant
    sender: str
    rows: int
    octets: int
    listed_octets: int

    @property
    def quota(self) -> ReportQuota:
        """What the sender may add in a day."""
        return OF_SENDER if self.sender else OF_STRANGERS


class Tally(Struct, frozen=True):
    """Reports of one sender and day with one outcome; ``domain`` is that of the last one."""

    day: Instant
    sender: str
    outcome: Outcome
    reports: int
    rows: int
    octets: int
    domain: str


class ReportDomains:
    """Domains of an account: those that it watches, and those that reports were counted about."""

    def __init__(self, watched: Collection[str], counted: Collection[str]) -> None:
        self._watched = frozenset(watched)
        self._counted = set(counted)
        self._unwatched = sum(not self._is_watched(one) for one in self._counted)

    def take(self, domain: str) -> bool:
        """Return whether reports about a domain are to be counted, and remember that it has some.

        The account watches the domain or one above it, or reports about it were counted before.
        Without a watch the first few organizational domains are taken, never domains below them:
        a zone has as many of these as a stranger wants.
        """
        if domain in self._counted or self._is_watched(domain):
            return True
        if self._unwatched >= MOST_UNWATCHED or owner_of(domain) != domain:
            return False
        self._counted.add(domain)
        self._unwatched += 1
        return True

    def _is_watched(self, domain: str) -> bool:
        labels = domain.split(".")
        above = (".".join(labels[start:]) for start in range(len(labels)))
        return any(one in self._watched for one in above)


def measure(texts: Sequence[str]) -> int:
    """Return the octets that a row with these texts takes."""
    return ROW_OVERHEAD + sum(len(text.encode()) for text in texts)

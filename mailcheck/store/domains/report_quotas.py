"""How much reports may add to the store of an account, and which domains they may be about.

The addresses of reports stand in DNS, so every client on the Internet can send reports. Rows and
octets are bounded for each account and day, and for each sender within it.
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
"""All reports without an authenticated sender: posted ones, and mail without SPF and DKIM."""

MAX_ROWS_OF_ACCOUNT = 1_000_000
"""Rows that an account has at a time; the owner makes room by deleting reports."""

ROW_OVERHEAD = 150
"""Octets of a row beside its texts: digest, numbers and indexes."""

MOST_UNWATCHED = 5
"""Maximum number of domains whose reports are counted without a watch, in order of arrival."""


class Outcome(Enum):
    """The outcome of a report in the tally; the API shows the values."""

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
    """The room that a report asks for.

    ``day`` is when the day of its arrival begins. ``sender`` is the organization that vouches
    for it, empty without one. ``octets`` includes ``listed_octets``, the size of its entry in
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
        """The quota of the sender for a day."""
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
    """The domains that an account watches, and the domains that it has counted reports about."""

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

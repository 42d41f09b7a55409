"""Points of each factor of a domain's reputation (``GET /tools/reputation``).

The prices of findings about a mail are separate and defined in ``checks/weights.py``.

The points follow the published rules of Google, Yahoo and Microsoft (2024-2026). All three
require SPF, DKIM and DMARC, and reject mail that has none of them. ``p=none`` is enough for them,
so it must not fail. Google requires reverse DNS and TLS from every sender. One major blocklist
alone stops delivery. No provider requires a minimum age, but lists of new domains exist.
"""

from collections.abc import Mapping

from msgspec import Struct

from mailcheck.checks.scoring.outcomes import (
    AgeOutcome,
    DkimOutcome,
    DmarcOutcome,
    FactorName,
    MxOutcome,
    Outcome,
    ReverseDnsOutcome,
    SpfOutcome,
    StarttlsOutcome,
    Status,
)

SCORING_VERSION = "2"
"""Changes with every number or rule here, so that clients can compare scores."""

MAXIMA: Mapping[FactorName, int] = {
    FactorName.SPF: 15,
    FactorName.DKIM: 15,
    FactorName.DMARC: 20,
    FactorName.MX: 10,
    FactorName.BLACKLISTS: 20,
    FactorName.STARTTLS: 8,
    FactorName.DOMAIN_AGE: 5,
    FactorName.REVERSE_DNS: 7,
}


class Award(Struct, frozen=True):
    """Points of an outcome."""

    points: int
    status: Status
    is_determined: bool = True


PASS, WARN, FAIL = Status.PASS, Status.WARN, Status.FAIL


def undetermined_award(name: FactorName) -> Award:
    """Return half of the maximum: an outage of ours is neither a fault nor a merit."""
    return Award(MAXIMA[name] // 2, WARN, is_determined=False)


AWARDS: Mapping[Outcome, Award] = {
    SpfOutcome.CLOSED: Award(15, PASS),
    SpfOutcome.UNENDED: Award(9, WARN),
    SpfOutcome.UNDETERMINED: undetermined_award(FactorName.SPF),
    SpfOutcome.WIDE: Award(6, WARN),  # a pass proves at least a little
    SpfOutcome.BROKEN: Award(3, FAIL),
    SpfOutcome.OPEN: Award(0, FAIL),
    SpfOutcome.ABSENT: Award(0, FAIL),
    DkimOutcome.NOT_NEEDED: Award(15, PASS),
    DkimOutcome.STRONG: Award(15, PASS),
    DkimOutcome.FAIR: Award(11, WARN),
    DkimOutcome.HIDDEN: Award(8, WARN, is_determined=False),  # at least there are keys
    DkimOutcome.UNDETERMINED: undetermined_award(FactorName.DKIM),
    DkimOutcome.WEAK: Award(5, WARN),
    DkimOutcome.ABSENT: Award(0, FAIL),
    DmarcOutcome.ENFORCED_WITH_REPORTS: Award(20, PASS),
    DmarcOutcome.ENFORCED: Award(18, PASS),
    DmarcOutcome.TESTING: Award(14, WARN),
    DmarcOutcome.NONE_WITH_REPORTS: Award(12, WARN),
    DmarcOutcome.UNDETERMINED: undetermined_award(FactorName.DMARC),
    DmarcOutcome.NONE: Award(9, WARN),
    DmarcOutcome.BROKEN: Award(3, FAIL),
    DmarcOutcome.ABSENT: Award(0, FAIL),
    MxOutcome.DECLARED_NONE: Award(10, PASS),
    MxOutcome.USABLE: Award(10, PASS),
    MxOutcome.FLAWED: Award(6, WARN),
    MxOutcome.NULL: Award(5, WARN),  # replies and bounces cannot be delivered
    MxOutcome.UNDETERMINED: undetermined_award(FactorName.MX),
    MxOutcome.IMPLICIT: Award(4, WARN),
    MxOutcome.ABSENT: Award(0, FAIL),
    StarttlsOutcome.NOT_NEEDED: Award(8, PASS),
    StarttlsOutcome.VERIFIED: Award(8, PASS),
    StarttlsOutcome.UNVERIFIED: Award(6, WARN),
    StarttlsOutcome.UNDETERMINED: undetermined_award(FactorName.STARTTLS),
    StarttlsOutcome.OUTDATED: Award(3, WARN),
    StarttlsOutcome.ABSENT: Award(0, FAIL),
    AgeOutcome.ESTABLISHED: Award(5, PASS),
    AgeOutcome.SETTLED: Award(4, PASS),
    AgeOutcome.UNDETERMINED: undetermined_award(FactorName.DOMAIN_AGE),
    AgeOutcome.YOUNG: Award(2, WARN),
    AgeOutcome.NEW: Award(1, WARN),
    AgeOutcome.FRESH: Award(0, FAIL),
    AgeOutcome.UNREGISTERED: Award(0, FAIL),
    ReverseDnsOutcome.NOT_NEEDED: Award(7, PASS),
    ReverseDnsOutcome.CONFIRMED: Award(7, PASS),
    ReverseDnsOutcome.GENERIC: Award(4, WARN),
    ReverseDnsOutcome.UNDETERMINED: undetermined_award(FactorName.REVERSE_DNS),
    ReverseDnsOutcome.UNCONFIRMED: Award(3, WARN),
    ReverseDnsOutcome.ABSENT: Award(0, FAIL),
}

AGE_FROM_DAYS = (
    (365, AgeOutcome.ESTABLISHED),
    (90, AgeOutcome.SETTLED),
    (30, AgeOutcome.YOUNG),
    (7, AgeOutcome.NEW),
    (0, AgeOutcome.FRESH),
)
"""Minimum age in days of each outcome; the first row that matches counts."""

STOPPED_IMPACT = -20
"""Points of the blocklist factor if a listing stops delivery. An otherwise perfect domain then
gets 60, a C. The total score is never below 0."""

LISTING_COSTS = ((5, 6), (3, 3), (1, 1), (0, 0))
"""(Minimum weight, points lost); the first row that matches counts."""

SHARED_LISTING_COST = 3
"""Maximum number of points lost for a listed address of a mail provider that thousands of customers
share."""

BLACKLISTS_PASS_FROM = 18
BLACKLISTS_WARN_FROM = 8

MAX_UNDETERMINED = 40
"""Maximum number of points that may be undetermined; with more a grade would be a guess."""

GRADES = ((90, "A+"), (80, "A"), (70, "B"), (60, "C"), (50, "D"), (0, "F"))
"""(Minimum score, grade)."""

GOOD_FROM, FAIR_FROM = 80, 60
"""Minimum scores of a domain that is fine, and of one that needs attention but works."""

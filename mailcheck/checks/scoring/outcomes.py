"""Possible outcomes of each check, best first; points are awarded only for these."""

from enum import Enum


class FactorName(Enum):
    """The factors of a score, in the spelling of the API."""

    SPF = "SPF"
    DKIM = "DKIM"
    DMARC = "DMARC"
    MX = "MX Records"
    BLACKLISTS = "Blacklists"
    STARTTLS = "STARTTLS"
    DOMAIN_AGE = "Domain Age"
    REVERSE_DNS = "Reverse DNS"


class Status(Enum):
    """Status of a factor; API clients treat any other value as failing."""

    PASS = "pass"  # noqa: S105 - no password
    WARN = "warn"
    FAIL = "fail"


class Mark(Enum):
    """What a factor shows in a table: its status, unless it could not be determined."""

    PASS = "pass"  # noqa: S105 - no password
    WARN = "warn"
    FAIL = "fail"
    UNDETERMINED = "undetermined"


def mark_of(status: Status, *, is_determined: bool) -> Mark:
    """Return the mark of a factor."""
    return Mark(status.value) if is_determined else Mark.UNDETERMINED


class SpfOutcome(Enum):
    """SPF record and tree."""

    CLOSED = "closed"
    """One good record that ends in ``-all`` or ``~all``."""
    UNENDED = "unended"
    """The record ends in ``?all``, or makes no statement about other hosts."""
    UNDETERMINED = "undetermined"
    WIDE = "wide"
    """More addresses pass than any sender has."""
    BROKEN = "broken"
    """Receivers answer permerror."""
    OPEN = "open"
    """Every address passes."""
    ABSENT = "absent"


class DkimOutcome(Enum):
    """DKIM keys."""

    NOT_NEEDED = "not-needed"
    """The domain sends no mail."""
    STRONG = "strong"
    FAIR = "fair"
    """The best key is RSA with 1024 to 2047 bits."""
    HIDDEN = "hidden"
    """There are keys, but under selectors that cannot be guessed."""
    UNDETERMINED = "undetermined"
    WEAK = "weak"
    """All keys are too short, broken, revoked or marked as tests."""
    ABSENT = "absent"


class DmarcOutcome(Enum):
    """The policy that applies to the domain."""

    ENFORCED_WITH_REPORTS = "enforced-with-reports"
    ENFORCED = "enforced"
    TESTING = "testing"
    """Enforced except for ``t=y``."""
    NONE_WITH_REPORTS = "none-with-reports"
    UNDETERMINED = "undetermined"
    NONE = "none"
    BROKEN = "broken"
    """A record that receivers ignore."""
    ABSENT = "absent"


class MxOutcome(Enum):
    """Destination of mail to the domain."""

    DECLARED_NONE = "declared-none"
    """Null MX of a domain that sends no mail either."""
    USABLE = "usable"
    FLAWED = "flawed"
    """Some hosts are dead, private or aliases, or a null MX exists among others."""
    NULL = "null"
    """Null MX of a domain that does send mail."""
    UNDETERMINED = "undetermined"
    IMPLICIT = "implicit"
    """No MX, but an address."""
    ABSENT = "absent"
    """No destination, or none that works."""


class StarttlsOutcome(Enum):
    """Encryption of mail to the domain."""

    NOT_NEEDED = "not-needed"
    VERIFIED = "verified"
    UNVERIFIED = "unverified"
    UNDETERMINED = "undetermined"
    OUTDATED = "outdated"
    ABSENT = "absent"
    """Encryption fails or is not offered, or the domain has no mail host."""


class AgeOutcome(Enum):
    """Age of the registration."""

    ESTABLISHED = "established"
    SETTLED = "settled"
    UNDETERMINED = "undetermined"
    YOUNG = "young"
    NEW = "new"
    FRESH = "fresh"
    UNREGISTERED = "unregistered"


class ReverseDnsOutcome(Enum):
    """Name of the sending host."""

    NOT_NEEDED = "not-needed"
    CONFIRMED = "confirmed"
    GENERIC = "generic"
    UNDETERMINED = "undetermined"
    UNCONFIRMED = "unconfirmed"
    ABSENT = "absent"
    """The host has no name, or its address is missing."""


Outcome = (
    SpfOutcome
    | DkimOutcome
    | DmarcOutcome
    | MxOutcome
    | StarttlsOutcome
    | AgeOutcome
    | ReverseDnsOutcome
)
"""Blocklists have no outcome of this kind; their points are computed list by list."""

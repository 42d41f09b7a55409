"""What may come out of each check, best first: the only things that points are given for."""

from enum import Enum


class FactorName(Enum):
    """The factors of a score, as the API spells them (docs/reference/contract.md)."""

    SPF = "SPF"
    DKIM = "DKIM"
    DMARC = "DMARC"
    MX = "MX Records"
    BLACKLISTS = "Blacklists"
    STARTTLS = "STARTTLS"
    DOMAIN_AGE = "Domain Age"
    REVERSE_DNS = "Reverse DNS"


class Status(Enum):
    """How a factor is shown; consumers read anything else as failing."""

    PASS = "pass"  # noqa: S105 - no password
    WARN = "warn"
    FAIL = "fail"


class SpfOutcome(Enum):
    """SPF record and tree."""

    CLOSED = "closed"
    """One good record that ends in ``-all`` or ``~all``."""
    UNENDED = "unended"
    """``?all``, or nothing said about others."""
    UNDETERMINED = "undetermined"
    WIDE = "wide"
    """More addresses pass than any sender has."""
    BROKEN = "broken"
    """Receivers answer permerror."""
    OPEN = "open"
    """Everybody passes."""
    ABSENT = "absent"


class DkimOutcome(Enum):
    """DKIM keys."""

    NOT_NEEDED = "not-needed"
    """The domain sends no mail."""
    STRONG = "strong"
    FAIR = "fair"
    """The best key is RSA with 1024 to 2047 bits."""
    HIDDEN = "hidden"
    """There are keys, under names that nobody can guess."""
    UNDETERMINED = "undetermined"
    WEAK = "weak"
    """Only keys that are too short, broken, revoked or tests."""
    ABSENT = "absent"


class DmarcOutcome(Enum):
    """The policy that holds for the domain."""

    ENFORCED_WITH_REPORTS = "enforced-with-reports"
    ENFORCED = "enforced"
    TESTING = "testing"
    """Enforced but for ``t=y``."""
    NONE_WITH_REPORTS = "none-with-reports"
    UNDETERMINED = "undetermined"
    NONE = "none"
    BROKEN = "broken"
    """A record that receivers ignore."""
    ABSENT = "absent"


class MxOutcome(Enum):
    """Where mail goes."""

    DECLARED_NONE = "declared-none"
    """Null MX of a domain that sends no mail either."""
    USABLE = "usable"
    FLAWED = "flawed"
    """Some hosts dead, private or aliases; or a null MX among others."""
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
    """Not offered, not working, or no host to offer it."""


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
    """No name, or no address to have one."""


Outcome = (
    SpfOutcome
    | DkimOutcome
    | DmarcOutcome
    | MxOutcome
    | StarttlsOutcome
    | AgeOutcome
    | ReverseDnsOutcome
)
"""Blacklists have no outcome of this kind: their points are counted list by list."""

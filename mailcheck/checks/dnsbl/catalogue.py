"""The blocklists as values: what they know, how their answers are read."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from msgspec import Struct

PROFILE_SIZE = 32  # SPEC.md section 8: blocklists per blocklist check


class TargetKind(Enum):
    """What a list knows."""

    IPV4 = "ipv4"
    IPV6 = "ipv6"
    DOMAIN = "domain"


class CodeClass(Enum):
    """What an answer means; the order is that in which several answers are judged."""

    REFUSED = "refused"
    LISTED = "listed"
    POLICY = "policy"
    IGNORED = "ignored"


class CodeRule(Struct, frozen=True):
    """How some answers are read: a range of addresses as numbers, or a bit of the last octet.

    ``bit`` is 0 for a range. ``weight`` is 0 for what is not a listing.
    """

    code: str
    code_class: CodeClass
    first: int
    last: int
    bit: int
    weight: int
    meaning: str

    def fits(self, number: int) -> bool:
        """Tell whether the rule is about this answer."""
        if self.bit:
            return bool(number & self.bit)
        return self.first <= number <= self.last


@dataclass(frozen=True, slots=True)
class Blocklist:
    """One list. ``zone`` is shown; ``query_zones`` are asked and may hold a secret key.

    ``test_listed`` and ``test_unlisted`` are empty where the list has no such
    test point. ``daily_budget`` is nothing where there is no limit.
    """

    name: str
    operator: str
    zone: str
    query_zones: Mapping[TargetKind, str] = field(repr=False)
    rules: tuple[CodeRule, ...]
    weight: int
    test_listed: str
    test_unlisted: str
    daily_budget: int | None
    delist_url: str
    access: str
    is_enabled: bool

    def knows(self, kind: TargetKind) -> bool:
        """Tell whether the list may be asked about this kind."""
        return kind in self.query_zones


class Catalogue(Struct, frozen=True):
    """All lists, and the two profiles of exactly 32 in the order in which they are shown."""

    blocklists: tuple[Blocklist, ...]
    address_profile: tuple[Blocklist, ...]
    domain_profile: tuple[Blocklist, ...]

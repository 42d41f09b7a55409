"""An SPF record as a value (RFC 7208 4.6, 5, 6)."""

from dataclasses import dataclass
from enum import Enum
from ipaddress import IPv4Network, IPv6Network

WHOLE_ADDRESSES = (32, 128)
"""The lengths of networks that are one address, IPv4 and IPv6."""


class Qualifier(Enum):
    """What a match means (RFC 7208 4.6.2)."""

    PASS = "+"  # noqa: S105 - no password
    FAIL = "-"
    SOFTFAIL = "~"
    NEUTRAL = "?"


class MechanismName(Enum):
    """The mechanisms (RFC 7208 5)."""

    ALL = "all"
    INCLUDE = "include"
    A = "a"
    MX = "mx"
    PTR = "ptr"
    IP4 = "ip4"
    IP6 = "ip6"
    EXISTS = "exists"

    @property
    def asks_dns(self) -> bool:
        """Tell whether it counts against the limit of ten (RFC 7208 4.6.4)."""
        return self not in (MechanismName.ALL, MechanismName.IP4, MechanismName.IP6)


@dataclass(frozen=True, slots=True)
class Mechanism:
    """One mechanism: ``text`` as written, ``target`` the domain-spec (empty: the domain itself).

    ``lengths`` are those of the networks of a and mx, for IPv4 and IPv6.
    """

    text: str
    qualifier: Qualifier
    name: MechanismName
    target: str = ""
    network: IPv4Network | IPv6Network | None = None
    lengths: tuple[int, int] = WHOLE_ADDRESSES

    @property
    def has_macros(self) -> bool:
        """Tell whether the target depends on the mail that is checked (RFC 7208 7)."""
        return "%" in self.target


@dataclass(frozen=True, slots=True)
class Modifier:
    """One modifier (RFC 7208 6); unknown ones have no meaning."""

    name: str
    value: str


@dataclass(frozen=True, slots=True)
class TermProblem:
    """A term that makes receivers give up (``is_error``) or that they ignore.

    ``replacement`` is what was probably meant; empty where the term is best dropped.
    """

    term: str
    reason: str
    replacement: str = ""
    is_error: bool = True


@dataclass(frozen=True, slots=True)
class SpfRecord:
    """A parsed record; ``redirect`` is empty without one, or where ``all`` overrules it."""

    text: str
    mechanisms: tuple[Mechanism, ...]
    redirect: str
    problems: tuple[TermProblem, ...]

    @property
    def all_qualifier(self) -> Qualifier | None:
        """Give what becomes of everybody else, if the record itself says it."""
        return next((m.qualifier for m in self.mechanisms if m.name is MechanismName.ALL), None)

    @property
    def is_broken(self) -> bool:
        """Tell whether a receiver must answer ``permerror`` (RFC 7208 4.6)."""
        return any(problem.is_error for problem in self.problems)

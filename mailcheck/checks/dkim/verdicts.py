"""What is known of a domain's DKIM keys."""

from dataclasses import dataclass

from mailcheck.checks.dkim.key_record import KeyRecord
from mailcheck.checks.findings import Finding
from mailcheck.checks.lookups import Presence

ANY_SELECTOR = "*"
"""Stands for the selector of a key that a wildcard record gives to every name."""


@dataclass(frozen=True, slots=True)
class DkimKey:
    """One key: where it was found, and where a CNAME led (empty without one)."""

    selector: str
    record_name: str
    record: KeyRecord
    alias_of: str
    is_one_of_several: bool
    """More than one record stands at the name: which one counts is undefined."""

    @property
    def is_usable(self) -> bool:
        """Tell whether receivers verify signatures with it."""
        return self.record.is_usable and not self.is_one_of_several


@dataclass(frozen=True, slots=True)
class DkimVerdict:
    """The keys of a domain that were found.

    ``presence`` is ``ABSENT`` only when nothing can exist below
    ``_domainkey``; without a key that was found it is else ``UNDETERMINED``.
    ``is_hidden`` then says why: there are keys, under names nobody can guess.
    ``dangling`` are selectors whose CNAME leads nowhere, with its target.
    """

    domain: str
    presence: Presence
    is_hidden: bool
    keys: tuple[DkimKey, ...]
    dangling: tuple[tuple[str, str], ...]
    tried: tuple[str, ...]
    findings: tuple[Finding, ...]

    @property
    def usable_keys(self) -> tuple[DkimKey, ...]:
        """Give the keys with which receivers verify, tests included."""
        return tuple(key for key in self.keys if key.is_usable)

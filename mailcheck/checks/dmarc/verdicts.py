"""What is known of a domain's DMARC."""

from dataclasses import dataclass

from mailcheck.checks.dmarc.record import Policy, PolicyRecord, ReportUri
from mailcheck.checks.dmarc.tree_walk import TreeWalk
from mailcheck.checks.findings import Finding
from mailcheck.checks.lookups import Presence


@dataclass(frozen=True, slots=True)
class ReportAuthorization:
    """Whether an address outside the domain agrees to get its reports (RFC 9990 4).

    ``presence`` is that of the record at ``record_name`` with which it agrees.
    """

    uri: ReportUri
    record_name: str
    presence: Presence


@dataclass(frozen=True, slots=True)
class DmarcVerdict:
    """What receivers are asked to do with mail that claims to be from ``domain`` and is not.

    ``presence`` is about a record that applies, wherever it was found.
    ``found_at`` names that place; ``policy`` is the one that holds for
    ``domain`` itself, read from the tag ``policy_tag``. ``broken_texts`` are
    records that were meant to be it and that receivers ignore.
    """

    domain: str
    presence: Presence
    walk: TreeWalk
    found_at: str | None
    record: PolicyRecord | None
    policy: Policy | None
    policy_tag: str
    broken_texts: tuple[str, ...]
    authorizations: tuple[ReportAuthorization, ...]
    findings: tuple[Finding, ...]

    @property
    def organizational_domain(self) -> str | None:
        """Give the organizational domain; nothing when it is undetermined."""
        return self.walk.organizational_domain

    @property
    def report_uris(self) -> tuple[ReportUri, ...]:
        """Give the places that get aggregate reports: usable ones that don't refuse them."""
        refused = {a.uri for a in self.authorizations if a.presence is Presence.ABSENT}
        rua = self.record.rua if self.record is not None else ()
        return tuple(uri for uri in rua if uri.is_usable and uri not in refused)

    @property
    def is_enforcing(self) -> bool:
        """Tell whether receivers are asked to act on forged mail."""
        return self.policy in (Policy.QUARANTINE, Policy.REJECT)

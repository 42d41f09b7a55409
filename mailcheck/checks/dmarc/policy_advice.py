"""Advice on stricter DMARC policies, which is postponed until SPF or DKIM works.

A policy of quarantine or reject applies to mail that neither SPF nor DKIM authenticates. If
neither is set up, it applies to all mail of the domain itself.
"""

from msgspec.structs import replace

from mailcheck.checks.dkim.evaluate import DkimVerdict
from mailcheck.checks.dmarc.evaluate import DmarcVerdict
from mailcheck.checks.dns_answers import Presence
from mailcheck.checks.spf.tree import SpfVerdict

STRICTER_POLICY_FINDINGS = ("dmarc.policy-none", "dmarc.testing", "dmarc.weaker-subdomains")
"""Findings that advise a stricter policy."""


def can_authenticate(spf: SpfVerdict, dkim: DkimVerdict | None) -> bool:
    """Return whether mail of a domain can pass, by a valid SPF record or a DKIM key.

    :param dkim: `None` if keys were not looked up.
    """
    has_spf = spf.presence is Presence.FOUND and spf.is_complete and not spf.is_broken
    return has_spf or (dkim is not None and any(not k.record.is_testing for k in dkim.usable_keys))


def postpone_stricter_policy(
    dmarc: DmarcVerdict, spf: SpfVerdict, dkim: DkimVerdict | None
) -> DmarcVerdict:
    """Return a verdict that advises to set up SPF or DKIM first, if neither works."""
    if can_authenticate(spf, dkim) or not any(
        finding.id in STRICTER_POLICY_FINDINGS for finding in dmarc.findings
    ):
        return dmarc
    first = (
        f"Make SPF or DKIM work for {dmarc.domain} first: until then a stricter policy would apply"
        " to its own mail too. After that: "
    )
    findings = (
        replace(finding, fix=first + finding.fix, proposed=None, alternatives=())
        if finding.id in STRICTER_POLICY_FINDINGS
        else finding
        for finding in dmarc.findings
    )
    return replace(dmarc, findings=tuple(findings))

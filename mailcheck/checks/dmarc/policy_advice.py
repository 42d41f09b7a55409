"""When a stricter policy may be advised: not before SPF or DKIM vouches for the own mail.

A policy of quarantine or reject is for mail that neither SPF nor DKIM vouches for. Where
neither is set up, that is all mail of the domain itself.
"""

from msgspec.structs import replace

from mailcheck.checks.dkim.evaluate import DkimVerdict
from mailcheck.checks.dmarc.evaluate import DmarcVerdict
from mailcheck.checks.dns_answers import Presence
from mailcheck.checks.spf.tree import SpfVerdict

STRICTER_POLICY_FINDINGS = ("dmarc.policy-none", "dmarc.testing", "dmarc.weaker-subdomains")
"""Findings that advise a stricter policy."""


def can_authenticate(spf: SpfVerdict, dkim: DkimVerdict | None) -> bool:
    """Tell whether mail of a domain can pass: by a valid SPF record, or by a key.

    :param dkim: nothing where nobody looked for keys.
    """
    has_spf = spf.presence is Presence.FOUND and spf.is_complete and not spf.is_broken
    return has_spf or (dkim is not None and any(not k.record.is_testing for k in dkim.usable_keys))


def postpone_stricter_policy(
    dmarc: DmarcVerdict, spf: SpfVerdict, dkim: DkimVerdict | None
) -> DmarcVerdict:
    """Give a verdict that asks for SPF or DKIM first, where neither works."""
    if can_authenticate(spf, dkim) or not any(
        one.id in STRICTER_POLICY_FINDINGS for one in dmarc.findings
    ):
        return dmarc
    first = (
        f"Make SPF or DKIM work for {dmarc.domain} first: until then a stricter policy would be for"
        " its own mail too. After that: "
    )
    findings = (
        replace(one, fix=first + one.fix, proposed=None, alternatives=())
        if one.id in STRICTER_POLICY_FINDINGS
        else one
        for one in dmarc.findings
    )
    return replace(dmarc, findings=tuple(findings))

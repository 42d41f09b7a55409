"""Advice for a domain that sends no mail: declare this in every record.

A domain whose SPF record is ``v=spf1 -all`` and that has no mail host needs a null MX (RFC 7505),
``p=reject`` (RFC 9989), and at most an empty DKIM key for every selector (RFC 6376 3.6.1). The
advice names no server.
"""

from msgspec.structs import replace

from mailcheck.checks.dkim.evaluate import DkimVerdict
from mailcheck.checks.dmarc.evaluate import DmarcVerdict, change_tags
from mailcheck.checks.dmarc.record import PREFIX, Policy
from mailcheck.checks.dns_answers import Answers, Presence, look_up, presence_of
from mailcheck.checks.findings import Finding, RecordToPublish
from mailcheck.checks.findings_table import make_finding
from mailcheck.checks.hosts.mx import MxVerdict
from mailcheck.checks.spf.tree import SpfVerdict

NULL_MX = "0 ."
EMPTY_KEY = "v=DKIM1; p="

_WITHOUT_MX = ("mx.absent", "mx.implicit")
_TO_REJECT = ("dmarc.absent", "dmarc.policy-none", "dmarc.testing", "dmarc.weaker-subdomains")


def uses_no_mail(spf: SpfVerdict, mx: MxVerdict) -> bool:
    """Return whether a domain declares that no host sends its mail, and has no mail host."""
    return (
        spf.sends_no_mail
        and mx.exists
        and not mx.hosts
        and (mx.is_null_mx or mx.presence is Presence.ABSENT)
    )


def advise_no_mail(
    domain: str,
    answers: Answers,
    mx: MxVerdict,
    spf: SpfVerdict,
    dmarc: DmarcVerdict,
    dkim: DkimVerdict | None,
) -> tuple[MxVerdict, DmarcVerdict, DkimVerdict | None]:
    """Return the verdicts, with this advice if the domain sends no mail."""
    if not uses_no_mail(spf, mx):
        return mx, dmarc, dkim
    of_mx = (_say_no_null_mx(domain, finding) for finding in mx.findings)
    of_dmarc = [_ask_to_reject(domain, finding) for finding in dmarc.findings]
    if dmarc.policy is Policy.QUARANTINE and dmarc.found_at == domain:
        of_dmarc.append(_say_not_reject(dmarc))
    if dkim is not None:
        dkim = replace(dkim, findings=_advise_wildcard(domain, answers, dkim))
    return (
        replace(mx, findings=tuple(of_mx)),
        replace(dmarc, findings=tuple(of_dmarc)),
        dkim,
    )


def _say_no_null_mx(domain: str, finding: Finding) -> Finding:
    if finding.id not in _WITHOUT_MX:
        return finding
    is_tried = finding.id == "mx.implicit"
    where = "senders try the address of its website" if is_tried else "senders keep it for days"
    return make_finding(
        "mx.no-null", proposed=RecordToPublish(domain, "MX", NULL_MX), domain=domain, where=where
    )


def _ask_to_reject(domain: str, finding: Finding) -> Finding:
    if finding.id not in _TO_REJECT or finding.proposed is None:
        return finding
    value = change_tags(finding.proposed.value, p=Policy.REJECT.value, sp=None, np=None, t=None)
    return replace(
        finding,
        fix=f"Publish p=reject: {domain} sends no mail, so all mail in its name is forged.",
        proposed=replace(finding.proposed, value=value),
        alternatives=(),
    )


def _say_not_reject(dmarc: DmarcVerdict) -> Finding:
    assert dmarc.record is not None, "a policy that was found has a record"
    value = change_tags(dmarc.record.text, p=Policy.REJECT.value, sp=None, np=None)
    return make_finding(
        "dmarc.not-reject",
        proposed=RecordToPublish(PREFIX + dmarc.domain, "TXT", value),
        domain=dmarc.domain,
    )


def _advise_wildcard(domain: str, answers: Answers, dkim: DkimVerdict) -> tuple[Finding, ...]:
    """Advise an empty key for every selector, unless keys are still in use."""
    name = f"*._domainkey.{domain}"
    if dkim.usable_keys or presence_of(look_up(answers, name, "TXT")) is not Presence.ABSENT:
        return ()
    return (
        make_finding(
            "dkim.no-wildcard", proposed=RecordToPublish(name, "TXT", EMPTY_KEY), domain=domain
        ),
    )

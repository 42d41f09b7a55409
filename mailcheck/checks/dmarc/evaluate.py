"""Judging the DMARC of a domain: the record that applies, its policy, its report addresses."""

from dataclasses import replace

from mailcheck.checks.dmarc import findings as say
from mailcheck.checks.dmarc.record import (
    Policy,
    is_policy_record,
    looks_like_dmarc,
)
from mailcheck.checks.dmarc.tree_walk import PREFIX, TreeWalk, WalkStep, walk_tree
from mailcheck.checks.dmarc.verdicts import DmarcVerdict, ReportAuthorization
from mailcheck.checks.dns_answers import Answers
from mailcheck.checks.dns_records import txt_values
from mailcheck.checks.findings import Finding, undetermined
from mailcheck.checks.lookups import Presence, look_up, look_up_addresses, presence_of
from mailcheck.core.domain_names import is_within

MAX_REPORT_HOSTS = 10  # foreign hosts that are asked whether they agree


def evaluate_dmarc(domain: str, answers: Answers) -> DmarcVerdict:
    """Judge which DMARC policy holds for mail from ``domain`` (RFC 9989 4.10)."""
    walk = walk_tree(domain, answers)
    step = _find_policy_step(walk)
    broken = _find_broken_texts(domain, walk, answers)
    verdict = DmarcVerdict(
        domain=domain,
        presence=Presence.ABSENT,
        walk=walk,
        found_at=None,
        record=None,
        policy=None,
        policy_tag="",
        broken_texts=broken,
        authorizations=(),
        findings=(),
    )
    complaint = _explain_broken_texts(domain, broken)
    if step is None:
        if walk.silent_names and walk.steps[0].record is None:
            silence = undetermined("dmarc", walk.silent_names)
            return replace(verdict, presence=Presence.UNDETERMINED, findings=(silence,))
        return replace(verdict, findings=(complaint or _explain_absence(domain, answers),))
    assert step.record is not None
    policy, tag = _choose_policy(domain, step, answers)
    verdict = replace(
        verdict,
        presence=Presence.FOUND,
        found_at=step.domain,
        record=step.record,
        policy=policy,
        policy_tag=tag,
        authorizations=_check_report_hosts(step, walk, answers),
    )
    findings = [] if complaint is None else [complaint]
    return replace(verdict, findings=(*findings, *say.describe(verdict)))


def _find_policy_step(walk: TreeWalk) -> WalkStep | None:
    """Give the step whose record applies: own, else organization's, else public suffix's."""
    own = walk.steps[0]
    if own.record is not None:
        return own if own.record.is_usable else None
    organization = walk.organizational_domain
    if organization is None:
        return None
    candidates = [walk.step_at(organization), walk.steps[-1]]
    for step in candidates:
        if step is not None and step.record is not None and step.record.is_usable:
            return step
    return None


def _choose_policy(domain: str, step: WalkStep, answers: Answers) -> tuple[Policy, str]:
    """Give the policy for ``domain`` and the tag it comes from."""
    record = step.record
    assert record is not None
    if record.has_bad_policy:
        return Policy.NONE, "p"
    if step.domain != domain:
        if record.nonexistent_policy is not None and _is_nonexistent(domain, answers):
            return record.nonexistent_policy, "np"
        if record.subdomain_policy is not None:
            return record.subdomain_policy, "sp"
    return record.policy or Policy.NONE, "p"


def _is_nonexistent(domain: str, answers: Answers) -> bool:
    """Tell whether the name has neither address nor MX (RFC 9989 3.2.13)."""
    mx = presence_of(look_up(answers, domain, "MX"))
    host = look_up_addresses(answers, domain)
    return mx is Presence.ABSENT and host.presence is Presence.ABSENT


def _check_report_hosts(
    step: WalkStep, walk: TreeWalk, answers: Answers
) -> tuple[ReportAuthorization, ...]:
    """Ask the report hosts outside the organization whether they agree (RFC 9990 4)."""
    assert step.record is not None
    home = walk.organizational_domain or step.domain
    foreign = [
        uri
        for uri in (*step.record.rua, *step.record.ruf)
        if uri.is_usable and not is_within(uri.host, home)
    ]
    authorizations = []
    for uri in list(dict.fromkeys(foreign))[:MAX_REPORT_HOSTS]:
        name = f"{step.domain}._report._dmarc.{uri.host}"
        answer = look_up(answers, name, "TXT")
        presence = presence_of(answer)
        if presence is Presence.FOUND and not any(map(is_policy_record, txt_values(answer))):
            presence = Presence.ABSENT
        authorizations.append(ReportAuthorization(uri, name, presence))
    return tuple(authorizations)


def _find_broken_texts(domain: str, walk: TreeWalk, answers: Answers) -> tuple[str, ...]:
    """Give the texts at the domain's own name that were meant as the record and are ignored."""
    own = walk.steps[0]
    if own.record is not None and own.record.is_usable:
        return ()
    if own.texts:
        return own.texts
    published = txt_values(look_up(answers, PREFIX + domain, "TXT"))
    return tuple(text for text in published if looks_like_dmarc(text))


def _explain_broken_texts(domain: str, broken: tuple[str, ...]) -> Finding | None:
    if not broken:
        return None
    if not is_policy_record(broken[0]):
        return say.unreadable(domain, broken[0])
    return say.several(domain, broken) if len(broken) > 1 else say.without_policy(domain, broken[0])


def _explain_absence(domain: str, answers: Answers) -> Finding:
    """Say that there is no record, and where one was seen that was meant to be it."""
    # At the domain itself, or where a zone editor appended the zone's name.
    for elsewhere in (domain, f"{PREFIX}{domain}.{domain}"):
        texts = txt_values(look_up(answers, elsewhere, "TXT"))
        found = [text for text in texts if is_policy_record(text)]
        if found:
            return say.misplaced(domain, elsewhere, found[0])
    return say.absent(domain)

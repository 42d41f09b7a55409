"""Judging the SPF of a domain: its record, the tree below it, and what to publish."""

from dataclasses import replace

from mailcheck.checks.dns_answers import Answers
from mailcheck.checks.dns_records import txt_values
from mailcheck.checks.findings import Finding, RecordToPublish, undetermined
from mailcheck.checks.lookups import Presence, look_up
from mailcheck.checks.spf import findings as say
from mailcheck.checks.spf.parse import is_spf_record, looks_like_spf
from mailcheck.checks.spf.proposal import propose_new_record, propose_record
from mailcheck.checks.spf.tree import TreeWalk
from mailcheck.checks.spf.verdicts import SpfVerdict, permits_everyone


def evaluate_spf(domain: str, answers: Answers) -> SpfVerdict:
    """Judge who may send for ``domain`` (RFC 7208), with lookup and void counts."""
    answer = look_up(answers, domain, "TXT")
    if not answer.status.is_determined:
        return _without_record(domain, Presence.UNDETERMINED, undetermined("spf", [domain]))
    texts = txt_values(answer)
    records = tuple(text for text in texts if is_spf_record(text))
    if not records:
        return _without_record(domain, Presence.ABSENT, _explain_absence(domain, texts, answers))
    walk = TreeWalk(answers)
    tree = walk.read(domain)
    verdict = SpfVerdict(
        domain=domain,
        presence=Presence.FOUND,
        records=records,
        tree=tree,
        lookup_count=sum(node.lookups for node in tree.walk()),
        void_count=sum(len(node.voids) for node in tree.walk()),
        is_truncated=walk.is_truncated,
        findings=(),
        open_term=permits_everyone(tree),
    )
    proposed = RecordToPublish(domain, "TXT", propose_record(records, tree))
    return replace(verdict, findings=tuple(say.describe(verdict, proposed)))


def _without_record(domain: str, presence: Presence, finding: Finding) -> SpfVerdict:
    return SpfVerdict(domain, presence, (), None, 0, 0, False, (finding,))


def _explain_absence(domain: str, texts: tuple[str, ...], answers: Answers) -> Finding:
    """Say that there is no record, and where one was seen that was meant to be it."""
    near_misses = [text for text in texts if looks_like_spf(text)]
    if near_misses:
        return say.unreadable(domain, near_misses[0])
    # A zone editor that appends the zone's name turns "example.com" into this.
    for elsewhere in (f"{domain}.{domain}", f"spf.{domain}"):
        found = [t for t in txt_values(look_up(answers, elsewhere, "TXT")) if is_spf_record(t)]
        if found:
            return say.misplaced(domain, elsewhere, found[0])
    return say.absent(domain, propose_new_record())

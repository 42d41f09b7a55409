"""DMARC of one received mail: does what passes belong to its author (RFC 9989 5.3)."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from mailcheck.checks.auth_results import AuthResult
from mailcheck.checks.dkim.mail_verdicts import DkimOfMail
from mailcheck.checks.dmarc.evaluate import evaluate_dmarc
from mailcheck.checks.dmarc.mail_alignment import Alignment, align, foresee_walks
from mailcheck.checks.dmarc.mail_explanations import explain_author, explain_result
from mailcheck.checks.dmarc.mail_verdicts import DmarcOfMail
from mailcheck.checks.dmarc.record import Policy
from mailcheck.checks.dmarc.verdicts import DmarcVerdict
from mailcheck.checks.dns_answers import Answers
from mailcheck.checks.lookups import Presence
from mailcheck.checks.mail_domains import read_mail_domain
from mailcheck.checks.spf.mail_verdicts import SpfOfMail

_ONE_LEVEL_BELOW = {
    Policy.REJECT: Policy.QUARANTINE,
    Policy.QUARANTINE: Policy.NONE,
    Policy.NONE: Policy.NONE,
}
"""What ``t=y`` makes of a policy (RFC 9989 4.7)."""

_NOT_ALIGNED = Alignment(is_aligned=False)


def evaluate_dmarc_of_mail(
    author_domains: Sequence[str],
    spf: SpfOfMail | None,
    dkim: DkimOfMail | None,
    answers: Answers,
) -> DmarcOfMail:
    """Judge a mail, given what SPF and DKIM say about it.

    Evaluate SPF and DKIM before, on the same ``answers``: as long as anything
    is missing, the walks that their identifiers may need are asked for too.

    :param author_domains: the domains of all mailboxes of all From fields, as written.
    :param spf: nothing when it was not judged, so that it may have passed; so ``dkim``.
    """
    authors = list(dict.fromkeys(read_mail_domain(text) or text for text in author_domains))
    author = read_mail_domain(authors[0]) if len(authors) == 1 else None
    if author is None:
        return _without_author(explain_author(authors))
    verdict = evaluate_dmarc(author, answers)
    evidence = _Evidence(verdict, spf, dkim, answers)
    of_spf = evidence.align_spf()
    of_signatures = dict(evidence.align_signatures())
    if answers.missing:
        foresee_walks(author, evidence.identifiers(), answers)
    of_dkim = Alignment(None) if dkim is None else _best(of_signatures.values())
    result = _judge(verdict, of_spf, of_dkim)
    aligned = tuple(index for index, one in of_signatures.items() if one.is_aligned)
    alignment = (of_spf.is_aligned, of_dkim.is_aligned)
    return DmarcOfMail(
        author_domain=author,
        result=result,
        verdict=verdict,
        policy=_policy_for_mail(verdict),
        organizational_domain=verdict.organizational_domain,
        is_spf_aligned=of_spf.is_aligned,
        is_dkim_aligned=of_dkim.is_aligned,
        aligned_signatures=aligned,
        explanation=explain_result(result, verdict, spf, _only(dkim, aligned), *alignment),
        silent_names=_silent_names(result, verdict, (of_spf, of_dkim)),
    )


@dataclass(frozen=True, slots=True)
class _Evidence:
    """What vouches for the mail, to be compared with its author."""

    verdict: DmarcVerdict
    spf: SpfOfMail | None
    dkim: DkimOfMail | None
    answers: Answers

    def align_spf(self) -> Alignment:
        """Judge the MAIL FROM identity: with the null reverse-path it is that of HELO."""
        if self.spf is None:
            return Alignment(None)
        record = self.verdict.record
        is_strict = record is not None and record.has_strict_spf
        return self._align(self.spf.mail_from.domain, self.spf.mail_from.result, is_strict)

    def align_signatures(self) -> Iterator[tuple[int, Alignment]]:
        """Judge every signature, by its index."""
        record = self.verdict.record
        is_strict = record is not None and record.has_strict_dkim
        for one in self.dkim.signatures if self.dkim is not None else ():
            yield (
                one.header.index,
                self._align(one.header.signing_domain, one.result, is_strict),
            )

    def identifiers(self) -> Iterator[str]:
        """Give the domains of all identifiers, whether they pass or not."""
        if self.spf is not None:
            yield self.spf.mail_from.domain
        for one in self.dkim.signatures if self.dkim is not None else ():
            yield one.header.signing_domain

    def _align(self, domain: str, result: AuthResult, is_strict: bool) -> Alignment:
        """Align an identifier that passes; one that may pass is undetermined, or not aligned."""
        identifier = read_mail_domain(domain)
        if identifier is None or result not in (AuthResult.PASS, AuthResult.TEMPERROR):
            return _NOT_ALIGNED
        alignment = align(identifier, self.verdict.walk, strict=is_strict, answers=self.answers)
        if result is AuthResult.TEMPERROR and alignment.is_aligned:
            return Alignment(None)
        return alignment


def _only(dkim: DkimOfMail | None, indexes: Sequence[int]) -> DkimOfMail | None:
    """Leave the signatures that align, where there are any: those decide."""
    if dkim is None or not indexes:
        return dkim
    return DkimOfMail(tuple(one for one in dkim.signatures if one.header.index in indexes))


def _best(alignments: Iterable[Alignment]) -> Alignment:
    """Give what holds for all signatures together: one that aligns is enough."""
    known = list(alignments)
    if any(one.is_aligned for one in known):
        return Alignment(is_aligned=True)
    silent = tuple(name for one in known for name in one.silent_names)
    is_open = any(one.is_aligned is None for one in known)
    return Alignment(None, silent) if is_open else _NOT_ALIGNED


def _judge(verdict: DmarcVerdict, of_spf: Alignment, of_dkim: Alignment) -> AuthResult:
    """Give the result: undetermined only where what is not known could change it."""
    if verdict.presence is Presence.UNDETERMINED:
        return AuthResult.TEMPERROR
    if verdict.presence is Presence.ABSENT:
        return AuthResult.NONE
    found = (of_spf.is_aligned, of_dkim.is_aligned)
    if True in found:
        return AuthResult.PASS
    return AuthResult.TEMPERROR if None in found else AuthResult.FAIL


def _policy_for_mail(verdict: DmarcVerdict) -> Policy | None:
    is_testing = verdict.record is not None and verdict.record.is_testing
    if verdict.policy is None or not is_testing:
        return verdict.policy
    return _ONE_LEVEL_BELOW[verdict.policy]


def _silent_names(
    result: AuthResult, verdict: DmarcVerdict, alignments: Sequence[Alignment]
) -> tuple[str, ...]:
    if result is not AuthResult.TEMPERROR:
        return ()
    names = list(verdict.walk.silent_names) if verdict.presence is Presence.UNDETERMINED else []
    names += [name for one in alignments for name in one.silent_names]
    return tuple(dict.fromkeys(names))


def _without_author(explanation: str) -> DmarcOfMail:
    return DmarcOfMail(
        author_domain=None,
        result=AuthResult.PERMERROR,
        verdict=None,
        policy=None,
        organizational_domain=None,
        is_spf_aligned=None,
        is_dkim_aligned=None,
        aligned_signatures=(),
        explanation=explanation,
    )

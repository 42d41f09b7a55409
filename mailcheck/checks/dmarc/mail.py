"""DMARC result of one received mail: alignment, policy, explanation and advice (RFC 9989 5)."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from msgspec import Struct

from mailcheck.checks.auth_results import AuthResult
from mailcheck.checks.dkim.mail import DkimOfMail
from mailcheck.checks.dmarc.evaluate import (
    DmarcVerdict,
    change_tags,
    describe_absence,
    evaluate_dmarc,
)
from mailcheck.checks.dmarc.record import PREFIX, Policy, TreeWalk, WalkStep, walk_tree
from mailcheck.checks.dns_answers import Answers, Presence
from mailcheck.checks.findings import Finding, RecordToPublish, worst
from mailcheck.checks.findings_table import make_finding
from mailcheck.checks.mail_domains import is_local_name, is_public_suffix, read_mail_domain
from mailcheck.checks.spf.mail import SpfOfMail, excerpt
from mailcheck.core.domains.domain_names import is_within


class DmarcOfMail(Struct, frozen=True):
    """The result for the author domain (RFC 9989).

    ``author_domain`` is `None` if the mail has no single one: no From, several From fields, or
    authors of several domains. Then the result is ``permerror`` and ``verdict`` is `None`.
    ``policy`` is the requested handling of this mail if it fails, with ``t=y`` applied.
    ``is_spf_aligned`` and ``is_dkim_aligned`` are about identifiers that passed; `None` means
    undetermined. ``aligned_signatures`` are indexes of passing signatures that align.
    ``unanswered_names`` are the names of DMARC without an answer that cause a ``temperror``.
    """

    author_domain: str | None
    result: AuthResult
    explanation: str
    verdict: DmarcVerdict | None = None
    policy: Policy | None = None
    organizational_domain: str | None = None
    is_spf_aligned: bool | None = None
    is_dkim_aligned: bool | None = None
    aligned_signatures: tuple[int, ...] = ()
    unanswered_names: tuple[str, ...] = ()


MAX_NAMED = 3  # maximum number of domains in a sentence


def explain_missing_author(authors: Sequence[str], author_fields: int = 1) -> str:
    """Return a sentence that says why the author domain is missing (RFC 9989 5.3.1)."""
    if author_fields > 1:
        return (
            f"The mail has {author_fields} From fields. Mail programs show different values, so its"
            " author is not clear."
        )
    if not authors:
        return "The mail has no From address with a full domain name."
    if len(authors) > 1:
        return (
            f"The mail has authors of {len(authors)} domains ({_list(authors)}), so no single"
            " DMARC policy applies."
        )
    if not authors[0]:
        return "The From address has no domain."
    return f'"{excerpt(authors[0])}" in the From address is not a domain name.'


def explain_result(
    result: AuthResult,
    verdict: DmarcVerdict,
    spf: SpfOfMail | None,
    dkim: DkimOfMail | None,
    is_spf_aligned: bool | None,
    is_dkim_aligned: bool | None,
) -> str:
    """Return a sentence that says what passed, for which domain, and whether it aligns."""
    author = verdict.domain
    if result is AuthResult.NONE:
        return f"No DMARC record applies to {author}."
    if verdict.presence is Presence.UNDETERMINED:
        names = _list(verdict.walk.unanswered_names)
        return f"DNS gave no usable answer about {names} (TXT)."
    of_spf = _explain_spf(verdict, spf, is_spf_aligned)
    of_dkim = _explain_dkim(verdict, dkim, is_dkim_aligned)
    if result is AuthResult.PASS:
        of_spf = of_spf if is_spf_aligned else ""
        of_dkim = of_dkim if is_dkim_aligned else ""
    words = "; ".join(filter(None, (of_spf, of_dkim)))
    return f"{words[:1].upper()}{words[1:]}."


def _explain_spf(verdict: DmarcVerdict, spf: SpfOfMail | None, is_aligned: bool | None) -> str:
    if spf is None:
        return "SPF was not checked"
    domain = excerpt(spf.mail_from.domain)
    result = spf.mail_from.result
    if result is AuthResult.TEMPERROR:
        return f"SPF of {domain} could not be determined"
    if result is not AuthResult.PASS:
        return f"SPF does not pass for {domain}" if domain else "SPF does not pass"
    is_strict = verdict.record is not None and verdict.record.has_strict_spf
    relation = _describe_relation(verdict, [domain], is_aligned, is_strict, "aspf")
    return f"SPF passes for {domain}, {relation}"


def _explain_dkim(verdict: DmarcVerdict, dkim: DkimOfMail | None, is_aligned: bool | None) -> str:
    if dkim is None:
        return "DKIM was not checked"
    if not dkim.signatures:
        return "the mail has no DKIM signature"
    if not dkim.passing:
        is_known = dkim.is_determined
        return "no DKIM signature is valid" if is_known else "DKIM could not be determined"
    signers = [signature.header.signing_domain for signature in dkim.passing]
    is_strict = verdict.record is not None and verdict.record.has_strict_dkim
    relation = _describe_relation(verdict, signers, is_aligned, is_strict, "adkim")
    return f"the mail has a valid signature of {_list(signers)}, {relation}"


def _describe_relation(
    verdict: DmarcVerdict,
    domains: Sequence[str],
    is_aligned: bool | None,
    is_strict: bool,
    tag: str,
) -> str:
    """Describe how the domains just named relate to the author domain."""
    author = verdict.domain
    if is_aligned is None:
        return f"and it could not be determined whether that belongs to {author}"
    if is_aligned and set(domains) == {author}:
        return "the domain in From"
    if is_aligned:
        return f"which belongs to {author}"
    if is_strict:
        return f"which is not {author} itself, as {tag}=s requires"
    return f"which does not belong to {author}"


def _list(names: Sequence[str]) -> str:
    distinct = list(dict.fromkeys(map(excerpt, names)))
    rest = len(distinct) - MAX_NAMED
    return ", ".join(distinct[:MAX_NAMED]) + (f" and {rest} more" if rest > 0 else "")


MAX_PREFETCHED = 10
"""Maximum number of identifiers whose tree walks are queried before they are needed."""


class Alignment(Struct, frozen=True):
    """Whether an identifier aligns; `None` while ``unanswered_names`` have no answer."""

    is_aligned: bool | None
    unanswered_names: tuple[str, ...] = ()


def align(identifier: str, author_walk: TreeWalk, *, strict: bool, answers: Answers) -> Alignment:
    """Compare a domain with the author domain, whose tree walk is known.

    The identifier is walked only if that can change the result, since the organizational domain
    of a name is the name itself or above it.
    """
    if identifier == author_walk.start:
        return Alignment(is_aligned=True)
    if strict:
        return Alignment(is_aligned=False)
    home = author_walk.organizational_domain
    if home is None:
        is_possible = any(
            is_within(identifier, name) for name in _possible_organizational_domains(author_walk)
        )
        return Alignment(None, author_walk.unanswered_names) if is_possible else Alignment(False)
    if not is_within(identifier, home):
        return Alignment(is_aligned=False)
    walk = walk_tree(identifier, answers)
    if walk.organizational_domain is None:
        return Alignment(None, walk.unanswered_names)
    return Alignment(walk.organizational_domain == home)


def prefetch_walks(author_domain: str, identifiers: Iterable[str], answers: Answers) -> None:
    """Query the tree walks that are needed if these identifiers pass.

    Identifiers that share only the last label with the author domain are left out. Their walks
    are never needed, except for a few top-level domains.
    """
    end = author_domain.split(".")[-2:]
    names = (read_mail_domain(text) for text in identifiers)
    related = (n for n in names if n and n != author_domain and n.split(".")[-2:] == end)
    for name in list(dict.fromkeys(related))[:MAX_PREFETCHED]:
        walk_tree(name, answers)


def _possible_organizational_domains(walk: TreeWalk) -> Iterator[str]:
    """Yield the possible organizational domains, whatever the missing answers contain."""
    silent = [step for step in walk.steps if step.presence is Presence.UNDETERMINED]
    known = tuple(step for step in walk.steps if step not in silent)
    home = TreeWalk(walk.start, known).organizational_domain
    yield home or walk.start
    yield from (step.domain for step in silent)


_NOT_ALIGNED = Alignment(is_aligned=False)


def evaluate_dmarc_of_mail(
    author_domains: Sequence[str],
    spf: SpfOfMail | None,
    dkim: DkimOfMail | None,
    answers: Answers,
    author_fields: int = 1,
    judge_policy: Callable[[str, Answers], DmarcVerdict] = evaluate_dmarc,
) -> DmarcOfMail:
    """Evaluate DMARC of a mail from its SPF and DKIM results and the same ``answers``.

    :param author_domains: the domains of all mailboxes of all From fields, as written.
    :param spf: `None` if SPF was not checked, so that it may have passed.
    :param dkim: `None` if DKIM was not checked, so that it may have passed.
    :param author_fields: number of From fields; with several, the shown author is unknown.
    :param judge_policy: evaluates the policy of the author domain.
    """
    authors = list(dict.fromkeys(read_mail_domain(text) or text for text in author_domains))
    author = read_mail_domain(authors[0]) if len(authors) == 1 else None
    if author is None or author_fields > 1:
        return make_result_without_author(
            AuthResult.PERMERROR, explain_missing_author(authors, author_fields)
        )
    verdict = judge_policy(author, answers)
    record, walk, signatures = verdict.record, verdict.walk, dkim.signatures if dkim else ()
    of_spf = Alignment(None)
    if spf is not None:  # with the null reverse-path, MAIL FROM has the identity of HELO
        strict, one = record is not None and record.has_strict_spf, spf.mail_from
        of_spf = _align_passing(one.domain, one.result, walk, strict=strict, answers=answers)
    strict = record is not None and record.has_strict_dkim
    signers = {
        signature.header.index: (signature.header.signing_domain, signature.result)
        for signature in signatures
    }
    of_signatures = {
        index: _align_passing(*signer, walk, strict=strict, answers=answers)
        for index, signer in signers.items()
    }
    if answers.missing:  # query the walks that the identifiers may need at once
        sender = [spf.mail_from.domain] if spf is not None else []
        prefetch_walks(author, [*sender, *(domain for domain, _ in signers.values())], answers)
    of_dkim = Alignment(None) if dkim is None else _combine(of_signatures.values())
    aligned = tuple(index for index, alignment in of_signatures.items() if alignment.is_aligned)
    ways, result = (
        (of_spf.is_aligned, of_dkim.is_aligned),
        _combine_results(verdict, of_spf, of_dkim),
    )
    deciding = dkim
    if aligned:  # only aligned signatures decide
        deciding = DkimOfMail(
            tuple(signature for signature in signatures if signature.header.index in aligned)
        )
    policy = verdict.policy
    if policy is not None and record is not None and record.is_testing:
        policy = policy.one_step_weaker
    silent: list[str] = []
    if result is AuthResult.TEMPERROR:
        silent += walk.unanswered_names if verdict.presence is Presence.UNDETERMINED else ()
        silent += (*of_spf.unanswered_names, *of_dkim.unanswered_names)
    return DmarcOfMail(
        author_domain=author,
        result=result,
        verdict=verdict,
        policy=policy,
        organizational_domain=verdict.organizational_domain,
        is_spf_aligned=ways[0],
        is_dkim_aligned=ways[1],
        aligned_signatures=aligned,
        explanation=explain_result(result, verdict, spf, deciding, *ways),
        unanswered_names=tuple(dict.fromkeys(silent)),
    )


def _align_passing(
    domain: str, result: AuthResult, walk: TreeWalk, *, strict: bool, answers: Answers
) -> Alignment:
    """Align an identifier that passes; the result is undetermined if it only may pass."""
    identifier = read_mail_domain(domain)
    if identifier is None or result not in (AuthResult.PASS, AuthResult.TEMPERROR):
        return _NOT_ALIGNED
    alignment = align(identifier, walk, strict=strict, answers=answers)
    is_open = result is AuthResult.TEMPERROR and alignment.is_aligned
    return Alignment(None) if is_open else alignment


def _combine(alignments: Iterable[Alignment]) -> Alignment:
    """Combine the alignments of all signatures: one aligned signature is enough."""
    known = list(alignments)
    if any(alignment.is_aligned for alignment in known):
        return Alignment(is_aligned=True)
    silent = tuple(name for alignment in known for name in alignment.unanswered_names)
    is_open = any(alignment.is_aligned is None for alignment in known)
    return Alignment(None, silent) if is_open else _NOT_ALIGNED


def _combine_results(verdict: DmarcVerdict, of_spf: Alignment, of_dkim: Alignment) -> AuthResult:
    """Return the result; it is undetermined only if missing answers could change it."""
    if verdict.presence is Presence.UNDETERMINED:
        return AuthResult.TEMPERROR
    if verdict.presence is Presence.ABSENT:
        return AuthResult.NONE
    found = (of_spf.is_aligned, of_dkim.is_aligned)
    if True in found:
        return AuthResult.PASS
    return AuthResult.TEMPERROR if None in found else AuthResult.FAIL


def make_result_without_author(result: AuthResult, explanation: str) -> DmarcOfMail:
    """Return the result for a mail without an author domain."""
    return DmarcOfMail(None, result, explanation)


def describe_dmarc_of_mail(
    dmarc: DmarcOfMail, spf: SpfOfMail | None, dkim: DkimOfMail | None
) -> Finding | None:
    """Return a finding for the result with advice, or `None` for ``pass``."""
    if dmarc.result is AuthResult.PASS:
        return None
    if dmarc.result is AuthResult.PERMERROR:
        return make_finding("dmarc.no-author", explanation=dmarc.explanation)
    if dmarc.result is AuthResult.TEMPERROR:
        # Either an answer is missing, or the sending host cannot be checked.
        is_dkim_open = dkim is not None and not dkim.is_determined
        is_silent = (
            dmarc.unanswered_names or is_dkim_open or (spf and spf.mail_from.unanswered_names)
        )
        return make_finding(
            "dmarc.undetermined",
            case="mail" if is_silent else "private",
            explanation=dmarc.explanation,
        )
    if dmarc.result is AuthResult.NONE:
        return _describe_missing_record(dmarc)
    policy = dmarc.policy or Policy.NONE
    case, places, record = _fix_alignment(dmarc, spf, dkim)
    return make_finding(
        "dmarc.fails-none" if policy is Policy.NONE else "dmarc.fails-enforced",
        case="found",
        advice=case,
        proposed=record,
        author=dmarc.author_domain,
        policy=policy.value,
        explanation=dmarc.explanation,
        **places,
    )


def _describe_missing_record(dmarc: DmarcOfMail) -> Finding:
    """Return a finding with the same reason as the check of the domain."""
    author = dmarc.author_domain or ""
    if is_local_name(author):
        return make_finding("dmarc.no-record", case="local-name", author=author)
    known = worst(dmarc.verdict.findings) if dmarc.verdict is not None else None
    if known is None:
        known = describe_absence(dmarc.organizational_domain or dmarc.author_domain or "")
    return make_finding(
        "dmarc.no-record",
        case="known",
        proposed=known.proposed,
        meaning=known.meaning,
        fix=known.fix,
    )


def _fix_alignment(
    dmarc: DmarcOfMail, spf: SpfOfMail | None, dkim: DkimOfMail | None
) -> tuple[str, dict[str, Any], RecordToPublish | None]:
    """Return the case of the advice, its places, and a record. Preferably the signature changes."""
    signers = (
        [signature.header.signing_domain for signature in dkim.passing] if dkim is not None else []
    )
    sender = spf.mail_from.domain if spf is not None and spf.has_pass else None
    loose = {"adkim": "r"} if any(_is_related(dmarc, name) for name in signers) else {}
    if sender is not None and _is_related(dmarc, sender):
        loose["aspf"] = "r"
    suffix = _find_false_suffix(dmarc, [*signers, *([sender] if sender else [])])
    if suffix is not None and suffix.record is not None:
        text = change_tags(suffix.record.text, psd=None)
        named = RecordToPublish(PREFIX + suffix.domain, "TXT", text)
        return "false-suffix", {"suffix": suffix.domain}, None if suffix.alias_of else named
    record = _relax_alignment(dmarc, loose)
    if record is not None:
        tags = " and ".join(f"{tag}=s" for tag in loose)
        return "strict", {"tags": tags, "home": dmarc.organizational_domain}, record
    if signers:
        return "both" if sender is not None else "only-dkim", {}, None
    return "only-spf" if sender is not None else "nothing-passes", {}, None


def _find_false_suffix(dmarc: DmarcOfMail, passing: Sequence[str]) -> WalkStep | None:
    """Return the record with ``psd=y`` that alone keeps a passing name from aligning, or `None`."""
    steps = () if dmarc.verdict is None else dmarc.verdict.walk.steps
    step = next((walked for walked in steps if walked.record and walked.record.psd == "y"), None)
    if step is None or is_public_suffix(step.domain):
        return None
    names = (read_mail_domain(signer) or "" for signer in passing)
    return step if any(is_within(name, step.domain) for name in names) else None


def _is_related(dmarc: DmarcOfMail, domain: str) -> bool:
    """Return whether a domain that does not align would align in relaxed mode."""
    name, home = read_mail_domain(domain), dmarc.organizational_domain
    return name is not None and home is not None and is_within(name, home)


def _relax_alignment(dmarc: DmarcOfMail, tags: dict[str, str]) -> RecordToPublish | None:
    verdict = dmarc.verdict
    if not tags or verdict is None or verdict.record is None:
        return None
    if verdict.presence is not Presence.FOUND or verdict.found_at is None:
        return None
    step = verdict.walk.step_at(verdict.found_at)
    if step is not None and step.alias_of:
        return None
    strict = {"adkim": verdict.record.has_strict_dkim, "aspf": verdict.record.has_strict_spf}
    if not any(strict[tag] for tag in tags):
        return None
    text = change_tags(verdict.record.text, **dict.fromkeys(tags))
    return RecordToPublish(PREFIX + verdict.found_at, "TXT", text)

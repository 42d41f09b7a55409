"""Validating an ARC chain (RFC 8617 5.2), and what is said about it."""

from collections.abc import Iterator, Mapping

from msgspec.structs import replace

from mailcheck.checks.arc.reading import (
    KINDS,
    MESSAGE_SIGNATURE,
    ArcChain,
    ArcOfMail,
    ArcSeal,
    ArcSet,
)
from mailcheck.checks.auth_results import AuthResult
from mailcheck.checks.dkim.dkimpy_verify import BodyHashes
from mailcheck.checks.dkim.mail import KeyOfSignature, SignatureFault, find_key
from mailcheck.checks.dkim.signature_headers import MailSource, split_mail
from mailcheck.checks.dkim.verify import (
    find_change_of_header,
    find_refusal,
    verify_signature,
)
from mailcheck.checks.dns_answers import Answers
from mailcheck.checks.findings import Finding
from mailcheck.checks.findings_table import make_finding
from mailcheck.core.instants import SECOND, Instant

Problem = tuple[AuthResult, str]
"""What came of a signature that is not valid, and why."""


def evaluate_arc_keys(chain: ArcChain, answers: Answers) -> dict[str, KeyOfSignature]:
    """Give the key at each name that validating needs; all are asked for at once."""
    names = [one.seal.key_name for one in chain.sets]
    if chain.sets:
        names.append(chain.sets[-1].message_signature.key_name)
    return {name: find_key(name, answers) for name in dict.fromkeys(names)}


def verify_chain(
    raw_message: bytes,
    chain: ArcChain,
    keys: Mapping[str, KeyOfSignature],
    received_at: Instant,
) -> ArcOfMail:
    """Validate a chain: what the seals say, the newest message signature, then every seal.

    A pure function of values that can be pickled.

    :param chain: from `read_chain` of this mail.
    :param keys: from `evaluate_arc_keys`.
    """
    if not chain.sets:
        return _describe_no_chain(chain)
    problems = list(_find_problems(raw_message, chain, keys, received_at // SECOND))
    # What is known to be broken stays so, whatever could not be looked up.
    problems.sort(key=lambda problem: problem[0] is AuthResult.TEMPERROR)
    sealers = ", ".join(dict.fromkeys(one.seal.signing_domain for one in chain.sets))
    seals = tuple(
        ArcSeal(one.instance, one.seal.signing_domain, one.seal.selector, one.chain)
        for one in chain.sets
    )
    if problems:
        return ArcOfMail(problems[0][0], chain.count, seals, problems[0][1])
    return ArcOfMail(
        AuthResult.PASS, chain.count, seals, f"The ARC chain is valid; sealed by {sealers}."
    )


def _describe_no_chain(chain: ArcChain) -> ArcOfMail:
    if chain.problem:
        return ArcOfMail(AuthResult.FAIL, chain.count, (), f"The ARC chain {chain.problem}.")
    return ArcOfMail(AuthResult.NONE, 0, (), "The mail has no ARC seals.")


def _find_problems(
    raw_message: bytes, chain: ArcChain, keys: Mapping[str, KeyOfSignature], now: int
) -> Iterator[Problem]:
    *_, newest = chain.sets
    if newest.chain == "fail":
        yield AuthResult.FAIL, f"{newest.seal.signing_domain} sealed the ARC chain as broken."
        return
    for one in chain.sets:
        if one.chain != ("none" if one.instance == 1 else "pass"):
            says = f"Seal {one.instance} of the ARC chain says cv={one.chain}"
            yield AuthResult.FAIL, f"{says}, which makes no sense there."
            return
    yield from _find_problem_of_message(split_mail(raw_message), newest, keys, now)
    for one in reversed(chain.sets):
        yield from _find_problem_of_seal(chain, one, keys, now)


def _find_problem_of_message(
    source: MailSource, newest: ArcSet, keys: Mapping[str, KeyOfSignature], now: int
) -> Iterator[Problem]:
    header = newest.message_signature
    bodies = BodyHashes(source.body)
    verdict = verify_signature(
        source, bodies, header, keys[header.key_name], now, name=MESSAGE_SIGNATURE
    )
    if verdict.result is not AuthResult.PASS:
        yield _weigh(verdict.result), f"The newest ARC set: {verdict.explanation}"


def _find_problem_of_seal(
    chain: ArcChain, sealed: ArcSet, keys: Mapping[str, KeyOfSignature], now: int
) -> Iterator[Problem]:
    """Verify a seal over all sets up to its own, the oldest first (RFC 8617 5.1.1)."""
    covered = chain.sets[: sealed.instance]
    names = tuple(kind.decode() for _ in covered for kind in KINDS)
    header = replace(sealed.seal, signed_fields=names[:-1])
    key = keys[header.key_name]
    refusal = find_refusal(header, key, now)
    if refusal is None and key.record is not None:
        # Of fields with one name the last is taken first.
        fields = tuple(field for one in reversed(covered) for field in one.fields)
        source = MailSource(fields, b"", is_whole=True)
        refusal = find_change_of_header(source, header, key.record, sealed.fields[-1])
    if refusal is not None:
        why = refusal.explanation
        if refusal.fault is SignatureFault.HEADER_CHANGED:
            why = f"an ARC field was changed, or the key at {header.key_name} does not match."
        place = f"Seal {sealed.instance} of the ARC chain, by {header.signing_domain}"
        yield _weigh(refusal.result), f"{place}, is not valid: {why}"


def _weigh(result: AuthResult) -> AuthResult:
    """Give the state of a chain with such a signature in it."""
    return AuthResult.TEMPERROR if result is AuthResult.TEMPERROR else AuthResult.FAIL


def describe_arc(arc: ArcOfMail) -> tuple[Finding, ...]:
    """Give what there is to say; nothing of a mail without ARC, as nearly all are."""
    if arc.result is AuthResult.NONE:
        return ()
    if arc.result is AuthResult.PASS:
        return (make_finding("arc.valid", arc.explanation, "Nothing to do: for information."),)
    if arc.result is AuthResult.TEMPERROR:
        return (
            make_finding(
                "arc.undetermined",
                arc.explanation,
                "Check the mail again in a minute.",
            ),
        )
    return (
        make_finding(
            "arc.broken",
            arc.explanation,
            "It costs nothing here. Whoever forwards the mail should seal it last, after all"
            " changes; mail that is sent directly needs no seal.",
        ),
    )

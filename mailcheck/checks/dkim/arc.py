"""Verification of ARC chains, the sealed results of forwarders (RFC 8617); information only."""

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from msgspec import Struct
from msgspec.structs import replace

from mailcheck.checks.auth_results import AuthResult
from mailcheck.checks.dkim.dkimpy_verify import BodyHashes, relax_fields
from mailcheck.checks.dkim.mail import SignatureFault, SignatureKey, look_up_key
from mailcheck.checks.dkim.signature_headers import (
    MAX_FIELDS,
    SHA1,
    Field,
    MailSource,
    MalformedSignature,
    SignatureHeader,
    SignatureTags,
    parse_algorithm,
    parse_key_location,
    parse_signature,
    parse_tags,
    require,
    split_mail,
)
from mailcheck.checks.dkim.verify import (
    check_header_signature,
    find_signature_failure,
    verify_signature,
)
from mailcheck.checks.dns_answers import Answers
from mailcheck.checks.findings import Finding
from mailcheck.checks.findings_table import make_finding
from mailcheck.core.instants import SECOND, Instant


class ArcSet(Struct, frozen=True):
    """One parsed set (RFC 8617 4.1); ``chain`` is the value of ``cv=``.

    ``fields`` are results, message signature and seal, in the relaxed form.
    """

    instance: int
    chain: str
    message_signature: SignatureHeader
    seal: SignatureHeader
    fields: tuple[Field, Field, Field]


class ArcChain(Struct, frozen=True):
    """The sets of a mail, oldest first.

    If the sets are not a valid chain, ``problem`` is the end of a sentence "The ARC chain ...",
    and there are no sets. ``count`` is the number of seals of the mail.
    """

    sets: tuple[ArcSet, ...]
    count: int
    problem: str = ""


class ArcSeal(Struct, frozen=True):
    """A seal; ``chain`` is the result for the seals before it: none, pass or fail."""

    instance: int
    domain: str
    selector: str
    chain: str


class ArcOfMail(Struct, frozen=True):
    """The state of the chain: ``none``, ``pass``, ``fail`` or ``temperror``.

    ``seals`` are the seals, oldest first, or empty without a valid chain. ``count`` is their
    number in any case. ``explanation`` is one sentence.
    """

    result: AuthResult
    count: int
    seals: tuple[ArcSeal, ...]
    explanation: str


RESULTS = b"arc-authentication-results"
MESSAGE_SIGNATURE = b"arc-message-signature"
SEAL = b"arc-seal"
KINDS = (RESULTS, MESSAGE_SIGNATURE, SEAL)

MAX_SETS = 50  # RFC 8617 4.2.1

MAX_OCTETS = 256 * 1024
"""Maximum number of octets of all ARC fields. Every seal covers the fields of all older sets, so
the work grows with the number of sets."""

CHAIN_STATES = ("none", "pass", "fail")

_RESULTS_INSTANCE = re.compile(rb"i ?= ?([0-9]{1,3}) ?;")


class BrokenChain(Exception):
    """The ARC fields are not a valid chain; the text is the end of "The ARC chain ..."."""


def read_chain(raw_message: bytes) -> ArcChain:
    """Parse the ARC sets of a mail, which may be any bytes."""
    source = split_mail(raw_message)
    seals = len(source.get_all(SEAL))
    if not any(source.get_all(kind) for kind in KINDS):
        return ArcChain((), 0)
    try:
        return ArcChain(_read_sets(source), seals)
    except BrokenChain as broken:
        return ArcChain((), seals, str(broken))


def _read_sets(source: MailSource) -> tuple[ArcSet, ...]:
    if not source.is_complete:
        raise BrokenChain(f"is in a mail with more than {MAX_FIELDS:,} header fields")
    relaxed = {kind: relax_fields(source.by_name.get(kind, ())) for kind in KINDS}
    if max(map(len, relaxed.values())) > MAX_SETS:
        raise BrokenChain(f"has more than {MAX_SETS} sets")
    if sum(len(body) for fields in relaxed.values() for _, body in fields) > MAX_OCTETS:
        raise BrokenChain(f"is longer than {MAX_OCTETS // 1024} KiB")
    results = _index_by_instance(
        RESULTS, [_read_results_instance(body) for _, body in relaxed[RESULTS]]
    )
    messages = [_parse(body, "message signature") for _, body in relaxed[MESSAGE_SIGNATURE]]
    message_at = _index_by_instance(MESSAGE_SIGNATURE, [_read_instance(tags) for tags in messages])
    seals = [_parse(body, "seal") for _, body in relaxed[SEAL]]
    seal_at = _index_by_instance(SEAL, [_read_instance(tags) for tags in seals])
    last = max((*results, *message_at, *seal_at))
    for instance in range(1, last + 1):
        if not (instance in results and instance in message_at and instance in seal_at):
            raise BrokenChain(f"lacks a field of set {instance} of {last}")
    return tuple(
        ArcSet(
            instance=instance,
            chain=_read_chain_state(seals[seal_at[instance]]),
            message_signature=_read_message_signature(
                message_at[instance], messages[message_at[instance]]
            ),
            seal=_read_seal(seal_at[instance], seals[seal_at[instance]]),
            fields=(
                relaxed[RESULTS][results[instance]],
                relaxed[MESSAGE_SIGNATURE][message_at[instance]],
                relaxed[SEAL][seal_at[instance]],
            ),
        )
        for instance in range(1, last + 1)
    )


def _index_by_instance(kind: bytes, instances: list[int]) -> dict[int, int]:
    """Return the index of the field of each instance."""
    places: dict[int, int] = {}
    for index, instance in enumerate(instances):
        if not 1 <= instance <= MAX_SETS:
            raise BrokenChain(f"has a set with the number {instance}")
        if instance in places:
            raise BrokenChain(f"has two {kind.decode()} fields in set {instance}")
        places[instance] = index
    return places


def _read_results_instance(body: bytes) -> int:
    match = _RESULTS_INSTANCE.match(body)
    if match is None:
        raise BrokenChain("has results without a set (no i= at their start)")
    return int(match[1])


@contextmanager
def _translate_errors(what: str) -> Iterator[None]:
    """Raise `BrokenChain` for a malformed signature."""
    try:
        yield
    except MalformedSignature as malformed:
        raise BrokenChain(f"has a {what} that {malformed}") from None


def _parse(body: bytes, what: str) -> SignatureTags:
    with _translate_errors(what):
        return parse_tags(body)


def _read_instance(tags: SignatureTags) -> int:
    try:
        return tags.number("i") or 0
    except MalformedSignature:
        return 0


def _read_chain_state(tags: SignatureTags) -> str:
    state = tags.text("cv").lower()
    if state not in CHAIN_STATES:
        raise BrokenChain("has a seal without a valid state of the chain (cv=)")
    return state


def _read_message_signature(index: int, tags: SignatureTags) -> SignatureHeader:
    with _translate_errors("message signature"):
        require(tags, ("a", "b", "bh", "d", "h", "s"))
        header = parse_signature(index, tags)
        _check_algorithm(header.algorithm)
    if SEAL.decode() in header.signed_fields:
        raise BrokenChain("has a message signature that covers seals")
    return header


def _read_seal(index: int, tags: SignatureTags) -> SignatureHeader:
    """Parse a seal; its set determines which fields it covers (RFC 8617 5.1.1)."""
    with _translate_errors("seal"):
        require(tags, ("a", "b", "cv", "d", "s"))
        selector, domain = parse_key_location(tags)
        algorithm = parse_algorithm(tags)
        _check_algorithm(algorithm)
        header = SignatureHeader(
            index,
            domain,
            selector,
            agent_id=f"@{domain}",
            algorithm=algorithm,
            canonicalization="relaxed/relaxed",
            signed_at=tags.number("t"),
            signature=tags.octets("b"),
        )
    if "h" in tags.tags:
        raise BrokenChain("has a seal that names the fields it covers (h=)")
    return header


def _check_algorithm(algorithm: str) -> None:
    if algorithm == SHA1:
        raise MalformedSignature("was made with SHA-1")


Problem = tuple[AuthResult, str]
"""The result of a signature that is not valid, and the reason."""


def evaluate_arc_keys(chain: ArcChain, answers: Answers) -> dict[str, SignatureKey]:
    """Return the key at each name that verification needs; all are queried at once."""
    names = [arc_set.seal.key_name for arc_set in chain.sets]
    if chain.sets:
        names.append(chain.sets[-1].message_signature.key_name)
    return {name: look_up_key(name, answers) for name in dict.fromkeys(names)}


def verify_chain(
    raw_message: bytes,
    chain: ArcChain,
    keys: Mapping[str, SignatureKey],
    received_at: Instant,
) -> ArcOfMail:
    """Verify a chain: the states in the seals, the newest message signature, then every seal.

    This is a pure function of values that can be pickled.

    :param chain: from `read_chain` of this mail.
    :param keys: from `evaluate_arc_keys`.
    """
    if chain.problem:
        return ArcOfMail(AuthResult.FAIL, chain.count, (), f"The ARC chain {chain.problem}.")
    if not chain.sets:
        return ArcOfMail(AuthResult.NONE, 0, (), "The mail has no ARC seals.")
    problems = list(_find_problems(raw_message, chain, keys, received_at // SECOND))
    # A known failure counts more than a failed lookup.
    problems.sort(key=lambda problem: problem[0] is AuthResult.TEMPERROR)
    sealers = ", ".join(dict.fromkeys(arc_set.seal.signing_domain for arc_set in chain.sets))
    seals = tuple(
        ArcSeal(arc_set.instance, arc_set.seal.signing_domain, arc_set.seal.selector, arc_set.chain)
        for arc_set in chain.sets
    )
    if problems:
        return ArcOfMail(problems[0][0], chain.count, seals, problems[0][1])
    return ArcOfMail(
        AuthResult.PASS, chain.count, seals, f"The ARC chain is valid; sealed by {sealers}."
    )


def _find_problems(
    raw_message: bytes, chain: ArcChain, keys: Mapping[str, SignatureKey], now: int
) -> Iterator[Problem]:
    *_, newest = chain.sets
    if newest.chain == "fail":
        yield AuthResult.FAIL, f"{newest.seal.signing_domain} sealed the ARC chain as broken."
        return
    for arc_set in chain.sets:
        if arc_set.chain != ("none" if arc_set.instance == 1 else "pass"):
            says = f"Seal {arc_set.instance} of the ARC chain says cv={arc_set.chain}"
            yield AuthResult.FAIL, f"{says}, which is not valid at this position."
            return
    source, header = split_mail(raw_message), newest.message_signature
    verdict = verify_signature(
        source, BodyHashes(source.body), header, keys[header.key_name], now, name=MESSAGE_SIGNATURE
    )
    if verdict.result is not AuthResult.PASS:
        yield _to_chain_result(verdict.result), f"The newest ARC set: {verdict.explanation}"
    for arc_set in reversed(chain.sets):
        yield from _find_seal_problem(chain, arc_set, keys, now)


def _find_seal_problem(
    chain: ArcChain, sealed: ArcSet, keys: Mapping[str, SignatureKey], now: int
) -> Iterator[Problem]:
    """Verify a seal over all sets up to its own, oldest first (RFC 8617 5.1.1)."""
    covered = chain.sets[: sealed.instance]
    names = tuple(kind.decode() for _ in covered for kind in KINDS)
    header = replace(sealed.seal, signed_fields=names[:-1])
    key = keys[header.key_name]
    failure = find_signature_failure(header, key, now)
    if failure is None and key.record is not None:
        # The last field with a name is selected first.
        fields = tuple(field for arc_set in reversed(covered) for field in arc_set.fields)
        source = MailSource(fields, b"", is_complete=True)
        failure = check_header_signature(source, header, key.record, sealed.fields[-1])
    if failure is not None:
        why = failure.explanation
        if failure.fault is SignatureFault.HEADER_CHANGED:
            why = f"an ARC field was changed, or the key at {header.key_name} does not match."
        place = f"Seal {sealed.instance} of the ARC chain, by {header.signing_domain}"
        yield _to_chain_result(failure.result), f"{place}, is not valid: {why}"


def _to_chain_result(result: AuthResult) -> AuthResult:
    """Return the state of a chain that has a signature with this result."""
    return AuthResult.TEMPERROR if result is AuthResult.TEMPERROR else AuthResult.FAIL


def describe_arc(arc: ArcOfMail) -> tuple[Finding, ...]:
    """Return the findings about a chain; there are none for a mail without ARC."""
    if arc.result is AuthResult.NONE:
        return ()
    name = {
        AuthResult.PASS: "arc.valid",
        AuthResult.TEMPERROR: "arc.undetermined",
    }.get(arc.result, "arc.broken")
    return (make_finding(name, case="explained", explanation=arc.explanation),)

"""Reading the ARC sets of a mail (RFC 8617 4)."""

import re
from collections.abc import Iterator
from contextlib import contextmanager

from msgspec import Struct

from mailcheck.checks.auth_results import AuthResult
from mailcheck.checks.dkim.dkimpy_verify import relax_fields
from mailcheck.checks.dkim.signature_headers import (
    SHA1,
    Field,
    MailSource,
    MalformedSignature,
    SignatureHeader,
    SignatureTags,
    parse_algorithm,
    parse_key_place,
    parse_signature,
    parse_tags,
    require,
    split_mail,
)


class ArcSet(Struct, frozen=True):
    """One set as it was parsed (RFC 8617 4.1); ``chain`` is ``cv=``.

    ``fields`` are results, message signature and seal, in the relaxed form.
    """

    instance: int
    chain: str
    message_signature: SignatureHeader
    seal: SignatureHeader
    fields: tuple[Field, Field, Field]


class ArcChain(Struct, frozen=True):
    """The sets of a mail, the oldest first.

    ``problem`` says why they are no chain, as the end of "The ARC chain ..."; then
    there are no sets, and ``count`` tells how many seals the mail has.
    """

    sets: tuple[ArcSet, ...]
    count: int
    problem: str = ""


class ArcSeal(Struct, frozen=True):
    """Who sealed a mail; ``chain`` is what came of the seals before: none, pass or fail."""

    instance: int
    domain: str
    selector: str
    chain: str


class ArcOfMail(Struct, frozen=True):
    """The state of the chain: ``none``, ``pass``, ``fail`` or ``temperror``.

    ``seals`` are the oldest first, none where they are no chain; ``count`` is
    how many there are all the same. ``explanation`` is one sentence.
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
"""Octets of all ARC fields: the last seal covers all of them, the one before nearly all."""

CHAIN_STATES = ("none", "pass", "fail")

_RESULTS_INSTANCE = re.compile(rb"i ?= ?([0-9]{1,3}) ?;")


class BrokenChain(Exception):
    """The ARC fields are no chain; the text says why, as the end of "The ARC chain ..."."""


def read_chain(raw_message: bytes) -> ArcChain:
    """Read the ARC sets of a mail of any bytes."""
    source = split_mail(raw_message)
    seals = len(source.named(SEAL))
    if not any(source.named(kind) for kind in KINDS):
        return ArcChain((), 0)
    try:
        return ArcChain(_read_sets(source), seals)
    except BrokenChain as broken:
        return ArcChain((), seals, str(broken))


def _read_sets(source: MailSource) -> tuple[ArcSet, ...]:
    if not source.is_whole:
        raise BrokenChain("is in a mail with more header fields than anybody reads")
    relaxed = {kind: relax_fields(source.by_name.get(kind, ())) for kind in KINDS}
    if max(map(len, relaxed.values())) > MAX_SETS:
        raise BrokenChain(f"has more than {MAX_SETS} sets")
    if sum(len(body) for fields in relaxed.values() for _, body in fields) > MAX_OCTETS:
        raise BrokenChain(f"is longer than {MAX_OCTETS // 1024} KiB")
    results = _number(RESULTS, [_read_results_instance(body) for _, body in relaxed[RESULTS]])
    messages = [_parse(body, "message signature") for _, body in relaxed[MESSAGE_SIGNATURE]]
    message_at = _number(MESSAGE_SIGNATURE, [_read_instance(tags) for tags in messages])
    seals = [_parse(body, "seal") for _, body in relaxed[SEAL]]
    seal_at = _number(SEAL, [_read_instance(tags) for tags in seals])
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


def _number(kind: bytes, instances: list[int]) -> dict[int, int]:
    """Give the index of the field of each instance."""
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
        raise BrokenChain("has results that belong to no set (no i= at their beginning)")
    return int(match[1])


@contextmanager
def _reading(what: str) -> Iterator[None]:
    """Report a malformed signature as a fault of the chain."""
    try:
        yield
    except MalformedSignature as malformed:
        raise BrokenChain(f"has a {what} that {malformed}") from None


def _parse(body: bytes, what: str) -> SignatureTags:
    with _reading(what):
        return parse_tags(body)


def _read_instance(tags: SignatureTags) -> int:
    try:
        return tags.number("i") or 0
    except MalformedSignature:
        return 0


def _read_chain_state(tags: SignatureTags) -> str:
    state = tags.text("cv").lower()
    if state not in CHAIN_STATES:
        raise BrokenChain("has a seal that says no state of the chain (cv=)")
    return state


def _read_message_signature(index: int, tags: SignatureTags) -> SignatureHeader:
    with _reading("message signature"):
        require(tags, ("a", "b", "bh", "d", "h", "s"))
        header = parse_signature(index, tags)
        _check_algorithm(header.algorithm)
    if SEAL.decode() in header.signed_fields:
        raise BrokenChain("has a message signature that covers seals")
    return header


def _read_seal(index: int, tags: SignatureTags) -> SignatureHeader:
    """Read a seal; which fields it covers follows from its set (RFC 8617 5.1.1)."""
    with _reading("seal"):
        require(tags, ("a", "b", "cv", "d", "s"))
        selector, domain = parse_key_place(tags)
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

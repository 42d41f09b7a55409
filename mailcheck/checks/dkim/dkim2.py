"""Recognition of DKIM2 header fields (draft-ietf-dkim-dkim2-spec); for information only.

DKIM2 is a draft whose versions are not compatible with each other. The fields are described, but
their signatures are not verified, and they never change a score.
"""

import base64
import binascii

from msgspec import Struct

from mailcheck.checks.dkim.signature_headers import (
    MailSource,
    MalformedSignature,
    SignatureTags,
    parse_tags,
    split_mail,
)
from mailcheck.checks.findings import Finding
from mailcheck.checks.findings_table import make_finding

SIGNATURE, INSTANCE = b"dkim2-signature", b"message-instance"

MAX_FIELDS = 50
"""Maximum number of fields of one name that are described. One hop adds one of each."""

MAX_VALUES = 10
"""Maximum number of recipients, algorithms or flags of a field that are described."""

MAX_TEXT = 320  # characters of a tag: the longest mail address
MAX_WORD = 40  # characters of an algorithm or flag
MAX_NAMED = 5  # domains that a finding names


class Dkim2Signature(Struct, frozen=True):
    """One signature, made by one hop; texts are as written by its sender.

    ``sequence`` is ``i=`` and ``instance`` is ``m=``; `None` if the tag is missing or is not a
    number. ``mail_from`` and ``recipients`` are the envelope that the hop has signed.
    """

    sequence: int | None
    instance: int | None
    domain: str
    mail_from: str
    recipients: tuple[str, ...]
    algorithms: tuple[str, ...]
    flags: tuple[str, ...]


class Dkim2OfMail(Struct, frozen=True):
    """The DKIM2 fields of a mail: the signatures in the order of hops, and the versions.

    ``instances`` is the number of Message-Instance fields, each of which describes a version of
    the mail. ``problem`` completes the sentence "The DKIM2 fields ..." and may be empty.
    """

    signatures: tuple[Dkim2Signature, ...] = ()
    instances: int = 0
    problem: str = ""

    @property
    def is_present(self) -> bool:
        """Whether the mail has any of the fields."""
        return bool(self.signatures or self.instances or self.problem)


def read_dkim2(raw_message: bytes) -> Dkim2OfMail:
    """Parse the DKIM2 fields of a mail of any bytes."""
    source = split_mail(raw_message)
    try:
        signatures, instances = _read(source, SIGNATURE), _read(source, INSTANCE)
    except MalformedSignature as malformed:
        return Dkim2OfMail(problem=f"cannot be read: one of them {malformed}")
    if not (signatures or instances):
        return Dkim2OfMail()
    described = sorted(map(_describe, signatures), key=lambda one: one.sequence or 0)
    return Dkim2OfMail(tuple(described), len(instances), _find_problem(described, instances))


def _read(source: MailSource, name: bytes) -> list[SignatureTags]:
    return [parse_tags(body) for body in source.get_all(name)[:MAX_FIELDS]]


def _describe(tags: SignatureTags) -> Dkim2Signature:
    # s= has sets of selector, algorithm and signature.
    sets = [part.strip().split(":") for part in tags.text("s").split(",")]
    algorithms = [words[1].strip()[:MAX_WORD] for words in sets if len(words) > 2]
    flags = [part.strip()[:MAX_WORD] for part in tags.text("f").split(",") if part.strip()]
    recipients = [_decode(part) for part in tags.text("rt").split(",") if part.strip()]
    return Dkim2Signature(
        sequence=_number(tags, "i"),
        instance=_number(tags, "m"),
        domain=tags.text("d")[:MAX_TEXT],
        mail_from=_decode(tags.text("mf")),
        recipients=tuple(recipients[:MAX_VALUES]),
        algorithms=tuple(algorithms[:MAX_VALUES]),
        flags=tuple(flags[:MAX_VALUES]),
    )


def _number(tags: SignatureTags, name: str) -> int | None:
    text = tags.text(name)
    return int(text) if text.isascii() and text.isdigit() and len(text) <= 4 else None


def _decode(text: str) -> str:
    """Return an address, which is written in base64; other texts are returned unchanged.

    The null reverse-path is empty.
    """
    packed = "".join(text.split())
    try:
        octets = base64.b64decode(packed, validate=True)
    except (binascii.Error, ValueError):
        return packed[:MAX_TEXT]
    return octets.decode("utf-8", "replace").removeprefix("<").removesuffix(">")[:MAX_TEXT]


def _find_problem(signatures: list[Dkim2Signature], instances: list[SignatureTags]) -> str:
    sequence = [signature.sequence for signature in signatures]
    if not signatures:
        return "contain no signature"
    if sequence != list(range(1, len(sequence) + 1)):
        return "do not number the hops from 1 without a gap (i=)"
    versions = {_number(tags, "m") for tags in instances}
    if any(signature.instance not in versions for signature in signatures):
        return "have a signature of a version (m=) without its Message-Instance field"
    return ""


def describe_dkim2(dkim2: Dkim2OfMail) -> tuple[Finding, ...]:
    """Return the finding about the fields; there is none for a mail without DKIM2."""
    if not dkim2.is_present:
        return ()
    if dkim2.problem:
        return (make_finding("dkim2.malformed", problem=dkim2.problem),)
    names = list(dict.fromkeys(signature.domain or "no domain" for signature in dkim2.signatures))
    more = f" and {len(names) - MAX_NAMED} more" if len(names) > MAX_NAMED else ""
    domains = ", ".join(names[:MAX_NAMED]) + more
    hops = f"{len(dkim2.signatures)} hop{'s' if len(dkim2.signatures) > 1 else ''}"
    return (make_finding("dkim2.present", hops=hops, domains=domains),)

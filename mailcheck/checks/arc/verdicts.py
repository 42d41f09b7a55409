"""What is known of a mail's ARC sets."""

from dataclasses import dataclass

from mailcheck.checks.auth_results import AuthResult
from mailcheck.checks.dkim.dkimpy_linear import Field
from mailcheck.checks.dkim.mail_verdicts import SignatureHeader


@dataclass(frozen=True, slots=True)
class ArcSet:
    """One set as it was parsed (RFC 8617 4.1); ``chain`` is ``cv=``.

    ``fields`` are results, message signature and seal, in the relaxed form.
    """

    instance: int
    chain: str
    message_signature: SignatureHeader
    seal: SignatureHeader
    fields: tuple[Field, Field, Field]


@dataclass(frozen=True, slots=True)
class ArcChain:
    """The sets of a mail, the oldest first.

    ``problem`` says why they are no chain, as the end of "The ARC chain ..."; then
    there are no sets, and ``count`` tells how many seals the mail has.
    """

    sets: tuple[ArcSet, ...]
    count: int
    problem: str = ""


@dataclass(frozen=True, slots=True)
class ArcSeal:
    """Who sealed a mail; ``chain`` is what came of the seals before: none, pass or fail."""

    instance: int
    domain: str
    selector: str
    chain: str


@dataclass(frozen=True, slots=True)
class ArcOfMail:
    """The state of the chain: ``none``, ``pass``, ``fail`` or ``temperror``.

    ``seals`` are the oldest first, none where they are no chain; ``count`` is
    how many there are all the same. ``explanation`` is one sentence.
    """

    result: AuthResult
    count: int
    seals: tuple[ArcSeal, ...]
    explanation: str

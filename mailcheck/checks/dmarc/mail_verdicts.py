"""What DMARC says about one mail."""

from dataclasses import dataclass

from mailcheck.checks.auth_results import AuthResult
from mailcheck.checks.dmarc.record import Policy
from mailcheck.checks.dmarc.verdicts import DmarcVerdict


@dataclass(frozen=True, slots=True)
class DmarcOfMail:
    """The result for the author domain (RFC 9989).

    ``author_domain`` is nothing when the mail has no single one (no From, or
    several authors of several domains): the result is ``permerror`` then and
    ``verdict`` nothing. ``policy`` is what receivers are asked to do with this
    mail if it fails, ``t=y`` taken into account. ``is_spf_aligned`` and
    ``is_dkim_aligned`` are about identifiers that passed; nothing means that
    it could not be determined. ``aligned_signatures`` are indexes of passing
    signatures that align. ``silent_names`` are those whose answer would decide
    a ``temperror``, as far as they are names of DMARC.
    """

    author_domain: str | None
    result: AuthResult
    verdict: DmarcVerdict | None
    policy: Policy | None
    organizational_domain: str | None
    is_spf_aligned: bool | None
    is_dkim_aligned: bool | None
    aligned_signatures: tuple[int, ...]
    explanation: str
    silent_names: tuple[str, ...] = ()

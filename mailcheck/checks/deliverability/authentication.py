"""SPF, DKIM and DMARC of one mail together, and what they are where nothing is asked or known."""

from collections.abc import Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address

from mailcheck.checks.auth_results import AuthResult
from mailcheck.checks.deliverability.origin import Origin
from mailcheck.checks.dkim.mail_verdicts import DkimOfMail, SignatureHeader, SignatureOfMail
from mailcheck.checks.dmarc.mail_verdicts import DmarcOfMail
from mailcheck.checks.spf.mail_verdicts import SpfIdentity, SpfOfIdentity, SpfOfMail

TOO_SLOW = "It could not be determined in time; read the message again in a moment."


@dataclass(frozen=True, slots=True)
class Authentication:
    """What a receiver would note about a mail (RFC 8601); ``client_ip`` as the session had it."""

    client_ip: str
    spf: SpfOfMail
    dkim: DkimOfMail
    dmarc: DmarcOfMail


def authenticate_nothing(origin: Origin) -> Authentication:
    """Give the results for an unsigned mail from an address that no record can know: none."""
    why = f"{_came_from(origin)}, and is not signed: there is nothing that DMARC could judge."
    dmarc = _dmarc_without_verdict(AuthResult.NONE, why)
    return Authentication(origin.client_ip, spf_of_private(origin), DkimOfMail(()), dmarc)


def authenticate_in_vain(origin: Origin, spf: SpfOfMail, signatures: int) -> Authentication:
    """Give the results for a mail that could not be read in time, with so many signatures."""
    headers = [_unread_signature(index) for index in range(signatures)]
    dmarc = _dmarc_without_verdict(AuthResult.TEMPERROR, TOO_SLOW)
    return Authentication(origin.client_ip, spf, dkim_in_vain(headers), dmarc)


def spf_of_private(origin: Origin) -> SpfOfMail:
    """Give SPF for an address that no record can know: none, since nothing was asked."""
    return _spf(origin, AuthResult.NONE, f"{_came_from(origin)}: no SPF record can know it.")


def spf_in_vain(origin: Origin) -> SpfOfMail:
    """Give SPF where it could not be judged in time."""
    return _spf(origin, AuthResult.TEMPERROR, TOO_SLOW)


def dkim_in_vain(headers: Sequence[SignatureHeader]) -> DkimOfMail:
    """Give the results for signatures that could not be verified in time."""
    return DkimOfMail(
        tuple(SignatureOfMail(header, AuthResult.TEMPERROR, None, TOO_SLOW) for header in headers)
    )


def _spf(origin: Origin, result: AuthResult, why: str) -> SpfOfMail:
    def identity(which: SpfIdentity) -> SpfOfIdentity:
        return SpfOfIdentity(which, "", result, None, "", why)

    return SpfOfMail(
        client_ip=origin.address or IPv4Address(0),
        mail_from=identity(SpfIdentity.MAIL_FROM),
        helo=identity(SpfIdentity.HELO),
    )


def _came_from(origin: Origin) -> str:
    where = origin.client_ip or "nowhere"
    return f"The mail came from {where}, an address that is {origin.problem}"


def _dmarc_without_verdict(result: AuthResult, why: str) -> DmarcOfMail:
    return DmarcOfMail(
        author_domain=None,
        result=result,
        verdict=None,
        policy=None,
        organizational_domain=None,
        is_spf_aligned=None,
        is_dkim_aligned=None,
        aligned_signatures=(),
        explanation=why,
    )


def _unread_signature(index: int) -> SignatureHeader:
    return SignatureHeader(
        index=index,
        signing_domain="",
        selector="",
        agent_id="",
        algorithm="",
        signed_fields=(),
        canonicalization="",
        body_length=None,
        signed_at=None,
        expires_at=None,
    )

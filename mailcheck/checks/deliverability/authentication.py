"""SPF, DKIM and DMARC results of one mail, with undetermined results where a check failed."""

from collections.abc import Sequence
from ipaddress import IPv4Address

from msgspec import Struct
from msgspec.structs import replace

from mailcheck.checks.auth_results import AuthResult
from mailcheck.checks.dkim.mail import DkimOfMail, SignatureOfMail
from mailcheck.checks.dkim.signature_headers import SignatureHeader
from mailcheck.checks.dmarc.mail import DmarcOfMail, make_result_without_author
from mailcheck.checks.spf.mail import SpfIdentity, SpfOfIdentity, SpfOfMail
from mailcheck.core.network_addresses import (
    DOCUMENTATION,
    IpAddress,
    parse_ip_address,
    why_not_public,
)


class Origin(Struct, frozen=True):
    """The sending host. ``problem`` says why its address cannot be checked; empty if it can."""

    client_ip: str
    helo_name: str
    address: IpAddress | None
    problem: str

    @property
    def judged_address(self) -> IpAddress | None:
        """Address for SPF, reverse DNS and blocklists; `None` if it cannot be checked."""
        return None if self.problem else self.address

    @property
    def explanation(self) -> str:
        """Why the address cannot be checked, in a sentence; empty if it can."""
        if not self.problem:
            return ""
        return (
            f"The mail came from {self.client_ip or 'nowhere'} ({self.problem}), an address that"
            " receivers on the Internet never see."
        )

    @property
    def note_for_report(self) -> str:
        """First sentence of the report; empty if the address can be checked."""
        if not self.problem:
            return ""
        return f"came from {self.client_ip or 'nowhere'}: only content and DKIM could be judged"


def judge_origin(client_ip: str, helo_name: str, *, allow_private: bool) -> Origin:
    """Return the sending host, with a problem if its address is not public.

    Addresses reserved for documentation count as public, as in the blocklist check: real mail
    never comes from them, and people use them to try the service.
    """
    address = parse_ip_address(client_ip)
    if address is None:
        return Origin(client_ip, helo_name, None, "not known")
    reason = why_not_public(address)
    is_usable = allow_private or reason in (None, DOCUMENTATION)
    return Origin(client_ip, helo_name, address, "" if is_usable else str(reason))


TIMED_OUT = "The result could not be determined in time. Try again in a moment."


class Authentication(Struct, frozen=True):
    """SPF, DKIM and DMARC results of a mail (RFC 8601).

    A result that could not be determined is ``temperror``, never ``none`` or ``fail``.
    """

    origin: Origin
    spf: SpfOfMail
    dkim: DkimOfMail
    dmarc: DmarcOfMail

    @property
    def passing(self) -> frozenset[str]:
        """The names of the checks that pass."""
        found = {
            "SPF of this mail": self.spf.mail_from.result,
            "SPF of its HELO name": self.spf.helo.result,
            "DMARC of this mail": self.dmarc.result,
        }
        signatures = (
            f"the DKIM signature of {signature.header.signing_domain} ({signature.header.selector})"
            for signature in self.dkim.passing
        )
        passing = (name for name, result in found.items() if result is AuthResult.PASS)
        return frozenset((*passing, *signatures))

    def with_earlier_results(self, earlier: "Authentication") -> "Authentication":
        """Return these results, with undetermined ones replaced by earlier determined ones."""
        is_spf_lost = _is_lost(self.spf.mail_from.result, earlier.spf.mail_from.result)
        is_dmarc_lost = _is_lost(self.dmarc.result, earlier.dmarc.result)
        return replace(
            self,
            spf=earlier.spf if is_spf_lost else self.spf,
            dkim=_complete_signatures(self.dkim, earlier.dkim),
            dmarc=earlier.dmarc if is_dmarc_lost else self.dmarc,
        )


def undetermined_authentication(
    origin: Origin, sender_domain: str, headers: Sequence[SignatureHeader]
) -> Authentication:
    """Return the results of a mail that could not be checked in time."""
    spf = undetermined_spf(origin, sender_domain)
    return Authentication(origin, spf, undetermined_dkim(headers), undetermined_dmarc())


def undetermined_spf(origin: Origin, sender_domain: str) -> SpfOfMail:
    """Return the SPF result if the address cannot be checked, or no time was left."""
    why = origin.explanation or TIMED_OUT

    def identity(which: SpfIdentity, domain: str) -> SpfOfIdentity:
        return SpfOfIdentity(which, domain, AuthResult.TEMPERROR, None, "", explanation=why)

    return SpfOfMail(
        client_ip=origin.address or IPv4Address(0),
        mail_from=identity(SpfIdentity.MAIL_FROM, sender_domain or origin.helo_name),
        helo=identity(SpfIdentity.HELO, origin.helo_name),
    )


def undetermined_dkim(headers: Sequence[SignatureHeader]) -> DkimOfMail:
    """Return the results of signatures that could not be verified in time."""
    return DkimOfMail(
        tuple(SignatureOfMail(header, AuthResult.TEMPERROR, None, TIMED_OUT) for header in headers)
    )


def undetermined_dmarc() -> DmarcOfMail:
    """Return the DMARC result of a mail whose author could not be read in time."""
    return make_result_without_author(AuthResult.TEMPERROR, TIMED_OUT)


def _is_lost(result: AuthResult, earlier: AuthResult) -> bool:
    return earlier.is_determined and not result.is_determined


def _complete_signatures(dkim: DkimOfMail, earlier: DkimOfMail) -> DkimOfMail:
    if len(dkim.signatures) != len(earlier.signatures):
        return dkim  # The two results have different signatures, so they cannot be matched.
    return replace(
        dkim,
        signatures=tuple(
            then if _is_lost(now.result, then.result) else now
            for now, then in zip(dkim.signatures, earlier.signatures, strict=True)
        ),
    )

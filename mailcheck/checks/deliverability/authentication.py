"""SPF, DKIM and DMARC of one mail together, by where it came from.

And what they are where nothing could be found out.
"""

from collections.abc import Sequence
from ipaddress import IPv4Address

from msgspec import Struct
from msgspec.structs import replace

from mailcheck.checks.auth_results import AuthResult
from mailcheck.checks.dkim.mail import DkimOfMail, SignatureOfMail
from mailcheck.checks.dkim.signature_headers import SignatureHeader
from mailcheck.checks.dmarc.mail import DmarcOfMail, without_author
from mailcheck.checks.spf.mail import SpfIdentity, SpfOfIdentity, SpfOfMail
from mailcheck.core.network_addresses import (
    DOCUMENTATION,
    IpAddress,
    parse_ip_address,
    why_not_public,
)


class Origin(Struct, frozen=True):
    """The sending host. ``problem`` says why its address can't be judged; empty when it can."""

    client_ip: str
    helo_name: str
    address: IpAddress | None
    problem: str

    @property
    def judged_address(self) -> IpAddress | None:
        """Give the address for SPF, reverse DNS and blocklists; nothing where it means nothing."""
        return None if self.problem else self.address

    @property
    def notice(self) -> str:
        """Give the sentence with which the report opens; empty when the address can be judged."""
        if not self.problem:
            return ""
        return f"came from {self.client_ip or 'nowhere'}: only content and DKIM could be judged"


def judge_origin(client_ip: str, helo_name: str, *, allow_private: bool) -> Origin:
    """Tell whether the world could know the address.

    Those reserved for documentation count as public, as in the blocklist
    check: no real mail comes from them, and people try a tool with them.
    """
    address = parse_ip_address(client_ip)
    if address is None:
        return Origin(client_ip, helo_name, None, "not known")
    reason = why_not_public(address)
    is_usable = allow_private or reason in (None, DOCUMENTATION)
    return Origin(client_ip, helo_name, address, "" if is_usable else str(reason))


TIMED_OUT = "It could not be determined in time; ask again in a moment."


class Authentication(Struct, frozen=True):
    """What a receiver would note about a mail (RFC 8601), whoever asks for it.

    What was not judged or could not be found out is ``temperror``, never
    ``none`` or ``fail``.
    """

    origin: Origin
    spf: SpfOfMail
    dkim: DkimOfMail
    dmarc: DmarcOfMail

    def with_earlier_results(self, earlier: "Authentication") -> "Authentication":
        """Keep what was determined earlier and is not now: never the other way round."""
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
    """Give the results for a mail that there was no time for."""
    spf = undetermined_spf(origin, sender_domain)
    return Authentication(origin, spf, undetermined_dkim(headers), undetermined_dmarc())


def undetermined_spf(origin: Origin, sender_domain: str) -> SpfOfMail:
    """Give SPF where it was not judged: by an address that no record can know, or for no time."""
    why = TIMED_OUT
    if origin.judged_address is None:
        why = (
            f"The mail came from {origin.client_ip or 'nowhere'} ({origin.problem}), an address"
            " that receivers never see."
        )

    def identity(which: SpfIdentity, domain: str) -> SpfOfIdentity:
        return SpfOfIdentity(which, domain, AuthResult.TEMPERROR, None, "", why)

    return SpfOfMail(
        client_ip=origin.address or IPv4Address(0),
        mail_from=identity(SpfIdentity.MAIL_FROM, sender_domain or origin.helo_name),
        helo=identity(SpfIdentity.HELO, origin.helo_name),
    )


def undetermined_dkim(headers: Sequence[SignatureHeader]) -> DkimOfMail:
    """Give the results for signatures that could not be verified in time."""
    return DkimOfMail(
        tuple(SignatureOfMail(header, AuthResult.TEMPERROR, None, TIMED_OUT) for header in headers)
    )


def undetermined_dmarc() -> DmarcOfMail:
    """Give DMARC for a mail whose author could not be read in time."""
    return without_author(AuthResult.TEMPERROR, TIMED_OUT)


def _is_lost(result: AuthResult, earlier: AuthResult) -> bool:
    return earlier.is_determined and not result.is_determined


def _complete_signatures(dkim: DkimOfMail, earlier: DkimOfMail) -> DkimOfMail:
    if len(dkim.signatures) != len(earlier.signatures):
        return dkim  # one of them could not be read: as many are seen in a header as are counted
    return replace(
        dkim,
        signatures=tuple(
            then if _is_lost(now.result, then.result) else now
            for now, then in zip(dkim.signatures, earlier.signatures, strict=True)
        ),
    )

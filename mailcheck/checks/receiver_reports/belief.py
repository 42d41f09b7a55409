"""How far a report is believed: as far as what vouches for its mail, and as its domain asks for it.

Anybody can send a report about anybody's domain, and say in it that he is anybody.
"""

from collections.abc import Iterable

from mailcheck.checks.deliverability.authentication import Authentication
from mailcheck.checks.dmarc.evaluate import DmarcVerdict
from mailcheck.checks.dns_answers import Presence
from mailcheck.checks.hosts.tls_rpt import TlsRptVerdict
from mailcheck.checks.mail_domains import owner_of, read_mail_domain

FAMILIES: tuple[frozenset[str], ...] = tuple(
    frozenset(names.split())
    for names in (
        "yahoo.com yahooinc.com aol.com verizonmedia.com oath.com",
        "microsoft.com outlook.com hotmail.com office365.com protection.outlook.com",
        "google.com gmail.com",
        "gmx.net gmx.com gmx.de web.de 1und1.de ionos.com mail.com",
        "mail.ru vk.com",
        "comcast.net comcast.com",
        "fastmail.com fastmaildmarc.com messagingengine.com",
        "proofpoint.com pphosted.com ppops.net emailprotection.proofpoint.com",
        "mimecast.com mimecast.org mimecastreport.com",
        "amazonses.com amazon.com amazonaws.com",
        "linkedin.com",
        "seznam.cz",
        "apple.com icloud.com me.com",
        "cisco.com iphmx.com",
        "barracuda.com barracudanetworks.com",
    )
)
"""Domains of one organization: some report under another name than they send from."""


def find_reporter(found: Authentication) -> str | None:
    """Give the domain that vouches for a mail; empty if none does, nothing if nobody knows."""
    dmarc = found.dmarc
    if dmarc.author_domain is None:
        return None if not dmarc.result.is_determined else ""
    if dmarc.is_dkim_aligned or dmarc.is_spf_aligned:
        return dmarc.author_domain
    silent = dmarc.is_dkim_aligned is None or not dmarc.result.is_determined
    # A mail from an address that can't be judged is vouched for by its signature or not at all.
    return None if silent and found.origin.judged_address is not None else ""


def doubt_claim(reporter: str, claimed: str) -> str:
    """Say why a report is not of whom it says; empty where it is.

    :param claimed: the mail address that the report gives as its sender's.
    """
    domain = read_mail_domain(claimed.rpartition("@")[2]) if "@" in claimed else None
    if domain is None:
        return ""
    one, other = owner_of(domain), owner_of(reporter)
    if one == other or any(one in family and other in family for family in FAMILIES):
        return ""
    return f"it says that it is from {domain}, but {reporter} vouches for it"


def doubt_dmarc(verdict: DmarcVerdict, address: str) -> str | None:
    """Say why a domain does not want its reports here; empty if it does, nothing if unknown."""
    if verdict.presence is Presence.UNDETERMINED:
        return None
    texts = () if verdict.record is None else (uri.text for uri in verdict.record.rua)
    if _names(texts, (f"mailto:{address}",)):
        return ""
    return f"the DMARC record of {verdict.domain} does not ask for reports to {address}"


def doubt_tls(verdict: TlsRptVerdict, places: Iterable[str]) -> str | None:
    """Say why a domain does not want its TLS reports here; as `doubt_dmarc`.

    :param places: the URIs that would ask for them.
    """
    if verdict.presence is Presence.UNDETERMINED:
        return None
    if _names(verdict.rua, places):
        return ""
    return f"the TLS-RPT record of {verdict.domain} does not ask for reports to this account"


def _names(texts: Iterable[str], places: Iterable[str]) -> bool:
    """Tell whether one of the URIs is one of these, whatever size limit and query it has."""
    wanted = {place.lower() for place in places}
    return any(text.lower().partition("!")[0].partition("?")[0] in wanted for text in texts)

"""Whether a report is trusted: its mail must be authenticated, and its domain must request it.

Anyone can send a report about any domain, under any name.
"""

from collections.abc import Iterable
from enum import Enum

from msgspec import Struct

from mailcheck.checks.deliverability.authentication import Authentication
from mailcheck.checks.dmarc.evaluate import DmarcVerdict
from mailcheck.checks.dmarc.record import ReportUri
from mailcheck.checks.dns_answers import Presence
from mailcheck.checks.hosts.tls_rpt import TlsRptVerdict
from mailcheck.checks.mail_domains import read_mail_domain, registrable_domain

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
"""Domains of one organization, because some report under another domain than they send from."""


class Trust(Enum):
    """Whether a report is trusted."""

    TRUSTED = "trusted"
    DOUBTED = "doubted"
    UNDETERMINED = "DNS did not answer"


class Judgement(Struct, frozen=True):
    """``reason`` says why a report is doubted; empty if it is not."""

    trust: Trust
    reason: str = ""


TRUSTED, UNDETERMINED = Judgement(Trust.TRUSTED), Judgement(Trust.UNDETERMINED)


class Reporter(Struct, frozen=True):
    """The domain that authenticates a mail; empty unless it is trusted."""

    trust: Trust
    domain: str = ""


def find_reporter(found: Authentication) -> Reporter:
    """Return the domain that authenticates a mail according to DMARC."""
    dmarc = found.dmarc
    doubted, undetermined = Reporter(Trust.DOUBTED), Reporter(Trust.UNDETERMINED)
    if dmarc.author_domain is None:
        return doubted if dmarc.result.is_determined else undetermined
    if dmarc.is_dkim_aligned or dmarc.is_spf_aligned:
        return Reporter(Trust.TRUSTED, dmarc.author_domain)
    silent = dmarc.is_dkim_aligned is None or not dmarc.result.is_determined
    # SPF cannot authenticate a mail whose address cannot be checked; only DKIM can.
    return undetermined if silent and found.origin.judged_address is not None else doubted


def judge_claim(reporter: str, claimed: str) -> Judgement:
    """Judge whether a report comes from the domain that authenticates its mail.

    :param claimed: mail address of the sender in the report.
    """
    domain = read_mail_domain(claimed.rpartition("@")[2]) if "@" in claimed else None
    if domain is None:
        return TRUSTED
    one, other = registrable_domain(domain), registrable_domain(reporter)
    if one == other or any(one in family and other in family for family in FAMILIES):
        return TRUSTED
    return Judgement(
        Trust.DOUBTED, f"it claims to be from {domain}, but {reporter} authenticates it"
    )


def judge_dmarc_request(verdict: DmarcVerdict, address: str) -> Judgement:
    """Judge whether a domain requests DMARC reports to an address."""
    uris = () if verdict.record is None else verdict.record.rua
    return _judge_uris(verdict, uris, address, "reports")


def judge_failure_request(verdict: DmarcVerdict, address: str) -> Judgement:
    """Judge whether a domain requests failure reports (``ruf``) to an address."""
    uris = () if verdict.record is None else verdict.record.ruf
    return _judge_uris(verdict, uris, address, "failure reports")


def _judge_uris(
    verdict: DmarcVerdict, uris: Iterable[ReportUri], address: str, what: str
) -> Judgement:
    if verdict.presence is Presence.UNDETERMINED:
        return UNDETERMINED
    if _lists_uri((uri.text for uri in uris), (f"mailto:{address}",)):
        return TRUSTED
    reason = f"the DMARC record of {verdict.domain} does not request {what} to {address}"
    return Judgement(Trust.DOUBTED, reason)


def judge_tls_request(verdict: TlsRptVerdict, uris: Iterable[str]) -> Judgement:
    """Judge whether a domain requests TLS reports to one of an account's URIs."""
    if verdict.presence is Presence.UNDETERMINED:
        return UNDETERMINED
    if _lists_uri(verdict.rua, uris):
        return TRUSTED
    reason = f"the TLS-RPT record of {verdict.domain} does not request reports to this account"
    return Judgement(Trust.DOUBTED, reason)


def _lists_uri(texts: Iterable[str], uris: Iterable[str]) -> bool:
    """Return whether one of the texts is one of the URIs, ignoring size limit and query."""
    wanted = {uri.lower() for uri in uris}
    return any(text.lower().partition("!")[0].partition("?")[0] in wanted for text in texts)

"""Evidence about a mail for tests; a perfect mail unless a test changes it."""

from ipaddress import IPv4Address
from typing import Any

from msgspec.structs import replace

from mailcheck.checks.auth_results import AuthResult
from mailcheck.checks.deliverability.authentication import Authentication, judge_origin
from mailcheck.checks.deliverability.content_filter import FilterRule, FilterVerdict
from mailcheck.checks.deliverability.score import MailEvidence
from mailcheck.checks.dkim.arc import ArcOfMail
from mailcheck.checks.dkim.key_record import KeyRecord
from mailcheck.checks.dkim.mail import DkimOfMail, SignatureFault, SignatureOfMail
from mailcheck.checks.dkim.signature_headers import SignatureHeader
from mailcheck.checks.dmarc.mail import DmarcOfMail
from mailcheck.checks.dmarc.record import Policy
from mailcheck.checks.dns_answers import Presence
from mailcheck.checks.dnsbl.catalogue import packaged_catalogue_text, parse_catalogue
from mailcheck.checks.dnsbl.listings import Listing, ListingStatus
from mailcheck.checks.hosts.helo import HeloForm, HeloVerdict
from mailcheck.checks.hosts.reverse_dns import ReverseDnsVerdict
from mailcheck.checks.spf.mail import SpfIdentity, SpfOfIdentity, SpfOfMail

ADDRESS = IPv4Address("8.8.4.10")

LISTS = parse_catalogue(packaged_catalogue_text()).address_profile


def spf(result: AuthResult = AuthResult.PASS, *, record: str | None = "v=spf1 -all") -> SpfOfMail:
    """Return an SPF result for example.com."""

    def identity(which: SpfIdentity, name: str, word: AuthResult) -> SpfOfIdentity:
        return SpfOfIdentity(which, name, word, record, "", "It is so.")

    return SpfOfMail(
        ADDRESS,
        identity(SpfIdentity.MAIL_FROM, "example.com", result),
        identity(SpfIdentity.HELO, "mx.example.com", AuthResult.PASS),
    )


_FAULTS = {
    AuthResult.FAIL: SignatureFault.BODY_CHANGED,
    AuthResult.POLICY: SignatureFault.SHA1,
    AuthResult.TEMPERROR: SignatureFault.KEY_UNDETERMINED,
}


def signature(
    result: AuthResult = AuthResult.PASS, *, bits: int = 2048, domain: str = "example.com"
) -> SignatureOfMail:
    """Return a signature with its result."""
    header = SignatureHeader(
        index=0,
        signing_domain=domain,
        selector="s1",
        agent_id=f"@{domain}",
        algorithm="rsa-sha256",
        signed_fields=("from",),
        canonicalization="relaxed/relaxed",
        body_length=None,
        signed_at=None,
        expires_at=None,
    )
    key = KeyRecord("v=DKIM1; p=...", "rsa", bits, False, False, False, "")
    return SignatureOfMail(header, result, key, "It is so.", _FAULTS.get(result))


def dkim(*signatures: SignatureOfMail) -> DkimOfMail:
    """Return the signatures of a mail, numbered in order."""
    numbered = (
        replace(one, header=replace(one.header, index=number))
        for number, one in enumerate(signatures)
    )
    return DkimOfMail(tuple(numbered))


def dmarc(
    result: AuthResult = AuthResult.PASS,
    *,
    policy: Policy | None = Policy.REJECT,
    is_dkim_aligned: bool | None = True,
) -> DmarcOfMail:
    """Return a DMARC result for example.com."""
    return DmarcOfMail(
        author_domain="example.com",
        result=result,
        verdict=None,
        policy=policy,
        organizational_domain="example.com",
        is_spf_aligned=True,
        is_dkim_aligned=is_dkim_aligned,
        aligned_signatures=(0,) if is_dkim_aligned else (),
        explanation="It is so.",
    )


def reverse_dns(*findings: Any) -> ReverseDnsVerdict:
    """Return a confirmed reverse DNS name, or one with findings."""
    names = ("mx.example.com",)
    return ReverseDnsVerdict(ADDRESS, Presence.FOUND, names, names, True, False, findings)


def helo(*findings: Any) -> HeloVerdict:
    """Return a HELO name that leads to the client, or one with findings."""
    presence = Presence.FOUND
    return HeloVerdict("mx.example.com", HeloForm.DOMAIN, presence, (ADDRESS,), True, findings)


def listing(weight: int, status: ListingStatus = ListingStatus.LISTED) -> Listing:
    """Return a listing on a list of some weight."""
    matched = (str(ADDRESS),) if status is ListingStatus.LISTED else ()
    return Listing(LISTS[0], status, matched=matched, weight=weight)


def filtered(points: float) -> FilterVerdict:
    """Return a verdict of the content filter."""
    return FilterVerdict(points, 5.0, points >= 5, (FilterRule("RULE", points, "A rule"),))


def perfect(**changes: Any) -> MailEvidence:
    """Return the evidence of a perfect mail with some changes."""
    origin = judge_origin(str(ADDRESS), "mx.example.com", allow_private=False)
    authentication = Authentication(
        origin,
        changes.pop("spf", None) or spf(),
        changes.pop("dkim", None) or dkim(signature()),
        changes.pop("dmarc", None) or dmarc(),
    )
    evidence = MailEvidence(
        authentication=authentication,
        spf_record=None,
        reverse_dns=reverse_dns(),
        helo=helo(),
        arc=ArcOfMail(AuthResult.NONE, 0, (), ""),
        listings=tuple(Listing(one, ListingStatus.CLEAN) for one in LISTS),
        content_filter=filtered(-0.1),
        quality=(),
    )
    return replace(evidence, **changes)

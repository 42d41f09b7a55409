"""Format and transport of a mail: their prices, and the receivers' rules that the mail meets."""

from collections.abc import Iterator, Sequence, Set

from msgspec import Struct
from msgspec.structs import replace

from mailcheck.checks.auth_results import AuthResult
from mailcheck.checks.deliverability.charging import cap
from mailcheck.checks.deliverability.score import MailEvidence
from mailcheck.checks.deliverability.sender import SenderDomain
from mailcheck.checks.dkim.key_record import RSA
from mailcheck.checks.dkim.mail import DkimOfMail
from mailcheck.checks.dmarc.mail import DmarcOfMail
from mailcheck.checks.dmarc.record import Policy
from mailcheck.checks.dns_answers import Presence
from mailcheck.checks.dnsbl.listings import Listing, ListingStatus
from mailcheck.checks.findings import ChargedFinding
from mailcheck.checks.quality.content import judge_content
from mailcheck.checks.quality.facts import MailFacts
from mailcheck.checks.quality.header import judge_headers
from mailcheck.checks.quality.links import judge_links
from mailcheck.checks.quality.receivers import Evidence, evidence_from_mail
from mailcheck.checks.quality.unsubscribe import MUST_BE_SIGNED, judge_unsubscribe
from mailcheck.checks.quality.wording import enumerate_some
from mailcheck.checks.spf.mail import SpfOfMail
from mailcheck.checks.weights import MAX_QUALITY, charge
from mailcheck.core.deliverability_tests import ReceivedMail
from mailcheck.core.messages import TlsFacts


class Handover(Struct, frozen=True):
    """How the mail was delivered; ``was_tls_offered`` is whether the client could use TLS."""

    mail: ReceivedMail
    was_tls_offered: bool

    @property
    def tls_used(self) -> bool | None:
        """Whether the connection was encrypted; `None` if TLS was not offered."""
        if self.mail.session.tls is not None:
            return True
        return False if self.was_tls_offered else None


def was_starttls_offered(transcript: tuple[str, ...]) -> bool | None:
    """Return whether our server offered STARTTLS; `None` without a transcript."""
    if not transcript:
        return None
    offers = [line[7:].strip() for line in transcript if line[:7] in ("S: 250-", "S: 250 ")]
    return "STARTTLS" in map(str.upper, offers)


def signed_fields(dkim: DkimOfMail) -> Set[str] | None:
    """Return the fields that a valid signature covers, or `None` if that is undetermined.

    One signature must cover both fields of a one-click unsubscribe (RFC 8058 4). If a signature
    does, its fields are returned. The result is undetermined while a signature that may be valid
    could be that one.
    """
    covered = [set(signature.header.signed_fields) for signature in dkim.passing]
    complete = [fields for fields in covered if fields >= MUST_BE_SIGNED]
    if not complete and not all(signature.result.is_determined for signature in dkim.signatures):
        return None
    return next(iter([*complete, *covered]), set())


def judge_quality(
    facts: MailFacts, handover: Handover, dkim: DkimOfMail
) -> tuple[ChargedFinding, ...]:
    """Judge the format of a mail, within the maximum price for it."""
    mail = handover.mail
    is_utf8 = is_smtputf8(mail.transcript)
    return cap(
        (
            *judge_transport(
                mail.session.tls,
                is_extended=mail.session.is_extended,
                transcript=mail.transcript,
                tls_was_offered=handover.was_tls_offered,
            ),
            *judge_headers(facts, mail.received_at, is_smtputf8=is_utf8),
            *judge_content(facts),
            *judge_links(facts),
            *judge_unsubscribe(facts, signed_fields(dkim)),
        ),
        MAX_QUALITY,
    )


def collect_receiver_evidence(
    facts: MailFacts, evidence: MailEvidence, handover: Handover
) -> Evidence:
    """Return what the rules and replies of Google, Yahoo, Microsoft and others depend on."""
    found = evidence.authentication
    origin, spf, dkim, dmarc = found.origin, found.spf, found.dkim, found.dmarc
    is_utf8 = is_smtputf8(handover.mail.transcript)
    known = evidence_from_mail(facts, signed_fields(dkim), is_smtputf8=is_utf8)
    envelope, author = evidence.envelope, evidence.author
    return replace(
        known,
        spf_passes=_claim(spf.mail_from.result),
        dkim_passes=bool(dkim.passing) if dkim.is_determined else None,
        any_aligned=_any_aligned(dmarc),
        has_dmarc_record=_has_record(dmarc),
        is_ptr_confirmed=_is_confirmed(evidence),
        tls_used=handover.tls_used,
        key_bits=_shortest_key(dkim),
        can_receive_replies=_can_receive_replies(author),
        fails_reject=_fails_with(dmarc, Policy.REJECT),
        fails_quarantine=_fails_with(dmarc, Policy.QUARANTINE),
        spf_fails=_has_result(spf, AuthResult.FAIL),
        has_spf_error=_has_result(spf, AuthResult.PERMERROR),
        spf_allows_none=_allows_none(spf),
        is_listed=_is_on_spamhaus(evidence.listings, origin.client_ip, is_policy=False),
        is_dynamic=_is_on_spamhaus(evidence.listings, origin.client_ip, is_policy=True),
        has_sender=bool(handover.mail.envelope_sender),
        sender_exists=_exists(envelope),
        sender_receives_mail=None if envelope is None else _receives_mail(envelope),
        author_exists=_exists(author),
        client_ip=origin.client_ip,
        author_domain=dmarc.author_domain or "",
        address_problem=origin.explanation,
    )


def _claim(result: AuthResult) -> bool | None:
    return result is AuthResult.PASS if result.is_determined else None


def _has_result(spf: SpfOfMail, result: AuthResult) -> bool | None:
    found = spf.mail_from.result
    return found is result if found.is_determined else None


def _allows_none(spf: SpfOfMail) -> bool | None:
    if not spf.mail_from.result.is_determined:
        return None
    return (spf.mail_from.record or "").lower().split() == ["v=spf1", "-all"]


def _fails_with(dmarc: DmarcOfMail, policy: Policy) -> bool | None:
    """Return whether DMARC fails and requests a handling; `None` if it may."""
    if dmarc.result is AuthResult.TEMPERROR:
        is_record_known = dmarc.verdict is not None and dmarc.policy is not None
        return None if not is_record_known or dmarc.policy is policy else False
    return dmarc.result is AuthResult.FAIL and dmarc.policy is policy


SPAMHAUS = "zen.spamhaus.org"
"""The zone with all lists of addresses of Spamhaus."""


def _is_on_spamhaus(listings: Sequence[Listing], client_ip: str, *, is_policy: bool) -> bool | None:
    """Return whether Spamhaus lists the client, for abuse or only by its policy."""
    for listing in listings:
        if listing.blocklist.zone == SPAMHAUS:
            if listing.status is ListingStatus.CLEAN:
                return False
            if listing.is_listed:
                return client_ip in listing.matched and listing.is_policy is is_policy
    return None


def _exists(sender: SenderDomain | None) -> bool | None:
    if sender is None or (sender.mx.exists and sender.mx.presence is Presence.UNDETERMINED):
        return None
    return sender.mx.exists


def _receives_mail(sender: SenderDomain) -> bool | None:
    if sender.mx.presence is Presence.UNDETERMINED:
        return None
    return not sender.mx.is_null_mx


def _any_aligned(dmarc: DmarcOfMail) -> bool | None:
    if dmarc.author_domain is None:
        return False
    found = (dmarc.is_spf_aligned, dmarc.is_dkim_aligned)
    if True in found:
        return True
    return None if None in found else False


def _has_record(dmarc: DmarcOfMail) -> bool | None:
    if dmarc.verdict is None:
        return False
    presence = dmarc.verdict.presence
    return None if presence is Presence.UNDETERMINED else presence is Presence.FOUND


def _is_confirmed(evidence: MailEvidence) -> bool | None:
    found = evidence.reverse_dns
    if found is None or found.presence is Presence.UNDETERMINED:
        return None
    return found.is_confirmed


def _shortest_key(dkim: DkimOfMail) -> int | None:
    keys = (signature.key for signature in dkim.passing)
    bits = [key.bits for key in keys if key is not None and key.key_type == RSA and key.bits]
    return min(bits, default=None)


def _can_receive_replies(author: SenderDomain | None) -> bool | None:
    """Return whether mail to the author can be delivered (RFC 5321 5.1)."""
    if author is None:
        return False
    mx = author.mx
    if mx.presence is Presence.UNDETERMINED:
        return None
    if mx.hosts:
        return any(host.is_usable for host in mx.hosts)
    return not mx.is_null_mx and mx.is_implicit_mx


OLD_VERSIONS = frozenset(("SSLv2", "SSLv3", "TLSv1", "TLSv1.0", "TLSv1.1"))
"""TLS versions that must no longer be used (RFC 8996)."""

WEAK_CIPHERS = ("NULL", "EXP", "RC4", "DES", "MD5", "ADH", "AECDH")
"""Parts of the names of ciphers that offer no protection (RFC 7525 4.1)."""


def judge_transport(
    tls: TlsFacts | None,
    *,
    is_extended: bool,
    transcript: Sequence[str] = (),
    tls_was_offered: bool,
) -> Iterator[ChargedFinding]:
    """Judge the SMTP session that delivered the mail.

    :param is_extended: whether the client greeted with EHLO.
    :param transcript: lines ``C: ...`` and ``S: ...``; empty if it was not kept.
    :param tls_was_offered: whether our server offered STARTTLS to this client.
    """
    if tls is None and tls_was_offered:
        how = "" if is_extended else ", because the sender greeted with HELO"
        yield charge("transport.no-tls", how=how)
    elif tls is None:
        yield charge("transport.tls-not-offered")
    elif tls.version in OLD_VERSIONS:
        yield charge("transport.old-tls", version=tls.version)
    if tls is not None and any(name in tls.cipher.upper() for name in WEAK_CIPHERS):
        yield charge("transport.weak-cipher", cipher=enumerate_some((tls.cipher,)))
    if not is_extended:
        yield charge("transport.helo")
    refused = [line[3:] for line in transcript if line[:4] == "S: 5" and line[4:6].isdigit()]
    if refused:
        yield charge("transport.refused-commands", refused=enumerate_some(refused))


def is_smtputf8(transcript: Sequence[str]) -> bool:
    """Return whether the client requested SMTPUTF8 in its last MAIL command (RFC 6531 3.4)."""
    commands = [line.upper() for line in transcript if line[:13].upper() == "C: MAIL FROM:"]
    return bool(commands) and "SMTPUTF8" in commands[-1].rpartition(">")[2].split()

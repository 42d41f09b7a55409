"""How a mail is made: what that costs, and which of the receivers' rules it meets."""

from collections.abc import Set

from msgspec import Struct
from msgspec.structs import replace

from mailcheck.checks.auth_results import AuthResult
from mailcheck.checks.deliverability.charging import cap
from mailcheck.checks.deliverability.evidence import MailEvidence
from mailcheck.checks.dkim.key_record import RSA
from mailcheck.checks.dkim.mail import DkimOfMail
from mailcheck.checks.dmarc.mail import DmarcOfMail
from mailcheck.checks.dns_answers import Presence
from mailcheck.checks.findings import ChargedFinding
from mailcheck.checks.hosts.mx import MxVerdict
from mailcheck.checks.quality.content import judge_content
from mailcheck.checks.quality.facts import MailFacts
from mailcheck.checks.quality.header import judge_headers
from mailcheck.checks.quality.links import judge_links
from mailcheck.checks.quality.receivers import Checklist, judge_by_receivers, start_evidence
from mailcheck.checks.quality.transport import is_smtputf8, judge_transport
from mailcheck.checks.quality.unsubscribe import MUST_BE_SIGNED, judge_unsubscribe
from mailcheck.checks.weights import MAX_MAKING
from mailcheck.core.deliverability_tests import ReceivedMail


class Handover(Struct, frozen=True):
    """How the mail was handed over; ``was_tls_offered`` is whether the client could have had it."""

    mail: ReceivedMail
    was_tls_offered: bool

    @property
    def tls_used(self) -> bool | None:
        """Tell whether it was encrypted; nothing where that was not the sender's choice."""
        if self.mail.session.tls is not None:
            return True
        return False if self.was_tls_offered else None


def was_starttls_offered(transcript: tuple[str, ...]) -> bool | None:
    """Tell whether our side offered STARTTLS; nothing where the conversation was not kept."""
    if not transcript:
        return None
    return any(line[:7] in ("S: 250-", "S: 250 ") and _keyword(line) for line in transcript)


def _keyword(line: str) -> bool:
    return line[7:].strip().upper() == "STARTTLS"


def signed_fields(dkim: DkimOfMail) -> Set[str] | None:
    """Give the fields that a valid signature covers.

    One signature has to cover both fields of a one-click unsubscribe (RFC 8058
    4), so it is that one's where there is one. Nothing when it could not be
    determined: a signature that may be valid could be that one.
    """
    covered = [set(one.header.signed_fields) for one in dkim.passing]
    complete = [fields for fields in covered if fields >= MUST_BE_SIGNED]
    if not complete and not all(one.result.is_determined for one in dkim.signatures):
        return None
    return next(iter([*complete, *covered]), set())


def judge_quality(
    facts: MailFacts, handover: Handover, dkim: DkimOfMail
) -> tuple[ChargedFinding, ...]:
    """Judge the making of a mail, within the cap for it."""
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
        MAX_MAKING,
    )


def judge_receivers(
    facts: MailFacts, evidence: MailEvidence, handover: Handover, author_mx: MxVerdict | None
) -> tuple[Checklist, ...]:
    """Go through the rules of Google, Yahoo and Microsoft."""
    found = evidence.authentication
    dkim, dmarc = found.dkim, found.dmarc
    known = start_evidence(facts, signed_fields(dkim))
    return judge_by_receivers(
        replace(
            known,
            spf_passes=_claim(found.spf.mail_from.result),
            dkim_passes=bool(dkim.passing) if dkim.is_determined else None,
            any_aligned=_any_aligned(dmarc),
            has_dmarc_record=_has_record(dmarc),
            is_ptr_confirmed=_is_confirmed(evidence),
            tls_used=handover.tls_used,
            key_bits=_shortest_key(dkim),
            can_get_answers=_can_get_answers(author_mx),
        )
    )


def _claim(result: AuthResult) -> bool | None:
    return result is AuthResult.PASS if result.is_determined else None


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
    keys = (one.key for one in dkim.passing)
    bits = [key.bits for key in keys if key is not None and key.key_type == RSA and key.bits]
    return min(bits, default=None)


def _can_get_answers(mx: MxVerdict | None) -> bool | None:
    """Tell whether mail to the author arrives somewhere (RFC 5321 5.1)."""
    if mx is None:
        return False
    if mx.presence is Presence.UNDETERMINED:
        return None
    if mx.hosts:
        return any(host.is_usable for host in mx.hosts)
    return not mx.is_null_mx and mx.is_implicit_mx

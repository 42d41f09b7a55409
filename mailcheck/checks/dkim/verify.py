"""Verifying the signatures of a mail (RFC 6376 6.1, RFC 8301, RFC 8463).

Everything here is a pure function of values that can be pickled, so that a
large mail can be verified in a process of its own.
"""

from collections.abc import Sequence

from mailcheck.checks.auth_results import AuthResult
from mailcheck.checks.dkim.dkimpy_linear import Field
from mailcheck.checks.dkim.dkimpy_signature import (
    BodyHashes,
    SignedHeader,
    UnusableKey,
    is_header_intact,
)
from mailcheck.checks.dkim.key_record import KeyRecord
from mailcheck.checks.dkim.mail_source import MailSource, split_mail
from mailcheck.checks.dkim.mail_verdicts import (
    DkimOfMail,
    KeyOfSignature,
    SignatureFault,
    SignatureHeader,
    SignatureOfMail,
)
from mailcheck.checks.dkim.verify_rules import Refusal, count_seconds_ahead, find_refusal
from mailcheck.core.instants import SECOND, Instant

SIGNATURE_FIELD = b"dkim-signature"


def verify_signatures(
    raw_message: bytes,
    headers: Sequence[SignatureHeader],
    keys: Sequence[KeyOfSignature],
    received_at: Instant,
) -> DkimOfMail:
    """Verify each signature with its key.

    :param headers: from `read_signatures` of this mail.
    :param keys: from `evaluate_keys`, one for each header.
    :param received_at: the moment by which ``x=`` and ``t=`` are judged.
    """
    source = split_mail(raw_message)
    bodies = BodyHashes(source.body)
    now = received_at // SECOND
    signatures = tuple(
        verify_signature(source, bodies, header, key, now)
        for header, key in zip(headers, keys, strict=True)
    )
    return DkimOfMail(signatures, len(source.named(SIGNATURE_FIELD)) - len(signatures))


def verify_signature(
    source: MailSource,
    bodies: BodyHashes,
    header: SignatureHeader,
    key: KeyOfSignature,
    now: int,
    *,
    name: bytes = SIGNATURE_FIELD,
) -> SignatureOfMail:
    """Judge one signature: by its tags and its key, then the body, then the header.

    :param now: when the mail arrived, in seconds since the epoch.
    :param name: the fields that ``header.index`` counts; ARC's are signed the same way.
    """
    refusal = find_refusal(header, key, now)
    if refusal is None and key.record is not None:
        own_field = source.by_name[name][header.index]
        refusal = _find_change_of_body(bodies, header)
        refusal = refusal or find_change_of_header(source, header, key.record, own_field)
    if refusal is not None:
        return SignatureOfMail(
            header,
            refusal.result,
            key.record,
            refusal.explanation,
            refusal.fault,
            key_record_name=key.record_name,
        )
    return SignatureOfMail(
        header,
        AuthResult.PASS,
        key.record,
        f"The signature of {header.signing_domain} is valid.",
        unsigned_octets=_count_unsigned(bodies, header),
        seconds_ahead=count_seconds_ahead(header, now),
        key_record_name=key.record_name,
    )


def _find_change_of_body(bodies: BodyHashes, header: SignatureHeader) -> Refusal | None:
    length = header.body_length
    if length is not None and length > bodies.size(header.canonicalization):
        return Refusal(
            SignatureFault.BODY_CUT,
            AuthResult.FAIL,
            f"The signature of {header.signing_domain} covers {length} octets of the body (l=), but"
            f" only {bodies.size(header.canonicalization)} arrived: the body was cut or changed"
            " after signing.",
        )
    if bodies.digest(header.canonicalization, length) != header.body_hash:
        return Refusal(
            SignatureFault.BODY_CHANGED,
            AuthResult.FAIL,
            f"The body was changed after signing: it is not the one that {header.signing_domain}"
            " signed.",
        )
    return None


def find_change_of_header(
    source: MailSource, header: SignatureHeader, key: KeyRecord, own_field: Field
) -> Refusal | None:
    """Verify the signature over the header; ``own_field`` is the one that it stands in."""
    signed = SignedHeader(
        header.algorithm,
        header.canonicalization,
        header.signed_fields,
        header.signature,
        own_field,
    )
    try:
        if is_header_intact(source, signed, key):
            return None
    except UnusableKey as problem:
        return Refusal(
            SignatureFault.KEY_BROKEN,
            AuthResult.PERMERROR,
            f"No signature can be verified with the key at {header.key_name}: it {problem}.",
        )
    return Refusal(
        SignatureFault.HEADER_CHANGED,
        AuthResult.FAIL,
        f"The body is as it was, but the signature of {header.signing_domain} is not valid: a"
        " signed header field was changed after signing, or the key at"
        f" {header.key_name} does not match.",
    )


def _count_unsigned(bodies: BodyHashes, header: SignatureHeader) -> int:
    if header.body_length is None:
        return 0
    return bodies.size(header.canonicalization) - header.body_length

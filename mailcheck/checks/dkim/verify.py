"""Verification of the DKIM signatures of a mail (RFC 6376 6.1, RFC 8301, RFC 8463).

All functions are pure, and their values can be pickled, so that a large mail can be verified in
a child process.
"""

from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from mailcheck.checks.auth_results import AuthResult
from mailcheck.checks.dkim.dkimpy_verify import (
    BodyHashes,
    UnusableKey,
    is_header_intact,
)
from mailcheck.checks.dkim.key_record import KeyRecord
from mailcheck.checks.dkim.mail import (
    DkimOfMail,
    KeyState,
    SignatureFault,
    SignatureKey,
    SignatureOfMail,
)
from mailcheck.checks.dkim.signature_headers import (
    SHA1,
    Field,
    MailSource,
    SignatureHeader,
    split_mail,
)
from mailcheck.core.instants import SECOND, Instant, describe_duration

CLOCK_SKEW = 300
"""Seconds by which clocks may differ (OpenDKIM's ClockDrift)."""

MAX_AHEAD = 36_000
"""Maximum number of seconds that a signature may be dated in the future: ten hours, for a wrong
time zone (as in dkimpy; RFC 6376 3.5 leaves it to the verifier)."""


class SignatureFailure(Struct, frozen=True):
    """The reason why a signature is not accepted."""

    fault: SignatureFault
    result: AuthResult
    explanation: str


def find_signature_failure(
    header: SignatureHeader, key: SignatureKey, now: int
) -> SignatureFailure | None:
    """Check the tags and the key of a signature; ``now`` is in seconds since the epoch."""
    if header.problem:
        return _permanent(SignatureFault.MALFORMED, f"The signature {header.problem}.")
    if header.algorithm == SHA1:
        return SignatureFailure(
            SignatureFault.SHA1,
            AuthResult.POLICY,
            f"The signature of {header.signing_domain} was made with SHA-1 (a=rsa-sha1), which"
            " receivers must no longer accept (RFC 8301).",
        )
    return (
        _check_key_state(header, key)
        or (_check_key(header, key.record) if key.record is not None else None)
        or _check_times(header, now)
    )


def _check_key_state(header: SignatureHeader, key: SignatureKey) -> SignatureFailure | None:
    name = header.key_name
    if key.state is KeyState.FOUND:
        return None
    if key.state is KeyState.ABSENT:
        where = key.record_name
        alias = f", nor at {where}, the target of its CNAME" if where not in ("", name) else ""
        return _permanent(
            SignatureFault.NO_KEY,
            f"There is no key for the signature: no TXT record exists at {name}{alias}.",
        )
    if key.state is KeyState.OTHER:
        return _permanent(
            SignatureFault.NO_KEY_RECORD,
            f"There is no key for the signature: the TXT record at {name} is not a DKIM key.",
        )
    if key.state is KeyState.SEVERAL:
        return _permanent(
            SignatureFault.SEVERAL_KEYS,
            f"There is more than one key at {name}, so it is undefined which one verifies the"
            " signature.",
        )
    return SignatureFailure(
        SignatureFault.KEY_UNDETERMINED,
        AuthResult.TEMPERROR,
        f"The signature could not be verified now: DNS gave no usable answer about {name}.",
    )


def _check_key(header: SignatureHeader, key: KeyRecord) -> SignatureFailure | None:
    name = header.key_name
    if key.is_revoked:
        return _permanent(
            SignatureFault.KEY_REVOKED,
            f"The key at {name} is revoked (empty p=): its signatures are no longer valid.",
        )
    if key.is_too_short:
        return SignatureFailure(
            SignatureFault.KEY_TOO_SHORT,
            AuthResult.POLICY,
            f"The key at {name} has only {key.bits} bits, which receivers must no longer accept"
            " (RFC 8301).",
        )
    if key.problem:
        return _permanent(
            SignatureFault.KEY_BROKEN,
            f"No signature can be verified with the key record at {name}: it {key.problem}.",
        )
    kind = header.algorithm.partition("-")[0]
    if key.key_type != kind:
        return _permanent(
            SignatureFault.KEY_OF_OTHER_TYPE,
            f"The signature was made with a key of type {kind}, but the key at {name} is of type"
            f" {key.key_type}.",
        )
    if key.is_strict and header.agent_id.rpartition("@")[2] != header.signing_domain:
        return _permanent(
            SignatureFault.OTHER_IDENTITY,
            f"The signature is for {header.agent_id} (i=), but the key at {name} is only for"
            f" addresses of {header.signing_domain} itself (t=s).",
        )
    return None


def _check_times(header: SignatureHeader, now: int) -> SignatureFailure | None:
    if header.expires_at is not None and header.expires_at + CLOCK_SKEW < now:
        late = describe_duration(now - header.expires_at)
        return SignatureFailure(
            SignatureFault.EXPIRED,
            AuthResult.FAIL,
            f"The signature of {header.signing_domain} expired {late} before the mail arrived"
            " (x=).",
        )
    if header.signed_at is not None and header.signed_at > now + MAX_AHEAD:
        ahead = describe_duration(header.signed_at - now)
        return SignatureFailure(
            SignatureFault.FROM_THE_FUTURE,
            AuthResult.FAIL,
            f"The signature of {header.signing_domain} is dated {ahead} after the mail arrived"
            " (t=).",
        )
    return None


def count_seconds_ahead(header: SignatureHeader, now: int) -> int:
    """Return by how many seconds a signature is dated after ``now``, or 0 within the skew."""
    ahead = (header.signed_at or 0) - now
    return ahead if ahead > CLOCK_SKEW else 0


def _permanent(fault: SignatureFault, explanation: str) -> SignatureFailure:
    return SignatureFailure(fault, AuthResult.PERMERROR, explanation)


SIGNATURE_FIELD = b"dkim-signature"


def verify_signatures(
    raw_message: bytes,
    headers: Sequence[SignatureHeader],
    keys: Sequence[SignatureKey],
    received_at: Instant,
) -> DkimOfMail:
    """Verify each signature with its key.

    :param headers: from `read_signatures` of this mail.
    :param keys: from `evaluate_keys`, one for each header.
    :param received_at: the time at which ``x=`` and ``t=`` are evaluated.
    """
    source = split_mail(raw_message)
    bodies = BodyHashes(source.body)
    now = received_at // SECOND
    signatures = tuple(
        verify_signature(source, bodies, header, key, now)
        for header, key in zip(headers, keys, strict=True)
    )
    return DkimOfMail(signatures, len(source.get_all(SIGNATURE_FIELD)) - len(signatures))


def verify_signature(
    source: MailSource,
    bodies: BodyHashes,
    header: SignatureHeader,
    key: SignatureKey,
    now: int,
    *,
    name: bytes = SIGNATURE_FIELD,
) -> SignatureOfMail:
    """Verify one signature: its tags and key, then the body, then the header.

    :param now: when the mail arrived, in seconds since the epoch.
    :param name: the fields that ``header.index`` counts; ARC signatures have another name.
    """
    failure = find_signature_failure(header, key, now)
    if failure is None and key.record is not None:
        own_field = source.by_name[name][header.index]
        failure = _check_body_hash(bodies, header)
        failure = failure or check_header_signature(source, header, key.record, own_field)
    if failure is not None:
        return SignatureOfMail(
            header,
            failure.result,
            key.record,
            failure.explanation,
            failure.fault,
            key_record_name=key.record_name,
        )
    unsigned = 0
    if header.body_length is not None:
        unsigned = bodies.size(header.canonicalization) - header.body_length
    return SignatureOfMail(
        header,
        AuthResult.PASS,
        key.record,
        f"The signature of {header.signing_domain} is valid.",
        unsigned_octets=unsigned,
        seconds_ahead=count_seconds_ahead(header, now),
        key_record_name=key.record_name,
    )


def replace_keys(dkim: DkimOfMail, keys: Sequence[SignatureKey]) -> DkimOfMail:
    """Return the result with other records of the same keys.

    A signature whose record has another key keeps its result, since that needs the mail.
    """
    if len(keys) != len(dkim.signatures):
        return dkim
    pairs = zip(dkim.signatures, keys, strict=True)
    return replace(
        dkim, signatures=tuple(_replace_key(signature, key.record) for signature, key in pairs)
    )


def _replace_key(signature: SignatureOfMail, record: KeyRecord | None) -> SignatureOfMail:
    old = signature.key
    if old is None or record is None or record == old or not record.is_usable:
        return signature
    is_same = (old.key_type, old.key_data) == (record.key_type, record.key_data)
    return replace(signature, key=record) if is_same else signature


def _check_body_hash(bodies: BodyHashes, header: SignatureHeader) -> SignatureFailure | None:
    length = header.body_length
    if length is not None and length > bodies.size(header.canonicalization):
        return SignatureFailure(
            SignatureFault.BODY_CUT,
            AuthResult.FAIL,
            f"The signature of {header.signing_domain} covers {length} octets of the body (l=), but"
            f" only {bodies.size(header.canonicalization)} arrived: the body was truncated or"
            " changed after signing.",
        )
    if bodies.digest(header.canonicalization, length) != header.body_hash:
        return SignatureFailure(
            SignatureFault.BODY_CHANGED,
            AuthResult.FAIL,
            f"The body was changed after signing: {header.signing_domain} signed another body.",
        )
    return None


def check_header_signature(
    source: MailSource, header: SignatureHeader, key: KeyRecord, own_field: Field
) -> SignatureFailure | None:
    """Verify the signature of the header; ``own_field`` is the field with the signature."""
    try:
        if is_header_intact(source, header, own_field, key):
            return None
        added = source.by_name.get(b"from", [])[:-1]
        # Intact with the last From field only: the other ones were added above it.
        above = set(map(id, added))
        below = tuple(field for field in source.fields if id(field) not in above)
        if added and is_header_intact(replace(source, fields=below), header, own_field, key):
            return SignatureFailure(
                SignatureFault.HEADER_CHANGED,
                AuthResult.FAIL,
                f"{header.signing_domain} signed the mail with one From field, but it has"
                f" {len(added) + 1}: the fields above the last one were added after signing.",
            )
    except UnusableKey as problem:
        return SignatureFailure(
            SignatureFault.KEY_BROKEN,
            AuthResult.PERMERROR,
            f"No signature can be verified with the key at {header.key_name}: it {problem}.",
        )
    return SignatureFailure(
        SignatureFault.HEADER_CHANGED,
        AuthResult.FAIL,
        f"The body is unchanged, but the signature of {header.signing_domain} is not valid: a"
        " signed header field was changed after signing, or the key at"
        f" {header.key_name} does not match.",
    )

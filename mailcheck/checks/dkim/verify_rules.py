"""What makes a signature worthless before any hash is made."""

from dataclasses import dataclass

from mailcheck.checks.auth_results import AuthResult
from mailcheck.checks.dkim.key_record import KeyRecord
from mailcheck.checks.dkim.mail_verdicts import (
    KeyOfSignature,
    KeyState,
    SignatureFault,
    SignatureHeader,
)
from mailcheck.checks.dkim.signature_headers import SHA1

CLOCK_SKEW = 300
"""Seconds that clocks may differ (OpenDKIM's ClockDrift)."""

MAX_AHEAD = 36_000
"""Seconds that a signature may come from the future: ten hours, a wrong time zone
(dkimpy's leeway; RFC 6376 3.5 leaves it to the verifier)."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a signature is not accepted."""

    fault: SignatureFault
    result: AuthResult
    explanation: str


def find_refusal(header: SignatureHeader, key: KeyOfSignature, now: int) -> Refusal | None:
    """Judge a signature by its tags and its key; ``now`` is in seconds since the epoch."""
    if header.problem:
        return _permanent(SignatureFault.MALFORMED, f"The signature {header.problem}.")
    return (
        _judge_algorithm(header)
        or _judge_key_state(header, key)
        or (_judge_key(header, key.record) if key.record is not None else None)
        or _judge_times(header, now)
    )


def _judge_algorithm(header: SignatureHeader) -> Refusal | None:
    if header.algorithm != SHA1:
        return None
    return Refusal(
        SignatureFault.SHA1,
        AuthResult.POLICY,
        f"The signature of {header.signing_domain} was made with SHA-1 (a=rsa-sha1), which"
        " receivers must not accept any more (RFC 8301).",
    )


def _judge_key_state(header: SignatureHeader, key: KeyOfSignature) -> Refusal | None:
    name = header.key_name
    if key.state is KeyState.FOUND:
        return None
    if key.state is KeyState.ABSENT:
        where = key.record_name
        alias = f", nor at {where}, where its CNAME leads" if where not in ("", name) else ""
        return _permanent(
            SignatureFault.NO_KEY,
            f"There is no key for the signature: no TXT record stands at {name}{alias}.",
        )
    if key.state is KeyState.OTHER:
        return _permanent(
            SignatureFault.NO_KEY_RECORD,
            f"There is no key for the signature: the TXT record at {name} is not a DKIM key.",
        )
    if key.state is KeyState.SEVERAL:
        return _permanent(
            SignatureFault.SEVERAL_KEYS,
            f"More than one key stands at {name}, so it is undefined which one verifies the"
            " signature.",
        )
    return Refusal(
        SignatureFault.KEY_UNDETERMINED,
        AuthResult.TEMPERROR,
        f"The signature could not be verified now: the name servers gave no answer about {name}.",
    )


def _judge_key(header: SignatureHeader, key: KeyRecord) -> Refusal | None:
    name = header.key_name
    if key.is_revoked:
        return _permanent(
            SignatureFault.KEY_REVOKED,
            f"The key at {name} is revoked (empty p=): its signatures are not valid any more.",
        )
    if key.is_too_short:
        return Refusal(
            SignatureFault.KEY_TOO_SHORT,
            AuthResult.POLICY,
            f"The key at {name} has only {key.bits} bits, which receivers must not accept any more"
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
            f"The signature was made with a key of the type {kind}, but the key at {name} is of the"
            f" type {key.key_type}.",
        )
    if key.is_strict and header.agent_id.rpartition("@")[2] != header.signing_domain:
        return _permanent(
            SignatureFault.OTHER_IDENTITY,
            f"The signature speaks for {header.agent_id} (i=), but the key at {name} is for"
            f" addresses of {header.signing_domain} itself only (t=s).",
        )
    return None


def _judge_times(header: SignatureHeader, now: int) -> Refusal | None:
    if header.expires_at is not None and header.expires_at + CLOCK_SKEW < now:
        late = describe_duration(now - header.expires_at)
        return Refusal(
            SignatureFault.EXPIRED,
            AuthResult.FAIL,
            f"The signature of {header.signing_domain} had expired {late} before the mail arrived"
            " (x=).",
        )
    if header.signed_at is not None and header.signed_at > now + MAX_AHEAD:
        ahead = describe_duration(header.signed_at - now)
        return Refusal(
            SignatureFault.FROM_THE_FUTURE,
            AuthResult.FAIL,
            f"The signature of {header.signing_domain} is dated {ahead} after the mail arrived"
            " (t=).",
        )
    return None


def count_seconds_ahead(header: SignatureHeader, now: int) -> int:
    """Tell how long after ``now`` a signature is dated, beyond what clocks may differ."""
    ahead = (header.signed_at or 0) - now
    return ahead if ahead > CLOCK_SKEW else 0


def describe_duration(seconds: int) -> str:
    """Write a time span in its largest whole unit."""
    for unit, name in ((86_400, "day"), (3_600, "hour"), (60, "minute")):
        if seconds >= unit:
            count = seconds // unit
            return f"{count} {name}{'s' if count > 1 else ''}"
    return f"{seconds} seconds"


def _permanent(fault: SignatureFault, explanation: str) -> Refusal:
    return Refusal(fault, AuthResult.PERMERROR, explanation)

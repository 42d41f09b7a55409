"""Verifies the signatures of a mail like the operation does: first the keys, then the hashes."""

from collections.abc import Mapping
from functools import partial

from mailcheck.checks.dkim.arc import ArcOfMail, evaluate_arc_keys, read_chain, verify_chain
from mailcheck.checks.dkim.mail import DkimOfMail, SignatureOfMail, evaluate_keys
from mailcheck.checks.dkim.signature_headers import read_signatures
from mailcheck.checks.dkim.verify import verify_signatures
from mailcheck.core.instants import Instant, instant_of
from tests.fakes.mail_signer import ED25519, RSA, RSA_768, RSA_1024, SIGNED_AT
from tests.fakes.memory_zone import MemoryZone
from tests.fakes.settling import settle

RECEIVED_AT = instant_of(SIGNED_AT + 60)

KEY_RECORDS = {signer.key_name: signer.key_record for signer in (RSA, RSA_1024, RSA_768, ED25519)}


def zone_of(records: Mapping[str, str]) -> MemoryZone:
    """Return a zone of TXT records."""
    return MemoryZone({name: {"TXT": [text]} for name, text in records.items()})


def verify_all_signatures(
    raw_message: bytes, zone: MemoryZone | None = None, received_at: Instant = RECEIVED_AT
) -> DkimOfMail:
    """Verify all signatures; without a zone all keys of the signers are published."""
    headers, _ = read_signatures(raw_message)
    keys = settle(zone or zone_of(KEY_RECORDS), partial(evaluate_keys, headers))
    return verify_signatures(raw_message, headers, keys, received_at)


def verify_only_signature(
    raw_message: bytes, zone: MemoryZone | None = None, received_at: Instant = RECEIVED_AT
) -> SignatureOfMail:
    """Verify the only signature."""
    (signature,) = verify_all_signatures(raw_message, zone, received_at).signatures
    return signature


def verify_arc_chain(raw_message: bytes, zone: MemoryZone | None = None) -> ArcOfMail:
    """Verify the ARC chain."""
    chain = read_chain(raw_message)
    keys = settle(zone or zone_of(KEY_RECORDS), partial(evaluate_arc_keys, chain))
    return verify_chain(raw_message, chain, keys, RECEIVED_AT)

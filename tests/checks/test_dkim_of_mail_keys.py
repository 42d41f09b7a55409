"""Tests for signatures whose key is missing, broken or of another type."""

from mailcheck.checks.auth_results import AuthResult
from mailcheck.checks.dkim.mail import SignatureFault
from tests.fakes.dkim_keys import EC_P256, ED25519_WRAPPED, RSA_512, RSA_2048
from tests.fakes.mail_signer import ED25519, MAIL, RSA, MailSigner
from tests.fakes.memory_zone import MemoryZone
from tests.fakes.signature_verifier import verify_only_signature, zone_of
from tests.table import rows

RESULTS = {"key-too-short": AuthResult.POLICY, "header-changed": AuthResult.FAIL}
"""Results of the faults that are not a permanent error."""

# The beginning of a SubjectPublicKeyInfo without a key.
CUT = RSA.public[:100]


@rows(
    [RSA.key_record],
    [f"p={RSA.public}"],
    [f"k=rsa; p={RSA.public};"],
    [f"v=DKIM1; h=sha1:sha256; s=email; t=s; n=note; p={RSA.public}"],
    [f"v=DKIM1; s=*; p={RSA.public[:100]} {RSA.public[100:]}"],
    [f"v=DKIM1; k=RSA; p={RSA.public}"],
    [f"v=DKIM1; t=y; p={RSA.public}"],
    [RSA.key_record, "v=spf1 -all"],  # texts for another purpose do not matter
)
def test_records_of_any_shape_verify(records: list[str]) -> None:
    """All forms of key records in RFC 6376 3.6.1 are understood, also behind an alias."""
    alias = {RSA.key_name: {"CNAME": ["s1.provider.example."]}}
    for zone, name in (({}, RSA.key_name), (alias, "s1.provider.example")):
        signature = verify_only_signature(
            RSA.sign(MAIL), MemoryZone({**zone, name: {"TXT": records}})
        )
        assert (signature.result, signature.key_record_name) == (AuthResult.PASS, name)
        assert signature.key is not None
        assert signature.key.is_testing is ("t=y" in records[0])


@rows(
    ({}, "no-key", "no key for the signature"),
    ({"A": ["192.0.2.1"]}, "no-key", "no key for the signature"),
    ({"CNAME": ["s1.p.example."]}, "no-key", "s1.p.example, the target of its CNAME"),
    # Two keys are ambiguous (RFC 6376 3.6.2.2).
    ({"TXT": [RSA.key_record, f"v=DKIM1; p={RSA_2048}"]}, "several-keys", "more than one key"),
    ("v=DKIM1; p=", "key-revoked", "is revoked"),
    ("v=spf1 -all", "no-key-record", "is not a DKIM key"),
    ("v=DKIM2; p=AAAA", "key-broken", "is not a DKIM key record"),
    ("hello", "no-key-record", "is not a DKIM key"),
    ("v=DKIM1", "key-broken", "no key (no p=)"),
    (f"v=DKIM1; p={CUT}", "key-broken", "was truncated"),
    (f"v=DKIM1; rubbish; p={RSA.public}", "key-broken", "'rubbish'"),
    (f"v=DKIM1; k=rsa; k=rsa; p={RSA.public}", "key-broken", "is repeated"),
    (f"v=DKIM1;; p={RSA.public}", "key-broken", "two semicolons"),
    (f"k=rsa;; p={RSA.public}", "key-broken", "two semicolons"),
    ('v=DKIM1; p="AAAA"', "key-broken", "not Base64"),
    (f"v=DKIM1; p={EC_P256}", "key-broken", "another key"),
    (f"v=DKIM1; p={ED25519_WRAPPED}", "key-broken", "Ed25519 key"),
    # A common mistake is to wrap an Ed25519 key like an RSA key (RFC 8463 4.2).
    (f"v=DKIM1; k=ed25519; p={ED25519_WRAPPED}", "key-broken", "44 octets"),
    (f"v=DKIM1; h=sha1; p={RSA.public}", "key-broken", "hash"),
    (f"v=DKIM1; s=tlsrpt; p={RSA.public}", "key-broken", "for mail"),
    (f"v=DKIM1; k=dsa; p={RSA.public}", "key-broken", "'dsa'"),
    (f"v=DKIM1; p={RSA_512}", "key-too-short", "only 512 bits"),
    (ED25519.key_record, "key-of-other-type", "of type ed25519"),
    (f"v=DKIM1; p={RSA_2048}", "header-changed", "does not match"),
)
def test_broken_records_are_told_apart(
    records: str | dict[str, list[str]], fault: str, words: str
) -> None:
    """Each kind of broken record has its own fault, and the explanation names the record."""
    published = {"TXT": [records]} if isinstance(records, str) else records
    zone = MemoryZone({RSA.key_name: published} if published else {})
    signature = verify_only_signature(RSA.sign(MAIL), zone)
    assert signature.fault is SignatureFault(f"dkim.{fault}")
    assert signature.result is RESULTS.get(fault, AuthResult.PERMERROR)
    assert words in signature.explanation
    assert RSA.key_name in signature.explanation


@rows(RSA, ED25519)
def test_a_strict_key_is_for_its_own_domain_only(signer: MailSigner) -> None:
    """With ``t=s``, the domain of ``i=`` must be equal to ``d=`` (RFC 6376 3.6.1)."""
    zone = zone_of({signer.key_name: f"{signer.key_record}; t=s"})
    below = signer.sign(MAIL, tags={"i": "ann@mail.sender.example"})
    signature = verify_only_signature(below, zone)
    assert (signature.result, signature.fault) == (
        AuthResult.PERMERROR,
        SignatureFault.OTHER_IDENTITY,
    )
    for tags in ({"i": "ann@sender.example"}, {"i": None}):
        assert verify_only_signature(signer.sign(MAIL, tags=tags), zone).result is AuthResult.PASS

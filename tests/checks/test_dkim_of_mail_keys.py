"""Tests for signatures whose key is missing, broken or of another type."""

from dataclasses import replace

import pytest

from mailcheck.checks.auth_results import AuthResult
from mailcheck.checks.dkim.mail import SignatureFault
from tests.fakes.dkim_keys import EC_P256, ED25519_WRAPPED, RSA_512, RSA_2048
from tests.fakes.mail_signer import ED25519, MAIL, RSA, MailSigner
from tests.fakes.memory_zone import MemoryZone
from tests.fakes.signature_verifier import verify_only_signature, zone_of

PERMERROR, FAIL = AuthResult.PERMERROR, AuthResult.FAIL

# The beginning of a SubjectPublicKeyInfo without a key.
CUT = RSA.public[:100]


def test_a_missing_key_is_named_with_its_place() -> None:
    """Without a TXT record, the signature has no key."""
    for zone in (MemoryZone({}), MemoryZone({RSA.key_name: {"A": ["192.0.2.1"]}})):
        signature = verify_only_signature(RSA.sign(MAIL), zone)
        assert (signature.result, signature.fault) == (PERMERROR, SignatureFault.NO_KEY)
        assert "no key for the signature" in signature.explanation
        assert RSA.key_name in signature.explanation


def test_an_alias_to_nowhere_says_where_it_leads() -> None:
    """A CNAME without a key is the most common incomplete setup; its target is named."""
    zone = MemoryZone({RSA.key_name: {"CNAME": ["s1.provider.example."]}})
    signature = verify_only_signature(RSA.sign(MAIL), zone)
    assert signature.fault is SignatureFault.NO_KEY
    assert "s1.provider.example, the target of its CNAME" in signature.explanation


def test_a_key_behind_an_alias_verifies() -> None:
    """Keys may be at a provider; the target of the CNAME is kept."""
    zone = MemoryZone(
        {
            RSA.key_name: {"CNAME": ["s1.provider.example."]},
            "s1.provider.example": {"TXT": [RSA.key_record]},
        }
    )
    signature = verify_only_signature(RSA.sign(MAIL), zone)
    assert signature.result is AuthResult.PASS
    assert signature.key_record_name == "s1.provider.example"


@pytest.mark.parametrize(
    "record",
    [
        RSA.key_record,
        f"p={RSA.public}",
        f"k=rsa; p={RSA.public};",
        f"v=DKIM1; h=sha1:sha256; s=email; t=s; n=note; p={RSA.public}",
        f"v=DKIM1; s=*; p={RSA.public[:100]} {RSA.public[100:]}",
        f"v=DKIM1; k=RSA; p={RSA.public}",
        f"v=DKIM1; t=y; p={RSA.public}",
    ],
)
def test_records_of_any_shape_verify(record: str) -> None:
    """All forms of key records in RFC 6376 3.6.1 are understood."""
    signature = verify_only_signature(RSA.sign(MAIL), zone_of({RSA.key_name: record}))
    assert signature.result is AuthResult.PASS
    assert signature.key is not None
    assert signature.key.is_testing is ("t=y" in record)


@pytest.mark.parametrize(
    ("record", "result", "fault", "words"),
    [
        ("v=DKIM1; p=", PERMERROR, SignatureFault.KEY_REVOKED, "is revoked"),
        ("v=spf1 -all", PERMERROR, SignatureFault.NO_KEY_RECORD, "is not a DKIM key"),
        ("v=DKIM2; p=AAAA", PERMERROR, SignatureFault.KEY_BROKEN, "is not a DKIM key record"),
        ("hello", PERMERROR, SignatureFault.NO_KEY_RECORD, "is not a DKIM key"),
        ("v=DKIM1", PERMERROR, SignatureFault.KEY_BROKEN, "no key (no p=)"),
        (f"v=DKIM1; p={CUT}", PERMERROR, SignatureFault.KEY_BROKEN, "was truncated"),
        (f"v=DKIM1; rubbish; p={RSA.public}", PERMERROR, SignatureFault.KEY_BROKEN, "'rubbish'"),
        (
            f"v=DKIM1; k=rsa; k=rsa; p={RSA.public}",
            PERMERROR,
            SignatureFault.KEY_BROKEN,
            "is repeated",
        ),
        (f"v=DKIM1;; p={RSA.public}", PERMERROR, SignatureFault.KEY_BROKEN, "two semicolons"),
        (f"k=rsa;; p={RSA.public}", PERMERROR, SignatureFault.KEY_BROKEN, "two semicolons"),
        ('v=DKIM1; p="AAAA"', PERMERROR, SignatureFault.KEY_BROKEN, "not Base64"),
        (f"v=DKIM1; p={EC_P256}", PERMERROR, SignatureFault.KEY_BROKEN, "another key"),
        (f"v=DKIM1; p={ED25519_WRAPPED}", PERMERROR, SignatureFault.KEY_BROKEN, "Ed25519 key"),
        (f"v=DKIM1; h=sha1; p={RSA.public}", PERMERROR, SignatureFault.KEY_BROKEN, "hash"),
        (f"v=DKIM1; s=tlsrpt; p={RSA.public}", PERMERROR, SignatureFault.KEY_BROKEN, "for mail"),
        (f"v=DKIM1; k=dsa; p={RSA.public}", PERMERROR, SignatureFault.KEY_BROKEN, "'dsa'"),
        (
            f"v=DKIM1; p={RSA_512}",
            AuthResult.POLICY,
            SignatureFault.KEY_TOO_SHORT,
            "only 512 bits",
        ),
        (ED25519.key_record, PERMERROR, SignatureFault.KEY_OF_OTHER_TYPE, "of type ed25519"),
        (f"v=DKIM1; p={RSA_2048}", FAIL, SignatureFault.HEADER_CHANGED, "does not match"),
    ],
)
def test_broken_records_are_told_apart(
    record: str, result: AuthResult, fault: SignatureFault, words: str
) -> None:
    """Each kind of broken record has its own fault, and the explanation names the record."""
    signature = verify_only_signature(RSA.sign(MAIL), zone_of({RSA.key_name: record}))
    assert (signature.result, signature.fault) == (result, fault)
    assert words in signature.explanation
    assert RSA.key_name in signature.explanation


def test_an_ed25519_key_of_the_wrong_length_is_broken() -> None:
    """A common mistake is to wrap an Ed25519 key like an RSA key (RFC 8463 4.2)."""
    zone = zone_of({ED25519.key_name: f"v=DKIM1; k=ed25519; p={ED25519_WRAPPED}"})
    signature = verify_only_signature(ED25519.sign(MAIL), zone)
    assert signature.fault is SignatureFault.KEY_BROKEN
    assert "44 octets" in signature.explanation


def test_two_keys_at_one_name_are_none() -> None:
    """Two keys are ambiguous (RFC 6376 3.6.2.2); other TXT records do not matter."""
    zone = MemoryZone({RSA.key_name: {"TXT": [RSA.key_record, f"v=DKIM1; p={RSA_2048}"]}})
    signature = verify_only_signature(RSA.sign(MAIL), zone)
    assert (signature.result, signature.fault) == (PERMERROR, SignatureFault.SEVERAL_KEYS)
    zone = MemoryZone({RSA.key_name: {"TXT": [RSA.key_record, "v=spf1 -all"]}})
    assert verify_only_signature(RSA.sign(MAIL), zone).result is AuthResult.PASS


@pytest.mark.parametrize("signer", [RSA, ED25519], ids=["rsa", "ed25519"])
def test_a_strict_key_is_for_its_own_domain_only(signer: MailSigner) -> None:
    """With ``t=s``, the domain of ``i=`` must be equal to ``d=`` (RFC 6376 3.6.1)."""
    zone = zone_of({signer.key_name: f"{signer.key_record}; t=s"})
    below = signer.sign(MAIL, tags={"i": "ann@mail.sender.example"})
    signature = verify_only_signature(below, zone)
    assert (signature.result, signature.fault) == (PERMERROR, SignatureFault.OTHER_IDENTITY)
    for tags in ({"i": "ann@sender.example"}, {"i": None}):
        assert verify_only_signature(signer.sign(MAIL, tags=tags), zone).result is AuthResult.PASS


def test_the_algorithm_must_be_that_of_the_key() -> None:
    """A signature with Ed25519 is not verified with an RSA key."""
    claimed = replace(ED25519, selector="s1")
    signature = verify_only_signature(claimed.sign(MAIL))
    assert signature.fault is SignatureFault.KEY_OF_OTHER_TYPE

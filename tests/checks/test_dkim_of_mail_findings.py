"""Tests for the findings about signatures."""

import pytest
from msgspec.structs import replace

from mailcheck.checks.dkim.mail import DkimOfMail, SignatureFault, describe_signatures
from mailcheck.checks.dns_answers import DnsStatus
from mailcheck.checks.findings import Finding, Severity
from mailcheck.core.instants import instant_of
from tests.fakes.mail_signer import ED25519, MAIL, RSA, RSA_768, RSA_1024, SIGNED_AT
from tests.fakes.memory_zone import MemoryZone
from tests.fakes.signature_verifier import (
    RECEIVED_AT,
    verify_all_signatures,
    verify_only_signature,
    zone_of,
)


def describe(mail: bytes, zone: MemoryZone | None = None, at: int = 60) -> tuple[Finding, ...]:
    """Return the findings about a mail that arrived some seconds after it was signed."""
    return describe_signatures(verify_all_signatures(mail, zone, instant_of(SIGNED_AT + at)))


def test_a_good_signature_has_no_finding() -> None:
    """A valid signature with a good key has no finding."""
    assert describe(RSA.sign(ED25519.sign(MAIL))) == ()


def test_an_unsigned_mail_has_a_finding() -> None:
    """An unsigned mail has a finding with advice."""
    (finding,) = describe(MAIL)
    assert (finding.id, finding.severity) == ("dkim.unsigned", Severity.ERROR)


def test_a_missing_key_names_the_record_to_publish() -> None:
    """The fix has the exact name of the record."""
    (finding,) = describe(RSA.sign(MAIL), MemoryZone({}))
    assert (finding.id, finding.severity) == ("dkim.no-key", Severity.ERROR)
    assert "at exactly s1._domainkey.sender.example" in finding.fix


def test_the_usual_causes_of_a_changed_mail_are_listed() -> None:
    """Changed bodies and changed headers have different advice."""
    signed = RSA.sign(MAIL)
    (body,) = describe(signed.replace(b"Hello  Bob", b"Hello Rob"))
    assert body.id == "dkim.body-changed"
    for cause in ("footer", "virus", "mailing list", "998 characters"):
        assert cause in body.fix
    (header,) = describe(signed.replace(b"To: bob", b"To: rob"))
    assert header.id == "dkim.header-changed"
    for cause in ("key", RSA.key_name, "Subject", "folds"):
        assert cause in header.fix


def test_a_failing_signature_beside_a_good_one_is_a_warning() -> None:
    """A failing signature is a warning if another one passes."""
    (finding,) = describe(RSA_768.sign(RSA.sign(MAIL)))
    assert (finding.id, finding.severity) == ("dkim.key-too-short", Severity.WARNING)
    (alone,) = describe(RSA_768.sign(MAIL))
    assert alone.severity is Severity.ERROR


def test_a_failed_lookup_is_undetermined() -> None:
    """A failed lookup is undetermined, not an error."""
    (finding,) = describe(RSA.sign(MAIL), MemoryZone({}, failing={RSA.key_name: DnsStatus.TIMEOUT}))
    assert (finding.id, finding.severity) == ("dkim.key-undetermined", Severity.UNDETERMINED)


def test_a_weak_key_is_named_with_its_length() -> None:
    """A key of 1024 bits passes, with a note that has its length and record."""
    (finding,) = describe(RSA_1024.sign(MAIL))
    assert (finding.id, finding.severity) == ("dkim.weak-key", Severity.WARNING)
    assert "s1024._domainkey.sender.example has 1024 bits" in finding.meaning


def test_a_test_key_comes_with_the_record_to_publish() -> None:
    """The proposed record without ``t=y`` is at the target of a CNAME."""
    zone = MemoryZone(
        {
            RSA.key_name: {"CNAME": ["s1.provider.example."]},
            "s1.provider.example": {"TXT": [f"{RSA.key_record}; t=y"]},
        }
    )
    (finding,) = describe(RSA.sign(MAIL), zone)
    assert finding.id == "dkim.testing"
    assert finding.proposed is not None
    assert finding.proposed.name == "s1.provider.example"
    assert finding.proposed.value == RSA.key_record


def test_a_body_length_is_a_warning() -> None:
    """The finding for ``l=`` gives the number of unsigned octets."""
    (finding,) = describe(RSA.sign(MAIL, "simple/simple", tags={"l": "7"}) + b"eve's addition\r\n")
    assert (finding.id, finding.severity) == ("dkim.body-length", Severity.WARNING)
    assert "first 7 octets" in finding.meaning
    assert "octets of this mail are not signed" in finding.meaning
    length = len(MAIL.rstrip(b"\r\n").partition(b"\r\n\r\n")[2]) + 2
    (whole,) = describe(RSA.sign(MAIL, "simple/simple", tags={"l": str(length)}))
    assert "not signed" not in whole.meaning


def test_a_clock_that_is_ahead_is_noted() -> None:
    """The finding says how far the clock is ahead."""
    (finding,) = describe(RSA.sign(MAIL), at=-7300)
    assert finding.id == "dkim.clock-ahead"
    assert "2 hours after the mail arrived" in finding.meaning


def test_signatures_beyond_the_bound_are_mentioned() -> None:
    """Signatures beyond the maximum are counted, and findings are not repeated."""
    mail = MAIL
    for _ in range(12):
        mail = RSA_1024.sign(mail)
    assert [f.id for f in describe(mail)] == ["dkim.weak-key", "dkim.many-signatures"]


@pytest.mark.parametrize("fault", SignatureFault)
def test_every_fault_has_advice(fault: SignatureFault) -> None:
    """Every fault has advice without placeholders and is an error."""
    signature = verify_only_signature(RSA.sign(MAIL), zone_of({}), RECEIVED_AT)
    (finding,) = describe_signatures(DkimOfMail((replace(signature, fault=fault),)))
    assert finding.id == f"dkim.{fault.value}"
    assert finding.fix.endswith(".")
    assert "{" not in finding.fix

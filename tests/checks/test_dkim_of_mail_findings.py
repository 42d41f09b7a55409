"""Tests for the findings about signatures."""

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
from tests.table import rows


def describe(mail: bytes, zone: MemoryZone | None = None, at: int = 60) -> tuple[Finding, ...]:
    """Return the findings about a mail that arrived some seconds after it was signed."""
    return describe_signatures(verify_all_signatures(mail, zone, instant_of(SIGNED_AT + at)))


def test_a_good_signature_has_no_finding() -> None:
    """A valid signature with a good key has no finding."""
    assert describe(RSA.sign(ED25519.sign(MAIL))) == ()


SIGNED = RSA.sign(MAIL)
SILENT = MemoryZone({}, failing={RSA.key_name: DnsStatus.TIMEOUT})
OTHER_BODY = SIGNED.replace(b"Hello  Bob", b"Hello Rob")
OTHER_FIELD = SIGNED.replace(b"To: bob", b"To: rob")


@rows(
    (MAIL, None, Severity.ERROR, "unsigned", []),
    # The fix has the exact name of the record.
    (SIGNED, zone_of({}), Severity.ERROR, "no-key", ["at exactly s1._domainkey.sender.exam"]),
    # The usual causes of a changed mail are listed.
    (OTHER_BODY, None, Severity.ERROR, "body-changed", ["footer", "virus", "mailing list"]),
    (OTHER_BODY, None, Severity.ERROR, "body-changed", ["998 characters"]),
    (OTHER_FIELD, None, Severity.ERROR, "header-changed", ["key", RSA.key_name, "folds"]),
    (OTHER_FIELD, None, Severity.ERROR, "header-changed", ["Subject"]),
    # A failing signature is a warning if another one passes.
    (RSA_768.sign(SIGNED), None, Severity.WARNING, "key-too-short", []),
    (RSA_768.sign(MAIL), None, Severity.ERROR, "key-too-short", []),
    (SIGNED, SILENT, Severity.UNDETERMINED, "key-undetermined", []),
    (
        RSA_1024.sign(MAIL),
        None,
        Severity.WARNING,
        "weak-key",
        ["s1024._domainkey", "1024 bits"],
    ),
)
def test_each_fault_has_its_finding(
    mail: bytes, zone: MemoryZone | None, severity: Severity, name: str, words: list[str]
) -> None:
    """Each fault has its own finding, with the advice that fits it."""
    (finding,) = describe(mail, zone)
    assert (finding.id, finding.severity) == (f"dkim.{name}", severity)
    assert [word for word in words if word not in finding.meaning + finding.fix] == []


def test_a_clock_that_is_ahead_is_noted() -> None:
    """The finding says how far the clock is ahead."""
    (finding,) = describe(SIGNED, at=-7300)
    assert finding.id == "dkim.clock-ahead"
    assert "2 hours after the mail arrived" in finding.meaning


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


def test_signatures_beyond_the_bound_are_mentioned() -> None:
    """Signatures beyond the maximum are counted, and findings are not repeated."""
    mail = MAIL
    for _ in range(12):
        mail = RSA_1024.sign(mail)
    assert [f.id for f in describe(mail)] == ["dkim.weak-key", "dkim.many-signatures"]


@rows(*SignatureFault)
def test_every_fault_has_advice(fault: SignatureFault) -> None:
    """Every fault has advice without placeholders and is an error."""
    signature = verify_only_signature(RSA.sign(MAIL), zone_of({}), RECEIVED_AT)
    (finding,) = describe_signatures(DkimOfMail((replace(signature, fault=fault),)))
    assert finding.id == fault.value
    assert finding.fix.endswith(".")
    assert "{" not in finding.fix

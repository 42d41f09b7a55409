"""Signed fields that count for one-click unsubscribe, and signs of bulk mail."""

from msgspec.structs import replace

from mailcheck.checks.auth_results import AuthResult
from mailcheck.checks.deliverability.quality import signed_fields
from mailcheck.checks.dkim.mail import DkimOfMail, SignatureOfMail
from mailcheck.checks.quality.reading import read_mail
from mailcheck.checks.quality.unsubscribe import MUST_BE_SIGNED, is_bulk_looking
from tests.checks.mail_evidence import dkim, signature
from tests.table import rows


def covering(*names: str, result: AuthResult = AuthResult.PASS) -> SignatureOfMail:
    """Return a signature that covers these fields."""
    made = signature(result)
    return replace(made, header=replace(made.header, signed_fields=names))


WHOLE = covering("from", *MUST_BE_SIGNED)
HALF, OTHER_HALF = (covering("from", name) for name in sorted(MUST_BE_SIGNED))
SILENT = covering("from", *MUST_BE_SIGNED, result=AuthResult.TEMPERROR)
BROKEN = covering("from", *MUST_BE_SIGNED, result=AuthResult.FAIL)


@rows(
    (dkim(WHOLE), True),
    (dkim(HALF, WHOLE), True),
    (dkim(SILENT, WHOLE), True),
    (dkim(HALF, OTHER_HALF), False),
    (dkim(BROKEN), False),
    (dkim(), False),
    (dkim(HALF, SILENT), None),
    (dkim(SILENT), None),
)
def test_one_signature_covers_both_fields(signatures: DkimOfMail, is_covered: bool | None) -> None:
    """One valid signature must cover both fields; an undetermined signature is not a "no"."""
    fields = signed_fields(signatures)
    assert (None if fields is None else fields >= MUST_BE_SIGNED) is is_covered


@rows(
    (b"Precedence: bulk\r\n", True),
    (b"Precedence: bulk\r\nAuto-Submitted: auto-replied\r\n", False),
    (b"Precedence: bulk\r\nAuto-Submitted: auto-generated\r\n", True),
    (b"List-Id: <a.example>\r\nAuto-Submitted: auto-replied\r\n", True),
    (b"Subject: Hello\r\n", False),
)
def test_who_looks_like_bulk(fields: bytes, is_bulk: bool) -> None:
    """Bulk mail identifies itself; an automatic reply is one mail to one person."""
    assert is_bulk_looking(read_mail(fields + b"\r\nHello\r\n")) is is_bulk

"""SPF, DKIM and DMARC of a message, as rows beside it."""

from collections.abc import Sequence

from msgspec import Struct

from mailcheck.checks.auth_results import AuthResult
from mailcheck.checks.deliverability.authentication import Authentication

_LEVELS = {
    AuthResult.PASS: "good",
    AuthResult.NONE: "unknown",
    AuthResult.NEUTRAL: "warn",
    AuthResult.SOFTFAIL: "warn",
    AuthResult.TEMPERROR: "unknown",
}
"""How a result looks; all others are bad."""


class ResultRow(Struct, frozen=True):
    """One result: of which method, about whom, its look, its word, and why."""

    method: str
    subject: str
    level: str
    word: str
    explanation: str


def list_results(found: Authentication) -> Sequence[ResultRow]:
    """Give a row for SPF, one for each signature (one for none), and one for DMARC."""
    spf, dmarc = found.spf.mail_from, found.dmarc
    signatures = [
        _row("DKIM", one.header.signing_domain, one.result, one.explanation)
        for one in found.dkim.signatures
    ]
    unsigned = _row("DKIM", "", AuthResult.NONE, "The mail is not signed.")
    return (
        _row("SPF", spf.domain, spf.result, spf.explanation),
        *(signatures or [unsigned]),
        _row("DMARC", dmarc.author_domain or "", dmarc.result, dmarc.explanation),
    )


def _row(method: str, subject: str, result: AuthResult, explanation: str) -> ResultRow:
    level = _LEVELS.get(result, "bad")
    return ResultRow(method, subject, level, result.value, explanation)

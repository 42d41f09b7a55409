"""The words for an ARC chain. It takes no points: few receivers look at it."""

from mailcheck.checks.arc.verdicts import ArcOfMail
from mailcheck.checks.auth_results import AuthResult
from mailcheck.checks.findings import Finding, Severity


def describe_arc(arc: ArcOfMail) -> tuple[Finding, ...]:
    """Give what there is to say; nothing of a mail without ARC, as nearly all are."""
    if arc.result is AuthResult.NONE:
        return ()
    if arc.result is AuthResult.PASS:
        return (
            Finding("arc.valid", Severity.NOTE, arc.explanation, "Nothing to do: for information."),
        )
    if arc.result is AuthResult.TEMPERROR:
        return (
            Finding(
                "arc.undetermined",
                Severity.UNDETERMINED,
                arc.explanation,
                "Check the mail again in a minute.",
            ),
        )
    return (
        Finding(
            "arc.broken",
            Severity.NOTE,
            arc.explanation,
            "It costs nothing here. Whoever forwards the mail should seal it last, after all"
            " changes; mail that is sent directly needs no seal.",
        ),
    )

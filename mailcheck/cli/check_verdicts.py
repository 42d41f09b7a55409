"""From what a check found to an exit status that a CI job can use."""

from collections.abc import Iterable

from mailcheck.checks.dnsbl.listings import describe_listings
from mailcheck.checks.findings import Finding, Severity
from mailcheck.checks.scoring.blacklists import judge_blacklists
from mailcheck.checks.scoring.outcomes import Status
from mailcheck.cli.exit_statuses import EXIT_FINE, EXIT_PROBLEM, EXIT_UNDETERMINED
from mailcheck.operations.domains.check_blocklists import BlocklistCheck
from mailcheck.operations.domains.check_mx import MxCheck
from mailcheck.operations.domains.compute_reputation import Reputation
from mailcheck.operations.domains.describe_domain import DomainReport

FAIL_ON = ("error", "warning", "never")
"""What ``--fail-on`` may be; ``never`` still tells what could not be determined."""

_PROBLEMS = {
    "error": (Severity.ERROR,),
    "warning": (Severity.ERROR, Severity.WARNING),
    "never": (),
}

OPTIONAL = ("dane", "dnssec")
"""Mechanisms that need a validating resolver: not knowing them is the usual case."""


def judge_mx(check: MxCheck, fail_on: str) -> int:
    """Give the exit status of an MX check."""
    return _judge(check.findings, fail_on, is_unknown=bool(check.undetermined))


def judge_blocklists(check: BlocklistCheck, fail_on: str) -> int:
    """Give the exit status of a blocklist check.

    Some silent lists are the usual case; it is undetermined where a score would be.
    """
    is_known = judge_blacklists(check.listings).award.is_determined
    return _judge(describe_listings(check.listings), fail_on, is_unknown=not is_known)


def judge_reputation(found: Reputation, fail_on: str) -> int:
    """Give the exit status of a score: a factor that fails is an error."""
    if not found.score.is_gradable:
        return EXIT_UNDETERMINED
    known = [factor.status for factor in found.score.factors if factor.is_determined]
    bad = {"error": {Status.FAIL}, "warning": {Status.FAIL, Status.WARN}, "never": set()}
    if bad[fail_on] & set(known):
        return EXIT_PROBLEM
    return EXIT_UNDETERMINED if found.score.undetermined else EXIT_FINE


def judge_domain(report: DomainReport, fail_on: str) -> int:
    """Give the exit status of a report."""
    findings = [finding for found in report.findings.values() for finding in found]
    unknown = [
        finding
        for name, found in report.findings.items()
        for finding in found
        if name not in OPTIONAL and finding.severity is Severity.UNDETERMINED
    ]
    return _judge(findings, fail_on, is_unknown=bool(unknown))


def _judge(findings: Iterable[Finding], fail_on: str, *, is_unknown: bool) -> int:
    if any(finding.severity in _PROBLEMS[fail_on] for finding in findings):
        return EXIT_PROBLEM
    return EXIT_UNDETERMINED if is_unknown else EXIT_FINE

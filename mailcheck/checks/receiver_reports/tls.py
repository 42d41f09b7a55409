"""Reports about TLS (RFC 8460 4.4): whether senders could encrypt on their way to a domain."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from msgspec import Struct

from mailcheck.checks.mail_domains import read_mail_domain
from mailcheck.checks.receiver_reports.limits import (
    MAX_COUNT,
    MAX_PROBLEMS,
    MAX_ROWS,
    MAX_SPAN,
    MAX_SUM,
    MAX_TEXT,
)
from mailcheck.core.errors import ReportRefused
from mailcheck.core.instants import SECOND, Instant, parse_instant

MAX_POLICY = 20
"""Lines of a policy, and MX patterns, that are kept."""


class TlsFailure(Struct, frozen=True):
    """Sessions that failed for one reason; ``result`` is one of RFC 8460 4.3."""

    result: str
    sending_ip: str
    receiving_host: str
    receiving_ip: str
    reason: str
    sessions: int


class TlsPolicyResult(Struct, frozen=True):
    """What came of one policy: ``kind`` is ``sts``, ``tlsa`` or ``no-policy-found``."""

    domain: str
    kind: str
    policy: tuple[str, ...]
    hosts: tuple[str, ...]
    successful: int
    failed: int
    failures: tuple[TlsFailure, ...]

    @property
    def sessions(self) -> int:
        """All sessions: the details may count more failures than the summary."""
        told = sum(one.sessions for one in self.failures)
        return self.successful + max(self.failed, told)


class TlsReport(Struct, frozen=True):
    """What one sender met on its way to one domain."""

    organisation: str
    contact: str
    report_id: str
    begins_at: Instant
    ends_at: Instant
    policies: tuple[TlsPolicyResult, ...]
    problems: tuple[str, ...] = ()

    @property
    def domains(self) -> tuple[str, ...]:
        """Give the domains that it is about."""
        return tuple(dict.fromkeys(one.domain for one in self.policies))


class TlsSessions(Struct, frozen=True):
    """How sessions ended: ``result`` is empty where they were encrypted."""

    policy: str
    result: str
    host: str
    reason: str


def sessions_of(report: TlsReport, domain: str) -> Iterator[tuple[TlsSessions, int]]:
    """Give how the sessions to a domain ended; failures without details are unknown ones."""
    for one in report.policies:
        if one.domain != domain:
            continue
        if one.successful:
            yield TlsSessions(one.kind, "", "", ""), one.successful
        told = 0
        for failure in one.failures:
            told += failure.sessions
            if failure.sessions:
                host = failure.receiving_host or failure.receiving_ip
                yield TlsSessions(one.kind, failure.result, host, failure.reason), failure.sessions
        if one.failed > told:
            yield TlsSessions(one.kind, "unknown", "", ""), one.failed - told


def parse_tls_report(document: bytes) -> TlsReport:
    """Read a report.

    :raises ReportRefused: it is no JSON, or lacks what makes it a report.
    """
    try:
        known = json.loads(document)
    except RecursionError:
        raise ReportRefused("it is JSON nested too deeply") from None
    except ValueError:
        raise ReportRefused("it is no JSON") from None
    if not isinstance(known, dict):
        raise ReportRefused("it is JSON, but no TLS report: it is no object")
    return _Reading().read(known)


class _Reading:
    def __init__(self) -> None:
        self._problems: list[str] = []
        self._failure_count = 0

    def read(self, known: dict[str, Any]) -> TlsReport:
        span = known.get("date-range")
        span = span if isinstance(span, dict) else {}
        begins_at, ends_at = _moment(span, "start-datetime"), _moment(span, "end-datetime")
        if not begins_at <= ends_at <= begins_at + MAX_SPAN * SECOND:
            raise ReportRefused("its time does not end after it begins, or is over a month")
        policies = tuple(self._policies(known.get("policies")))
        if not policies:
            raise ReportRefused("it does not say which domain it is about")
        if sum(one.sessions for one in policies) > MAX_SUM:
            raise ReportRefused(f"it counts over {MAX_SUM} sessions")
        return TlsReport(
            organisation=_text(known, "organization-name"),
            contact=_text(known, "contact-info").lower(),
            report_id=_text(known, "report-id"),
            begins_at=begins_at,
            ends_at=ends_at,
            policies=policies,
            problems=tuple(self._problems),
        )

    def _policies(self, found: object) -> Iterator[TlsPolicyResult]:
        for number, one in enumerate(_list(found), 1):
            self._failure_count += 1
            if self._failure_count > MAX_ROWS:
                raise ReportRefused(f"it has over {MAX_ROWS} policies and failures")
            known = one if isinstance(one, dict) else {}
            policy = _object(known, "policy")
            domain = read_mail_domain(_text(policy, "policy-domain"))
            if domain is None:
                self._leave_out(f"policy {number}", "it names no domain")
                continue
            summary = _object(known, "summary")
            successful, problem = _count(summary, "total-successful-session-count")
            failed, other_problem = _count(summary, "total-failure-session-count")
            if problem or other_problem:
                self._leave_out(f"policy {number}", problem or other_problem)
                continue
            yield TlsPolicyResult(
                domain=domain,
                kind=_text(policy, "policy-type").lower() or "no-policy-found",
                policy=_texts(policy.get("policy-string")),
                hosts=_texts(policy.get("mx-host") or policy.get("mx-host-pattern")),
                successful=successful,
                failed=failed,
                failures=tuple(self._failures(known.get("failure-details"), number)),
            )

    def _failures(self, found: object, policy_number: int) -> Iterator[TlsFailure]:
        for one in _list(found):
            self._failure_count += 1
            if self._failure_count > MAX_ROWS:
                raise ReportRefused(f"it has over {MAX_ROWS} policies and failures")
            known = one if isinstance(one, dict) else {}
            sessions, problem = _count(known, "failed-session-count")
            if problem:
                self._leave_out(f"a failure of policy {policy_number}", problem)
                continue
            details = (_text(known, "failure-reason-code"), _text(known, "additional-information"))
            yield TlsFailure(
                result=_text(known, "result-type").lower() or "unknown",
                sending_ip=_text(known, "sending-mta-ip"),
                receiving_host=_text(known, "receiving-mx-hostname").lower().rstrip("."),
                receiving_ip=_text(known, "receiving-ip"),
                reason="; ".join(filter(None, details)),
                sessions=sessions,
            )

    def _leave_out(self, what: str, why: str) -> None:
        if len(self._problems) < MAX_PROBLEMS:
            self._problems.append(f"{what} is left out: {why}")


def _object(known: dict[str, Any], name: str) -> dict[str, Any]:
    found = known.get(name)
    return found if isinstance(found, dict) else {}


def _list(found: object) -> list[Any]:
    """Give a list; some reporters write the only item without one."""
    if isinstance(found, list):
        return found
    return [] if found is None else [found]


def _text(known: dict[str, Any], name: str) -> str:
    return _shown(known.get(name))


def _shown(found: object) -> str:
    if not isinstance(found, str):
        return ""
    return "".join(c if c.isprintable() else " " for c in found.strip()[:MAX_TEXT]).strip()


def _texts(found: object) -> tuple[str, ...]:
    return tuple(filter(None, map(_shown, _list(found)[:MAX_POLICY])))


def _count(known: dict[str, Any], name: str) -> tuple[int, str]:
    """Return a number of sessions, 0 where it is missing, and what is wrong with it.

    Some reporters write numbers as text.
    """
    found = known.get(name, 0)
    if isinstance(found, str) and found.isascii() and found.isdigit() and len(found) < 20:
        found = int(found)
    if isinstance(found, bool) or not isinstance(found, int) or found < 0:
        return 0, "its sessions are no number"
    if found > MAX_COUNT:
        return 0, f"it counts over {MAX_COUNT} sessions"
    return found, ""


def _moment(span: dict[str, Any], name: str) -> Instant:
    text = _text(span, name)
    try:
        return parse_instant(text)
    except (ValueError, OverflowError):
        raise ReportRefused(f'its {name} is "{text[:40]}", no time') from None


_MEANINGS: Mapping[str, tuple[str, str]] = {
    "": ("They were encrypted.", "Nothing is to be done."),
    "starttls-not-supported": (
        "The mail host did not offer encryption (STARTTLS).",
        "Switch STARTTLS on at that host, and look for a firewall that takes it away.",
    ),
    "certificate-host-mismatch": (
        "The certificate is not for the name of the mail host.",
        "Give the host a certificate that has its MX name.",
    ),
    "certificate-expired": (
        "The certificate of the mail host has expired.",
        "Renew the certificate, and see to it that the mail server is reloaded each time.",
    ),
    "certificate-not-trusted": (
        "The certificate of the mail host is not trusted.",
        "Use a certificate of a public authority, sent with its intermediate certificates.",
    ),
    "validation-failure": (
        "The certificate could not be verified, for a reason that the sender does not say.",
        "Check the certificate and its chain at that host.",
    ),
    "tlsa-invalid": (
        "No TLSA record (DANE) fits the certificate of the mail host.",
        "Publish TLSA records for the certificate in use, the new one before each renewal.",
    ),
    "dnssec-invalid": (
        "The signatures (DNSSEC) of the mail host's records are not valid.",
        "Mend DNSSEC of that zone.",
    ),
    "dane-required": (
        "The sender insists on DANE, and the mail host has no usable TLSA record.",
        "Publish TLSA records for the mail host in a signed zone.",
    ),
    "sts-policy-fetch-error": (
        "The MTA-STS policy could not be fetched.",
        "See to it that the policy is served at https://mta-sts.DOMAIN/.well-known/mta-sts.txt.",
    ),
    "sts-policy-invalid": (
        "The MTA-STS policy can't be read.",
        "Correct the MTA-STS policy file.",
    ),
    "sts-webpki-invalid": (
        "The web server of the MTA-STS policy has no valid certificate.",
        "Give mta-sts.DOMAIN a valid certificate.",
    ),
}

_OTHER = (
    "Encryption failed for another reason.",
    "Ask the reporter, with the number of its report, what it met.",
)


def is_known_result(result: str) -> bool:
    """Return whether RFC 8460 4.3 has a result; reporters may write any text there."""
    return result in _MEANINGS


def explain_failure(result: str) -> tuple[str, str]:
    """Say what a result of RFC 8460 4.3 means, and what to do."""
    return _MEANINGS.get(result, _OTHER)

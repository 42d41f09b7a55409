"""Parser for TLS reports (RFC 8460 4.4): whether senders could encrypt mail to a domain."""

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
"""Maximum number of lines of a policy, and of MX patterns."""


class TlsFailure(Struct, frozen=True):
    """Sessions that failed for one reason; ``result`` is a value of RFC 8460 4.3."""

    result: str
    sending_ip: str
    receiving_host: str
    receiving_ip: str
    reason: str
    sessions: int


class TlsPolicyResult(Struct, frozen=True):
    """Sessions under one policy: ``kind`` is ``sts``, ``tlsa`` or ``no-policy-found``."""

    domain: str
    kind: str
    policy: tuple[str, ...]
    hosts: tuple[str, ...]
    successful: int
    failed: int
    failures: tuple[TlsFailure, ...]

    @property
    def sessions(self) -> int:
        """Number of all sessions; the details may count more failures than the summary."""
        detailed = sum(failure.sessions for failure in self.failures)
        return self.successful + max(self.failed, detailed)


class TlsReport(Struct, frozen=True):
    """A report of one sender about one or more domains."""

    organisation: str
    contact: str
    report_id: str
    begins_at: Instant
    ends_at: Instant
    policies: tuple[TlsPolicyResult, ...]
    problems: tuple[str, ...] = ()

    @property
    def domains(self) -> tuple[str, ...]:
        """Domains of the report."""
        return tuple(dict.fromkeys(policy.domain for policy in self.policies))


class TlsSessions(Struct, frozen=True):
    """Result of sessions: ``result`` is empty if they were encrypted."""

    policy: str
    result: str
    host: str
    reason: str


SUCCESS_PATTERN = '%"result":"","host":%'
"""LIKE pattern for the JSON of encrypted sessions; within a JSON text a quote is escaped."""


def sessions_of(report: TlsReport, domain: str) -> Iterator[tuple[TlsSessions, int]]:
    """Yield the results of sessions to a domain; failures without details are ``unknown``."""
    for policy in report.policies:
        if policy.domain != domain:
            continue
        if policy.successful:
            yield TlsSessions(policy.kind, "", "", ""), policy.successful
        detailed = 0
        for failure in policy.failures:
            detailed += failure.sessions
            if failure.sessions:
                host = failure.receiving_host or failure.receiving_ip
                yield (
                    TlsSessions(policy.kind, failure.result, host, failure.reason),
                    failure.sessions,
                )
        if policy.failed > detailed:
            yield TlsSessions(policy.kind, "unknown", "", ""), policy.failed - detailed


def parse_tls_report(document: bytes, domain: str = "") -> TlsReport:
    """Parse a report.

    :param domain: domain named by the mail or the file, for policies without a domain and for
        DANE, whose policy domain is the mail host (RFC 8460 1.1).
    :raises ReportRefused: the document is not JSON, or not a TLS report.
    """
    try:
        # With or without a byte order mark (RFC 8259 8.1). An invalid octet affects one text.
        text = document.decode(json.detect_encoding(document), "replace").removeprefix("\ufeff")
        known = json.loads(text, strict=False)
    except RecursionError:
        raise ReportRefused("it is JSON nested too deeply") from None
    except ValueError:
        raise ReportRefused("it is not JSON") from None
    if not isinstance(known, dict):
        raise ReportRefused("it is JSON, but not a TLS report: it is not an object")
    return _Reading(domain).read(known)


_NO_DOMAIN = "it has no policy-domain, and neither its mail nor the name of its file has one"


class _Reading:
    def __init__(self, domain: str) -> None:
        self._domain = domain
        self._recipient = read_mail_domain(domain) or ""
        """The domain of the recipients, to which DANE policies of its mail hosts belong."""
        self._problems: list[str] = []
        self._entry_count = 0

    def read(self, known: dict[str, Any]) -> TlsReport:
        span = known.get("date-range")
        span = span if isinstance(span, dict) else {}
        begins_at, ends_at = _moment(span, "start-datetime"), _moment(span, "end-datetime")
        if not begins_at <= ends_at <= begins_at + MAX_SPAN * SECOND:
            raise ReportRefused("its period ends before it begins, or is longer than a month")
        found = _list(known.get("policies"))
        domains = {_text(_object(entry, "policy"), "policy-domain") for entry in found}
        named = {read_mail_domain(domain) for domain in domains if domain} - {None}
        of_others = {
            read_mail_domain(_text(policy, "policy-domain"))
            for entry in found
            if (policy := _object(entry, "policy")) and not _is_dane(policy)
        } - {None}
        if not self._recipient and len(of_others) == 1:
            self._recipient = of_others.pop() or ""
        if len(named) == 1:
            self._domain = named.pop() or self._domain
        policies = tuple(self._policies(found))
        if not policies:
            raise ReportRefused(next(iter(self._problems), "it has no policies"))
        if sum(result.sessions for result in policies) > MAX_SUM:
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

    def _policies(self, found: list[Any]) -> Iterator[TlsPolicyResult]:
        for number, item in enumerate(found, 1):
            self._count_entry()
            what = f"policy {number}"
            if not isinstance(item, dict):
                self._leave_out(what, "it is not an object")
                continue
            policy, summary = _object(item, "policy"), _object(item, "summary")
            text = _text(policy, "policy-domain")
            domain = read_mail_domain(text or self._domain)
            if domain is None:
                why = f'its policy-domain is "{text}", not a domain' if text else _NO_DOMAIN
                self._leave_out(what, why)
                continue
            successful = self._count(what, summary, "total-successful-session-count")
            failed = self._count(what, summary, "total-failure-session-count")
            if successful is None or failed is None:
                continue
            host = ""
            if _is_dane(policy) and self._recipient and domain != self._recipient:
                host, domain = domain, self._recipient
            yield TlsPolicyResult(
                domain=domain,
                kind=_text(policy, "policy-type").lower() or "no-policy-found",
                policy=_texts(policy.get("policy-string")),
                hosts=_texts(policy.get("mx-host") or policy.get("mx-host-pattern")),
                successful=successful,
                failed=failed,
                failures=tuple(self._failures(item.get("failure-details"), number, host)),
            )

    def _failures(self, found: object, policy_number: int, host: str) -> Iterator[TlsFailure]:
        for item in _list(found):
            self._count_entry()
            known = item if isinstance(item, dict) else {}
            what = f"a failure of policy {policy_number}"
            sessions = self._count(what, known, "failed-session-count")
            if sessions is None:
                continue
            details = (_text(known, "failure-reason-code"), _text(known, "additional-information"))
            yield TlsFailure(
                result=_text(known, "result-type").lower() or "unknown",
                sending_ip=_text(known, "sending-mta-ip"),
                receiving_host=_text(known, "receiving-mx-hostname").lower().rstrip(".") or host,
                receiving_ip=_text(known, "receiving-ip"),
                reason="; ".join(filter(None, details)),
                sessions=sessions,
            )

    def _count_entry(self) -> None:
        self._entry_count += 1
        if self._entry_count > MAX_ROWS:
            raise ReportRefused(f"it has over {MAX_ROWS} policies and failures")

    def _count(self, what: str, known: dict[str, Any], name: str) -> int | None:
        """Return a number of sessions, or `None` for a value that is not a number.

        Some reporters write numbers as text, or with a fraction of zero. A missing value and null
        count as 0; null is reported as a problem.
        """
        found = known.get(name, 0)
        if found is None:
            self._note(f"{what}: its {name} is null, and counts as 0")
            return 0
        if isinstance(found, str):
            found = int(found) if found.isascii() and found.isdigit() and len(found) < 20 else found
        if isinstance(found, float) and found.is_integer():
            found = int(found)
        if isinstance(found, bool) or not isinstance(found, int) or found < 0:
            self._leave_out(what, f"its {name} is {_format(found)}, not a number")
            return None
        if found > MAX_COUNT:
            self._leave_out(what, f"it counts over {MAX_COUNT} sessions")
            return None
        return found

    def _leave_out(self, what: str, why: str) -> None:
        self._note(f"{what} is left out: {why}")

    def _note(self, problem: str) -> None:
        if len(self._problems) < MAX_PROBLEMS:
            self._problems.append(problem)


def _format(found: object) -> str:
    """Format a value that is not a number."""
    return _shown(found)[:40] if isinstance(found, str) else _shown(json.dumps(found)[:40])


def _object(known: object, name: str) -> dict[str, Any]:
    found = known.get(name) if isinstance(known, dict) else None
    return found if isinstance(found, dict) else {}


def _list(found: object) -> list[Any]:
    """Return a list; some reporters write a single item without one."""
    if isinstance(found, list):
        return found
    return [] if found is None else [found]


def _is_dane(policy: dict[str, Any]) -> bool:
    return _text(policy, "policy-type").lower() == "tlsa"


def _text(known: dict[str, Any], name: str) -> str:
    return _shown(known.get(name))


def _shown(found: object) -> str:
    if not isinstance(found, str):
        return ""
    return "".join(c if c.isprintable() else " " for c in found.strip()[:MAX_TEXT]).strip()


def _texts(found: object) -> tuple[str, ...]:
    return tuple(filter(None, map(_shown, _list(found)[:MAX_POLICY])))


def _moment(span: dict[str, Any], name: str) -> Instant:
    text = _text(span, name)
    try:
        return parse_instant(text)
    except (ValueError, OverflowError):
        raise ReportRefused(f'its {name} is "{text[:40]}", not a time') from None


_MEANINGS: Mapping[str, tuple[str, str]] = {
    "": ("The sessions were encrypted.", "No action is needed."),
    "starttls-not-supported": (
        "The mail host did not offer encryption (STARTTLS).",
        "Turn on STARTTLS at that host, and look for a firewall that removes it.",
    ),
    "certificate-host-mismatch": (
        "The certificate is not for the name of the mail host.",
        "Install a certificate that contains the host's MX name.",
    ),
    "certificate-expired": (
        "The certificate of the mail host has expired.",
        "Renew the certificate, and make sure that the mail server reloads it each time.",
    ),
    "certificate-not-trusted": (
        "The certificate of the mail host is not trusted.",
        "Use a certificate of a public authority, and send its intermediate certificates.",
    ),
    "validation-failure": (
        "The certificate could not be verified; the sender gives no reason.",
        "Check the certificate and its chain at that host.",
    ),
    "tlsa-invalid": (
        "No TLSA record (DANE) matches the certificate of the mail host.",
        "Publish TLSA records for the current certificate, and for a new one before each renewal.",
    ),
    "dnssec-invalid": (
        "The signatures (DNSSEC) of the mail host's records are not valid.",
        "Fix DNSSEC of that zone.",
    ),
    "dane-required": (
        "The sender requires DANE, but the mail host has no usable TLSA record.",
        "Publish TLSA records for the mail host in a signed zone.",
    ),
    "sts-policy-fetch-error": (
        "The MTA-STS policy could not be fetched.",
        "Serve the policy at https://mta-sts.DOMAIN/.well-known/mta-sts.txt.",
    ),
    "sts-policy-invalid": (
        "The MTA-STS policy cannot be parsed.",
        "Correct the MTA-STS policy file.",
    ),
    "sts-webpki-invalid": (
        "The web server of the MTA-STS policy has no valid certificate.",
        "Install a valid certificate for mta-sts.DOMAIN.",
    ),
}

_OTHER = (
    "Encryption failed for another reason.",
    "Ask the reporter for the reason, and give the id of its report.",
)


def is_known_result(result: str) -> bool:
    """Return whether a result is defined in RFC 8460 4.3; reporters may use other texts."""
    return result in _MEANINGS


def explain_failure(result: str) -> tuple[str, str]:
    """Return the meaning of a result of RFC 8460 4.3, and what to do."""
    return _MEANINGS.get(result, _OTHER)

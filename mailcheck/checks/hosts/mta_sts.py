"""MTA-STS of a domain: its record and its policy file (RFC 8461)."""

import re
from collections.abc import Iterator
from enum import Enum

from msgspec import Struct

from mailcheck.checks.dns_answers import Answers, Presence, look_up, txt_values
from mailcheck.checks.findings import (
    Finding,
    RecordToPublish,
    Severity,
    several_records,
    undetermined,
)
from mailcheck.checks.hosts.mx import MxVerdict
from mailcheck.checks.tag_lists import has_version, parse_tag_list

VERSION = "STSv1"
MAX_MAX_AGE = 31_557_600  # seconds, RFC 8461 3.2
MAX_POLICY_OCTETS = 64 * 1024  # RFC 8461 3.3: larger ones may be refused
MAX_PATTERNS = 100

_PATTERN = re.compile(r"(?:\*\.)?[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?", re.ASCII)


class PolicyMode(Enum):
    """What senders do when no trusted encrypted connection comes about."""

    ENFORCE = "enforce"
    TESTING = "testing"
    NONE = "none"


class MtaStsPolicy(Struct, frozen=True):
    """A parsed policy; ``problems`` make senders ignore it as a whole."""

    mode: PolicyMode | None
    max_age: int | None
    mx_patterns: tuple[str, ...]
    problems: tuple[str, ...]

    @property
    def is_valid(self) -> bool:
        """Tell whether senders follow it."""
        return not self.problems

    def covers(self, exchange: str) -> bool:
        """Tell whether senders may deliver to this host (RFC 8461 4.1)."""
        parent = exchange.partition(".")[2]
        return any(
            pattern == exchange or (pattern.startswith("*.") and pattern[2:] == parent)
            for pattern in self.mx_patterns
        )


def parse_mta_sts_policy(text: str) -> MtaStsPolicy:
    """Read a policy file: lines ``key: value``; unknown keys have no meaning."""
    values: dict[str, list[str]] = {}
    problems: list[str] = []
    for line in text.splitlines():
        if not line.strip():
            continue
        key, colon, value = line.partition(":")
        if not colon:
            problems.append(f"{line[:60]!r} is not of the form key: value")
        values.setdefault(key.strip().lower(), []).append(value.strip())
    if values.get("version", [""])[0] != VERSION:
        problems.append(f'it has no line "version: {VERSION}"')
    mode = _read_mode(values.get("mode", [""])[0], problems)
    max_age = _read_max_age(values.get("max_age", [""])[0], problems)
    patterns = tuple(p.lower().rstrip(".") for p in values.get("mx", ())[:MAX_PATTERNS])
    if not patterns and mode is not PolicyMode.NONE:
        problems.append("it names no mail host (mx)")
    problems += [f"{p[:60]!r} is no host name" for p in patterns if not _PATTERN.fullmatch(p)]
    return MtaStsPolicy(mode, max_age, patterns, tuple(problems[:10]))


def _read_mode(text: str, problems: list[str]) -> PolicyMode | None:
    try:
        return PolicyMode(text)
    except ValueError:
        problems.append("its mode is none of enforce, testing, none")
        return None


def _read_max_age(text: str, problems: list[str]) -> int | None:
    if re.fullmatch(r"[0-9]{1,10}", text) is None or int(text) > MAX_MAX_AGE:
        problems.append(f"its max_age is no number of seconds up to {MAX_MAX_AGE}")
        return None
    return int(text)


PREFIX = "_mta-sts."
SHORT_MAX_AGE = 7 * 86_400  # seconds; RFC 8461 3.2 advises weeks

_ID = re.compile(r"[A-Za-z0-9]{1,32}", re.ASCII)  # RFC 8461 3.1


class FetchOutcome(Enum):
    """How fetching the policy file ended."""

    FETCHED = "fetched"
    MISSING = "missing"
    """No host of that name, no connection, or a status other than 200."""
    BAD_CERTIFICATE = "bad-certificate"
    REDIRECTED = "redirected"
    """Redirects must not be followed (RFC 8461 3.3)."""
    TOO_LARGE = "too-large"
    SILENT = "silent"
    """No answer in time, or a failure of ours."""


class PolicyFetch(Struct, frozen=True):
    """What came from ``https://mta-sts.<domain>/.well-known/mta-sts.txt``."""

    outcome: FetchOutcome
    text: str = ""


class MtaStsRecord(Struct, frozen=True):
    """The TXT record that says that there is a policy; ``text`` is empty without one."""

    domain: str
    presence: Presence
    text: str
    findings: tuple[Finding, ...]


class MtaStsVerdict(Struct, frozen=True):
    """Record and policy together; ``policy`` is nothing when it was not fetched."""

    record: MtaStsRecord
    policy: MtaStsPolicy | None
    findings: tuple[Finding, ...]

    @property
    def is_enforced(self) -> bool:
        """Tell whether senders refuse to deliver unencrypted."""
        return (
            self.policy is not None
            and self.policy.is_valid
            and self.policy.mode is PolicyMode.ENFORCE
        )


def evaluate_mta_sts_record(domain: str, answers: Answers) -> MtaStsRecord:
    """Judge the record at ``_mta-sts.<domain>``."""
    answer = look_up(answers, PREFIX + domain, "TXT")
    if not answer.status.is_determined:
        silence = undetermined("mta-sts.undetermined", [PREFIX + domain])
        return MtaStsRecord(domain, Presence.UNDETERMINED, "", (silence,))
    texts = [text for text in txt_values(answer) if has_version(text, VERSION)]
    if not texts:
        return MtaStsRecord(domain, Presence.ABSENT, "", (_absent(domain),))
    if len(texts) > 1:
        record = RecordToPublish(PREFIX + domain, "TXT", texts[0])
        return MtaStsRecord(
            domain,
            Presence.ABSENT,
            "",
            (several_records("mta-sts.several", Severity.ERROR, "MTA-STS", domain, record),),
        )
    identifier = parse_tag_list(texts[0]).get("id") or ""
    if _ID.fullmatch(identifier) is None:
        return MtaStsRecord(domain, Presence.ABSENT, texts[0], (_bad_id(domain),))
    return MtaStsRecord(domain, Presence.FOUND, texts[0], ())


def judge_mta_sts(record: MtaStsRecord, fetch: PolicyFetch | None, mx: MxVerdict) -> MtaStsVerdict:
    """Judge the policy; ``fetch`` is nothing where the record gave no cause to fetch it."""
    if record.presence is not Presence.FOUND:
        return MtaStsVerdict(record, None, record.findings)
    if fetch is None:
        # A record that is only thought of: what stands behind it was never asked for.
        silence = undetermined("mta-sts.undetermined", [policy_url(record.domain)])
        return MtaStsVerdict(record, None, (silence,))
    if fetch.outcome is not FetchOutcome.FETCHED:
        return MtaStsVerdict(record, None, (_not_fetched(record.domain, fetch.outcome),))
    policy = parse_mta_sts_policy(fetch.text)
    return MtaStsVerdict(record, policy, tuple(_judge_policy(record.domain, policy, mx)))


def _judge_policy(domain: str, policy: MtaStsPolicy, mx: MxVerdict) -> Iterator[Finding]:
    if policy.problems:
        yield Finding(
            "mta-sts.policy-syntax",
            Severity.ERROR,
            f"Senders ignore the MTA-STS policy of {domain}: {policy.problems[0]}.",
            f"Correct the file at {policy_url(domain)} and change the id in the record.",
        )
        return
    if policy.mode is not PolicyMode.NONE:
        for host in mx.hosts:
            if not policy.covers(host.exchange):
                yield _uncovered(domain, host.exchange, policy)
    if policy.mode is PolicyMode.TESTING:
        yield Finding(
            "mta-sts.testing",
            Severity.NOTE,
            f"The MTA-STS policy of {domain} is in testing: senders report problems but deliver"
            " unencrypted if need be.",
            "When the TLS reports show no problems, set the mode to enforce.",
        )
    if policy.max_age is not None and policy.max_age < SHORT_MAX_AGE:
        yield Finding(
            "mta-sts.short-age",
            Severity.NOTE,
            f"Senders remember the MTA-STS policy for {policy.max_age} seconds only, which leaves"
            " gaps.",
            f"Set max_age to at least {SHORT_MAX_AGE} seconds (a week).",
        )


def policy_url(domain: str) -> str:
    """Give the place of the policy file (RFC 8461 3.3)."""
    return f"https://mta-sts.{domain}/.well-known/mta-sts.txt"


def _uncovered(domain: str, exchange: str, policy: MtaStsPolicy) -> Finding:
    is_enforced = policy.mode is PolicyMode.ENFORCE
    return Finding(
        "mta-sts.uncovered-host",
        Severity.ERROR if is_enforced else Severity.WARNING,
        f"The MTA-STS policy of {domain} does not name the mail host {exchange}, so senders"
        f" {'do' if is_enforced else 'would'} not deliver to it.",
        f'Add "mx: {exchange}" to {policy_url(domain)} and change the id in the record.',
    )


def _absent(domain: str) -> Finding:
    return Finding(
        "mta-sts.absent",
        Severity.NOTE,
        f"{domain} does not ask senders to encrypt (no MTA-STS), so an attacker on the way can"
        " switch encryption off.",
        f"Put a policy file at {policy_url(domain)}, and when it is there a TXT record at"
        f' {PREFIX}{domain} that says "v={VERSION}; id=1".',
    )


def _bad_id(domain: str) -> Finding:
    return Finding(
        "mta-sts.syntax",
        Severity.ERROR,
        f"The MTA-STS record of {domain} has no id of 1 to 32 letters and digits, so senders"
        " ignore it.",
        "Publish the MTA-STS record with an id, and a new one with each change of the policy.",
        RecordToPublish(PREFIX + domain, "TXT", f"v={VERSION}; id=1"),
    )


def _not_fetched(domain: str, outcome: FetchOutcome) -> Finding:
    url = policy_url(domain)
    if outcome is FetchOutcome.SILENT:
        return undetermined("mta-sts.undetermined", [url])
    problems = {
        FetchOutcome.BAD_CERTIFICATE: "the certificate of its web server is not valid",
        FetchOutcome.REDIRECTED: "its web server redirects, which senders do not follow",
        FetchOutcome.TOO_LARGE: "it is larger than 64 KiB",
    }
    problem = problems.get(outcome, "there is no such file")
    return Finding(
        "mta-sts.policy-missing",
        Severity.ERROR,
        f"The MTA-STS record of {domain} promises a policy at {url}, but {problem}; senders act"
        " as if there were none.",
        "Serve the policy file there with a valid certificate, or remove the record.",
    )

"""Evaluation of MTA-STS: the record and the policy file of a domain (RFC 8461)."""

import re
from collections.abc import Iterator
from enum import Enum

from msgspec import Struct

from mailcheck.checks.aliases import alias_target, publish_at_target
from mailcheck.checks.dns_answers import Answers, Presence, look_up, txt_values
from mailcheck.checks.findings import Finding, RecordToPublish, Severity
from mailcheck.checks.findings_table import make_finding, undetermined
from mailcheck.checks.hosts.mx import MxVerdict
from mailcheck.checks.tags.misplaced import find_elsewhere
from mailcheck.checks.tags.tag_lists import has_exact_version, parse_tag_list
from mailcheck.checks.tags.tag_repair import (
    MAX_REPAIRED,
    find_tags,
    name_mistake,
    start_of,
    without_look_alikes,
)
from mailcheck.core.network_addresses import parse_ip_address

VERSION = "STSv1"
MAX_MAX_AGE = 31_557_600  # seconds, RFC 8461 3.2
MAX_POLICY_OCTETS = 64 * 1024  # RFC 8461 3.3 allows to reject larger files
MAX_PATTERNS = 100

_KEYS = ("version", "mode", "max_age", "mx")
_PATTERN = re.compile(r"(?:\*\.)?[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?", re.ASCII)


class PolicyMode(Enum):
    """The action of senders if no trusted encrypted connection is possible."""

    ENFORCE = "enforce"
    TESTING = "testing"
    NONE = "none"


class MtaStsPolicy(Struct, frozen=True):
    """A parsed policy; with any ``problems``, senders ignore it as a whole."""

    mode: PolicyMode | None
    max_age: int | None
    mx_patterns: tuple[str, ...]
    problems: tuple[str, ...]

    @property
    def is_valid(self) -> bool:
        """Whether senders apply it."""
        return not self.problems

    def covers(self, exchange: str) -> bool:
        """Return whether senders may deliver to this host (RFC 8461 4.1)."""
        parent = exchange.partition(".")[2]
        return any(
            pattern == exchange or (pattern.startswith("*.") and pattern[2:] == parent)
            for pattern in self.mx_patterns
        )


def parse_mta_sts_policy(text: str) -> MtaStsPolicy:
    """Parse a policy file with lines ``key: value``; unknown keys are ignored.

    Keys are case-sensitive (RFC 8461 3.2), so `Mode` is an unknown key.
    """
    values: dict[str, list[str]] = {}
    problems: list[str] = []
    for line in text.splitlines():
        if not line.strip():
            continue
        key, colon, value = line.partition(":")
        if not colon:
            problems.append(f"{line[:60]!r} does not have the form key: value")
        values.setdefault(key.strip(), []).append(value.strip())
    for key in values.keys() - set(_KEYS):
        if key.lower() in _KEYS:
            problems.append(f'the key "{key[:20]}" must be written "{key.lower()}"')
    if values.get("version", [""])[0] != VERSION:
        problems.append(f'it has no line "version: {VERSION}"')
    mode = _read_mode(values.get("mode", [""])[0], problems)
    max_age = _read_max_age(values.get("max_age", [""])[0], problems)
    patterns = tuple(p.lower().rstrip(".") for p in values.get("mx", ())[:MAX_PATTERNS])
    if not patterns and mode is not PolicyMode.NONE:
        problems.append("it names no mail host (mx)")
    problems += [
        f"{p[:60]!r} is {_describe_invalid_pattern(p)}"
        for p in patterns
        if not _PATTERN.fullmatch(p)
    ]
    return MtaStsPolicy(mode, max_age, patterns, tuple(problems[:10]))


def _describe_invalid_pattern(pattern: str) -> str:
    """Describe an invalid pattern."""
    is_address = parse_ip_address(pattern.strip("[]")) is not None
    return "an IP address, not a host name" if is_address else "not a host name"


def _read_mode(text: str, problems: list[str]) -> PolicyMode | None:
    try:
        return PolicyMode(text)
    except ValueError:
        problems.append("its mode is not enforce, testing or none")
        return None


def _read_max_age(text: str, problems: list[str]) -> int | None:
    if re.fullmatch(r"[0-9]{1,10}", text) is None or int(text) > MAX_MAX_AGE:
        problems.append(f"its max_age is not a number of seconds up to {MAX_MAX_AGE}")
        return None
    return int(text)


PREFIX = "_mta-sts."
SHORT_MAX_AGE = 7 * 86_400  # seconds; RFC 8461 3.2 advises weeks

MAX_ID = 32  # letters and digits, RFC 8461 3.1

_ID = re.compile(rf"[A-Za-z0-9]{{1,{MAX_ID}}}", re.ASCII)
_NEAR_MISS = re.compile(
    r"sts-?v?1|^v[=:]?sts|^id[=:]", re.ASCII
)  # matched against the result of `start_of`


class FetchOutcome(Enum):
    """The outcome of fetching the policy file."""

    FETCHED = "fetched"
    MISSING = "missing"
    """No such host, no connection, or a status other than 200."""
    BAD_CERTIFICATE = "bad-certificate"
    REDIRECTED = "redirected"
    """Redirects must not be followed (RFC 8461 3.3)."""
    TOO_LARGE = "too-large"
    NO_ANSWER = "silent"
    """No answer in time, or an error of this service."""


class PolicyFetch(Struct, frozen=True):
    """The result of fetching ``https://mta-sts.<domain>/.well-known/mta-sts.txt``."""

    outcome: FetchOutcome
    text: str = ""


class MtaStsRecord(Struct, frozen=True):
    """The TXT record that announces a policy.

    ``text`` is the record, even if senders ignore it, or empty without one.
    """

    domain: str
    presence: Presence
    text: str
    findings: tuple[Finding, ...]


class MtaStsVerdict(Struct, frozen=True):
    """The record and the policy; ``policy`` is `None` if it was not fetched."""

    record: MtaStsRecord
    policy: MtaStsPolicy | None
    findings: tuple[Finding, ...]

    @property
    def is_enforced(self) -> bool:
        """Whether senders refuse to deliver without encryption."""
        return (
            self.policy is not None
            and self.policy.is_valid
            and self.policy.mode is PolicyMode.ENFORCE
        )


def evaluate_mta_sts_record(domain: str, answers: Answers) -> MtaStsRecord:
    """Evaluate the record at ``_mta-sts.<domain>``."""
    answer = look_up(answers, PREFIX + domain, "TXT")
    if not answer.status.is_determined:
        silence = undetermined("mta-sts.undetermined", [PREFIX + domain])
        return MtaStsRecord(domain, Presence.UNDETERMINED, "", (silence,))
    published = txt_values(answer)
    texts = [text for text in published if has_exact_version(text, VERSION)]
    near = [text for text in published if _NEAR_MISS.search(start_of(text))]
    text, finding = next(iter(texts or near), ""), None
    if not text:
        elsewhere = _find_elsewhere(domain, answers)
        finding = _absent(domain) if elsewhere is None else _misplaced(domain, *elsewhere)
        text = "" if elsewhere is None else elsewhere[1]
    elif not texts:
        finding = _unreadable(domain, text)
    elif len(texts) > 1:
        record = RecordToPublish(PREFIX + domain, "TXT", text)
        finding = make_finding("mta-sts.several", proposed=record, domain=domain)
    elif _ID.fullmatch(parse_tag_list(text).get("id") or "") is None:
        record = RecordToPublish(PREFIX + domain, "TXT", _with_id(text))
        finding = make_finding("mta-sts.syntax", proposed=record, domain=domain, max_id=MAX_ID)
    if finding is None:
        return MtaStsRecord(domain, Presence.FOUND, text, ())
    finding = publish_at_target(finding, PREFIX + domain, alias_target(answer))
    return MtaStsRecord(domain, Presence.ABSENT, text, (finding,))


def evaluate_mta_sts(
    record: MtaStsRecord, fetch: PolicyFetch | None, mx: MxVerdict
) -> MtaStsVerdict:
    """Evaluate the policy; ``fetch`` is `None` if the record gave no reason to fetch it."""
    if record.presence is not Presence.FOUND:
        return MtaStsVerdict(record, None, record.findings)
    if fetch is None:
        # A hypothetical record, for which no policy was fetched.
        silence = undetermined("mta-sts.undetermined", [policy_url(record.domain)])
        return MtaStsVerdict(record, None, (silence,))
    if fetch.outcome is not FetchOutcome.FETCHED:
        return MtaStsVerdict(record, None, (_not_fetched(record.domain, fetch.outcome),))
    policy = parse_mta_sts_policy(fetch.text)
    return MtaStsVerdict(record, policy, tuple(_check_policy(record.domain, policy, mx)))


def _check_policy(domain: str, policy: MtaStsPolicy, mx: MxVerdict) -> Iterator[Finding]:
    if policy.problems:
        yield make_finding(
            "mta-sts.policy-syntax",
            domain=domain,
            problems=policy.problems[0],
            url=policy_url(domain),
        )
        return
    if policy.mode is not PolicyMode.NONE:
        for pattern in policy.mx_patterns:
            if parse_ip_address(pattern) is not None:
                yield make_finding(
                    "mta-sts.ip-address", domain=domain, pattern=pattern, url=policy_url(domain)
                )
        for host in mx.hosts:
            if not policy.covers(host.exchange):
                yield _uncovered(domain, host.exchange, policy)
    if policy.mode is PolicyMode.TESTING:
        yield make_finding("mta-sts.testing", domain=domain)
    if policy.max_age is not None and policy.max_age < SHORT_MAX_AGE:
        yield make_finding("mta-sts.short-age", max_age=policy.max_age, short_max_age=SHORT_MAX_AGE)


def policy_url(domain: str) -> str:
    """Return the URL of the policy file (RFC 8461 3.3)."""
    return f"https://mta-sts.{domain}/.well-known/mta-sts.txt"


def _uncovered(domain: str, exchange: str, policy: MtaStsPolicy) -> Finding:
    is_enforced = policy.mode is PolicyMode.ENFORCE
    return make_finding(
        "mta-sts.uncovered-host",
        severity=Severity.ERROR if is_enforced else Severity.WARNING,
        domain=domain,
        exchange=exchange,
        do="do" if is_enforced else "would",
        url=policy_url(domain),
    )


def _find_elsewhere(domain: str, answers: Answers) -> tuple[str, str] | None:
    names = (f"{PREFIX}{domain}.{domain}", f"mta-sts.{domain}", domain)
    return find_elsewhere(names, lambda text: has_exact_version(text, VERSION), answers)


def _misplaced(domain: str, place: str, text: str) -> Finding:
    proper = PREFIX + domain
    return make_finding(
        "mta-sts.misplaced",
        proposed=RecordToPublish(proper, "TXT", text),
        place=place,
        proper=proper,
        domain=policy_url(domain),
    )


def _absent(domain: str) -> Finding:
    return make_finding(
        "mta-sts.absent", domain=domain, url=policy_url(domain), prefix=PREFIX, version=VERSION
    )


def _unreadable(domain: str, text: str) -> Finding:
    mistake = name_mistake(text)
    return make_finding(
        "mta-sts.unreadable",
        proposed=RecordToPublish(PREFIX + domain, "TXT", _with_id(text)),
        prefix=PREFIX,
        domain=domain,
        text=text[:40],
        version=VERSION,
        mistake=f": {mistake}" if mistake else "",
    )


def _with_id(text: str) -> str:
    """Return the intended record of a text; an id keeps its letters and digits."""
    tags = dict(find_tags(without_look_alikes(text[:MAX_REPAIRED]), ("v", "id")))
    identifier = re.sub(r"[^A-Za-z0-9]", "", tags.get("id", ""))[:MAX_ID]
    return f"v={VERSION}; id={identifier or 1};"


def _not_fetched(domain: str, outcome: FetchOutcome) -> Finding:
    url = policy_url(domain)
    if outcome is FetchOutcome.NO_ANSWER:
        return undetermined("mta-sts.undetermined", [url])
    problems = {
        FetchOutcome.BAD_CERTIFICATE: "the certificate of its web server is not valid",
        FetchOutcome.REDIRECTED: "its web server redirects, which senders do not follow",
        FetchOutcome.TOO_LARGE: "it is larger than 64 KiB",
    }
    problem = problems.get(outcome, "there is no such file")
    return make_finding("mta-sts.policy-missing", domain=domain, url=url, problem=problem)

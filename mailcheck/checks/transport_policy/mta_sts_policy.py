"""An MTA-STS policy file as a value (RFC 8461 3.2)."""

import re
from dataclasses import dataclass
from enum import Enum

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


@dataclass(frozen=True, slots=True)
class MtaStsPolicy:
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

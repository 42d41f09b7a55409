"""The values of a DMARC aggregate report, collected from its XML elements.

Element names are compared without namespace and case. Unknown elements are skipped, because
RFC 9990 lets reporters add elements, and missing values are empty. An invalid row is left out and
reported as a problem. An invalid report is rejected.
"""

import ipaddress
import re
from collections.abc import Mapping, Sequence
from functools import lru_cache

from msgspec.structs import replace

from mailcheck.checks.auth_results import AuthResult
from mailcheck.checks.mail_domains import read_mail_domain, registrable_domain
from mailcheck.checks.receiver_reports.aggregate import (
    PASS,
    AggregateReport,
    PublishedPolicy,
    Row,
    Signature,
    SpfCheck,
)
from mailcheck.checks.receiver_reports.limits import (
    MAX_COUNT,
    MAX_ELEMENTS,
    MAX_EVIDENCE,
    MAX_NESTING,
    MAX_PROBLEMS,
    MAX_ROWS,
    MAX_SPAN,
    MAX_SUM,
    MAX_TEXT,
)
from mailcheck.core.errors import ReportRefused
from mailcheck.core.instants import SECOND, Instant

_HEAD = ("report_metadata", "date_range", "policy_published")
_ROW = ("record", "row", "policy_evaluated", "identifiers", "auth_results")

# Elements with child elements -> their parents; "dkim" in policy_evaluated has no children.
_GROUPS: Mapping[str, tuple[str, ...]] = {
    "reason": ("policy_evaluated", "row"),
    "dkim": ("auth_results",),
    "spf": ("auth_results",),
}

_DISPOSITIONS: Mapping[str, str] = {
    **{word: word for word in ("none", "quarantine", "reject")},
    "pass": "none",  # RFC 9990: the policy was not applied because the mail passed
    "delivered": "none",
    "softfail": "quarantine",  # the result of SPF that some receivers treat like that
}

_ADDRESS = re.compile(
    r"(?:\[(?P<bracketed>[^\[\]]+)\]|(?P<plain>[0-9.]+(?=:)|[^\[\]/]+))"
    r"(?::[0-9]{1,5})?(?:/(?P<length>[0-9]{1,3}))?",
    re.ASCII,
)
"""An address, in brackets or without, with a port (``192.0.2.1:25``) or a prefix length."""

_POLICY_ELEMENTS = ("p", "sp", "np", "adkim", "aspf", "pct", "fo", "testing", "discovery_method")
"""Elements of a report for the fields of `PublishedPolicy` after its domain, in their order."""


class NestingError(Exception):
    """The nesting of elements is invalid for a report, for example because one is not closed."""


class ReportBuilder:
    """The parsed part of a report; ``path`` has the names of the open elements.

    :param fault: XML error of the document; empty if it is well-formed.
    """

    def __init__(self, fault: str = "") -> None:
        self.path: list[str] = []
        self._pieces: list[str] = []
        self._size = 0
        self._elements = 0
        self._record_count = 0
        self._head: dict[str, str] = {}
        self._record: dict[str, str] = {}
        self._row: dict[str, str] = {}
        self._parts: list[tuple[dict[str, str], list[str]]] = []
        self._group: dict[str, str] = {}
        self._reasons: list[str] = []
        self._signatures: list[Signature] = []
        self._spf_checks: list[SpfCheck] = []
        self._rows: dict[Row, int] = {}
        self._problems = [f"{fault}; the readable part is counted"] if fault else []
        self._left_out = 0
        self.is_at_end = False
        self._names: dict[str, str] = {}
        self._texts: dict[str, str] = {}

    def start(self, name: str, _: object) -> None:
        """Open an element."""
        name = self._names.get(name) or self._short_name(name)
        if not self.path and name != "feedback":
            raise NestingError(f'it is XML but not a DMARC report: it begins with "{name[:40]}"')
        self._elements += 1
        if len(self.path) == MAX_NESTING:
            raise NestingError(f"its elements are nested deeper than {MAX_NESTING}")
        if self._elements > MAX_ELEMENTS:
            raise ReportRefused(f"it has over {MAX_ELEMENTS} elements")
        self.path.append(name)
        if self._pieces:
            self._pieces.clear()
        self._size = 0
        if name == "record" and len(self.path) == 2:
            self._record_count += 1
            if self._record_count > MAX_ROWS:
                raise ReportRefused(f"it has over {MAX_ROWS} rows")
            self._record, self._row, self._parts = {}, {}, []
            self._reasons, self._signatures, self._spf_checks = [], [], []
        elif name in _GROUPS:
            self._group = {}

    def text(self, piece: str) -> None:
        """Add text to the innermost open element."""
        if self._size <= MAX_TEXT * 4:
            self._pieces.append(piece)
            self._size += len(piece)

    @property
    def is_empty(self) -> bool:
        """Whether the document contains no part of a report."""
        return not self._head and not self._record_count

    def end(self, _: str) -> None:
        """Close the innermost open element."""
        path = self.path
        name = path.pop()
        if not path:
            return
        if name == "record" and len(path) == 1:
            self._end_record()
            return
        parent = path[-1]
        if name in _GROUPS and parent in _GROUPS[name]:
            if name == "reason" and not self._group:
                self._group = _reason_of(self._clean("".join(self._pieces)))
            self._end_group(name)
        elif self._pieces:
            self._add_value(name, self._clean("".join(self._pieces)))
        if name == "row" and len(path) == 2:
            self._parts.append((self._row, self._reasons))
            self._row, self._reasons = {}, []
        self._pieces.clear()

    def _add_value(self, name: str, value: str) -> None:
        """Add the text of an element; the first of several elements of a name counts."""
        path, parent = self.path, self.path[-1]
        if len(path) > 1 and path[1] == "record":
            if parent in _GROUPS:
                self._group.setdefault(name, value)
            elif parent in _ROW:
                values = self._row if path[2:3] == ["row"] else self._record
                values.setdefault(name, value)
        elif parent in _HEAD:
            self._head.setdefault(f"{parent}.{name}", value)

    def _short_name(self, name: str) -> str:
        """Return the name without prefix in lower case; the few different names are cached."""
        short = name.rpartition(":")[2].lower()
        if len(self._names) < 200:
            self._names[name] = short
        return short

    def _clean(self, text: str) -> str:
        """Return a printable text; the few different texts are cached."""
        known = self._texts.get(text)
        if known is not None:
            return known
        clean = "".join(c if c.isprintable() else " " for c in text.strip()[:MAX_TEXT]).strip()
        if len(self._texts) < 10_000:
            self._texts[text] = clean
        return clean

    def _end_group(self, name: str) -> None:
        group, self._group = self._group, {}
        domain = _read_name(group.get("domain", ""))
        result = _result_of(group.get("result", ""))
        if name == "reason":
            kind, comment = group.get("type", ""), group.get("comment", "")
            if (kind or comment) and len(self._reasons) < MAX_EVIDENCE:
                kind = kind.lower() or "other"
                self._reasons.append(f"{kind}: {comment}" if comment else kind)
        elif name == "dkim" and (domain or result):
            if len(self._signatures) < MAX_EVIDENCE:
                self._signatures.append(Signature(domain, group.get("selector", ""), result))
        elif name == "spf" and (domain or result) and len(self._spf_checks) < MAX_EVIDENCE:
            scope = group.get("scope", "").lower()
            self._spf_checks.append(SpfCheck(domain, scope, result))

    def _leave_out(self, problem: str) -> None:
        self._left_out += 1
        if len(self._problems) < MAX_PROBLEMS:
            self._problems.append(f"row {self._record_count} is left out: {problem}")

    def _end_record(self) -> None:
        if self.is_at_end:
            self._leave_out("the report ends within it")
            return
        # Some reporters write several rows into one record, and some write no row.
        for values, reasons in self._parts or [({}, [])]:
            self._add_row(self._record | values, reasons or self._reasons)

    def _add_row(self, record: Mapping[str, str], reasons: Sequence[str]) -> None:
        count, problem = _read_count(record.get("count", ""))
        source = read_address(record.get("source_ip", ""))
        if source is None:
            problem = problem or f'"{record.get("source_ip", "")[:60]}" is not an IP address'
        if problem or source is None:
            self._leave_out(problem)
            return
        row = Row(
            source=source,
            disposition=_DISPOSITIONS.get(record.get("disposition", "").lower(), ""),
            dkim=_result_of(record.get("dkim", "")),
            spf=_result_of(record.get("spf", "")),
            header_from=_read_name(record.get("header_from", "")),
            envelope_from=_read_name(record.get("envelope_from", "")),
            reasons=tuple(reasons),
            signatures=tuple(self._signatures),
            spf_checks=tuple(self._spf_checks),
        )
        self._rows[row] = self._rows.get(row, 0) + count

    def finish(self) -> AggregateReport:
        """Return the report, or refuse it."""
        if sum(self._rows.values()) > MAX_SUM:
            raise ReportRefused(f"it counts over {MAX_SUM} messages")
        head = self._head
        domain = read_mail_domain(head.get("policy_published.domain", ""))
        if domain is None:
            raise ReportRefused("it does not name its domain")
        begins_at, ends_at = _read_moment(head, "begin"), _read_moment(head, "end")
        if not begins_at <= ends_at <= begins_at + MAX_SPAN * SECOND:
            raise ReportRefused("its period ends before it begins, or is longer than a month")
        if len(self._problems) < self._left_out:
            self._problems.append(f"{self._left_out} rows are left out in total")

        rows = self._rows
        if any(not (row.dkim and row.spf) for row in rows):
            rows = self._complete_rows()
        published = [
            head.get(f"policy_published.{element}", "").lower() for element in _POLICY_ELEMENTS
        ]

        def metadata(name: str) -> str:
            return head.get(f"report_metadata.{name}", "")

        return AggregateReport(
            organisation=metadata("org_name"),
            email=metadata("email").lower(),
            contact=metadata("extra_contact_info"),
            report_id=metadata("report_id"),
            generator=metadata("generator"),
            begins_at=begins_at,
            ends_at=ends_at,
            policy=PublishedPolicy(domain, *published),
            rows=rows,
            problems=tuple(self._problems),
        )

    def _complete_rows(self) -> dict[Row, int]:
        """Return the rows, with the missing results evaluated from those of SPF and DKIM."""
        is_strict = {
            tag: self._head.get(f"policy_published.{tag}", "").lower() == "s"
            for tag in ("adkim", "aspf")
        }
        found: dict[Row, int] = {}
        evaluated = 0
        for row, count in self._rows.items():
            dkim = row.dkim or _combine(row.signatures, row.header_from, is_strict["adkim"])
            spf = row.spf or _combine(row.spf_checks, row.header_from, is_strict["aspf"])
            evaluated += (dkim, spf) != (row.dkim, row.spf)
            complete = replace(row, dkim=dkim, spf=spf)
            found[complete] = found.get(complete, 0) + count
        if evaluated and len(self._problems) < MAX_PROBLEMS:
            rows = "1 row has" if evaluated == 1 else f"{evaluated} rows have"
            self._problems.append(
                f"{rows} no result for DMARC; it is evaluated from the results of SPF and DKIM"
            )
        return found


def _combine(results: Sequence[Signature | SpfCheck], author: str, is_strict: bool) -> str:
    """Return the result for DMARC: pass if one aligned result passes; empty without results."""
    if not results or not author:
        return ""
    aligned = (
        result.domain == author
        or (not is_strict and registrable_domain(result.domain) == registrable_domain(author))
        for result in results
        if result.result == PASS and result.domain
    )
    return PASS if any(aligned) else AuthResult.FAIL.value


_RESULTS: Mapping[str, str] = {
    "hardfail": "fail",
    "error": "permerror",  # RFC 7489 appendix C, comments of SPFResultType
    "unknown": "temperror",
    "passed": "pass",
    "failed": "fail",
}

_KNOWN_RESULTS = frozenset(result.value for result in AuthResult)
"""RFC 8601 2.7."""


def _result_of(text: str) -> str:
    """Return a result in the spelling of RFC 8601; an unknown result is empty."""
    result = re.sub(r"[\s_-]", "", text.lower())
    result = _RESULTS.get(result, result)
    return result if result in _KNOWN_RESULTS else ""


_REASONS = (
    *("forwarded", "local_policy", "mailing_list", "other", "policy_test_mode", "sampled_out"),
    "trusted_forwarder",
)
"""RFC 9990 and RFC 7489 appendix C."""


def _reason_of(text: str) -> dict[str, str]:
    """Return type and comment of a reason that is written as plain text."""
    kind, _, comment = text.partition(":")
    if kind.strip().lower() in _REASONS:
        return {"type": kind.strip(), "comment": comment.strip()}
    return {"comment": text} if text else {}


@lru_cache(maxsize=4_096)
def _read_name(text: str) -> str:
    """Return a domain in lower-case A-labels; any other text is returned unchanged."""
    name = text.lower().rstrip(".")
    return name if name.isascii() else read_mail_domain(name) or name


_NUMBER = re.compile(r"([+-]?[0-9]{1,20})(?:\.0{1,9})?", re.ASCII)
_GROUPED = re.compile(r"[0-9]{1,3}(?:[,'\u2019 _][0-9]{3})+", re.ASCII)
"""A number with separators between its thousands, such as ``1,024``."""


def _read_count(text: str) -> tuple[int, str]:
    """Parse the message count of a row; return the count and a problem."""
    if _GROUPED.fullmatch(text):
        text = re.sub("[^0-9]", "", text)
    number = _NUMBER.fullmatch(text)
    if number is None:
        return 0, f'its count is "{text[:40]}"'
    count = int(number[1])
    if not 0 < count <= MAX_COUNT:
        return 0, f"it counts {count} messages"
    return count, ""


def read_address(text: str) -> str | None:
    """Return an IP address in its usual form, or `None` for any other text.

    A port and the length of a prefix that is one address are left out.
    """
    found = _ADDRESS.fullmatch(text.strip())
    try:
        address = ipaddress.ip_address(found["bracketed"] or found["plain"] if found else "")
    except ValueError:
        return None
    if found is not None and found["length"] not in (None, str(address.max_prefixlen)):
        return None
    if not isinstance(address, ipaddress.IPv6Address):
        return str(address)
    return None if address.scope_id else str(address.ipv4_mapped or address)


EARLIEST = 1_325_376_000
"""2012: the year of the first DMARC report."""

LATEST = 4_102_444_800
"""2100; later times were written in another unit."""


def _read_moment(head: Mapping[str, str], name: str) -> Instant:
    text = head.get(f"date_range.{name}", "")
    number = _NUMBER.fullmatch(text)
    what = f'the {name} of its period is "{text[:40]}"'
    if number is None:
        raise ReportRefused(f"{what}, not a number of seconds since 1970")
    seconds = int(number[1])
    if seconds < EARLIEST:
        raise ReportRefused(f"{what}, before 2012, when DMARC did not exist")
    if seconds >= LATEST:
        raise ReportRefused(f"{what}, after 2100; it must be in seconds since 1970")
    return Instant(seconds * SECOND)

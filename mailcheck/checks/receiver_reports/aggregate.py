"""Parser for DMARC aggregate reports: RFC 9990, RFC 7489 appendix C, and deviations from them.

A report is parsed in one pass without a tree, or in two passes if its XML is not well-formed.
Element names are compared without namespace and case. Unknown elements are skipped, because
RFC 9990 lets reporters add elements, and missing values are empty. An invalid row is left out and
reported as a problem. An invalid report is rejected.
"""

import ipaddress
import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from html import unescape
from xml.parsers import expat

from msgspec import Struct
from msgspec.structs import replace

from mailcheck.checks.auth_results import AuthResult
from mailcheck.checks.mail_domains import read_mail_domain, registrable_domain
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

PASS = AuthResult.PASS.value


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


class Signature(Struct, frozen=True):
    """A DKIM result of the receiver, aligned or not."""

    domain: str
    selector: str
    result: str


class SpfCheck(Struct, frozen=True):
    """An SPF result: ``scope`` is ``mfrom`` or ``helo``, or empty if it is missing."""

    domain: str
    scope: str
    result: str


class Row(Struct, frozen=True):
    """Messages of one source with one result.

    ``dkim`` and ``spf`` are the results for DMARC: passed and aligned. ``reasons`` say why the
    receiver did not follow the policy, as ``type`` or ``type: comment``.
    """

    source: str
    disposition: str
    dkim: str
    spf: str
    header_from: str
    envelope_from: str = ""
    reasons: tuple[str, ...] = ()
    signatures: tuple[Signature, ...] = ()
    spf_checks: tuple[SpfCheck, ...] = ()

    @property
    def passes(self) -> bool:
        """Whether DMARC passed; one of the two results is enough."""
        return PASS in (self.dkim, self.spf)


_PASSING = tuple(f'"{name}":"{PASS}"' for name in ("dkim", "spf"))

PASSING_PATTERNS = tuple(f"%{text}%" for text in _PASSING)
"""SQL patterns of the JSON of rows that pass. Quotes in texts are escaped, so no text matches."""


def has_passed(result: str) -> bool:
    """Return whether a row passes, from its JSON."""
    return any(text in result for text in _PASSING)


class PublishedPolicy(Struct, frozen=True):
    """The policy as the receiver found it; missing values are empty.

    ``testing`` and ``discovery`` are from RFC 9990, ``percent`` is from RFC 7489.
    """

    domain: str
    policy: str = ""
    subdomain_policy: str = ""
    nonexistent_policy: str = ""
    dkim_alignment: str = ""
    spf_alignment: str = ""
    percent: str = ""
    failure_options: str = ""
    testing: str = ""
    discovery: str = ""


_POLICY_ELEMENTS = ("p", "sp", "np", "adkim", "aspf", "pct", "fo", "testing", "discovery_method")
"""Elements of a report for the fields of `PublishedPolicy` after its domain, in their order."""


class AggregateReport(Struct, frozen=True):
    """Results of one receiver for one domain; each different row once, with its message count.

    ``organisation`` and ``email`` are the sender's own claims and are not verified here.
    """

    organisation: str
    email: str
    contact: str
    report_id: str
    generator: str
    begins_at: Instant
    ends_at: Instant
    policy: PublishedPolicy
    rows: Mapping[Row, int]
    problems: tuple[str, ...] = ()

    @property
    def domain(self) -> str:
        """The domain of the report."""
        return self.policy.domain

    @property
    def domains(self) -> tuple[str, ...]:
        """The domain of the report, as the only one."""
        return (self.policy.domain,)

    @property
    def messages(self) -> int:
        """The number of messages."""
        return sum(self.rows.values())


def parse_aggregate_report(document: bytes) -> AggregateReport:
    """Parse a report.

    An error in its XML loses only the field or the row that contains it, and is reported as a
    problem.

    :raises ReportRefused: the report has a document type (and thus entities), exceeds a limit, or
        lacks a domain or a valid time.
    """
    fault = ""
    try:
        builder = _ReportBuilder()
        parser = expat.ParserCreate()
        parser.buffer_text = True
        parser.StartElementHandler = builder.start
        parser.EndElementHandler = builder.end
        parser.CharacterDataHandler = builder.text
        parser.StartDoctypeDeclHandler = _reject_entities
        parser.EntityDeclHandler = _reject_entities
        parser.Parse(document, True)
        return builder.finish()
    except expat.ExpatError as error:
        message = expat.errors.messages.get(error.code, "") or error
        fault = f"it is not well-formed XML: line {error.lineno}: {message}"
    except (LookupError, ValueError):
        fault = "its character set is unknown"
    except _NestingError as error:
        fault = str(error)
    builder = _ReportBuilder(fault)
    try:
        _Recovery(_decode(document), builder).run()
    except _NestingError as error:
        raise ReportRefused(str(error)) from None
    if builder.is_empty:
        raise ReportRefused(fault)
    return builder.finish()


def _reject_entities(*_: object) -> None:
    raise ReportRefused("it has a document type, which may define entities: reports need none")


class _NestingError(Exception):
    """The nesting of elements is invalid for a report, for example because one is not closed."""


class _ReportBuilder:
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
        name = self._names.get(name) or self._short_name(name)
        if not self.path and name != "feedback":
            raise _NestingError(f'it is XML but not a DMARC report: it begins with "{name[:40]}"')
        self._elements += 1
        if len(self.path) == MAX_NESTING:
            raise _NestingError(f"its elements are nested deeper than {MAX_NESTING}")
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
        if self._size <= MAX_TEXT * 4:
            self._pieces.append(piece)
            self._size += len(piece)

    @property
    def is_empty(self) -> bool:
        """Whether the document contains no part of a report."""
        return not self._head and not self._record_count

    def end(self, _: str) -> None:
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


# Recovery for reports that are not well-formed XML. An error loses only its field or its row. The
# text is split into tags in one pass, and only XML's five predefined entities are decoded.
# `_ReportBuilder` applies the limits.

_SECTIONS = ("report_metadata", "policy_published", "record")
_ROOT = "feedback"

# Elements without child elements: a start tag within one of them ends it.
_FIELDS = frozenset(
    {
        *("org_name", "email", "extra_contact_info", "report_id", "generator", "error"),
        *("begin", "end", "domain", "adkim", "aspf", "p", "sp", "np", "pct", "fo", "testing"),
        *("discovery_method", "version", "source_ip", "count", "disposition", "type", "comment"),
        *("header_from", "envelope_from", "envelope_to", "selector", "result", "human_result"),
        "scope",
    }
)
_RESULT_ELEMENTS = ("dkim", "spf")

_TAG = re.compile(r"<(/?)[ \t]*([A-Za-z_][\w.:-]{0,99})([^<>]*)(>?)", re.ASCII)
_REFERENCE = re.compile(r"&(?:amp|lt|gt|quot|apos|#[0-9]{1,7}|#[xX][0-9A-Fa-f]{1,6});", re.ASCII)
_ASIDE = (("<!--", "-->"), ("<?", "?>"))
_CDATA, _CDATA_END = "<![CDATA[", "]]>"
_FORBIDDEN = ("<!doctype", "<!entity")


def _decode(document: bytes) -> str:
    """Decode by the byte order mark, or as UTF-8; the declaration is ignored."""
    if document.startswith((b"\xff\xfe", b"\xfe\xff")):
        return document.decode("utf-16", "replace")
    if document[1:2] == b"\0" or document[:1] == b"\0":
        return document.decode("utf-16-le" if document[1:2] == b"\0" else "utf-16-be", "replace")
    return document.decode("utf-8-sig", "replace")


class _Recovery:
    """Splits one document into tags from start to end."""

    def __init__(self, text: str, reader: _ReportBuilder) -> None:
        self._text = text
        self._reader = reader
        self._missing: set[str] = set()

    def run(self) -> None:
        text, place = self._text, 0
        while True:
            begin = text.find("<", place)
            self._add_text(text[place:] if begin < 0 else text[place:begin])
            if begin < 0:
                break
            place = self._read_markup(begin)
        self._reader.is_at_end = True
        while self._reader.path:
            self._close()

    def _read_markup(self, begin: int) -> int:
        """Read the tag, comment or text that begins at a ``<``, and return its end."""
        text = self._text
        if text.startswith(_CDATA, begin):
            end = self._find(_CDATA_END, begin)
            self._add_text(text[begin + len(_CDATA) : end], is_literal=True)
            return end + len(_CDATA_END)
        for opening, closing in _ASIDE:
            if text.startswith(opening, begin):
                return self._find(closing, begin + len(opening)) + len(closing)
        if text[begin : begin + 9].lower().startswith(_FORBIDDEN):
            _reject_entities()
        tag = _TAG.match(text, begin)
        if tag is None:
            self._add_text("<", is_literal=True)
            return begin + 1
        self._handle_tag(tag[2], is_end=bool(tag[1]), is_empty=tag[3].endswith("/"))
        return tag.end()

    def _find(self, closing: str, begin: int) -> int:
        """Return the position of a closing mark, or the end of the opening if it is missing."""
        end = -1 if closing in self._missing else self._text.find(closing, begin)
        if end < 0:
            self._missing.add(closing)
            return begin
        return end

    def _add_text(self, piece: str, *, is_literal: bool = False) -> None:
        if piece and self._reader.path:
            if not is_literal:
                piece = _REFERENCE.sub(lambda reference: unescape(reference[0]), piece)
            self._reader.text(piece)

    def _handle_tag(self, name: str, *, is_end: bool, is_empty: bool) -> None:
        short = name.rpartition(":")[2].lower()
        path = self._reader.path
        if is_end:
            if short in path:
                while path[-1] != short:
                    self._close()
                self._close()
            return
        if not path and short in (_ROOT, *_SECTIONS):
            self._reader.start(_ROOT, None)
        if not path or short == _ROOT:
            return
        while len(path) > 1 and self._is_misplaced(short):
            self._close()
        self._reader.start(short, None)
        if is_empty:
            self._close()

    def _is_misplaced(self, name: str) -> bool:
        """Return whether an element of this name cannot stand in the innermost open one."""
        path = self._reader.path
        if name in _SECTIONS or path[-1] in _FIELDS:
            return True
        return path[-1] in _RESULT_ELEMENTS and (
            "auth_results" not in path or name in (*_RESULT_ELEMENTS, "identifiers", "row")
        )

    def _close(self) -> None:
        self._reader.end(self._reader.path[-1])

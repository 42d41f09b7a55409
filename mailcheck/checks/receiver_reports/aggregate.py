"""DMARC aggregate reports: RFC 9990, RFC 7489 appendix C, and what reporters make of them.

Read in one pass and without a tree, or in two where the XML is not well-formed. Names of elements
count without namespace and case, what is not known is passed over (RFC 9990 lets reporters add
elements), and what a row lacks is empty. A row that can't be true is left out and said; a report
that can't be is refused.
"""

import ipaddress
import re
from collections.abc import Mapping
from functools import lru_cache
from html import unescape
from xml.parsers import expat

from msgspec import Struct

from mailcheck.checks.auth_results import AuthResult
from mailcheck.checks.mail_domains import read_mail_domain
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


class Signature(Struct, frozen=True):
    """A DKIM signature as the receiver judged it, whether it aligns or not."""

    domain: str
    selector: str
    result: str


class SpfCheck(Struct, frozen=True):
    """An SPF result: ``scope`` is ``mfrom`` or ``helo``, empty where it was not said."""

    domain: str
    scope: str
    result: str


class Row(Struct, frozen=True):
    """Messages of one source with one result.

    ``dkim`` and ``spf`` are DMARC's: passed, and aligned. ``reasons`` say why something else was
    done than the policy asks for, as ``type`` or ``type: comment``.
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
        """Tell whether DMARC passed: one of the two is enough."""
        return PASS in (self.dkim, self.spf)


class PublishedPolicy(Struct, frozen=True):
    """The policy as the receiver found it; what it did not say is empty.

    ``testing`` and ``discovery`` are RFC 9990's, ``percent`` is RFC 7489's.
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
"""Elements of a report for the fields of `PublishedPolicy` behind its domain, in their order."""


class AggregateReport(Struct, frozen=True):
    """What one receiver saw of one domain; each different row once, with its messages.

    ``organisation`` and ``email`` are what the report says of its sender, believed by nobody yet.
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
        """Give the domain that the report is about."""
        return self.policy.domain

    @property
    def messages(self) -> int:
        """Count the messages."""
        return sum(self.rows.values())


def parse_aggregate_report(document: bytes) -> AggregateReport:
    """Read a report.

    A fault of its XML costs the field or the row that it is in, and is one of the problems.

    :raises ReportRefused: it has a document type (so entities), exceeds a limit, or lacks what
        makes it a report: a domain, and a time that is one.
    """
    fault = ""
    try:
        reading = _Reading()
        parser = expat.ParserCreate()
        parser.buffer_text = True
        parser.StartElementHandler = reading.start
        parser.EndElementHandler = reading.end
        parser.CharacterDataHandler = reading.text
        parser.StartDoctypeDeclHandler = _refuse_entities
        parser.EntityDeclHandler = _refuse_entities
        parser.Parse(document, True)
        return reading.finish()
    except expat.ExpatError as error:
        what = expat.errors.messages.get(error.code, "") or error
        fault = f"it is not well-formed XML: line {error.lineno}: {what}"
    except (LookupError, ValueError):
        fault = "its character set is unknown"
    except _Misbuilt as error:
        fault = str(error)
    reading = _Reading(fault)
    try:
        _Recovery(_decode(document), reading).run()
    except _Misbuilt as error:
        raise ReportRefused(str(error)) from None
    if reading.is_empty:
        raise ReportRefused(fault)
    return reading.finish()


def _refuse_entities(*_: object) -> None:
    raise ReportRefused("it has a document type, and so may have entities: no report needs one")


class _Misbuilt(Exception):
    """The elements are not nested as in a report, for instance because one is not closed."""


class _Reading:
    """A report as far as it has been read; ``path`` are the names of the open elements.

    :param fault: what is wrong with the document as XML; empty if it is well-formed.
    """

    def __init__(self, fault: str = "") -> None:
        self.path: list[str] = []
        self._pieces: list[str] = []
        self._size = 0
        self._elements = 0
        self._record_count = 0
        self._head: dict[str, str] = {}
        self._record: dict[str, str] = {}
        self._group: dict[str, str] = {}
        self._reasons: list[str] = []
        self._signatures: list[Signature] = []
        self._spf_checks: list[SpfCheck] = []
        self._rows: dict[Row, int] = {}
        self._problems = [f"{fault}; what could be read of it is counted"] if fault else []
        self._left_out = 0
        self.is_at_end = False
        self._names: dict[str, str] = {}
        self._texts: dict[str, str] = {}

    def start(self, name: str, _: object) -> None:
        name = self._names.get(name) or self._learn(name)
        if not self.path and name != "feedback":
            raise _Misbuilt(f'it is XML, but no DMARC report: it begins with "{name[:40]}"')
        self._elements += 1
        if len(self.path) == MAX_NESTING:
            raise _Misbuilt(f"its elements are nested deeper than {MAX_NESTING}")
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
            self._record = {}
            self._reasons, self._signatures, self._spf_checks = [], [], []
        elif name in _GROUPS:
            self._group = {}

    def text(self, piece: str) -> None:
        if self._size <= MAX_TEXT * 4:
            self._pieces.append(piece)
            self._size += len(piece)

    @property
    def is_empty(self) -> bool:
        """Whether no part of a report was found."""
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
            value = self._clean("".join(self._pieces))
            if len(path) > 1 and path[1] == "record":
                if parent in _GROUPS:
                    self._group.setdefault(name, value)
                elif parent in _ROW:
                    self._record.setdefault(name, value)
            elif parent in _HEAD:
                self._head.setdefault(f"{parent}.{name}", value)
        self._pieces.clear()

    def _learn(self, name: str) -> str:
        """Give the name without its prefix, in lower case; few different ones are met."""
        short = name.rpartition(":")[2].lower()
        if len(self._names) < 200:
            self._names[name] = short
        return short

    def _clean(self, text: str) -> str:
        """Give a text that can be shown; few different ones are met."""
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
        record = self._record
        if self.is_at_end:
            self._leave_out("the report ends within it")
            return
        count, problem = _read_count(record.get("count", ""))
        source = _read_address(record.get("source_ip", ""))
        if source is None:
            problem = problem or f'"{record.get("source_ip", "")[:60]}" is no IP address'
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
            reasons=tuple(self._reasons),
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
            raise ReportRefused("it does not say which domain it is about")
        begins_at, ends_at = _read_moment(head, "begin"), _read_moment(head, "end")
        if not begins_at <= ends_at <= begins_at + MAX_SPAN * SECOND:
            raise ReportRefused("its time does not end after it begins, or is over a month")
        if len(self._problems) < self._left_out:
            self._problems.append(f"{self._left_out} rows are left out in all")

        published = [head.get(f"policy_published.{one}", "").lower() for one in _POLICY_ELEMENTS]

        def said(name: str) -> str:
            return head.get(f"report_metadata.{name}", "")

        return AggregateReport(
            organisation=said("org_name"),
            email=said("email").lower(),
            contact=said("extra_contact_info"),
            report_id=said("report_id"),
            generator=said("generator"),
            begins_at=begins_at,
            ends_at=ends_at,
            policy=PublishedPolicy(domain, *published),
            rows=self._rows,
            problems=tuple(self._problems),
        )


_HEAD = ("report_metadata", "date_range", "policy_published")
_ROW = ("record", "row", "policy_evaluated", "identifiers", "auth_results")

# An element with elements of its own -> where it stands; "dkim" of policy_evaluated has none.
_GROUPS: Mapping[str, tuple[str, ...]] = {
    "reason": ("policy_evaluated", "row"),
    "dkim": ("auth_results",),
    "spf": ("auth_results",),
}

_DISPOSITIONS: Mapping[str, str] = {
    **{one: one for one in ("none", "quarantine", "reject")},
    "pass": "none",  # RFC 9990: the policy was not applied since the mail passed
    "delivered": "none",
}

_RESULTS: Mapping[str, str] = {
    "hardfail": "fail",
    "error": "permerror",  # RFC 7489 appendix C, comments of SPFResultType
    "unknown": "temperror",
    "passed": "pass",
    "failed": "fail",
}

_KNOWN_RESULTS = frozenset(one.value for one in AuthResult)
"""RFC 8601 2.7."""


def _result_of(text: str) -> str:
    """Give a result in the spelling of RFC 8601; what is none is empty."""
    result = re.sub(r"[\s_-]", "", text.lower())
    result = _RESULTS.get(result, result)
    return result if result in _KNOWN_RESULTS else ""


_REASONS = (
    *("forwarded", "local_policy", "mailing_list", "other", "policy_test_mode", "sampled_out"),
    "trusted_forwarder",
)
"""RFC 9990 and RFC 7489 appendix C."""


def _reason_of(text: str) -> dict[str, str]:
    """Return type and comment of a reason that is written as text."""
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


def _read_count(text: str) -> tuple[int, str]:
    """Read how many messages a row counts; gives what is wrong as well."""
    number = _NUMBER.fullmatch(text)
    if number is None:
        return 0, f'its count is "{text[:40]}"'
    count = int(number[1])
    if not 0 < count <= MAX_COUNT:
        return 0, f"it counts {count} messages"
    return count, ""


def _read_address(text: str) -> str | None:
    try:
        address = ipaddress.ip_address(text.strip("[]"))
    except ValueError:
        return None
    if not isinstance(address, ipaddress.IPv6Address):
        return str(address)
    return None if address.scope_id else str(address.ipv4_mapped or address)


EARLIEST = 1_325_376_000
"""2012: the year of the first DMARC report."""

LATEST = 4_102_444_800
"""2100: later moments were written in other units."""


def _read_moment(head: Mapping[str, str], name: str) -> Instant:
    text = head.get(f"date_range.{name}", "")
    number = _NUMBER.fullmatch(text)
    what = f'the {name} of its time is "{text[:40]}"'
    if number is None:
        raise ReportRefused(f"{what}, not a number of seconds since 1970")
    seconds = int(number[1])
    if seconds < EARLIEST:
        raise ReportRefused(f"{what}, before 2012, when there was no DMARC")
    if seconds >= LATEST:
        raise ReportRefused(f"{what}, after 2100: it must be in seconds since 1970")
    return Instant(seconds * SECOND)


# A report that is not well-formed XML: a fault costs its field or its row. The text is split into
# tags in one pass, and only XML's own five entities are read. `_Reading` applies the limits.

_SECTIONS = ("report_metadata", "policy_published", "record")
_ROOT = "feedback"

# Elements without elements of their own: a start tag within one of them ends it.
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
    """Decode by the byte order mark, else as UTF-8, without regard to the declaration."""
    if document.startswith((b"\xff\xfe", b"\xfe\xff")):
        return document.decode("utf-16", "replace")
    if document[1:2] == b"\0" or document[:1] == b"\0":
        return document.decode("utf-16-le" if document[1:2] == b"\0" else "utf-16-be", "replace")
    return document.decode("utf-8-sig", "replace")


class _Recovery:
    """One document, cut into tags from its start to its end."""

    def __init__(self, text: str, reader: _Reading) -> None:
        self._text = text
        self._reader = reader
        self._missing: set[str] = set()

    def run(self) -> None:
        text, place = self._text, 0
        while True:
            begin = text.find("<", place)
            self._say(text[place:] if begin < 0 else text[place:begin])
            if begin < 0:
                break
            place = self._cut(begin)
        self._reader.is_at_end = True
        while self._reader.path:
            self._close()

    def _cut(self, begin: int) -> int:
        """Read the tag, comment or text that begins at a ``<``, and return where it ends."""
        text = self._text
        if text.startswith(_CDATA, begin):
            end = self._find(_CDATA_END, begin)
            self._say(text[begin + len(_CDATA) : end], is_literal=True)
            return end + len(_CDATA_END)
        for opening, closing in _ASIDE:
            if text.startswith(opening, begin):
                return self._find(closing, begin + len(opening)) + len(closing)
        if text[begin : begin + 9].lower().startswith(_FORBIDDEN):
            _refuse_entities()
        tag = _TAG.match(text, begin)
        if tag is None:
            self._say("<", is_literal=True)
            return begin + 1
        self._take(tag[2], is_end=bool(tag[1]), is_empty=tag[3].endswith("/"))
        return tag.end()

    def _find(self, closing: str, begin: int) -> int:
        """Return the position of a closing mark, or the end of the opening if it is missing."""
        end = -1 if closing in self._missing else self._text.find(closing, begin)
        if end < 0:
            self._missing.add(closing)
            return begin
        return end

    def _say(self, piece: str, *, is_literal: bool = False) -> None:
        if piece and self._reader.path:
            if not is_literal:
                piece = _REFERENCE.sub(lambda reference: unescape(reference[0]), piece)
            self._reader.text(piece)

    def _take(self, name: str, *, is_end: bool, is_empty: bool) -> None:
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

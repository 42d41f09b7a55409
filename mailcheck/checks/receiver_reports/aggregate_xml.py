"""Parser for DMARC aggregate reports: RFC 9990, RFC 7489 appendix C, and deviations from them.

A report is parsed in one pass without a tree, or in two passes if its XML is not well-formed.
"""

import re
from html import unescape
from xml.parsers import expat

from mailcheck.checks.receiver_reports.aggregate import AggregateReport
from mailcheck.checks.receiver_reports.report_builder import NestingError, ReportBuilder
from mailcheck.core.errors import ReportRefused


def parse_aggregate_report(document: bytes) -> AggregateReport:
    """Parse a report.

    An error in its XML loses only the field or the row that contains it, and is reported as a
    problem.

    :raises ReportRefused: the report has a document type (and thus entities), exceeds a limit, or
        lacks a domain or a valid time.
    """
    fault = ""
    try:
        builder = ReportBuilder()
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
    except NestingError as error:
        fault = str(error)
    builder = ReportBuilder(fault)
    try:
        _Recovery(_decode(document), builder).run()
    except NestingError as error:
        raise ReportRefused(str(error)) from None
    if builder.is_empty:
        raise ReportRefused(fault)
    return builder.finish()


def _reject_entities(*_: object) -> None:
    raise ReportRefused("it has a document type, which may define entities: reports need none")


# Recovery for reports that are not well-formed XML. An error loses only its field or its row. The
# text is split into tags in one pass, and only XML's five predefined entities are decoded.
# `ReportBuilder` applies the limits.

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

    def __init__(self, text: str, reader: ReportBuilder) -> None:
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

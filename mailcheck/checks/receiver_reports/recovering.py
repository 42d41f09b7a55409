"""Reading a DMARC report that is not well-formed XML: a fault costs its field or its row.

The text is split into tags in one pass, and only XML's own five entities are read. The tags go to
the reader of whole reports, which applies the limits.
"""

import re
from collections.abc import Callable
from html import unescape
from typing import Protocol


class Reader(Protocol):
    """Reads start tags, text and end tags; ``path`` are the names of the open elements.

    ``is_at_end`` is set before elements are closed that the document leaves open.
    """

    path: list[str]
    is_at_end: bool

    def start(self, name: str, attributes: object, /) -> None:
        """Read a start tag."""

    def text(self, piece: str, /) -> None:
        """Read text."""

    def end(self, name: str, /) -> None:
        """Read the end tag of the innermost element."""


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
_RESULTS = ("dkim", "spf")

_TAG = re.compile(r"<(/?)[ \t]*([A-Za-z_][\w.:-]{0,99})([^<>]*)(>?)", re.ASCII)
_REFERENCE = re.compile(r"&(?:amp|lt|gt|quot|apos|#[0-9]{1,7}|#[xX][0-9A-Fa-f]{1,6});", re.ASCII)
_ASIDE = (("<!--", "-->"), ("<?", "?>"))
_CDATA, _CDATA_END = "<![CDATA[", "]]>"
_FORBIDDEN = ("<!doctype", "<!entity")


def recover(document: bytes, reader: Reader, refuse_entities: Callable[[], None]) -> None:
    """Hand the elements of a document to a reader, as far as they can be told apart.

    If the document has no element of a DMARC report, the reader is not called.
    """
    _Recovery(_decode(document), reader, refuse_entities).run()


def _decode(document: bytes) -> str:
    """Decode by the byte order mark, else as UTF-8, without regard to the declaration."""
    if document.startswith((b"\xff\xfe", b"\xfe\xff")):
        return document.decode("utf-16", "replace")
    if document[1:2] == b"\0" or document[:1] == b"\0":
        return document.decode("utf-16-le" if document[1:2] == b"\0" else "utf-16-be", "replace")
    return document.decode("utf-8-sig", "replace")


class _Recovery:
    """One document, cut into tags from its start to its end."""

    def __init__(self, text: str, reader: Reader, refuse_entities: Callable[[], None]) -> None:
        self._text = text
        self._reader = reader
        self._refuse_entities = refuse_entities
        self._missing: set[str] = set()

    def run(self) -> None:
        text, place = self._text, 0
        while True:
            begin = text.find("<", place)
            self._say(text[place:] if begin < 0 else text[place:begin])
            if begin < 0:
                break
            place = self._cut(begin)
        path = self._reader.path
        self._reader.is_at_end = True
        while path:
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
            self._refuse_entities()
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
            self._reader.text(piece if is_literal else _REFERENCE.sub(_expand, piece))

    def _take(self, name: str, *, is_end: bool, is_empty: bool) -> None:
        short = name.rpartition(":")[2].lower()
        path = self._reader.path
        if is_end:
            if short in path:
                while path[-1] != short:
                    self._close()
                self._close()
            return
        if not path and short not in (_ROOT, *_SECTIONS):
            return
        if short == _ROOT:
            if not path:
                self._reader.start(_ROOT, None)
            return
        if not path:
            self._reader.start(_ROOT, None)
        self._make_room(short)
        self._reader.start(short, None)
        if is_empty:
            self._close()

    def _make_room(self, name: str) -> None:
        """Close the elements in which an element of this name cannot stand."""
        path = self._reader.path
        if name in _SECTIONS:
            while len(path) > 1:
                self._close()
            return
        while len(path) > 1 and (path[-1] in _FIELDS or self._is_result_in_result(name)):
            self._close()

    def _is_result_in_result(self, name: str) -> bool:
        path = self._reader.path
        if path[-1] not in _RESULTS:
            return False
        is_field = "auth_results" not in path
        return is_field or name in (*_RESULTS, "identifiers", "row")

    def _close(self) -> None:
        self._reader.end(self._reader.path[-1])


def _expand(reference: re.Match[str]) -> str:
    return unescape(reference[0])

"""Checks of a logo: SVG Tiny Portable/Secure (draft-svg-tiny-ps-abrotman).

A logo is a file of a stranger. Its size is limited before and after decompression. A document
type declaration, which can define entities, ends the check. Nothing that a logo names is fetched.
"""

import re
import zlib
from collections.abc import Iterator
from xml.parsers import expat

from msgspec import Struct

from mailcheck.checks.findings import Finding, Severity
from mailcheck.checks.findings_table import make_finding

MAX_LOGO = 32 * 1024
"""Maximum number of octets of a logo, uncompressed (draft-svg-tiny-ps-abrotman 2.4)."""

MAX_READ = 64 * 1024
"""Maximum number of octets that are read at all."""

MAX_DEPTH = 200
"""Maximum number of nested elements. Programs that show pictures reject deeper files."""

MAX_TITLE = 64  # characters

MEDIA_TYPE = "image/svg+xml"

_SVG = "http://www.w3.org/2000/svg"
_XML = "http://www.w3.org/XML/1998/namespace"
_GZIP = b"\x1f\x8b"

ALLOWED = frozenset(
    (
        *("svg", "title", "desc", "metadata", "g", "defs", "use", "solidColor"),
        *("path", "rect", "circle", "ellipse", "line", "polyline", "polygon"),
        *("linearGradient", "radialGradient", "stop"),
        *("text", "tspan", "textArea", "tbreak", "font", "font-face", "font-face-src"),
        *("font-face-name", "glyph", "missing-glyph", "hkern"),
    )
)
"""Elements of the profile."""

SCRIPTS = frozenset(("script", "handler", "listener", "foreignObject"))
ANIMATIONS = frozenset(
    (
        *("animate", "animateColor", "animateMotion", "animateTransform", "set", "mpath"),
        *("animation", "discard", "audio", "video", "prefetch"),
    )
)
RASTERS = frozenset(("image", "feImage"))

_NUMBER = re.compile(r"[+-]?[0-9]{0,9}(?:\.[0-9]{0,9})?(?:[eE][+-]?[0-9]{1,2})?", re.ASCII)
_CSS_URL = re.compile(r"url\(\s*[\"']?\s*([^\"')\s]{0,200})", re.ASCII | re.I)
_IMPORT = re.compile(r"@import|\\", re.ASCII | re.I)

HARMFUL = frozenset(
    (
        *("bimi.svg-script", "bimi.svg-animation", "bimi.svg-external", "bimi.svg-raster"),
        *("bimi.svg-element", "bimi.svg-style"),
    )
)
"""Findings about files that pages do not show."""

TOLERANCE = 0.01
"""Difference between the sides of a square, as a share of one."""


class Logo(Struct, frozen=True):
    """A logo. ``svg`` is the uncompressed file, ``size`` its number of octets, or more.

    ``is_safe`` is whether the file may be shown as a picture: it is SVG without scripts,
    animations, external references or embedded pictures.
    """

    svg: bytes
    size: int
    title: str
    is_safe: bool
    findings: tuple[Finding, ...]

    @property
    def is_valid(self) -> bool:
        """Whether receivers accept the file."""
        return bool(self.svg) and all(
            finding.severity is Severity.NOTE for finding in self.findings
        )

    @property
    def is_shown(self) -> bool:
        """Whether pages show the file, in an ``img`` element only."""
        return self.is_safe and self.size <= MAX_LOGO


def check_logo(octets: bytes, url: str) -> Logo:
    """Check a file of any octets.

    :param url: where the file was fetched, for texts.
    """
    try:
        svg = unpack(octets)
    except DamagedLogo as damage:
        fault = make_finding("bimi.logo-damaged", url=url, damage=damage)
        return Logo(b"", len(octets), "", False, (fault,))
    if len(svg) > MAX_READ:
        return Logo(b"", len(svg), "", False, (_too_large(url, len(svg)),))
    reader = _Reader(url)
    findings = tuple(reader.read(svg))
    if len(svg) > MAX_LOGO:
        findings = (_too_large(url, len(svg)), *findings)
    return Logo(svg, len(svg), reader.title, reader.is_safe, findings)


class DamagedLogo(Exception):
    """The file cannot be uncompressed; the text completes "cannot be used: ..."."""


def unpack(octets: bytes) -> bytes:
    """Return the uncompressed file, of at most one octet more than is read (SVGZ, gzip).

    :raises DamagedLogo: it is incomplete or damaged.
    """
    if not octets.startswith(_GZIP):
        return octets[: MAX_READ + 1]
    inflater = zlib.decompressobj(wbits=31)
    try:
        svg = inflater.decompress(octets, MAX_READ + 1)
    except zlib.error:
        raise DamagedLogo("its compression (gzip) is damaged") from None
    if len(svg) <= MAX_READ and (not inflater.eof or inflater.unused_data):
        raise DamagedLogo("its compression (gzip) is incomplete")
    return svg


def _too_large(url: str, size: int) -> Finding:
    shown = f"more than {MAX_READ // 1024}" if size > MAX_READ else f"{size / 1024:.1f}"
    return make_finding("bimi.logo-too-large", url=url, size=shown, most=MAX_LOGO // 1024)


class _Stop(Exception):
    """The file is not read further."""


class _Reader:
    """Reads one file. Each kind of fault is reported once, at its first place."""

    def __init__(self, url: str) -> None:
        self.title = ""
        self.is_safe = False
        self._url = url
        self._found: dict[str, Finding] = {}
        self._path: list[str] = []
        self._titles = 0
        self._parser = expat.ParserCreate(namespace_separator=" ")
        self._parser.buffer_text = True
        self._parser.StartDoctypeDeclHandler = self._start_doctype
        self._parser.StartElementHandler = self._start
        self._parser.EndElementHandler = self._end
        self._parser.CharacterDataHandler = self._text
        self._parser.ProcessingInstructionHandler = self._instruction

    def read(self, svg: bytes) -> Iterator[Finding]:
        """Read the file, and yield its faults."""
        try:
            self._parser.Parse(svg, True)
        except _Stop:
            pass
        except (expat.ExpatError, ValueError, LookupError) as fault:
            self._found = {}
            shown = str(fault)[:80]
            self._note(
                make_finding("bimi.logo-not-svg", case="malformed", url=self._url, fault=shown)
            )
        else:
            self._check_title()
            self.is_safe = HARMFUL.isdisjoint(self._found)
        yield from self._found.values()

    def _note(self, finding: Finding) -> None:
        self._found.setdefault(finding.id, finding)

    def _start_doctype(self, *_: object) -> None:
        self._note(make_finding("bimi.svg-doctype", url=self._url))
        raise _Stop

    def _instruction(self, target: str, _: str) -> None:
        self._external(f"the processing instruction {target[:40]}")

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        space, _, local = name.rpartition(" ")
        if not self._path:
            self._check_root(space, local, attributes)
        elif len(self._path) >= MAX_DEPTH:
            self._note(
                make_finding("bimi.logo-not-svg", case="nested", url=self._url, most=MAX_DEPTH)
            )
            raise _Stop
        self._check_element(space, local)
        for key, value in attributes.items():
            self._check_attribute(key, value)
        if space == _SVG and local == "title" and len(self._path) == 1:
            self._titles += 1
        self._path.append(local if space == _SVG else "")

    def _end(self, _: str) -> None:
        self._path.pop()

    def _text(self, text: str) -> None:
        if self._path == ["svg", "title"] and self._titles == 1:
            self.title = (self.title + text)[: MAX_TITLE * 4]
        if self._path and self._path[-1] == "style":
            self._check_css(text)

    def _check_root(self, space: str, local: str, attributes: dict[str, str]) -> None:
        if (space, local) != (_SVG, "svg"):
            what = f"<{local[:40]}>" if local != "svg" else "svg without its namespace (xmlns)"
            self._note(make_finding("bimi.logo-not-svg", url=self._url, what=what))
            raise _Stop
        profile, version = attributes.get("baseProfile", ""), attributes.get("version", "")
        if profile != "tiny-ps":
            self._note(make_finding("bimi.svg-profile", url=self._url, profile=profile[:40]))
        if version != "1.2":
            self._note(make_finding("bimi.svg-version", url=self._url, version=version[:40]))
        if "x" in attributes or "y" in attributes:
            self._note(make_finding("bimi.svg-root", url=self._url))
        self._check_square(attributes.get("viewBox"))

    def _check_square(self, box: str | None) -> None:
        numbers = _read_numbers(box or "")
        if len(numbers) != 4 or min(numbers[2:]) <= 0:
            fault = "no viewBox" if box is None else f'the viewBox "{box[:40]}", which is not valid'
        elif abs(numbers[2] - numbers[3]) > TOLERANCE * max(numbers[2:]):
            fault = f"a viewBox of {numbers[2]:g} by {numbers[3]:g}, which is not square"
        else:
            return
        self._note(make_finding("bimi.svg-not-square", url=self._url, fault=fault))

    def _check_element(self, space: str, local: str) -> None:
        if space != _SVG:
            if "metadata" not in self._path or not space:
                self._element(f"<{local[:40]}>, which is not part of SVG")
        elif local in SCRIPTS:
            self._script(f"<{local}>")
        elif local in ANIMATIONS:
            self._note(make_finding("bimi.svg-animation", url=self._url, local=local))
        elif local in RASTERS:
            self._raster(f"<{local}>")
        elif local == "style":
            self._style("<style>")
        elif local not in ALLOWED:
            self._element(f"<{local[:40]}>")

    def _check_attribute(self, key: str, value: str) -> None:
        space, _, local = key.rpartition(" ")
        lower, text = local.lower(), value.strip()
        if lower.startswith("on"):
            self._script(f"the attribute {local[:40]}")
        elif lower == "href":
            self._check_reference(text)
        elif space == _XML and lower == "base":
            self._external("the attribute xml:base")
        elif not space and lower == "style":
            self._style("the attribute style")
        self._check_css(value)

    def _check_reference(self, text: str) -> None:
        scheme = "".join(text.split()).lower()
        if scheme.startswith("javascript:"):
            self._script("a javascript: URL")
        elif scheme.startswith("data:"):
            self._raster("a data: URL")
        elif not scheme.startswith("#"):
            self._external(f'"{text[:60]}"')

    def _check_css(self, text: str) -> None:
        for match in _CSS_URL.finditer(text):
            self._check_reference(match[1])
        if _IMPORT.search(text):
            self._external("a CSS import or escape")

    def _check_title(self) -> None:
        title = " ".join(self.title.split())
        self.title = title[:MAX_TITLE]
        if not title:
            self._note(make_finding("bimi.svg-title", url=self._url))
        elif len(title) > MAX_TITLE:
            self._note(make_finding("bimi.svg-title-long", url=self._url, max_title=MAX_TITLE))

    def _script(self, what: str) -> None:
        self._note(make_finding("bimi.svg-script", url=self._url, what=what))

    def _external(self, what: str) -> None:
        self._note(make_finding("bimi.svg-external", url=self._url, what=what))

    def _raster(self, what: str) -> None:
        self._note(make_finding("bimi.svg-raster", url=self._url, what=what))

    def _style(self, what: str) -> None:
        self._note(make_finding("bimi.svg-style", url=self._url, what=what))

    def _element(self, what: str) -> None:
        self._note(make_finding("bimi.svg-element", url=self._url, what=what))


def _read_numbers(text: str) -> list[float]:
    """Return the numbers of a viewBox, or an empty list if one of them is malformed."""
    words = text[:200].replace(",", " ").split()
    try:
        return [float(word) for word in words if _NUMBER.fullmatch(word)] if len(words) == 4 else []
    except ValueError:
        return []

"""Data of caniemail.com about mail clients, and a scanner for the style sheets they apply to.

``scripts/renew-caniemail`` updates ``caniemail.json``. The title of a feature says where it occurs
("px unit", ":hover", "<hr> element"); ``features.toml`` says it for the others.

A style sheet is split into rules, conditions, declarations and comments with their offsets. A
parser such as tinycss2 makes a token of every word and takes 0.75 us for each character, so the
styles of one mail would take as long as all its other checks together. Here one regular expression
steps from mark to mark by the rules of CSS Syntax 3: strings, comments, ``url()`` and brackets
hide the marks in them, and an unclosed construct runs to the end. Repeated text is analysed once.
Everything takes time linear in the text.
"""

import re
import tomllib
from collections import defaultdict
from collections.abc import Iterator, Mapping
from enum import Enum
from functools import cache
from importlib.resources import files
from typing import Any

import msgspec
from msgspec import Struct

from mailcheck.checks.content.html_tree import Element

SUPPORTED, PARTIAL, UNSUPPORTED, UNKNOWN, UNTESTED = "yanu."
"""Letters of ``Feature.support``."""


class Feature(Struct, frozen=True):
    """A feature; ``support`` has a letter for each client.

    ``noted`` maps clients to the numbers of the ``notes`` about them. ``tested`` is the day of
    the last test.
    """

    slug: str
    title: str
    tested: str
    support: str
    notes: Mapping[str, str]
    noted: Mapping[str, tuple[int, ...]]


class Facts(Struct, frozen=True):
    """All data; ``date`` is its date, and ``clients`` are pairs of family and platform."""

    source: str
    licence: str
    date: str
    families: Mapping[str, str]
    platforms: Mapping[str, str]
    clients: tuple[str, ...]
    features: tuple[Feature, ...]

    def client_name(self, client: str) -> str:
        """Return the name of a client, such as ``Outlook (Windows)``."""
        family, _, platform = client.partition(".")
        return f"{self.families[family]} ({self.platforms[platform]})"


@cache
def load_facts() -> Facts:
    """Load the data; only in a child process, or in a short-lived program."""
    text = files(__package__).joinpath("caniemail.json").read_bytes()
    return msgspec.json.decode(text, type=Facts)


Slugs = tuple[str, ...]
Table = Mapping[str, Slugs]


class Rules(Struct, frozen=True):
    """Tables that map properties, values, elements and so on to the slugs of features.

    ``values`` and ``elements_with`` map the name of a property or element to the start of its
    value, or of the value of an attribute.
    """

    properties: Table
    values: Mapping[str, Table]
    words: Table
    functions: Table
    units: Table
    at_rules: Table
    media: Table
    pseudo: Table
    style_sheet: Table
    elements: Table
    attributes: Table
    elements_with: Mapping[str, Mapping[tuple[str, str], Slugs]]
    images: Table
    not_judged: Mapping[str, str]


_TITLES = (
    ("properties", "css", re.compile(r"([a-z-]+)(?: property| shorthand)?")),
    ("units", "css", re.compile(r"([a-z]+) unit")),
    ("functions", "css", re.compile(r"([a-z-]+)\(\)")),
    ("pseudo", "css", re.compile(r"(::?[a-z-]+)(?:\(\))?")),
    ("elements", "html", re.compile(r"<(\w+)>(?: element)?")),
    ("attributes", "html", re.compile(r"([a-z-]+) attribute")),
)


@cache
def load_rules() -> Rules:
    """Build the rules from the titles of the features and from the table."""
    table = tomllib.loads(files(__package__).joinpath("features.toml").read_text("utf-8"))
    named = {slug for section in table.values() for slug in section}
    found: dict[str, dict[Any, list[str]]] = defaultdict(lambda: defaultdict(list))
    for section, key, slug in _listed(table):
        found[section][key].append(slug)
    for feature in load_facts().features:
        if feature.slug not in named:
            section, key = _by_title(feature)
            found[section][key].append(feature.slug)
    tables: dict[str, Any] = {
        section: {key: tuple(slugs) for key, slugs in keys.items()}
        for section, keys in found.items()
    }
    for section in ("values", "elements_with"):
        nested: dict[str, dict[Any, Slugs]] = defaultdict(dict)
        for (name, wanted), slugs in tables[section].items():
            nested[name][wanted] = slugs
        tables[section] = dict(nested)
    return Rules(**tables, not_judged=table["not_judged"])


def _listed(table: Mapping[str, Any]) -> Iterator[tuple[str, Any, str]]:
    """Yield section, key and slug of every entry in the table."""
    for section, slugs in table.items():
        if section == "not_judged":
            continue
        for slug, keys in slugs.items():
            if section == "values":
                pairs = [(name, word) for name, words in keys.items() for word in words]
                yield from ((section, pair, slug) for pair in pairs)
            elif section == "elements_with":
                for element, written in keys.items():
                    attribute, _, start = written.partition("=")
                    yield section, (element, (attribute, start)), slug
            else:
                yield from ((section, key, slug) for key in keys)


def _by_title(feature: Feature) -> tuple[str, str]:
    """Return where a feature occurs according to its title.

    :raises LookupError: the title does not say it, so the table must.
    """
    for section, category, pattern in _TITLES:
        match = pattern.fullmatch(feature.title)
        if match and feature.slug.startswith(f"{category}-"):
            return section, match[1]
    raise LookupError(f"features.toml has no rule for {feature.slug} ({feature.title})")


MAX_CSS = 256 * 1024
"""Maximum number of characters of a style sheet that are read; Gmail reads 16 KiB."""

MAX_PIECE = 4_000
"""Maximum number of characters of one selector or value, without data in a url()."""

_MARK = re.compile(
    r"/\*.*?(?:\*/|\Z)|\"(?>(?:[^\"\\\n]|\\.)*)\"?|'(?>(?:[^'\\\n]|\\.)*)'?"
    r"|\burl\(\s*+[^\"'\s)][^)]*+\)?|\\.|[(){}\[\];]",
    re.DOTALL | re.IGNORECASE,
)
_HIDDEN = re.compile(
    r"/\*.*?(?:\*/|\Z)|<!--|-->|\"(?>(?:[^\"\\\n]|\\.)*)\"?|'(?>(?:[^'\\\n]|\\.)*)'?"
    r"|\burl\(\s*+[^\"'\s)][^)]*+\)?",
    re.DOTALL | re.IGNORECASE,
)
_FUNCTION = re.compile(r"([\w-]+)\(")
_UNIT = re.compile(r"(?<![\w#.-])[+-]?(?:[0-9]++(?:\.[0-9]*+)?|\.[0-9]++)([a-z]+|%)")
_WORD = re.compile(r"[a-z][a-z-]*")
_IMPORTANT = re.compile(r"!\s*important")
_ATTRIBUTE = re.compile(r"\[[^\]]*+\]?")
_PSEUDO = re.compile(r"(::?)([a-z-]+)")
_ARGUMENT = re.compile(r"\([^()]*+\)")
_COMBINATOR = re.compile(" ?([>+~]) ?| ")
_CLASS = re.compile(r"\.[\w-]")

_FRAMES = frozenset(("keyframes", "-webkit-keyframes", "-moz-keyframes", "-o-keyframes"))
_OLD_ELEMENTS = frozenset(("after", "before", "first-letter", "first-line"))
"""Pseudo-elements that may be written with one colon (Selectors 4, 3.6)."""


def is_linked_sheet(element: Element) -> bool:
    """Return whether an element links to an external style sheet."""
    if element.name != "link" or "href" not in element.attributes:
        return False
    return "stylesheet" in element.attributes.get("rel", "").lower()


class Kind(Enum):
    """Kind of a piece of a style sheet."""

    SELECTOR = "selector"
    NESTED = "a rule in a rule"
    AT_RULE = "at-rule"
    DECLARATION = "declaration"
    COMMENT = "comment"


class Piece(Struct, frozen=True):
    """A piece of a style sheet; the text of an at-rule has no "@", ``position`` is its offset."""

    kind: Kind
    text: str
    position: int


class _Block(Enum):
    RULE = 0
    FRAMES = 1
    OTHER = 2


def read_style_sheet(text: str) -> Iterator[Piece]:
    """Split the beginning of a style sheet into pieces; any text is accepted."""
    text = text[:MAX_CSS]
    blocks: list[_Block] = []
    rules = brackets = start = 0
    for match in _MARK.finditer(text):
        mark = match.group()
        if mark.startswith("/*"):
            yield Piece(Kind.COMMENT, "", match.start())
        elif mark in "([":
            brackets += 1
        elif mark in ")]":
            brackets = max(0, brackets - 1)
        elif brackets or mark not in "{};":
            continue
        else:
            before = text[start : match.start()]
            position = start + len(before) - len(before.lstrip())
            start = match.end()
            if mark == "{":
                yield from _open(before, position, blocks, is_nested=rules > 0)
                rules += blocks[-1] is _Block.RULE
            else:
                yield from _end(before, position, blocks)
                if mark == "}" and blocks:
                    rules -= blocks.pop() is _Block.RULE
    yield from _end(text[start:], start, blocks)


def _open(before: str, position: int, blocks: list[_Block], *, is_nested: bool) -> Iterator[Piece]:
    """Begin a block, and yield its selector or at-rule; a keyframe has neither."""
    prelude = _plain(before)
    if prelude.startswith("@"):
        blocks.append(_Block.FRAMES if _name_of(prelude) in _FRAMES else _Block.OTHER)
        yield Piece(Kind.AT_RULE, prelude[1:], position)
    elif blocks and blocks[-1] is _Block.FRAMES:
        blocks.append(_Block.OTHER)
    else:
        blocks.append(_Block.RULE)
        yield Piece(Kind.SELECTOR, prelude, position)
        if is_nested:
            yield Piece(Kind.NESTED, prelude, position)


def _end(before: str, position: int, blocks: list[_Block]) -> Iterator[Piece]:
    """Yield the piece that ends at a ";" or at the end of a block."""
    text = before.strip()
    if text.startswith("@"):
        yield Piece(Kind.AT_RULE, _plain(text)[1:], position)
    elif blocks and ":" in text:
        yield Piece(Kind.DECLARATION, text, position)


def _plain(text: str) -> str:
    """Return a piece in lower case without strings, comments and URLs."""
    return _HIDDEN.sub(" ", text[:MAX_PIECE]).lower().strip()


def _name_of(prelude: str) -> str:
    """Return the name of an at-rule."""
    return re.split(r"[\s(]", prelude.removeprefix("@"), maxsplit=1)[0]


class CssFeatures:
    """Finds the features in the CSS of one mail; repeated text is analysed once."""

    def __init__(self, rules: Rules) -> None:
        self._rules = rules
        self._known: dict[tuple[Kind, str], frozenset[str]] = {}
        self._styles: dict[str, frozenset[str]] = {}

    def of_style(self, text: str) -> frozenset[str]:
        """Return the features of a ``style`` attribute."""
        found = self._styles.get(text)
        if found is None:
            pieces = read_style_sheet("{" + text)
            found = frozenset(slug for piece in pieces for slug in self.of_piece(piece))
            self._styles[text] = found
        return found

    def of_piece(self, piece: Piece) -> frozenset[str]:
        """Return the features of a piece of a style sheet."""
        key = piece.kind, piece.text
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = frozenset(self._read(piece))
        return found

    def _read(self, piece: Piece) -> Iterator[str]:
        if piece.kind is Kind.DECLARATION:
            yield from self._of_declaration(piece.text)
        elif piece.kind is Kind.SELECTOR:
            yield from self._of_selector(piece.text)
        elif piece.kind is Kind.AT_RULE:
            name = _name_of(piece.text)
            yield from self._rules.at_rules.get(name, ())
            if name == "media":
                # Names such as -webkit-min-device-pixel-ratio begin with a hyphen.
                words = re.findall(r"-?[a-z][a-z-]*", piece.text)
                yield from _look_up(self._rules.media, words)
        elif piece.kind is Kind.NESTED:
            yield from self._rules.style_sheet["nesting"]
        else:
            yield from self._rules.style_sheet["comment"]

    def _of_declaration(self, text: str) -> Iterator[str]:
        name, _, value = _plain(text).partition(":")
        name, value = name.strip(), value.strip()
        rules = self._rules
        yield from rules.properties.get("--" if name.startswith("--") else name, ())
        words = _WORD.findall(value)
        if name in rules.values and words:
            yield from rules.values[name].get(words[0], ())
        yield from _look_up(rules.words, words)
        yield from _look_up(rules.functions, _FUNCTION.findall(value))
        yield from _look_up(rules.units, _UNIT.findall(value))
        if "!" in value and _IMPORTANT.search(value):
            yield from rules.words["!important"]

    def _of_selector(self, text: str) -> Iterator[str]:
        parts = self._rules.style_sheet
        plain = _ATTRIBUTE.sub("", text)
        if plain != text:
            yield from parts["[]"]
        for colons, name in _PSEUDO.findall(plain):
            mark = "::" if name in _OLD_ELEMENTS else colons
            yield from self._rules.pseudo.get(mark + name, ())
        for _ in range(4):  # nested brackets
            plain = _ARGUMENT.sub("", plain)
        alone = _PSEUDO.sub("", plain).split(",")
        if len(alone) > 1:
            yield from parts[","]
        for lone in alone:
            yield from self._of_compounds(" ".join(lone.split()))

    def _of_compounds(self, selector: str) -> Iterator[str]:
        parts = self._rules.style_sheet
        for match in _COMBINATOR.finditer(selector):
            yield from parts[match[1] or " "]
        for compound in _COMBINATOR.sub(" ", selector).split():
            classes = len(_CLASS.findall(compound))
            if classes:
                yield from parts["."]
            if classes > 1:
                yield from parts[".."]
            if "#" in compound:
                yield from parts["#"]
            if compound[0] == "*":
                yield from parts["*"]
            elif compound[0].isalpha():
                yield from parts["type"]


def _look_up(table: Mapping[str, Slugs], names: list[str]) -> Iterator[str]:
    for name in names:
        if name in table:
            yield from table[name]

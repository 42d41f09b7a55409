"""What is known of mail clients, and where each feature is found: the facts of caniemail.com.

``caniemail.json`` is renewed by ``scripts/renew-caniemail``. Where a feature is found its title
says ("px unit", ":hover", "<hr> element"); for the others ``features.toml`` does.
"""

import re
import tomllib
from collections import defaultdict
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.resources import files
from typing import Any

import msgspec
from msgspec import Struct

SUPPORTED, PARTIAL, UNSUPPORTED, UNKNOWN, UNTESTED = "yanu."
"""The letters of ``Feature.support``."""


class Feature(Struct, frozen=True):
    """A feature: ``support`` has a letter for each client.

    ``noted`` gives for some clients the numbers of the ``notes`` about them; ``tested`` is the
    day of the last test.
    """

    slug: str
    title: str
    tested: str
    support: str
    notes: Mapping[str, str]
    noted: Mapping[str, tuple[int, ...]]


class Facts(Struct, frozen=True):
    """All that is known; ``date`` is that of the facts, ``clients`` are family and platform."""

    source: str
    licence: str
    date: str
    families: Mapping[str, str]
    platforms: Mapping[str, str]
    clients: tuple[str, ...]
    features: tuple[Feature, ...]

    def client_name(self, client: str) -> str:
        """Name a client: ``Outlook (Windows)``."""
        family, _, platform = client.partition(".")
        return f"{self.families[family]} ({self.platforms[platform]})"


@cache
def load_facts() -> Facts:
    """Read the facts: in a child process, or once in a program that ends soon."""
    text = files(__package__).joinpath("caniemail.json").read_bytes()
    return msgspec.json.decode(text, type=Facts)


Slugs = tuple[str, ...]
Table = Mapping[str, Slugs]


class Rules(Struct, frozen=True):
    """Where features are found; each table gives their slugs by what it is named after.

    ``values`` and ``elements_with`` give by the name of a property or element what its value, or
    the value of an attribute, begins with.
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
    """Put the rules together from the titles of the features and from the table."""
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
    """Give section, key and slug of everything in the table."""
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
    """Say where a feature is found by its title.

    :raises LookupError: the title does not say it, so the table has to.
    """
    for section, category, pattern in _TITLES:
        match = pattern.fullmatch(feature.title)
        if match and feature.slug.startswith(f"{category}-"):
            return section, match[1]
    raise LookupError(f"features.toml has no rule for {feature.slug} ({feature.title})")

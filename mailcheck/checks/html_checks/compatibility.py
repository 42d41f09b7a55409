"""Client support for the HTML and CSS features of a mail. The findings cost no points.

A finding is a feature that at least one tested client does not support, or supports only in part.
Content between ``<!--[if !mso]><!-->`` and ``<!--<![endif]-->`` is not meant for Outlook on
Windows, so that client is not judged by it. Content in a comment that only Outlook reads is
invisible to other clients and is not judged.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from types import MappingProxyType

from msgspec import Struct

from mailcheck.checks.content.html_tree import Element, HtmlTree
from mailcheck.checks.html_checks.css import (
    PARTIAL,
    SUPPORTED,
    UNKNOWN,
    UNSUPPORTED,
    UNTESTED,
    CssFeatures,
    Facts,
    Feature,
    Kind,
    Rules,
    is_linked_sheet,
    load_facts,
    load_rules,
    read_style_sheet,
)
from mailcheck.checks.html_checks.places import Lines
from mailcheck.checks.mail_checks import (
    ClientNote,
    Compatibility,
    FeatureFinding,
    NotJudged,
    NotJudgedKind,
    Support,
)
from mailcheck.checks.quality.html_reading import is_dot
from mailcheck.core.content import content_id_key

FAMILIES = {"gmail": "Gmail", "outlook": "Outlook", "apple-mail": "Apple Mail", "yahoo": "Yahoo"}
"""Client families that are reported separately; all others are one family."""

OTHERS = "Others"
MSO = "outlook.windows"
_NOT_MSO = re.compile(r"<!--\[if !mso\]>\s*<!(?:--\s*)?-->", re.IGNORECASE)
_END_OF_NOT_MSO = re.compile(r"<!--\s*<!\[endif\]-->", re.IGNORECASE)


_ENDINGS = MappingProxyType(
    {
        "image/avif": ".avif",
        "image/bmp": ".bmp",
        "image/gif": ".gif",
        "image/heic": ".heic",
        "image/heif": ".heif",
        "image/jpeg": ".jpg",
        "image/jpg": ".jpg",
        "image/pjpeg": ".jpg",
        "image/png": ".png",
        "image/svg+xml": ".svg",
        "image/tiff": ".tiff",
        "image/vnd.microsoft.icon": ".ico",
        "image/webp": ".webp",
        "image/x-icon": ".ico",
        "video/mp4": ".mp4",
    }
)
"""File name ending of an image, by the media type of a part of the mail."""

_FETCHED = (NotJudgedKind.STYLE_SHEET, "it is an external file, which is not fetched")
_FORMAT_HIDDEN = (
    NotJudgedKind.PICTURE,
    "its URL does not show its format, and it is not fetched",
)
_NO_SUCH_PART = (NotJudgedKind.PICTURE, "no part of the mail has its Content-ID")
_NO_PICTURE = (NotJudgedKind.PICTURE, "the part of the mail that it names has an unknown format")


_Unseen = dict[tuple[NotJudgedKind, str], list[int]]


class _Found(Struct):
    """Positions of a feature; ``is_for_mso`` if Outlook on Windows reads some of them."""

    positions: list[int]
    is_for_mso: bool = False


def judge_compatibility(
    markup: str, tree: HtmlTree, lines: Lines, media_types: Mapping[str, str]
) -> Compatibility:
    """Judge a page, given as source and as a tree. Never raises; takes linear time.

    :param media_types: media types of the parts that the page may show, by Content-ID key.
    """
    facts = load_facts()
    unseen: _Unseen = defaultdict(list)
    found: dict[str, _Found] = defaultdict(lambda: _Found([]))
    hidden = _find_not_mso(markup)
    for slug, position in _list_features(tree, _Pictures(media_types, unseen)):
        one = found[slug]
        one.positions.append(position)
        is_hidden = any(start <= position < end for start, end in hidden)
        one.is_for_mso = one.is_for_mso or not is_hidden
    features = [feature for feature in facts.features if feature.slug in found]
    support = {
        feature.slug: _support_of(feature, found[feature.slug], facts) for feature in features
    }
    findings = [
        _finding(feature, support[feature.slug], found[feature.slug], facts, lines)
        for feature in features
        if {PARTIAL, UNSUPPORTED} & set(support[feature.slug])
    ]
    findings.sort(key=lambda one: (-_badness(one), one.slug))
    return Compatibility(
        facts.source,
        facts.licence,
        facts.date,
        _judge_clients(support, facts),
        tuple(findings),
        not_judged=tuple(
            NotJudged(what, reason, lines.places(positions), len(positions))
            for (what, reason), positions in unseen.items()
        ),
        feature_count=len(features),
    )


class _Pictures(Struct, frozen=True):
    """Finds the formats of images; ``unseen`` collects images that would have to be fetched."""

    media_types: Mapping[str, str]
    unseen: _Unseen

    def address_of(self, element: Element) -> str:
        """Return a URL that shows the format, or the file name ending of a part of the mail."""
        address = element.attributes["src"].strip()[:2_000]
        if address[:4].lower() != "cid:":
            return address.lower()
        media_type = self.media_types.get(content_id_key(address[4:]))
        ending = _ENDINGS.get(media_type or "", "")
        if not ending:
            problem = _NO_SUCH_PART if media_type is None else _NO_PICTURE
            self.unseen[problem].append(element.position)
        return ending


def _badness(finding: FeatureFinding) -> float:
    """Return the share of clients without support; partial support counts half."""
    known = sum(
        support.supported + support.partial + support.unsupported for support in finding.support
    )
    return (len(finding.unsupported) + len(finding.partial) / 2) / max(1, known)


MOST_RANGES = 50
"""Maximum number of ranges for all clients but Outlook; templates have about five."""


def _find_not_mso(markup: str) -> list[tuple[int, int]]:
    """Find the ranges that Outlook on Windows does not read; an unclosed one runs to the end."""
    ranges: list[tuple[int, int]] = []
    position = 0
    while len(ranges) < MOST_RANGES and (begin := _NOT_MSO.search(markup, position)):
        end = _END_OF_NOT_MSO.search(markup, begin.end())
        position = end.end() if end else len(markup)
        ranges.append((begin.start(), position))
    return ranges


def _list_features(tree: HtmlTree, pictures: _Pictures) -> Iterator[tuple[str, int]]:
    rules = load_rules()
    css = CssFeatures(rules)
    for node in tree.nodes:
        if isinstance(node, Element) and not node.is_copy and node.position >= 0:
            for slug in _features_of_element(node, rules, css, pictures):
                yield slug, node.position
    for sheet in tree.style_sheets:
        for piece in read_style_sheet(sheet.text):
            if piece.kind is Kind.AT_RULE and piece.text.lower().startswith("import"):
                pictures.unseen[_FETCHED].append(sheet.position + piece.position)
            for slug in css.of_piece(piece):
                yield slug, sheet.position + piece.position


def _features_of_element(
    element: Element, rules: Rules, css: CssFeatures, pictures: _Pictures
) -> Iterator[str]:
    name, attributes = element.name, element.attributes
    yield from rules.elements.get(name, ())
    for attribute, value in attributes.items():
        if attribute in rules.attributes:
            yield from rules.attributes[attribute]
        elif attribute == "style":
            yield from css.of_style(value)
    for (attribute, start), slugs in rules.elements_with.get(name, {}).items():
        if attributes.get(attribute, "").strip().lower().startswith(start):
            yield from slugs
    if name == "img" and "src" in attributes:
        yield from _features_of_image(element, rules, pictures)
    elif is_linked_sheet(element):
        pictures.unseen[_FETCHED].append(element.position)


def _features_of_image(element: Element, rules: Rules, pictures: _Pictures) -> Iterator[str]:
    address = pictures.address_of(element)
    path = re.split("[?#]", address, maxsplit=1)[0]
    is_known = not address or is_dot(element.attributes)
    for mark, slugs in rules.images.items():
        if path.endswith(mark) if mark.startswith(".") else address.startswith(mark):
            is_known = True
            yield from slugs
    if not is_known:
        pictures.unseen[_FORMAT_HIDDEN].append(element.position)


def _support_of(feature: Feature, found: _Found, facts: Facts) -> str:
    """Return a letter for each client. A client that does not read the feature is untested."""
    if found.is_for_mso or MSO not in facts.clients:
        return feature.support
    index = facts.clients.index(MSO)
    return feature.support[:index] + UNTESTED + feature.support[index + 1 :]


def _finding(
    feature: Feature, support: str, found: _Found, facts: Facts, lines: Lines
) -> FeatureFinding:
    letters = dict(zip(facts.clients, support, strict=True))
    by_letter: dict[str, list[str]] = defaultdict(list)
    for client, letter in letters.items():
        by_letter[letter].append(client)
    lacking = {*by_letter[UNSUPPORTED], *by_letter[PARTIAL]}
    concerned = [client for client in feature.noted if client in lacking]
    return FeatureFinding(
        slug=feature.slug,
        title=feature.title,
        tested=feature.tested,
        support=_count_families(letters),
        unsupported=tuple(map(facts.client_name, by_letter[UNSUPPORTED])),
        partial=tuple(map(facts.client_name, by_letter[PARTIAL])),
        notes=tuple(
            ClientNote(text, tuple(map(facts.client_name, clients)))
            for number, text in feature.notes.items()
            if (clients := [c for c in concerned if int(number) in feature.noted[c]])
        ),
        places=lines.places(found.positions),
        count=len(found.positions),
    )


def _judge_clients(support: Mapping[str, str], facts: Facts) -> tuple[Support, ...]:
    """Count the clients of each family by their worst support for a feature of the mail."""
    worst: dict[str, str] = {}
    for index, client in enumerate(facts.clients):
        letters = {letters_of_client[index] for letters_of_client in support.values()} - {UNTESTED}
        order = (UNSUPPORTED, PARTIAL, SUPPORTED, UNKNOWN)
        worst[client] = next((letter for letter in order if letter in letters), UNKNOWN)
    return _count_families(worst if support else dict.fromkeys(facts.clients, SUPPORTED))


def _count_families(letters: Mapping[str, str]) -> tuple[Support, ...]:
    counts: Counter[tuple[str, str]] = Counter()
    for client, letter in letters.items():
        family = FAMILIES.get(client.partition(".")[0], OTHERS)
        counts[family, UNKNOWN if letter == UNTESTED else letter] += 1
    order = (SUPPORTED, PARTIAL, UNSUPPORTED, UNKNOWN)
    families = (*FAMILIES.values(), OTHERS)
    return tuple(Support(name, *(counts[name, letter] for letter in order)) for name in families)

"""The parts of a mail (text, HTML, attachments) and the findings about them."""

import re
from collections.abc import Iterator

from mailcheck.checks.content.bodies import clean_filename, list_attachments
from mailcheck.checks.content.decoding import flatten_controls
from mailcheck.checks.content.structure import Entity
from mailcheck.checks.findings import ChargedFinding
from mailcheck.checks.quality.facts import MailFacts, PartFacts
from mailcheck.checks.quality.hosts import host_list
from mailcheck.checks.quality.html import judge_html
from mailcheck.checks.quality.wording import count_of, enumerate_some
from mailcheck.checks.weights import charge

MAX_WORDS_TEXT = 64 * 1024
"""Maximum number of characters of text, and of HTML, that are compared and searched for
placeholders."""

MIN_WORDS = 20
"""Minimum number of different words in HTML for a comparison; with fewer it is meaningless."""

MAX_SHOWN = 20
"""Maximum number of examples of each kind."""

MAX_LABEL = 100
"""Maximum number of characters of a type, charset or encoding. The longest registered type has
88."""

_WORD = re.compile(r"\w++")
_PLACEHOLDER = re.compile(
    # Template syntax: {{ name }}, {% if %}, *|NAME|*, %%name%%, <%= name %>, ${name}, [[name]],
    # %NAME%. The lengths are bounded, so that each attempt to match costs little.
    r"\{\{[\w .|'\"-]{1,60}\}\}|\{%[^%\n]{1,80}%\}|\*\|[\w:]{1,40}\|\*|%%[\w ]{1,40}%%"
    r"|<%=?[^%\n]{1,60}%>|\$\{[\w.]{1,40}\}|\[\[[\w .]{1,40}\]\]|(?<![%\w])%[A-Z_]{3,30}%(?!\w)"
)


def list_parts(root: Entity) -> tuple[PartFacts, ...]:
    """List the parts without subparts, in document order."""
    return tuple(_walk(root, 0))


def _walk(entity: Entity, depth: int) -> Iterator[PartFacts]:
    for part in entity.parts:
        yield from _walk(part, depth + 1)
    if not entity.parts:
        yield PartFacts(
            content_type=entity.content_type[:MAX_LABEL],
            charset=_label(entity.parameters.get("charset", "")),
            encoding=_label(entity.encoding),
            disposition=_label(entity.disposition),
            filename=clean_filename(entity.filename),
            size=entity.body[1] - entity.body[0],
            depth=depth,
        )


def _label(text: str) -> str:
    return flatten_controls(text[:MAX_LABEL]).lower()


def has_html_first(root: Entity) -> bool:
    """Return whether an HTML alternative comes before its text; the last one is preferred."""
    if root.content_type == "multipart/alternative":
        types = [_first_leaf(part).content_type for part in root.parts]
        if "text/html" in types and "text/plain" in types[types.index("text/html") :]:
            return True
    return any(has_html_first(part) for part in root.parts)


def _first_leaf(entity: Entity) -> Entity:
    while entity.parts:
        entity = entity.parts[0]
    return entity


def find_risky_attachments(root: Entity) -> tuple[str, ...]:
    """Return the names of attachments of types that large receivers reject or distrust."""
    names = (clean_filename(entity.filename) for entity in list_attachments(root))
    risky = (name for name in names if _ending(name) in host_list("risky_endings"))
    return tuple(dict.fromkeys(risky))[:MAX_SHOWN]


def _ending(filename: str) -> str:
    _, dot, ending = filename.rpartition(".")
    return ending.lower() if dot else ""


def find_placeholders(*texts: str) -> tuple[str, ...]:
    """Find template placeholders that were not replaced."""
    found = (m[0] for text in texts for m in _PLACEHOLDER.finditer(text[:MAX_WORDS_TEXT]))
    return tuple(dict.fromkeys(found))[:MAX_SHOWN]


def compare_words(text: str, visible: str) -> int | None:
    """Return the percentage of the HTML's visible words that the text contains, or `None`."""
    shown = set(_WORD.findall(visible[:MAX_WORDS_TEXT].lower()))
    if len(shown) < MIN_WORDS or not text.strip():
        return None
    return 100 * len(shown & set(_WORD.findall(text[:MAX_WORDS_TEXT].lower()))) // len(shown)


MIN_OVERLAP = 30
"""Minimum percentage of the HTML's words in the text part; different footers leave 60 or more."""

LARGE_MAIL = 10 * 1024 * 1024
"""Octets from which many servers reject a mail; Postfix's default limit is 10 MB."""


def judge_content(facts: MailFacts) -> Iterator[ChargedFinding]:
    """Yield the findings about the parts of a mail and its HTML."""
    yield from _judge_text(facts)
    if facts.is_html_first:
        yield charge("content.html-first")
    if facts.problems:
        yield charge("content.broken-structure", problems=enumerate_some(facts.problems))
    if facts.risky_attachments:
        yield charge(
            "content.risky-attachment", risky_attachments=enumerate_some(facts.risky_attachments)
        )
    if facts.long_lines:
        yield charge(
            "content.long-lines",
            lines=count_of(facts.long_lines, "line"),
            longest_line=facts.longest_line,
        )
    if facts.size > LARGE_MAIL:
        yield charge("content.large", mebibytes=facts.size // 1024 // 1024)
    if facts.html is not None:
        yield from judge_html(facts.html)
    if facts.placeholders:
        yield charge("content.placeholder", placeholders=enumerate_some(facts.placeholders))


def _judge_text(facts: MailFacts) -> Iterator[ChargedFinding]:
    if facts.html is not None and not facts.has_text:
        yield charge("content.html-only")
        return
    has_content = facts.html is not None and (facts.html.visible_length or facts.html.image_count)
    if not facts.text_size and not has_content and not facts.risky_attachments:
        yield charge("content.empty")
    elif not facts.text_size and facts.html is not None:
        yield charge("content.empty-text")
    elif facts.overlap is not None and facts.overlap < MIN_OVERLAP:
        yield charge("content.text-differs", overlap=facts.overlap)

"""The parts of a mail: their types, what is attached, and whether text and HTML agree."""

import re
from collections.abc import Iterator

from mailcheck.checks.content.bodies import clean_filename, list_attachments
from mailcheck.checks.content.decoding import flatten_controls
from mailcheck.checks.content.structure import Entity
from mailcheck.checks.mail_quality.facts import PartFacts
from mailcheck.checks.mail_quality.known_hosts import names_of

MAX_WORDS_TEXT = 64 * 1024
"""Characters of text and of HTML whose words are compared, and searched for placeholders."""

MIN_WORDS = 20
"""Different words that HTML must have to be compared with the text: fewer say nothing."""

MAX_SHOWN = 20
"""Examples kept of each kind."""

MAX_LABEL = 100
"""Characters kept of a type, charset or encoding; the longest registered type has 88."""

_WORD = re.compile(r"\w++")
_PLACEHOLDER = re.compile(
    # What mail programs fill in: {{ name }}, {% if %}, *|NAME|*, %%name%%, <%= name %>, ${name},
    # [[name]], %NAME%. Bounded, so that each start costs little.
    r"\{\{[\w .|'\"-]{1,60}\}\}|\{%[^%\n]{1,80}%\}|\*\|[\w:]{1,40}\|\*|%%[\w ]{1,40}%%"
    r"|<%=?[^%\n]{1,60}%>|\$\{[\w.]{1,40}\}|\[\[[\w .]{1,40}\]\]|(?<![%\w])%[A-Z_]{3,30}%(?!\w)"
)


def list_parts(root: Entity) -> tuple[PartFacts, ...]:
    """List the parts that hold no others, in document order."""
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
    """Tell whether an HTML alternative stands before its text: the last one is the best."""
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
    """Name the attached files of kinds that large receivers refuse or distrust."""
    names = (clean_filename(entity.filename) for entity in list_attachments(root))
    risky = (name for name in names if _ending(name) in names_of("risky_endings"))
    return tuple(dict.fromkeys(risky))[:MAX_SHOWN]


def _ending(filename: str) -> str:
    _, dot, ending = filename.rpartition(".")
    return ending.lower() if dot else ""


def find_placeholders(*texts: str) -> tuple[str, ...]:
    """Find what was to be replaced by a name or the like and was not."""
    found = (m[0] for text in texts for m in _PLACEHOLDER.finditer(text[:MAX_WORDS_TEXT]))
    return tuple(dict.fromkeys(found))[:MAX_SHOWN]


def compare_words(text: str, visible: str) -> int | None:
    """Give how many of the words that HTML shows the text has too, in percent."""
    shown = set(_WORD.findall(visible[:MAX_WORDS_TEXT].lower()))
    if len(shown) < MIN_WORDS or not text.strip():
        return None
    return 100 * len(shown & set(_WORD.findall(text[:MAX_WORDS_TEXT].lower()))) // len(shown)

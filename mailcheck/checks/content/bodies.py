"""Which parts of a mail are its text, its HTML and its attachments."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from mailcheck.checks.content.charsets import decode_text
from mailcheck.checks.content.structure import Entity
from mailcheck.checks.content.transfer import decode_transfer


@dataclass(frozen=True, slots=True)
class BodyPart:
    """A text part, decoded, with bare line feeds as line breaks.

    ``is_flowed`` and ``deletes_space`` are RFC 3676's format and DelSp.
    """

    text: str
    is_flowed: bool
    deletes_space: bool


@dataclass(slots=True)
class _Choice:
    texts: list[Entity] = field(default_factory=list)
    htmls: list[Entity] = field(default_factory=list)


def choose_bodies(root: Entity) -> tuple[list[Entity], list[Entity]]:
    """Choose the parts that are shown as text and as HTML, in document order.

    Of alternatives (RFC 2046 5.1.4) the first that has text and the last that
    has HTML count; the parts of any other multipart are shown one after another.
    """
    choice = _choose(root, is_alternative=True)
    return choice.texts, choice.htmls


def list_attachments(root: Entity) -> list[Entity]:
    """List all parts that are not a text to read, in document order."""
    return [
        leaf
        for leaf, is_alternative in _walk(root, is_alternative=True)
        if not _is_body(leaf, is_alternative)
    ]


def _choose(entity: Entity, *, is_alternative: bool) -> _Choice:
    choice = _Choice()
    if not entity.parts:
        if _is_body(entity, is_alternative):
            chosen = choice.htmls if entity.content_type == "text/html" else choice.texts
            chosen.append(entity)
        return choice
    alternatives = entity.content_type == "multipart/alternative"
    for part in entity.parts:
        found = _choose(part, is_alternative=alternatives)
        if alternatives:
            choice.texts = choice.texts or found.texts
            choice.htmls = found.htmls or choice.htmls
        else:
            choice.texts += found.texts
            choice.htmls += found.htmls
    return choice


def _walk(entity: Entity, *, is_alternative: bool) -> Iterator[tuple[Entity, bool]]:
    if not entity.parts:
        yield entity, is_alternative
    for part in entity.parts:
        yield from _walk(part, is_alternative=entity.content_type == "multipart/alternative")


def _is_body(leaf: Entity, is_alternative: bool) -> bool:
    """Tell whether a leaf is text to read.

    A file name makes it an attachment (Apple Mail sends those "inline"), but
    not where it is the whole mail or one of the alternatives.
    """
    if leaf.content_type not in ("text/plain", "text/html") or leaf.disposition == "attachment":
        return False
    return is_alternative or not leaf.filename


def read_body(raw_message: bytes, entity: Entity) -> tuple[BodyPart, list[str]]:
    """Decode a text part; gives also sentences about what was wrong with it."""
    data, transfer_problem = decode_transfer(raw_message[slice(*entity.body)], entity.encoding)
    text, charset_problem = decode_text(data, entity.parameters.get("charset", ""))
    part = BodyPart(
        text=text.replace("\r\n", "\n").replace("\r", "\n"),
        is_flowed=entity.parameters.get("format", "").lower() == "flowed",
        deletes_space=entity.parameters.get("delsp", "").lower() == "yes",
    )
    return part, [problem for problem in (transfer_problem, charset_problem) if problem]


def unflow(part: BodyPart) -> str:
    """Join the lines that format=flowed broke (RFC 3676 4.2), quoted ones included."""
    if not part.is_flowed:
        return part.text
    joined: list[str] = []
    is_open = False
    for line in part.text.split("\n"):
        content = line.lstrip(">")
        depth = len(line) - len(content)
        content = content.removeprefix(" ")
        if is_open and content != "-- ":
            joined.append(content)
        else:
            joined.append(("\n" if joined else "") + ">" * depth + content)
        is_open = content.endswith(" ") and content != "-- "
        if is_open and part.deletes_space:
            joined[-1] = joined[-1][:-1]
    return "".join(joined)

"""What mail programs and screen readers make of a message, as short as an agent needs it."""

from collections.abc import Iterator, Sequence
from typing import Annotated

from mailcheck.api.mcp.untrusted import clean
from mailcheck.api.shapes import Shape, Texts, said
from mailcheck.checks.mail_checks import MailChecks, Place, Support

MOST_FEATURES = 15
"""Features told of, those first that most programs lack; REST has them all."""

Lines = tuple[int, ...]


class Feature(Shape):
    """What the HTML uses and not every mail program supports."""

    title: str
    lines: Annotated[Lines, said("the first few, counted from 1")]
    programs: Annotated[Texts, said("families some of whose programs don't, or only in part")]


class Barrier(Shape):
    """What keeps some people from reading the HTML."""

    meaning: str
    fix: str
    lines: Lines


class ChecksInShort(Shape):
    """What is said of the HTML of a message; it changes no score."""

    has_html: bool
    compatibility: tuple[Feature, ...]
    accessibility: tuple[Barrier, ...]
    not_judged: Annotated[Texts, said("what was not to be seen, so that nothing is known of it")]
    left_out: Annotated[int, said("features beyond those told of", ge=0)]


def render_checks_in_short(found: MailChecks) -> ChecksInShort:
    """Render the checks; what a sender wrote is cleaned."""
    compatibility, accessibility = found.compatibility, found.accessibility
    features = compatibility.findings if compatibility is not None else ()
    unseen = [
        f"{one.count} {one.what.value}{'' if one.count == 1 else 's'}: {one.reason}"
        for one in (compatibility.not_judged if compatibility is not None else ())
    ]
    if found.is_cut:
        unseen.append("the end of the HTML: it is very long")
    shape = ChecksInShort(
        has_html=compatibility is not None,
        compatibility=tuple(
            Feature(one.title, _lines(one.places), tuple(_families(one.support)))
            for one in features[:MOST_FEATURES]
        ),
        accessibility=tuple(
            Barrier(one.finding.meaning, one.finding.fix, _lines(one.places))
            for one in (accessibility.findings if accessibility is not None else ())
        ),
        not_judged=tuple(unseen),
        left_out=max(0, len(features) - MOST_FEATURES),
    )
    return clean(shape)


def list_checks(found: ChecksInShort) -> Iterator[str]:
    """Write them as lines, to stand within a fence: they repeat words of the mail."""
    if not found.has_html:
        yield "No HTML: every mail program shows plain text."
        return
    for feature in found.compatibility:
        yield f"{feature.title}{_at(feature.lines)}: {'; '.join(feature.programs)}"
    if found.left_out:
        yield f"{found.left_out} more features that not every mail program supports"
    for barrier in found.accessibility:
        yield f"Accessibility{_at(barrier.lines)}: {barrier.meaning} Fix: {barrier.fix}"
    yield from (f"Not judged: {text}" for text in found.not_judged)
    if not (found.compatibility or found.accessibility or found.not_judged):
        yield "Every mail program that was tested shows it, and nothing keeps people from reading."


def _families(support: Sequence[Support]) -> Iterator[str]:
    for one in support:
        if one.unsupported or one.partial:
            tested = one.supported + one.partial + one.unsupported
            part = f", {one.partial} in part" if one.partial else ""
            yield f"{one.family} {one.supported} of {tested}{part}"


def _lines(places: Sequence[Place]) -> Lines:
    return tuple(place.line for place in places)


def _at(lines: Lines) -> str:
    return f" (line {', '.join(map(str, lines))})" if lines else ""

"""Numbers, times and missing names on pages: each kind has one filter, which all templates use."""

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from jinja2 import nodes

from mailcheck.core.instants import Instant
from mailcheck.web import dashboard
from mailcheck.web.dashboard import rendering
from mailcheck.web.dashboard.rendering import (
    NO_AUTHOR,
    NO_SUBJECT,
    NULL_SENDER,
    format_number,
    format_percent,
    render_moment,
    template_environment,
)
from tests.table import rows

FOLDER = Path(dashboard.__file__).parent
TEMPLATES = sorted(FOLDER.glob("templates/*.html"))
MODULES = [one for one in sorted(FOLDER.rglob("*.py")) if one != Path(rendering.__file__)]

NUMBERS = {"number", "counted", "octets", "percent"}
"""The filters of numbers. All of them format with `format_number`."""

MOMENT = "moment"
"""The filter of times."""

UNFORMATTED = {"format", "round", "int", "float", "length", "sum", "count", "string"}
"""Filters whose result is a number that is not formatted."""

COUNT = re.compile(r"(^|_)(count|total|size|index|score)$")
TIME = re.compile(r"(_at|(?<!found)At|[Dd]ate|Day|Until|moment)$")
TAG = re.compile(r"<(?=[A-Za-z/!])|>")


def shown_in_text(path: Path) -> Iterator[tuple[str, nodes.Expr]]:
    """Yield the values that a template shows in text and not within a tag, with their places."""
    environment = template_environment()
    is_in_tag = False
    pieces: list[str] | None = None
    for line, kind, value in environment.lex(path.read_text("utf-8")):
        if kind == "data":
            for mark in TAG.findall(value):
                is_in_tag = mark == "<"
        elif kind == "variable_begin":
            pieces = []
        elif kind == "variable_end" and pieces is not None:
            if not is_in_tag:
                output = environment.parse(f"{{{{{''.join(pieces)}}}}}").body[0]
                assert isinstance(output, nodes.Output)
                place = f"{path.name}:{line}: {''.join(pieces)}"
                yield from ((place, one) for one in values_of(output.nodes[0]))
            pieces = None
        elif pieces is not None:
            pieces.append(value)


def values_of(shown: nodes.Expr | None) -> Iterator[nodes.Expr]:
    """Yield the expressions that one of several may show."""
    if isinstance(shown, nodes.CondExpr):
        yield from values_of(shown.expr1)
        yield from values_of(shown.expr2)
    elif isinstance(shown, nodes.Or):
        yield from values_of(shown.left)
        yield from values_of(shown.right)
    elif isinstance(shown, nodes.And):
        yield from values_of(shown.right)
    elif isinstance(shown, nodes.Concat):
        for one in shown.nodes:
            yield from values_of(one)
    elif shown is not None:
        yield shown


def name_of(shown: nodes.Node) -> str:
    """Return the last name of an expression, such as ``total`` of ``list.total``."""
    if isinstance(shown, nodes.Getattr):
        return shown.attr
    if isinstance(shown, nodes.Getitem):
        return name_of(shown.node)
    return shown.name if isinstance(shown, nodes.Name) else ""


def names_before(filters: set[str]) -> set[str]:
    """Return the names of all values that templates give to some filters."""
    found = {
        name_of(one.node)
        for path in TEMPLATES
        for one in template_environment().parse(path.read_text("utf-8")).find_all(nodes.Filter)
        if one.name in filters and one.node is not None
    }
    return found - {"", "one"}


def is_unformatted(shown: nodes.Expr, counted: set[str]) -> bool:
    """Return whether a number or a time is shown without its filter."""
    if isinstance(shown, nodes.Filter):
        return shown.name in UNFORMATTED
    if isinstance(shown, nodes.BinExpr):
        return True
    name = name_of(shown)
    if isinstance(shown, nodes.Getattr) and name_of(shown.node) == "addresses":
        return False  # of the mailboxes for reports, which are named like counts
    is_item = isinstance(shown, nodes.Getitem) and not isinstance(shown.arg, nodes.Slice)
    return bool(TIME.search(name) or ((COUNT.search(name) or name in counted) and not is_item))


def test_numbers_and_times_in_templates_have_their_filter() -> None:
    """No template shows a number or a time that its filter does not format."""
    counted = names_before(NUMBERS)
    faults = {
        place
        for path in TEMPLATES
        for place, shown in shown_in_text(path)
        if is_unformatted(shown, counted)
    }
    assert not faults, "\n".join(sorted(faults))


@rows(*MODULES)
def test_modules_of_pages_format_no_numbers_and_times(path: Path) -> None:
    """Only the module of the filters formats numbers and times, and names what is missing."""
    text = path.read_text("utf-8")
    assert not re.findall(r":,\}|:\.\df\}|strftime\(|isoformat\(|\(no (?:subject|sender)\)", text)


@rows(*TEMPLATES)
def test_templates_name_no_missing_subject_or_sender(path: Path) -> None:
    """The words for a missing subject, author or envelope sender stand in no template."""
    assert not re.findall(r"\((?:no|null) (?:subject|sender)\)|&lt;&gt;", path.read_text("utf-8"))


def test_the_words_for_what_is_missing() -> None:
    """A missing subject, a missing author and the null reverse-path have three different names."""
    source = "{{ ''|subject }} {{ none|author }} {{ ''|reverse_path }} {{ 'a@b'|reverse_path }}"
    shown = template_environment().from_string(source, {"autoescape": False}).render()
    assert shown.replace("&lt;&gt;", "<>") == f"{NO_SUBJECT} {NO_AUTHOR} {NULL_SENDER} a@b"


@rows(
    (0, "0"), (1_200, "1,200"), (9.5, "9.5"), (10.0, "10.0"), (0.25, "0.25"), (1_234.5, "1,234.5")
)
def test_numbers(number: float, text: str) -> None:
    """Numbers have commas, and only the decimals that they need."""
    assert format_number(number) == text


@rows((0, "0 %"), (1, "100 %"), (0.999, "99 %"), (0.001, "1 %"), (0.5, "50 %"))
def test_shares(share: float, text: str) -> None:
    """A share that is not all is below 100 %, and one that is not none is above 0 %."""
    assert format_percent(share) == text


def test_times() -> None:
    """An instant, a time of an event, a text and a day have the same form."""
    minute = '<time datetime="{}">2026-11-29 10:30 UTC</time>'
    moment = datetime(2026, 11, 29, 10, 30, tzinfo=UTC)
    instant = Instant(int(moment.timestamp() * 1000))
    assert render_moment(instant) == minute.format("2026-11-29T10:30:00.000Z")
    assert render_moment(moment) == minute.format("2026-11-29T10:30:00Z")
    assert render_moment("2026-11-29T10:30:00Z") == minute.format("2026-11-29T10:30:00Z")
    assert render_moment("2026-11-29") == '<time datetime="2026-11-29">2026-11-29</time>'

"""The table of findings: each id is declared once, and searching for it leads to its code."""

import ast
import re
from functools import cache
from pathlib import Path
from string import Formatter

import pytest

import mailcheck
from mailcheck.checks.finding_row import BadTable, Row, by_name, severity_at
from mailcheck.checks.findings import Area, ChargedFinding, Finding, Severity
from mailcheck.checks.findings_table import (
    FINDINGS,
    ROWS,
    aliases_of,
    canonical_id,
    make_finding,
)
from mailcheck.checks.weights import MEASURED, price_finding, uncharged
from tests.table import rows

ROOT = Path(mailcheck.__file__).parent
PACKAGES = ("checks", "operations", "assembly", "probes")
MAKERS = ("make_finding", "charge", "undetermined", "several_records")
"""Functions whose first argument is the id of a finding."""

ID = re.compile(r"[a-z][a-z-]*(?:\.[a-z0-9-]+)+")


@cache
def read_sources() -> list[tuple[Path, ast.AST]]:
    """Return each node of the code that makes findings, and its file."""
    return [
        (path, node)
        for package in PACKAGES
        for path in sorted((ROOT / package).rglob("*.py"))
        if not path.name.startswith("findings_of_")
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
    ]


def calls() -> list[tuple[str, ast.Call]]:
    """Return each call of a named function, and its file and line."""
    return [
        (f"{path.relative_to(ROOT)}:{node.lineno}", node)
        for path, node in read_sources()
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    ]


def words() -> set[str]:
    """Return all strings of the code that makes findings."""
    return {
        node.value
        for _, node in read_sources()
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }


def test_ids_are_literals() -> None:
    """Code that creates a finding names its id as one literal, so that a search finds it."""
    pieces = (ast.JoinedStr, ast.BinOp, ast.Call)
    made = [
        place
        for place, node in calls()
        if place.startswith("checks/")
        and isinstance(node.func, ast.Name)
        and node.func.id in MAKERS
        and isinstance(node.args[0], pieces)
    ]
    assert not made


def test_every_row_is_found_somewhere() -> None:
    """Every finding of the table is used; only the doctor's undetermined ids are composed."""
    rows = {row.id for row in ROWS if not re.fullmatch(r"doctor\..*\.undetermined", row.id)}
    assert rows - words() == set()


def test_every_id_in_the_source_has_a_row() -> None:
    """Every text in the source that looks like the id of a finding is the id of a row."""
    areas = {row.id.partition(".")[0] for row in ROWS}
    ids = {word for word in words() if ID.fullmatch(word) and word.partition(".")[0] in areas}
    assert ids - {row.id for row in ROWS} == set()


def test_findings_are_made_from_the_table() -> None:
    """Only the table's own modules create findings and charged findings."""
    built = {
        place.partition(":")[0]
        for place, node in calls()
        if isinstance(node.func, ast.Name) and node.func.id in ("Finding", "ChargedFinding")
    }
    assert built == {"checks/findings_table.py", "checks/weights.py"}


def test_only_notes_need_no_action() -> None:
    """A finding with a price, or a warning, never says that no action is needed."""
    loud = [
        place
        for place, node in calls()
        if isinstance(node.func, ast.Name)
        and node.func.id in MAKERS
        and any(_text_of(given).startswith("Nothing to do") for given in node.args)
        and FINDINGS[_text_of(node.args[0])].severity is not Severity.NOTE
    ]
    assert not loud


def _text_of(node: ast.AST) -> str:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""


def test_the_price_decides_the_severity() -> None:
    """A finding with a price has the severity of its price."""
    for row in ROWS:
        if row.price is not None:
            assert row.price > 0
            assert make_finding(row.id, "m", "f").severity is severity_at(row.price)
            assert price_finding(make_finding(row.id, "m", "f")).tenths == row.price
    assert [severity_at(tenths) for tenths in (0, 1, 9, 10, 100)] == [
        Severity.NOTE,
        Severity.WARNING,
        Severity.WARNING,
        Severity.ERROR,
        Severity.ERROR,
    ]


def test_a_severity_is_given_once() -> None:
    """A row with a fixed severity rejects another one; a row without one requires it."""
    with pytest.raises(BadTable, match=r"spf\.ptr"):
        make_finding("spf.ptr", "m", "f", severity=Severity.NOTE)
    with pytest.raises(BadTable, match=r"spf\.open"):
        make_finding("spf.open", "m", "f", severity=Severity.NOTE)
    with pytest.raises(BadTable, match=r"mx\.dead-host"):
        make_finding("mx.dead-host", "m", "f")
    with pytest.raises(KeyError):
        make_finding("made.up", "m", "f")


def test_every_row_has_words() -> None:
    """Each finding has a title, which is one sentence without a full stop, and a meaning."""
    assert [row.id for row in ROWS if not row.title or not row.meaning] == []
    assert [row.id for row in ROWS if row.title.endswith(".") or ". " in row.title] == []


OPTIONS = {"meaning", "fix", "proposed", "replaced", "severity"}


def test_callers_fill_the_places() -> None:
    """A call names all places of the sentences that it takes from its row, and no others."""
    wrong = []
    for place, node in makers():
        row = FINDINGS.get(_text_of(node.args[0]))
        given = {keyword.arg for keyword in node.keywords} - OPTIONS
        if row is not None and None not in given:
            expected = set() if _is_given(node, 1, "meaning") else places_of(row.meaning)
            expected |= set() if _is_given(node, 2, "fix") else places_of(row.advice)
            wrong += [(place, row.id, given ^ expected)] if given != expected else []
    assert not wrong


def test_sentences_with_places_are_used() -> None:
    """A call takes each meaning that has places from its row."""
    used = {_text_of(node.args[0]) for _, node in makers() if not _is_given(node, 1, "meaning")}
    assert {row.id for row in ROWS if places_of(row.meaning)} - used == set()


def makers() -> list[tuple[str, ast.Call]]:
    """Return the calls that make a finding with sentences of its row or of its own."""
    names = ("make_finding", "charge")
    return [
        (place, node)
        for place, node in calls()
        if isinstance(node.func, ast.Name) and node.func.id in names
    ]


def places_of(text: str) -> set[str]:
    """Return the names of the places in a text of a row."""
    return {name for _, name, _, _ in Formatter().parse(text) if name is not None}


def _is_given(call: ast.Call, index: int, name: str) -> bool:
    return len(call.args) > index or any(keyword.arg == name for keyword in call.keywords)


@rows(
    (Row("spf.ptr", Area.SPF, "t", "e"), r"spf\.ptr is a name of both"),
    (Row("new.one", None, "t", "e", aliases=("spf.ptr",)), r"spf\.ptr is a name of both"),
    (Row("dkim.revoked", None, "t", "e"), r"dkim\.revoked is a name of both dkim\.key-revoked"),
    (Row("new.one", None, "t", "e", aliases=("new.one",)), r"new\.one is a name of both"),
    (Row("new.one", None, "t", "e", Severity.NOTE, price=3), "so its severity follows"),
)
def test_a_table_that_contradicts_itself_is_refused(row: Row, reason: str) -> None:
    """Duplicate ids, and a severity beside a price, fail when the table is loaded."""
    with pytest.raises(BadTable, match=reason):
        by_name((*ROWS, row))


def test_an_alias_leads_to_its_row() -> None:
    """Former ids lead to the row of the current id, and no finding is created with them."""
    assert canonical_id("dkim.short-key") == "dkim.key-too-short"
    assert canonical_id("dkim.key-too-short") == "dkim.key-too-short"
    assert canonical_id("record") == "record"
    assert aliases_of("dkim.several-keys") == ("dkim.several",)
    assert aliases_of("spf.ptr") == aliases_of("made.up") == ()


def test_only_measured_findings_take_a_measured_price() -> None:
    """A measured price is ignored for other findings, and an uncharged finding costs 0."""
    note = make_finding("spf.long", "m", "f")
    assert price_finding(note, 5) == ChargedFinding(Area.SPF, note, 0)
    for name in MEASURED:
        assert FINDINGS[name].price is None
        listed = make_finding(name, "m", "f", severity=Severity.ERROR)
        assert price_finding(listed, 5).tenths == 5
    grave = make_finding("spf.open", "m", "f")
    assert uncharged(grave) == ChargedFinding(Area.SPF, grave, 0)
    with pytest.raises(BadTable, match=r"mx\.null"):
        price_finding(make_finding("mx.null", "m", "f"))


def test_a_finding_keeps_its_words() -> None:
    """The meaning and the advice of the check are used unchanged."""
    assert make_finding("spf.ptr", "It is so.", "Change it.") == Finding(
        "spf.ptr", Severity.WARNING, "It is so.", "Change it."
    )

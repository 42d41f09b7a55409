"""The table of findings: each id is declared once, and searching for it leads to its code."""

import ast
import re
from functools import cache
from pathlib import Path
from string import Formatter
from typing import Any

import pytest

import mailcheck
from mailcheck.checks.finding_row import BadTable, Row, by_name, severity_at
from mailcheck.checks.findings import Area, ChargedFinding, Severity
from mailcheck.checks.findings_table import (
    FINDINGS,
    ROWS,
    aliases_of,
    canonical_id,
    make_finding,
    sentences_of,
)
from mailcheck.checks.weights import MEASURED, price_finding, uncharged
from tests.table import rows

ROOT = Path(mailcheck.__file__).parent
PACKAGES = ("checks", "operations", "assembly", "probes")
MAKERS = ("make_finding", "charge", "undetermined")
"""Functions whose first argument is the id of a finding."""

CALL = re.compile(rf"\b(?:{'|'.join(MAKERS)}|Finding|ChargedFinding)\(")

WORD = re.compile(r'"([a-z0-9._-]+)"')

ID = re.compile(r"[a-z][a-z-]*(?:\.[a-z0-9-]+)+")


@cache
def read_sources() -> dict[str, str]:
    """Return the text of each file of the code that makes findings."""
    return {
        path.relative_to(ROOT).as_posix(): path.read_text("utf-8")
        for package in PACKAGES
        for path in (ROOT / package).rglob("*.py")
        if not path.name.startswith("findings_of_")
    }


@cache
def calls() -> list[tuple[str, str, ast.Call]]:
    """Return the calls that make a finding: file and line, the called name, and the call."""
    return [
        (f"{path}:{node.lineno}", node.func.id, node)
        for path, text in read_sources().items()
        if CALL.search(text)  # most files need not be parsed
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and CALL.fullmatch(f"{node.func.id}(")
    ]


@cache
def words() -> set[str]:
    """Return all short strings of the code that makes findings."""
    return {word for text in read_sources().values() for word in WORD.findall(text)}


def test_ids_are_literals() -> None:
    """Code that creates a finding names its id as one literal, so that a search finds it."""
    pieces = (ast.JoinedStr, ast.BinOp, ast.Call)
    made = [
        place
        for place, name, node in calls()
        if place.startswith("checks/") and name in MAKERS and isinstance(node.args[0], pieces)
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
    built = {place.partition(":")[0] for place, name, _ in calls() if name not in MAKERS}
    assert built == {"checks/findings_table.py", "checks/weights.py"}


def test_only_notes_need_no_action() -> None:
    """A finding with a price, or a warning, never says that no action is needed."""
    loud = [
        row.id
        for row in ROWS
        for advice in (row.advice, *(case.advice for case in row.cases.values()))
        if advice.startswith("Nothing to do") and row.severity is not Severity.NOTE
    ]
    assert not loud


def _text_of(node: ast.AST) -> str:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""


def test_the_price_decides_the_severity() -> None:
    """A finding with a price has the severity of its price."""
    for row in ROWS:
        if row.price is not None:
            assert row.price > 0
            places: dict[str, Any] = dict.fromkeys(places_of(row.meaning + row.advice))
            finding = make_finding(row.id, **places)
            assert finding.severity is severity_at(row.price)
            assert price_finding(finding).tenths == row.price
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
        make_finding("spf.ptr", severity=Severity.NOTE)
    with pytest.raises(BadTable, match=r"spf\.open"):
        make_finding("spf.open", severity=Severity.NOTE)
    with pytest.raises(BadTable, match=r"mx\.dead-host"):
        make_finding("mx.dead-host")
    with pytest.raises(KeyError):
        make_finding("made.up")


def test_every_row_has_words() -> None:
    """Each finding has a title, which is one sentence without a full stop, and a meaning."""
    assert [row.id for row in ROWS if not row.title or not row.meaning] == []
    assert [row.id for row in ROWS if row.title.endswith(".") or ". " in row.title] == []


OPTIONS = {"case", "advice", "proposed", "replaced", "severity"}


def test_callers_fill_the_places() -> None:
    """A call names all places of the sentences that it can choose, and no others."""
    wrong = []
    for place, name, node in calls():
        if name not in ("make_finding", "charge"):
            continue
        row = FINDINGS.get(_text_of(node.args[0]))
        given = {keyword.arg for keyword in node.keywords} - OPTIONS
        cases = {name: _choices(node, name) for name in ("case", "advice")}
        if row is not None and None not in given and None not in (*cases["case"], *cases["advice"]):
            said = [
                sentences_of(row, case or "", advice or "")
                for case in cases["case"]
                for advice in cases["advice"]
            ]
            expected = {name for pair in said for text in pair for name in places_of(text)}
            wrong += [(place, row.id, given ^ expected)] if given != expected else []
    assert not wrong


def _choices(call: ast.Call, name: str) -> list[str | None]:
    """Return the values that an argument can have; `None` for a value that a variable has."""
    value = next((keyword.value for keyword in call.keywords if keyword.arg == name), None)
    if value is None:
        return [""]
    nodes = [value.body, value.orelse] if isinstance(value, ast.IfExp) else [value]
    return [_text_of(node) if isinstance(node, ast.Constant) else None for node in nodes]


def test_every_case_is_found_somewhere() -> None:
    """Each case of a row is named in the code that makes findings."""
    cases = {case for row in ROWS for case in row.cases}
    assert cases - words() == set()


def places_of(text: str) -> set[str]:
    """Return the names of the places in a text of a row."""
    return {name for _, name, _, _ in Formatter().parse(text) if name is not None}


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
    note = make_finding("spf.long", count=500, long_record=450)
    assert price_finding(note, 5) == ChargedFinding(Area.SPF, note, 0)
    for name in MEASURED:
        assert FINDINGS[name].price is None
        row = FINDINGS[name]
        places: dict[str, Any] = dict.fromkeys(places_of(row.meaning + row.advice), 0)
        listed = make_finding(name, severity=Severity.ERROR, **places)
        assert price_finding(listed, 5).tenths == 5
    grave = make_finding("spf.open", reach="all", domain="a.example", terms="+all")
    assert uncharged(grave) == ChargedFinding(Area.SPF, grave, 0)
    with pytest.raises(BadTable, match=r"mx\.null"):
        price_finding(make_finding("mx.null", domain="a.example"))


def test_a_case_has_sentences_of_its_own() -> None:
    """A case replaces the sentences that it has, and another case can have the advice."""
    places: dict[str, Any] = {"name": "a", "problem": "b", "explanation": "c"}
    row = FINDINGS["dkim.key-broken"]
    plain = make_finding(row.id, severity=Severity.ERROR, **places)
    other = make_finding(row.id, case="new-key", severity=Severity.ERROR, **places)
    mixed = make_finding(
        row.id, case="explained", advice="new-key", severity=Severity.ERROR, **places
    )
    assert (plain.meaning, plain.fix) == (row.meaning.format_map(places), row.advice)
    assert (other.meaning, other.fix) == (plain.meaning, row.cases["new-key"].advice)
    assert (mixed.meaning, mixed.fix) == ("c", other.fix)

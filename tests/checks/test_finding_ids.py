"""The ids of findings: who meets one finds the place that makes it by searching for it."""

import ast
from pathlib import Path

import mailcheck.checks
from mailcheck.checks.findings import Area, ChargedFinding, Finding, Severity
from mailcheck.checks.weights import COSTS, MEASURED, charge_known, charge_measured

ROOT = Path(mailcheck.checks.__file__).parent
MAKERS = {"Finding": 1, "charge": 1, "unknown": 2, "undetermined": 1}
"""What makes a finding, and within how many arguments its id stands."""

WEIGHTS = ROOT / "weights.py"
IDS = COSTS.keys() | MEASURED

SOURCES = {path: ast.parse(path.read_text("utf-8")) for path in sorted(ROOT.rglob("*.py"))}


def test_no_id_is_put_together_from_pieces() -> None:
    """What makes a finding is given its id whole: no f-string, no sum, no format."""
    pieces = (ast.JoinedStr, ast.BinOp, ast.Call)
    made = [
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for path, tree in SOURCES.items()
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id in MAKERS
        and any(
            isinstance(given, pieces)
            for given in (node.args[:1] if node.func.id != "unknown" else node.args[:2])
        )
    ]
    assert not made


def _texts(node: ast.AST) -> set[str]:
    values = (one.value for one in ast.walk(node) if isinstance(one, ast.Constant))
    return {value for value in values if isinstance(value, str)} & IDS


def _made(tree: ast.Module) -> set[str]:
    """Give the ids that a module hands to a call, or to one by way of a mapping or a choice."""
    found: set[str] = set()
    for node in ast.walk(tree):
        match node:
            case ast.Call(args=given, keywords=named):
                for part in (*given, *(one.value for one in named)):
                    found |= _texts(part)
            case ast.Dict(values=values):
                for part in values:
                    found |= _texts(part)
            case ast.Return(value=ast.expr() as part) | ast.Assign(value=ast.IfExp() as part):
                found |= _texts(part)
    return found


def test_what_costs_points_is_made_somewhere() -> None:
    """No weight is for an id that nothing makes: each is given to what makes findings."""
    made = {one for path, tree in SOURCES.items() if path != WEIGHTS for one in _made(tree)}
    assert not IDS - made


def test_nothing_is_charged_beside_the_table() -> None:
    """Only the table's own module puts a price on a finding; others can but lower it.

    So an id that has no weight there costs nothing, whoever makes it.
    """
    priced = [
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for path, tree in SOURCES.items()
        if path != WEIGHTS
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id == "ChargedFinding"
        and (len(node.args) > 2 or node.keywords)
    ]
    assert not priced
    made = Finding("made.up", Severity.ERROR, "It is so.", "Change it.")
    assert charge_known(Area.SPF, made) == ChargedFinding(Area.SPF, made, 0)
    assert charge_measured(Area.SPF, made, 5) == ChargedFinding(Area.SPF, made, 0)


def test_what_is_charged_by_name_has_its_weight() -> None:
    """Every id that is handed to `charge` stands in the table; none has two prices."""
    named = {
        node.args[0].value if isinstance(node.args[0], ast.Constant) else ast.dump(node.args[0])
        for tree in SOURCES.values()
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id == "charge"
    }
    assert named
    assert not named - COSTS.keys()
    assert not MEASURED & COSTS.keys()


def test_nothing_to_do_is_said_of_notes_alone() -> None:
    """What takes points off, or is a warning, never says that there is nothing to do about it."""
    loud = [
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for path, tree in SOURCES.items()
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and any(_text_of(given).startswith("Nothing to do") for given in node.args)
        and not _is_note(node)
    ]
    assert not loud


def _text_of(node: ast.AST) -> str:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""


def _is_note(call: ast.Call) -> bool:
    """Tell whether a call makes a note, and nothing graver."""
    if isinstance(call.func, ast.Name) and call.func.id == "note":
        return True
    given = (ast.unparse(one) for one in call.args)
    return "Severity.NOTE" in given

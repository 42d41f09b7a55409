"""The ids of findings: who meets one finds the place that makes it by searching for it."""

import ast
from pathlib import Path

import mailcheck.checks
from mailcheck.checks.deliverability.weights import COSTS
from mailcheck.checks.quality.weights import TENTHS

ROOT = Path(mailcheck.checks.__file__).parent
MAKERS = {"Finding": 1, "charge": 1, "unknown": 2, "undetermined": 1}
"""What makes a finding, and within how many arguments its id stands."""

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


def test_what_costs_points_is_made_somewhere() -> None:
    """Every id in a table of points stands in the module that makes the finding, too."""
    written = {
        node.value
        for path, tree in SOURCES.items()
        if path.name != "weights.py"
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant)
    }
    assert not (COSTS.keys() | TENTHS.keys()) - written

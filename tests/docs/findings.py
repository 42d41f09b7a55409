"""What findings there are, read from the source: ids stand whole where findings are made.

``tests/checks/test_finding_ids.py`` keeps it so. A sentence that is put together when the
check runs is shown with the names of its pieces in braces: ``{domain} has no SPF record.``
"""

import ast
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from itertools import product
from pathlib import Path

import mailcheck
from mailcheck.checks.findings import (
    Finding,
    RecordToPublish,
    Severity,
    several_records,
    undetermined,
)

PACKAGE = Path(mailcheck.__file__).parent
ROOMS = ("checks", "operations", "assembly", "probes")

MAKERS: Mapping[str, tuple[int, str]] = {
    "Finding": (0, ""),
    "charge": (0, "by its points"),
    "unknown": (1, "undetermined"),
    "undetermined": (0, "undetermined"),
    "not_found_out": (0, "undetermined"),
    "several_records": (0, ""),
    "error": (1, "error"),
    "warning": (1, "warning"),
    "note": (1, "note"),
}
"""What makes a finding, the place of the id among its arguments, and how grave it is then."""

ID = re.compile(r"[a-z][a-z-]*(?:\.[a-z0-9-]+)+")
MOST = 4
"""Ways of saying a piece of a sentence that are still told one by one."""

_SEVERITIES = re.compile(r"Severity\.([A-Z]+)")


@dataclass
class KnownFinding:
    """A finding as its makers write it; several makers may write one id in several ways."""

    severities: set[str] = field(default_factory=set)
    meanings: list[str] = field(default_factory=list)
    fixes: list[str] = field(default_factory=list)
    modules: set[str] = field(default_factory=set)


class Scope:
    """What names mean at one place: those of the function, then those of the module."""

    def __init__(self, module: ast.Module, function: ast.AST) -> None:
        self._values: dict[str, list[ast.expr]] = defaultdict(list)
        for node in [*ast.walk(function), *module.body]:
            if isinstance(node, ast.Assign):
                for target in node.targets:
                    self._keep(target, node.value)
            elif isinstance(node, ast.AnnAssign) and node.value is not None:
                self._keep(node.target, node.value)

    def _keep(self, target: ast.expr, value: ast.expr) -> None:
        if isinstance(target, ast.Name) and value not in self._values[target.id]:
            self._values[target.id].append(value)

    def texts(self, node: ast.expr | None, depth: int = 0) -> list[str]:
        """List the texts that an expression may have; nothing where that can't be seen here."""
        match node:
            case ast.Constant(value=str() as text):
                return [text]
            case ast.JoinedStr(values=parts):
                return ["".join(one) for one in product(*(self._piece(part) for part in parts))]
            case ast.IfExp(body=one, orelse=other):
                return [*self.texts(one, depth), *self.texts(other, depth)]
            case ast.BinOp(left=left, right=right):
                return [a + b for a in self.texts(left, depth) for b in self.texts(right, depth)]
            case ast.Call(func=ast.Attribute(value=value, attr="format" | "replace")):
                return self.texts(value, depth)
            case ast.Subscript(value=value):
                return self.texts(value, depth)
            case ast.Dict(values=values):
                return [text for value in values for text in self.texts(value, depth)]
            case ast.Call(func=ast.Name(id="MappingProxyType" | "dict"), args=[ast.Dict() as of]):
                return self.texts(of, depth)
            case ast.Name(id=name) if depth < 3:
                return self._texts_of(name, node.lineno, depth)
        return []

    def _texts_of(self, name: str, line: int, depth: int) -> list[str]:
        """Give what a name was last set to above a line; with a table all that is in it."""
        found = sorted(self._values.get(name, ()), key=lambda value: value.lineno)
        above = [value for value in found if value.lineno < line]
        return self.texts(above[-1], depth + 1) if above else []

    def ids(self, node: ast.expr) -> list[str]:
        """List the ids that an expression may have; a name has all that it is ever set to."""
        if isinstance(node, ast.Name):
            return [text for value in self._values.get(node.id, ()) for text in self.texts(value)]
        return self.texts(node)

    def _piece(self, part: ast.expr) -> list[str]:
        """List what a piece of a sentence may be: words that are known, or its name in braces."""
        if isinstance(part, ast.Constant):
            return [str(part.value)]
        assert isinstance(part, ast.FormattedValue)
        known = self.texts(part.value) if isinstance(part.value, ast.Name) else []
        return known if 0 < len(known) <= MOST else [f"{{{_last_name(part.value)}}}"]


def _last_name(node: ast.expr) -> str:
    """Give the word that says best what an expression is: ``zone.domain`` is its domain."""
    match node:
        case ast.Attribute(value=value, attr="value" | "text"):
            return _last_name(value)
        case ast.Attribute(attr=name) | ast.Name(id=name):
            return name.lstrip("_").lower()
        case ast.Call(args=[first, *_]):
            return _last_name(first)
        case ast.Call(func=function):
            return _last_name(function)
        case ast.Subscript(value=value) | ast.BinOp(left=value):
            return _last_name(value)
    return "..."


def _functions(module: ast.Module) -> Iterator[ast.AST]:
    for node in ast.walk(module):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def _calls(function: ast.AST) -> Iterator[tuple[ast.Call, str]]:
    for node in ast.walk(function):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.args:
            yield node, node.func.id


def _ids(scope: Scope, name: str, node: ast.expr) -> list[str]:
    if name == "not_found_out":
        return [f"doctor.{topic}.undetermined" for topic in scope.texts(node)]
    return [text for text in scope.ids(node) if ID.fullmatch(text)]


def _read_call(call: ast.Call, name: str, scope: Scope) -> Iterator[tuple[str, KnownFinding]]:
    place, severity = MAKERS[name]
    given = call.args[place:]
    ids = _ids(scope, name, given[0]) if given else []
    has_severity = name == "Finding"
    words = given[2:] if has_severity else given[1:]
    severities = {severity} - {""}
    if has_severity and len(given) > 1:
        severities.update(one.lower() for one in _SEVERITIES.findall(ast.unparse(given[1])))
    meanings, fixes = [scope.texts(word) for word in (*words[:2], None, None)[:2]]
    for number, one in enumerate(ids):
        if name in MADE:
            yield one, MADE[name](one)
        else:
            chosen = (number, len(ids))
            yield one, KnownFinding(severities, _choose(meanings, chosen), _choose(fixes, chosen))


def _choose(texts: list[str], chosen: tuple[int, int]) -> list[str]:
    """Give the texts of an id that is chosen from a table, where they are chosen from one too."""
    number, of = chosen
    if of == 1:
        return texts
    return [texts[number]] if len(texts) == of else []


def _made(finding: Finding) -> KnownFinding:
    return KnownFinding({finding.severity.value}, [finding.meaning], [finding.fix])


MADE: Mapping[str, Callable[[str], KnownFinding]] = {
    "undetermined": lambda one: _made(undetermined(one, ["{names}"])),
    "several_records": lambda one: _made(
        several_records(one, Severity.WARNING, "{kind}", "{domain}", RecordToPublish("", "", ""))
    ),
}
"""Makers that write the sentences themselves."""


def _read_rows(function: ast.AST, scope: Scope) -> Iterator[tuple[str, KnownFinding]]:
    """Give what stands in a table of the function: an id and the end of its sentence."""
    severities = {
        one.lower()
        for call, name in _calls(function)
        if name == "Finding" and isinstance(call.args[0], ast.Name)
        for one in _SEVERITIES.findall(ast.unparse(call))
    }
    for node in ast.walk(function):
        match node:
            case ast.Tuple(elts=[ast.Constant(value=str() as one), sentence]) if severities:
                if ID.fullmatch(one):
                    words = [f"... {text}" for text in scope.texts(sentence)]
                    yield one, KnownFinding(severities, words)


@cache
def read_findings() -> Mapping[str, KnownFinding]:
    """Give every finding by its id, in the order of the ids."""
    known: dict[str, KnownFinding] = defaultdict(KnownFinding)
    for room in ROOMS:
        for path in sorted((PACKAGE / room).rglob("*.py")):
            module = ast.parse(path.read_text("utf-8"))
            for function in _functions(module):
                scope = Scope(module, function)
                for one, found in _read_rows(function, scope):
                    _add(known[one], found, path.relative_to(PACKAGE.parent).as_posix())
                for call, name in _calls(function):
                    if name not in MAKERS:
                        continue
                    for one, found in _read_call(call, name, scope):
                        _add(known[one], found, path.relative_to(PACKAGE.parent).as_posix())
    return dict(sorted(known.items()))


def _add(known: KnownFinding, found: KnownFinding, module: str) -> None:
    known.severities |= found.severities
    known.meanings += [text for text in found.meanings if text and text not in known.meanings]
    known.fixes += [text for text in found.fixes if text and text not in known.fixes]
    known.modules.add(module)

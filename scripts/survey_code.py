"""Print the figures that show how easily the package is read (``python -m scripts.survey_code``).

With ``--list`` it prints each place too. `tests/test_architecture.py` holds the figures.
"""

import argparse
import ast
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

PACKAGE = Path(__file__).parent.parent / "mailcheck"

CONSTANT = re.compile(r"_{0,2}[A-Z][A-Z0-9_]*$")

MANY = 6
"""Number of positional arguments from which on a reader has to look up their order."""

Nodes = dict[type[ast.AST], list[Any]]
"""The nodes of a file, by their type."""


def nodes_below(tree: ast.AST) -> Nodes:
    """Return a node and the nodes below it, those of outer levels first."""
    nodes: Nodes = defaultdict(list)
    for node in ast.walk(tree):
        nodes[type(node)].append(node)
    return nodes


def nodes_of(text: str) -> Nodes:
    """Parse a file, and return its nodes."""
    return nodes_below(ast.parse(text))


def constants_below_use(nodes: Nodes) -> Iterator[str]:
    """List the constants of a module that are defined below their first use.

    A table of functions or classes of the module stands below them, and is not listed.
    """
    first_use: dict[str, int] = {}
    (module,) = nodes[ast.Module]
    for node in nodes[ast.Name]:
        if isinstance(node.ctx, ast.Load):
            first_use[node.id] = min(node.lineno, first_use.get(node.id, node.lineno))
    needs_order = {
        node.name
        for node in module.body
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
    }
    for statement in module.body:
        if not isinstance(statement, ast.Assign | ast.AnnAssign) or statement.value is None:
            continue
        targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
        names = [
            name.id
            for target in targets
            for name in ast.walk(target)
            if isinstance(name, ast.Name) and CONSTANT.match(name.id)
        ]
        used = {name.id for name in ast.walk(statement.value) if isinstance(name, ast.Name)}
        if used & needs_order:
            needs_order.update(names)
            continue
        for name in names:
            if first_use.get(name, statement.lineno) < statement.lineno:
                yield f"{statement.lineno}: {name} is used in line {first_use[name]}"


def calls_by_position(nodes: Nodes) -> Iterator[tuple[ast.Call, str]]:
    """List the calls with at least `MANY` positional arguments, with the called name."""
    for node in nodes[ast.Call]:
        if len(node.args) >= MANY:
            yield node, ast.unparse(node.func)


def is_class_name(called: str) -> bool:
    """Return whether a called name is, by convention, that of a class."""
    return called.rpartition(".")[2].lstrip("_")[:1].isupper()


def constructions_by_position(nodes: Nodes) -> Iterator[str]:
    """List the constructions of objects with at least `MANY` positional arguments."""
    for node, called in calls_by_position(nodes):
        if is_class_name(called):
            yield f"{node.lineno}: {called} gets {len(node.args)}"


def other_calls_by_position(nodes: Nodes) -> Iterator[str]:
    """List the other calls with at least `MANY` positional arguments."""
    for node, called in calls_by_position(nodes):
        if not is_class_name(called):
            yield f"{node.lineno}: {called} gets {len(node.args)}"


def loops_over_one(nodes: Nodes) -> Iterator[str]:
    """List the loops and comprehensions whose variable is called ``one``."""
    for loop in (*nodes[ast.For], *nodes[ast.AsyncFor], *nodes[ast.comprehension]):
        for name in ast.walk(loop.target):
            if isinstance(name, ast.Name) and name.id == "one":
                yield f"{name.lineno}: over {ast.unparse(loop.iter)}"


def copies_a_parameter(statement: ast.stmt, parameters: set[str]) -> bool:
    """Return whether a statement only assigns a parameter to an attribute of ``self``."""
    if isinstance(statement, ast.AnnAssign):
        targets = [statement.target]
    elif isinstance(statement, ast.Assign):
        targets = list(statement.targets)
    else:
        return False
    return (
        isinstance(statement.value, ast.Name)
        and statement.value.id in parameters
        and all(
            isinstance(target, ast.Attribute) and ast.unparse(target.value) == "self"
            for target in targets
        )
    )


def initializers_that_copy(nodes: Nodes) -> Iterator[str]:
    """List the classes whose ``__init__`` only copies its arguments."""
    for kind in nodes[ast.ClassDef]:
        for method in kind.body:
            if not isinstance(method, ast.FunctionDef) or method.name != "__init__":
                continue
            arguments = [*method.args.posonlyargs, *method.args.args, *method.args.kwonlyargs]
            parameters = {argument.arg for argument in arguments}
            body = method.body[1:] if ast.get_docstring(method) else method.body
            if all(copies_a_parameter(statement, parameters) for statement in body):
                yield f"{method.lineno}: {kind.name}"


FIGURES: dict[str, Callable[[Nodes], Iterator[str]]] = {
    "constants below their first use": constants_below_use,
    f"constructions with {MANY} and more positional arguments": constructions_by_position,
    f"other calls with {MANY} and more positional arguments": other_calls_by_position,
    "loop variables called one": loops_over_one,
    "__init__ that only copies its arguments": initializers_that_copy,
}
"""What is listed for each module, by its name."""


def survey(files: Iterable[tuple[Any, Nodes]]) -> dict[str, list[str]]:
    """Return the places that count for each figure, in files with their paths."""
    places: dict[str, list[str]] = {name: [] for name in FIGURES}
    for path, nodes in files:
        for name, list_places in FIGURES.items():
            places[name] += (f"{path}:{place}" for place in list_places(nodes))
    return places


def main() -> None:
    """Print the figures, and with ``--list`` the places."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--list", action="store_true", help="print each place")
    is_list = parser.parse_args().list
    paths = sorted(PACKAGE.rglob("*.py"))
    files = (
        (path.relative_to(PACKAGE.parent), nodes_of(path.read_text("utf-8"))) for path in paths
    )
    for name, places in survey(files).items():
        print(f"{len(places):5}  {name}")
        if is_list:
            print("".join(f"       {place}\n" for place in places), end="")


if __name__ == "__main__":
    main()

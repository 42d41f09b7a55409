"""The rules of the architecture, each with an example that breaks it."""

import ast
import configparser
import gc
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from functools import cached_property
from pathlib import Path, PurePosixPath

import pytest

from scripts.survey_code import Nodes, nodes_of, survey
from tests.table import rows

pytestmark = pytest.mark.untraced  # the tests read the package, but do not run it

ROOT = Path(__file__).parent.parent

MAX_MODULES = 20
"""Maximum number of modules in a package, so that a reader can survey their names. A package with
more modules covers two topics, or splits one topic too finely."""

FORBIDDEN_NAMES = {"util", "utils", "helper", "helpers", "common", "misc", "manager", "base"}

SQL = re.compile(
    r"\b(SELECT\b.+\bFROM|INSERT\s+INTO|UPDATE\s+\w+\s+SET|DELETE\s+FROM|"
    r"(CREATE|DROP|ALTER)\s+(TABLE|INDEX)|PRAGMA|ROLLBACK|SAVEPOINT)\b",
    re.DOTALL,
)


class Source:
    """A Python file. ``path`` begins with ``mailcheck`` or ``tests``."""

    def __init__(self, path: PurePosixPath, text: str) -> None:
        self.path = path
        self.text = text

    @cached_property
    def nodes(self) -> Nodes:
        """All nodes, by their type. The text is parsed for the first rule that needs it."""
        return nodes_of(self.text)

    @property
    def body(self) -> list[ast.stmt]:
        """The statements of the module."""
        statements: list[ast.stmt] = self.nodes[ast.Module][0].body
        return statements

    @property
    def room(self) -> str:
        """The top-level package of the file, or the name of a top-level module."""
        return self.path.parts[1].removesuffix(".py")

    def imports(self) -> Iterator[tuple[int, str]]:
        """List the line and full name of every import, at any level of the file."""
        for node in self.nodes[ast.Import]:
            yield from ((node.lineno, alias.name) for alias in node.names)
        for node in self.nodes[ast.ImportFrom]:
            prefix = "." * node.level + (node.module or "")
            yield from ((node.lineno, f"{prefix}.{alias.name}") for alias in node.names)


def pure_rooms_stay_pure(source: Source) -> Iterator[str]:
    """The core imports only the standard library, idna and msgspec; checks and api use no reactor.

    Values are Structs of msgspec. A frozen dataclass with slots takes 0.5 ms to define, and seven
    times as long to create. The package has hundreds of value classes.
    """
    for line, name in source.imports():
        package = name.split(".")[0]
        if package == "mailcheck":
            continue
        if source.room == "core" and package not in {*sys.stdlib_module_names, "idna", "msgspec"}:
            yield f"line {line}: the core imports {name}"
        if source.room in ("checks", "api") and package in ("twisted", "werkzeug", "treq"):
            yield f"line {line}: {source.room} imports {name}"


ONLY_IMPORTED_BY = {
    "dkim": "mailcheck/checks/dkim/dkimpy_verify.py",
    "spf": "mailcheck/checks/spf/pyspf_query.py",
}
"""Libraries with workarounds, and the one module that has them."""


def workarounds_have_one_module(source: Source) -> Iterator[str]:
    """A library that needs workarounds is imported by one module only."""
    for line, name in source.imports():
        module = ONLY_IMPORTED_BY.get(name.split(".")[0])
        if module not in (None, source.path.as_posix()):
            yield f"line {line}: imports {name}, which only {module} may import"


def the_reactor_is_injected(source: Source) -> Iterator[str]:
    """Only ``tap.py``, and the command that builds a daemon for a trial, import the reactor."""
    is_start = source.room == "tap" or source.path.name == "serving_commands.py"
    for line, name in source.imports():
        if name.startswith("twisted.internet.reactor") and not is_start:
            yield f"line {line}: imports the reactor"


def modules_are_named(source: Source) -> Iterator[str]:
    """No module has a meaningless name, such as ``utils``."""
    for part in source.path.with_suffix("").parts:
        if part in FORBIDDEN_NAMES:
            yield f"is named {part}"


def keys_are_built_in_one_place(source: Source) -> Iterator[str]:
    """Only `key_of` creates a `Key`. The type checker rejects plain strings."""
    for node in source.nodes[ast.Call]:
        called = called_name(node)
        is_cast = called == "cast" and ast.unparse(node.args[0]).strip("'\"") == "Key"
        if source.path.name != "keys.py" and (is_cast or called == "Key"):
            yield f"line {node.lineno}: makes a key by itself"


def nothing_looks_like_a_test(source: Source) -> Iterator[str]:
    """Nothing in the package has a name that test runners collect."""
    if source.path.name.startswith("test_"):
        yield "is named like a test"
    for node in source.body:
        is_named = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
        name = getattr(node, "name", "") if is_named else ""
        if name.startswith(("test_", "Test")):
            yield f"line {node.lineno}: {name} is named like a test"


def sql_stands_in_storage(source: Source) -> Iterator[str]:
    """Only ``store`` and ``engines`` contain SQL."""
    if source.room in ("store", "engines"):
        return
    for node in source.nodes[ast.Constant]:
        if isinstance(node.value, str) and SQL.search(node.value):
            yield f"{node.value[:30]!r} is SQL"
    for line, name in source.imports():
        if name.split(".")[0] in ("sqlite3", "psycopg2"):
            yield f"line {line}: imports {name}"


def importing_does_nothing(source: Source) -> Iterator[str]:
    """Importing a module defines names and has no other effect."""
    for node in source.body:
        is_definition = isinstance(
            node,
            ast.Import
            | ast.ImportFrom
            | ast.FunctionDef
            | ast.AsyncFunctionDef
            | ast.ClassDef
            | ast.Assign
            | ast.AnnAssign,
        )
        is_docstring = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        is_guarded = isinstance(node, ast.If) and ast.unparse(node.test) in (
            "TYPE_CHECKING",
            "__name__ == '__main__'",
            "'pytest' in sys.modules",
            "sys.platform == 'linux'",
        )
        if not (is_definition or is_docstring or is_guarded):
            yield f"line {node.lineno}: does something when it is imported"


ESCAPES_AND_SETS = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]", re.DOTALL)
POSSESSIVE_GROUP = re.compile(r"\)(?:[*+?]|\{[0-9,]+\})\+")


def groups_are_repeated_atomically(source: Source) -> Iterator[str]:
    """A group is repeated as ``(?>(?:ab|c)*)``, not as ``(?:ab|c)*+``, which means the same.

    Python 3.11 before 3.11.5 repeats a group possessively in a wrong way, and Debian 12 has 3.11.2
    (https://github.com/python/cpython/issues/106052). A single character or set is not affected.
    """
    for node in (*source.nodes[ast.JoinedStr], *source.nodes[ast.Constant]):
        if isinstance(node, ast.JoinedStr):
            parts = (part.value if isinstance(part, ast.Constant) else "x" for part in node.values)
            text = "".join(map(str, parts))
        elif isinstance(node.value, str | bytes):
            text = node.value if isinstance(node.value, str) else node.value.decode("latin-1")
        else:
            continue
        if POSSESSIVE_GROUP.search(ESCAPES_AND_SETS.sub("x", text)):
            yield f"line {node.lineno}: repeats a group possessively"


UNPROVEN = {"proposed", "alternatives", "candidate_records", "replaced"}
"""Attributes of a finding with records that have not been proven."""


def only_proven_records_are_shown(source: Source) -> Iterator[str]:
    """Code that renders findings takes records from the proofs, not from the findings."""
    if source.room not in ("web", "api", "cli"):
        return
    for node in source.nodes[ast.Attribute]:
        if node.attr in UNPROVEN:
            yield f"line {node.lineno}: reads {node.attr}, which may not be proven"
    for node in source.nodes[ast.Call]:
        if called_name(node) == "getattr":
            names = {str(arg.value) for arg in node.args if isinstance(arg, ast.Constant)}
            yield from (f"line {node.lineno}: reads {name}" for name in names & UNPROVEN)


def nothing_is_left_undone(source: Source) -> Iterator[str]:
    """The code has no to-do comments, and each suppressed warning is named."""
    for number, line in enumerate(source.text.splitlines(), 1):
        if re.search(r"#\s*(TODO|FIXME)\b", line):
            yield f"line {number}: has a to-do comment"
        if re.search(r"#\s*(type:\s*ignore(?!\[)|noqa(?!:))", line):
            yield f"line {number}: suppresses all warnings"


def nothing_waits_inside_a_page(source: Source) -> Iterator[str]:
    """No test lets a page repeat an expression, which the policy of our pages forbids.

    It fails only where the first answer is false, so on a busy machine.
    """
    if "wait_for_function" not in source.text:
        return  # most files need not be parsed
    for node in source.nodes[ast.Attribute]:
        if node.attr == "wait_for_function":
            yield f"line {node.lineno}: waits in the page, use Watched.wait_until"


def is_private(name: str) -> bool:
    """Return whether a name is private by convention."""
    return name.startswith("_") and not name.endswith("__")


def is_own_object(node: ast.expr) -> bool:
    """Return whether an expression is ``self``, ``cls`` or ``super()``."""
    name = node.func if isinstance(node, ast.Call) else node
    return isinstance(name, ast.Name) and name.id in ("self", "cls", "super")


def defined_names(nodes: Nodes) -> Iterator[str]:
    """List the names of functions, classes and variables."""
    for kind in (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef):
        yield from (node.name for node in nodes[kind])
    yield from (node.id for node in nodes[ast.Name] if isinstance(node.ctx, ast.Store))


def names_of_class(nodes: Nodes) -> set[str]:
    """Return the private names that a class defines, or uses on itself."""
    used = (node.attr for node in nodes[ast.Attribute] if is_own_object(node.value))
    return set(filter(is_private, (*defined_names(nodes), *used)))


OF_NAMED_TUPLES = {"_asdict", "_fields", "_make", "_replace"}
"""Names of the standard library that are public in spite of their underscore."""


def uses_of_others(source: Source) -> Iterator[tuple[int, str]]:
    """List the attributes of other objects, and the names in calls such as ``getattr``."""
    for node in source.nodes[ast.Attribute]:
        if not is_own_object(node.value):
            yield node.lineno, node.attr
    for node in source.nodes[ast.Call]:
        if called_name(node).endswith(("attr", "getter")):
            constants = (value for value in node.args if isinstance(value, ast.Constant))
            yield from ((node.lineno, str(constant.value)) for constant in constants)


def private_names_stay_private(source: Source) -> Iterator[str]:
    """No module uses a private name of an object that it does not define itself.

    Private names of ``self`` belong to a library only if a base class does: see
    `tests/test_private_names.py`.
    """
    own = names_of_class(source.nodes) | OF_NAMED_TUPLES
    imported = (row for row in source.imports() if not row[1].startswith("mailcheck."))
    parts = ((line, part) for line, name in imported for part in name.split("."))
    for line, name in (*uses_of_others(source), *parts):
        if is_private(name) and name not in own:
            yield f"line {line}: uses {name}"


PRIVATE_NAME = re.compile(r"(?<![^\W_])_[^\W_]\w*")

MAX_PRIVATE = 20
"""Maximum number of lines of tests that use private attributes of the tested code."""


def defined_private_names(sources: list[Source]) -> set[str]:
    """Return the private names that classes and modules of these files define."""
    names: set[str] = set()
    for source in sources:
        names.update(defined_names(source.nodes))
        stored = (node for node in source.nodes[ast.Attribute] if isinstance(node.ctx, ast.Store))
        names.update(node.attr for node in stored)
    return {name for name in names if PRIVATE_NAME.fullmatch(name)}


def called_name(call: ast.Call) -> str:
    """Return the last name of what is called, or an empty string."""
    return getattr(call.func, "attr", getattr(call.func, "id", ""))


def private_touches(source: Source, private: set[str]) -> Iterator[str]:
    """List the lines of a test that use a private name which the tested package defines.

    ``self`` counts in a subclass of a class of the package, unless the file defines the name.
    Private names of libraries have a separate test.
    """
    if private.isdisjoint(PRIVATE_NAME.findall(source.text)):
        return  # most files need not be parsed
    own = defined_private_names([source])
    imported = {name.split(".")[-1] for _, name in source.imports() if "mailcheck." in name}
    inherited = {
        id(node)
        for kind in source.nodes[ast.ClassDef]
        if imported & {ast.unparse(base) for base in kind.bases}
        for node in ast.walk(kind)
    }
    used = [*uses_of_others(source)]
    for node in source.nodes[ast.Attribute]:
        if is_own_object(node.value) and id(node) in inherited and node.attr not in own:
            used.append((node.lineno, node.attr))
    for line, name in source.imports():
        used += [(line, name.rpartition(".")[2])] if name.startswith("mailcheck") else []
    touched = {line: name for line, name in used if name in private}
    yield from (f"line {line}: touches {name}" for line, name in sorted(touched.items()))


def test_private_attributes_are_touched_rarely(house_sources: list[Source]) -> None:
    """Tests use public names of the package. Only a few lines use private names."""
    private = defined_private_names(house_sources)
    found = broken(lambda source: private_touches(source, private), read_sources("tests"))
    assert len(found) <= MAX_PRIVATE, "\n".join(found)


IMPORT = "from mailcheck.store.a import Store"


@rows(
    ("x = house.store._kept", True),
    ("house.store._kept = {}", True),
    ("x = getattr(house.store, '_kept')", True),
    ("monkeypatch.setattr(house.store, '_kept', {})", True),
    ("from mailcheck.store.a import _Kept", True),
    (f"{IMPORT}\nclass Counted(Store):\n    def count(self):\n        return self._kept", True),
    ("class Fake:\n    def __init__(self):\n        self._kept = {}", False),
    ("x = house.store.kept", False),
    ("x = parser._actions", False),
)
def test_private_attributes_are_noticed(text: str, is_noticed: bool) -> None:
    """Each way to use a private name of the package is detected; other names are allowed."""
    store = "class _Kept: pass\nclass Store:\n    def __init__(self):\n        self._kept = {}"
    private = defined_private_names([Source(PurePosixPath("mailcheck/store/a.py"), store)])
    source = Source(PurePosixPath("tests/store/test_a.py"), text)
    assert bool(list(private_touches(source, private))) is is_noticed


Rule = Callable[[Source], Iterator[str]]

RULES_OF_THE_HOUSE: list[Rule] = [
    pure_rooms_stay_pure,
    workarounds_have_one_module,
    the_reactor_is_injected,
    modules_are_named,
    nothing_looks_like_a_test,
    keys_are_built_in_one_place,
    sql_stands_in_storage,
    importing_does_nothing,
    groups_are_repeated_atomically,
    only_proven_records_are_shown,
    nothing_is_left_undone,
    private_names_stay_private,
]


def read_sources(folder: str) -> Iterator[Source]:
    """Read all files below a folder."""
    for path in sorted((ROOT / folder).rglob("*.py")):
        yield Source(PurePosixPath(path.relative_to(ROOT).as_posix()), path.read_text("utf-8"))


@pytest.fixture(scope="module")
def house_sources() -> Iterator[list[Source]]:
    """All files of the package, parsed."""
    sources = list(read_sources("mailcheck"))
    gc.disable()
    for source in sources:
        assert source.nodes
    gc.freeze()  # each collection would go through all trees
    yield sources
    sources.clear()
    gc.enable()


MAX_PLACES = {
    "constants below their first use": 0,
    "constructions with 6 and more positional arguments": 20,
    "loop variables called one": 60,
    "__init__ that only copies its arguments": 15,
}
"""Maximum number of places of each figure of ``python -m scripts.survey_code``."""


def test_the_figures_of_the_survey_stay_low(house_sources: list[Source]) -> None:
    """No figure of the survey is above its maximum."""
    found = survey((source.path, source.nodes) for source in house_sources)
    assert found.keys() > MAX_PLACES.keys()
    assert {name: found[name] for name, most in MAX_PLACES.items() if len(found[name]) > most} == {}


def broken(rule: Rule, sources: Iterable[Source]) -> list[str]:
    """List the violations of a rule."""
    return [f"{source.path}: {problem}" for source in sources for problem in rule(source)]


@rows(*RULES_OF_THE_HOUSE)
def test_the_house_keeps_its_rules(house_sources: list[Source], rule: Rule) -> None:
    """No file in ``mailcheck/`` breaks a rule."""
    assert broken(rule, house_sources) == []


def test_the_tests_keep_their_rules() -> None:
    """No file in ``tests/`` has a to-do comment, suppresses all warnings, or waits in a page."""
    assert broken(nothing_is_left_undone, read_sources("tests")) == []
    assert broken(nothing_waits_inside_a_page, read_sources("tests")) == []


CONTRACTS = ROOT / ".importlinter"


def lint_imports(folder: Path) -> subprocess.CompletedProcess[str]:
    """Check the contracts of ``.importlinter`` for the package ``mailcheck`` in a folder."""
    command = [str(Path(sys.executable).with_name("lint-imports")), "--config", str(CONTRACTS)]
    return subprocess.run(
        [*command, "--no-cache"], cwd=folder, capture_output=True, text=True, check=False
    )


def test_other_imports_are_noticed(tmp_path: Path) -> None:
    """An import of a higher layer, of a sibling or in a cycle breaks a contract of `make lint`."""
    config = configparser.ConfigParser()
    config.read(CONTRACTS)
    rooms = re.findall(r"\w+", config["importlinter:contract:layers"]["layers"])
    for room in rooms:
        (tmp_path / "mailcheck" / room).mkdir(parents=True)
        for name in ("__init__", "a", "b"):
            (tmp_path / "mailcheck" / room / f"{name}.py").touch()
    (tmp_path / "mailcheck/__init__.py").touch()
    assert lint_imports(tmp_path).returncode == 0
    for importing, imported in (*NOT_TO_BE_IMPORTED, *CIRCLE):
        module = tmp_path / f"{importing.replace('.', '/')}.py"
        with module.open("a") as file:
            file.write(f"def f():\n    import {imported}\n")
    said = lint_imports(tmp_path).stdout
    for importing, imported in NOT_TO_BE_IMPORTED:
        assert re.search(rf"\b{importing} -> {imported}\b", said), (importing, imported, said)
    assert "cycles are allowed in mailcheck.web." in said, said


NOT_TO_BE_IMPORTED = [
    ("mailcheck.core.a", "mailcheck.checks.b"),
    ("mailcheck.operations.a", "mailcheck.api.b"),
    ("mailcheck.store.a", "mailcheck.operations.b"),
    ("mailcheck.daemon.a", "mailcheck.web"),
    ("mailcheck.cli.a", "mailcheck.tap"),
    ("mailcheck.web.a", "mailcheck.clients.b"),
    ("mailcheck.clients.a", "mailcheck.core.b"),
]

CIRCLE = [("mailcheck.web.a", "mailcheck.web.b"), ("mailcheck.web.b", "mailcheck.web.a")]


def too_full(sources: list[Source]) -> list[str]:
    """List the packages with too many modules."""
    held = Counter(source.path.parent for source in sources if source.path.stem != "__init__")
    return [f"{folder} holds {n} modules" for folder, n in held.items() if n > MAX_MODULES]


def test_no_room_is_too_full(house_sources: list[Source]) -> None:
    """No package exceeds `MAX_MODULES`, and a package with one more is detected."""
    assert too_full(house_sources) == []
    crowd = [made(f"web/m{number}", "core.a") for number in range(MAX_MODULES + 1)]
    assert too_full(crowd) == [f"mailcheck/web holds {MAX_MODULES + 1} modules"]
    assert too_full(crowd[1:]) == []


def nested_circles(sources: list[Source]) -> set[str]:
    """List the packages that import a module of the package around them, which imports them."""
    modules = {".".join(source.path.with_suffix("").parts): source for source in sources}
    down, up = set(), set()
    for module, source in modules.items():
        around = module.rpartition(".")[0]
        for _, name in source.imports():
            imported = name.rpartition(".")[0]
            above = imported.rpartition(".")[0]
            if above.rpartition(".")[0] == around and imported in modules:
                down.add(above)
            if imported in modules and module.startswith(f"{above}."):
                inner = module.removeprefix(f"{above}.").split(".")
                up |= {f"{above}.{inner[0]}"} if len(inner) > 1 else set()
    return down & up


def test_no_package_forms_a_circle_with_the_package_around_it(house_sources: list[Source]) -> None:
    """A package and the modules of the package around it import each other in one direction."""
    web = [source for source in house_sources if source.room == "web"]
    assert nested_circles(web) == set()
    rooms = made("web/room/inner/a", "web.room.b"), made("web/room/b", "core.c")
    assert nested_circles([*rooms, made("web/room/d", "web.room.inner.a")]) == {
        "mailcheck.web.room.inner"
    }
    assert nested_circles([*rooms, made("web/room/d", "core.c")]) == set()


def made(path: str, name: str) -> Source:
    """Return a module that imports a name from another module."""
    return Source(PurePosixPath(f"mailcheck/{path}.py"), f"from mailcheck.{name} import something")


def test_every_package_is_installed() -> None:
    """``setup.cfg`` lists all packages and their data files."""
    setup = configparser.ConfigParser()
    setup.read(ROOT / "setup.cfg")
    named = set(setup["options"]["packages"].split())
    folders = {path.parent for path in (ROOT / "mailcheck").rglob("*.py")}
    packages = {".".join(folder.relative_to(ROOT).parts) for folder in folders}
    assert named == packages | {"twisted.plugins"}
    data = {
        path
        for package, patterns in setup["options.package_data"].items()
        for pattern in patterns.split()
        for path in ROOT.joinpath(*package.split(".")).glob(pattern)
    }
    files = {path for path in (ROOT / "mailcheck").rglob("*") if path.is_file()}
    assert {path for path in files if path.suffix not in (".py", ".pyc")} <= data


WEB = "mailcheck/web/a.py"

BREAKAGES = [
    (pure_rooms_stay_pure, "mailcheck/core/a.py", "import twisted.internet.defer"),
    (pure_rooms_stay_pure, "mailcheck/core/a.py", "from dns import name"),
    (pure_rooms_stay_pure, "mailcheck/checks/a.py", "from twisted.internet import defer"),
    (workarounds_have_one_module, "mailcheck/checks/dkim/a.py", "def f():\n    import dkim.crypto"),
    (workarounds_have_one_module, "mailcheck/checks/dkim/arc.py", "from spf import query"),
    (the_reactor_is_injected, WEB, "from twisted.internet import reactor"),
    (the_reactor_is_injected, "mailcheck/cli/a.py", "import twisted.internet.reactor"),
    (modules_are_named, "mailcheck/web/utils.py", ""),
    (modules_are_named, "mailcheck/helpers/a.py", ""),
    (nothing_looks_like_a_test, "mailcheck/web/test_a.py", ""),
    (nothing_looks_like_a_test, WEB, "class TestRun: pass"),
    (nothing_looks_like_a_test, WEB, "def test_run(): pass"),
    (keys_are_built_in_one_place, WEB, "Hit(Key(f'sign-in {name}'), ())"),
    (keys_are_built_in_one_place, WEB, "cast('Key', name)"),
    (sql_stands_in_storage, WEB, "x = 'SELECT a FROM b'"),
    (sql_stands_in_storage, WEB, "x = f'DELETE FROM {b}'"),
    (sql_stands_in_storage, WEB, "import sqlite3"),
    (importing_does_nothing, WEB, "print(1)"),
    (importing_does_nothing, WEB, "for x in (1, 2): pass"),
    (importing_does_nothing, WEB, "if True:\n    x = 1"),
    (groups_are_repeated_atomically, "mailcheck/a.py", "x = re.compile(r'(?:ab|c)*+')"),
    (groups_are_repeated_atomically, "mailcheck/a.py", "x = rb'(?:ab|c)' rb'(d){1,2}+'"),
    (groups_are_repeated_atomically, "mailcheck/a.py", "x = rf'(?:{A}|c)++'"),
    (only_proven_records_are_shown, "mailcheck/api/a.py", "x = finding.proposed"),
    (only_proven_records_are_shown, "mailcheck/cli/a.py", "x = a.candidate_records"),
    (only_proven_records_are_shown, WEB, "x = getattr(a, 'proposed')"),
    (nothing_is_left_undone, WEB, "x = 1  # TO" + "DO: more"),
    (nothing_is_left_undone, WEB, "x = 1  # type: " + "ignore"),
    (nothing_is_left_undone, WEB, "x = 1  # no" + "qa"),
    (private_names_stay_private, WEB, "def f(reactor):\n    return reactor._poller"),
    (private_names_stay_private, WEB, "from twisted.web.http import _IdentityTransferDecoder"),
    (private_names_stay_private, WEB, "from twisted.internet._sslverify import x"),
    (private_names_stay_private, WEB, "import dns._features"),
    (private_names_stay_private, WEB, "x = getattr(connection, '_version')"),
    (private_names_stay_private, WEB, "setattr(connection, '_version', 1)"),
    (
        private_names_stay_private,
        WEB,
        "class A:\n    def f(self):\n        return self.transport._writer",
    ),
    (nothing_waits_inside_a_page, "tests/browser/a.py", "page.wait_for_function('a')"),
]


@rows(*BREAKAGES)
def test_each_rule_would_notice(rule: Rule, path: str, text: str) -> None:
    """A file that breaks a rule is detected."""
    assert list(rule(Source(PurePosixPath(path), text)))


def test_every_rule_is_shown_what_breaks_it() -> None:
    """Each rule has an example that breaks it."""
    assert {rule for rule, _, _ in BREAKAGES} == {*RULES_OF_THE_HOUSE, nothing_waits_inside_a_page}


@rows(
    ("mailcheck/core/a.py", "import re, idna, msgspec\nfrom mailcheck.core.b import c"),
    ("mailcheck/store/a.py", "import sqlite3\nx = 'SELECT a FROM b'"),
    ("mailcheck/tap.py", "from twisted.internet import reactor"),
    (WEB, '"""Select what comes from it."""\nx = 1  # noqa: S101'),
    ("mailcheck/checks/a.py", "def f(a):\n    return a.proposed"),
    (WEB, "x = r'(?>(?:ab|c)*)[()*+]\\)++'"),
    (WEB, "from mailcheck.a import _b"),
    (WEB, "from __future__ import annotations"),
    (WEB, "class A:\n    def __init__(self, other):\n        self._x = other._x"),
    (WEB, "x = answer._replace(ttl=1)"),
    (WEB, "x = type(a).__name__"),
)
def test_valid_code_is_accepted(path: str, text: str) -> None:
    """Allowed code breaks no rule."""
    source = Source(PurePosixPath(path), text)
    assert [problem for rule in RULES_OF_THE_HOUSE for problem in rule(source)] == []


def test_names_of_test_files_are_unique() -> None:
    """Two files with one name cannot be collected together."""
    tests = Path(__file__).parent
    names = Counter(
        path.name
        for path in tests.rglob("test_*.py")
        if path.relative_to(tests).parts[0] not in ("interop", "browser")
    )
    assert [name for name, count in names.items() if count > 1] == []

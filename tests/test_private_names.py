"""Private names of libraries: where mailcheck uses them, and whether the libraries still have them.

A private name of a library may change in any release. The modules in `MAY_USE` give a reason for
each that they use, and the tests below fail when Twisted changes one.
"""

import ast
import configparser
import importlib
import inspect
import pkgutil
import re
import select
import socket
import sys
import textwrap
import warnings
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import ModuleType

import pytest
from twisted.internet.testing import StringTransport

import mailcheck
from mailcheck.connections.twisted_private import OpenHttpChannel
from tests.table import rows

pytestmark = pytest.mark.untraced  # it reads the sources

MAY_USE = {
    "mailcheck.connections.twisted_private": {
        *("_doReadOrWrite", "_poller", "_selectables"),
        *("_path", "_respondToBadRequestAndDisconnect"),
    },
}
"""The private names of Twisted that one module may use. An unused entry is an error."""

SUSPICIOUS = re.compile(
    r"(?<!\bself)(?<!\bcls)\._[a-zA-Z]|attr\(|^\s*(from|import)\b.*[\s.]_[a-zA-Z]|^\s+_\w+,$", re.M
)
"""Text of modules that may use private names of other objects. Parsing all takes seconds."""

OF_NAMED_TUPLES = {"_asdict", "_fields", "_make", "_replace"}
"""Names of the standard library that are public in spite of their underscore."""


def is_private(name: str) -> bool:
    """Return whether a name is private by convention."""
    return name.startswith("_") and not name.endswith("__")


def is_own_object(node: ast.expr) -> bool:
    """Return whether an expression is ``self``, ``cls`` or ``super()``."""
    name = node.func if isinstance(node, ast.Call) else node
    return isinstance(name, ast.Name) and name.id in ("self", "cls", "super")


def names_of_class(tree: ast.AST) -> set[str]:
    """Return the private names that a class defines, or uses on itself."""
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and is_own_object(node.value):
            names.add(node.attr)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
    return set(filter(is_private, names))


def uses_of_others(text: str) -> Iterator[str]:
    """List the uses of private names of objects that the module does not define itself.

    Private names of ``self`` belong to a library only if a base class does: see
    `names_of_base_classes`.
    """
    tree = ast.parse(text)
    nodes = list(ast.walk(tree))
    own = names_of_class(tree)
    own |= {node.value for node in nodes if isinstance(node, ast.Constant) and node.value in own}
    for node in nodes:
        if isinstance(node, ast.Attribute) and not is_own_object(node.value):
            if is_private(node.attr) and node.attr not in own | OF_NAMED_TUPLES:
                yield f"line {node.lineno}: {ast.unparse(node)}"
        elif isinstance(node, ast.ImportFrom) and not (node.module or "").startswith("mailcheck"):
            imported = [*(node.module or "").split("."), *(alias.name for alias in node.names)]
            yield from (
                f"line {node.lineno}: imports {one}" for one in filter(is_private, imported)
            )
        elif isinstance(node, ast.Import):
            imported = [part for alias in node.names for part in alias.name.split(".")]
            yield from (
                f"line {node.lineno}: imports {one}" for one in filter(is_private, imported)
            )
        elif isinstance(node, ast.Call) and getattr(node.func, "id", "").endswith("attr"):
            named = [str(one.value) for one in node.args[1:2] if isinstance(one, ast.Constant)]
            yield from (
                f"line {node.lineno}: {ast.unparse(node)}"
                for one in named
                if is_private(one) and one not in own
            )


@cache
def names_of_library(kind: type) -> frozenset[str]:
    """Return the private names of a class of a library."""
    try:
        return frozenset(names_of_class(source_of(kind)))
    except (OSError, TypeError):  # it is written in C
        return frozenset(filter(is_private, vars(kind)))


def source_of(kind: type) -> ast.Module:
    """Parse the source of a class."""
    with warnings.catch_warnings(action="ignore"):  # of libraries, about their strings
        return ast.parse(textwrap.dedent(inspect.getsource(kind)))


def names_of_base_classes(kind: type) -> set[str]:
    """Return the private names of the base classes that come from libraries."""
    own = {kind.__module__.partition(".")[0], *sys.stdlib_module_names}
    bases = [base for base in kind.__mro__ if base.__module__.partition(".")[0] not in own]
    return set[str]().union(*map(names_of_library, bases))


def classes_of(module: ModuleType) -> Iterator[type]:
    """List the classes that a module defines."""
    for kind in vars(module).values():
        if inspect.isclass(kind) and kind.__module__ == module.__name__:
            yield kind


def test_private_names_of_other_objects_are_not_used() -> None:
    """No module uses a private name of an object that it does not define itself."""
    root = Path(mailcheck.__file__).parent
    texts = {path.relative_to(root): path.read_text("utf-8") for path in root.rglob("*.py")}
    found = [
        f"{path}: {use}"
        for path, text in texts.items()
        if SUSPICIOUS.search(text)
        for use in uses_of_others(text)
    ]
    assert found == []


def test_private_names_of_base_classes_are_listed() -> None:
    """A subclass of a library class uses and redefines only the private names that are listed."""
    found: dict[str, set[str]] = {}
    for info in pkgutil.walk_packages(mailcheck.__path__, "mailcheck."):
        for kind in classes_of(importlib.import_module(info.name)):
            theirs = names_of_base_classes(kind)
            if theirs and (used := names_of_class(source_of(kind)) & theirs):
                found.setdefault(info.name, set()).update(used)
    assert found == MAY_USE


@rows(
    "def f(reactor):\n    return reactor._poller",
    "from twisted.web.http import _IdentityTransferDecoder",
    "from twisted.internet._sslverify import x",
    "import dns._features",
    "x = getattr(connection, '_version')",
    "setattr(connection, '_version', 1)",
    "class A:\n    def f(self):\n        return self.transport._writer",
)
def test_uses_of_private_names_are_noticed(text: str) -> None:
    """Each way to reach a private name of another object is found."""
    assert SUSPICIOUS.search(text)
    assert list(uses_of_others(text))


@rows(
    "from mailcheck.a import _b",
    "from __future__ import annotations",
    "class A:\n    def __init__(self, other):\n        self._x = other._x",
    "x = answer._replace(ttl=1)",
    "x = type(a).__name__",
)
def test_allowed_names(text: str) -> None:
    """Names that a module defines, methods of named tuples and special names are allowed."""
    assert list(uses_of_others(text)) == []


def test_private_names_of_base_classes_are_noticed() -> None:
    """A private name of a base class is found when it is used and when it is redefined."""
    assert "_version" in names_of_base_classes(OpenHttpChannel)
    for body in ("_version = 1", "def f(self): return self._version", "def _version(self): ..."):
        assert names_of_class(ast.parse(f"class A:\n    {body}")) == {"_version"}


def test_the_version_of_twisted_is_bounded() -> None:
    """The requirements exclude releases of Twisted that may have changed the names."""
    setup = configparser.ConfigParser()
    setup.read(Path(__file__).parent.parent / "setup.cfg")
    wanted = setup["options"]["install_requires"] + setup["options.extras_require"]["manhole"]
    wanted += setup["options.extras_require"]["test"]
    requirements = [line for line in wanted.split("\n") if line.startswith("twisted[")]
    assert requirements
    assert all(line.endswith(", < 27") for line in requirements)


class Channel(OpenHttpChannel):
    """A connection that counts malformed requests."""

    refused = 0

    def reject_malformed(self) -> None:
        """Count the request, and discard the rest, as the server does."""
        self.refused += 1
        self.clearLineBuffer()


@rows(b"nonsense\r\n\r\n", b"GET / HTTP/1.1\r\nno field\r\n\r\n", b"GET / HTTP/1.1\r\n: x\r\n\r\n")
def test_twisted_calls_what_refuses_a_malformed_request(data: bytes) -> None:
    """For a malformed request, Twisted calls only ``_respondToBadRequestAndDisconnect``."""
    channel, transport = Channel(), StringTransport()
    channel.timeOut = None
    channel.makeConnection(transport)
    channel.dataReceived(data)
    assert channel.refused >= 1
    assert transport.value() == b""
    assert not transport.disconnecting


@pytest.mark.skipif(not hasattr(select, "epoll"), reason="this system has no epoll")
def test_the_reactor_has_the_names_that_short_turns_use() -> None:
    """``_poller``, ``_selectables`` and ``_doReadOrWrite`` behave as `ShortTurns` expects."""
    from twisted.internet.epollreactor import EPollReactor

    class Reader:
        """One end of a pair of sockets."""

        def __init__(self, end: socket.socket) -> None:
            self.fileno = end.fileno
            self.reads = 0

        def doRead(self) -> None:
            """Count the read."""
            self.reads += 1

    reactor = EPollReactor()
    ours, theirs = socket.socketpair()
    with ours, theirs:
        theirs.send(b"x")
        reader = Reader(ours)
        reactor.addReader(reader)
        assert reactor._selectables[ours.fileno()] is reader
        assert isinstance(reactor._poller, select.epoll)
        ready = dict(reactor._poller.poll(1, 10))
        reactor._doReadOrWrite(reader, ours.fileno(), ready[ours.fileno()])
        assert reader.reads == 1
        reactor.removeReader(reader)
        assert ours.fileno() not in reactor._selectables
    reactor._poller.close()

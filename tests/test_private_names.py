"""Private names of libraries: where mailcheck uses them, and whether the libraries still have them.

A private name of a library may change in any release. The modules in `MAY_USE` give a reason for
each that they use, and the tests below fail when Twisted changes one.
"""

import ast
import configparser
import importlib
import inspect
import pkgutil
import select
import socket
import sys
import warnings
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import ModuleType

import pytest
from twisted.internet.testing import StringTransport

import mailcheck
from mailcheck.connections.twisted_private import OpenHttpChannel
from scripts.survey_code import nodes_below, nodes_of
from tests.table import rows
from tests.test_architecture import is_private, names_of_class

pytestmark = pytest.mark.untraced  # it reads the sources

MAY_USE = {
    "mailcheck.connections.twisted_private": {
        *("_doReadOrWrite", "_poller", "_selectables"),
        *("_path", "_respondToBadRequestAndDisconnect"),
    },
}
"""The private names of Twisted that one module may use. An unused entry is an error."""


@cache
def names_by_class(path: str) -> dict[str, set[str]]:
    """Return the private names of each class in a file."""
    names: dict[str, set[str]] = {}
    with warnings.catch_warnings(action="ignore"):  # of libraries, about their strings
        nodes = nodes_of(Path(path).read_text("utf-8"))
    for kind in nodes[ast.ClassDef]:
        names.setdefault(kind.name, set()).update(names_of_class(nodes_below(kind)))
    return names


def names_of_kind(kind: type) -> set[str]:
    """Return the private names of a class."""
    try:
        return names_by_class(inspect.getfile(kind))[kind.__name__]
    except (KeyError, TypeError, UnicodeDecodeError):  # it is not written in Python
        return set(filter(is_private, vars(kind)))


def names_of_base_classes(kind: type) -> set[str]:
    """Return the private names of the base classes that come from libraries."""
    own = {kind.__module__.partition(".")[0], *sys.stdlib_module_names}
    bases = [base for base in kind.__mro__ if base.__module__.partition(".")[0] not in own]
    return set[str]().union(*map(names_of_kind, bases))


def classes_of(module: ModuleType) -> Iterator[type]:
    """List the classes that a module defines."""
    for kind in vars(module).values():
        if inspect.isclass(kind) and kind.__module__ == module.__name__:
            yield kind


def test_private_names_of_base_classes_are_listed() -> None:
    """A subclass of a library class uses and redefines only the private names that are listed."""
    found: dict[str, set[str]] = {}
    for info in pkgutil.walk_packages(mailcheck.__path__, "mailcheck."):
        for kind in classes_of(importlib.import_module(info.name)):
            theirs = names_of_base_classes(kind)
            if theirs and (used := names_of_kind(kind) & theirs):
                found.setdefault(info.name, set()).update(used)
    assert found == MAY_USE


def test_private_names_of_base_classes_are_noticed() -> None:
    """A private name of a base class is found when it is used and when it is redefined."""
    assert "_version" in names_of_base_classes(OpenHttpChannel)
    for body in ("_version = 1", "def f(self): return self._version", "def _version(self): ..."):
        assert names_of_class(nodes_of(f"class A:\n    {body}")) == {"_version"}


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

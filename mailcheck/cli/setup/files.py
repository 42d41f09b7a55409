"""Files that describe projects: their members, keys, webhooks, watches and heartbeats.

The tables have the fields of the requests of the API, so each is declared, checked and described
there.
"""

import re
import tomllib
from collections.abc import Collection, Mapping
from enum import StrEnum
from pathlib import Path
from typing import Any

from msgspec import Struct

from mailcheck.api.requests.accounts import KeyToCreate, MemberToSet, ProjectToCreate
from mailcheck.api.requests.checks import WatchToCreate
from mailcheck.api.requests.heartbeats import HeartbeatToCreate
from mailcheck.api.requests.inbox import WebhookToCreate
from mailcheck.api.requests.parsing import Request, read_object, request_fields
from mailcheck.core.errors import InvalidParameter, did_you_mean
from mailcheck.core.webhooks import parse_alert_receivers

_CAPITAL = re.compile(r"([A-Z])")


class SetupError(Exception):
    """A file is not valid. ``problems`` names all mistakes."""

    def __init__(self, problems: Collection[str]) -> None:
        super().__init__("\n".join(problems))
        self.problems = tuple(problems)


class Kind(StrEnum):
    """What belongs to a project. The values are the names of the tables."""

    MEMBER = "members"
    KEY = "keys"
    WEBHOOK = "webhooks"
    WATCH = "watches"
    HEARTBEAT = "heartbeats"

    @property
    def one(self) -> str:
        """The name of one of them."""
        return "watch" if self is Kind.WATCH else self.removesuffix("s")


class _Table(Struct, frozen=True):
    """A table of a file: the request of its fields, the field that names it, and more fields.

    ``file`` is the field with the file for a secret, and ``without`` are fields of the request that
    a file does not have.
    """

    request: type[Request]
    identity: str
    more: tuple[str, ...] = ()
    file: str = ""
    without: tuple[str, ...] = ()

    @property
    def fields(self) -> Mapping[str, str]:
        """The names of the fields in JSON, by their names in a file."""
        names = [name for name in request_fields(self.request) if name not in self.without]
        return {snake(name): name for name in names}


TABLES: Mapping[Kind, _Table] = {
    Kind.MEMBER: _Table(MemberToSet, "name", more=("name",)),
    Kind.KEY: _Table(KeyToCreate, "name", file="file"),
    Kind.WEBHOOK: _Table(WebhookToCreate, "url", file="secret_file", without=("after",)),
    Kind.WATCH: _Table(WatchToCreate, "target"),
    Kind.HEARTBEAT: _Table(HeartbeatToCreate, "name"),
}


class Wanted(Struct, frozen=True):
    """Something that a project should have.

    ``body`` are the fields of the request, and ``file`` is where its secret is written.
    """

    kind: Kind
    name: str
    body: Mapping[str, Any]
    file: Path | None = None


class WantedProject(Struct, frozen=True):
    """A project of a file. ``removes`` are the kinds of which it has no others."""

    name: str
    owner: str | None
    items: tuple[Wanted, ...]
    kinds: frozenset[Kind]
    removes: frozenset[Kind]


class Setup(Struct, frozen=True):
    """The content of a file. ``removed`` are the names of projects to delete."""

    projects: tuple[WantedProject, ...]
    removed: tuple[str, ...]


def snake(name: str) -> str:
    """Return a name of the API as files spell it: ``everyMinutes`` is ``every_minutes``."""
    return _CAPITAL.sub(r"_\1", name).lower()


def read_setup(path: Path) -> Setup:
    """Read a file.

    :raises SetupError: it is not valid; all mistakes are named.
    :raises OSError: it cannot be read.
    """
    try:
        document = tomllib.loads(path.read_text("utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as problem:
        raise SetupError([f"{path} is not TOML: {problem}"]) from None
    reader = _Reader(path.parent)
    setup = reader.read(document)
    if reader.problems:
        raise SetupError(reader.problems)
    return setup


class _Reader:
    """Reads a document, and collects its mistakes. Files are relative to ``folder``."""

    def __init__(self, folder: Path) -> None:
        self.problems: list[str] = []
        self._folder = folder
        self._files: dict[Path, str] = {}

    def read(self, document: Mapping[str, Any]) -> Setup:
        self._require_known(document, ("projects", "remove_projects"), "the file")
        tables = self._tables(document, "projects", "the file")
        projects = tuple(
            self._project(table, f"project {table.get('name', number)}")
            for number, table in enumerate(tables, 1)
        )
        removed = self._texts(document, "remove_projects", "the file")
        self._require_distinct([project.name for project in projects], "project")
        for name in removed:
            if name in {project.name for project in projects}:
                self.problems.append(f"the file: {name!r} is in projects and in remove_projects")
        return Setup(projects, removed)

    def _project(self, table: Mapping[str, Any], where: str) -> WantedProject:
        self._require_known(table, ("name", "owner", "remove", *Kind), where)
        named = {name: table[name] for name in ("name", "owner") if name in table}
        made = self._parsed(ProjectToCreate, named, where)
        kinds = frozenset(kind for kind in Kind if kind in table)
        removes = frozenset(
            kind
            for kind in self._texts(table, "remove", where)
            if self._is_kind(kind, kinds, where)
        )
        items = tuple(
            item
            for kind in kinds
            for number, entry in enumerate(self._tables(table, kind, where), 1)
            if (item := self._item(kind, entry, f"{where}, {kind.one} {number}"))
        )
        for kind in kinds:
            same = [_identity(item) for item in items if item.kind is kind]
            self._require_distinct(same, f"{where}: the {kind.one}")
        ordered = sorted(items, key=lambda item: list(Kind).index(item.kind))
        return WantedProject(
            made.name if made else "",
            made.owner if made else None,
            tuple(ordered),
            kinds=kinds,
            removes=frozenset(map(Kind, removes)),
        )

    def _is_kind(self, name: str, kinds: Collection[Kind], where: str) -> bool:
        if name not in list(Kind):
            self.problems.append(f"{where}: remove has {name!r}; {did_you_mean(name, list(Kind))}")
        elif name not in kinds:
            # A project without a table of this kind would lose all of them.
            self.problems.append(
                f"{where}: remove has {name!r}, but the project has none; write {name} = [] to "
                "remove all"
            )
        else:
            return True
        return False

    def _item(self, kind: Kind, table: Mapping[str, Any], where: str) -> Wanted | None:
        row = TABLES[kind]
        own = [*row.more, *([row.file] if row.file else [])]
        self._require_known(table, (*own, *row.fields), where)
        sent = {row.fields[name]: value for name, value in table.items() if name in row.fields}
        parsed = self._parsed(row.request, sent, where)
        name = table.get(row.identity)
        if not isinstance(name, str) or not name.strip():
            if row.identity in row.more:
                self.problems.append(f"{where}: {row.identity} is missing")
            return None
        file = self._file(table[row.file], f"{where}: {row.file}") if row.file in table else None
        if kind is Kind.KEY and row.file not in table:
            self.problems.append(f"{where}: file is missing: the key is written there")
        return None if parsed is None else Wanted(kind, name, sent, file)

    def _parsed(self, request: type[Any], sent: Mapping[str, Any], where: str) -> Any:
        try:
            parsed = read_object(request, sent)
            for derived in ("settings", "wish", "wanted"):
                getattr(parsed, derived, None)
            parse_alert_receivers(sent.get("alertTo", ()))
        except InvalidParameter as problem:
            text = str(problem).replace(problem.name, snake(problem.name))
            self.problems.append(f"{where}: {text.partition(': send {')[0]}")
            return None
        return parsed

    def _file(self, value: object, where: str) -> Path | None:
        if not isinstance(value, str) or not value:
            self.problems.append(f"{where} must be the path of a file")
            return None
        path = (self._folder / value).absolute()
        if path in self._files:
            self.problems.append(f"{where} is the same file as that of {self._files[path]}")
        self._files[path] = where
        return path

    def _tables(self, table: Mapping[str, Any], name: str, where: str) -> list[Mapping[str, Any]]:
        listed = table.get(name, [])
        if isinstance(listed, list) and all(isinstance(entry, dict) for entry in listed):
            return listed
        self.problems.append(f"{where}: {name} must be a list of tables")
        return []

    def _texts(self, table: Mapping[str, Any], name: str, where: str) -> tuple[str, ...]:
        listed = table.get(name, [])
        if isinstance(listed, list) and all(isinstance(entry, str) for entry in listed):
            return tuple(listed)
        self.problems.append(f"{where}: {name} must be a list of texts")
        return ()

    def _require_known(self, table: Mapping[str, Any], known: Collection[str], where: str) -> None:
        for name in table:
            if name not in known:
                self.problems.append(f"{where}: unknown field {name}; {did_you_mean(name, known)}")

    def _require_distinct(self, names: Collection[str], what: str) -> None:
        for name in dict.fromkeys(names):
            if name and list(names).count(name) > 1:
                self.problems.append(f"{what} {name} is in the file twice")


def _identity(item: Wanted) -> str:
    """Return what no other thing of the kind has in a project."""
    if item.kind is not Kind.WEBHOOK:
        return item.name.casefold()
    return str(sorted((name, str(value)) for name, value in item.body.items()))

"""What has to be changed so that projects are as a file describes them: a pure function."""

from collections.abc import Collection, Iterator, Mapping
from enum import StrEnum
from pathlib import Path
from typing import Any

from msgspec import Struct

from mailcheck.cli.setup.files import TABLES, Kind, Setup, SetupError, Wanted, WantedProject
from mailcheck.core.addresses import parse_mailbox
from mailcheck.core.errors import nearest_word
from mailcheck.core.webhooks import parse_alert_receivers, split_kind, web_url_of

OWN_KEY = "mailcheck apply"
"""Name of the keys with which the command works. No file is compared with them."""


class Verb(StrEnum):
    """What is done."""

    ADD = "add"
    INVITE = "invite"
    CHANGE = "change"
    REMOVE = "remove"


class Present(Struct, frozen=True):
    """Something that a project has, as the API returns it."""

    kind: Kind
    name: str
    id: str
    facts: Mapping[str, Any]


class PresentProject(Struct, frozen=True):
    """A project. ``items`` are of the kinds that the file has. ``invited`` are addresses."""

    id: str
    name: str
    items: tuple[Present, ...] = ()
    invited: frozenset[str] = frozenset()


class Change(Struct, frozen=True):
    """A change of a project, or of something in it (`kind` is `None` for the project).

    ``body`` is what the request sends, ``id`` is that of what is changed or removed, and
    ``differences`` are words about the change, for people.
    """

    verb: Verb
    project: str
    kind: Kind | None
    name: str
    id: str = ""
    body: Mapping[str, Any] = {}
    file: Path | None = None
    differences: tuple[str, ...] = ()

    def __str__(self) -> str:
        """Describe the change, such as ``change the watch example.com of shop: paused true``."""
        if self.kind is None:
            what = f"the project {self.project}"
        else:
            what = f"the {self.kind.one} {self.name} of {self.project}"
        details = ", ".join(self.differences)
        return f"{self.verb} {what}" + (f": {details}" if details else "")


class Plan(Struct, frozen=True):
    """The changes in the order in which they are made, and what stays although it differs."""

    changes: tuple[Change, ...]
    left: tuple[str, ...]


def make_plan(
    wanted: Setup,
    present: Mapping[str, PresentProject],
    accounts: Mapping[str, str],
    files: Collection[Path],
) -> Plan:
    """Return what has to be changed.

    :param present: the projects by their names.
    :param accounts: ids of the people by their names.
    :param files: those of the files for secrets that exist.
    :raises SetupError: a member is unknown, or a secret would replace a file.
    """
    planner = _Planner(accounts, files)
    for project in wanted.projects:
        planner.plan(project, present.get(project.name))
    named = {project.name for project in wanted.projects}
    for name in wanted.removed:
        if name in present:
            planner.removals.append(Change(Verb.REMOVE, name, None, name, present[name].id))
    others = [name for name in present if name not in named and name not in wanted.removed]
    planner.left += [f"the project {name} is not in the file" for name in others]
    if planner.problems:
        raise SetupError(planner.problems)
    return Plan((*planner.changes, *planner.removals), tuple(planner.left))


class _Planner:
    """Collects changes, what is left alone, and problems. Removals come last."""

    def __init__(self, accounts: Mapping[str, str], files: Collection[Path]) -> None:
        self.changes: list[Change] = []
        self.removals: list[Change] = []
        self.left: list[str] = []
        self.problems: list[str] = []
        self._accounts = accounts
        self._files = files

    def plan(self, wanted: WantedProject, present: PresentProject | None) -> None:
        """Plan the changes of a project."""
        name = wanted.name
        if present is None:
            owner = {} if wanted.owner is None else {"owner": wanted.owner}
            self.changes.append(Change(Verb.ADD, name, None, name, body={"name": name, **owner}))
            present = PresentProject("", name)
        found = list(present.items)
        for item in wanted.items:
            same = next((other for other in found if _is_same(item, other)), None)
            if same is None:
                self._add(item, present)
            else:
                found.remove(same)
                self._compare(item, same, name)
        receivers = _receivers(wanted, present)
        for other in found:
            # The webhooks of alerts come and go with their watches.
            if other.kind is Kind.WEBHOOK and web_url_of(other.name) in receivers:
                continue
            if other.kind is Kind.KEY and (other.facts["isProgram"] or other.name == OWN_KEY):
                continue
            if other.kind in wanted.removes:
                self.removals.append(Change(Verb.REMOVE, name, other.kind, other.name, id=other.id))
            else:
                self.left.append(f"the {other.kind.one} {other.name} of {name} is not in the file")

    def _add(self, item: Wanted, project: PresentProject) -> None:
        verb, details, item_id = Verb.ADD, tuple(_described(item.body, item)), ""
        if item.kind is Kind.MEMBER:
            item_id = self._accounts.get(item.name, "")
            if not item_id and item.name in project.invited:
                self.left.append(
                    f"{item.name} is invited to {project.name}, and has not joined yet"
                )
                return
            if not item_id:
                verb = Verb.INVITE
                self._require_address(item.name, project.name)
        if item.file in self._files:
            self.problems.append(
                f"{item.file} exists, but {project.name} has no {item.kind.one} {item.name}: move "
                "the file away"
            )
        self.changes.append(
            Change(
                verb,
                project.name,
                item.kind,
                item.name,
                id=item_id,
                body=item.body,
                file=item.file,
                differences=details,
            )
        )

    def _require_address(self, name: str, project: str) -> None:
        try:
            parse_mailbox(name)
        except ValueError:
            similar = nearest_word(name, list(self._accounts))
            meant = f"did you mean {similar}?" if similar else "invite people by their addresses"
            self.problems.append(f"project {project}: no person has the account {name!r}; {meant}")

    def _compare(self, item: Wanted, present: Present, project: str) -> None:
        different = {
            name: value
            for name, value in item.body.items()
            if name != TABLES[item.kind].identity
            and name in present.facts
            and _plain(value, name) != _plain(present.facts[name], name)
        }
        where = f"the {item.kind.one} {item.name} of {project}"
        if item.file is not None and item.file not in self._files:
            self.left.append(f"{where} exists, and its secret is not in {item.file}")
        if not different:
            return
        if item.kind in (Kind.KEY, Kind.WEBHOOK):
            names = ", ".join(different)
            self.left.append(f"{where} differs in {names}; it cannot be changed: remove it first")
            return
        details = tuple(_described(different, item))
        change = Change(
            Verb.CHANGE,
            project,
            item.kind,
            item.name,
            id=present.id,
            body=different,
            differences=details,
        )
        self.changes.append(change)


def _receivers(wanted: WantedProject, present: PresentProject) -> frozenset[str]:
    """Return the receivers of alerts, of whom some are webhooks."""
    bodies = [item.body for item in wanted.items] + [item.facts for item in present.items]
    named = (to for body in bodies for to in body.get("alertTo", ()))
    return frozenset(web_url_of(split_kind(to)[1]) for to in named)


def _is_same(item: Wanted, present: Present) -> bool:
    """Return whether something that is wanted is there, perhaps with other settings."""
    if item.kind is not present.kind or item.name.casefold() != present.name.casefold():
        return False
    if item.kind is not Kind.WEBHOOK:
        return True
    # Webhooks are not changed: one with another filter is another webhook.
    chosen = {name: value for name, value in item.body.items() if name not in ("url", "provider")}
    wanted = {name: _plain(value) for name, value in chosen.items()}
    filters = {name: _plain(value) for name, value in present.facts["filter"].items()}
    return wanted == filters and item.body.get("provider") == present.facts["provider"]


def _plain(value: Any, name: str = "") -> Any:
    """Return a value for comparisons: lists without their order, and empty texts as `None`."""
    if name == "alertTo":
        return set(parse_alert_receivers(value))
    if isinstance(value, list | tuple):
        return sorted(str(entry).casefold() for entry in value)
    if isinstance(value, str):
        return value.casefold() or None
    return value


def _described(body: Mapping[str, Any], item: Wanted) -> Iterator[str]:
    for name, value in body.items():
        if name != TABLES[item.kind].identity:
            shown = " ".join(map(str, value)) if isinstance(value, list) else str(value)
            yield f"{name} {shown}"

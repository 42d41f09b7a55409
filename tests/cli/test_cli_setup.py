"""``mailcheck apply``: files with projects, and what has to be changed."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from mailcheck.cli.setup.files import Kind, Setup, SetupError, read_setup
from mailcheck.cli.setup.plans import OWN_KEY, Plan, Present, PresentProject, make_plan
from tests.table import rows

FILE = """
[[projects]]
name = "shop"
members = [{ name = "ann@example.com", role = "editor" }, { name = "bob", role = "reader" }]

[[projects.keys]]
name = "CI"
scopes = ["inbox:read"]
file = "keys/ci"

[[projects.webhooks]]
url = "https://ci.example.com/mail"
tag = "signup"

[[projects.watches]]
target = "Example.com"
every_minutes = 60
selectors = ["s1", "s2"]
alert_to = ["ops@example.com"]

[[projects.heartbeats]]
name = "backup"
at = "06:00"
"""

PEOPLE = {"bob": "b-1", "eve": "e-1"}


def read(tmp_path: Path, text: str) -> Setup:
    """Return the content of a file."""
    path = tmp_path / "team.toml"
    path.write_text(text)
    return read_setup(path)


def present(*items: Present, invited: tuple[str, ...] = ()) -> dict[str, PresentProject]:
    """Return the project with these items."""
    return {"shop": PresentProject("s-1", "shop", items, frozenset(invited))}


def member(name: str, role: str) -> Present:
    """Return a member."""
    return Present(Kind.MEMBER, name, f"id-{name}", {"name": name, "role": role})


def key(name: str, *scopes: str, is_program: bool = False) -> Present:
    """Return a key."""
    facts = {"name": name, "scopes": list(scopes), "tags": [], "isProgram": is_program}
    return Present(Kind.KEY, name, f"id-{name}", facts)


def webhook(url: str, **wanted: Any) -> Present:
    """Return a webhook with a filter."""
    return Present(Kind.WEBHOOK, url, "w-1", {"url": url, "filter": wanted, "provider": None})


def watch(**facts: Any) -> Present:
    """Return the watch of the domain."""
    known = {"target": "example.com", "everyMinutes": 60, "selectors": ["s2", "s1"]}
    receivers = {"alertTo": ["ops@example.com"]}
    return Present(Kind.WATCH, "example.com", "d-1", {**known, **receivers, **facts})


def beat(**facts: Any) -> Present:
    """Return the heartbeat."""
    known: dict[str, Any] = {"name": "backup", "at": "06:00", "quiet": None, "alertTo": []}
    return Present(Kind.HEARTBEAT, "backup", "backup", {**known, **facts})


ALL = (
    member("ann@example.com", "editor"),
    member("bob", "reader"),
    key("CI", "inbox:read"),
    webhook("https://ci.example.com/mail", tag="signup"),
    watch(),
    beat(),
)
"""What the file describes."""


def lines(plan: Plan) -> list[str]:
    """Return the changes as they are shown."""
    return [str(change) for change in plan.changes]


def plan_of(
    tmp_path: Path, text: str, found: Mapping[str, PresentProject], *, has_key: bool = True
) -> Plan:
    """Return the plan of a file."""
    files = [tmp_path / "keys" / "ci"] if has_key else []
    return make_plan(read(tmp_path, text), found, PEOPLE, files)


def test_a_new_project(tmp_path: Path) -> None:
    """A missing project is made with everything. People without an account are invited."""
    plan = plan_of(tmp_path, FILE, {}, has_key=False)
    assert lines(plan) == [
        "add the project shop",
        "invite the member ann@example.com of shop: role editor",
        "add the member bob of shop: role reader",
        "add the key CI of shop: scopes inbox:read",
        "add the webhook https://ci.example.com/mail of shop: tag signup",
        (
            "add the watch Example.com of shop: everyMinutes 60, selectors s1 s2, "
            "alertTo ops@example.com"
        ),
        "add the heartbeat backup of shop: at 06:00",
    ]
    assert plan.left == ()


def test_a_second_run_changes_nothing(tmp_path: Path) -> None:
    """What is as the file describes it is not changed, whatever the order and case of lists."""
    assert plan_of(tmp_path, FILE, present(*ALL)) == Plan((), ())


@rows(
    (member("bob", "owner"), 1, ["change the member bob of shop: role reader"], []),
    (watch(everyMinutes=15), 4, ["change the watch Example.com of shop: everyMinutes 60"], []),
    (watch(selectors=["s1"]), 4, ["change the watch Example.com of shop: selectors s1 s2"], []),
    (beat(at="07:00"), 5, ["change the heartbeat backup of shop: at 06:00"], []),
    (beat(quiet="22:00-06:00"), 5, [], []),
    (watch(alertTo=["mailto:ops@example.com"]), 4, [], []),
    (
        key("CI", "tests"),
        2,
        [],
        ["the key CI of shop differs in scopes; it cannot be changed: remove it first"],
    ),
    (
        webhook("https://ci.example.com/mail", tag="other"),
        3,
        ["add the webhook https://ci.example.com/mail of shop: tag signup"],
        ["the webhook https://ci.example.com/mail of shop is not in the file"],
    ),
)
def test_what_differs(
    tmp_path: Path, other: Present, at: int, changes: list[str], left: list[str]
) -> None:
    """Only fields that the file has and that differ are changed. Keys and webhooks are not."""
    items = [*ALL[:at], other, *ALL[at + 1 :]]
    plan = plan_of(tmp_path, FILE, present(*items))
    assert (lines(plan), list(plan.left)) == (changes, left)


def test_others_are_left_alone(tmp_path: Path) -> None:
    """What the file does not have is listed, and removed only if the file says so."""
    others = (
        member("eve", "owner"),
        key("old"),
        key("agent", is_program=True),
        key(OWN_KEY),
        webhook("https://old.example.com/"),
        webhook("https://alerts.example.com/"),
    )
    found = {
        **present(*ALL[:-1], beat(alertTo=["error=https://alerts.example.com/"]), *others),
        "legacy": PresentProject("l-1", "legacy"),
    }
    plan = plan_of(tmp_path, FILE, found)
    assert lines(plan) == []
    assert list(plan.left) == [
        "the member eve of shop is not in the file",
        "the key old of shop is not in the file",
        "the webhook https://old.example.com/ of shop is not in the file",
        "the project legacy is not in the file",
    ]
    text = FILE.replace('name = "shop"', 'name = "shop"\nremove = ["members", "keys"]', 1)
    text = f'remove_projects = ["legacy", "gone"]\n{text}'
    plan = plan_of(tmp_path, text, found)
    assert lines(plan) == [
        "remove the member eve of shop",
        "remove the key old of shop",
        "remove the project legacy",
    ]
    assert [change.id for change in plan.changes] == ["id-eve", "id-old", "l-1"]
    assert list(plan.left) == ["the webhook https://old.example.com/ of shop is not in the file"]


def test_whoever_is_invited_is_not_invited_again(tmp_path: Path) -> None:
    """An invitation that was not used yet is left alone."""
    plan = plan_of(tmp_path, FILE, present(*ALL[1:], invited=("ann@example.com",)))
    assert (lines(plan), list(plan.left)) == (
        [],
        ["ann@example.com is invited to shop, and has not joined yet"],
    )


def test_kinds_that_a_file_does_not_have(tmp_path: Path) -> None:
    """A file without a table of a kind says nothing about that kind."""
    setup = read(tmp_path, '[[projects]]\nname = "shop"\nkeys = []\n')
    assert setup.projects[0].kinds == {Kind.KEY}
    assert make_plan(setup, present(), PEOPLE, []) == Plan((), ())


def test_files_of_secrets(tmp_path: Path) -> None:
    """A new secret replaces no file, and a lost file is told."""
    with pytest.raises(SetupError, match="move the file away"):
        plan_of(tmp_path, FILE, {})
    left = plan_of(tmp_path, FILE, present(*ALL), has_key=False).left
    assert list(left) == [f"the key CI of shop exists, and its secret is not in {tmp_path}/keys/ci"]


def test_an_unknown_person(tmp_path: Path) -> None:
    """A member whose name is neither an account nor an address is a mistake."""
    with pytest.raises(SetupError, match=r"no person has the account 'boob'; did you mean bob\?"):
        plan_of(tmp_path, FILE.replace('"bob"', '"boob"'), present(*ALL))


@rows(
    ("projects = 1", "the file: projects must be a list of tables"),
    ("[[project]]", "the file: unknown field project; did you mean projects?"),
    ("[[projects]]", "project 1: name"),
    (
        '[[projects]]\nname = "a"\nmember = []',
        "project a: unknown field member; did you mean members?",
    ),
    (
        '[[projects]]\nname = "a"\nmembers = [{ name = "b", role = "edit" }]',
        "project a, member 1: role must be",
    ),
    ('[[projects]]\nname = "a"\nmembers = [{ role = "editor" }]', "member 1: name is missing"),
    (
        '[[projects]]\nname = "a"\nkeys = [{ name = "k", scope = ["tests"], file = "f" }]',
        "project a, key 1: unknown field scope; did you mean scopes?",
    ),
    ('[[projects]]\nname = "a"\nkeys = [{ name = "k" }]', "key 1: file is missing"),
    (
        '[[projects]]\nname = "a"\nkeys = [{ name = "k", scopes = ["testz"], file = "f" }]',
        "project a, key 1: scopes",
    ),
    (
        '[[projects]]\nname = "a"\nkeys = [{ name = "k", file = "f" }, { name = "l", file = "f" }]',
        "is the same file as that of project a, key 1",
    ),
    (
        '[[projects]]\nname = "a"\nwatches = [{ target = "example.com", every_minute = 5 }]',
        "watch 1: unknown field every_minute; did you mean every_minutes?",
    ),
    (
        '[[projects]]\nname = "a"\nwatches = [{ target = "example.com", every_minutes = "x" }]',
        "project a, watch 1: every_minutes",
    ),
    (
        '[[projects]]\nname = "a"\nwatches = [{ target = "b.example" }, { target = "B.example" }]',
        "project a: the watch b.example is in the file twice",
    ),
    (
        '[[projects]]\nname = "a"\nheartbeats = [{ name = "b", at = "06:00", every_minutes = 9 }]',
        "heartbeat 1: every_minutes cannot be combined",
    ),
    (
        '[[projects]]\nname = "a"\nwatches = [{ target = "b.example", alert_to = ["x"] }]',
        "project a, watch 1: alert_to",
    ),
    ('[[projects]]\nname = "a"\n[[projects]]\nname = "a"', "project a is in the file twice"),
    ('[[projects]]\nname = "a"\nremove = ["key"]', "remove has 'key'; did you mean keys?"),
    ('[[projects]]\nname = "a"\nremove = ["keys"]', "write keys = [] to remove all"),
    ('remove_projects = ["a"]\n[[projects]]\nname = "a"', "in projects and in remove_projects"),
    ("[[projects", "is not TOML"),
)
def test_mistakes(tmp_path: Path, text: str, problem: str) -> None:
    """A mistake in a file is named with its place, before anything is asked or changed."""
    with pytest.raises(SetupError) as refused:
        read(tmp_path, text)
    assert any(problem in one for one in refused.value.problems), refused.value.problems


def test_all_mistakes_are_named(tmp_path: Path) -> None:
    """Several mistakes are named at once."""
    text = '[[projects]]\nname = "a"\ncolour = 1\nkeys = [{ name = "k" }]\nwatches = [{}]'
    with pytest.raises(SetupError) as refused:
        read(tmp_path, text)
    assert len(refused.value.problems) >= 3

"""``mailcheck apply``: a daemon is set up by a file, and again without a change."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from mailcheck.config.options import Config, StorageOptions
from mailcheck.core.audit import Action
from mailcheck.core.identifiers import ADDRESS_FILE
from mailcheck.core.rights import Rights, Scope
from tests.cli.command_line import Mailcheck, Outcome
from tests.cli.house_commands import commands_at
from tests.cli.test_cli_setup import FILE
from tests.house import House, config_in_memory, run
from tests.servers.house_server import serving_house

TEAM = FILE + '\n[[projects]]\nname = "other"\n'


@pytest.fixture
def house() -> House:
    """An application with the account of the operator and one of another person."""
    house = House(config_in_memory())
    house.add_account("bob")
    return house


@pytest.fixture
def apply(house: House, tmp_path: Path) -> Iterator[Mailcheck]:
    """Run ``mailcheck apply`` with a key of the operator that has all scopes."""
    key = house.issue_key(house.account, rights=Rights(frozenset(Scope)))
    with commands_at(house, tmp_path, "apply", str(tmp_path / "team.toml"), key=key) as run_apply:

        def call(text: str, *rest: str) -> Outcome:
            (tmp_path / "team.toml").write_text(text)
            return run_apply(*rest)

        yield call


def test_a_team_is_set_up(apply: Mailcheck, house: House, tmp_path: Path) -> None:
    """The plan changes nothing without --yes. A second run with it changes nothing."""
    planned = apply(TEAM)
    assert planned.status == 1
    assert "add the project shop" in planned.lines
    assert "nothing was changed" in planned.errors
    assert json.loads(apply(TEAM, "--json").output)["changes"][0]["verb"] == "add"
    made = apply(TEAM, "--yes")
    assert made.status == 0, made.errors
    invited, secret = made.lines[-2:]
    assert invited.startswith("ann@example.com  http")
    assert secret.startswith("https://ci.example.com/mail  whsec_")
    file = tmp_path / "keys" / "ci"
    assert file.stat().st_mode & 0o777 == 0o600
    assert house.get("/inbox", key=file.read_text().strip()).status == 200
    again = apply(TEAM, "--yes")
    assert (again.status, again.lines) == (0, []), again.errors
    assert "nothing differs from the file" in again.errors
    keys = run(
        house.assembly.accounts.keep.list_keys(run(house.assembly.accounts.keep.find("shop")))
    )
    assert [key.name for key in keys if key.revoked_at is None] == ["CI"]


def test_a_change_and_a_removal(apply: Mailcheck, house: House) -> None:
    """A field that differs is changed, and what the file removes is removed."""
    apply(TEAM, "--yes")
    text = TEAM.replace("every_minutes = 60", "every_minutes = 120").replace(
        'at = "06:00"', 'at = "07:30"'
    )
    text = text.replace('{ name = "bob", role = "reader" }', "")
    text = text.replace('name = "shop"', 'name = "shop"\nremove = ["members", "keys"]', 1)
    text = text.replace('name = "CI"\n', 'name = "CD"\n').replace("keys/ci", "keys/cd")
    text = 'remove_projects = ["other"]\n' + text.replace('[[projects]]\nname = "other"\n', "")
    changed = apply(text, "--yes")
    assert changed.status == 1
    assert (
        "the project would have no owner left" in changed.errors or "only owner" in changed.errors
    )
    keep = house.assembly.accounts
    members = run(keep.projects.members(run(keep.keep.find("shop"))))
    assert members[0].name == "first"
    text = text.replace("members = [", 'members = [{ name = "first", role = "owner" }, ')
    changed = apply(text, "--yes")
    assert changed.status == 0, changed.errors
    assert {account.name for account in run(keep.keep.accounts())} == {"first", "bob", "shop"}
    names = [
        key.name
        for key in run(keep.keep.list_keys(run(keep.keep.find("shop"))))
        if not key.revoked_at
    ]
    assert names == ["CD"]
    assert apply(text, "--yes").lines == []


def test_a_wrong_file_changes_nothing(apply: Mailcheck, house: House) -> None:
    """All mistakes are printed, and nothing is changed."""
    wrong = apply(TEAM.replace("scopes", "scope").replace("tag =", "tga ="), "--yes")
    assert wrong.status == 2
    assert "project shop, key 1: unknown field scope; did you mean scopes?" in wrong.errors
    assert "project shop, webhook 1: unknown field tga; did you mean tag?" in wrong.errors
    accounts = run(house.assembly.accounts.keep.accounts())
    assert {account.name for account in accounts} == {"first", "bob"}


def test_beside_the_daemon(
    config_file: Path, database: Path, mailcheck: Mailcheck, tmp_path: Path
) -> None:
    """On the machine of the daemon, the command issues itself a key and revokes it."""
    storage = StorageOptions(url=f"sqlite:{database}", min_free=0)
    with config_file.open("a") as opened:
        opened.write(f'state_directory = "{tmp_path}"\n')
    assert mailcheck("account", "list").status == 0
    house = House(Config(storage=storage))
    with serving_house(house) as url:
        (tmp_path / ADDRESS_FILE).write_text(url)
        file = tmp_path / "team.toml"
        file.write_text('[[projects]]\nname = "shop"\nwatches = [{ target = "example.com" }]\n')
        made = mailcheck("apply", str(file), "--yes")
        assert made.status == 0, made.errors
        assert mailcheck("apply", str(file), "--yes").lines == []
    accounts = house.assembly.accounts
    keys = run(accounts.keep.list_keys(house.account))
    assert [key.name for key in keys if key.revoked_at is None] == [""]
    actions = [entry.action for entry in run(accounts.audit.newest())]
    assert actions.count(Action.KEY_REVOKED) == 4

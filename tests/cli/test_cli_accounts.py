"""``mailcheck account ...`` and ``mailcheck key ...``: output and exit status."""

import json
import re
from itertools import product
from pathlib import Path

import pytest

from mailcheck.cli.commands import whole_id
from mailcheck.config.reading import ConfigError
from mailcheck.core.accounts import MAX_REQUESTS
from tests.cli.command_line import Mailcheck
from tests.table import rows

ADDRESS = re.compile(r"dev-[a-z2-7]{13}@mailcheck\.example")
KEY = re.compile(r"mck_[a-z2-7]{32}")


@pytest.fixture
def alice(mailcheck: Mailcheck) -> str:
    """An account named alice; returns its address."""
    return mailcheck("account", "add", "alice").lines[0]


@pytest.fixture
def with_alice(mailcheck: Mailcheck, alice: str) -> Mailcheck:
    """Run ``mailcheck`` where alice has an account."""
    assert alice
    return mailcheck


def issue(mailcheck: Mailcheck, *options: str) -> tuple[str, str]:
    """Issue a key for alice, and return its secret and its id in lists."""
    known = {line.split()[0] for line in mailcheck("key", "list").lines}
    secret = mailcheck("key", "issue", "alice", *options).lines[0]
    (new,) = {line.split()[0] for line in mailcheck("key", "list").lines} - known
    return secret, new


def test_an_account_gets_an_address(mailcheck: Mailcheck) -> None:
    """Adding an account prints only its inbox address to standard output.

    The first account gets postmaster's mail, and later ones only on request.
    """
    added = mailcheck("account", "add", "alice")
    assert added.status == 0
    assert ADDRESS.fullmatch(added.output.strip())
    assert "next: mailcheck key issue alice" in added.errors
    assert "postmaster" in added.errors
    assert "postmaster" not in mailcheck("account", "add", "second").errors
    assert "postmaster" in mailcheck("account", "add", "third", "--operator").errors
    roles = [line.endswith("operator") for line in mailcheck("account", "list").lines]
    assert sorted(roles) == [False, False, True]


def test_accounts_are_listed(mailcheck: Mailcheck, alice: str) -> None:
    """The list has a line for each account: name, address, time of creation."""
    mailcheck("account", "add", "bob")
    listed = mailcheck("account", "list")
    assert listed.status == 0
    assert sorted(line.split()[0] for line in listed.lines) == ["alice", "bob"]
    (line,) = (line for line in listed.lines if line.startswith("alice"))
    assert line.split()[1] == alice
    shown = [json.loads(one) for one in mailcheck("account", "list", "--json").lines]
    assert {one["name"]: one["address"] for one in shown}["alice"] == alice
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", line.split()[2])


def test_no_accounts_yet(mailcheck: Mailcheck) -> None:
    """Without accounts the lists are empty, with status 0, and say what would fill them."""
    for arguments, following in (
        (("account", "list"), "no accounts yet: mailcheck account add NAME\n"),
        (("key", "list"), "no keys yet: mailcheck key issue ACCOUNT\n"),
        (("client", "list"), "no programs yet: mailcheck client add NAME --redirect-uri URI\n"),
        (("audit",), "nothing has been recorded yet\n"),
    ):
        listed = mailcheck(*arguments)
        assert (listed.status, listed.output, listed.errors) == (0, "", following)
        assert mailcheck(*arguments, "--json").output == ""


def test_ids_can_be_shortened(with_alice: Mailcheck) -> None:
    """A key is named by the beginning of its id, if no other key has the same."""
    for _ in range(2):
        with_alice("key", "issue", "alice")
    ids = [json.loads(line)["id"] for line in with_alice("key", "list", "--json").lines]
    assert with_alice("key", "revoke", ids[0][:12]).errors == "revoked\n"
    with pytest.raises(ConfigError, match="2 keys have an id that begins with ab"):
        whole_id("ab", ["abc", "abd", "b"], "key")
    assert whole_id("ab", ["ab", "abd"], "key") == "ab"
    unknown = with_alice("key", "revoke", "0")
    assert (unknown.status, "`mailcheck key list` shows" in unknown.errors) == (1, True)


def test_the_next_command_can_be_pasted(mailcheck: Mailcheck) -> None:
    """The suggested command works in a shell for any name."""
    added = mailcheck("account", "add", " it's $HOME ")
    assert "next: mailcheck key issue 'it'\"'\"'s $HOME'\n" in added.errors
    assert mailcheck("key", "issue", "it's $HOME").status == 0


def test_a_key_is_printed_alone(with_alice: Mailcheck) -> None:
    """Issuing prints only the key to standard output, for use in scripts.

    With a limit per minute alone, a message has the limit per day, which stays.
    """
    issued = with_alice("key", "issue", "alice")
    assert issued.status == 0
    assert KEY.fullmatch(issued.output.removesuffix("\n"))
    assert issued.errors == "save it: it is shown only once\n"
    issued = with_alice("key", "issue", "alice", "--per-minute", "6000")
    assert "it has 1000 requests per day; --per-day sets another limit" in issued.errors
    both = with_alice("key", "issue", "alice", "--per-minute", "6000", "--per-day", "100000")
    assert "per day" not in both.errors


def test_keys_are_listed_with_their_limits(with_alice: Mailcheck) -> None:
    """A line for each key: id, account, beginning, limits, state, last use, name."""
    with_alice("account", "add", "bob")
    with_alice("key", "issue", "bob")
    _, plain = issue(with_alice)
    _, own = issue(with_alice, "--per-minute", "5000", "--per-day", "100000", "--name", "our CI")
    most = str(MAX_REQUESTS)
    _, free = issue(with_alice, "--per-minute", most, "--per-day", most)
    listed = with_alice("key", "list", "alice").lines
    lines = {line.split()[0]: line for line in listed}
    assert set(lines) == {plain, own, free}
    assert "  no limit  valid  " in lines[free]
    assert "60/min 1000/day  valid  last used never" in lines[plain]
    assert "5000/min 100000/day  valid  last used never  our CI" in lines[own]
    assert len(with_alice("key", "list").lines) == 4
    shown = {one["id"]: one for one in map(json.loads, with_alice("key", "list", "--json").lines)}
    assert len(shown) == 4
    assert (shown[own]["account"], shown[own]["name"]) == ("alice", "our CI")
    assert (shown[own]["perMinute"], shown[own]["perDay"]) == (5000, 100_000)
    assert (shown[plain]["perMinute"], shown[plain]["revokedAt"]) == (60, None)


def test_a_key_is_revoked(with_alice: Mailcheck) -> None:
    """A revoked key stays in the list with the time, and cannot be revoked again."""
    _, key_id = issue(with_alice)
    revoked = with_alice("key", "revoke", key_id)
    assert (revoked.status, revoked.output, revoked.errors) == (0, "", "revoked\n")
    assert re.search(r"revoked \d{4}-\d\d-\d\dT", with_alice("key", "list").output)
    again = with_alice("key", "revoke", key_id)
    assert again.status == 1
    assert key_id in again.errors


@rows(
    ("key issue nobody", "'nobody'"),
    ("key list nobody", "'nobody'"),
    ("key revoke nothing", "'nothing'"),
    ("key issue alise", "did you mean 'alice'?"),
    ("key issue xyz", "`mailcheck account list` shows all"),
    ("account sessions alice --end abc", "'abc'"),
    ("account passkeys alice --remove abc", "'abc'"),
    ("account link alice 248289761001", "[oidc] issuer"),
    ("client add Copilot --redirect-uri http://agent.example/", "must use https"),
    ("client remove nothing", "'nothing'"),
)
def test_what_is_refused(with_alice: Mailcheck, line: str, problem: str) -> None:
    """What is missing, misspelt or not acceptable is named on standard error, with status 1."""
    outcome = with_alice(*line.split())
    assert (outcome.status, outcome.output) == (1, "")
    assert outcome.errors.startswith("mailcheck: ")
    assert problem in outcome.errors


@rows(*product(("--per-minute", "--per-day"), ("0", "-1", "1.5", "", "²", "9" * 10, "9" * 30)))
def test_a_limit_is_a_number_from_1_on(with_alice: Mailcheck, option: str, number: str) -> None:
    """An invalid limit is a usage error, and no key is issued."""
    outcome = with_alice("key", "issue", "alice", f"{option}={number}")
    assert (outcome.status, outcome.output) == (2, "")
    assert f"argument {option}: must be an integer from 1 to" in outcome.errors
    assert with_alice("key", "list").output == ""


def test_a_quota_of_its_own(mailcheck: Mailcheck) -> None:
    """An account may have its own quota, also of many gigabytes."""
    added = mailcheck("account", "add", "big", "--max-bytes", str(10**15), "--max-messages", "5")
    assert added.status == 0
    assert mailcheck("account", "add", "none", "--max-messages", "0").status == 2


def test_a_wrong_folder(elsewhere: Mailcheck, database: Path) -> None:
    """Without a daemon's database a command says so, and creates none."""
    added = elsewhere("account", "add", "alice")
    assert (added.status, added.output) == (1, "")
    assert added.errors.startswith(f"mailcheck: the daemon's database {database} does not exist. ")
    assert not database.parent.exists()


def test_mails_of_a_key_can_be_made_to_fail(with_alice: Mailcheck) -> None:
    """``key fault`` makes every Nth mail of a key fail, and can be switched off."""
    _, key_id = issue(with_alice)

    def listed() -> object:
        return json.loads(with_alice("key", "list", "--json").lines[0])["failsEvery"]

    assert listed() is None
    assert with_alice("key", "fault", key_id, "--every", "3").errors == "set\n"
    assert listed() == 3
    assert with_alice("key", "fault", key_id, "--off").errors == "no mail is rejected\n"
    assert listed() is None
    assert with_alice("key", "fault", "none", "--every", "3").status == 1
    assert with_alice("key", "fault", key_id).status == 2
    assert with_alice("key", "fault", key_id, "--every", "1001").status == 2


def test_a_key_is_rotated(with_alice: Mailcheck) -> None:
    """The new key is printed alone; both keys are valid until the older one expires."""
    _, key_id = issue(with_alice, "--scope", "tests", "--name", "CI")
    rotated = with_alice("key", "rotate", key_id, "--overlap", "12h")
    assert KEY.fullmatch(rotated.output.strip())
    assert "shown only once" in rotated.errors
    older, newer = (json.loads(line) for line in with_alice("key", "list", "--json").lines)
    assert (older["id"], newer["name"], newer["scopes"]) == (key_id, "CI", older["scopes"])
    assert older["expiresAt"] is not None
    assert newer["expiresAt"] is None
    assert with_alice("key", "rotate", key_id, "--overlap", "5w").status == 1
    with_alice("key", "revoke", key_id)
    assert with_alice("key", "rotate", key_id).status == 1


def test_a_key_is_limited(with_alice: Mailcheck) -> None:
    """A key with limits shows them when it is issued and in both lists."""
    limits = ["--scope", "inbox:read", "--tag", "sign", "--tag-prefix", "run-", "--expires", "30d"]
    issued = with_alice("key", "issue", "alice", *limits)
    assert issued.status == 0
    assert KEY.fullmatch(issued.output.removesuffix("\n"))
    assert re.search(r"expires at \d{4}-\d\d-\d\dT", issued.errors)
    line = with_alice("key", "list").lines[0]
    assert "inbox:read; the tag 'sign' or tags that begin with 'run-'" in line
    assert "valid until 20" in line
    shown = json.loads(with_alice("key", "list", "--json").lines[0])
    assert (shown["scopes"], shown["tags"], shown["tagPrefix"]) == (
        ["inbox:read"],
        ["sign"],
        "run-",
    )
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", shown["expiresAt"])


@rows(
    (["--scope", "inbox"], 2, "inbox:read"),
    (["--tag", "bad tag"], 1, "'bad tag' is not a tag"),
    (["--tag-prefix", ""], 1, "it is empty"),
    (["--scope", "tests", "--tag", "sign"], 1, "can only have the scopes"),
    (["--expires", "soon"], 2, "30d"),
    (["--expires", "0d"], 2, "30d"),
    (["--expires=-1d"], 2, "30d"),
)
def test_wrong_limits_of_a_key(
    with_alice: Mailcheck, limits: list[str], status: int, problem: str
) -> None:
    """A limit that makes no sense is an error that says what to send, and no key is made."""
    issued = with_alice("key", "issue", "alice", *limits)
    assert issued.status == status
    assert problem in issued.errors
    assert with_alice("key", "list").lines == []


def test_an_account_is_changed(with_alice: Mailcheck) -> None:
    """Only the given options change something; ``default`` resets a limit."""
    with_alice("account", "add", "bob")
    changed = with_alice(
        *("account", "change", "bob", "--name", "Robert", "--operator"),
        *("--max-messages", "500", "--retention-hours", "48"),
    )
    assert (changed.status, changed.errors) == (0, "changed\n")
    assert with_alice("account", "change", "Robert", "--max-messages", "default").status == 0
    shown = [json.loads(one) for one in with_alice("account", "list", "--json").lines]
    robert = {one["name"]: one for one in shown}["Robert"]
    assert robert["isOperator"] is True
    assert (robert["maxMessages"], robert["retentionHours"]) == (None, 48)
    assert with_alice("account", "change", "Robert").status == 1
    assert with_alice("account", "change", "Robert", "--retention-hours", "23").status == 2


def test_an_account_is_disabled_and_deleted(with_alice: Mailcheck) -> None:
    """Deleting shows what is deleted, and needs --yes where nobody can answer."""
    with_alice("account", "add", "bob")
    with_alice("key", "issue", "bob")
    assert with_alice("account", "disable", "bob").status == 0
    assert "disabled 20" in with_alice("account", "list").output
    assert with_alice("account", "enable", "bob").status == 0
    asked = with_alice("account", "delete", "bob")
    assert asked.status == 1
    assert "bob: 0 messages, 0 bytes, 0 tests" in asked.errors
    assert "--yes" in asked.errors
    assert with_alice("account", "delete", "bob", "--yes").errors.endswith("deleted\n")
    assert "bob" not in with_alice("account", "list").output
    assert with_alice("account", "delete", "alice", "--yes").status == 1


def test_sessions_and_passkeys_are_listed_and_ended(with_alice: Mailcheck) -> None:
    """An account without sessions and passkeys has empty lists, of which all can be ended."""
    for kind in ("sessions", "passkeys"):
        assert with_alice("account", kind, "alice").lines == []
    assert with_alice("account", "sessions", "alice", "--end", "all").status == 0
    assert "removed: none" in with_alice("account", "passkeys", "alice", "--remove", "all").errors


def test_the_audit_log(with_alice: Mailcheck) -> None:
    """The log has a line for each change, newest first, and can be limited to an account."""
    with_alice("account", "add", "bob")
    _, key_id = issue(with_alice, "--name", "our CI")
    lines = with_alice("audit").lines
    assert len(lines) == 5
    assert re.fullmatch(
        rf"\S+Z  alice  key issued  by command line  {key_id} 'our CI', all rights", lines[0]
    )
    assert len(with_alice("audit", "--account", "bob").lines) == 2
    assert with_alice("audit", "--limit", "1").lines == lines[:1]
    shown = json.loads(with_alice("audit", "--json").lines[0])
    assert (shown["account"], shown["action"], shown["client"]) == ("alice", "key issued", None)
    assert (shown["cursor"], len(shown["id"])) == ("a5", 36)
    assert with_alice("audit", "--account", "nobody").status == 1


def test_a_project_and_its_members(with_alice: Mailcheck) -> None:
    """A project is created with an owner, gets members, and has keys like an account."""
    with_alice("account", "add", "bob")
    added = with_alice("project", "add", "shop", "--owner", "alice")
    assert ADDRESS.fullmatch(added.output.strip())
    assert with_alice("project", "set-member", "shop", "bob", "--role", "reader").status == 0
    lines = [line.split()[:2] for line in with_alice("project", "members", "shop").lines]
    assert lines == [["alice", "owner"], ["bob", "reader"]]
    assert KEY.fullmatch(with_alice("key", "issue", "shop").output.strip())
    shown = [json.loads(one) for one in with_alice("account", "list", "--json").lines]
    assert [one["name"] for one in shown if one["isProject"]] == ["shop"]
    assert with_alice("project", "remove-member", "shop", "alice").status == 1
    assert with_alice("project", "remove-member", "shop", "bob").status == 0
    assert with_alice("project", "members", "bob").status == 1
    assert with_alice("project", "add", "more", "--owner", "shop").status == 1


URI = "https://agent.example/callback"


def test_clients_of_oauth(mailcheck: Mailcheck) -> None:
    """A program is registered with a secret that is printed once, listed, and removed."""
    added = mailcheck("client", "add", "Copilot", "--redirect-uri", URI, "--secret")
    client_id, secret = added.lines
    assert added.status == 0
    assert re.fullmatch("mcs_[a-z2-7]{32}", secret)
    assert "OAuth is off" in added.errors
    (line,) = mailcheck("client", "list").lines
    for shown in (client_id, "Copilot", URI, "with a secret", "does not expire"):
        assert shown in line
    assert secret not in line
    (listed,) = mailcheck("client", "list", "--json").lines
    assert json.loads(listed)["redirectUris"] == [URI]
    removed = mailcheck("client", "remove", client_id)
    assert "0 grants" in removed.errors
    assert mailcheck("client", "list").lines == []
    assert mailcheck("client", "remove", client_id).status == 1
    assert mailcheck("client", "add", " ", "--redirect-uri", URI).status == 1
    assert mailcheck("client", "list").lines == []


def test_a_sign_in_link_is_printed(with_alice: Mailcheck) -> None:
    """A link that works once is printed alone, and not for a project."""
    made = with_alice("account", "sign-in-link", "alice")
    assert re.fullmatch(r"http\S+/sign-in/link\?code=[a-z2-7]{32}\n", made.output)
    assert "30 minutes" in made.errors
    with_alice("project", "add", "shop", "--owner", "alice")
    assert with_alice("account", "sign-in-link", "shop").status == 1
    assert with_alice("account", "sign-in-link", "nobody").status != 0

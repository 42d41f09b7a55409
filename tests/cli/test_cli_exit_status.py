"""Exit status 0 fine, 1 problem, 2 usage; results on standard output, messages on error."""

import gc
import io
import re
import shlex
import sqlite3
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

from mailcheck.assembly.checks import load_catalogue
from mailcheck.cli.completion_commands import list_commands
from mailcheck.cli.main import GARBAGE_THRESHOLD, main, make_parser
from mailcheck.cli.store_commands import read_url
from mailcheck.config.options import BlocklistOptions
from mailcheck.config.reading import ConfigError
from tests.cli.command_line import Mailcheck, run_command
from tests.table import rows


@rows(
    ["nonsense"],
    ["account"],
    ["account", "remove"],
    ["account", "add"],
    ["account", "add", "a", "b"],
    ["key", "issue"],
    ["key", "revoke"],
    ["config"],
    ["--nonsense"],
    ["account", "list", "--config"],
    ["store"],
    ["store", "copy"],
    ["score"],
    ["score", "a", "b"],
)
def test_a_wrong_command_line(arguments: list[str]) -> None:
    """A wrong command line is status 2, with the usage on standard error."""
    outcome = run_command(*arguments)
    assert (outcome.status, outcome.output) == (2, "")
    assert outcome.errors.startswith("usage: mailcheck")


@rows(
    [],
    ["help"],
    ["--help"],
    ["key", "--help"],
    ["help", "key"],
    ["key", "issue", "-h"],
    ["help", "key", "issue"],
)
def test_help(arguments: list[str]) -> None:
    """Help is a result: status 0, on standard output."""
    outcome = run_command(*arguments)
    assert (outcome.status, outcome.errors) == (0, "")
    assert outcome.output.startswith("usage: mailcheck")
    assert ("mail of an inbox:" in outcome.output) == ("key" not in arguments)


def test_the_version() -> None:
    """`mailcheck version` prints what `--version` prints: the installed version."""
    assert run_command("version") == run_command("--version")
    assert run_command("version").output == f"mailcheck {version('mailcheck-daemon')}\n"


@rows(
    (["wiat"], "'wiat' is unknown; did you mean wait?"),
    (["help", "wiat"], "'wiat' is unknown; did you mean wait?"),
    (["account", "lst"], "'lst' is unknown; did you mean list?"),
    (["wait", "--tga", "a"], "mailcheck wait has no option --tga; did you mean --tag?"),
    (["wait", "--tga=a"], "mailcheck wait has no option --tga; did you mean --tag?"),
    (["key", "issue", "ann", "--scope=x"], "'x' is unknown; choose from inbox:read,"),
    (["mx", "a.example", "b.example"], "mailcheck mx has no argument b.example"),
    (["account", "qqqqq"], "'qqqqq' is unknown; choose from add, list, change"),
    (["score", "a.eml", "--fail-under", "11"], "must be a number from 0 to 10; got 11"),
    (["score", "a.eml", "--fail-under", "nan"], "must be a number from 0 to 10; got nan"),
    (["wait", "--count", "0"], "must be an integer from 1 to 100; got 0"),
    (["inbox", "--limit", "101"], "must be an integer from 1 to 100; got 101"),
    (["dmarc", "plan", "a.example", "--days", "0"], "must be an integer from"),
)
def test_a_usage_error_says_what_was_meant(arguments: list[str], hint: str) -> None:
    """An unknown command or option is answered with the nearest one, a number with its bounds."""
    outcome = run_command(*arguments)
    assert outcome.status == 2
    assert hint in outcome.errors


@pytest.mark.parametrize("arguments", [["config", "check"], ["account", "list"]])
@rows(
    ("[storage]\nurl = 7\n", "line 2: url must be a string, not 7"),
    ("[inbox\n", "mailcheck.toml: "),
)
def test_a_wrong_configuration(
    mailcheck: Mailcheck, config_file: Path, arguments: list[str], text: str, problem: str
) -> None:
    """A mistake in the configuration is status 2 and names file and line, for every command."""
    config_file.write_text(text)
    outcome = mailcheck(*arguments)
    assert (outcome.status, outcome.output) == (2, "")
    assert outcome.errors.startswith("mailcheck: ")
    assert problem in outcome.errors


@rows(
    "apply",
    "dmarc --offline",
    "tls-report",
    "reports import",
    "watch add --file",
    "inbound send route --html",
    "inbound send route --file",
    "inbound send route --raw",
)
def test_a_file_that_is_missing(monkeypatch: pytest.MonkeyPatch, command: str) -> None:
    """A file that does not exist is status 2, and the message names it, for every command."""
    monkeypatch.setenv("MAILCHECK_API_KEY", "key")
    outcome = run_command(*command.split(), "absent")
    assert (outcome.status, outcome.output) == (2, "")
    assert "absent" in outcome.errors
    assert "Errno" not in outcome.errors


def test_a_wrong_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    """Environment variables are checked like the file."""
    monkeypatch.setenv("MAILCHECK_INBOX_DOMEIN", "x.example")
    outcome = run_command("config", "check")
    assert outcome.status == 2
    assert "MAILCHECK_INBOX_DOMEIN is not the variable of an option" in outcome.errors


def test_a_configuration_that_is_fine(mailcheck: Mailcheck, config_file: Path) -> None:
    """``config check`` reports a valid configuration on standard error, with status 0."""
    outcome = mailcheck("config", "check")
    assert (outcome.status, outcome.output) == (0, "")
    assert outcome.errors == f"{config_file} is valid\n"
    assert run_command("config", "check").errors == "the configuration is valid\n"


def test_the_example_is_what_the_repository_ships() -> None:
    """``config example`` prints the shipped file, which has every option with its default."""
    outcome = run_command("config", "example")
    assert (outcome.status, outcome.errors) == (0, "")
    shipped = Path(__file__).parents[2] / "etc" / "mailcheck.toml"
    assert outcome.output == shipped.read_text("utf-8")


def test_the_example_is_a_configuration(tmp_path: Path) -> None:
    """The example is valid, with its options set and with them commented out."""
    lines = run_command("config", "example").lines
    file = tmp_path / "example.toml"
    for is_set in (False, True):
        option = "#" if is_set else ""
        text = [re.sub(rf"^{option}(?=\w+ = )", "", line) for line in lines]
        file.write_text("\n".join(text), "utf-8")
        assert run_command("--config", str(file), "config", "check").status == 0


def test_a_file_that_is_no_database(elsewhere: Mailcheck, database: Path) -> None:
    """A file that is not a database is a problem, and is not changed."""
    database.parent.mkdir()
    database.write_bytes(b"something else entirely\n" * 100)
    outcome = elsewhere("account", "list")
    assert (outcome.status, outcome.output) == (1, "")
    assert outcome.errors.startswith("mailcheck: the database cannot answer now")
    assert database.read_bytes().startswith(b"something else")


def test_a_database_of_a_newer_version(mailcheck: Mailcheck, database: Path) -> None:
    """A database of a newer mailcheck is a problem, and is not changed."""
    mailcheck("account", "list")
    connection = sqlite3.connect(database)
    connection.execute("PRAGMA user_version = 9999")
    connection.close()
    outcome = mailcheck("account", "add", "alice")
    assert outcome.status == 1
    assert "schema version 9999" in outcome.errors


def test_a_folder_that_can_not_be_made(database: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A path through a file is a configuration error with a one-line message."""
    database.parent.write_text("a file where the folder should be")
    monkeypatch.setenv("MAILCHECK_STORAGE_URL", f"sqlite:{database}")
    outcome = run_command("init")
    assert outcome.status == 2
    assert outcome.errors.count("\n") == 1
    assert str(database.parent) in outcome.errors


def test_main_ends_the_process(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The installed command runs its command line with little garbage collection, and exits."""
    before = gc.get_threshold()
    with pytest.raises(SystemExit) as ended:
        main(["config", "example"])
    assert ended.value.code == 0
    assert gc.get_threshold()[0] == GARBAGE_THRESHOLD
    assert "[inbox]" in capsys.readouterr().out
    monkeypatch.setattr(sys, "argv", ["mailcheck", "nonsense"])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    gc.set_threshold(*before)
    assert "nonsense" in capsys.readouterr().err


def test_the_catalogue_is_one_file_and_can_be_changed(tmp_path: Path) -> None:
    """``config blocklists`` prints the only catalogue, and a changed copy is used instead."""
    outcome = run_command("config", "blocklists")
    assert (outcome.status, outcome.errors) == (0, "")
    root = Path(__file__).parents[2]
    (packaged,) = [*root.glob("etc/**/*blocklists*"), *root.glob("mailcheck/**/*blocklists*.toml")]
    assert outcome.output == packaged.read_text("utf-8")
    file = tmp_path / "lists.toml"
    file.write_text(outcome.output.replace("zen.spamhaus.org", "zen.spamhaus.example"), "utf-8")
    options = BlocklistOptions(catalogue=str(file), disabled=("zen.spamhaus.example",))
    changed = load_catalogue(options, allow_special_use=False).blocklists
    ours = load_catalogue(BlocklistOptions(), allow_special_use=False).blocklists
    assert {one.zone for one in changed if not one.is_enabled} == {"zen.spamhaus.example"}
    assert len(changed) == len(ours)


@rows(
    (
        "sqlite:var/none.db",
        "sqlite:other.db",
        2,
        "--to must be the URL of a PostgreSQL database",
    ),
    (
        "postgresql://one.example/",
        "postgresql://two.example/",
        2,
        "[storage] url must be a SQLite",
    ),
    ("sqlite:var/none.db", "postgresql://127.0.0.1:1/x", 1, "there is no database var/none.db"),
)
def test_a_copy_that_cannot_be(
    mailcheck: Mailcheck, config_file: Path, url: str, to: str, status: int, problem: str
) -> None:
    """A copy goes from an existing SQLite file to PostgreSQL."""
    config_file.write_text(f'[storage]\nurl = "{url}"\n')
    outcome = mailcheck("store", "copy", "--to", to)
    assert (outcome.status, outcome.output) == (status, "")
    assert problem in outcome.errors


def test_the_url_of_a_copy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`--to` takes a URL, a file with it, or stdin; an invalid one is not printed."""
    url = "postgresql://mailcheck:secret@db.example/mailcheck"
    file = tmp_path / "url"
    file.write_text(f"{url}\n")
    monkeypatch.setattr("sys.stdin", io.StringIO(f"  {url}\n"))
    assert [read_url(given) for given in (url, str(file), "-")] == [url] * 3
    file.write_text("mysql://mailcheck:secret@db.example/mailcheck")
    monkeypatch.setattr("sys.stdin", io.StringIO("secret"))
    for wrong in (str(file), "-", str(tmp_path), str(tmp_path / "none")):
        with pytest.raises(
            ConfigError, match=r"(URL of a PostgreSQL database|a URL like) .?postgresql://"
        ) as refused:
            read_url(wrong)
        assert "secret" not in str(refused.value)


def test_the_help_of_a_command_has_examples() -> None:
    """The help of each command, also below a group, ends with two examples that can be parsed."""
    for one in list_commands():
        path = one.path.split()[1:]
        done = run_command(*path, "--help")
        examples = done.output.partition("\nexamples:\n")[2].split("\n\n")[0].splitlines()
        assert len(examples) == 2, one.path
        for example in examples:
            words = shlex.split(example.strip().partition(" > ")[0])[1:]
            if "--help" not in words:
                options = make_parser(words).parse_args(words)
                assert options.parser.prog.startswith(one.path), example

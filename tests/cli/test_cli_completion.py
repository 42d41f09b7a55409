"""Completion scripts know all commands and options, and bash uses its script."""

import re
import subprocess
from pathlib import Path

import pytest

from mailcheck.cli.completion_commands import SHELLS, list_commands
from mailcheck.cli.main import COMMANDS
from tests.cli.command_line import run_command
from tests.table import rows

DEADLINE = 60.0  # seconds

COMPLETE = """
source ./script
COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
_mailcheck
printf '%s\\n' "${COMPREPLY[@]}"
"""


@pytest.fixture(scope="module")
def script(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the script for bash."""
    folder = tmp_path_factory.mktemp("bash")
    (folder / "script").write_text(run_command("completion", "bash").output)
    return folder


def completed(folder: Path, *words: str) -> list[str]:
    """Return what bash offers for the last word."""
    command = ["bash", "--norc", "-uc", COMPLETE, "bash", "mailcheck", *words]
    done = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, check=True, timeout=DEADLINE
    )
    assert done.stderr == ""
    return done.stdout.split()


@rows(
    (["in"], ["inbox", "inbound", "init"]),
    (["store", "re"], ["restore"]),
    (["webhook", "add", "--t"], ["--tag", "--tag-prefix", "--to", "--text"]),
    (["mx", "--fail-on", ""], ["error", "warning", "never"]),
    (["mx", "--fail-on", "=", "w"], ["warning"]),
    (["mx", "--fail-on", "="], ["error", "warning", "never"]),
    (["mx", "a.example", "--js"], ["--json"]),
    (["--config", "init", "wai"], ["wait"]),
    (["wait", "--tag", ""], []),
    (["score", "--from"], ["--from-headers"]),
    (["score", ""], []),
    (["completion", "z"], ["zsh"]),
    (["no-such-command"], []),
)
def test_what_bash_offers(script: Path, words: list[str], offered: list[str]) -> None:
    """Bash offers commands, options and choices; an option's value is never taken for a command."""
    assert completed(script, *words) == offered


@rows(*SHELLS)
def test_a_script_has_all_commands_and_options(shell: str) -> None:
    """Each command, subcommand, option and choice is in the script of each shell."""
    written = run_command("completion", shell).output
    commands = list_commands()
    assert {one.path.split()[1] for one in commands[1:]} == set(COMMANDS)
    for command in commands:
        assert command.path in written
        for name, text in command.commands.items():
            assert name in written
            assert text, f"{command.path} {name} has no description"
        for option in command.options:
            for name in option.names:
                assert re.search(rf"(^|[\s'\"-]){re.escape(name.lstrip('-'))}\b", written, re.M)


def test_a_wrong_choice_is_answered_with_the_choices() -> None:
    """The names of ready-made mails are in the message as they are typed."""
    wrong = run_command("inbound", "send", "r", "--ready", "unlike-all-of-them")
    assert "choose from bounce-hard, bounce-soft, delayed, " in wrong.errors


def test_options_of_a_subcommand() -> None:
    """Hidden options are left out, and files and values are told apart."""
    found = {one.path: one for one in list_commands()}
    top = {name for one in found["mailcheck"].options for name in one.names}
    assert top == {"-h", "--help", "--config", "--version"}
    (config,) = [one for one in found["mailcheck"].options if "--config" in one.names]
    assert (config.takes_value, config.is_file) == (True, True)
    assert found["mailcheck score"].takes_files
    assert not found["mailcheck mx"].takes_files
    every = {one.names: one for one in found["mailcheck wait"].options}
    assert not every["--new",].takes_value
    assert every["--tag",].takes_value


def test_an_unknown_shell() -> None:
    """Another shell is a usage error that names those with a script."""
    refused = run_command("completion", "tcsh")
    assert refused.status == 2
    assert "did you mean zsh?" in refused.errors

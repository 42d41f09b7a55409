"""Completion scripts in interactive shells: bash and zsh on a pseudo-terminal, and fish."""

import os
import pty
import re
import select
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytestmark = [pytest.mark.end_to_end, pytest.mark.long]

MAILCHECK = Path(sys.executable).with_name("mailcheck")
DEADLINE = 60.0  # seconds
READY = "ready" + "-to-type"
"""Printed by a shell as two words, so that its echo of the command is not taken for the output."""


def script(shell: str) -> str:
    """Return the script for a shell, as the installed command prints it."""
    command = [str(MAILCHECK), "completion", shell]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=DEADLINE)
    return done.stdout


class Typist:
    """An interactive shell on a pseudo-terminal."""

    def __init__(self, command: list[str], folder: Path) -> None:
        self._terminal, other = pty.openpty()
        self._process = subprocess.Popen(
            command,
            cwd=folder,
            env={"PATH": os.environ["PATH"], "HOME": str(folder), "TERM": "dumb", "PS1": "> "},
            stdin=other,
            stdout=other,
            stderr=other,
            start_new_session=True,
        )
        os.close(other)

    def type(self, keys: str) -> None:
        """Type keys, such as the character of Tab."""
        os.write(self._terminal, keys.encode())

    def read_until(self, pattern: str) -> str:
        """Return the output up to a pattern."""
        shown, end = "", time.monotonic() + DEADLINE
        while not re.search(pattern, shown):
            assert time.monotonic() < end, shown
            if select.select([self._terminal], [], [], 1)[0]:
                shown += os.read(self._terminal, 65_536).decode("utf-8", "replace")
        return shown

    def close(self) -> None:
        """End the shell."""
        self._process.kill()
        self._process.wait(DEADLINE)
        os.close(self._terminal)


def bash(folder: Path) -> Typist:
    """Start bash, with the script as `~/.bashrc` would load it."""
    (folder / "mailcheck.bash").write_text(script("bash"))
    typist = Typist(["bash", "--norc", "--noprofile", "-i"], folder)
    typist.type("source mailcheck.bash; bind 'set bell-style none'; echo ready''-to-type\n")
    return typist


def zsh(folder: Path) -> Typist:
    """Start zsh, with the script in its search path."""
    (folder / "functions").mkdir()
    (folder / "functions" / "_mailcheck").write_text(script("zsh"))
    typist = Typist(["zsh", "-f", "-i"], folder)
    typist.type(
        "fpath=($PWD/functions $fpath); autoload -Uz compinit; compinit -u -d dump; "
        "echo ready''-to-type\n"
    )
    return typist


@pytest.mark.parametrize("start", [bash, zsh])
def test_tab_in_a_shell(start: object, tmp_path: Path) -> None:
    """Tab completes commands, options, choices and file names where the command takes a file."""
    assert callable(start)
    (tmp_path / "message.eml").write_text("Subject: a\n\na\n")
    typist: Typist = start(tmp_path)
    try:
        typist.read_until(READY)
        for typed, expected in [
            ("mailcheck webho\t", "mailcheck webhook "),
            ("mailcheck store resto\t", "mailcheck store restore "),
            ("mailcheck inbox --qu\t", "mailcheck inbox --query "),
            ("mailcheck mx --fail-on w\t", "mailcheck mx --fail-on warning "),
            ("mailcheck --config init wai\t", "mailcheck --config init wait "),
            ("mailcheck score mess\t", "mailcheck score message.eml "),
            ("mailcheck score --from\t", "mailcheck score --from-headers "),
        ]:
            typist.type(typed)
            typist.read_until(re.escape(expected))
            typist.type("\x15")  # Ctrl-U deletes the line
    finally:
        typist.close()


def test_fish(tmp_path: Path) -> None:
    """Fish offers commands, options and choices with their descriptions, and file names."""
    (tmp_path / "mailcheck.fish").write_text(script("fish"))
    (tmp_path / "message.eml").write_text("Subject: a\n\na\n")
    for typed, expected in [
        ("webho", ["webhook\twebhooks: add, list, test, replay, resume, secret, remove"]),
        ("store resto", ["restore\trestore a copy; the daemon must be stopped"]),
        ("mx --fail-on w", ["warning"]),
        ("--config init wai", ["wait\twait for a mail and print its code, its link or all"]),
        ("wait --tag ", []),
        ("score mess", ["message.eml"]),
        ("completion z", ["zsh\tthe shell"]),
    ]:
        command = f"source mailcheck.fish; complete --do-complete 'mailcheck {typed}'"
        done = subprocess.run(
            ["fish", "--no-config", "-c", command],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=True,
            timeout=DEADLINE,
        )
        offered = done.stdout.splitlines()
        assert len(offered) == len(expected), (typed, offered)
        assert all(map(str.startswith, offered, expected)), (typed, offered)

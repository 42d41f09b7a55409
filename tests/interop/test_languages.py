"""The programs of docs/how-to/wait-in-other-languages.md: each takes an address and gets its mail.

The program for .NET is not run, because Debian has no package of .NET.
"""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.docs.blocks import read_blocks
from tests.servers.daemon import Daemon

pytestmark = pytest.mark.end_to_end

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "wait-in-other-languages.md"
DEADLINE = 120.0  # seconds, with the time to compile

JARS = [f"/usr/share/java/{name}.jar" for name in ("gson", "jakarta-mail", "jakarta-activation")]
PHPMAILER = "/usr/share/php/libphp-phpmailer"

PROGRAMS = {
    "go": ("main.go", ["go", "run", "main.go"], []),
    "php": ("sign_up.php", ["php", "sign_up.php"], [PHPMAILER]),
    "ruby": ("sign_up.rb", ["ruby", "sign_up.rb"], []),
    "java": ("SignUp.java", ["java", "-cp", ":".join(JARS), "SignUp.java"], JARS),
}
"""By language: the file, the command, and the files of the libraries in Debian."""

NOT_RUN = {"csharp"}

CODE = {block.language: block.text for block in read_blocks(PAGE) if block.language != "sh"}


def test_each_program_is_run() -> None:
    """Only the program for .NET is not run."""
    assert set(CODE) == set(PROGRAMS) | NOT_RUN


@pytest.mark.parametrize("language", PROGRAMS)
def test_a_program_gets_its_mail(language: str, shared_daemon: Daemon, tmp_path: Path) -> None:
    """The program prints the code and the link of the mail that it has sent."""
    name, command, needed = PROGRAMS[language]
    if shutil.which(command[0]) is None or not all(map(os.path.exists, needed)):
        pytest.skip(f"{language} is not installed: run scripts/install-test-needs interop as root")
    code = CODE[language].replace("2525", str(shared_daemon.smtp_port))
    (tmp_path / name).write_text(code.replace("8080", str(shared_daemon.http_port)))
    if language == "php":  # as Composer installs it
        (tmp_path / "vendor").symlink_to(PHPMAILER)
    done = subprocess.run(
        command,
        cwd=tmp_path,
        env={**os.environ, "MAILCHECK_API_KEY": shared_daemon.key},
        capture_output=True,
        text=True,
        timeout=DEADLINE,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout == "482913 https://example.com/confirm?t=7f3a\n"

"""``pip install .`` into a fresh environment: all that the daemon needs comes with it."""

import os
import shutil
import smtplib
import subprocess
import sys
from pathlib import Path

import pytest

from tests.servers.daemon import HOST, Daemon

pytestmark = pytest.mark.end_to_end

CHECKOUT = Path(__file__).parents[2]
SOURCES = ("setup.cfg", "pyproject.toml", "README.md", "mailcheck", "twisted")
INSTALL_DEADLINE = 300.0  # seconds


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Install a copy of the sources, as they are, into an environment of their own."""
    sources = tmp_path_factory.mktemp("sources")
    for name in SOURCES:
        if (CHECKOUT / name).is_dir():
            ignored = shutil.ignore_patterns("__pycache__", "dropin.cache")
            shutil.copytree(CHECKOUT / name, sources / name, ignore=ignored)
        else:
            shutil.copy(CHECKOUT / name, sources / name)
    environment = tmp_path_factory.mktemp("environment")
    run(sys.executable, "-m", "venv", str(environment))
    run(str(environment / "bin" / "pip"), "install", "--quiet", str(sources))
    return environment


def clean_variables() -> dict[str, str]:
    """Give environment variables that don't lead Python back to the checkout."""
    return {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}


def run(*command: str, folder: Path | None = None) -> str:
    """Run a command that must succeed; gives what it prints."""
    done = subprocess.run(
        command,
        cwd=folder,
        env=clean_variables(),
        capture_output=True,
        text=True,
        timeout=INSTALL_DEADLINE,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def files_below(folder: Path) -> set[str]:
    """List all files below a folder that are no traces of running it."""
    return {
        str(path.relative_to(folder))
        for path in folder.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }


def test_every_file_is_installed(environment: Path, tmp_path: Path) -> None:
    """Modules and data files of all rooms are installed, and from there they are imported."""
    python = str(environment / "bin" / "python")
    module = run(python, "-c", "import mailcheck; print(mailcheck.__file__)", folder=tmp_path)
    installed = Path(module.strip()).parent
    assert installed.is_relative_to(environment)
    assert files_below(installed) == files_below(CHECKOUT / "mailcheck")


def test_installed_daemon(environment: Path, tmp_path: Path) -> None:
    """`twistd mailcheck` runs in a folder of its own, and reads link and code out of a mail."""
    programs = str(environment / "bin")
    daemon = Daemon(tmp_path, str(environment / "bin" / "twistd"), clean_variables())
    try:
        daemon.start()
        with smtplib.SMTP(HOST, daemon.smtp_port) as client:
            mail = b"Subject: Welcome\r\n\r\nYour code is 482913: https://example.com/confirm\r\n"
            client.sendmail("shop@example.com", [daemon.address("signup")], mail)
        message = daemon.get("/inbox/wait", tag="signup", since="2020-01-01T00:00:00Z").json
        assert (message["codes"], message["bestLink"]) == (
            ["482913"],
            "https://example.com/confirm",
        )
        assert "developer" in run(f"{programs}/mailcheck", "key", "list", folder=tmp_path)
        assert daemon.stop() is not None
    finally:
        daemon.kill()


def test_installed_command(environment: Path, tmp_path: Path) -> None:
    """`mailcheck` is there without a daemon, and explains its configuration."""
    example = run(str(environment / "bin" / "mailcheck"), "config", "example", folder=tmp_path)
    assert example == (CHECKOUT / "etc" / "mailcheck.toml").read_text()

"""The parts of a release: one place for the version, and the news."""

import configparser
import re
import shlex
import subprocess
import sys
from pathlib import Path

from tests.docs.blocks import read_blocks

ROOT = Path(__file__).parent.parent
NEWS = ROOT / "newsfragments"


def setup_version() -> str:
    """Return the version in ``setup.cfg``."""
    setup = configparser.ConfigParser()
    setup.read(ROOT / "setup.cfg")
    return setup["metadata"]["version"]


def test_the_news_can_be_built() -> None:
    """Towncrier includes every fragment in the news, and a draft changes no file."""
    before = {path.name: path.read_text() for path in NEWS.glob("*.md")}
    releasing = read_blocks(ROOT / "docs" / "how-to" / "make-a-release.md")
    (command,) = (one.text for one in releasing if one.runner == "tests/test_release.py")
    program, *arguments = shlex.split(command, comments=True)
    assert program == ".venv/bin/towncrier"
    draft = subprocess.run(
        [sys.executable, "-m", "towncrier", *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert f"## mailcheck {setup_version()} (" in draft
    words = re.sub(r"\s+", " ", draft)
    for name, text in before.items():
        assert re.sub(r"\s+", " ", text).strip() in words, name
    assert {path.name: path.read_text() for path in NEWS.glob("*.md")} == before


def _is_text(path: Path) -> bool:
    return path.is_file() and not path.name.startswith(".coverage")


def test_the_version_is_written_once() -> None:
    """Only ``setup.cfg`` contains the version; code, units and container files read it."""
    version = re.compile(rf"(?<![\w.]){re.escape(setup_version())}(?![\w.])")
    files = [*ROOT.glob("*.*"), ROOT / "Dockerfile", *(ROOT / "mailcheck").rglob("*.py")]
    files += [path for name in ("etc", "systemd") for path in (ROOT / name).rglob("*.*")]
    saying = {path.name for path in files if _is_text(path) and version.search(path.read_text())}
    assert saying - {"NEWS.md"} == {"setup.cfg"}


def test_the_newest_python_is_one_that_runs(tmp_path: Path) -> None:
    """Programs that do not run, such as a shim without its version, are skipped.

    If no Python is newer than the current one, the output is empty.
    """
    for name, script in (("3.99", "exit 127"), ("3.97", "echo 97"), ("3.98", "echo 98")):
        python = tmp_path / f"python{name}"
        python.write_text(f"#!/bin/sh\n{script}\n")
        python.chmod(0o755)

    def newest(own: str) -> str:
        return subprocess.run(
            ["bash", ROOT / "scripts" / "newest-python", own],
            env={"PATH": f"{tmp_path}:/usr/bin:/bin", "PYENV_ROOT": str(tmp_path / "none")},
            capture_output=True,
            text=True,
            check=True,
        ).stdout.strip()

    assert newest(sys.executable) == str(tmp_path / "python3.98")
    assert newest(str(tmp_path / "python3.98")) == ""

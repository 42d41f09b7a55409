"""The parts of a release: one place for the version, and the news."""

import configparser
import os
import re
import shlex
import shutil
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

from packaging.version import Version

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


def git(folder: Path, *arguments: str, date: str = "2026-01-01T09:03:01+01:00") -> None:
    """Run git as a person at a time."""
    person = {"GIT_AUTHOR_NAME": "Ann", "GIT_AUTHOR_EMAIL": "ann@example.com"}
    person |= {"GIT_COMMITTER_NAME": "Ann", "GIT_COMMITTER_EMAIL": "ann@example.com"}
    environment = {**os.environ, **person, "GIT_COMMITTER_DATE": date}
    subprocess.run(["git", *arguments], cwd=folder, env=environment, check=True)


def test_the_version_of_a_build(tmp_path: Path) -> None:
    """A release and an archive have the version of ``setup.cfg``, other builds the time as well.

    Each build is newer than those before it and the release, for Debian and for pip.
    """
    script = tmp_path / "scripts" / "build-version"
    script.parent.mkdir()
    shutil.copy(ROOT / "scripts" / "build-version", script)
    (tmp_path / "setup.cfg").write_text("[metadata]\nversion = 1.2.3\n")

    def built() -> str:
        return subprocess.run(
            ["bash", script], capture_output=True, text=True, check=True
        ).stdout.strip()

    versions = [built()]  # an unpacked archive
    git(tmp_path, "init", "--quiet")
    git(tmp_path, "add", "--all")
    git(tmp_path, "commit", "--quiet", "--message=First")
    git(tmp_path, "tag", "v1.2.3")
    assert [built(), *versions] == ["1.2.3", "1.2.3"]
    for date in ("2026-01-02T09:03:01+01:00", "2026-01-02T23:59:59+00:00"):
        git(tmp_path, "commit", "--quiet", "--allow-empty", "--message=Next", date=date)
        versions.append(built())
    assert versions == ["1.2.3", "1.2.3+git20260102.80301", "1.2.3+git20260102.235959"]
    (tmp_path / "setup.cfg").write_text("[metadata]\nversion = 1.2.3\n# changed\n")
    versions += [built(), "1.2.4"]
    assert sorted(versions, key=Version) == versions
    assert [str(Version(one)) for one in versions] == versions
    for older, newer in pairwise(versions):
        compared = [f"{older}+deb12", "lt", f"{newer}+deb12"]
        assert (
            subprocess.run(["dpkg", "--compare-versions", *compared], check=False).returncode == 0
        )


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


def test_make_runs_every_target() -> None:
    """Each target with a description runs, even if a folder has its name, like ``npm/``."""
    makefile = (ROOT / "Makefile").read_text()
    (phony,) = re.findall(r"^\.PHONY: (.*)$", makefile, re.M)
    described = re.findall(r"^## ([\w-]+):", makefile, re.M)
    assert {"npm", "release"} <= set(described) <= set(phony.split())

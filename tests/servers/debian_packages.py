"""Builds Debian packages of the checkout, on a Debian with the tools that its page names."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.blocks import ROOT


def debian_root(release: str, purpose: str = "run") -> Path:
    """Return the folder of an empty Debian; skip the test if it cannot be made."""
    command = ["bash", "scripts/make-debian-root", release, purpose]
    made = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    root = Path(made.stdout.strip())
    if os.geteuid() != 0 or not root.exists():
        pytest.skip("root with debootstrap is needed")
    return root


def copy_checkout(folder: Path) -> None:
    """Copy the files of the checkout, also changed ones, into a repository with one commit."""
    listed = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(listed, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for name in filter(None, names.split("\0")):
        if (ROOT / name).exists():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, folder / name)
    subprocess.run(["git", "init", "--quiet", folder], check=True)
    commit(folder)


def commit(folder: Path) -> None:
    """Commit all changes of a repository."""
    person = ["-c", "user.name=Test", "-c", "user.email=test@example.com"]
    subprocess.run(["git", "add", "--all"], cwd=folder, check=True)
    command = ["git", *person, "commit", "--quiet", "--message=Change"]
    subprocess.run(command, cwd=folder, check=True)


def build_package(release: str, sources: Path, into: Path) -> Path:
    """Build the package of a release of Debian from a repository."""
    done = subprocess.run(
        ["bash", "scripts/build-deb-for", release, into, sources],
        cwd=ROOT,
        env={**os.environ, "PYTHON": sys.executable},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    (built,) = into.glob("*.deb")
    return built

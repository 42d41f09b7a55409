"""Builds Debian packages of the checkout, on a Debian with the tools that its page names."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.blocks import ROOT

BUILD = r"""
set -eu
mount -t tmpfs tmpfs "$LAYERS"
mkdir "$LAYERS/upper" "$LAYERS/work" "$LAYERS/root"
options="lowerdir=$FILES,upperdir=$LAYERS/upper,workdir=$LAYERS/work"
mount -t overlay overlay -o "$options" "$LAYERS/root"
cd "$LAYERS/root"
for folder in $SHARED; do
    mkdir -p ".$folder"
    mount --rbind "$folder" ".$folder"
done
mount -t proc proc proc
mount --rbind /dev dev
cp /etc/resolv.conf etc/resolv.conf
exec chroot . bash -euc 'cd "$SOURCES" && bash scripts/build-deb "$INTO"'
"""
"""Build in a copy of the folder with the tools. Python with Sphinx and pip's cache are shared."""


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
    layers = into / "layers"
    layers.mkdir(parents=True)
    cache = subprocess.run(
        [sys.executable, "-m", "pip", "cache", "dir"], capture_output=True, text=True, check=True
    ).stdout.strip()
    Path(cache).mkdir(parents=True, exist_ok=True)
    shared = {sys.base_prefix, sys.prefix, cache, str(sources), str(into), "/etc/ssl/certs"}
    paths = {
        "FILES": str(debian_root(release, "build")),
        "LAYERS": str(layers),
        "SHARED": " ".join(sorted(shared)),
        "SOURCES": str(sources),
        "INTO": str(into),
        "PYTHON": sys.executable,
        "PIP_CACHE_DIR": cache,
    }
    command = ["unshare", "--mount", "bash", "-c", BUILD]
    done = subprocess.run(
        command, env={**os.environ, **paths}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    (built,) = into.glob("*.deb")
    return built

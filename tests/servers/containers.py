"""Containers by podman, which share the network of this machine or have none."""

import json
import os
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

DEADLINE = 600.0  # seconds

LIMITS = ("--ulimit=nofile=4096:4096", "--ulimit=nproc=4096:4096")
"""Podman asks for more than a container that runs podman may have."""


def require_containers() -> None:
    """Skip the test if this machine cannot build and run images."""
    missing = [name for name in ("buildah", "podman", "runc") if shutil.which(name) is None]
    if os.geteuid() != 0 or missing:
        pytest.skip("root with buildah, podman and runc is needed")


def run(*command: str | Path, expected: int | None = 0) -> str:
    """Return the output of a command, without the warnings of podman."""
    done = subprocess.run(
        [str(word) for word in command],
        capture_output=True,
        text=True,
        timeout=DEADLINE,
        check=False,
    )
    assert expected in (None, done.returncode), done.stdout + done.stderr
    return done.stdout


class Container:
    """A running container."""

    def __init__(self, name: str) -> None:
        self.name = name

    def run(self, *command: str) -> str:
        """Return the output of a command in the container, which must succeed."""
        return run("podman", "exec", self.name, *command)

    def inspect(self) -> dict[str, Any]:
        """Return what podman knows."""
        (known,) = json.loads(run("podman", "inspect", self.name))
        return dict(known)

    def output(self) -> str:
        """Return what the container has printed."""
        done = subprocess.run(
            ["podman", "logs", self.name],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=True,
        )
        return done.stdout

    def stop(self) -> int:
        """Stop it as an orchestrator does (SIGTERM); return its exit status."""
        run("podman", "stop", "--time=60", self.name)
        return int(self.inspect()["State"]["ExitCode"])


@contextmanager
def running_container(
    image: str, *options: str, arguments: Sequence[str] = (), network: str = "none"
) -> Iterator[Container]:
    """Run a container whose file system cannot be written, and delete it afterwards."""
    name = run(
        *("podman", "--runtime=runc", "run", "--detach", "--read-only"),
        *("--tmpfs=/tmp", f"--network={network}", *LIMITS, *options, image, *arguments),
    ).strip()
    try:
        yield Container(name)
    finally:
        run("podman", "rm", "--force", "--time=1", name)

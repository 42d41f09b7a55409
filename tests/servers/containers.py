"""Containers by podman, which share the network of this machine, have none, or publish ports."""

import json
import os
import shutil
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.servers.daemon import START_DEADLINE

DEADLINE = 600.0  # seconds

ENVIRONMENT = {
    **os.environ,
    "CONTAINERS_CONF": str(Path(__file__).with_name("containers.conf")),
}


def require_containers(*others: str) -> None:
    """Skip the test if this machine cannot build and run images, or lacks other programs."""
    needed = ("buildah", "podman", "runc", *others)
    if os.geteuid() != 0 or not all(map(shutil.which, needed)):
        pytest.skip(f"root with {', '.join(needed)} is needed")


def run(*command: str | Path, expected: int | None = 0) -> str:
    """Return the output of a command, without the warnings of podman."""
    done = subprocess.run(
        [str(word) for word in command],
        capture_output=True,
        text=True,
        env=ENVIRONMENT,
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
        *("podman", "run", "--detach", "--read-only"),
        *("--tmpfs=/tmp", f"--network={network}", *options, image, *arguments),
    ).strip()
    try:
        yield Container(name)
    finally:
        run("podman", "rm", "--force", "--time=1", name)


@contextmanager
def podman_service(folder: Path) -> Iterator[str]:
    """Serve the interface of Docker, and yield its URL (``DOCKER_HOST``)."""
    socket, log = folder / "podman.sock", folder / "podman.log"
    with log.open("w") as output:
        service = subprocess.Popen(
            ["podman", "system", "service", "--time=0", f"unix://{socket}"],
            env=ENVIRONMENT,
            stdout=output,
            stderr=subprocess.STDOUT,
        )
    try:
        deadline = time.monotonic() + START_DEADLINE
        while not socket.exists():
            assert service.poll() is None, log.read_text()
            assert time.monotonic() < deadline, log.read_text()
            time.sleep(0.1)
        yield f"unix://{socket}"
    finally:
        service.terminate()
        service.wait(DEADLINE)

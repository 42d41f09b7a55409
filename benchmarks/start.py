"""Measure when a daemon is ready, when a command does its work, and the memory of an idle daemon.

    .venv/bin/python -m benchmarks.start

Starts alternate with a bare ``twistd web``, which shows the time of the interpreter and of Twisted.
``mailcheck --help`` is compared with a Python that imports argparse and json. For ``mailcheck
wait`` the time ends when its request arrives. With the folder of another version's environment
(``.venv/bin``) as an argument, CPU time and memory are compared with that version. Its modules must
be compiled.
"""

import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from http.client import HTTPConnection
from pathlib import Path
from typing import NamedTuple

from benchmarks.measuring import (
    own_cpu_seconds,
    own_pss_bytes,
    resident_bytes,
    wait_for_port,
)
from benchmarks.smtp_intake import peer
from mailcheck.assembly.doors.late import DOORS
from tests.servers.daemon import HOST, Daemon, free_ports, running_daemon

ROUNDS = 5
TARGET = 2.5  # times a bare twistd
HELP_TARGET = 4.0  # times a bare Python
WAIT_TARGET = 0.4  # seconds
MEMORY_TARGET = 2 / 3  # of the other version's memory
CPU_TARGET = 0.8  # of the CPU time of version 1c97c2eb
PSS_TARGET = 75  # MiB of the main process
SETTLED_AFTER = 6.0  # seconds
DOOR_ROUNDS = 3
DOOR_TARGET = 250  # milliseconds
COMMANDS = Path(sys.executable).parent
IDLE_AFTER = 5.0  # seconds after which child processes are warmed up
MIB = 1 << 20


class Start(NamedTuple):
    """A start: seconds until ready, and the CPU time of the main process until then."""

    ready: float
    cpu: float


def start_bare(folder: Path) -> Start:
    """Measure a start of Twisted's own web server, until it listens."""
    (port,) = free_ports(1)
    twistd = str(Path(sys.executable).with_name("twistd"))
    listen = f"tcp:{port}:interface={HOST}"
    command = [twistd, "--nodaemon", "--pidfile=", "web", "--listen", listen, "--path", str(folder)]
    began = time.monotonic()
    with peer("twistd web", command, port) as process:
        return Start(time.monotonic() - began, own_cpu_seconds(process.pid))


def run(*command: str) -> float:
    """Return the seconds that a command takes."""
    began = time.monotonic()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return time.monotonic() - began


def wait_for_request() -> float:
    """Return the seconds until the request of ``mailcheck wait`` has arrived."""
    with socket.create_server((HOST, 0)) as server, tempfile.NamedTemporaryFile() as key:
        key.write(b"mck_" + b"a" * 32)
        key.flush()
        url = f"http://{HOST}:{server.getsockname()[1]}"
        command = [str(COMMANDS / "mailcheck"), "wait", "--url", url, "--key-file", key.name]
        began = time.monotonic()
        with subprocess.Popen(command, stderr=subprocess.DEVNULL) as process:
            with server.accept()[0] as connection:
                connection.recv(4096)
                seconds = time.monotonic() - began
            process.kill()
    return seconds


def idle_bytes(commands: Path) -> int:
    """Return the memory of all processes of an idle daemon of any version, in bytes."""
    ports = free_ports(3)
    names = ("SMTP_LISTEN", "SMTP_SUBMISSION_LISTEN", "WEB_LISTEN")
    listen = {
        f"MAILCHECK_{name}": f"{HOST}:{port}" for name, port in zip(names, ports, strict=True)
    }
    command = [str(commands / "twistd"), "--nodaemon", "--pidfile=", "mailcheck"]
    with (
        tempfile.TemporaryDirectory() as folder,
        subprocess.Popen(
            command, cwd=folder, env={**os.environ, **listen}, stdout=subprocess.DEVNULL
        ) as daemon,
    ):
        try:
            wait_for_port(HOST, ports[-1])
            time.sleep(IDLE_AFTER)
            return resident_bytes(daemon.pid)
        finally:
            daemon.terminate()


def main() -> None:
    """Measure all in turns, and print medians and ratios."""
    # With the caller's PYTHONDONTWRITEBYTECODE a daemon would compile all its modules each time.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    others = [Path(other) for other in sys.argv[1:]]
    measure_starts(others)
    measure_doors()
    helped, bare, waited = [], [], []
    for _ in range(ROUNDS):
        helped.append(run(str(COMMANDS / "mailcheck"), "--help"))
        bare.append(run(sys.executable, "-c", "import argparse, json"))
        waited.append(wait_for_request())
    help_ratio = statistics.median(helped) / statistics.median(bare)
    print(f"mailcheck --help: {help_ratio:.1f} x a bare Python (target {HELP_TARGET:.0f})")
    seconds = statistics.median(waited)
    print(f"mailcheck wait: its request after {seconds:.2f} s (target {WAIT_TARGET} s)")
    measure_memory(others)


def measure_memory(others: Sequence[Path]) -> None:
    """Print the memory of an idle daemon, beside other versions."""
    held = idle_bytes(COMMANDS)
    print(f"idle: {held / MIB:.0f} MiB in all processes")
    for other in others:
        ratio = held / idle_bytes(other)
        print(f"  {ratio:.2f} x those of {other} (target {MEMORY_TARGET:.2f})")


def measured_start(daemon: Daemon) -> Start:
    """Start a daemon and measure it."""
    ready = daemon.start()
    return Start(ready, own_cpu_seconds(daemon.process.pid))


def measure_starts(others: Sequence[Path]) -> None:
    """Print when a daemon is ready, and the CPU time and memory of its main process.

    The starts of all versions alternate with those of a bare Twisted. The first start of each
    compiles its modules and creates an account. It is not part of the CPU time.
    """
    versions = [COMMANDS, *others]
    first: list[Start] = []
    later: dict[Path, list[Start]] = {version: [] for version in versions}
    memory: dict[Path, list[float]] = {version: [] for version in versions}
    bare: list[Start] = []
    for _ in range(ROUNDS):
        for version in versions:
            with tempfile.TemporaryDirectory() as name:
                daemon = Daemon(Path(name), str(version / "twistd"))
                begun = measured_start(daemon)
                daemon.stop()
                later[version].append(measured_start(daemon))
                time.sleep(SETTLED_AFTER)
                memory[version].append(own_pss_bytes(daemon.process.pid) / MIB)
                daemon.stop()
                if version == COMMANDS:
                    first.append(begun)
        with tempfile.TemporaryDirectory() as name:
            bare.append(start_bare(Path(name)))
    floor, ours = _medians(bare), _medians(later[COMMANDS])
    for what, start in (("first start", _medians(first)), ("later start", ours)):
        print(
            f"{what}: ready after {start.ready:.2f} s, {start.ready / floor.ready:.1f} x a bare"
            f" twistd web ({floor.ready:.2f} s; target {TARGET})"
        )
    held = statistics.median(memory[COMMANDS])
    print(f"main process: {ours.cpu:.2f} s of CPU until ready (bare {floor.cpu:.2f} s)")
    print(f"  {held:.0f} MiB (Pss) {SETTLED_AFTER:.0f} s later (target {PSS_TARGET})")
    for other in others:
        theirs = _medians(later[other])
        print(
            f"  {other}: {theirs.cpu:.2f} s, ratio {ours.cpu / theirs.cpu:.2f}"
            f" (target {CPU_TARGET}), {statistics.median(memory[other]):.0f} MiB"
        )


def measure_doors() -> None:
    """Print the milliseconds of the first request for each late door, in a daemon without others.

    A second request shows the time without opening the door. CPU time is that of the main process.
    """
    doors = {door: segment for segment, door in DOORS.items()}
    for segment in [*doors.values(), "sign-in"]:
        first: list[float] = []
        second: list[float] = []
        cpu: list[float] = []
        for _ in range(DOOR_ROUNDS):
            with (
                tempfile.TemporaryDirectory() as name,
                running_daemon(Path(name)) as daemon,
            ):
                before = own_cpu_seconds(daemon.process.pid)
                for measured in (first, second):
                    began = time.monotonic()
                    client = HTTPConnection(HOST, daemon.http_port)
                    client.request("GET", f"/{segment}")
                    client.getresponse().read()
                    client.close()
                    measured.append((time.monotonic() - began) * 1e3)
                cpu.append((own_cpu_seconds(daemon.process.pid) - before) * 1e3)
        print(
            f"first request for /{segment}: {statistics.median(first):.0f} ms"
            f" (target {DOOR_TARGET}), second: {statistics.median(second):.0f} ms,"
            f" both: {statistics.median(cpu):.0f} ms of CPU"
        )


def _medians(starts: Sequence[Start]) -> Start:
    return Start(*map(statistics.median, zip(*starts, strict=True)))


if __name__ == "__main__":
    main()

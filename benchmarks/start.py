"""Measure when a daemon is ready, when a command does its work, and the memory of an idle daemon.

    .venv/bin/python -m benchmarks.start

Starts alternate with a bare ``twistd web``, which shows the time of the interpreter and of Twisted.
``mailcheck --help`` is compared with a Python that imports argparse and json. For ``mailcheck
wait`` the time ends when its request arrives. With the folder of another version's environment
(``.venv/bin``) as an argument, memory is compared with that version.
"""

import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks.measuring import resident_bytes, wait_for_port
from benchmarks.smtp_intake import peer
from tests.servers.daemon import HOST, Daemon, free_ports

ROUNDS = 5
TARGET = 2.5  # times a bare twistd
HELP_TARGET = 4.0  # times a bare Python
WAIT_TARGET = 0.4  # seconds
MEMORY_TARGET = 2 / 3  # of the other version's memory
COMMANDS = Path(sys.executable).parent
IDLE_AFTER = 5.0  # seconds after which child processes are warmed up
MIB = 1 << 20


def start_bare(folder: Path) -> float:
    """Return the seconds until Twisted's own web server listens."""
    (port,) = free_ports(1)
    twistd = str(Path(sys.executable).with_name("twistd"))
    listen = f"tcp:{port}:interface={HOST}"
    command = [twistd, "--nodaemon", "--pidfile=", "web", "--listen", listen, "--path", str(folder)]
    began = time.monotonic()
    with peer("twistd web", command, port):
        return time.monotonic() - began


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
    measure_starts()
    helped, bare, waited = [], [], []
    for _ in range(ROUNDS):
        helped.append(run(str(COMMANDS / "mailcheck"), "--help"))
        bare.append(run(sys.executable, "-c", "import argparse, json"))
        waited.append(wait_for_request())
    help_ratio = statistics.median(helped) / statistics.median(bare)
    print(f"mailcheck --help: {help_ratio:.1f} x a bare Python (target {HELP_TARGET:.0f})")
    seconds = statistics.median(waited)
    print(f"mailcheck wait: its request after {seconds:.2f} s (target {WAIT_TARGET} s)")
    measure_memory([Path(other) for other in sys.argv[1:]])


def measure_memory(others: Sequence[Path]) -> None:
    """Print the memory of an idle daemon, beside other versions."""
    held = idle_bytes(COMMANDS)
    print(f"idle: {held / MIB:.0f} MiB in all processes")
    for other in others:
        ratio = held / idle_bytes(other)
        print(f"  {ratio:.2f} x those of {other} (target {MEMORY_TARGET:.2f})")


def measure_starts() -> None:
    """Print when a daemon is ready, beside a bare Twisted."""
    first, again, bare = [], [], []
    for _ in range(ROUNDS):
        with tempfile.TemporaryDirectory() as name:
            daemon = Daemon(Path(name))
            first.append(daemon.start())
            daemon.stop()
            again.append(daemon.start())
            daemon.stop()
            bare.append(start_bare(Path(name)))
    floor = statistics.median(bare)
    for what, seconds in (("first start", first), ("later start", again)):
        median = statistics.median(seconds)
        print(
            f"{what}: ready after {median:.2f} s (best {min(seconds):.2f}),"
            f" {median / floor:.1f} x a bare twistd web ({floor:.2f} s; target {TARGET})"
        )


if __name__ == "__main__":
    main()

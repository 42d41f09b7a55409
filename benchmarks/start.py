"""How soon a daemon is ready: the first start, and the one after it.

    .venv/bin/python -m benchmarks.start

Beside it, in turns, a bare ``twistd web``: what the interpreter and Twisted
need before any daemon can do anything.
"""

import statistics
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.smtp_intake import peer
from tests.servers.daemon import HOST, Daemon, free_ports

ROUNDS = 5
TARGET = 2.0  # seconds


def start_bare(folder: Path) -> float:
    """Give the seconds until Twisted's own web server listens."""
    (port,) = free_ports(1)
    twistd = str(Path(sys.executable).with_name("twistd"))
    listen = f"tcp:{port}:interface={HOST}"
    command = [twistd, "--nodaemon", "--pidfile=", "web", "--listen", listen, "--path", str(folder)]
    began = time.monotonic()
    with peer("twistd web", command, port):
        return time.monotonic() - began


def main() -> None:
    """Measure all starts in turns, and print their medians."""
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
            f"{what}: ready after {median:.2f} s (best {min(seconds):.2f}; target {TARGET:.0f} s),"
            f" {median / floor:.1f} x a bare twistd web ({floor:.2f} s)"
        )


if __name__ == "__main__":
    main()

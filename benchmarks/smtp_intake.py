"""Measure how fast mail is received: mailcheck, which stores it, beside two that discard it.

Run it with ``python benchmarks/smtp_intake.py`` (needs Postfix's smtp-source and smtp-sink:
Debian's package postfix). Each server gets the same load, ``smtp-source -d -s 10 -l 5000``: ten
sessions on kept connections, 5 KB messages. The rounds are interleaved, and the figures are
medians.

* mailcheck: a real daemon with default settings, which sends 250 after the fsync. The number of
  stored messages is checked after each round. It is stopped (SIGSTOP) while a peer runs, since it
  parses mails in the background.
* aiosmtpd's Controller with its null handler, Sink: asyncio, discards mail.
* smtp-sink: C, discards mail.

Targets: at least 2.5 x aiosmtpd and at least 0.20 x smtp-sink; aim 0.5 x.
"""

import argparse
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.measuring import cpu_seconds, fsync_milliseconds, wait_for_port
from tests.servers.daemon import HOST, Daemon, free_ports, running_daemon

SESSIONS = 10
SIZE = 5_000  # octets
BACKLOG = 500

OVER_AIOSMTPD = 2.5
OVER_SMTP_SINK = 0.20
AIM_OVER_SMTP_SINK = 0.5


@dataclass
class Server:
    """A server under load, with its figures for each round."""

    name: str
    pid: int
    port: int
    recipient: str
    before: Callable[[], None] = lambda: None
    after: Callable[[int], None] = lambda count: None
    rates: list[float] = field(default_factory=list)
    microseconds: list[float] = field(default_factory=list)

    def take(self, count: int) -> None:
        """Run one round of ``count`` messages."""
        self.before()
        cpu, began = cpu_seconds(self.pid), time.perf_counter()
        send(self.port, self.recipient, count)
        seconds = time.perf_counter() - began
        self.rates.append(count / seconds)
        self.microseconds.append((cpu_seconds(self.pid) - cpu) / count * 1e6)
        self.after(count)

    @property
    def rate(self) -> float:
        """Median of all rounds in messages per second."""
        return statistics.median(self.rates)


def send(port: int, recipient: str, count: int, sessions: int = SESSIONS) -> None:
    """Send the load; an error of one message ends the benchmark."""
    load = ["-d", "-s", str(sessions), "-l", str(SIZE), "-m", str(count)]
    path = ["-f", "load@example.com", "-t", recipient, f"inet:{HOST}:{port}"]
    subprocess.run([postfix_program("smtp-source"), *load, *path], check=True)


def postfix_program(name: str) -> str:
    """Return the path of one of Postfix's test programs."""
    path = shutil.which(name, path=os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin"]))
    if path is None:
        raise SystemExit(f"{name} is missing: apt-get install postfix")
    return path


@contextmanager
def peer(name: str, command: list[str], port: int) -> Iterator[Server]:
    """Run a peer until the context ends."""
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        wait_for_port(HOST, port)
        yield Server(name, process.pid, port, "null@example.com")
    finally:
        process.kill()
        process.wait()


def serve_aiosmtpd(port: int) -> None:
    """Run aiosmtpd until it is killed: its Controller is faster than its command line."""
    from aiosmtpd.controller import Controller
    from aiosmtpd.handlers import Sink

    Controller(Sink(), hostname=HOST, port=port).start()
    threading.Event().wait()


def aiosmtpd_command(port: int) -> list[str]:
    """Return the command that runs aiosmtpd."""
    return [sys.executable, __file__, "--serve-aiosmtpd", str(port)]


def smtp_sink_command(port: int) -> list[str]:
    """Return the command of smtp-sink, which needs the name of an ordinary user from root."""
    user = ["-u", "nobody"] if os.geteuid() == 0 else []
    return [postfix_program("smtp-sink"), *user, f"inet:{HOST}:{port}", str(BACKLOG)]


class StoredCheck:
    """Checks after each round that all acknowledged mails are stored, and stops the daemon."""

    def __init__(self, daemon: Daemon) -> None:
        self._daemon = daemon
        self._expected = 0

    def wake(self) -> None:
        """Continue the stopped daemon."""
        os.killpg(self._daemon.process.pid, signal.SIGCONT)

    def check(self, count: int) -> None:
        """Compare the number of messages in the inbox, then stop the daemon."""
        self._expected += count
        stored = self._daemon.total()
        if stored != self._expected:
            raise SystemExit(f"{stored} messages are stored, {self._expected} were acknowledged")
        os.killpg(self._daemon.process.pid, signal.SIGSTOP)


def measure(folder: Path, rounds: int, count: int) -> list[Server]:
    """Run all servers in turns, and return them; mailcheck is the first."""
    with ExitStack() as running:
        daemon = running.enter_context(
            running_daemon(folder, inbox_max_messages=10**9, inbox_max_bytes=10**15)
        )
        stored = StoredCheck(daemon)
        mailcheck = Server(
            "mailcheck (durable)",
            daemon.process.pid,
            daemon.smtp_port,
            daemon.address("load"),
            stored.wake,
            stored.check,
        )
        running.callback(stored.wake)
        aiosmtpd, sink = free_ports(2)
        servers = [
            mailcheck,
            running.enter_context(peer("aiosmtpd (null)", aiosmtpd_command(aiosmtpd), aiosmtpd)),
            running.enter_context(peer("smtp-sink (null)", smtp_sink_command(sink), sink)),
        ]
        for number in range(rounds):
            for server in servers:
                server.take(count)
            rates = "   ".join(f"{server.name} {server.rates[-1]:7.0f}/s" for server in servers)
            print(f"round {number + 1}:  {rates}", flush=True)
        return servers


def main() -> None:
    """Measure, and print the results."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--messages", type=int, default=5_000, help="number in each round")
    parser.add_argument("--folder", type=Path, help="folder of the database (a disk to measure)")
    parser.add_argument("--serve-aiosmtpd", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve_aiosmtpd:
        serve_aiosmtpd(options.serve_aiosmtpd)
    with tempfile.TemporaryDirectory(prefix="mailcheck-bench-", dir=options.folder) as folder:
        print(f"fsync of 4 KiB in {folder}: {fsync_milliseconds(Path(folder)):.2f} ms (median)")
        servers = measure(Path(folder), options.rounds, options.messages)
    for server in servers:
        cpu = statistics.median(server.microseconds)
        print(f"{server.name:20} {server.rate:7.0f} messages/s  {cpu:5.0f} us CPU/message")
    mailcheck, aiosmtpd, sink = (server.rate for server in servers)
    print(f"over aiosmtpd:  {mailcheck / aiosmtpd:.2f} x  (at least {OVER_AIOSMTPD})")
    print(
        f"over smtp-sink: {mailcheck / sink:.2f} x  "
        f"(at least {OVER_SMTP_SINK}, aim {AIM_OVER_SMTP_SINK})"
    )


if __name__ == "__main__":
    main()

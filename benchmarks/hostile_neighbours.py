"""Measure an honest client during attacks, compared with the same client on an idle daemon.

Run it with ``.venv/bin/python -m benchmarks.hostile_neighbours``. A second process attacks one
daemon, with the key of one account or without a key. Each attack runs alone, then all at once:

* checks: 100 checks at once of domains whose zones answer as much as is read, or more, with short
  texts that are slow to parse, and with chains of 400 CNAMEs;
* readers: six clients that read a mail of 20 MB again and again;
* drippers: waits, followed by a request that arrives in packets of one byte;
* floods: endless request bodies;
* held: 300 silent connections to the mail port, and 15 unfinished mails of 8 MiB;
* guessers: 20 clients that sign in with wrong passwords, each time from another address, as fast
  as the daemon hashes passwords (about 20 a second on two processors) or rejects the clients;
* senders: four clients that send mail to the attacker's own inbox, 80 a second;
* requests: three clients of a send API, with a subject of 300 kB, 12,000 substitutions, and a text
  for 1,000 people;
* searches: eight IMAP connections that search with 95 ``NOT TEXT``;
* unread: a hundred clients that ask for a mail of 20 MB or for events, and read no answer;
* milters: four peers of the milter endpoint that read no answer.

A client of another account waits for a mail and sends it. The measured time starts before the mail
is sent and ends with the response of the wait. The client also requests ``/healthz``. On a full
disk, where mail gets 452, it reads a message instead, beside checks and senders. Targets: p50 and
p99 within 4 x, ``/healthz`` within 100 ms.

Each row also shows the work of the attackers, and the CPU time of the attackers and of the daemon's
processes. Real attackers use other machines, so the attacking processes here run only on otherwise
idle processors. The honest client gets a processor as soon as it is runnable. (Both need root to be
exact.) If ``others`` used much CPU, ignore the row: most of a long time was then spent waiting for
a processor.
"""

import argparse
import contextlib
import multiprocessing
import os
import smtplib
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from http.client import HTTPConnection
from pathlib import Path

from benchmarks.attacks import (
    LARGE,
    MAIL,
    Attacks,
    HostileZone,
    Target,
    ask,
    processors_shared_by_all,
    take_at_once,
)
from benchmarks.measuring import machine_seconds, own_cpu_seconds, percentile
from tests.servers.daemon import HOST, Daemon, free_ports, running_daemon

SETTLE = 3.0
"""Seconds for an attack to start, and to end."""

TARGET = 4.0
HEALTH_TARGET = 100.0  # milliseconds

ON_FULL_DISK = ("checks", "senders")
DISK_SIZE = 64 * 1024 * 1024

_forks = multiprocessing.get_context("fork")


class Answered:
    """A response, and the time of its last byte."""

    answer = b""
    at = 0.0


class Honest:
    """The measured client. Times are in milliseconds."""

    def __init__(self, target: Target, *, sends: bool = True) -> None:
        self._target = target
        self._sends = sends
        self._cursor = b"c0"
        self.mails: list[float] = []
        self.health: list[float] = []

    def measure(self, seconds: float) -> None:
        """Receive or read mails, and request ``/healthz``, until the time is over."""
        take_at_once()
        self.mails, self.health = [], []
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self.mails.append(self._receive() if self._sends else self._read())
            began = time.perf_counter()
            with contextlib.closing(
                HTTPConnection(HOST, self._target.http_port, timeout=120)
            ) as connection:
                connection.request("GET", "/healthz")
                connection.getresponse().read()
            self.health.append((time.perf_counter() - began) * 1e3)

    def _receive(self) -> float:
        """Send one mail to a wait."""
        target, box = self._target, Answered()
        path = f"/inbox/wait?timeout=60&after={self._cursor.decode()}"

        def wait() -> None:
            take_at_once()
            box.answer = ask(target, path)
            box.at = time.perf_counter()

        waiting = threading.Thread(target=wait)
        waiting.start()
        time.sleep(0.05)
        with smtplib.SMTP(HOST, target.smtp_port, timeout=120) as client:
            began = time.perf_counter()
            client.sendmail("shop@example.com", [target.address], b"Subject: x\r\n\r\n482913\r\n")
        waiting.join()
        self._cursor = box.answer.split(b'"cursor":"')[1].split(b'"')[0]
        return (box.at - began) * 1e3

    def _read(self) -> float:
        """List the messages and read one."""
        time.sleep(0.05)
        began = time.perf_counter()
        found = ask(self._target, "/inbox/messages?limit=1")
        message = found.partition(b'"id":"')[2][:36].decode()
        assert b'"text"' in ask(self._target, f"/inbox/messages/{message}")
        return (time.perf_counter() - began) * 1e3


class Bench:
    """A daemon with an attacker and an honest client."""

    def __init__(self, daemon: Daemon, honest: Honest, attacks: Attacks, zone: int) -> None:
        self._daemon = daemon
        self._honest = honest
        self._attacks = attacks
        self._zone = zone  # a process id
        self._idle: tuple[list[float], list[float]] = ([], [])

    def measure_idle(self, seconds: float) -> None:
        """Measure the idle daemon, again before each attack, as the basis of comparison."""
        self._honest.measure(seconds)
        self._idle[0].extend(self._honest.mails)
        self._idle[1].extend(self._honest.health)

    def measure_attacked(self, name: str, attacks: Sequence[str], seconds: float) -> None:
        """Measure during attacks, and print a row."""
        self.measure_idle(seconds / 4)
        attacker = _forks.Process(target=self._attacks.begin, args=(attacks,), daemon=True)
        attacker.start()
        time.sleep(SETTLE)
        assert attacker.pid is not None
        pids = (attacker.pid, self._zone)
        done, taken = self._attacks.done(), self._taken(*pids)
        began = time.monotonic()
        self._honest.measure(seconds)
        took = time.monotonic() - began
        shares = {name: now - taken.get(name, 0) for name, now in self._taken(*pids).items()}
        shares["others"] = 2 * shares["all"] - sum(shares.values())
        rates = {name: now - done[name] for name, now in self._attacks.done().items()}
        attacker.kill()
        attacker.join()
        print(name)
        _report("mail" if self._honest._sends else "read", self._idle[0], self._honest.mails)
        _report("/healthz", self._idle[1], self._honest.health)
        processors = ", ".join(f"{one} {share / took:.2f}" for one, share in shares.items())
        print(f"    processors: {processors}")
        print("    done:", ", ".join(f"{one} {rates[one] / took:.1f}/s" for one in attacks))
        time.sleep(SETTLE)

    def _taken(self, attacker: int, zone: int) -> dict[str, float]:
        """Return the CPU seconds used, by process."""
        main, *children = self._daemon.pids()
        taken = {
            "all": machine_seconds(),
            "attackers": own_cpu_seconds(attacker) + own_cpu_seconds(zone),
            "honest": own_cpu_seconds(os.getpid()),
            "main": own_cpu_seconds(main),
        }
        for pid in children:
            name = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")[-2].decode()
            taken[name] = own_cpu_seconds(pid)
        return taken


def _report(name: str, idle: Sequence[float], attacked: Sequence[float]) -> None:
    figures = [percentile(values, one) for one in (50, 99) for values in (idle, attacked)]
    print(
        f"    {name}: idle p50 {figures[0]:.1f} p99 {figures[2]:.1f} ms; attacked"
        f" {figures[1]:.1f} and {figures[3]:.1f} ms:"
        f" {figures[1] / figures[0]:.1f} x and {figures[3] / figures[2]:.1f} x ({len(attacked)})"
    )


def _account(daemon: Daemon, name: str, imap_port: int, milter_port: int) -> Target:
    """Create an account with a key."""

    def command(*words: str) -> str:
        program = [str(Path(sys.executable).with_name("mailcheck")), *words]
        run = subprocess.run(
            program, cwd=daemon.folder, env=daemon.environment, capture_output=True, check=True
        )
        return run.stdout.decode().split("\n")[0].strip()

    address, key = command("account", "add", name), command("key", "issue", name)
    return Target(daemon.smtp_port, daemon.http_port, key, address, imap_port, milter_port)


@contextlib.contextmanager
def _bench(folder: Path, *, sends: bool = True) -> Iterator[tuple[Bench, Target, Target]]:
    """Run a daemon with a hostile zone, and yield its bench, the attacker and the honest client."""
    zone = HostileZone()
    server = _forks.Process(target=zone.serve, daemon=True)
    server.start()
    assert server.pid is not None
    imap_port, milter_port = free_ports(2)
    options = {
        "dns_resolvers": zone.resolver,
        "spamassassin_spamd": "off",
        "imap_listen": f"{HOST}:{imap_port}",
        "milter_listen": f"{HOST}:{milter_port}",
    }
    with running_daemon(folder, **options) as daemon:
        hostile, honest = (
            _account(daemon, name, imap_port, milter_port) for name in ("hostile", "honest")
        )
        client = Honest(honest, sends=sends)
        yield Bench(daemon, client, Attacks(hostile), server.pid), hostile, honest
    server.kill()
    server.join()


def _measure(names: Sequence[str], seconds: float, *, alone: bool, together: bool) -> None:
    with tempfile.TemporaryDirectory() as folder, _bench(Path(folder)) as (bench, hostile, _):
        with smtplib.SMTP(HOST, hostile.smtp_port) as client:
            large = hostile.address.replace("@", "+large@")
            client.sendmail("a@example.com", [large], LARGE)
        bench.measure_idle(seconds)
        for name in names if alone else ():
            bench.measure_attacked(name, [name], seconds)
        if together:
            bench.measure_attacked(f"at once: {' '.join(names)}", names, seconds)


def _measure_full_disk(seconds: float) -> None:
    with tempfile.TemporaryDirectory() as folder:
        mount = ["mount", "-t", "tmpfs", "-o", f"size={DISK_SIZE}", "tmpfs", folder]
        if subprocess.run(mount, capture_output=True, check=False).returncode:
            print("full disk: left out, the user may not mount a filesystem here")
            return
        try:
            with _bench(Path(folder), sends=False) as (bench, _, honest):
                with smtplib.SMTP(HOST, honest.smtp_port) as client:
                    client.sendmail("a@example.com", [honest.address], MAIL)
                bench.measure_idle(seconds)
                _fill(Path(folder))
                bench.measure_attacked(
                    f"full disk: {' '.join(ON_FULL_DISK)}", ON_FULL_DISK, seconds
                )
        finally:
            subprocess.run(["umount", folder], check=True)


def _fill(folder: Path) -> None:
    """Fill the filesystem to its last byte."""
    with contextlib.suppress(OSError), (folder / "filler").open("ab", buffering=0) as filler:
        for size in (65_536, 4_096, 1):
            with contextlib.suppress(OSError):
                while filler.write(bytes(size)) == size:
                    pass


def main() -> None:
    """Measure, and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--only", nargs="+", help="run these attacks, without the full disk")
    parser.add_argument("--seconds", type=float, default=6.0, help="length of each measurement")
    parser.add_argument("--at-once", action="store_true", help="run all attacks at once only")
    given = parser.parse_args()
    known = list(Attacks(Target(0, 0, "", "")).crowds)
    if unknown := set(given.only or ()) - set(known):
        parser.error(f"unknown attacks {', '.join(unknown)}: there are {', '.join(known)}")
    names = given.only or known
    print(f"{os.cpu_count()} processors, load {os.getloadavg()[0]:.1f}; {given.seconds} s each")
    with processors_shared_by_all():
        _measure(
            names, given.seconds, alone=not given.at_once, together=given.at_once or len(names) > 1
        )
        if not given.only:
            _measure_full_disk(given.seconds)
    print(f"targets: within {TARGET:.0f} x, /healthz within {HEALTH_TARGET:.0f} ms")


if __name__ == "__main__":
    main()

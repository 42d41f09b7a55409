"""Measure two daemons on one PostgreSQL and one Redis: wake-up time and cost of a mail.

Run it with ``.venv/bin/python -m benchmarks.cluster_wake_up``. In turns, in one run:

* A wait on one daemon ends by a mail to the same daemon, and by a mail to the other daemon. The
  time from the 250 after DATA to the response of the wait is measured, also while other mail
  arrives at the other daemon.
* Mails are sent over kept connections to: one daemon alone; two independent daemons; one of two
  daemons that share Redis and an inbox; both of these. The CPU time of the daemons and of Redis is
  measured per mail.

A daemon handles the input of all its connections together, so a mail costs less when more
connections are busy. Each case therefore runs with ten and with five connections to each daemon.
Two daemons with ten connections in all have the base cost of one daemon with five, plus the cost
of sharing. The independent daemons show the effect of the processor caches when more processes
run. Indexing mails for lists is not measured: it is postponed while mail arrives, and any daemon
may do it.
"""

import contextlib
import os
import smtplib
import tempfile
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from http.client import HTTPConnection
from pathlib import Path
from typing import Any
from urllib.parse import quote

from benchmarks.measuring import cpu_seconds, percentile, processes
from tests.servers.daemon import HOST, Daemon, running_daemon
from tests.servers.postgresql import PostgresqlServer
from tests.servers.redis import running_redis

WAKE_UPS = 40
ROUNDS = 5
READER = b"content\0"
"""End of the command line of the process that indexes mails for lists."""

ALONE, STRANGERS = "one daemon alone", "two independent daemons"
MAILS = 1_000
CONNECTIONS = (10, 5)  # to each daemon
LOAD = 150.0  # mails per second while waits are measured
LOAD_CONNECTIONS = 5
BODY = "Your code is 482913: https://example.com/confirm\r\n" * 100

WAKE_TARGET = 10.0  # milliseconds, p50
CPU_TARGET = 1.15


@contextlib.contextmanager
def running_postgresql() -> Iterator[PostgresqlServer]:
    """Run a server with its default settings, which commit to disk."""
    server = PostgresqlServer(Path(tempfile.mkdtemp(prefix="mailcheck-bench-")))
    server.folder.chmod(0o755)
    server.initialise()
    server.start()
    try:
        yield server
    finally:
        server.stop()


def wake_up(here: Daemon, there: Daemon, client: smtplib.SMTP) -> float:
    """Return the milliseconds from the 250 after DATA to the response of a wait."""
    recipient, cursor = here.address("wake"), here.cursor()
    connection = HTTPConnection(HOST, here.http_port, timeout=30)
    path = f"/api/v1/inbox/wait?tag=wake&after={quote(cursor)}&timeout=20"
    connection.request("GET", path, headers={"X-API-Key": here.key})
    time.sleep(0.03)
    answered: list[float] = []

    def read() -> None:
        connection.getresponse().read()
        answered.append(time.perf_counter())

    reader = threading.Thread(target=read)
    reader.start()
    client.sendmail("a@example.com", [recipient], "Subject: wake\r\n\r\nup\r\n")
    stored = time.perf_counter()
    reader.join()
    connection.close()
    return max(0.0, (answered[0] - stored) * 1e3)


Target = tuple[Daemon, str]
"""A daemon, and the address that mail is sent to through it."""


def send_mails(targets: Sequence[Target], connections: int) -> None:
    """Send mails over kept connections, the same number to each daemon."""

    def send(daemon: Daemon, recipient: str) -> None:
        with smtplib.SMTP(HOST, daemon.smtp_port) as client:
            for number in range(MAILS // connections // len(targets)):
                mail = f"Subject: {number}\r\n\r\n{BODY}"
                client.sendmail("a@example.com", [recipient], mail)

    senders = [
        threading.Thread(target=send, args=target) for target in targets for _ in range(connections)
    ]
    for sender in senders:
        sender.start()
    for sender in senders:
        sender.join()


@contextlib.contextmanager
def mail_coming_in(daemon: Daemon) -> Iterator[None]:
    """Send mails with another tag at a steady rate until the context ends."""
    recipient, over = daemon.address("other"), threading.Event()

    def send() -> None:
        with smtplib.SMTP(HOST, daemon.smtp_port) as client:
            while not over.wait(LOAD_CONNECTIONS / LOAD):
                client.sendmail("a@example.com", [recipient], f"Subject: other\r\n\r\n{BODY}")

    senders = [threading.Thread(target=send) for _ in range(LOAD_CONNECTIONS)]
    for sender in senders:
        sender.start()
    try:
        yield
    finally:
        over.set()
        for sender in senders:
            sender.join()


def cpu_of(pids: Iterable[int]) -> float:
    """Return the CPU time of daemons and servers without the indexing of mails for lists."""
    every = [one for pid in pids for one in processes(pid)]
    readers = [one for one in every if Path(f"/proc/{one}/cmdline").read_bytes().endswith(READER)]
    return sum(map(cpu_seconds, pids)) - sum(map(cpu_seconds, readers))


def cost(targets: Sequence[Target], connections: int, pids: Sequence[int]) -> tuple[float, float]:
    """Return microseconds of CPU per mail while mails arrive, and mails per second."""
    every = {*(daemon.process.pid for daemon, _ in targets), *pids}
    before, began = cpu_of(every), time.perf_counter()
    send_mails(targets, connections)
    seconds = time.perf_counter() - began
    return (cpu_of(every) - before) / MAILS * 1e6, MAILS / seconds


def main() -> None:
    """Measure, and print the results."""
    common: dict[str, Any] = {
        "spamassassin_spamd": "off",
        "ops_listen": [],
        "inbox_max_messages": 10_000_000,
        "ops_log_level": "warn",
    }
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        server = stack.enter_context(running_postgresql())
        redis = stack.enter_context(running_redis())
        alone, stranger = (
            stack.enter_context(
                running_daemon(folder / name, storage_url=server.make_database(name), **common)
            )
            for name in ("alone", "stranger")
        )
        shared = {
            "storage_url": server.make_database("shared"), "cluster_redis": redis.url, **common
        }  # fmt: skip
        one = stack.enter_context(running_daemon(folder / "one", **shared))
        shared["accounts_bootstrap_key"] = one.key
        two = stack.enter_context(running_daemon(folder / "two", **shared))
        report_wake_ups("", one, two)
        with mail_coming_in(two):
            report_wake_ups(f", with {LOAD:g} other mails a second to that one", one, two)
        print(f"  target: p50 across daemons under {WAKE_TARGET:g} ms\n")
        cluster = [one.process.pid, two.process.pid, redis.pid]
        here, there, inbox = (daemon.address() for daemon in (alone, stranger, one))
        cases: dict[str, tuple[list[Target], list[int]]] = {
            ALONE: ([(alone, here)], []),
            STRANGERS: ([(alone, here), (stranger, there)], []),
            "one of two, with Redis": ([(one, inbox)], cluster),
            "both of two, with Redis": ([(one, inbox), (two, inbox)], cluster),
        }
        costs: Costs = {(name, count): [] for count in CONNECTIONS for name in cases}
        for _ in range(ROUNDS):
            for name, count in costs:
                targets, pids = cases[name]
                costs[name, count].append(cost(targets, count, pids))
        report_costs(costs)


def report_wake_ups(what: str, one: Daemon, two: Daemon) -> None:
    """Measure waits on the first daemon with mail to it and to the other daemon in turns."""
    local, across = [], []
    with smtplib.SMTP(HOST, one.smtp_port) as here, smtplib.SMTP(HOST, two.smtp_port) as there:
        for _ in range(WAKE_UPS):
            local.append(wake_up(one, one, here))
            across.append(wake_up(one, two, there))
    for name, values in (("the same daemon", local), ("another daemon", across)):
        p50, p99 = percentile(values, 50), percentile(values, 99)
        print(f"woken by mail to {name}{what}: p50 {p50:.1f} ms, p99 {p99:.1f} ms")


Costs = dict[tuple[str, int], list[tuple[float, float]]]
"""CPU per mail and mails per second of each round, by case and number of connections."""


def report_costs(costs: Costs) -> None:
    """Print figures, ratios and the target."""
    print(f"{os.cpu_count()} cores, {ROUNDS} x {MAILS} mails of 5 KB")
    for count in CONNECTIONS:
        print(f"{count} connections to each daemon:")
        for (name, connections), rounds in costs.items():
            if connections == count:
                cpu, rate = (percentile(values, 50) for values in zip(*rounds, strict=True))
                alone, strangers = (
                    _ratio(rounds, costs[peer, count]) for peer in (ALONE, STRANGERS)
                )
                print(
                    f"  {name:24} {cpu:4.0f} us of CPU a mail, {rate:4.0f} a second: "
                    f"{alone:.2f} x one alone, {strangers:.2f} x strangers"
                )
    print(f"  target: both of two at most {CPU_TARGET:g} x one alone")


def _ratio(rounds: Sequence[tuple[float, float]], peer: Sequence[tuple[float, float]]) -> float:
    """Return the median ratio of CPU between equal rounds."""
    return percentile([own / other for (own, _), (other, _) in zip(rounds, peer, strict=True)], 50)


if __name__ == "__main__":
    main()

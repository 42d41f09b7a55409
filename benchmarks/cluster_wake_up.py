"""Two daemons on one PostgreSQL and one Redis: how soon the other one wakes, and what it costs.

Run it by ``.venv/bin/python -m benchmarks.cluster_wake_up``. In turns, in one run:

* a wait on one daemon is woken by a mail to itself, and by one to the other daemon: from the
  250 after DATA to the waiter's answer;
* mails over ten kept connections to one daemon that is alone, to one of two that share a
  Redis, and to both of them, five connections each: CPU of the daemons, and of Redis, per mail.
"""

import contextlib
import os
import smtplib
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from http.client import HTTPConnection
from pathlib import Path
from typing import Any
from urllib.parse import quote

from benchmarks.measuring import cpu_seconds, percentile
from tests.servers.daemon import HOST, Daemon, running_daemon
from tests.servers.postgresql import PostgresqlServer
from tests.servers.redis import running_redis

WAKE_UPS = 40
ROUNDS = 3
MAILS = 1_000
CONNECTIONS = 10
BODY = "Your code is 482913: https://example.com/confirm\r\n" * 100

WAKE_TARGET = 10.0  # milliseconds, p50
CPU_TARGET = 1.15


@contextlib.contextmanager
def running_postgresql() -> Iterator[PostgresqlServer]:
    """Run a server with its defaults: what it acknowledges is on the disk."""
    server = PostgresqlServer(Path(tempfile.mkdtemp(prefix="mailcheck-bench-")))
    server.folder.chmod(0o755)
    server.initialise()
    server.start()
    try:
        yield server
    finally:
        server.stop()


def wake_up(here: Daemon, there: Daemon, client: smtplib.SMTP) -> float:
    """Give milliseconds from the 250 after DATA to the answer of a wait."""
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


def send_mails(daemons: Sequence[Daemon], recipient: str) -> None:
    """Send mails over kept connections, the same number to each daemon."""

    def send(port: int) -> None:
        with smtplib.SMTP(HOST, port) as client:
            for number in range(MAILS // CONNECTIONS):
                mail = f"Subject: {number}\r\n\r\n{BODY}"
                client.sendmail("a@example.com", [recipient], mail)

    ports = [daemons[number % len(daemons)].smtp_port for number in range(CONNECTIONS)]
    senders = [threading.Thread(target=send, args=[port]) for port in ports]
    for sender in senders:
        sender.start()
    for sender in senders:
        sender.join()


def cost(daemons: Sequence[Daemon], pids: Sequence[int], recipient: str) -> tuple[float, float]:
    """Give microseconds of CPU per mail while they come in, and mails a second.

    Reading them for lists is put off for as long as that lasts, and costs the same everywhere.
    """
    every = [*(one.process.pid for one in daemons), *pids]
    before, began = sum(map(cpu_seconds, every)), time.perf_counter()
    send_mails(daemons, recipient)
    seconds = time.perf_counter() - began
    return (sum(map(cpu_seconds, every)) - before) / MAILS * 1e6, MAILS / seconds


def main() -> None:
    """Measure and print."""
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
        alone = stack.enter_context(
            running_daemon(folder / "alone", storage_url=server.make_database("alone"), **common)
        )
        shared = {
            "storage_url": server.make_database("shared"), "cluster_redis": redis.url, **common
        }  # fmt: skip
        one = stack.enter_context(running_daemon(folder / "one", **shared))
        shared["accounts_bootstrap_key"] = one.key
        two = stack.enter_context(running_daemon(folder / "two", **shared))
        local, across = measure_wake_ups(one, two)
        costs = [
            (
                cost([alone], [], alone.address()),
                cost([one], [two.process.pid, redis.pid], one.address()),
                cost([one, two], [redis.pid], one.address()),
            )
            for _ in range(ROUNDS)
        ]
    report(local, across, costs)


def measure_wake_ups(one: Daemon, two: Daemon) -> tuple[list[float], list[float]]:
    """Wake waits on the first daemon by mail to it and to the other one, in turns."""
    local, across = [], []
    with smtplib.SMTP(HOST, one.smtp_port) as here, smtplib.SMTP(HOST, two.smtp_port) as there:
        for _ in range(WAKE_UPS):
            local.append(wake_up(one, one, here))
            across.append(wake_up(one, two, there))
    return local, across


def report(
    local: Sequence[float],
    across: Sequence[float],
    costs: Sequence[Sequence[tuple[float, float]]],
) -> None:
    """Print figures, ratios and targets."""
    print(f"{os.cpu_count()} cores, {WAKE_UPS} wake-ups, {ROUNDS} x {MAILS} mails of 5 KB\n")
    for name, values in (("the same daemon", local), ("another daemon", across)):
        p50, p99 = percentile(values, 50), percentile(values, 99)
        print(f"woken by mail to {name}: p50 {p50:.1f} ms, p99 {p99:.1f} ms")
    print(f"  target: p50 across daemons under {WAKE_TARGET:g} ms\n")
    names = ("one daemon alone", "one of two, with Redis", "both of two, with Redis")
    for name, rounds in zip(names, zip(*costs, strict=True), strict=True):
        cpu, rate = min(rounds)
        ratios = [each[0] / alone[0] for each, (alone, *_) in zip(rounds, costs, strict=True)]
        print(
            f"{name}: {cpu:.0f} us of CPU a mail, {rate:.0f} mails a second; "
            f"{percentile(ratios, 50):.2f} x in the same round"
        )
    print(f"  target: at most {CPU_TARGET:g} x")


if __name__ == "__main__":
    main()

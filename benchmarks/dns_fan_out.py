"""Measure 32 queries at once: mailcheck's resolver beside aiodns (c-ares, C).

Run it with ``python -m benchmarks.dns_fan_out`` (needs aiodns). A name server in a process of its
own, on loopback, answers NXDOMAIN after 20 ms, as a blocklist zone does for an address that is not
listed. Names under ``dead`` get no answer. Clients run in processes of their own, in turns, so that
they share neither CPU time nor state.

Targets: the wall time of a check is at most 1.2 times the slowest answer. CPU is at most 2 ms per
check and below aiodns. Four zones that never answer delay a check to its deadline and no longer.
50 checks at once lose no answer.
"""

import argparse
import asyncio
import json
import os
import random
import resource
import select
import socket
import statistics
import subprocess
import sys
import time
from collections import deque
from collections.abc import Awaitable, Callable
from typing import NamedTuple, cast

from twisted.internet import task
from twisted.internet.defer import Deferred, DeferredList, ensureDeferred

from mailcheck.checks.dns_answers import DnsAnswer, DnsQuestion
from mailcheck.dns.caching_resolver import AnswerCache, CacheLimits, CachingResolver
from mailcheck.dns.exchange import DnsReactor
from mailcheck.dns.resolution import ResolverSettings
from mailcheck.dns.resolver import StubResolver
from mailcheck.dns.servers import Server

DELAY = 0.020  # seconds
ZONES = 32
DEAD_ZONES = 4
DEADLINE = 3.0  # seconds of a blocklist check
CHECKS = 100  # in a round
ROUNDS = 5
CROWD = 50  # checks at once

SOA = (
    b"\xc0\x0c\0\x06\0\x01\0\0\x01\x2c\0\x18"  # owner: the queried name; IN SOA, TTL 300, 24 octets
    b"\xc0\x0c\xc0\x0c" + b"\0\0\0\x01" * 4 + b"\0\0\0\x3c"
)


def serve() -> None:
    """Answer NXDOMAIN with an SOA, `DELAY` after each query, until the process is killed."""
    server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    server.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 22)
    server.bind(("127.0.0.1", 0))
    server.setblocking(False)
    print(server.getsockname()[1], flush=True)
    due: deque[tuple[float, bytes, tuple[str, int]]] = deque()
    while True:
        wait = max(0.0, due[0][0] - time.monotonic()) if due else None
        if select.select([server], [], [], wait)[0]:
            try:
                while True:
                    data, client = server.recvfrom(512)
                    if b"\x04dead" not in data:
                        due.append((time.monotonic() + DELAY, data, client))
            except BlockingIOError:
                pass
        while due and due[0][0] <= time.monotonic():
            _, data, client = due.popleft()
            question = data[12 : data.index(b"\0", 12) + 5]
            header = data[:2] + b"\x81\x83\0\x01\0\0\0\x01\0\0"
            server.sendto(header + question + SOA, client)


def questions(dead: int = 0) -> list[str]:
    """Return the names that a blocklist check queries for a random address."""
    address = ".".join(str(random.randrange(256)) for _ in range(4))
    alive = [f"{address}.z{index}.bl.example" for index in range(ZONES - dead)]
    return alive + [f"{address}.z{index}.dead.example" for index in range(dead)]


class Figures(NamedTuple):
    """Results of a client: times in milliseconds, and the number of missing answers."""

    wall: float
    cpu: float
    dead_wall: float
    crowd_wall: float
    lost: int


Ask = Callable[[list[str]], Awaitable[int]]
"""Queries A of all names at once, for at most `DEADLINE`, and returns the number of answers."""


def cpu_seconds() -> float:
    """Return the CPU time of this process, system calls included."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


async def measure(ask: Ask, crowd: Callable[[list[list[str]]], Awaitable[int]]) -> Figures:
    """Run a round: checks one after another, one check with dead zones, and many at once."""
    await ask(questions())
    walls: list[float] = []
    lost = 0
    cpu = cpu_seconds()
    for _ in range(CHECKS):
        names = questions()
        started = time.perf_counter()
        lost += ZONES - await ask(names)
        walls.append(time.perf_counter() - started)
    cpu = (cpu_seconds() - cpu) / CHECKS
    started = time.perf_counter()
    lost += ZONES - DEAD_ZONES - await ask(questions(DEAD_ZONES))
    dead_wall = time.perf_counter() - started
    checks = [questions() for _ in range(CROWD)]
    started = time.perf_counter()
    lost += CROWD * ZONES - await crowd(checks)
    crowd_wall = time.perf_counter() - started
    wall = statistics.median(walls)
    return Figures(wall * 1e3, cpu * 1e3, dead_wall * 1e3, crowd_wall * 1e3, lost)


def run_mailcheck(port: int) -> None:
    """Measure mailcheck's resolver: datagrams with its cache and single-flight queries."""

    async def main(reactor: DnsReactor) -> None:
        server = Server("127.0.0.1", port)
        stub = StubResolver(reactor, [server], ResolverSettings(), os.urandom)
        resolver = CachingResolver(stub, AnswerCache(CacheLimits()), reactor)

        def start(names: list[str]) -> Deferred[int]:
            lookups = [resolver.lookup(DnsQuestion(name, "A")) for name in names]

            def give_up() -> None:
                for lookup in lookups:
                    lookup.cancel()

            def count(results: list[tuple[bool, DnsAnswer]]) -> int:
                if deadline.active():
                    deadline.cancel()
                return sum(fine and answer.status.is_determined for fine, answer in results)

            deadline = reactor.callLater(DEADLINE, give_up)
            return DeferredList(lookups, consumeErrors=True).addCallback(count)

        async def crowd(checks: list[list[str]]) -> int:
            results = await DeferredList([start(names) for names in checks])
            return sum(count for _, count in results)

        async def ask(names: list[str]) -> int:
            return await start(names)

        print(json.dumps(await measure(ask, crowd)))
        await stub.close()

    task.react(lambda reactor: ensureDeferred(main(cast(DnsReactor, reactor))))


def run_aiodns(port: int) -> None:
    """Measure aiodns with its default settings."""
    import aiodns

    async def main() -> None:
        resolver = aiodns.DNSResolver(["127.0.0.1"], udp_port=port, tcp_port=port)

        async def ask(names: list[str]) -> int:
            lookups = [resolver.query_dns(name, "A") for name in names]
            done, _ = await asyncio.wait(lookups, timeout=DEADLINE)
            for lookup in lookups:
                lookup.cancel()
            not_found = [each.exception() for each in done if not each.cancelled()]
            return sum(
                isinstance(failure, aiodns.error.DNSError)
                and failure.args[0] == aiodns.error.ARES_ENOTFOUND
                for failure in not_found
            )

        async def crowd(checks: list[list[str]]) -> int:
            return sum(await asyncio.gather(*[ask(names) for names in checks]))

        print(json.dumps(await measure(ask, crowd)))

    asyncio.run(main())


def compare() -> None:
    """Run the clients in turns, and print the medians of their rounds and the ratios."""
    command = [sys.executable, "-m", "benchmarks.dns_fan_out"]
    server = subprocess.Popen([*command, "serve"], stdout=subprocess.PIPE, text=True)
    assert server.stdout is not None
    port = server.stdout.readline().strip()
    rounds: dict[str, list[Figures]] = {"mailcheck": [], "aiodns": []}
    try:
        for _ in range(ROUNDS):
            for client, figures in rounds.items():
                output = subprocess.check_output([*command, client, "--port", port], text=True)
                figures.append(Figures(*json.loads(output)))
    finally:
        server.kill()
        server.wait()
    print(f"{ZONES} questions at once, each answered after {DELAY * 1e3:.0f} ms; ms per check")
    print("client      wall p50   / delay   CPU   4 dead zones   50 at once   lost answers")
    medians: dict[str, Figures] = {}
    for client, figures in rounds.items():
        columns = list(zip(*figures, strict=True))
        median = Figures(*map(statistics.median, columns))._replace(lost=sum(columns[-1]))
        medians[client] = median
        print(
            f"{client:10} {median.wall:9.1f} {median.wall / DELAY / 1e3:9.2f} {median.cpu:5.2f}"
            f" {median.dead_wall:14.0f} {median.crowd_wall:12.0f} {median.lost:14d}"
        )
    ours, theirs = medians["mailcheck"], medians["aiodns"]
    print(
        f"mailcheck / aiodns: wall {ours.wall / theirs.wall:.2f}, CPU {ours.cpu / theirs.cpu:.2f}"
    )


def main() -> None:
    """Run the comparison, or one of its parts in this process."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("part", nargs="?", choices=["serve", "mailcheck", "aiodns"])
    parser.add_argument("--port", type=int)
    options = parser.parse_args()
    if options.part is None:
        compare()
    elif options.part == "serve":
        serve()
    else:
        {"mailcheck": run_mailcheck, "aiodns": run_aiodns}[options.part](options.port)


if __name__ == "__main__":
    main()

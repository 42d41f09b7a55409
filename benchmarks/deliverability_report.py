"""Measure deliverability reports when every DNS answer takes 20 ms, without a content filter.

Run it with ``python -m benchmarks.deliverability_report`` (needs Postfix's smtp-source: Debian's
package postfix). The daemon runs in this process, with its child processes. A second process sends
mails over SMTP, and a third is a name server with a perfect sender and clean blocklists. There is
no peer, because no other tool makes such a report on its own machine.

Targets: from the end of DATA to completion a test takes at most 60 ms more than the longest chain
of dependent answers (from the server's log). 50 tests that arrive within a second complete within
5 s. Meanwhile inbox mail is received at 0.8 x its usual rate or faster. A signed mail of 10 MB
delays a ticker of 10 ms in the reactor by at most 50 ms.
"""

import argparse
import io
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IReactorTime
from twisted.internet.task import LoopingCall, deferLater, react
from twisted.internet.threads import deferToThread

from benchmarks.reputation import DELAY, longest_chain, read_log, serve
from mailcheck.assembly.daemon import build_daemon
from mailcheck.assembly.ops import Environment
from mailcheck.assembly.running.services import build_services
from mailcheck.assembly.runtime import open_runtime, time_and_chance_of
from mailcheck.assembly.workers import daemon_workers
from mailcheck.config.reading import load_config
from mailcheck.core.deliverability_tests import DeliverabilityTest, State, local_part_of
from mailcheck.core.identifiers import DeliverabilityTestId
from mailcheck.core.memory.client_limits import AMPLE
from tests.end_to_end.test_domain_checks import zone as zone_of_lists
from tests.fakes.mail_signer import RSA
from tests.fakes.memory_zone import MemoryZone
from tests.operations.scored_mails import MAIL, PERFECT
from tests.servers.daemon import HOST, free_ports

ALLOWED = 0.060  # seconds in addition to the chain
ROUNDS = 15
CROWD, CROWD_DEADLINE = 50, 5.0
INTAKE_ROUNDS, INTAKE_SHARE = 5, 0.8
INTAKE_MESSAGES = 12_000  # enough to last while the tests are analysed
LARGE = 10 * 1024 * 1024
TICK, MAX_STALL = 0.010, 0.050
SETTLING = 1.0  # seconds for self-tests and child processes to start

Popen = subprocess.Popen[str]


class Bench:
    """The daemon, and the measurements of it."""

    def __init__(self, reactor: Any, folder: Path, dns_port: int) -> None:
        self.reactor: Any = reactor
        self.folder = folder
        self.port, submission, http = free_ports(3)
        settings = {
            "DNS_RESOLVERS": f'["{HOST}:{dns_port}"]',
            "OPS_LISTEN": "",
            "INBOX_MAX_MESSAGES": "1000000",
            "SMTP_LISTEN": f'["{HOST}:{self.port}"]',
            "SMTP_SUBMISSION_LISTEN": f'["{HOST}:{submission}"]',
            "SMTP_XCLIENT_FROM": f'["{HOST}"]',
            "SPAMASSASSIN_SPAMD": "off",
            "STORAGE_MIN_FREE": "0",
            "STORAGE_STATE_DIRECTORY": str(folder),
            "STORAGE_URL": f"sqlite:{folder}/mailcheck.db",
            "WEB_LISTEN": f'["{HOST}:{http}"]',
        }
        config = load_config(None, {f"MAILCHECK_{key}": text for key, text in settings.items()})
        clock_and_randomness = time_and_chance_of(config, time.time, reactor, os.urandom)
        workers = daemon_workers(reactor, AMPLE, is_shared=False)
        self.assembly = build_daemon(open_runtime(config, reactor, clock_and_randomness, workers))
        self.service = build_services(
            self.assembly, Environment(io.StringIO(), {}, None, lambda: config, {})
        )
        self.completed: dict[str, float] = {}
        self.assembly.tests.notifications.listen(self._note)

    async def start(self) -> None:
        """Start the daemon and create an account."""
        self.service.privilegedStartService()
        self.service.startService()
        await deferLater(self.reactor, SETTLING)
        self.account = await self.assembly.accounts.keep.add("bench")

    async def generate(self, count: int) -> list[DeliverabilityTest]:
        """Create tests."""
        create = self.assembly.tests.operations.manage.create
        return [await create(self.account.id) for _ in range(count)]

    async def when_completed(self, tests: Sequence[DeliverabilityTest]) -> list[float]:
        """Wait until all tests are completed, and return the time of each."""
        while not all(test.id in self.completed for test in tests):
            await deferLater(self.reactor, 0.002)
        return [self.completed[test.id] for test in tests]

    def jobs(self, tests: Sequence[DeliverabilityTest], file: Path, pause: float) -> str:
        """Return the input line of the sender: one mail for each test."""
        domain = self.assembly.runtime.config.inbox.domain
        jobs = [
            (number * pause, f"{local_part_of(test.id)}@{domain}", str(file))
            for number, test in enumerate(tests)
        ]
        return json.dumps(jobs)

    def _note(self, test_id: DeliverabilityTestId) -> None:
        heard_at = time.monotonic()
        found = self.assembly.tests.operations.manage.one(self.account.id, test_id)

        def look(result: Any) -> None:
            assert result.test.state is not State.ERROR, result
            if result.test.state is State.COMPLETED:
                assert result.report.tenths >= 90, result.report.document[:2000]
                self.completed.setdefault(test_id, heard_at)

        Deferred.fromCoroutine(found).addCallback(look)


async def send(sender: Popen, line: str) -> list[float]:
    """Let the sender send mails, and return the times of their last octets."""

    def talk() -> list[float]:
        assert sender.stdin is not None
        assert sender.stdout is not None
        sender.stdin.write(line + "\n")
        sender.stdin.flush()
        ended: list[float] = json.loads(sender.stdout.readline())
        return ended

    return await deferToThread(talk)


async def measure_one(bench: Bench, sender: Popen, server: Popen, file: Path) -> None:
    """Measure one test at a time."""
    excesses, bounds = [], []
    for _ in range(ROUNDS + 1):
        tests = await bench.generate(1)
        read_log(server)
        (ended,) = await send(sender, bench.jobs(tests, file, 0))
        (completed,) = await bench.when_completed(tests)
        bounds.append(longest_chain(read_log(server)) * DELAY)
        excesses.append(completed - ended - bounds[-1])
    # The first round warms up the child processes and the server's cache of packed answers.
    print(f"longest chain: {statistics.median(bounds[1:]) * 1e3:.0f} ms of delays")
    print(
        f"beside the chain: {statistics.median(excesses[1:]) * 1e3:.1f} ms,"
        f" worst {max(excesses[1:]) * 1e3:.1f} ms (target {ALLOWED * 1e3:.0f})"
    )


async def measure_crowd(bench: Bench, sender: Popen, file: Path) -> None:
    """Measure many tests that arrive within a second."""
    tests = await bench.generate(CROWD)
    ended = await send(sender, bench.jobs(tests, file, 1.0 / CROWD))
    completed = await bench.when_completed(tests)
    waits = [done - end for done, end in zip(completed, ended, strict=True)]
    print(
        f"{CROWD} tests in {max(ended) - min(ended):.2f} s: all completed"
        f" {max(completed) - min(ended):.2f} s after the first mail, each within {max(waits):.2f} s"
        f" (target {CROWD_DEADLINE:.0f})"
    )


async def measure_intake(bench: Bench, sender: Popen, file: Path) -> None:
    """Measure inbox mail, alone and while a crowd of tests is analysed."""
    alone, beside, lasted = [], [], []
    for _ in range(INTAKE_ROUNDS):
        alone.append(await take_in(bench))
        tests = await bench.generate(CROWD)
        sending = Deferred.fromCoroutine(send(sender, bench.jobs(tests, file, 1.0 / CROWD)))
        beside.append(await take_in(bench))
        ended = await sending
        lasted.append(max(await bench.when_completed(tests)) - min(ended))
    rates = statistics.median(alone), statistics.median(beside)
    print(
        f"inbox mail: {rates[0]:.0f}/s alone, {rates[1]:.0f}/s beside {CROWD} tests:"
        f" {rates[1] / rates[0]:.2f} x (at least {INTAKE_SHARE}); the tests were completed"
        f" {statistics.median(lasted):.2f} s after the first of their mails"
    )


async def take_in(bench: Bench) -> float:
    """Send mail to an inbox over ten kept connections and return messages per second."""
    recipient = f"{bench.account.mailbox_name}+load@{bench.assembly.runtime.config.inbox.domain}"
    load = ["-d", "-s", "10", "-l", "5000", "-m", str(INTAKE_MESSAGES)]
    path = ["-f", "load@example.com", "-t", recipient, f"inet:{HOST}:{bench.port}"]
    began = time.monotonic()
    await deferToThread(subprocess.run, ["/usr/sbin/smtp-source", *load, *path], check=True)
    return INTAKE_MESSAGES / (time.monotonic() - began)


async def measure_stall(bench: Bench, sender: Popen, large: Path) -> None:
    """Measure the longest time that a large signed mail blocks the reactor."""
    idle = Ticker(bench.reactor)
    await deferLater(bench.reactor, 2.0)
    idle.stop()
    tests = await bench.generate(1)
    ticker = Ticker(bench.reactor)
    await send(sender, bench.jobs(tests, large, 0))
    await bench.when_completed(tests)
    ticker.stop()
    print(
        f"a signed mail of {LARGE >> 20} MiB: a ticker of {TICK * 1e3:.0f} ms is late by"
        f" {ticker.worst * 1e3:.1f} ms at worst (target {MAX_STALL * 1e3:.0f};"
        f" idle {idle.worst * 1e3:.1f}); the reactor computes for"
        f" {ticker.worst_cpu * 1e3:.1f} ms at a time at most"
    )


class Ticker:
    """Records the largest delay of its ticks, and the most CPU time between two ticks.

    The CPU time shows the daemon's own share of the delay on a busy machine.
    """

    def __init__(self, clock: IReactorTime) -> None:
        self.worst = self.worst_cpu = 0.0
        self._used = time.thread_time()
        self._expected = time.monotonic() + TICK
        self._loop = LoopingCall(self._tick)
        self._loop.clock = clock
        self._loop.start(TICK, now=False)

    def stop(self) -> None:
        """Stop the ticker."""
        self._loop.stop()

    def _tick(self) -> None:
        now, used = time.monotonic(), time.thread_time()
        self.worst = max(self.worst, now - self._expected)
        self.worst_cpu = max(self.worst_cpu, used - self._used)
        self._expected, self._used = now + TICK, used


async def measure(reactor: Any, folder: Path, server: Popen, dns_port: int) -> None:
    """Run all measurements."""
    small, large = folder / "small.eml", folder / "large.eml"
    small.write_bytes(RSA.sign(MAIL))
    line = b"0123456789 abcdefghijklmnopqrstuvwxyz 0123456789 abcdefghij\r\n"
    large.write_bytes(RSA.sign(MAIL + line * (LARGE // len(line))))
    bench = Bench(reactor, folder, dns_port)
    await bench.start()
    command = [sys.executable, "-m", "benchmarks.deliverability_sender", str(bench.port)]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, text=True, stdin=pipe, stdout=pipe) as sender:
        assert sender.stdin is not None
        assert sender.stdout is not None
        await deferToThread(sender.stdout.readline)
        try:
            await measure_one(bench, sender, server, small)
            await measure_crowd(bench, sender, small)
            await measure_stall(bench, sender, large)
            await measure_intake(bench, sender, small)
        finally:
            sender.stdin.close()
            await bench.service.stopService()


def _zone() -> MemoryZone:
    """Return a zone with the perfect sender and the test entries of working blocklists."""
    zone = zone_of_lists()
    for owner, node in PERFECT.items():
        for rdtype, texts in node.items():
            zone.publish(owner, rdtype, *texts)
    return zone


def main() -> None:
    """Start the name server and measure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    if parser.parse_args().serve:
        serve(_zone())
        return
    command = [sys.executable, "-m", "benchmarks.deliverability_report", "--serve"]
    pipe = subprocess.PIPE
    with (
        tempfile.TemporaryDirectory(prefix="mailcheck-bench-") as folder,
        subprocess.Popen(command, text=True, stdin=pipe, stdout=pipe) as server,
    ):
        assert server.stdin is not None
        assert server.stdout is not None
        port = int(server.stdout.readline())
        try:
            react(
                lambda reactor: Deferred.fromCoroutine(measure(reactor, Path(folder), server, port))
            )
        finally:
            server.stdin.close()


if __name__ == "__main__":
    main()

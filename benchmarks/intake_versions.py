"""Measure the CPU time of a mail: this version beside an earlier one, interleaved in one run.

Run it with ``python -m benchmarks.intake_versions CHECKOUT`` (needs Postfix's smtp-source: Debian's
package postfix). CHECKOUT is a folder with an earlier version and its ``.venv``
(``git worktree add CHECKOUT f3d0b05``, then ``make .venv/installed`` there). Both daemons run with
their default settings and receive the same load in turns: ten kept connections of smtp-source with
mails of 5 KB. The other daemon is stopped meanwhile. The measured CPU time is that of the receiver
(the daemon's main process) and of its writer, without the process that parses mails and without the
client. The ratio is the median over pairs of neighbouring rounds.

Target: at most 0.75 x of version f3d0b05.
"""

import argparse
import os
import signal
import statistics
import tempfile
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from benchmarks.measuring import own_cpu_seconds
from benchmarks.smtp_intake import send
from tests.servers.daemon import Answer, Daemon, running_daemon

AT_MOST = 0.75
WARM_UP = 1_000

NOT_KNOWN_THEN = ("MAILCHECK_OPS_LISTEN",)
"""Options that f3d0b05 does not know and therefore rejects."""


class Version:
    """A daemon under load, and the CPU seconds of its receiver and writer in each round."""

    def __init__(self, name: str, daemon: Daemon) -> None:
        self.name = name
        self.rounds: list[tuple[float, float]] = []
        self._daemon = daemon
        self._expected = 0

    def take(self, count: int) -> None:
        """Run one round, and check that all mails are stored."""
        self.wake()
        pids = self._daemon.process.pid, self._daemon.child("writer")
        before = [own_cpu_seconds(pid) for pid in pids]
        send(self._daemon.smtp_port, self._daemon.address("load"), count)
        receiver, writer = (
            (own_cpu_seconds(pid) - began) / count * 1e6
            for pid, began in zip(pids, before, strict=True)
        )
        self.rounds.append((receiver, writer))
        self._expected += count
        if self._daemon.total() != self._expected:
            raise SystemExit(f"{self.name}: some acknowledged mails are not stored")
        self.hold()

    def wake(self) -> None:
        """Continue the stopped daemon."""
        os.killpg(self._daemon.process.pid, signal.SIGCONT)

    def hold(self) -> None:
        """Stop the daemon, which otherwise parses mails in the background."""
        os.killpg(self._daemon.process.pid, signal.SIGSTOP)


class EarlierDaemon(Daemon):
    """A daemon of an earlier version, which lacks some options and fields of today."""

    @property
    def environment(self) -> dict[str, str]:
        """The environment without the options that it does not know."""
        known = super().environment
        return {name: value for name, value in known.items() if name not in NOT_KNOWN_THEN}

    def request(self, method: str, path: str, headers: Mapping[str, str] | None = None) -> Answer:
        """Return a response without checking it against the contract."""
        return self.ask(method, path, headers).unchecked_answer()


def measure(earlier: Path, rounds: int, count: int) -> tuple[Version, Version]:
    """Run both versions in turns and return them, the earlier one last."""
    with ExitStack() as running:
        folder = Path(running.enter_context(tempfile.TemporaryDirectory(prefix="mailcheck-bench-")))
        limits: dict[str, Any] = {"inbox_max_messages": 10**9, "inbox_max_bytes": 10**15}
        now = running.enter_context(running_daemon(folder / "now", **limits))
        then = EarlierDaemon(folder / "then", str(earlier / ".venv/bin/twistd"), **limits)
        running.callback(then.kill)
        then.start()
        versions = Version("now", now), Version("then", then)
        for version in versions:
            running.callback(version.wake)
            version.take(WARM_UP)
            version.rounds.clear()
        for number in range(rounds):
            # Each version runs first in every other pair, so that the order has no effect.
            for version in versions if number % 2 else reversed(versions):
                version.take(count)
            print(
                f"pair {number + 1}:  "
                + "   ".join(f"{one.name} {sum(one.rounds[-1]):.0f} us" for one in versions),
                flush=True,
            )
        return versions


def main() -> None:
    """Measure, and print the results."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("checkout", type=Path, help="folder of the earlier version")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--messages", type=int, default=4_000, help="number in each round")
    options = parser.parse_args()
    now, then = measure(options.checkout.resolve(), options.rounds, options.messages)
    for version in (now, then):
        receiver, writer = (statistics.median(part) for part in zip(*version.rounds, strict=True))
        print(f"{version.name:5} receiver {receiver:4.0f} us  writer {writer:4.0f} us a mail")
    ratio = statistics.median(
        sum(ours) / sum(theirs) for ours, theirs in zip(now.rounds, then.rounds, strict=True)
    )
    print(f"ratio: {ratio:.2f} x  (at most {AT_MOST})")


if __name__ == "__main__":
    main()

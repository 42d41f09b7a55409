"""Simulate daemons, group commits and notifications as queues, to find the limit of a cluster.

Run it with ``.venv/bin/python -m benchmarks.cluster_simulation``. The times of a mail, a commit and
a notification have the magnitude that `cluster_wake_up` measures, and the queues are simulated
mail by mail. It checks the reasoning of the documents about scaling and measures nothing itself.
"""

import random
from dataclasses import dataclass
from heapq import heappop, heappush

from benchmarks.measuring import percentile

SECONDS = 20.0
RATE = 1_000.0  # mails per second of all senders together

RECEIVE = 0.45e-3  # seconds of a receiving process for a mail of 5 KB
HEAR = 0.06e-3  # seconds to read the notification of another daemon's group
TELL = 0.05e-3  # seconds to publish a group
COMMIT = 4e-3  # seconds of a group commit for round trips and the disk
STORE = 0.25e-3  # additional seconds for each mail of a group
PUBLISHED = 0.3e-3  # seconds until the other daemons have the notification
LOOK = 1.5e-3  # seconds of a notified wait to query the store


@dataclass(frozen=True, slots=True)
class Outcome:
    """Latencies in milliseconds, and the load of the busiest receiving process."""

    accepted_p50: float
    accepted_p99: float
    woken_p99: float
    busy: float
    group: float


class Daemon:
    """A receiving process and a writer, which each do one task at a time."""

    def __init__(self) -> None:
        self.free_at = self.writer_free_at = self.worked = 0.0
        self.waiting: list[float] = []

    def work(self, at: float, seconds: float) -> float:
        """Run a task of so many seconds as soon as possible and return its end."""
        self.free_at = max(at, self.free_at) + seconds
        self.worked += seconds
        return self.free_at


def simulate(count: int, rate: float, chance: random.Random) -> Outcome:
    """Send mails at random times to random daemons, each awaited at another daemon."""
    daemons = [Daemon() for _ in range(count)]
    events: list[tuple[float, int, int]] = []  # time, kind, number of the daemon
    at = 0.0
    while (at := at + chance.expovariate(rate)) < SECONDS:
        heappush(events, (at, 0, chance.randrange(count)))
    accepted, woken, groups = [], [], []
    while events:
        at, kind, number = heappop(events)
        daemon = daemons[number]
        if kind == 0:  # a mail arrives
            ready = daemon.work(at, RECEIVE)
            daemon.waiting.append(at)
            heappush(events, (max(ready, daemon.writer_free_at), 1, number))
        elif daemon.waiting and at >= daemon.writer_free_at:  # the writer takes the whole queue
            group, daemon.waiting = daemon.waiting, []
            stored = at + COMMIT + STORE * len(group)
            daemon.writer_free_at = stored
            told = daemon.work(stored, TELL)
            heard = [other.work(told + PUBLISHED, HEAR) for other in daemons if other is not daemon]
            accepted += [stored - began for began in group]
            woken += [max(heard, default=told) + LOOK - stored for _ in group]
            groups.append(len(group))
            heappush(events, (stored, 1, number))
    return Outcome(
        percentile(accepted, 50) * 1e3,
        percentile(accepted, 99) * 1e3,
        percentile(woken, 99) * 1e3,
        max(daemon.worked for daemon in daemons) / SECONDS,
        sum(groups) / len(groups),
    )


def main() -> None:
    """Print a row for each number of daemons."""
    print(f"{RATE:g} mails a second\n")
    print("daemons  250 after: p50   p99   woken: p99   busiest process   mails a group")
    for count in (1, 2, 3, 4, 6, 8, 16):
        found = simulate(count, RATE, random.Random(count))
        print(
            f"{count:7}  {found.accepted_p50:12.1f} {found.accepted_p99:7.1f} ms"
            f" {found.woken_p99:6.1f} ms {found.busy:14.0%} {found.group:14.1f}"
        )


if __name__ == "__main__":
    main()

"""Measure thousands of event streams beside parked waits in the same daemon.

Run it with ``.venv/bin/python -m benchmarks.event_streams``. It opens 5,000 GET /inbox/events for
one tag in one daemon. While all of them are open, it measures:

* the memory of a stream, and the CPU time while only heartbeats are sent,
* the time from the end of DATA to the event at another stream with its own tag, and to the response
  of a parked wait, mail by mail,
* the time from the end of DATA of one mail to the last of 5,000 events,
* the rate of events, in order, for a client that resumes 10,000 mails later.

Targets: 25 KB each, and the p50 of a wait.
"""

import argparse
import re
import resource
import select
import socket
import statistics
import tempfile
import time
from pathlib import Path

from benchmarks.measuring import cpu_seconds, percentile, resident_bytes
from benchmarks.parked_waits import Mailcheck, wait_until_quiet
from benchmarks.waiting_clients import CROWD_TAG, PROBE_TAG, Probe
from tests.servers.daemon import API, HOST, running_daemon

IDLE = 15.0  # seconds: each stream gets one heartbeat
EVENT = b"event: message"
CURSOR = re.compile(rb"^id: c([0-9a-f]+)$", re.MULTILINE)
REST = 0.010  # seconds between mails


class Stream:
    """An open stream on a raw socket."""

    def __init__(self, port: int, request: bytes) -> None:
        self.socket = socket.create_connection((HOST, port))
        self.socket.sendall(request)

    def read_until(self, words: bytes) -> float:
        """Read until the words have arrived, and return the time."""
        said = b""
        while words not in said:
            data = self.socket.recv(65_536)
            if not data:
                raise SystemExit("a stream has ended")
            said += data
        return time.perf_counter()

    def cursors(self, count: int) -> list[int]:
        """Read ``count`` messages, and return the positions of the start and of each message."""
        found, rest = [], b""
        while True:
            *events, rest = (rest + self.socket.recv(1_048_576)).split(b"\n\n")
            for event in events:
                count -= EVENT in event
                found += [int(one, 16) for one in CURSOR.findall(event)]
            if found and count <= 0:
                return found


class EventStreams(Mailcheck):
    """The same daemon with requests for event streams."""

    def request(self, tag: str, cursor: str) -> bytes:
        """Return a GET /inbox/events request."""
        path = f"{API}/inbox/events?tag={tag}" + (f"&after={cursor}" if cursor else "")
        return f"GET {path} HTTP/1.1\r\nHost: {HOST}\r\nX-API-Key: {self._key}\r\n\r\n".encode()


def all_told(streams: list[Stream], sent: float) -> float:
    """Read until every stream has the event, and return the seconds since ``sent``."""
    poll = select.epoll()
    by_number = {one.socket.fileno(): one.socket for one in streams}
    for number in by_number:
        poll.register(number, select.EPOLLIN)
    said = dict.fromkeys(by_number, b"")
    while by_number:
        for number, _ in poll.poll():
            said[number] += by_number[number].recv(65_536)
            if EVENT in said[number]:
                poll.unregister(number)
                del by_number[number]
    return time.perf_counter() - sent


def shown(latencies: list[float]) -> str:
    """Return p50 and p99 in milliseconds as text."""
    p50, p99 = statistics.median(latencies) * 1e3, percentile(latencies, 99) * 1e3
    return f"p50 {p50:5.2f} ms   p99 {p99:5.2f} ms"


def measure(subject: EventStreams, waits: Mailcheck, size: int, mails: int) -> None:
    """Measure everything and print the results."""
    probe = Stream(subject.port, subject.request(PROBE_TAG, ""))
    probe.read_until(b"id: ")
    wait = Probe(waits)
    for _ in range(20):  # load and cache shared objects before memory is measured
        wait.measure()
        probe.read_until(EVENT)
    before = resident_bytes(subject.pid)
    streams = [Stream(subject.port, subject.request(CROWD_TAG, "")) for _ in range(size)]
    for one in streams:
        one.read_until(b"id: ")
    wait_until_quiet(subject.pid)
    each = (resident_bytes(subject.pid) - before) / size
    cpu = cpu_seconds(subject.pid)
    time.sleep(IDLE)
    idle = (cpu_seconds(subject.pid) - cpu) / IDLE
    told, answered = [], []
    for _ in range(mails):
        answered.append(wait.measure())
        probe.read_until(EVENT)
    for _ in range(mails):
        time.sleep(REST)
        sent = subject.notify(PROBE_TAG)
        told.append(probe.read_until(EVENT) - sent)
        subject.settle()
    sent = subject.notify(CROWD_TAG)
    seconds = all_told(streams, sent)
    print(f"{size} streams: {each / 1000:.1f} KB each, {idle * 1e3:.1f} ms CPU/s with heartbeats")
    print(f"event at one more stream:       {shown(told)}")
    print(f"response to one more wait:      {shown(answered)}")
    print(f"one mail at all streams: {seconds:.3f} s")


def measure_behind(subject: EventStreams, count: int) -> None:
    """Measure one stream that resumes from an old cursor."""
    start = Stream(subject.port, subject.request(PROBE_TAG, "")).cursors(0)[0]
    for _ in range(count):
        subject.notify(PROBE_TAG)
        subject.settle()
    began = time.perf_counter()
    cursors = Stream(subject.port, subject.request(PROBE_TAG, f"c{start:x}")).cursors(count)
    seconds = time.perf_counter() - began
    if cursors != sorted(cursors):
        raise SystemExit("events came out of order")
    print(
        f"{count} mails behind a stream: all told in {seconds:.1f} s, in order,"
        f" {count / seconds:.0f} a second"
    )


def main() -> None:
    """Measure, and print the results."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--streams", type=int, default=5_000)
    parser.add_argument("--mails", type=int, default=200)
    parser.add_argument("--behind", type=int, default=10_000)
    options = parser.parse_args()
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    with (
        tempfile.TemporaryDirectory(prefix="mailcheck-bench-") as folder,
        running_daemon(
            Path(folder),
            limits_waits_per_key=options.streams + 4,
            inbox_max_messages=1_000_000,
        ) as daemon,
    ):
        subject = EventStreams(daemon)
        measure(subject, Mailcheck(daemon), options.streams, options.mails)
        measure_behind(subject, options.behind)


if __name__ == "__main__":
    main()

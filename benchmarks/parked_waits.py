"""Measure the cost of thousands of parked waits, and how fast mail ends one or all of them.

Run it with ``python benchmarks/parked_waits.py`` (needs aiohttp). 5,000 GET /inbox/wait are parked
in one daemon, all for one tag. While all of them are parked, it measures:

* the memory of a parked wait, and CPU time while idle,
* the time from the end of DATA to the response of another wait with its own tag, mail by mail; the
  mail is on disk before,
* the time from the end of DATA of one mail to the last of 5,000 responses.

No other inbox has waits on the server, so the peer is what a developer would write instead: an
aiohttp handler that awaits a future, which a POST resolves. It stores no mail, asks for no key and
parses no message. The client is this process for both, and reads raw sockets.

Targets: at most 25 KB each, no CPU while idle, p50 at most 2.5 ms, p99 at most 12 ms, all waits end
within 1 s. ``mcp_throughput.py --lists 0 --waits 5000`` measures the same over MCP.
"""

import argparse
import resource
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from benchmarks.measuring import cpu_seconds, percentile, resident_bytes, wait_for_port
from benchmarks.waiting_clients import CROWD_TAG, Crowd, Probe, Subject
from tests.servers.daemon import API, HOST, Daemon, free_ports, running_daemon

WAIT = 60  # seconds; the maximum, and the whole run must be shorter
IDLE = 5.0  # seconds
QUIET = 0.5  # seconds without CPU time, after which all requests have been read
BYTES_EACH, P50, P99, ALL_WOKEN = 25_000, 2.5, 12.0, 1.0


class Mailcheck:
    """A real daemon, which gets mail over SMTP."""

    name = "mailcheck (durable)"

    def __init__(self, daemon: Daemon) -> None:
        self.pid = daemon.process.pid
        self.port = daemon.http_port
        self._key = daemon.key
        self._mailbox, _, self._domain = daemon.address().partition("@")
        self._smtp = socket.create_connection((HOST, daemon.smtp_port))
        self._smtp.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.settle()
        self._say("EHLO bench.example")

    def request(self, tag: str, cursor: str) -> bytes:
        """Return a GET /inbox/wait request."""
        after = f"&after={cursor}" if cursor else ""
        path = f"{API}/inbox/wait?tag={tag}&timeout={WAIT}{after}"
        return f"GET {path} HTTP/1.1\r\nHost: {HOST}\r\nX-API-Key: {self._key}\r\n\r\n".encode()

    def notify(self, tag: str) -> float:
        """Send a mail to the tag."""
        self._say("MAIL FROM:<shop@example.com>")
        self._say(f"RCPT TO:<{self._mailbox}+{tag}@{self._domain}>")
        self._say("DATA")
        text = "From: shop@example.com\r\nSubject: Welcome\r\n\r\nYour code is 482913\r\n.\r\n"
        self._smtp.sendall(text.encode())
        return time.perf_counter()

    def settle(self) -> None:
        """Read a reply, and end the benchmark if it is an error."""
        reply = self._smtp.recv(4096)
        if not reply.startswith((b"2", b"354")):
            raise SystemExit(f"the daemon answered {reply!r}")

    def _say(self, line: str) -> None:
        self._smtp.sendall(f"{line}\r\n".encode())
        self.settle()


class AiohttpLongPoll:
    """The peer, which is notified by POST."""

    name = "aiohttp (stores no mail)"

    def __init__(self, pid: int, port: int) -> None:
        self.pid, self.port = pid, port
        self._socket = socket.create_connection((HOST, port))
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def request(self, tag: str, cursor: str) -> bytes:
        """Return a GET request that is parked."""
        return f"GET /wait/{tag} HTTP/1.1\r\nHost: {HOST}\r\n\r\n".encode()

    def notify(self, tag: str) -> float:
        """Notify the peer."""
        post = f"POST /wait/{tag} HTTP/1.1\r\nHost: {HOST}\r\nContent-Length: 0\r\n\r\n"
        self._socket.sendall(post.encode())
        return time.perf_counter()

    def settle(self) -> None:
        """Read the response to the POST."""
        self._socket.recv(4096)


def serve_aiohttp(port: int) -> None:
    """Run the peer until it is killed."""
    import asyncio

    from aiohttp import web

    waiting: dict[str, list[asyncio.Future[None]]] = {}

    async def wait(request: web.Request) -> web.Response:
        future = asyncio.get_running_loop().create_future()
        waiting.setdefault(request.match_info["tag"], []).append(future)
        await asyncio.wait_for(future, WAIT)
        return web.json_response({"cursor": "", "text": "Your code is 482913"})

    async def notify(request: web.Request) -> web.Response:
        for future in waiting.pop(request.match_info["tag"], ()):
            future.set_result(None)
        return web.json_response({})

    app = web.Application()
    app.add_routes([web.get("/wait/{tag}", wait), web.post("/wait/{tag}", notify)])
    web.run_app(app, host=HOST, port=port, backlog=4_096, access_log=None, print=None)


@dataclass(frozen=True)
class Figures:
    """The results of one server."""

    name: str
    bytes_each: float
    idle: float
    latencies: list[float]
    all_woken: float

    def show(self) -> None:
        """Print the results."""
        p50, p99 = statistics.median(self.latencies) * 1e3, percentile(self.latencies, 99) * 1e3
        print(
            f"{self.name:24} {self.bytes_each / 1000:6.1f} KB each   idle {self.idle * 1e3:5.2f} ms"
            f" CPU/s   p50 {p50:5.2f} ms   p99 {p99:5.2f} ms   all woken {self.all_woken:5.3f} s"
        )


def measure(subject: Subject, size: int, mails: int) -> Figures:
    """Measure one server."""
    probe = Probe(subject)
    for _ in range(20):  # load and cache shared objects before memory is measured
        probe.measure()
    before = resident_bytes(subject.pid)
    crowd = Crowd(subject, size)
    try:
        wait_until_quiet(subject.pid)
        bytes_each = (resident_bytes(subject.pid) - before) / size
        cpu = cpu_seconds(subject.pid)
        time.sleep(IDLE)
        idle = (cpu_seconds(subject.pid) - cpu) / IDLE
        latencies = [probe.measure() for _ in range(mails)]
        crowd.require_parked()
        sent = subject.notify(CROWD_TAG)
        all_woken = crowd.read_all() - sent
    finally:
        crowd.close()
        probe.close()
    return Figures(subject.name, bytes_each, idle, latencies, all_woken)


def wait_until_quiet(pid: int) -> None:
    """Wait until a process is idle."""
    cpu = -1.0
    while cpu != (cpu := cpu_seconds(pid)):
        time.sleep(QUIET)


@contextmanager
def running_aiohttp() -> Iterator[AiohttpLongPoll]:
    """Run the peer until the context ends."""
    (port,) = free_ports(1)
    process = subprocess.Popen([sys.executable, __file__, "--serve-aiohttp", str(port)])
    try:
        wait_for_port(HOST, port)
        yield AiohttpLongPoll(process.pid, port)
    finally:
        process.kill()
        process.wait()


def main() -> None:
    """Measure, and print the results."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--waits", type=int, default=5_000)
    parser.add_argument("--mails", type=int, default=2_000)
    parser.add_argument("--serve-aiohttp", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    if options.serve_aiohttp:
        serve_aiohttp(options.serve_aiohttp)
        return
    with (
        tempfile.TemporaryDirectory(prefix="mailcheck-bench-") as folder,
        running_daemon(Path(folder), limits_waits_per_key=options.waits + 1) as daemon,
    ):
        ours = measure(Mailcheck(daemon), options.waits, options.mails)
    with running_aiohttp() as subject:
        theirs = measure(subject, options.waits, options.mails)
    print(f"{options.waits} parked waits, {options.mails} mails to one more")
    ours.show()
    theirs.show()
    print(
        f"targets: {BYTES_EACH / 1000:.0f} KB each, p50 {P50} ms, p99 {P99} ms, "
        f"all woken within {ALL_WOKEN} s"
    )
    print(
        f"over aiohttp: memory {ours.bytes_each / theirs.bytes_each:.2f} x, "
        f"p50 {statistics.median(ours.latencies) / statistics.median(theirs.latencies):.2f} x, "
        f"all woken {ours.all_woken / theirs.all_woken:.2f} x"
    )


if __name__ == "__main__":
    main()

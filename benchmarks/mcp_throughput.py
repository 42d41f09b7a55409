"""Measure how fast agents are served: lists of tools, parked waits, and the delivery of a mail.

Run it with ``.venv/bin/python benchmarks/mcp_throughput.py`` after ``bash
scripts/install-mcp-clients``. A real daemon runs beside the streamable HTTP server of the official
Python SDK (uvicorn) with the same list of tools and its fastest settings. The SDK's server asks for
no key, while the daemon looks up the key of every request. Rounds are interleaved, the figures are
medians, and the client is this process for both.

* tools/list on sixteen kept connections, in both protocol generations.
* 1,000 wait_for_message calls parked in the daemon: the memory of each, and CPU time while idle
  (each gets a comment every 15 s).
* With all of them parked: the time from the end of DATA to the response of another wait, over MCP
  and over REST in turns. The mail is on disk before.
* The time from the end of DATA of one mail to the last of 1,000 responses.

Targets: tools/list at least 2 x the SDK's server; waits end as fast as over REST.
"""

import argparse
import contextlib
import json
import resource
import select
import socket
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.measuring import cpu_seconds, percentile, resident_bytes, wait_for_port
from benchmarks.parked_waits import Mailcheck, wait_until_quiet
from benchmarks.waiting_clients import CROWD_TAG, PROBE_TAG, REST, Connection
from tests.servers.daemon import HOST, Daemon, free_ports, running_daemon

CHECKOUT = Path(__file__).parents[1]
SDK_PYTHON = CHECKOUT / ".venv-mcp" / "python-sdk-2" / "bin" / "python"

CONNECTIONS = 16
ROUNDS = 5
WAIT = 60  # seconds
IDLE = 31.0  # seconds: two comments for each parked wait
AT_LEAST = 2.0

META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
}
EXTRA = {
    "handshake": "MCP-Protocol-Version: 2025-11-25\r\n",
    "stateless": "MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/list\r\n",
}


def post(params: object, method: str, headers: str = "", key: str = "") -> bytes:
    """Return a request of the protocol."""
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
    authorization = f"Authorization: Bearer {key}\r\n" if key else ""
    return (
        f"POST /mcp HTTP/1.1\r\nHost: {HOST}:80\r\nContent-Type: application/json\r\n"
        f"Accept: application/json, text/event-stream\r\n{authorization}{headers}"
        f"Content-Length: {len(body)}\r\n\r\n{body}"
    ).encode()


def list_request(era: str, key: str = "") -> bytes:
    """Return a tools/list request."""
    return post({"_meta": META} if era == "stateless" else {}, "tools/list", EXTRA[era], key)


def wait_request(tag: str, key: str, cursor: str = "") -> bytes:
    """Return a call of wait_for_message."""
    arguments = {"tag": tag, "timeout": WAIT, **({"after": cursor} if cursor else {})}
    params = {"name": "wait_for_message", "arguments": arguments}
    return post(params, "tools/call", EXTRA["handshake"], key)


class Answer:
    """A response that may be incomplete: JSON of known length, or a stream of events."""

    def __init__(self) -> None:
        self._data = b""

    def feed(self, data: bytes) -> bool:
        """Add data, and return whether the response is complete."""
        if not data:
            raise SystemExit(f"the server closed the connection after {self._data[:500]!r}")
        self._data += data
        head, found, body = self._data.partition(b"\r\n\r\n")
        if not found:
            return False
        length = head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0]
        return len(body) >= int(length) if length else body.endswith(b"0\r\n\r\n")

    def require_result(self) -> bytes:
        """Return the response, which must contain a result."""
        if not (self._data.startswith(b"HTTP/1.1 200") and b'"result"' in self._data):
            raise SystemExit(f"not a result: {self._data[:500]!r}")
        return self._data


@dataclass
class Lister:
    """A server that lists its tools, with its figures for each round."""

    name: str
    pid: int
    port: int
    request: bytes
    rates: list[float] = field(default_factory=list)
    microseconds: list[float] = field(default_factory=list)

    def take(self, count: int) -> None:
        """Run one round of ``count`` requests."""
        cpu, began = cpu_seconds(self.pid), time.perf_counter()
        self._load(count)
        self.rates.append(count / (time.perf_counter() - began))
        self.microseconds.append((cpu_seconds(self.pid) - cpu) / count * 1e6)

    def _load(self, count: int) -> None:
        poll = select.epoll()
        sockets = [socket.create_connection((HOST, self.port)) for _ in range(CONNECTIONS)]
        answers = {one.fileno(): (one, Answer()) for one in sockets}
        asked = done = 0
        for one in sockets:
            one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            one.sendall(self.request)
            asked += 1
            poll.register(one, select.EPOLLIN)
        while done < count:
            for number, _ in poll.poll():
                one, answer = answers[number]
                if not answer.feed(one.recv(262_144)):
                    continue
                answer.require_result()
                done += 1
                if asked < count:
                    answers[number] = (one, Answer())
                    one.sendall(self.request)
                    asked += 1
        poll.close()
        for one in sockets:
            one.close()

    @property
    def rate(self) -> float:
        """Median of all rounds in requests per second."""
        return statistics.median(self.rates)


@contextlib.contextmanager
def running_sdk(tools: object) -> Iterator[subprocess.Popen[bytes]]:
    """Run the peer until the context ends; its port is the last argument but one."""
    if not SDK_PYTHON.exists():
        raise SystemExit("the SDK is not installed: bash scripts/install-mcp-clients")
    (port,) = free_ports(1)
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump(tools, file)
        file.flush()
        server = Path(__file__).with_name("mcp_sdk_server.py")
        process = subprocess.Popen([str(SDK_PYTHON), str(server), str(port), file.name])
        try:
            wait_for_port(HOST, port)
            yield process
        finally:
            process.kill()
            process.wait()


def compare_lists(daemon: Daemon, count: int) -> None:
    """Measure tools/list beside the SDK's server."""
    connection = Connection(daemon.http_port)
    connection.send(list_request("handshake", daemon.key))
    tools = json.loads(connection.read()[0].body())["result"]["tools"]
    connection.close()
    with running_sdk(tools) as sdk:
        assert isinstance(sdk.args, list)
        for era in EXTRA:
            ours = Lister(
                "mailcheck", daemon.process.pid, daemon.http_port, list_request(era, daemon.key)
            )
            theirs = Lister("Python SDK", sdk.pid, int(sdk.args[2]), list_request(era))
            for _ in range(ROUNDS):
                for lister in (ours, theirs):
                    lister.take(count)
            for lister in (ours, theirs):
                cpu = statistics.median(lister.microseconds)
                print(f"{era:10} {lister.name:12} {lister.rate:7.0f} /s   CPU {cpu:6.0f} us each")
            print(f"{era:10} ratio {ours.rate / theirs.rate:.1f} x (target {AT_LEAST} x)")


def measure_waits(daemon: Daemon, size: int, mails: int) -> None:
    """Park waits, and measure their cost and how fast mail ends them."""
    mail = Mailcheck(daemon)
    probes = {
        "MCP": _probe(mail, daemon, lambda cursor: wait_request(PROBE_TAG, daemon.key, cursor)),
        "REST": _probe(mail, daemon, lambda cursor: mail.request(PROBE_TAG, cursor)),
    }
    for probe in probes.values():
        for _ in range(20):
            probe()
    before = resident_bytes(mail.pid)
    crowd = [socket.create_connection((HOST, mail.port)) for _ in range(size)]
    for one in crowd:
        one.sendall(wait_request(CROWD_TAG, daemon.key))
    wait_until_quiet(mail.pid)
    memory = (resident_bytes(mail.pid) - before) / size
    latencies: dict[str, list[float]] = {name: [] for name in probes}
    for _ in range(mails):
        for name, probe in probes.items():
            latencies[name].append(probe() * 1e3)
    cpu = cpu_seconds(mail.pid)
    time.sleep(IDLE)
    idle = (cpu_seconds(mail.pid) - cpu) / IDLE * 1e3
    print(f"{size} waits parked   {memory / 1000:5.1f} KB each   idle {idle:.1f} ms CPU/s")
    for name, taken in latencies.items():
        p50, p99 = statistics.median(taken), percentile(taken, 99)
        print(f"DATA to response, {name:5} p50 {p50:5.2f} ms   p99 {p99:5.2f} ms")
    sent = mail.notify(CROWD_TAG)
    print(f"all {size} woken by one mail within {_read_all(crowd) - sent:.3f} s")


def _probe(mail: Mailcheck, daemon: Daemon, request: Callable[[str], bytes]) -> Callable[[], float]:
    connection = Connection(mail.port)

    def probe() -> float:
        # Responses to the other probe are read without waiting.
        connection.send(request(daemon.cursor()))
        time.sleep(REST)
        sent = mail.notify(PROBE_TAG)
        response, ended = connection.read()
        mail.settle()
        response.body()
        return ended - sent

    return probe


def _read_all(crowd: list[socket.socket]) -> float:
    poll = select.epoll()
    answers = {one.fileno(): (one, Answer()) for one in crowd}
    for one in crowd:
        poll.register(one, select.EPOLLIN)
    left = len(crowd)
    while left:
        for number, _ in poll.poll():
            one, answer = answers[number]
            if answer.feed(one.recv(262_144)):
                poll.unregister(number)
                left -= 1
    ended = time.perf_counter()
    for one, answer in answers.values():
        answer.require_result()
        one.close()
    return ended


def main() -> None:
    """Measure, and print the results."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--lists", type=int, default=2_000, help="requests in a round; 0: skip")
    parser.add_argument("--waits", type=int, default=1_000)
    parser.add_argument("--mails", type=int, default=100, help="number for each of the two waits")
    options = parser.parse_args()
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    with (
        tempfile.TemporaryDirectory(prefix="mailcheck-bench-") as folder,
        running_daemon(Path(folder), limits_waits_per_key=options.waits + 2) as daemon,
    ):
        if options.lists:
            compare_lists(daemon, options.lists)
        measure_waits(daemon, options.waits, options.mails)


if __name__ == "__main__":
    main()

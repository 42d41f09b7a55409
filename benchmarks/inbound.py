"""Measure how much later than a bare POST a mail reaches a local application over a route.

Run it with ``.venv/bin/python -m benchmarks.inbound``. The application is a process of its own that
notes when a request has arrived as a whole. In turns, one after the other:

* a mail of 5 KB is posted to ``POST /inbound/routes/{id}/messages``, and the time from the
  beginning of that request to the arrival of the provider's request is taken,
* the same request body is posted to the application directly, over a new connection, as providers
  do.

Target: the difference of the medians is at most 10 ms, with an fsync for the mail included.
"""

import argparse
import asyncio
import base64
import json
import multiprocessing
import statistics
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from multiprocessing.connection import Connection
from pathlib import Path

from benchmarks.measuring import cpu_seconds, fsync_milliseconds, percentile
from tests.servers.daemon import API, HOST, Daemon, running_daemon

SIZE = 5_000
ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
MAIL = (
    b"From: Ana <ana@customer.example>\r\nTo: support@app.example\r\nSubject: Ticket\r\n"
    b"Message-ID: <1@customer.example>\r\n\r\n" + b"It works now, thank you.\r\n" * (SIZE // 26)
)


def _serve(arrivals: Connection) -> None:
    """Run the application: it tells the time of each request, and its body."""

    async def take(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
        length = int(head.partition("content-length: ")[2].partition("\r\n")[0])
        body = await reader.readexactly(length)
        arrivals.send((time.monotonic(), body))
        writer.write(ANSWER)
        await writer.drain()
        writer.close()

    async def run() -> None:
        server = await asyncio.start_server(take, HOST, 0)
        arrivals.send(server.sockets[0].getsockname()[1])
        await server.serve_forever()

    asyncio.run(run())


@contextmanager
def running_application() -> Iterator[tuple[Connection, int]]:
    """Run the application in a process of its own."""
    ours, theirs = multiprocessing.Pipe()
    process = multiprocessing.Process(target=_serve, args=(theirs,), daemon=True)
    process.start()
    try:
        yield ours, ours.recv()
    finally:
        process.kill()
        process.join()


def post_bare(arrivals: Connection, port: int, body: bytes) -> float:
    """Post a body to the application, and return the milliseconds until it has arrived."""
    began = time.monotonic()
    connection = HTTPConnection(HOST, port, timeout=60)
    connection.request("POST", "/in", body, {"Content-Type": "application/json"})
    connection.getresponse().read()
    connection.close()
    arrived, _ = arrivals.recv()
    return float(arrived - began) * 1e3


def post_mail(
    arrivals: Connection, daemon: Daemon, path: str, letter: bytes
) -> tuple[float, bytes]:
    """Send a mail, and return the milliseconds until it has arrived, and the body."""
    began = time.monotonic()
    connection = HTTPConnection(HOST, daemon.http_port, timeout=60)
    headers = {"X-API-Key": daemon.key, "Content-Type": "application/json"}
    connection.request("POST", API + path, letter, headers)
    answer = connection.getresponse().read()
    connection.close()
    if b"deliveries" not in answer:
        raise SystemExit(answer.decode())
    arrived, body = arrivals.recv()
    return float(arrived - began) * 1e3, body


def main() -> None:
    """Measure, and print the results."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--mails", type=int, default=200)
    parser.add_argument("--format", default="postmark")
    options = parser.parse_args()
    with (
        tempfile.TemporaryDirectory(prefix="mailcheck-bench-") as folder,
        running_daemon(Path(folder), webhooks_allow=["developer=127.0.0.0/8"]) as daemon,
        running_application() as (arrivals, port),
    ):
        url = f"http://{HOST}:{port}/in"
        route = {"to": "*", "format": options.format, "url": url}
        made = daemon.post("/inbound/routes", json.dumps(route).encode())
        path = f"/inbound/routes/{made.json['id']}/messages"
        letter = json.dumps({"raw": base64.b64encode(MAIL).decode()}).encode()
        _, body = post_mail(arrivals, daemon, path, letter)
        for _ in range(20):
            post_mail(arrivals, daemon, path, letter)
        bare, routed = [], []
        before = cpu_seconds(daemon.process.pid)
        for _ in range(options.mails):
            bare.append(post_bare(arrivals, port, body))
            routed.append(post_mail(arrivals, daemon, path, letter)[0])
        used = (cpu_seconds(daemon.process.pid) - before) / options.mails * 1e3
        fsync = fsync_milliseconds(Path(folder))
    first, second = statistics.median(bare), statistics.median(routed)
    print(
        f"{options.mails} mails of {len(MAIL)} octets, {options.format}: p50 {second:.1f} ms "
        f"(p99 {percentile(routed, 99):.1f}), bare POST p50 {first:.1f} ms "
        f"(p99 {percentile(bare, 99):.1f})"
    )
    print(
        f"later by {second - first:.1f} ms (p50), {second / first:.1f} x; {used:.1f} ms CPU of all "
        f"processes of the daemon a mail; fsync {fsync:.1f} ms"
    )


if __name__ == "__main__":
    main()

"""Measure deliveries to webhooks, beside the same mail without any webhook.

Run it with ``.venv/bin/python -m benchmarks.webhooks``. A daemon with five accounts of ten webhooks
each sends to one local receiver, a process of its own that checks every signature. It measures:

* mails received per second without a webhook, and with ten webhooks whose filters do not match,
* deliveries per second over all 50 webhooks, where ten of them get each message of an inbox,
* the rate, in order, of one webhook that is 10,000 messages behind.

Targets: 500 deliveries a second over 50 webhooks; mail is as fast as without a webhook.
"""

import argparse
import asyncio
import json
import multiprocessing
import smtplib
import statistics
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from standardwebhooks import Webhook

from benchmarks.measuring import own_cpu_seconds
from tests.servers.daemon import API, HOST, Daemon, running_daemon

ACCOUNTS, OF_EACH = 5, 10
AT_ONCE = 100  # recipients of a mail
ROUNDS = 3
PATIENCE = 300.0  # seconds
ANSWER = b"HTTP/1.1 204 No Content\r\nContent-Length: 0\r\n\r\n"


class Receiver:
    """Counts requests, checks signatures, and reports when a number of requests has arrived."""

    def __init__(self) -> None:
        self.secrets: dict[str, Webhook] = {}
        self.count = 0
        self.forged = 0
        self.out_of_order = 0
        self._last: dict[str, int] = {}

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Receive requests on one connection."""
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
                fields = dict(line.split(": ", 1) for line in head[1:] if line)
                named = {name.lower(): value for name, value in fields.items()}
                body = await reader.readexactly(int(named["content-length"]))
                path = head[0].split(" ")[1]
                while path not in self.secrets:  # the secret is registered a moment later
                    await asyncio.sleep(0.005)
                self.take(path, named, body)
                writer.write(ANSWER)
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    def take(self, path: str, fields: dict[str, str], body: bytes) -> None:
        """Check one request."""
        try:
            message = self.secrets[path].verify(body, fields)
        except Exception:  # any error means that the signature is not valid
            self.forged += 1
            return
        position = int(message["cursor"][1:], 16)
        self.out_of_order += position <= self._last.get(path, 0)
        self._last[path] = position
        self.count += 1


def _receive(parent: Connection) -> None:
    receiver = Receiver()

    async def run() -> None:
        server = await asyncio.start_server(receiver.serve, HOST, 0, backlog=1_000)
        parent.send(server.sockets[0].getsockname()[1])
        while True:
            await asyncio.sleep(0.02)
            while parent.poll():
                asked: Any = parent.recv()
                if asked is None:
                    parent.send((receiver.count, receiver.forged, receiver.out_of_order))
                else:
                    receiver.secrets |= {path: Webhook(one) for path, one in asked.items()}

    asyncio.run(run())


class Subject:
    """The daemon, its accounts and the receiver of their webhooks."""

    def __init__(self, daemon: Daemon, receiver: Connection, port: int) -> None:
        self.daemon = daemon
        self._receiver = receiver
        self._port = port

    def ask(self, method: str, path: str, key: str, body: Any = None) -> Any:
        """Send a request to the API."""
        connection = HTTPConnection(HOST, self.daemon.http_port, timeout=60)
        data = None if body is None else json.dumps(body).encode()
        connection.request(method, API + path, body=data, headers={"X-API-Key": key})
        response = connection.getresponse()
        answer = json.loads(response.read())
        connection.close()
        if response.status != 200:
            raise SystemExit(f"{method} {path}: {answer}")
        return answer

    def create(self, key: str, path: str, **filters: Any) -> str:
        """Create a webhook, and return its id."""
        url = f"http://{HOST}:{self._port}{path}"
        made = self.ask("POST", "/inbox/webhooks", key, {"url": url, **filters})
        self._receiver.send({path: made["secret"]})
        webhook: str = made["id"]
        return webhook

    def received(self) -> int:
        """Return how many requests arrived, all of them signed and in order."""
        self._receiver.send(None)
        count, forged, out_of_order = self._receiver.recv()
        if forged or out_of_order:
            raise SystemExit(f"{forged} requests were not signed, {out_of_order} out of order")
        return int(count)

    def fill(self, address: str, count: int, at_once: int = AT_ONCE) -> float:
        """Send messages, each with a tag of its own, and return the seconds that it took."""
        mailbox, _, domain = address.partition("@")
        began = time.perf_counter()
        with smtplib.SMTP(HOST, self.daemon.smtp_port, timeout=60) as smtp:
            for first in range(0, count, at_once):
                to = [
                    f"{mailbox}+t{number}@{domain}"
                    for number in range(first, min(first + at_once, count))
                ]
                smtp.sendmail("shop@example.com", to, "Subject: s\r\n\r\nYour code is 482913\r\n")
        return time.perf_counter() - began

    def send_each(self, address: str, count: int) -> float:
        """Send mails one after another, and return the rate per second."""
        began = time.perf_counter()
        with smtplib.SMTP(HOST, self.daemon.smtp_port, timeout=60) as smtp:
            for _ in range(count):
                smtp.sendmail("shop@example.com", [address], "Subject: s\r\n\r\nhi\r\n")
        return count / (time.perf_counter() - began)

    def seconds_to(self, count: int) -> float:
        """Wait until so many requests have arrived, and return the seconds that it took."""
        began = time.perf_counter()
        while self.received() < count:
            if time.perf_counter() - began > PATIENCE:
                raise SystemExit(f"{self.received()} of {count} requests arrived")
            time.sleep(0.05)
        return time.perf_counter() - began


def measure_intake(subject: Subject, key: str, mails: int) -> None:
    """Compare received mails with and without webhooks that do not match, in turns."""
    address = subject.ask("GET", "/inbox/address", key)["address"]
    without, beside = [], []
    subject.send_each(address, mails)
    for _ in range(ROUNDS):
        without.append(subject.send_each(address, mails))
        made = [subject.create(key, f"/idle/{number}", tag="none") for number in range(OF_EACH)]
        beside.append(subject.send_each(address, mails))
        for one in made:
            subject.ask("DELETE", f"/inbox/webhooks/{one}", key)
    before, after = statistics.median(without), statistics.median(beside)
    print(
        f"mails taken in, one after the other: {before:.0f} a second without a webhook,"
        f" {after:.0f} beside ten that want others: {after / before:.2f} of it"
    )


def measure_many(subject: Subject, keys: list[str], messages: int) -> None:
    """Measure deliveries over all webhooks."""
    addresses = [subject.ask("GET", "/inbox/address", key)["address"] for key in keys]
    cursors = [subject.ask("GET", "/inbox/address", key)["cursor"] for key in keys]
    for address in addresses:
        subject.fill(address, messages)
    before, cpu = subject.received(), own_cpu_seconds(subject.daemon.process.pid)
    began = time.perf_counter()
    made = [
        (key, subject.create(key, f"/{account}/{number}", after=cursor))
        for account, (key, cursor) in enumerate(zip(keys, cursors, strict=True))
        for number in range(OF_EACH)
    ]
    total = messages * len(made)
    subject.seconds_to(before + total)
    seconds = time.perf_counter() - began
    used = own_cpu_seconds(subject.daemon.process.pid) - cpu
    print(
        f"{total} deliveries over {len(made)} webhooks: {total / seconds:.0f} a second, "
        f"{used / total * 1e3:.2f} ms CPU of the main process each"
    )
    for key, one in made:
        subject.ask("DELETE", f"/inbox/webhooks/{one}", key)


def measure_behind(subject: Subject, key: str, behind: int) -> None:
    """Measure one webhook that is far behind."""
    inbox = subject.ask("GET", "/inbox/address", key)
    subject.fill(inbox["address"], behind, at_once=1)
    before, cpu = subject.received(), own_cpu_seconds(subject.daemon.process.pid)
    made = subject.create(key, "/behind", after=inbox["cursor"])
    seconds = subject.seconds_to(before + behind)
    used = own_cpu_seconds(subject.daemon.process.pid) - cpu
    print(
        f"{behind} mails behind one receiver: all told in {seconds:.1f} s, in order, "
        f"{behind / seconds:.0f} a second, {used / behind * 1e3:.2f} ms CPU of the main process"
    )
    subject.ask("DELETE", f"/inbox/webhooks/{made}", key)


@contextmanager
def running_receiver() -> Iterator[tuple[Connection, int]]:
    """Run the receiver in a process of its own."""
    ours, theirs = multiprocessing.Pipe()
    process = multiprocessing.Process(target=_receive, args=(theirs,), daemon=True)
    process.start()
    try:
        yield ours, ours.recv()
    finally:
        process.kill()
        process.join()


def add_accounts(daemon: Daemon) -> list[str]:
    """Create several accounts, and return their keys."""
    mailcheck = str(Path(daemon.twistd).with_name("mailcheck"))
    keys = []
    for number in range(ACCOUNTS):
        for words in (["account", "add", f"a{number}"], ["key", "issue", f"a{number}"]):
            done = subprocess.run(
                [mailcheck, *words],
                cwd=daemon.folder,
                env=daemon.environment,
                capture_output=True,
                text=True,
                check=True,
            )
        keys.append(next(word for word in done.stdout.split() if word.startswith("mck_")))
    return keys


def main() -> None:
    """Measure, and print the results."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--messages", type=int, default=200, help="number for each account")
    parser.add_argument("--behind", type=int, default=10_000)
    parser.add_argument("--mails", type=int, default=1_000)
    options = parser.parse_args()
    allow = [f"a{number}=127.0.0.0/8" for number in range(ACCOUNTS)]
    with (
        tempfile.TemporaryDirectory(prefix="mailcheck-bench-") as folder,
        running_daemon(Path(folder), webhooks_allow=allow, inbox_max_messages=1_000_000) as daemon,
        running_receiver() as (receiver, port),
    ):
        subject = Subject(daemon, receiver, port)
        keys = add_accounts(daemon)
        measure_intake(subject, keys[0], options.mails)
        measure_many(subject, keys, options.messages)
        measure_behind(subject, keys[0], options.behind)


if __name__ == "__main__":
    main()

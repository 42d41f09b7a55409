"""Attacks on a daemon that run beside the honest client of `benchmarks.hostile_neighbours`."""

import contextlib
import imaplib
import json
import multiprocessing
import os
import re
import smtplib
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from http.client import HTTPConnection, HTTPException
from itertools import count, pairwise
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlencode

from tests.servers.daemon import API, HOST, free_ports

CHECKS, READERS, DRIPPERS, FLOODS, GUESSERS, SENDERS = 100, 6, 10, 5, 20, 4
REQUESTS, SEARCHES, UNREAD, MILTERS = 3, 8, 100, 4
SILENT, UNFINISHED = 300, 15
PART = b"x" * 8 * 1024 * 1024
LARGE = b"Subject: large\r\n\r\n" + (b"x" * 70 + b"\r\n") * 290_000
MAIL = b"Subject: x\r\n\r\n" + b"x" * 70 + b"\r\n"

SEND = "/providers/sendgrid/v3/mail/send"
NEGOTIATION = struct.pack("!IcIII", 13, b"O", 6, 0x1FF, 0x1FFFFF)
SEARCH = " ".join(f'NOT TEXT "none{number}"' for number in range(95))

PACKET = 0.001
"""Seconds between two packets of one client."""

BETWEEN_GUESSES, BETWEEN_MAILS = 0.2, 0.05
"""Seconds that a guessing or sending attacker pauses. A flood that uses the whole processor is a
task for a firewall, and here it would use the daemon's own two cores."""

AUTOGROUP = Path("/proc/self/autogroup")
AUTOGROUPS = Path("/proc/sys/kernel/sched_autogroup_enabled")
NICENESS = 19
"""Nice value of the sessions of the attackers and of their name server."""

MANY, MORE_THAN_IS_READ, ALIASES, STRINGS = 100, 500, 400, 16_000
KINDS = ("many", "chain", "texts", "deep." + ".".join("a" * 100))
"""Hostile zones: more records than are read; 400 CNAMEs in one answer; one text of 16,000 strings;
100 records that each lead to a name of 100 labels."""


class Target(NamedTuple):
    """The attacked daemon, and the account of the attacker."""

    smtp_port: int
    http_port: int
    key: str
    address: str
    imap_port: int = 0
    milter_port: int = 0


def ask(target: Target, path: str) -> bytes:
    """Send a request to the API on a connection of its own."""
    with contextlib.closing(HTTPConnection(HOST, target.http_port, timeout=120)) as connection:
        connection.request("GET", API + path, headers={"X-API-Key": target.key})
        return connection.getresponse().read()


@contextlib.contextmanager
def processors_shared_by_all() -> Iterator[None]:
    """Let Linux share the processors among processes instead of sessions (sched(7)).

    Otherwise the scheduling policy of a process counts only within its session, and the daemon in
    its own session waited some milliseconds for each running attacker. Needs root.
    """
    try:
        before = AUTOGROUPS.read_text()
        AUTOGROUPS.write_text("0")
    except OSError:  # they are shared by all already, or the user may not change it
        yield
        return
    try:
        yield
    finally:
        AUTOGROUPS.write_text(before)


def take_what_is_left() -> None:
    """Let this process use only processors that are otherwise idle.

    The processors of an attacker's machine must not be taken from the daemon of this one.
    """
    os.setsid()
    os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
    with contextlib.suppress(OSError):  # sessions do not share them here
        AUTOGROUP.write_text(str(NICENESS))


def take_at_once() -> None:
    """Give this thread a processor as soon as it is runnable; child processes do not inherit this.

    The measured client stands for another machine, so its own waiting for a processor must not
    count as delay of the daemon. Needs root; otherwise the thread is scheduled as usual.
    """
    with contextlib.suppress(PermissionError):
        policy = os.SCHED_FIFO | os.SCHED_RESET_ON_FORK
        os.sched_setscheduler(0, policy, os.sched_param(1))


class Attacks:
    """Attacks, each repeated for ever by a number of threads.

    ``done`` counts the completed runs of each attack, readable by other processes.
    """

    def __init__(self, target: Target) -> None:
        self._target = target
        self._numbers = count()
        self.crowds: dict[str, tuple[Callable[[int], None], int]] = {
            "checks": (self._check, CHECKS),
            "readers": (self._read, READERS),
            "drippers": (self._drip, DRIPPERS),
            "floods": (self._flood, FLOODS),
            "held": (self._hold, SILENT + UNFINISHED),
            "guessers": (self._guess, GUESSERS),
            "senders": (self._send, SENDERS),
            "requests": (self._request, REQUESTS),
            "searches": (self._search, SEARCHES),
            "unread": (self._leave_unread, UNREAD),
            "milters": (self._negotiate, MILTERS),
        }
        self._counts: Any = multiprocessing.Array("L", len(self.crowds), lock=False)

    def done(self) -> dict[str, int]:
        """Return how often each attack was completed."""
        return dict(zip(self.crowds, self._counts, strict=True))

    def begin(self, names: Sequence[str]) -> None:
        """Run the named attacks until the process is killed."""
        take_what_is_left()
        for place, (name, (action, crowd)) in enumerate(self.crowds.items()):
            if name not in names:
                continue
            for number in range(crowd):
                args = (action, number, place)
                threading.Thread(target=self._again, args=args, daemon=True).start()
        threading.Event().wait()

    def _again(self, action: Callable[[int], None], number: int, place: int) -> None:
        while True:
            with contextlib.suppress(OSError, HTTPException, smtplib.SMTPRecipientsRefused):
                action(number)
            self._counts[place] += 1
            time.sleep(0.01)

    def _check(self, number: int) -> None:
        kind = KINDS[number % len(KINDS)]
        domain = f"{kind}.d{next(self._numbers)}.wild.example.com"
        ask(self._target, f"/tools/domain?domain={domain}")

    def _read(self, _: int) -> None:
        found = ask(self._target, "/inbox/wait?tag=large&since=2026-01-01T00:00:00Z&timeout=1")
        message = found.partition(b'"id":"')[2][:36].decode()
        ask(self._target, f"/inbox/messages/{message}")

    def _drip(self, _: int) -> None:
        with socket.create_connection((HOST, self._target.http_port)) as one:
            one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            lines = (f"GET {API}/inbox/wait?timeout=5 HTTP/1.1", "Host: x", "X-API-Key: ")
            one.sendall(("\r\n".join(lines) + self._target.key + "\r\n\r\n").encode())
            for _ in range(4_000):
                one.sendall(b"x")
                time.sleep(PACKET)

    def _flood(self, _: int) -> None:
        with socket.create_connection((HOST, self._target.http_port)) as one:
            one.sendall(b"POST /mcp HTTP/1.1\r\nHost: x\r\nContent-Length: 9999999999\r\n\r\n")
            for _ in range(4_000):
                one.sendall(b"x" * 4_096)
                time.sleep(PACKET)

    def _hold(self, number: int) -> None:
        with socket.create_connection((HOST, self._target.smtp_port)) as one:
            if number < UNFINISHED:
                recipient = f"RCPT TO:<{self._target.address}>"
                for line in ("EHLO x", "MAIL FROM:<a@example.com>", recipient, "DATA"):
                    one.recv(4096)
                    one.sendall(line.encode() + b"\r\n")
                one.recv(4096)
                one.sendall(PART)
            while one.recv(4096):
                pass

    def _guess(self, number: int) -> None:
        """Guess passwords, each time from another address and for another account name."""
        serial = next(self._numbers)
        source = (f"127.{1 + number}.{serial // 250 % 250}.{1 + serial % 250}", 0)
        connection = HTTPConnection(
            HOST, self._target.http_port, timeout=120, source_address=source
        )
        with contextlib.closing(connection):
            connection.request("GET", "/sign-in")
            page = connection.getresponse()
            cookies = [value.partition(";")[0] for value in page.headers.get_all("Set-Cookie", ())]
            token = re.search(rb'name="form-token" value="([^"]+)"', page.read())
            assert token is not None, "the page has no form"
            fields = {"name": f"n{serial}", "password": "wrong horse!"}
            form = urlencode({"form-token": token[1].decode(), **fields})
            headers = {
                "Cookie": "; ".join(cookies),
                "Content-Type": "application/x-www-form-urlencoded",
            }
            connection.request("POST", "/sign-in", form, headers)
            connection.getresponse().read()
        time.sleep(BETWEEN_GUESSES)

    def _send(self, _: int) -> None:
        with smtplib.SMTP(HOST, self._target.smtp_port, timeout=120) as client:
            client.sendmail("a@example.com", [self._target.address], MAIL)
        time.sleep(BETWEEN_MAILS)

    def _request(self, number: int) -> None:
        """Post mail to a send API that would take long to write."""
        body = OVERSIZED[number % len(OVERSIZED)]()
        headers = {"Authorization": f"Bearer {self._target.key}"}
        with contextlib.closing(
            HTTPConnection(HOST, self._target.http_port, timeout=120)
        ) as connection:
            connection.request("POST", SEND, body, headers)
            connection.getresponse().read()

    def _search(self, _: int) -> None:
        target = self._target
        with imaplib.IMAP4(HOST, target.imap_port, timeout=120) as client:
            client.login(target.address, target.key)
            client.select()
            while True:
                client.uid("SEARCH", SEARCH)

    def _leave_unread(self, number: int) -> None:
        """Ask for a mail of 20 MB or for events, and read no answer."""
        path = "/inbox/events?after=c0"
        if number % 2:
            found = ask(self._target, "/inbox/messages?tag=large&limit=1")
            message = found.partition(b'"id":"')[2][:36].decode()
            path = f"/inbox/messages/{message}"
        request = f"GET {API}{path} HTTP/1.1\r\nHost: x\r\nX-API-Key: {self._target.key}\r\n\r\n"
        with socket.socket() as one:
            one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
            one.connect((HOST, self._target.http_port))
            one.sendall(request.encode())
            time.sleep(30)

    def _negotiate(self, _: int) -> None:
        """Send negotiations to the milter endpoint, and read no answer."""
        with socket.socket() as one:
            one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
            one.connect((HOST, self._target.milter_port))
            one.settimeout(5)
            while True:
                one.sendall(NEGOTIATION * 1_000)


def _mail_for(count: int, **more: object) -> bytes:
    people = [{"to": [{"email": f"a{number}@example.org"}], **more} for number in range(count)]
    value = {"personalizations": people, "from": {"email": "x@example.org"}, "subject": "s"}
    text = "-zz-" + ("x" * 999 + "\n") * 300 if count > 1 else "b" * 200_000
    return json.dumps({**value, "content": [{"type": "text/plain", "value": text}]}).encode()


OVERSIZED: Sequence[Callable[[], bytes]] = (
    partial(_mail_for, 1, subject="a " * 150_000),
    partial(_mail_for, 1, substitutions={f"b{number:06}": "y" for number in range(12_000)}),
    partial(_mail_for, 1_000, substitutions={"-zz-": "y"}),
)
"""A subject of 300 kB, 12,000 substitutions, and a text of 300 kB for 1,000 people."""


class HostileZone:
    """A name server that fills each answer for a ``wild`` name to the limit of a message."""

    def __init__(self) -> None:
        self._datagrams = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._stream = socket.socket()
        self._stream.bind((HOST, *free_ports(1)))
        self._datagrams.bind(self._stream.getsockname())
        self._stream.listen(1024)
        self.resolver = f'["{HOST}:{self._stream.getsockname()[1]}"]'

    def serve(self) -> None:
        """Answer over UDP and TCP until the process is killed."""
        take_what_is_left()
        for _ in range(4):
            threading.Thread(target=self._serve_streams, daemon=True).start()
        while True:
            query, client = self._datagrams.recvfrom(4096)
            self._datagrams.sendto(_answer(query, is_stream=False), client)

    def _serve_streams(self) -> None:
        while True:
            connection, _ = self._stream.accept()
            with contextlib.suppress(OSError), connection:
                size = int.from_bytes(connection.recv(2, socket.MSG_WAITALL), "big")
                query = connection.recv(size, socket.MSG_WAITALL)
                if len(query) < size or not size:
                    continue  # the client closed the connection
                reply = _answer(query, is_stream=True)
                connection.sendall(len(reply).to_bytes(2, "big") + reply)


def _answer(query: bytes, *, is_stream: bool) -> bytes:
    """Return the answer to a query: a full message for wild names, else NXDOMAIN."""
    end = query.index(b"\0", 12) + 5
    question, rdtype = query[12:end], int.from_bytes(query[end - 4 : end - 2], "big")
    if b"\x04wild" not in question:
        soa = b"\xc0\x0c\0\x06\0\x01\0\0\x01\x2c\0\x18\xc0\x0c\xc0\x0c" + b"\0\0\0\1" * 5
        return query[:2] + b"\x81\x83\0\1\0\0\0\1\0\0" + question + soa
    if not is_stream:
        return query[:2] + b"\x83\x80\0\1\0\0\0\0\0\0" + question
    records = _chain() if b"\x05chain" in question else _records(rdtype, question)
    head = query[:2] + b"\x81\x80\0\1" + struct.pack("!3H", len(records), 0, 0)
    return head + question + b"".join(records)


def _records(rdtype: int, question: bytes) -> list[bytes]:
    amount = MORE_THAN_IS_READ if question[1] % 3 == 0 else MANY
    head = b"\xc0\x0c" + struct.pack("!HHI", rdtype, 1, 1)
    if rdtype == 1:
        data = [bytes((192, 0, 2, number % 250)) for number in range(min(amount, 250))]
    elif rdtype == 15 and b"\x04deep" in question:
        data = [b"\0%c\xc0\x0c" % number for number in range(100)]
    elif rdtype == 15:
        data = [b"\0\x0a\x04mx%02d\xc0\x0c" % number for number in range(100)]
    elif rdtype == 16 and b"\x05texts" in question:
        data = [bytes(STRINGS)]
    elif rdtype == 16:
        data = [b"\x0fv=spf1 ip4:%04d " % number for number in range(amount)]
    else:
        return []
    return [head + struct.pack("!H", len(one)) + one for one in data]


def _chain() -> list[bytes]:
    names = [b"\xc0\x0c", *(b"\x04c%03d\xc0\x0c" % number for number in range(ALIASES))]
    return [one + struct.pack("!HHIH", 5, 1, 1, len(two)) + two for one, two in pairwise(names)]

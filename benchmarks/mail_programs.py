"""Measure idle mail programs, and compare IMAP with Debian's Dovecot.

Run it with ``python -m benchmarks.mail_programs`` (needs dovecot-imapd). It measures:

* the memory of a client that idles (RFC 9051 6.3.13) in an inbox with 100 mails, of 1,000 of them
  without TLS, in the process that has the connections; and the time from the end of DATA until all
  of them are told of a mail,
* the time of ``FETCH 1:* (FLAGS RFC822.SIZE ENVELOPE)`` for 10,000 mails, as a mail program sends
  it when it opens an inbox: from a new session, and again. Dovecot has the same mails in sdbox, and
  has indexed them before.

The client is this process for both servers, and reads raw sockets.

Targets: at most 20 KB for each idle client, and at least 0.2 times the envelopes per second of
Dovecot in the same run.
"""

import argparse
import select
import smtplib
import socket
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks.measuring import own_resident_bytes
from tests.servers.daemon import HOST, Daemon, free_ports, running_daemon
from tests.servers.dovecot import PASSWORD, USER, running_dovecot

BYTES_EACH, LEAST_OF_DOVECOT = 20_000, 0.2
MAILS_OF_IDLE = 100
PATIENCE = 120.0  # seconds
ENVELOPES = b"FETCH 1:* (FLAGS RFC822.SIZE ENVELOPE)"


class Client:
    """A session that has selected the inbox."""

    def __init__(self, port: int, user: str, password: str) -> None:
        self.socket = socket.create_connection((HOST, port), timeout=PATIENCE)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.socket.recv(4_096)
        self.ask(f'LOGIN {user} "{password}"'.encode())

    def ask(self, command: bytes, literal: bytes | None = None) -> int:
        """Send a command; return the octets of the answer, which must be OK."""
        self.socket.sendall(b"t " + command + b"\r\n")
        if literal is not None:
            self.socket.recv(4_096)
            self.socket.sendall(literal + b"\r\n")
        octets, tail = 0, b""
        while True:
            data = self.socket.recv(1_048_576)
            if not data:
                raise SystemExit(f"the server has closed the connection after {command!r}")
            octets += len(data)
            tail = (tail + data)[-4_096:]
            last = tail.rstrip(b"\r\n").rpartition(b"\r\n")[2]
            if tail.endswith(b"\r\n") and last.startswith(b"t "):
                if not last.startswith(b"t OK"):
                    raise SystemExit(f"{command!r}: {last!r}")
                return octets


def mail(number: int) -> bytes:
    """Return a mail with the header of an ordinary one."""
    return (
        f"From: Shop <shop@example.com>\r\nTo: Ann <ann{number}@example.com>\r\n"
        f"Subject: Order {number}\r\nDate: Mon, 2 Nov 2026 10:00:00 +0000\r\n"
        f"Message-ID: <{number}@example.com>\r\nMIME-Version: 1.0\r\n"
        "Content-Type: text/plain; charset=utf-8\r\n\r\n"
        f"Your code is {number:06}\r\n" + "Thank you for your order.\r\n" * 20
    ).encode()


def deliver(daemon: Daemon, count: int) -> None:
    """Send mails to the inbox of a daemon."""
    address = daemon.address()
    with smtplib.SMTP(HOST, daemon.smtp_port, timeout=PATIENCE) as smtp:
        for number in range(count):
            smtp.sendmail("shop@example.com", [address], mail(number))


def measure_idle(daemon: Daemon, port: int, count: int) -> tuple[float, float]:
    """Return the bytes of an idle client, and the seconds until all are told of a mail."""
    deliver(daemon, MAILS_OF_IDLE)
    warm = Client(port, "any", daemon.key)
    warm.ask(b"SELECT INBOX")
    time.sleep(2)
    before = own_resident_bytes(daemon.process.pid)
    clients = []
    for _ in range(count):
        client = Client(port, "any", daemon.key)
        client.ask(b"SELECT INBOX")
        client.socket.sendall(b"i IDLE\r\n")
        client.socket.recv(4_096)
        clients.append(client)
    time.sleep(2)
    each = (own_resident_bytes(daemon.process.pid) - before) / count
    poll = select.epoll()
    for client in clients:
        poll.register(client.socket, select.EPOLLIN)
    with smtplib.SMTP(HOST, daemon.smtp_port, timeout=PATIENCE) as smtp:
        address = daemon.address()
        smtp.sendmail("shop@example.com", [address], mail(0))
        began = time.perf_counter()
    left = {client.socket.fileno(): client for client in clients}
    while left:
        for number, _ in poll.poll(PATIENCE):
            if number in left and b"EXISTS" in left[number].socket.recv(4_096):
                poll.unregister(number)
                del left[number]
    told = time.perf_counter() - began
    for client in [warm, *clients]:
        client.socket.close()
    return each, told


def measure_envelopes(port: int, user: str, password: str, rounds: int) -> list[float]:
    """Return the seconds of fetching all envelopes, in new sessions."""
    seconds = []
    for _ in range(rounds):
        client = Client(port, user, password)
        client.ask(b"SELECT INBOX")
        began = time.perf_counter()
        client.ask(ENVELOPES)
        seconds.append(time.perf_counter() - began)
        client.socket.close()
    return seconds


def main(arguments: Sequence[str]) -> int:
    """Print the results; return 1 if a target is missed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--clients", type=int, default=1_000)
    parser.add_argument("--mails", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args(arguments)
    (port,) = free_ports(1)
    with tempfile.TemporaryDirectory() as name:
        with running_daemon(Path(name) / "idle", imap_listen=f"{HOST}:{port}") as daemon:
            each, told = measure_idle(daemon, port, options.clients)
        print(
            f"{options.clients:,} idle clients: {each / 1_000:.1f} KB each, "
            f"all told after {told * 1_000:.0f} ms",
            flush=True,
        )
        with running_dovecot() as dovecot:
            client = Client(dovecot.imap, USER, PASSWORD)
            for number in range(options.mails):
                raw = mail(number)
                client.ask(b"APPEND INBOX {%d}" % len(raw), raw)
            theirs = measure_envelopes(dovecot.imap, USER, PASSWORD, options.rounds)
        with running_daemon(
            Path(name) / "envelopes",
            imap_listen=f"{HOST}:{port}",
            inbox_max_messages=options.mails + 1,
        ) as daemon:
            deliver(daemon, options.mails)
            ours = measure_envelopes(port, "any", daemon.key, options.rounds)
    for server, seconds in (("dovecot", theirs), ("mailcheck", ours)):
        rates = ", ".join(f"{options.mails / one:,.0f}" for one in seconds)
        print(f"{server:10} envelopes/s, session by session: {rates}")
    ratio = min(theirs) / min(ours)
    print(f"mailcheck has {ratio:.2f} times the rate of Dovecot")
    return 0 if each <= BYTES_EACH and ratio >= LEAST_OF_DOVECOT else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

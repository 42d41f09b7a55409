"""All kinds of work at once: senders, mail programs, waits and deliverability tests."""

import contextlib
import imaplib
import random
import smtplib
import threading
import time
from collections import Counter
from collections.abc import Callable
from email.message import EmailMessage
from http.client import HTTPException

from tests.end_to_end.load import send
from tests.servers.daemon import HOST, Daemon

MAIL = 60_000
"""Octets of each mail."""

SENDERS, PROGRAMS, WAITS, TESTS = 4, 5, 20, 50


class Everything:
    """The load. ``replies`` counts the replies to mails, and ``ready`` has the seconds of answers.

    ``lost`` counts mails without a reply.
    """

    def __init__(self, daemon: Daemon, imap_port: int) -> None:
        self._daemon = daemon
        self._imap_port = imap_port
        self._has_ended = threading.Event()
        self.replies: Counter[int] = Counter()
        self.test_replies: Counter[int] = Counter()
        self.lost = 0
        self.errors: Counter[str] = Counter()
        self.ready: list[float] = []
        self.waits: Counter[int] = Counter()

    def run(self, seconds: float) -> None:
        """Run all of it for some time."""
        address = self._daemon.address("load")
        work: list[tuple[int, Callable[[int], None]]] = [
            (SENDERS, lambda number: self._send(number, address)),
            (PROGRAMS, self._read),
            (WAITS, self._wait),
            (1, self._test),
            (1, self._look),
        ]
        threads = [
            threading.Thread(target=target, args=(number,))
            for count, target in work
            for number in range(count)
        ]
        for thread in threads:
            thread.start()
        time.sleep(seconds)
        self._has_ended.set()
        for thread in threads:
            thread.join()

    def _send(self, number: int, address: str) -> None:
        choices = random.Random(number)
        while not self._has_ended.is_set():
            try:
                with smtplib.SMTP(HOST, self._daemon.smtp_port, timeout=60) as client:
                    while not self._has_ended.is_set():
                        code = send(client, [address], compose(choices))
                        self.replies[code] += 1
            except (OSError, smtplib.SMTPException) as error:
                self.lost += 1
                self.errors[f"send {error!r}"] += 1
                time.sleep(0.2)

    def _read(self, number: int) -> None:
        while not self._has_ended.is_set():
            try:
                with imaplib.IMAP4(HOST, self._imap_port, timeout=60) as program:
                    program.login("developer", self._daemon.key)
                    program.select("INBOX", readonly=True)
                    while not self._has_ended.is_set():
                        program.noop()
                        _, (found,) = program.search(None, "ALL")
                        for one in found.split()[-5:]:
                            program.fetch(one, "(FLAGS ENVELOPE BODYSTRUCTURE RFC822)")
            except (OSError, imaplib.IMAP4.error) as error:
                self.errors[f"imap {error!r}"] += 1
                time.sleep(0.2)

    def _wait(self, number: int) -> None:
        while not self._has_ended.is_set():
            try:
                answer = self._daemon.get("/inbox/wait", tag=f"none-{number}", timeout=5)
                self.waits[answer.status] += 1
            except (OSError, HTTPException) as error:
                self.errors[f"wait {error!r}"] += 1
                time.sleep(0.2)

    def _test(self, _: int) -> None:
        choices = random.Random("tests")
        for _ in range(TESTS):
            with contextlib.suppress(OSError, HTTPException):
                made = self._daemon.post("/test/generate", b"")
                if made.status not in (200, 201):
                    self.errors[f"test {made.status}"] += 1
                    continue
                try:
                    with smtplib.SMTP(HOST, self._daemon.smtp_port, timeout=60) as client:
                        code = send(client, [made.json["address"]], compose(choices))
                        self.test_replies[code] += 1
                except (OSError, smtplib.SMTPException) as error:
                    self.lost += 1
                    self.errors[f"test {error!r}"] += 1

    def _look(self, _: int) -> None:
        while not self._has_ended.is_set():
            began = time.monotonic()
            is_ready = self._daemon.is_ready()
            self.ready.append(time.monotonic() - began if is_ready else float("inf"))
            time.sleep(0.1)


def compose(choices: random.Random) -> bytes:
    """Return a mail of text and HTML, with links, that differs from all others."""
    words = [f"{choices.randrange(10**6):x}" for _ in range(400)]
    mail = EmailMessage()
    mail["From"] = "load@example.com"
    mail["To"] = "you@example.com"
    mail["Subject"] = " ".join(words[:5])
    line = " ".join(words[:12])
    mail.set_content("\n".join([f"Your code is {choices.randrange(10**6):06}", *[line] * 300]))
    rows = [
        f'<tr><td style="color: #123456"><a href="https://example.com/{word}">{word}</a></td></tr>'
        for word in words
    ]
    mail.add_alternative(f"<html><body><table>{''.join(rows)}</table></body></html>", "html")
    raw = mail.as_bytes().replace(b"\n", b"\r\n")
    return raw + b"x" * max(0, MAIL - len(raw) - 2) + b"\r\n"

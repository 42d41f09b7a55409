"""Mail that is sent in parallel until the daemon stops, and a check of the stored mail."""

import contextlib
import random
import smtplib
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tests.servers.daemon import HOST, Daemon

OK, SHUTTING_DOWN, TRY_AGAIN = 250, 421, 451
SENDERS = 6
TAGS = ("one", "two")  # each mail goes to both
LARGEST = 40_000  # octets
PAGE = 100

LINES = b"".join(
    b"." * (number % 3) + bytes([65 + number % 26]) * (number % 70) + b" \xc3\xa9\xff\r\n"
    for number in range(1_500)
)
"""Source of bodies: lines that begin with dots, and octets that are not UTF-8."""

HEADER = (
    b"From: load@example.com\r\nSubject: %s\r\n"
    # Binary data, so that no text is derived from these mails.
    b"Content-Type: application/octet-stream\r\n\r\n"
)


@dataclass
class Load:
    """Senders that run until the daemon disconnects, with their sent and acknowledged mails."""

    daemon: Daemon
    recipients: list[str]
    sent: dict[str, bytes] = field(default_factory=dict)
    acknowledged: set[str] = field(default_factory=set)
    last_codes: set[int] = field(default_factory=set)

    def run(self, seconds: float, end: Callable[[], object]) -> None:
        """Send for some time, then call ``end``, which stops the daemon."""
        names = [f"{len(self.sent)}-{number}" for number in range(SENDERS)]
        senders = [threading.Thread(target=self._send, args=(name,)) for name in names]
        for sender in senders:
            sender.start()
        time.sleep(seconds)
        end()
        for sender in senders:
            sender.join()
        assert self.last_codes <= {OK, SHUTTING_DOWN}, "a mail was refused"

    def send(self, client: smtplib.SMTP, subject: str, choices: random.Random) -> int:
        """Send one mail, and return the last reply code."""
        self.sent[subject] = compose(subject, choices)
        code = send(client, self.recipients, self.sent[subject])
        if code == OK:
            self.acknowledged.add(subject)
        return code

    def _send(self, name: str) -> None:
        choices = random.Random(name)
        code = OK
        # A killed daemon ends the connection without a reply.
        with (
            contextlib.suppress(smtplib.SMTPServerDisconnected, ConnectionError),
            smtplib.SMTP(HOST, self.daemon.smtp_port) as client,
        ):
            while code == OK:
                code = self.send(client, f"{name}-{len(self.sent)}", choices)
        self.last_codes.add(code)

    def check(self, messages: list[Any], expected: set[str]) -> None:
        """Check that all expected messages are stored, and that each is complete."""
        subjects = Counter(message["subject"] for message in messages)
        assert expected <= subjects.keys(), "an acknowledged mail is missing"
        assert set(subjects.values()) <= {len(TAGS)}, "a mail was stored for one of its recipients"
        for message in messages:
            if message["tag"] == TAGS[0]:
                assert raw_of(self.daemon, message["id"]) == self.sent[message["subject"]]


def start_load(daemon: Daemon) -> Load:
    """Return a load for a daemon's inbox."""
    return Load(daemon, [daemon.address(tag) for tag in TAGS])


def send(client: smtplib.SMTP, recipients: list[str], raw: bytes) -> int:
    """Send a mail, and return the code of the first failed reply, or 250."""
    client.ehlo_or_helo_if_needed()
    commands = ["MAIL FROM:<load@example.com>", *(f"RCPT TO:<{one}>" for one in recipients)]
    for command in commands:
        code, _ = client.docmd(command)
        if code != OK:
            client.docmd("RSET")
            return code
    try:
        return client.data(raw)[0]
    except smtplib.SMTPDataError as refused:
        return refused.smtp_code


def compose(subject: str, choices: random.Random) -> bytes:
    """Return a mail that differs from all others."""
    start = choices.randrange(len(LINES) - LARGEST)
    body = LINES[start : start + choices.choice([200, 2_000, LARGEST])]
    body = body.rpartition(b"\r\n")[0].lstrip(b"\n")
    return HEADER % subject.encode() + body + b"\r\n"


def list_after(daemon: Daemon, cursor: str) -> list[Any]:
    """Return all messages after a cursor."""
    messages: list[Any] = []
    page: int | None = 1
    while page is not None:
        listed = daemon.get("/inbox/messages", after=cursor, limit=PAGE, page=page).json
        messages += listed["messages"]
        page = listed["nextPage"]
    return messages


def raw_of(daemon: Daemon, message_id: str) -> bytes:
    """Return the received bytes of a message."""
    accept = {"Accept": "message/rfc822"}
    answer = daemon.request("GET", f"/inbox/messages/{message_id}/raw", accept)
    assert answer.status == 200
    return answer.body


def send_subjects(daemon: Daemon, *subjects: str, tag: str = "a") -> None:
    """Send mails with these subjects one after another."""
    with smtplib.SMTP(HOST, daemon.smtp_port, timeout=60) as smtp:
        for subject in subjects:
            mail = f"From: shop@example.com\r\nSubject: {subject}\r\n\r\nhi\r\n"
            smtp.sendmail("shop@example.com", [daemon.address(tag)], mail)

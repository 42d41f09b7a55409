"""kill -9 in the middle of load: what was acknowledged is there, all else is whole or not there."""

import random
import smtplib
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import pytest

from tests.servers.daemon import HOST, Daemon

pytestmark = pytest.mark.end_to_end

ROUNDS = 20
SENDERS = 6
SHORTEST_LOAD, LONGEST_LOAD = 0.05, 0.30  # seconds
TAGS = ("one", "two")  # each mail goes to both
LARGEST = 40_000  # octets
LINES = b"".join(
    b"." * (number % 3) + bytes([65 + number % 26]) * (number % 70) + b" \xc3\xa9\xff\r\n"
    for number in range(1_500)
)
"""What bodies are cut from: lines that begin with dots, and octets that are no UTF-8."""

HEADER = (
    b"From: load@example.com\r\nSubject: %s\r\n"
    # No text: nothing is to be read out of these mails.
    b"Content-Type: application/octet-stream\r\n\r\n"
)


@dataclass
class Load:
    """Senders that go on until the daemon is gone."""

    daemon: Daemon
    recipients: list[str]
    sent: dict[str, bytes] = field(default_factory=dict)
    acknowledged: set[str] = field(default_factory=set)

    def run(self, seconds: float) -> None:
        """Send for some time, then kill the daemon."""
        prefix = f"{len(self.sent)}"
        senders = [
            threading.Thread(target=self._send, args=(f"{prefix}-{number}",))
            for number in range(SENDERS)
        ]
        for sender in senders:
            sender.start()
        time.sleep(seconds)
        self.daemon.kill()
        for sender in senders:
            sender.join()

    def _send(self, name: str) -> None:
        choices = random.Random(name)
        try:
            with smtplib.SMTP(HOST, self.daemon.smtp_port) as client:
                while True:
                    subject = f"{name}-{len(self.sent)}"
                    raw = compose(subject, choices)
                    self.sent[subject] = raw
                    refused = client.sendmail("load@example.com", self.recipients, raw)
                    assert not refused
                    self.acknowledged.add(subject)
        except (smtplib.SMTPServerDisconnected, ConnectionError):
            pass  # killed


def compose(subject: str, choices: random.Random) -> bytes:
    """Write a mail that is like no other."""
    start = choices.randrange(len(LINES) - LARGEST)
    body = LINES[start : start + choices.choice([200, 2_000, LARGEST])]
    body = body.rpartition(b"\r\n")[0].lstrip(b"\n")
    return HEADER % subject.encode() + body + b"\r\n"


def list_after(daemon: Daemon, cursor: str) -> list[Any]:
    """List all messages after a cursor."""
    messages: list[Any] = []
    page: int | None = 1
    while page is not None:
        listed = daemon.get("/inbox/messages", after=cursor, limit=100, page=page).json
        messages += listed["messages"]
        page = listed["nextPage"]
    return messages


def raw_of(daemon: Daemon, message_id: str) -> bytes:
    """Read a message as it came in."""
    answer = daemon.request(
        "GET", f"/inbox/messages/{message_id}/raw", {"Accept": "message/rfc822"}
    )
    assert answer.status == 200
    return answer.body


def test_killed_under_load(daemon: Daemon) -> None:
    """After each kill every mail that got 250 is there byte for byte, and none is there in part."""
    load = Load(daemon, [daemon.address(tag) for tag in TAGS])
    cursor, total = daemon.cursor(), 0
    for _ in range(ROUNDS):
        before = set(load.acknowledged)
        load.run(random.uniform(SHORTEST_LOAD, LONGEST_LOAD))
        daemon.start()
        messages = list_after(daemon, cursor)
        subjects = Counter(message["subject"] for message in messages)
        assert load.acknowledged - before <= subjects.keys(), "an acknowledged mail is missing"
        assert set(subjects.values()) <= {len(TAGS)}, "a mail was stored for one of its recipients"
        for message in messages:
            if message["tag"] == TAGS[0]:
                assert raw_of(daemon, message["id"]) == load.sent[message["subject"]]
        total += len(messages)
        assert daemon.total() == total, "a message of an earlier round is gone or came again"
        cursor = daemon.cursor()
    assert len(load.acknowledged) > ROUNDS * SENDERS, "there was no load"

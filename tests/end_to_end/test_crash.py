"""kill -9 in the middle of load: what was acknowledged is there, all else is whole or not there."""

import contextlib
import os
import random
import signal
import smtplib
import threading
import time

import pytest

from tests.end_to_end.load import OK, SENDERS, TRY_AGAIN, list_after, start_load
from tests.servers.daemon import HOST, Daemon

pytestmark = pytest.mark.end_to_end

ROUNDS = pytest.mark.parametrize("rounds", [4, pytest.param(40, marks=pytest.mark.soak)])
CHILD_ROUNDS = 5
SHORTEST_LOAD, LONGEST_LOAD = 0.05, 0.30  # seconds


@ROUNDS
def test_killed_under_load(daemon: Daemon, rounds: int) -> None:
    """After each kill every mail that got 250 is there byte for byte, and none is there in part."""
    load = start_load(daemon)
    cursor, total = daemon.cursor(), 0
    for number in range(rounds):
        before = set(load.acknowledged)
        # All at once, as when power fails; or the daemon alone, its children survive it.
        kill = daemon.kill if number % 2 else daemon.kill_first
        load.run(random.uniform(SHORTEST_LOAD, LONGEST_LOAD), kill)
        daemon.start()
        messages = list_after(daemon, cursor)
        load.check(messages, load.acknowledged - before)
        total += len(messages)
        assert daemon.total() == total, "a message of an earlier round is gone or came again"
        cursor = daemon.cursor()
    assert len(load.acknowledged) > rounds * SENDERS, "there was no load"


def test_killed_children(daemon: Daemon) -> None:
    """When processes of the daemon's own are killed mail is put off, no more, and it goes on."""
    load = start_load(daemon)
    is_over = threading.Event()
    codes: set[int] = set()

    def send_mails(name: str) -> None:
        choices = random.Random(name)
        with smtplib.SMTP(HOST, daemon.smtp_port) as client:
            while not is_over.is_set():
                codes.add(load.send(client, f"{name}-{len(load.sent)}", choices))

    cursor = daemon.cursor()
    senders = [
        threading.Thread(target=send_mails, args=(str(number),)) for number in range(SENDERS)
    ]
    for sender in senders:
        sender.start()
    for _ in range(CHILD_ROUNDS):
        time.sleep(random.uniform(SHORTEST_LOAD, LONGEST_LOAD))
        for child in daemon.pids()[1:]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)
    is_over.set()
    for sender in senders:
        sender.join()
    assert OK in codes
    assert codes <= {OK, TRY_AGAIN}
    assert daemon.process.poll() is None
    load.check(list_after(daemon, cursor), load.acknowledged)

"""kill -9 under load: acknowledged mail is stored, and other mail is stored whole or not at all."""

import contextlib
import os
import random
import signal
import smtplib
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPException
from pathlib import Path
from typing import Any

import pytest

from mailcheck.assembly.workers import LONGEST_COMMIT
from tests.end_to_end.load import (
    OK,
    SENDERS,
    TAGS,
    TRY_AGAIN,
    Load,
    compose,
    list_after,
    send,
    start_load,
)
from tests.servers.clocks import ACCELERATION
from tests.servers.daemon import HOST, Daemon, running_daemon
from tests.servers.postgresql import TEMPLATE

pytestmark = [pytest.mark.end_to_end, pytest.mark.interop]

ROUNDS = 4
SOAK_ROUNDS = 100
KILLS = int(os.environ.get("KILLS", "1000"))
"""Kills of the daemon on each store; a variable of the environment may set fewer."""

UNUSED_TAG = "unused"
"""A tag that gets no mail: its clients still wait when the daemon is killed."""

CHILD_ROUNDS = 5
CHILD = "a child"
AT_LAST = 60.0  # seconds for a reply; an otherwise idle machine needs ten
SHORTEST_LOAD, LONGEST_LOAD = 0.05, 0.30  # seconds


def test_killed_under_load(daemon: Daemon) -> None:
    """After each kill every acknowledged mail is stored byte for byte, and none is partial."""
    load = start_load(daemon)
    cursor, total = daemon.cursor(), 0
    for number in range(ROUNDS):
        before = set(load.acknowledged)
        # Kill all processes as in a power failure, or the first one alone.
        kill = daemon.kill if number % 2 else daemon.kill_first
        load.run(random.uniform(SHORTEST_LOAD, LONGEST_LOAD), kill)
        daemon.start()
        messages = list_after(daemon, cursor)
        load.check(messages, load.acknowledged - before)
        total += len(messages)
        assert daemon.total() == total, "a message of an earlier round is gone or came again"
        cursor = daemon.cursor()
    assert len(load.acknowledged) > ROUNDS * SENDERS, "there was no load"


@pytest.mark.soak
@pytest.mark.parametrize("store", ["sqlite", "postgresql"])
def test_many_kills(store: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    """After each of many kills of the daemon, on both stores, no acknowledged mail is lost, changed
    or there twice, and a client that waits gets its mail or a cursor to go on from.
    """
    options: dict[str, Any] = {"inbox_max_messages": 10**9, "inbox_max_bytes": 10**12}
    if store == "postgresql":
        server = request.getfixturevalue("postgresql_server")
        options["storage_url"] = server.make_database(f"kills_{os.getpid()}", TEMPLATE)
    with running_daemon(tmp_path / "killed", **options) as daemon:
        load = start_load(daemon)
        cursor, total = daemon.cursor(), 0
        for number in range(KILLS):
            before = set(load.acknowledged)
            waiters = {tag: Waiter(daemon, tag, cursor) for tag in (TAGS[0], UNUSED_TAG)}
            load.run(random.uniform(SHORTEST_LOAD, LONGEST_LOAD), daemon.kill)
            daemon.start()
            messages = list_after(daemon, cursor)
            load.check(messages, load.acknowledged - before)
            total += len(messages)
            assert daemon.total() == total, "a message of an earlier round is gone or came again"
            expected = [one["id"] for one in messages if one["tag"] == TAGS[0]][-1:]
            assert waiters[TAGS[0]].found() == expected, number
            assert waiters[UNUSED_TAG].found() == [], number
            cursor = daemon.cursor()
            print(f"{number + 1} kills, {len(load.acknowledged)} mails", flush=True)
        assert len(load.acknowledged) > KILLS


class Waiter:
    """A client that waits for a tag, and asks again with its cursor if the connection ends."""

    def __init__(self, daemon: Daemon, tag: str, cursor: str) -> None:
        self._daemon, self._tag, self._cursor = daemon, tag, cursor
        self._pending = daemon.ask("GET", f"/inbox/wait?tag={tag}&timeout=60&after={cursor}")

    def found(self) -> list[str]:
        """Return the id of the message that it gets in the end, if any."""
        try:
            answer = self._pending.answer()
        except (OSError, HTTPException):
            answer = None
        if answer is None or answer.status == 503:
            query = {"tag": self._tag, "timeout": 1, "after": self._cursor}
            answer = self._daemon.get("/inbox/wait", **query)
        assert answer.status in (200, 408)
        assert answer.json["cursor"]
        return [answer.json["id"]] if answer.status == 200 else []


@pytest.mark.soak
def test_any_process_at_any_moment(daemon: Daemon) -> None:
    """After kills of any process acknowledged mail is stored once, and other mail whole or not.

    A mail with a 451 is not stored, so that it is stored once when it is sent again.
    """
    load = start_load(daemon)
    cursor, total = daemon.cursor(), 0
    kills: Counter[str] = Counter()
    for number in range(SOAK_ROUNDS):
        before = set(load.acknowledged)
        victim = random.choice(["all", "first", CHILD, CHILD, CHILD])
        kills[victim] += 1
        seconds = random.uniform(SHORTEST_LOAD, LONGEST_LOAD)
        if victim == CHILD:
            kill_child(daemon, load, f"{number}", seconds)
        else:
            load.run(seconds, daemon.kill if victim == "all" else daemon.kill_first)
            daemon.start()
        messages = list_after(daemon, cursor)
        load.check(messages, load.acknowledged - before)
        if victim == CHILD:
            assert {one["subject"] for one in messages} == load.acknowledged - before
        total += len(messages)
        assert daemon.total() == total, "a message of an earlier round is gone or came again"
        cursor = daemon.cursor()
    print(f"{len(load.acknowledged)} mails acknowledged, none lost, none twice; kills: {kills}")


def kill_child(daemon: Daemon, load: Load, prefix: str, seconds: float) -> None:
    """Kill any child process while mails are sent, each until it is accepted."""
    is_over = threading.Event()
    with ThreadPoolExecutor(SENDERS) as senders:
        sending = [
            senders.submit(send_each_until_taken, load, f"{prefix}.{sender}", is_over)
            for sender in range(SENDERS)
        ]
        time.sleep(seconds)
        os.kill(random.choice(daemon.pids()[1:]), signal.SIGKILL)
        time.sleep(seconds)
        is_over.set()
        for sender in sending:
            sender.result()


def test_killed_children(daemon: Daemon) -> None:
    """When child processes are killed, mail gets at most a temporary error, and service continues.

    A mail with a temporary error is not stored, so that a retry does not store it twice.
    """
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
    messages = list_after(daemon, cursor)
    load.check(messages, load.acknowledged)
    assert {message["subject"] for message in messages} == load.acknowledged, "stored, and refused"


def test_a_writer_that_does_not_answer(hurried_daemon: Daemon) -> None:
    """The writer is replaced, each mail gets its reply, and is stored once or not at all."""
    daemon = hurried_daemon
    load = start_load(daemon)
    cursor = daemon.cursor()
    with ThreadPoolExecutor(SENDERS) as senders:
        is_over = threading.Event()
        sending = [
            senders.submit(send_each_until_taken, load, str(number), is_over)
            for number in range(SENDERS)
        ]
        time.sleep(LONGEST_LOAD)
        os.kill(daemon.child("writer"), signal.SIGSTOP)
        daemon.wait_until(lambda: "writer process: no answer" in daemon.output())
        is_over.set()
        slowest = max(sender.result() for sender in sending)
    assert LONGEST_COMMIT / ACCELERATION <= slowest <= AT_LAST
    messages = list_after(daemon, cursor)
    load.check(messages, load.acknowledged)
    assert len(messages) == len(TAGS) * len(load.acknowledged) == len(TAGS) * len(load.sent)


def send_each_until_taken(load: Load, name: str, is_over: threading.Event) -> float:
    """Send mails, each until it is accepted, and return the seconds of the slowest reply."""
    choices, slowest, number = random.Random(name), 0.0, 0
    with smtplib.SMTP(HOST, load.daemon.smtp_port) as client:
        while not is_over.is_set():
            subject, code, number = f"{name}-{number}", TRY_AGAIN, number + 1
            raw = compose(subject, choices)
            load.sent[subject] = raw
            while code != OK:
                began = time.monotonic()
                code = send(client, load.recipients, raw)
                slowest = max(slowest, time.monotonic() - began)
                assert code in (OK, TRY_AGAIN)
            load.acknowledged.add(subject)
    return slowest

"""kill -9 in the middle of load: what was acknowledged is there, all else is whole or not there."""

import random

import pytest

from tests.end_to_end.load import SENDERS, list_after, start_load
from tests.servers.daemon import Daemon

pytestmark = pytest.mark.end_to_end

ROUNDS = 20
SHORTEST_LOAD, LONGEST_LOAD = 0.05, 0.30  # seconds


def test_killed_under_load(daemon: Daemon) -> None:
    """After each kill every mail that got 250 is there byte for byte, and none is there in part."""
    load = start_load(daemon)
    cursor, total = daemon.cursor(), 0
    for number in range(ROUNDS):
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
    assert len(load.acknowledged) > ROUNDS * SENDERS, "there was no load"

"""A daemon that is stopped finishes its open requests and mails."""

import os
import signal
from functools import partial

import pytest

from tests.end_to_end.load import Load, list_after, start_load
from tests.servers.daemon import STOPPED_WELL, Daemon

pytestmark = pytest.mark.end_to_end

WAITS, MAILS = 20, 50


def stop_after_mails(daemon: Daemon, load: Load, stop: signal.Signals) -> None:
    """Send a signal to all processes of a daemon that has accepted mails."""
    daemon.wait_until(lambda: len(load.acknowledged) >= MAILS)
    os.killpg(daemon.process.pid, stop)


def test_stopped_under_load(daemon: Daemon) -> None:
    """All acknowledged mail is stored, parked waits get 503 with a cursor, and the exit is clean.

    The signal goes to the whole process group, as systemd and a terminal send it.
    """
    for stop in (signal.SIGTERM, signal.SIGINT):
        load, cursor = start_load(daemon), daemon.cursor()
        waits = [daemon.ask("GET", f"/inbox/wait?tag=never-{number}") for number in range(WAITS)]
        load.run(0, partial(stop_after_mails, daemon, load, stop))
        assert daemon.when_ended() in STOPPED_WELL
        assert "Traceback" not in daemon.output()
        for wait in waits:
            answer = wait.answer()
            assert answer.status == 503
            assert int(answer.headers["retry-after"]) >= 1
            assert answer.json["cursor"]
        daemon.start()
        assert daemon.get("/inbox/messages", after=answer.json["cursor"]).status == 200
        load.check(list_after(daemon, cursor), load.acknowledged)

"""Somebody sets the machine's clock while the daemon runs: with libfaketime, for it alone."""

import os
import smtplib
from pathlib import Path

import pytest

from tests.servers.daemon import HOST, Daemon

pytestmark = pytest.mark.end_to_end

LIBRARIES = sorted(Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1"))

needs_faketime = pytest.mark.skipif(not LIBRARIES, reason="libfaketime is not installed")


def faketime(clock: Path) -> dict[str, str]:
    """Give the environment of a process whose clock of the day goes by a file."""
    return {
        **os.environ,
        "LD_PRELOAD": str(LIBRARIES[0]),
        "FAKETIME_TIMESTAMP_FILE": str(clock),
        "FAKETIME_NO_CACHE": "1",
        "FAKETIME_DONT_FAKE_MONOTONIC": "1",
        "DONT_FAKE_MONOTONIC": "1",
    }


def hurried(times: int) -> dict[str, str]:
    """Give the environment of a process all of whose clocks go so many times as fast as ours."""
    if not LIBRARIES:
        return dict(os.environ)
    return {
        **os.environ,
        "LD_PRELOAD": str(LIBRARIES[0]),
        "FAKETIME": f"+0 x{times}",
        "FAKETIME_NO_CACHE": "1",
    }


@needs_faketime
def test_a_clock_that_is_set_while_a_client_waits(tmp_path: Path) -> None:
    """Set back by an hour or ahead by a day: a wait ends in time, and mail of before stays."""
    clock = tmp_path / "clock"
    clock.write_text("+0")
    daemon = Daemon(tmp_path, environment=faketime(clock))
    try:
        daemon.start()
        with smtplib.SMTP(HOST, daemon.smtp_port) as client:
            client.sendmail("a@example.com", [daemon.address("before")], b"Subject: x\r\n\r\nx\r\n")
        waiting = daemon.ask("GET", "/inbox/wait?tag=nothing&timeout=1")
        clock.write_text("-3600")
        answer = waiting.answer()
        assert answer.status == 408
        assert answer.json["waited"] < 10
        clock.write_text("+86400")
        assert daemon.get("/inbox/messages").json["total"] == 1
        assert daemon.get("/inbox/wait?tag=before&since=2026-01-01T00:00:00Z").status == 200
        assert "the clock was set ahead by" in daemon.output()
    finally:
        daemon.kill()

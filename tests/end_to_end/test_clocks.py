"""The clock of the machine is set while the daemon runs (with libfaketime, for the daemon only)."""

import smtplib
from pathlib import Path

import pytest

from tests.servers.clocks import faketime, needs_faketime
from tests.servers.daemon import HOST, Daemon

pytestmark = [pytest.mark.end_to_end, pytest.mark.interop]


@needs_faketime
def test_a_clock_that_is_set_while_a_client_waits(tmp_path: Path) -> None:
    """With the clock an hour back or a day ahead, a wait ends in time, and older mail stays."""
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

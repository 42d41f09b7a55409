"""A daemon that may open 256 files, while a crowd of clients connects to all ports."""

import contextlib
import smtplib
import socket
import sys
import time
from pathlib import Path

import pytest

from mailcheck.web.site.connections import MIN_IDLE
from tests.servers.daemon import HOST, free_ports, running_daemon

pytestmark = pytest.mark.interop

FILES = 256

COMMAND = [
    *("prlimit", f"--nofile={FILES}:{FILES}", str(Path(sys.executable).with_name("twistd"))),
    *("--nodaemon", "--pidfile=", "mailcheck"),
]


def test_a_crowd_leaves_room(tmp_path: Path) -> None:
    """Health and API answer, mail is received, and the daemon has files left afterwards."""
    (imap,) = free_ports(1)
    with (
        running_daemon(tmp_path / "few", command=COMMAND, imap_listen=f"{HOST}:{imap}") as daemon,
        contextlib.ExitStack() as crowd,
    ):
        address = daemon.address("crowd")
        for port in (daemon.smtp_port, daemon.submission_port, imap, daemon.http_port):
            for _ in range(FILES):
                client = crowd.enter_context(socket.create_connection((HOST, port), timeout=5))
                with contextlib.suppress(OSError):
                    client.sendall(b"GET /readyz HTTP/1.1\r\n" if port == daemon.http_port else b"")
        daemon.wait_until(daemon.is_ready)  # it may still be accepting the last of them
        time.sleep(MIN_IDLE)  # younger connections are not closed for others
        for number in range(20):
            began = time.monotonic()
            assert daemon.is_ready(), number
            assert daemon.get("/inbox").status == 200
            assert time.monotonic() - began < 2
        # A client without a connection gets the place of one that is idle.
        with smtplib.SMTP(HOST, daemon.smtp_port, source_address=("127.0.0.2", 0)) as sender:
            sender.sendmail("a@example.com", [address], b"Subject: room\r\n\r\nHello\r\n")
        assert daemon.total() == 1
        assert len(list(Path(f"/proc/{daemon.process.pid}/fd").iterdir())) < FILES - 20
        assert "all open files are in use" not in daemon.output()
        assert not [line for line in daemon.output().splitlines() if " critical " in line]

"""What a daemon waits for stops: its disk for ten seconds, and its resolver for good."""

import contextlib
import os
import signal
import smtplib
import socket
import threading
import time
from pathlib import Path

import pytest

from tests.end_to_end.load import list_after, send, start_load
from tests.servers.daemon import HOST, running_daemon

pytestmark = pytest.mark.interop

STALL = 10.0
"""Seconds for which the process that writes does not return from its disk."""


def test_a_disk_that_stalls(tmp_path: Path) -> None:
    """Mail gets 250 or a temporary error meanwhile; acknowledged mail is there, once and whole."""
    with running_daemon(tmp_path / "stalled") as daemon:
        load, cursor = start_load(daemon), daemon.cursor()
        writer = daemon.child("writer")
        stopped = threading.Timer(STALL, _resume, [writer])
        codes: list[int] = []
        with smtplib.SMTP(HOST, daemon.smtp_port, timeout=60) as client:
            assert send(client, load.recipients, b"Subject: before\r\n\r\nx\r\n") == 250
            os.kill(writer, signal.SIGSTOP)
            stopped.start()
            began = time.monotonic()
            while time.monotonic() < began + STALL + 5:
                subject = f"stall-{len(codes)}"
                load.sent[subject] = f"Subject: {subject}\r\n\r\nx\r\n".encode()
                codes.append(send(client, load.recipients, load.sent[subject]))
                if codes[-1] == 250:
                    load.acknowledged.add(subject)
            stopped.join()
            daemon.wait_until(daemon.is_ready)
            assert send(client, load.recipients, b"Subject: after\r\n\r\nx\r\n") == 250
        assert set(codes) <= {250, 451}
        subjects = [one["subject"] for one in list_after(daemon, cursor)]
        for subject in (*load.acknowledged, "before", "after"):
            assert subjects.count(subject) == len(load.recipients), subject


def _resume(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError):  # the daemon has replaced it
        os.kill(pid, signal.SIGCONT)


def test_a_resolver_that_dies(tmp_path: Path) -> None:
    """Without an answer of DNS, mail is received, waits end, and tests get their report."""
    with socket.socket(type=socket.SOCK_DGRAM) as silent:
        silent.bind((HOST, 0))
        resolver = f"{HOST}:{silent.getsockname()[1]}"
        options = {"dns_resolvers": [resolver], "spamassassin_spamd": "off"}
        with running_daemon(tmp_path / "alone", **options) as daemon:
            cursor, address = daemon.cursor(), daemon.address("alone")
            tested = daemon.post("/test/generate", b"").json
            with smtplib.SMTP(HOST, daemon.smtp_port, timeout=60) as client:
                for recipient in (address, tested["address"]):
                    raw = f"Subject: hello\r\nTo: {recipient}\r\n\r\nHello\r\n".encode()
                    assert send(client, [recipient], raw) == 250
            waited = daemon.get("/inbox/wait", tag="alone", after=cursor, timeout=20)
            assert waited.status == 200
            report = f"/test/{tested['testId']}"
            daemon.wait_until(lambda: daemon.get(report).json["status"] == "completed")
            assert daemon.is_ready()

"""What a daemon waits for stops: its disk for ten seconds, and its resolver for good."""

import os
import smtplib
import subprocess
import threading
import time
from pathlib import Path

import pytest

from mailcheck.assembly.workers import LONGEST_COMMIT
from tests.end_to_end.load import list_after, send, start_load
from tests.fakes.memory_zone import MemoryZone
from tests.servers.daemon import HOST, running_daemon
from tests.servers.holding_name_server import running_holding_name_server
from tests.servers.name_server import running_name_server
from tests.servers.programs import find_program

pytestmark = pytest.mark.interop

STALL = 10.0
"""Seconds for which no write becomes durable."""

PACE = 0.2
"""Seconds between two mails. A fast machine would fill the inbox, or make too many errors."""

STALLING_DISK = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <unistd.h>

static int sync_later(const char *name, int fd) {
    const char *stalled = getenv("STALLED");
    while (stalled && access(stalled, F_OK) == 0) usleep(10000);
    return ((int (*)(int)) dlsym(RTLD_NEXT, name))(fd);
}
int fsync(int fd) { return sync_later("fsync", fd); }
int fdatasync(int fd) { return sync_later("fdatasync", fd); }
"""
"""A library whose ``fsync`` does not return while a file exists."""


def stalling_disk(folder: Path, stalled: Path) -> dict[str, str]:
    """Return an environment in which writes wait while the file ``stalled`` exists."""
    source, library = folder / "disk.c", folder / "disk.so"
    source.write_text(STALLING_DISK)
    command = [find_program("gcc"), "-shared", "-fPIC", "-o", str(library), str(source), "-ldl"]
    subprocess.run(command, check=True)
    return {**os.environ, "LD_PRELOAD": str(library), "STALLED": str(stalled)}


def test_a_disk_that_stalls(tmp_path: Path) -> None:
    """Mail gets 250 or a temporary error meanwhile; acknowledged mail is there, once and whole."""
    stalled = tmp_path / "stalled"
    environment = stalling_disk(tmp_path, stalled)
    with running_daemon(tmp_path / "daemon", environment=environment) as daemon:
        load, cursor = start_load(daemon), daemon.cursor()
        codes: list[int] = []
        with smtplib.SMTP(HOST, daemon.smtp_port, timeout=60) as client:
            assert send(client, load.recipients, b"Subject: before\r\n\r\nx\r\n") == 250
            stalled.touch()
            ends = threading.Timer(STALL, stalled.unlink)
            ends.start()
            began, reads = time.monotonic(), list[int]()
            reading = threading.Thread(target=lambda: reads.append(daemon.get("/inbox").status))
            reading.start()
            while time.monotonic() < began + STALL + 5:
                subject = f"stall-{len(codes)}"
                load.sent[subject] = f"Subject: {subject}\r\n\r\nx\r\n".encode()
                codes.append(send(client, load.recipients, load.sent[subject]))
                if len(codes) == 1:
                    assert time.monotonic() > began + LONGEST_COMMIT / 2, "the disk did not stall"
                    assert reads == [200]
                if codes[-1] == 250:
                    load.acknowledged.add(subject)
                time.sleep(PACE)
            ends.join()
            reading.join()
            daemon.wait_until(daemon.is_ready)
            assert send(client, load.recipients, b"Subject: after\r\n\r\nx\r\n") == 250
        assert set(codes) <= {250, 451}
        subjects = [one["subject"] for one in list_after(daemon, cursor)]
        for subject in (*load.acknowledged, "before", "after"):
            assert subjects.count(subject) == len(load.recipients), subject
        assert set(subjects) <= {*load.sent, "before", "after"}


def test_a_resolver_that_dies(tmp_path: Path) -> None:
    """It dies while tests wait for it: mail is received, waits end, and tests get their report.

    The report says that the policy could not be determined.
    """
    zone = MemoryZone({"example.com": {"TXT": ["v=spf1 ip4:192.0.2.1 -all"]}})
    with (
        running_name_server(zone) as names,
        running_holding_name_server(names, ["example.com"]) as resolver,
        running_daemon(
            tmp_path / "daemon",
            dns_resolvers=[f"{resolver.server.host}:{resolver.server.port}"],
            dns_allow_special_use=True,
            spamassassin_spamd="off",
        ) as daemon,
    ):
        cursor, address = daemon.cursor(), daemon.address("alone")
        tested = daemon.post("/test/generate", b"").json
        report = f"/test/{tested['testId']}"
        with smtplib.SMTP(HOST, daemon.smtp_port, timeout=60) as client:
            raw = b"From: a@example.com\r\nSubject: hello\r\n\r\nHello\r\n"
            assert send(client, [tested["address"]], raw) == 250
            daemon.wait_until(lambda: resolver.is_holding_questions)
            assert daemon.get(report).json["status"] == "processing"
            resolver.close()
            assert send(client, [address], raw) == 250
        waited = daemon.get("/inbox/wait", tag="alone", after=cursor, timeout=20)
        assert waited.status == 200
        daemon.wait_until(lambda: daemon.get(report).json["status"] == "completed")
        assert daemon.get(report).json["checks"]["dmarc"]["result"] == "temperror"
        assert daemon.is_ready()

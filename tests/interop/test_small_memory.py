"""A daemon with 256 MiB under all kinds of work at once: the kernel ends no process."""

import sys
from pathlib import Path
from typing import Any

import pytest

from tests.end_to_end.everything import TESTS, Everything
from tests.servers.daemon import HOST, Daemon, free_ports
from tests.servers.memory_group import memory_group

pytestmark = pytest.mark.interop

LIMIT = 256 * 1024 * 1024

TWISTD = [str(Path(sys.executable).with_name("twistd")), "--nodaemon", "--pidfile=", "mailcheck"]

SECONDS = 15.0


def test_everything_at_once(tmp_path: Path) -> None:
    """Every mail gets 250 or a temporary error, and ``/readyz`` answers within a second."""
    with memory_group(LIMIT) as group:
        # Without permission for a cgroup, the daemon is told its limit, which nothing enforces.
        options: dict[str, Any] = {"daemon_memory": LIMIT}
        if group is not None:
            options = {"command": [*group.wrapper, *TWISTD]}
        (imap,) = free_ports(1)
        daemon = Daemon(
            tmp_path / "small",
            **options,
            imap_listen=f"{HOST}:{imap}",
            web_preload=True,
        )
        try:
            daemon.start()
            load = Everything(daemon, imap)
            load.run(SECONDS)
            assert daemon.process.poll() is None, daemon.output()
            assert group is None or group.killed == 0
            assert not load.lost, load.errors
            assert not load.errors
            replies = load.replies + load.test_replies
            assert all(code == 250 or 400 <= code < 500 for code in replies), replies
            assert load.replies[250] > 100
            assert load.test_replies.total() == TESTS
            assert max(load.ready) < 1
            assert "Traceback" not in daemon.output()
        finally:
            daemon.kill()

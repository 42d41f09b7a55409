"""A real daemon for each test that asks for one."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.servers.daemon import Daemon, running_daemon


@pytest.fixture
def daemon(tmp_path: Path) -> Iterator[Daemon]:
    """Run a daemon with its defaults, but for the limits that tests would meet."""
    with running_daemon(tmp_path, limits_waits_per_key=1_000) as daemon:
        yield daemon

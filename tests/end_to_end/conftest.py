"""Fixtures with real daemons."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.servers.clocks import accelerated
from tests.servers.daemon import Daemon, running_daemon


@pytest.fixture
def daemon(tmp_path: Path) -> Iterator[Daemon]:
    """Run a daemon with its defaults, except for limits that tests would exceed."""
    limits = {
        "limits_waits_per_key": 1_000,
        "inbox_max_messages": 1_000_000,
        "inbox_max_bytes": 1 << 40,
    }
    with running_daemon(tmp_path, **limits) as daemon:
        yield daemon


@pytest.fixture
def hurried_daemon(tmp_path: Path) -> Iterator[Daemon]:
    """Run a daemon with a faster clock, for a test that would wait for one of its periods."""
    with running_daemon(tmp_path, environment=accelerated()) as daemon:
        yield daemon


@pytest.fixture(scope="module")
def shared_daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    """Run one daemon for all tests of a module that do not stop it."""
    folder = tmp_path_factory.mktemp("shared")
    with running_daemon(folder, limits_waits_per_key=1_000) as daemon:
        yield daemon

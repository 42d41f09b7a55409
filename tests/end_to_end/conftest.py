"""Fixtures with real daemons."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.servers.clocks import accelerated
from tests.servers.daemon import HOST, Daemon, free_ports, running_daemon


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


@pytest.fixture(scope="session")
def shared_daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    """Run one daemon for all tests of a process that do not stop it.

    Its inbox has mail of other tests: a test uses an address or a cursor of its own.
    """
    folder = tmp_path_factory.mktemp("shared")
    imap, pop3 = (f"{HOST}:{port}" for port in free_ports(2))
    with running_daemon(
        folder, imap_listen=imap, pop3_listen=pop3, limits_waits_per_key=1_000
    ) as daemon:
        yield daemon


@pytest.fixture
def empty_inbox(shared_daemon: Daemon) -> Daemon:
    """The shared daemon without mail."""
    shared_daemon.request("DELETE", "/inbox/messages")
    return shared_daemon

"""Fixtures of the end-to-end tests: real daemons for foreign clients and servers."""

from tests.end_to_end.conftest import daemon, hurried_daemon, shared_daemon

__all__ = ["daemon", "hurried_daemon", "shared_daemon"]

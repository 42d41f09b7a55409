"""Real daemons for foreign clients and servers: the fixtures of the end-to-end tests."""

from tests.end_to_end.conftest import daemon, hurried_daemon, shared_daemon

__all__ = ["daemon", "hurried_daemon", "shared_daemon"]

"""Registration of daemons in a PostgreSQL database: one daemon, or several with Redis."""

import time
from urllib.parse import urlsplit

from mailcheck.core.errors import StoreUnavailable
from mailcheck.engines.postgresql import PostgresqlPresence
from tests.servers.postgresql import PostgresqlServer


def may_begin(url: str, *, is_alone: bool) -> bool:
    """Return whether another daemon can register."""
    presence = PostgresqlPresence(url, is_alone=is_alone)
    try:
        presence.begin(timeout=0.0)
    except StoreUnavailable as failure:
        return "[cluster] redis" not in str(failure)
    presence.end()
    return True


def test_who_may_begin(postgresql_database: str) -> None:
    """A single daemon uses the database exclusively; daemons with Redis share it."""
    for is_alone, others in ((True, [False, False]), (False, [False, True])):
        presence = PostgresqlPresence(postgresql_database, is_alone=is_alone)
        presence.begin()
        found = [may_begin(postgresql_database, is_alone=one) for one in (True, False)]
        assert found == others
        presence.end()  # the server learns of it a moment later
    assert may_begin(postgresql_database, is_alone=True)


def test_presence_after_a_restart(
    postgresql_database: str,
    postgresql_server: PostgresqlServer,
) -> None:
    """A daemon registers again if the server has lost its registration."""
    presence = PostgresqlPresence(postgresql_database, is_alone=True)
    presence.begin()
    postgresql_server.run(
        "SELECT pg_terminate_backend(pid, 5000) FROM pg_locks WHERE locktype = 'advisory' AND "
        "database = (SELECT oid FROM pg_database WHERE datname = current_database())",
        urlsplit(postgresql_database).path.strip("/"),
    )
    presence.keep()
    assert not may_begin(postgresql_database, is_alone=True)
    presence.end()


def test_who_is_there(postgresql_database: str) -> None:
    """Each daemon gets the names of all registered daemons."""
    names = ["0" * 15 + "7", "f" * 16]
    one, other = (
        PostgresqlPresence(postgresql_database, is_alone=False, name=name) for name in names
    )
    one.begin()
    other.begin()
    for presence in (one, other):
        known = presence.keep()
        assert known is not None
        assert known >= set(names)
    other.end()
    deadline = time.monotonic() + 60
    while (names[1] in (one.keep() or names)) and time.monotonic() < deadline:
        time.sleep(0.01)  # the server learns of it a moment later
    known = one.keep()
    assert known is not None
    assert names[0] in known
    assert names[1] not in known
    one.end()
    assert one.keep() is None
    one.end()

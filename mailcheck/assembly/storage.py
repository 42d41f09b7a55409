"""Chooses the database: a SQLite file, or a PostgreSQL server."""

import os
import socket
from pathlib import Path
from typing import NamedTuple

from mailcheck.assembly.deployment import naming
from mailcheck.assembly.workers import Workers
from mailcheck.cluster.local import CountersOrAlone
from mailcheck.config.options import Config
from mailcheck.core.errors import StoreUnavailable
from mailcheck.core.identifiers import KEY_FILE, PASSWORD_FILE, RandomBytes
from mailcheck.daemon.presence import Presence
from mailcheck.engines.database import DatabaseEngine
from mailcheck.engines.sqlite import IN_MEMORY, SqliteEngine, SqlitePresence
from mailcheck.ports.clocks import Now, Soon
from mailcheck.ports.cluster import Memory, RateCounters, SelectorStore
from mailcheck.store.domains.remembered import SqlMemory, SqlRateCounters, SqlSelectors


def database_engine(config: Config, workers: Workers, gather: Soon) -> DatabaseEngine:
    """Make the engine of the configured database; nothing is opened yet.

    :param gather: what is written until it calls shares a commit.
    :raises ConfigError: the folder of a SQLite file can't be made.
    """
    url, writer, reader = config.storage.url, workers.writer, workers.reader
    if config.storage.is_shared:
        # Loaded where it is used alone: psycopg2 takes a while, and memory.
        from mailcheck.engines.postgresql import PostgresqlEngine

        return PostgresqlEngine(url, writer, reader, gather)
    path = config.storage.file
    if path != IN_MEMORY:
        with naming("[storage] url"):
            Path(path).parent.mkdir(parents=True, exist_ok=True)
    state = Path(config.storage.state_directory)
    state_files = [state / name for name in (KEY_FILE, PASSWORD_FILE)]
    return SqliteEngine(path, writer, reader, gather, state_files)


def daemon_presence(config: Config, name: str) -> Presence | None:
    """Give what keeps daemons apart that do not know of each other; ``name`` is this one's."""
    if not config.storage.is_shared:
        path = config.storage.file
        return None if path == IN_MEMORY else SqlitePresence(path)
    from mailcheck.engines.postgresql import PostgresqlPresence

    return PostgresqlPresence(config.storage.url, name=name, is_alone=not config.cluster.redis)


class StoredState(NamedTuple):
    """What a daemon without Redis keeps in the store, so that a restart forgets none of it."""

    counters: RateCounters
    memory: Memory
    selectors: SelectorStore


def stored_state(engine: DatabaseEngine, now: Now) -> StoredState:
    """Give it; with no room in the store, questions to lists are counted in memory."""
    counters = CountersOrAlone(SqlRateCounters(engine), StoreUnavailable)
    return StoredState(counters, SqlMemory(engine, now), SqlSelectors(engine))


def lease_holder(config: Config, random_bytes: RandomBytes) -> str:
    """Name this process among all that work on the database.

    A SQLite file has one daemon, before and after a restart: it takes up at
    once what it has left. Others wait for the end of its leases.
    """
    if not config.storage.is_shared:
        return "daemon"
    return f"{socket.gethostname()}:{os.getpid()}:{random_bytes(6).hex()}"

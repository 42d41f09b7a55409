"""The implementations that the contract suites of the stores run on."""

import pickle
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import pytest
from pytest_twisted import async_yield_fixture
from twisted.internet.defer import Deferred

from mailcheck.core.accounts import Quota
from mailcheck.operations.accounts.dashboard_ports import PasswordStore, SessionStore
from mailcheck.operations.deliverability.ports import DeliverabilityStore
from mailcheck.operations.ports import (
    AccountStore,
    ContentStore,
    DeliveryStore,
    ExpiryStore,
    MessageStore,
)
from mailcheck.storage.accounts.account_store import SqlAccountStore
from mailcheck.storage.accounts.password_store import SqlPasswordStore
from mailcheck.storage.accounts.session_store import SqlSessionStore
from mailcheck.storage.content_store import SqlContentStore
from mailcheck.storage.database import DatabaseEngine
from mailcheck.storage.deliverability_store import SqlDeliverabilityStore
from mailcheck.storage.mail_store import SqlMailStore
from mailcheck.storage.postgresql import PostgresqlEngine
from mailcheck.storage.removing import SqlExpiryStore
from mailcheck.storage.sqlite import IN_MEMORY, SqliteEngine
from mailcheck.storage.sqlite_writer import writer_at
from mailcheck.workers.direct import DirectWorker
from mailcheck.workers.threads import ThreadWorker

DEFAULT_QUOTA = Quota(max_messages=1_000, max_bytes=10_000_000)

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class Stores:
    """All ports of storage, filled by one database."""

    deliveries: DeliveryStore
    messages: MessageStore
    contents: ContentStore
    expiry: ExpiryStore
    accounts: AccountStore
    passwords: PasswordStore
    sessions: SessionStore
    tests: DeliverabilityStore


class PicklingWorker(DirectWorker):
    """Runs calls as another process would get them, and their answers as it would send them."""

    def run(self, call: Callable[[], Result]) -> Deferred[Result]:
        """Run a copy of the call, and give a copy of its answer."""
        copy = pickle.loads(pickle.dumps(call))
        return super().run(lambda: pickle.loads(pickle.dumps(copy())))


def _in_memory(request: pytest.FixtureRequest) -> DatabaseEngine:
    return SqliteEngine(IN_MEMORY, DirectWorker(), DirectWorker())


def _in_threads(request: pytest.FixtureRequest) -> DatabaseEngine:
    from twisted.internet import reactor

    threads: Any = reactor
    writer, readers = ThreadWorker(threads, "writer", 1), ThreadWorker(threads, "reader", 4)
    return SqliteEngine(_file(request), writer, readers)


def _pickled(request: pytest.FixtureRequest) -> DatabaseEngine:
    path = _file(request)
    request.addfinalizer(lambda: writer_at(path).close())
    return SqliteEngine(path, PicklingWorker(), DirectWorker())


def _file(request: pytest.FixtureRequest) -> str:
    folder: Path = request.getfixturevalue("tmp_path")
    return str(folder / "mail.db")


def _postgresql(request: pytest.FixtureRequest) -> DatabaseEngine:
    # The writer of this process keeps its connection from test to test.
    url = request.getfixturevalue("postgresql_url")
    return PostgresqlEngine(url, PicklingWorker(), DirectWorker())


ENGINES = {
    "sqlite in memory": _in_memory,
    "sqlite in threads": _in_threads,
    "sqlite as in processes": _pickled,
    "postgresql": _postgresql,
}


@async_yield_fixture(params=list(ENGINES))
async def stores(request: pytest.FixtureRequest) -> AsyncIterator[Stores]:
    """Give each implementation, empty."""
    engine = ENGINES[request.param](request)
    engine.open()
    yield stores_on(engine)
    await engine.close()


def stores_on(engine: DatabaseEngine) -> Stores:
    """Fill all ports by an engine."""
    mail_store = SqlMailStore(engine, DEFAULT_QUOTA)
    return Stores(
        deliveries=mail_store,
        messages=mail_store,
        contents=SqlContentStore(engine),
        expiry=SqlExpiryStore(engine, engine.give_back_space),
        accounts=SqlAccountStore(engine),
        passwords=SqlPasswordStore(engine),
        sessions=SqlSessionStore(engine),
        tests=SqlDeliverabilityStore(engine),
    )

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
from mailcheck.storage.account_store import SqlAccountStore
from mailcheck.storage.content_store import SqlContentStore
from mailcheck.storage.deliverability_store import SqlDeliverabilityStore
from mailcheck.storage.expiry_store import SqlExpiryStore
from mailcheck.storage.mail_store import SqlMailStore
from mailcheck.storage.password_store import SqlPasswordStore
from mailcheck.storage.session_store import SqlSessionStore
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


def _in_memory(folder: Path) -> SqliteEngine:
    return SqliteEngine(IN_MEMORY, DirectWorker(), DirectWorker())


def _in_threads(folder: Path) -> SqliteEngine:
    from twisted.internet import reactor

    threads: Any = reactor
    writer, readers = ThreadWorker(threads, "writer", 1), ThreadWorker(threads, "reader", 4)
    return SqliteEngine(str(folder / "mail.db"), writer, readers)


def _pickled(folder: Path) -> SqliteEngine:
    return SqliteEngine(str(folder / "mail.db"), PicklingWorker(), DirectWorker())


ENGINES = {
    "sqlite in memory": _in_memory,
    "sqlite in threads": _in_threads,
    "sqlite as in processes": _pickled,
}


@async_yield_fixture(params=list(ENGINES))
async def stores(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Stores]:
    """Give each implementation, empty."""
    engine = ENGINES[request.param](tmp_path)
    engine.open()
    mail_store = SqlMailStore(engine, DEFAULT_QUOTA)
    yield Stores(
        deliveries=mail_store,
        messages=mail_store,
        contents=SqlContentStore(engine),
        expiry=SqlExpiryStore(engine, engine.give_back_space),
        accounts=SqlAccountStore(engine),
        passwords=SqlPasswordStore(engine),
        sessions=SqlSessionStore(engine),
        tests=SqlDeliverabilityStore(engine),
    )
    await engine.close()
    if request.param == "sqlite as in processes":
        writer_at(str(tmp_path / "mail.db")).close()

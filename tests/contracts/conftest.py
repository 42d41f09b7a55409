"""The implementations for the contract tests of the stores."""

import pickle
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar, cast

import pytest
from pytest_twisted import async_fixture, async_yield_fixture
from twisted.internet.defer import Deferred

from mailcheck.cluster.local import LocalCluster
from mailcheck.cluster.shared import RedisCluster, SharedRateCounters
from mailcheck.core.accounts import Quota
from mailcheck.core.content import DERIVATION
from mailcheck.core.instants import instant_of
from mailcheck.engines.database import DatabaseEngine
from mailcheck.engines.postgresql import PostgresqlEngine
from mailcheck.engines.sqlite import SqliteEngine
from mailcheck.engines.sqlite_writer import writer_at
from mailcheck.ports.cluster import Memory, RateCounters, SelectorStore
from mailcheck.store.accounts.account_removal import AccountRemoval
from mailcheck.store.accounts.account_store import AccountStore
from mailcheck.store.accounts.audit_store import AuditStore
from mailcheck.store.accounts.identity_store import IdentityStore
from mailcheck.store.accounts.oauth_store import OAuthStore
from mailcheck.store.accounts.passkey_store import PasskeyStore
from mailcheck.store.accounts.project_store import ProjectStore
from mailcheck.store.accounts.provisioning_store import ProvisioningStore
from mailcheck.store.accounts.sign_in_store import PasswordStore, SessionStore
from mailcheck.store.accounts.webhook_store import WebhookStore
from mailcheck.store.content_store import ContentStore
from mailcheck.store.deliverability_store import DeliverabilityStore
from mailcheck.store.domains.digest_store import DigestStore
from mailcheck.store.domains.heartbeat_store import HeartbeatStore
from mailcheck.store.domains.local_state import SqlMemory, SqlRateCounters, SqlSelectors
from mailcheck.store.domains.report_mailbox_store import ReportMailboxStore
from mailcheck.store.domains.report_store import ReportStore
from mailcheck.store.domains.sender_store import SenderStore
from mailcheck.store.domains.traffic_store import TrafficStore
from mailcheck.store.domains.watch_store import WatchStore
from mailcheck.store.figures import FigureStore
from mailcheck.store.inbound_store import InboundStore
from mailcheck.store.mail_store import MailStore
from mailcheck.store.mailbox_store import MailboxStore
from mailcheck.store.mails import MailsStore
from mailcheck.store.messages import ExpiryStore
from mailcheck.workers.scheduling import DirectWorker
from mailcheck.workers.threads import ThreadWorker
from tests.engines.deliveries import account, noted
from tests.servers.redis import RedisServer, connected

DEFAULT_QUOTA = Quota(max_messages=1_000, max_bytes=10_000_000)

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class Stores:
    """All stores, on one database."""

    deliveries: MailStore
    messages: MailStore
    contents: ContentStore
    mailboxes: MailboxStore
    mails: MailsStore
    expiry: ExpiryStore
    figures: FigureStore
    accounts: AccountStore
    passwords: PasswordStore
    sessions: SessionStore
    audit: AuditStore
    removal: AccountRemoval
    projects: ProjectStore
    identities: IdentityStore
    provisioning: ProvisioningStore
    oauth: OAuthStore
    passkeys: PasskeyStore
    tests: DeliverabilityStore
    earlier_contents: ContentStore
    """Content derived by the rules of an earlier version."""
    counters: RateCounters
    memory: Memory
    selectors: SelectorStore
    webhooks: WebhookStore
    inbound: InboundStore
    watches: WatchStore
    heartbeats: HeartbeatStore
    traffic: TrafficStore
    reports: ReportStore
    report_mailboxes: ReportMailboxStore
    digests: DigestStore
    senders: SenderStore


class PicklingWorker(DirectWorker):
    """Runs calls as in another process: calls and answers are pickled."""

    def run(self, call: Callable[[], Result], owner: str = "") -> Deferred[Result]:
        """Run a copy of the call, and return a copy of its answer."""
        copy = pickle.loads(pickle.dumps(call))
        return super().run(lambda: pickle.loads(pickle.dumps(copy())))


def _sqlite(request: pytest.FixtureRequest) -> DatabaseEngine:
    from twisted.internet import reactor

    path, threads = _file(request), cast(Any, reactor)
    request.addfinalizer(lambda: writer_at(path).close())
    return SqliteEngine(path, PicklingWorker(), ThreadWorker(threads, "reader", 4))


def _file(request: pytest.FixtureRequest) -> str:
    folder: Path = request.getfixturevalue("tmp_path")
    return str(folder / "mail.db")


def _postgresql(request: pytest.FixtureRequest) -> DatabaseEngine:
    # The writer of this process keeps its connection between tests.
    url = request.getfixturevalue("postgresql_url")
    return PostgresqlEngine(url, PicklingWorker(), DirectWorker())


@dataclass(frozen=True, slots=True)
class PersistentState:
    """Counters and known facts, for each place where they are stored."""

    counters: RateCounters
    memory: Memory
    selectors: SelectorStore


@async_yield_fixture(params=["in this process", "on Redis", "sqlite", "postgresql"])
async def persistent_state(
    request: pytest.FixtureRequest, redis_server: RedisServer
) -> AsyncIterator[PersistentState]:
    """Each implementation, empty."""
    from twisted.internet import reactor

    clock: Any = reactor
    if request.param in ENGINES:
        engine = ENGINES[request.param](request)
        engine.open()
        stored = stores_on(engine)
        yield PersistentState(stored.counters, stored.memory, stored.selectors)
        await engine.close()
        return
    if request.param == "in this process":
        alone = LocalCluster(clock)
        yield PersistentState(alone.counters, alone.memory, alone.selectors)
        return
    async with connected(redis_server) as redis:
        shared = RedisCluster(redis, clock)
        yield PersistentState(SharedRateCounters(redis), shared.memory, shared.selectors)


ENGINES = {"sqlite": _sqlite, "postgresql": _postgresql}
"""Engines with the workers of a daemon: a writer in another process, and readers in threads.

Tests with a `House` use SQLite in memory.
"""


@async_yield_fixture(params=list(ENGINES))
async def engine(request: pytest.FixtureRequest) -> AsyncIterator[DatabaseEngine]:
    """Each engine with an empty database."""
    engine = ENGINES[request.param](request)
    engine.open()
    yield engine
    await engine.close()


@pytest.fixture
def empty(engine: DatabaseEngine) -> Stores:
    """The stores on each engine."""
    return stores_on(engine)


@async_fixture
async def stores(empty: Stores) -> Stores:
    """The stores on each engine, with the accounts of Ann and Bob."""
    for name in ("ann", "bob"):
        await empty.accounts.add_account(account(name), noted())
    return empty


def stores_on(engine: DatabaseEngine) -> Stores:
    """Return all stores on an engine."""
    mail_store = MailStore(engine, DEFAULT_QUOTA, min_cached_messages=1)
    return Stores(
        deliveries=mail_store,
        messages=mail_store,
        contents=ContentStore(engine),
        earlier_contents=ContentStore(engine, DERIVATION - 1),
        mailboxes=MailboxStore(engine),
        mails=MailsStore(engine),
        expiry=ExpiryStore(engine),
        figures=FigureStore(engine),
        accounts=AccountStore(engine),
        passwords=PasswordStore(engine),
        sessions=SessionStore(engine),
        audit=AuditStore(engine),
        removal=AccountRemoval(engine),
        projects=ProjectStore(engine),
        identities=IdentityStore(engine),
        provisioning=ProvisioningStore(engine),
        oauth=OAuthStore(engine),
        passkeys=PasskeyStore(engine),
        tests=DeliverabilityStore(engine),
        counters=SqlRateCounters(engine),
        memory=SqlMemory(engine, lambda: instant_of(time.time())),
        selectors=SqlSelectors(engine),
        webhooks=WebhookStore(engine),
        inbound=InboundStore(engine),
        watches=WatchStore(engine),
        heartbeats=HeartbeatStore(engine),
        traffic=TrafficStore(engine),
        reports=ReportStore(engine),
        report_mailboxes=ReportMailboxStore(engine),
        digests=DigestStore(engine),
        senders=SenderStore(engine),
    )

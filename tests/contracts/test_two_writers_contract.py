"""Two processes that write to one database at the same time.

In each race the first write stops before its COMMIT and the second one begins. The first continues
when the second waits for it or is done.
"""

import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import psycopg2
import pytest
from msgspec.structs import replace
from pytest_twisted import async_yield_fixture
from twisted.internet.defer import Deferred
from twisted.internet.threads import deferToThread

from mailcheck.core.accounts import Account, ApiKey
from mailcheck.core.content import MessageContent
from mailcheck.core.deliverability_tests import (
    MAX_PENDING,
    DeliverabilityTest,
    State,
    StoredReport,
)
from mailcheck.core.domains.receiver_reports import (
    ReceiverReport,
    ReportId,
    ReportKind,
    ReportState,
)
from mailcheck.core.domains.watches import WatchSettings
from mailcheck.core.errors import (
    AccountNameTaken,
    AddressUsed,
    InboxFull,
    InvitationInvalid,
    RecipientUnknown,
    TooManyPendingTests,
    TooManyWebhooks,
    WatchExists,
    WorkerDied,
)
from mailcheck.core.filters import MessageFilter
from mailcheck.core.identifiers import AccountId, DeliverabilityTestId, KeyId
from mailcheck.core.instants import DAY, Instant
from mailcheck.core.memory.client_limits import DAY_WINDOW
from mailcheck.core.memory.keys import key_of
from mailcheck.core.messages import Delivery
from mailcheck.core.webhooks import MOST_WEBHOOKS, Attempt, WebhookDelivery
from mailcheck.engines.committing import Write, WriterConnection
from mailcheck.engines.database import DatabaseEngine
from mailcheck.engines.postgresql import PostgresqlEngine
from mailcheck.engines.postgresql_connection import PostgresqlWriter
from mailcheck.engines.sqlite import SqliteEngine
from mailcheck.engines.sqlite_writer import SqliteWriter
from mailcheck.ports.cluster import Hit
from mailcheck.ports.engine import Transaction
from mailcheck.ports.workers import Lease
from mailcheck.store.content_store import ContentStore
from mailcheck.store.domains.report_store import CountedRow
from mailcheck.store.domains.watch_store import RunRecord
from mailcheck.store.mail_delivery import DeliverMails
from mailcheck.workers.scheduling import DirectWorker
from mailcheck.workers.threads import ThreadWorker
from tests.contracts.conftest import DEFAULT_QUOTA, Stores, stores_on
from tests.engines.deliveries import (
    NOON,
    RETENTION,
    account,
    addressed,
    at,
    content,
    deliverability_test,
    delivery,
    mail,
    noted,
    recipient,
    refusal,
    report_recipient,
    watch,
    webhook,
)

ANN, BOB = AccountId("ann"), AccountId("bob")
EXPIRY = Instant(NOON + RETENTION)
FORGET_AT = Instant(NOON + 7 * DAY)
REPORT = StoredReport(95, "{}")
PATIENCE = 60.0  # seconds
POLL = 0.002  # seconds

Call = Callable[[Stores], Deferred[Any]]


class Hold:
    """Delays the COMMIT of a writer while it is active."""

    def __init__(self) -> None:
        self.is_on = False
        self.reached = threading.Event()
        self.released = threading.Event()

    def before_commit(self) -> None:
        """Wait while it is active."""
        if self.is_on:
            self.reached.set()
            assert self.released.wait(PATIENCE)

    @contextmanager
    def held(self) -> Iterator[None]:
        """Hold the next commit as long as the context lasts."""
        self.reached.clear()
        self.released.clear()
        self.is_on = True
        yield
        self.is_on = False
        self.released.set()


class Processes:
    """Two store processes on one database; only the first one can be held."""

    def __init__(self, one: DatabaseEngine, other: DatabaseEngine, hold: Hold) -> None:
        self.engines = (one, other)
        self.one, self.other = stores_on(one), stores_on(other)
        self._hold = hold

    def is_waiting(self) -> bool:
        """Return whether the second process waits for the first one."""
        raise NotImplementedError

    async def race(self, first: Call, second: Call | None = None) -> list[Any]:
        """Run two writes at the same time; return the result or the exception of each."""
        second_done = threading.Event()

        def note_end(outcome: Any) -> Any:
            second_done.set()
            return outcome

        def is_held_up() -> None:
            deadline = time.monotonic() + PATIENCE
            while not second_done.wait(POLL) and not self.is_waiting():
                assert time.monotonic() < deadline

        with self._hold.held():
            outcomes = [_outcome(first(self.one))]
            assert await deferToThread(self._hold.reached.wait, PATIENCE)
            outcomes.append(_outcome((second or first)(self.other)))
            outcomes[1].addBoth(note_end)
            await deferToThread(is_held_up)
        return [await outcome for outcome in outcomes]

    async def check(self) -> None:
        """Compare all counters with their rows."""
        for query, rows in (
            (_INBOXES, _COUNTED_INBOXES),
            (_TAGS, _COUNTED_TAGS),
        ):
            kept, counted = await self.engines[0].read(partial(_both, queries=(query, rows)))
            assert kept == counted


_INBOXES = (
    "SELECT account_id, message_count, byte_count, tag_count FROM inbox WHERE message_count <> 0"
)
_COUNTED_INBOXES = (
    "SELECT account_id, COUNT(*), CAST(SUM(size) AS BIGINT), COUNT(DISTINCT tag_key) "
    "FROM message GROUP BY 1"
)
_TAGS = "SELECT account_id, tag_key, message_count FROM inbox_tag"
_COUNTED_TAGS = "SELECT account_id, tag_key, COUNT(*) FROM message GROUP BY 1, 2"


def _both(transaction: Transaction, queries: Sequence[str]) -> tuple[set[Any], ...]:
    return tuple(set(transaction.rows(query)) for query in queries)


def _outcome(deferred: Deferred[Any]) -> Deferred[Any]:
    return deferred.addErrback(lambda failure: failure.value)


class _HeldPostgresqlWriter(PostgresqlWriter):
    hold: Hold

    def commit(self) -> None:
        self._current().flush()
        self.hold.before_commit()
        super().commit()


class _HeldSqliteWriter(SqliteWriter):
    hold: Hold

    def commit(self) -> None:
        self.hold.before_commit()
        super().commit()


def _held(engine: DatabaseEngine, writer: Any, hold: Hold) -> DatabaseEngine:
    writer.hold = hold
    opened = engine.open_writer

    def open_writer() -> WriterConnection:
        opened().close()
        held: WriterConnection = writer
        return held

    engine.open_writer = open_writer  # type: ignore[method-assign]
    return engine


def _in_thread() -> ThreadWorker:
    from twisted.internet import reactor

    threads: Any = reactor
    return ThreadWorker(threads, "writer", 1)


def _call_soon(call: Callable[[], object]) -> object:
    """Let the writes of one iteration of the reactor share a commit, as the daemon does."""
    from twisted.internet import reactor

    clock: Any = reactor
    return clock.callLater(0, call)


class _OnPostgresql(Processes):
    def __init__(self, url: str) -> None:
        hold = Hold()
        one = PostgresqlEngine(url, _in_thread(), DirectWorker(), _call_soon)
        other = PostgresqlEngine(url, _in_thread(), DirectWorker(), _call_soon)
        super().__init__(_held(one, _HeldPostgresqlWriter(url), hold), other, hold)
        self._watching = psycopg2.connect(url)
        self._watching.autocommit = True

    def is_waiting(self) -> bool:
        with self._watching.cursor() as cursor:
            cursor.execute(
                "SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' "
                "AND datname = current_database()"
            )
            return bool(cursor.fetchall())

    def close(self) -> None:
        self._watching.close()


class _OnSqlite(Processes):
    def __init__(self, path: str) -> None:
        hold = Hold()
        one, other = (
            SqliteEngine(path, _in_thread(), DirectWorker(), _call_soon) for _ in range(2)
        )
        one.open()
        one.close()
        one = SqliteEngine(path, _in_thread(), DirectWorker(), _call_soon)
        super().__init__(_held(one, _HeldSqliteWriter(path), hold), other, hold)

    def is_waiting(self) -> bool:
        # The first one has locked the whole file.
        return True

    def close(self) -> None:
        pass


@async_yield_fixture(params=["sqlite", "postgresql"])
async def processes(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Processes]:
    """Two processes on an empty database with two accounts."""
    pair: Any
    if request.param == "sqlite":
        pair = _OnSqlite(str(tmp_path / "mail.db"))
    else:
        pair = _OnPostgresql(request.getfixturevalue("postgresql_url"))
    try:
        for engine in pair.engines:
            engine.open()
        for name in ("ann", "bob"):
            await pair.one.accounts.add_account(account(name), noted())
        yield pair
        await pair.check()
    finally:
        for engine in pair.engines:
            await engine.close()
        pair.close()


async def fill(processes: Processes, count: int = 60, **facts: Any) -> list[Any]:
    """Deliver mails to ann, all with the same tag except the last one."""
    sent = [delivery(recipient("ann", "a" if n else "b"), **facts) for n in range(count)]
    for one in sent:
        await processes.one.deliveries.deliver(one)
    return sent


def delivering(sent: Delivery) -> Call:
    """Return the write that delivers a mail."""
    return lambda stores: stores.deliveries.deliver(sent)


async def test_mails_to_one_inbox(processes: Processes) -> None:
    """Both mails are stored, the second one after the first, and both are counted."""
    for tags in (("", ""), ("a", "b"), ("a", "a")):
        first, second = (delivery(recipient("ann", tag)) for tag in tags)
        (one,), (other,) = await processes.race(delivering(first), delivering(second))
        assert other == one + 1
    assert (await processes.one.deliveries.find_account_inbox(ANN)).last_position == 6  # type: ignore[union-attr]


async def test_a_refusal_and_a_mail(processes: Processes) -> None:
    """The first of the two has the lower position, and a wait sees both."""
    refused: Call = lambda s: s.deliveries.note_refusal(refusal("ann"))  # noqa: E731
    sent = [delivery(recipient("ann")) for _ in range(2)]
    assert await processes.race(refused, delivering(sent[0])) == [None, (2,)]
    assert await processes.race(delivering(sent[1]), refused) == [(3,), None]
    await processes.race(refused)
    found = await processes.other.messages.recent_refusals(ANN, NOON, 10)
    assert [one.position for one in found] == [6, 5, 4, 1]


async def test_bursts_to_several_inboxes(processes: Processes) -> None:
    """Groups with the same inboxes in different order both succeed."""

    def burst(*names: str) -> Call:
        mails = [delivery(*(recipient(name) for name in names)) for _ in range(5)]
        return lambda s: _gathered([s.deliveries.deliver(one) for one in mails])

    outcomes = await processes.race(burst("ann", "bob"), burst("bob", "ann"))
    assert outcomes == [[(n, n) for n in range(1, 6)], [(n, n) for n in range(6, 11)]]


def _gathered(deferreds: list[Deferred[Any]]) -> Deferred[Any]:
    async def gathered() -> list[Any]:
        return [await one for one in deferreds]

    return Deferred.fromCoroutine(gathered())


def settling(processes: Processes, *sent: Delivery) -> Call:
    """Return the recovery of a daemon whose writer died with a group of mails.

    Only a server may still have the transaction: locks on a file end with the process.
    """
    group = [Write(DeliverMails(DEFAULT_QUOTA), one) for one in sent]

    def settle(stores: Stores) -> Deferred[Any]:
        return processes.engines[stores is processes.other].find_outcomes_of(group)

    return settle


@pytest.mark.parametrize("processes", ["postgresql"], indirect=True)
async def test_a_group_whose_writer_has_died(processes: Processes) -> None:
    """The recovery waits for the end of the dead writer's transaction, and then reports exactly
    the stored mails.
    """
    sent = [delivery(recipient("ann"), recipient("bob")), delivery(recipient("bob"))]
    lost = delivery(recipient("ann"))
    written: Call = lambda s: _gathered([s.deliveries.deliver(one) for one in sent])  # noqa: E731
    stored, settled = await processes.race(written, settling(processes, lost, *sent))
    assert stored == [(1, 1), (2,)]
    assert isinstance(settled[0], WorkerDied)
    assert settled[1:] == stored
    # The sender was told to retry, and does so while another daemon recovers.
    (again,), (settled,) = await processes.race(delivering(lost), settling(processes, lost))
    assert settled == (again,) == (2,)


@pytest.mark.parametrize("processes", ["postgresql"], indirect=True)
async def test_recovery_while_mail_arrives(processes: Processes) -> None:
    """Groups with the same inboxes in different order are recovered and stored concurrently."""
    dead = [delivery(recipient("ann"), recipient("bob")) for _ in range(3)]
    new = delivery(recipient("bob"), recipient("ann"))
    settled, stored = await processes.race(settling(processes, *dead), delivering(new))
    assert [type(one) for one in settled] == [WorkerDied] * 3
    assert stored == (1, 1)
    settled, (other,) = await processes.race(settling(processes, new), settling(processes, new))
    assert settled == [other] == [(1, 1)]


async def test_a_last_place(processes: Processes) -> None:
    """The last place in an inbox is used once."""
    await processes.one.accounts.add_account(account("few", max_messages=1), noted())
    first, second = (delivery(recipient("few")) for _ in range(2))
    outcomes = await processes.race(delivering(first), delivering(second))
    assert outcomes[0] == (1,)
    assert isinstance(outcomes[1], InboxFull)


async def test_two_sweeps(processes: Processes) -> None:
    """Mail that two daemons delete on expiry is subtracted from the counters once."""
    await fill(processes)
    assert sum(await processes.race(lambda s: s.expiry.expire(EXPIRY, 40))) <= 60
    await processes.check()
    await processes.race(lambda s: s.expiry.expire(EXPIRY, 100))
    assert await processes.one.expiry.expire(EXPIRY, 100) == 0
    assert (await processes.one.deliveries.find_account_inbox(ANN)).message_count == 0  # type: ignore[union-attr]


async def test_a_sweep_and_new_mail(processes: Processes) -> None:
    """Mail that arrives while old mail of its tag expires is kept, with its tag."""
    await fill(processes, 3)
    new = delivery(recipient("ann", "a"), received_at=EXPIRY)
    sweep: Call = lambda s: s.expiry.expire(EXPIRY, 100)  # noqa: E731
    assert await processes.race(sweep, delivering(new)) == [3, (4,)]
    later = delivery(recipient("ann", "a"), received_at=at(0))
    outcomes = await processes.race(delivering(later), sweep)
    # The expiry run did not see uncommitted mail; the next run does.
    assert outcomes[0] == (5,)
    assert await processes.one.expiry.expire(EXPIRY, 100) == 1 - outcomes[1]


async def test_deleting_one_message(processes: Processes) -> None:
    """A message deleted by two users is deleted once."""
    (sent,) = await fill(processes, 1)
    delete: Call = lambda s: s.messages.delete_message(ANN, sent.message_ids[0], NOON)  # noqa: E731
    assert await processes.race(delete) == [True, False]


async def test_deleting_and_sweeping(processes: Processes) -> None:
    """A message that is deleted while it expires is deleted once; so are those of a filter."""
    sent = await fill(processes, 10)
    outcomes = await processes.race(
        lambda s: s.messages.delete_message(ANN, sent[3].message_ids[0], NOON),
        lambda s: s.expiry.expire(EXPIRY, 5),
    )
    assert outcomes[0] is True
    await processes.check()
    tagged = MessageFilter(tag="a")
    outcomes = await processes.race(
        lambda s: s.messages.delete_matches(ANN, tagged, NOON, 100),
        lambda s: s.expiry.expire(EXPIRY, 100),
    )
    left = 10 - 1 - 5
    assert sum(outcomes) in range(left, 10)
    assert await processes.one.expiry.expire(EXPIRY, 100) == 0


async def test_marking_as_read_and_sweeping(processes: Processes) -> None:
    """Mail that is marked as read while it is deleted or marked by another user is consistent."""
    await fill(processes, 10)

    def mark(stores: Stores) -> Deferred[int]:
        return stores.messages.mark_matches(ANN, MessageFilter(tag="a"), NOON, 100, 1)

    outcomes = await processes.race(mark, lambda s: s.expiry.expire(EXPIRY, 5))
    assert outcomes[1] == 5
    await fill(processes, 5)
    assert sum(await processes.race(mark)) == 4
    assert await processes.one.messages.count_unread(ANN, MessageFilter(tag="a"), NOON, 100) == 0


async def test_a_mail_for_two_that_one_deletes(processes: Processes) -> None:
    """Bytes that two messages share are deleted with the last one, in any order."""
    sent = delivery(recipient("ann"), recipient("bob"))
    await processes.one.deliveries.deliver(sent)
    mine, other = sent.message_ids
    outcomes = await processes.race(
        lambda s: s.messages.delete_message(ANN, mine, NOON),
        lambda s: s.messages.delete_message(BOB, other, NOON),
    )
    assert outcomes == [True, True]
    assert await processes.one.contents.raw_message(sent.id) is None


async def test_a_mail_that_is_scored_as_it_is_deleted(processes: Processes) -> None:
    """A mail is kept for the test that shares it, or creating the test fails."""
    for test_first in (True, False):
        (sent,) = await fill(processes, 1)
        test = deliverability_test(f"of{test_first}", state=State.PROCESSING)

        def score(stores: Stores, t: Any = test, m: Any = sent) -> Deferred[bool]:
            return stores.tests.add_of_message(t, m.message_ids[0], FORGET_AT)

        def delete(stores: Stores, m: Any = sent) -> Deferred[bool]:
            return stores.messages.delete_message(ANN, m.message_ids[0], NOON)

        calls = (score, delete) if test_first else (delete, score)
        assert await processes.race(*calls) == [True, test_first]
        raw = await processes.one.contents.raw_message(sent.id)
        assert (raw is not None) is test_first


async def test_content_of_a_mail_that_goes(processes: Processes) -> None:
    """Content of a mail that is deleted meanwhile is ignored."""
    (sent,) = await fill(processes, 1)
    delete: Call = lambda s: s.messages.delete_message(ANN, sent.message_ids[0], NOON)  # noqa: E731
    save: Call = lambda s: s.contents.save_content(sent.id, content())  # noqa: E731
    assert await processes.race(delete, save) == [True, None]
    (sent,) = await fill(processes, 1)
    assert await processes.race(save) == [None, None]
    assert await processes.race(save, delete) == [None, True]


async def test_content_by_rules_of_two_versions(processes: Processes) -> None:
    """If two daemons derive by older and newer rules, the newer content is kept."""
    for versions in ((1, 2), (2, 1)):
        (sent,) = await fill(processes, 1)

        def save(number: int, sent: Delivery, versions: tuple[int, int] = versions) -> Call:
            store = ContentStore(processes.engines[number], versions[number])
            text = f"version {versions[number]}"
            return lambda _: store.save_content(sent.id, content(text))

        assert await processes.race(save(0, sent), save(1, sent)) == [None, None]
        found = await ContentStore(processes.engines[1], 2).find_content(sent.id)
        assert isinstance(found, MessageContent)
        assert found.text == "version 2"


def call(path: str, *arguments: Any) -> Call:
    """Return the call of a method of a store: ``"tests.expire"``."""
    store, method = path.split(".")
    return lambda stores: getattr(getattr(stores, store), method)(*arguments)


async def race(
    processes: Processes, path: str, first: Sequence[Any], second: Sequence[Any] | None = None
) -> list[Any]:
    """Run a method in both processes; return the results, or the kinds of the exceptions."""
    arguments = first if second is None else second
    outcomes = await processes.race(call(path, *first), call(path, *arguments))
    return [type(one) if isinstance(one, Exception) else one for one in outcomes]


def _named(name: str, id_: str, **facts: Any) -> Account:
    return replace(account(id_, **facts), name=name)


def _key(name: str) -> ApiKey:
    return ApiKey(KeyId(name), ANN, name, "mck", NOON, None, None, None, None)


async def test_accounts(processes: Processes) -> None:
    """Of two accounts with a name, role or invitation one gets it; the later password counts."""
    one = processes.one
    pair = [(_named("same", name, is_operator=True), noted()) for name in ("x1", "x2")]
    assert await race(processes, "accounts.add_account", *pair) == [None, AccountNameTaken]
    operators = [(account(name, is_operator=True), noted()) for name in ("x3", "x4")]
    assert await race(processes, "accounts.add_account", *operators) == [None, None]
    accounts = await one.accounts.list_accounts()
    assert [found.name for found in accounts if found.is_operator] == ["x4"]
    for invitation in (b"1", b"2", b"3"):
        await one.passwords.add_invitation(invitation, at(100), noted(NOON))
    people = [(account(name), "$", b"1", noted()) for name in ("x5", "x6")]
    assert await race(processes, "passwords.register", *people) == [None, InvitationInvalid]
    assert await one.accounts.find_account("x6") is None
    # The invitation of a registration whose name is taken stays valid.
    people = [(_named("new", f"x{n}"), "$", b"%d" % n, noted()) for n in (2, 3)]
    assert await race(processes, "passwords.register", *people) == [None, AccountNameTaken]
    assert await one.passwords.has_invitation(b"3", NOON)
    for method, outcomes, kept in (
        ("set_first_password", [True, False], "$1"),
        ("set_password", [None, None], "$2"),
    ):
        passwords = [(ANN, text, noted()) for text in ("$1", "$2")]
        assert await race(processes, f"passwords.{method}", *passwords) == outcomes
        found = await one.passwords.find_password("ann")
        assert found is not None
        assert found.password_hash == kept


async def test_keys(processes: Processes) -> None:
    """A preset key is added once, and a key is revoked once; later uses and faults count."""
    one = processes.one
    preset = (_key("k1"), b"k1", noted()), (_key("other"), b"k1", noted())
    assert await race(processes, "accounts.add_key", *preset) == [None, None]
    await one.accounts.add_key(_key("k2"), b"k2", noted())
    assert [key.id for key in await one.accounts.list_keys(ANN)] == ["k1", "k2"]
    uses = [(KeyId("k1"), at(9)), (KeyId("k2"), at(1))]
    later = [(KeyId("k2"), at(9)), (KeyId("k1"), at(1))]
    assert await race(processes, "accounts.note_key_use", [uses], [later]) == [None, None]
    assert [key.last_used_at for key in await one.accounts.list_keys(ANN)] == [at(9), at(9)]
    faults = (KeyId("k1"), 3), (KeyId("k1"), 5)
    assert await race(processes, "accounts.set_key_fault", *faults) == [True, True]
    assert (await one.accounts.list_keys(ANN))[0].fails_every == 5
    revoked, is_set = await processes.race(
        call("accounts.revoke_key", KeyId("k1"), noted(at(9))),
        call("accounts.set_key_fault", KeyId("k1"), 7),
    )
    assert (revoked is not None, is_set) == (True, False)
    revoked = await race(processes, "accounts.revoke_key", (KeyId("k2"), noted(at(9))))
    assert [found is not None for found in revoked] == [True, False]


async def _new_test(processes: Processes, name: str) -> DeliverabilityTest:
    test = deliverability_test(name)
    await processes.one.tests.add(test, FORGET_AT)
    return test


async def _processing(processes: Processes, name: str) -> DeliverabilityTestId:
    test = await _new_test(processes, name)
    await processes.one.deliveries.deliver(delivery(addressed(test)))
    return test.id


async def test_mails_to_one_test(processes: Processes) -> None:
    """A test gets one mail; another one is rejected, an identical one is accepted and ignored.

    A test whose mail arrives while it expires is either analysed or expired.
    """
    test = await _new_test(processes, "x")
    mails = (delivery(addressed(test)),), (delivery(addressed(test), raw=mail("other")),)
    assert await race(processes, "deliveries.deliver", *mails) == [(), AddressUsed]
    test = await _new_test(processes, "y")
    copies = [(delivery(addressed(test), recipient("ann")),) for _ in range(2)]
    assert await race(processes, "deliveries.deliver", *copies) == [(1,), ()]
    test = await _new_test(processes, "z")
    expire = call("tests.expire", FORGET_AT, 10)
    assert await processes.race(delivering(delivery(addressed(test))), expire) == [(), 0]
    found = await processes.one.tests.find_any(test.id, NOON)
    assert found is not None
    assert found.test.state is State.PROCESSING


def _claim(holder: str) -> Call:
    return call("tests.claim", Lease(holder, at(30)), NOON, 8)


async def test_reports(processes: Processes) -> None:
    """A test is analysed by one daemon, and its report is stored once, despite other changes."""
    test_id = await _processing(processes, "x")
    first, second = await processes.race(_claim("one"), _claim("other"))
    assert ([test.id for test in first.tests], second.tests) == ([test_id], ())
    complete = call("tests.complete", test_id, "one", REPORT)
    fail = call("tests.fail_attempt", test_id, "one", "late", at(5))
    assert await processes.race(complete, fail) == [True, None]
    rechecked = await race(processes, "tests.recheck", (ANN, test_id, NOON))
    assert rechecked == [State.COMPLETED, State.PROCESSING]
    await _claim("one")(processes.one)
    release: Call = lambda s: s.tests.release("one", is_attempt=False)  # noqa: E731
    assert await processes.race(release, complete) == [None, False]
    renew = call("tests.renew", Lease("other", at(99)), [test_id])
    assert (await processes.race(_claim("one"), renew))[1] == frozenset()


async def test_counts_and_selectors(processes: Processes) -> None:
    """Two concurrent requests are both counted, up to the limit; all selectors are stored."""
    (day,) = ((DAY_WINDOW, 0, 3),)
    hit = [Hit(key_of("list"), (day,))]
    assert await race(processes, "counters.hit", hit) == [[[1]], [[2]]]
    assert await race(processes, "counters.hit", hit) == [[[3]], [[4]]]
    assert await processes.one.counters.hit(Hit(key_of("list"), (day,), 0)) == [[3]]
    pairs = [[("a.example", "x"), ("b.example", "x")]], [[("b.example", "y"), ("a.example", "x")]]
    assert await race(processes, "selectors.note_selectors", *pairs) == [True, True]
    assert await processes.one.selectors.selectors_of("a.example") == ("x",)
    assert await processes.one.selectors.selectors_of("b.example") == ("y", "x")
    texts = [(key_of("name"), text, 60_000) for text in ("old", "new")]
    await race(processes, "memory.keep", *texts)
    assert await processes.one.memory.recall(key_of("name")) == "new"


async def test_the_last_place(processes: Processes) -> None:
    """Concurrent requests cannot create more tests and webhooks than the maximum."""
    for number in range(MAX_PENDING - 1):
        await processes.one.tests.add(deliverability_test(f"t{number}b"), FORGET_AT)
    added = [(deliverability_test(name), FORGET_AT) for name in ("x", "y")]
    assert await race(processes, "tests.add", *added) == [None, TooManyPendingTests]
    for number in range(MOST_WEBHOOKS - 1):
        await processes.one.webhooks.add(webhook(f"w{number}"), noted(), is_from_now=True)
    first, second = await processes.race(
        lambda s: s.webhooks.add(webhook("first"), noted(), is_from_now=True),
        lambda s: s.webhooks.add(webhook("second"), noted(), is_from_now=True),
    )
    assert (first.id, type(second)) == ("first", TooManyWebhooks)


async def test_tests_that_end(processes: Processes) -> None:
    """Tests are expired, forgotten and deleted once, with mail without other references."""
    one = processes.one
    await _new_test(processes, "x")
    assert await race(processes, "tests.expire", (FORGET_AT, 10)) == [1, 0]
    test_id = await _processing(processes, "y")
    mail_of = deliverability_test("z", state=State.PROCESSING)
    (sent,) = await fill(processes, 1)
    assert await one.tests.add_of_message(mail_of, sent.message_ids[0], FORGET_AT)
    forget = call("tests.forget", Instant(FORGET_AT + DAY), 10)
    assert await processes.race(forget) == [3, 0]
    assert await one.tests.read_mail(test_id) is None
    assert await one.contents.raw_message(sent.id) == sent.raw_message
    test_id = await _processing(processes, "u")
    assert await race(processes, "tests.delete", (ANN, test_id, NOON)) == [True, False]
    assert await one.tests.read_mail(test_id) is None
    test_id = await _processing(processes, "v")
    await _claim("one")(one)
    delete = call("tests.delete", ANN, test_id, NOON)
    complete = call("tests.complete", test_id, "one", REPORT)
    assert await processes.race(delete, complete) == [True, False]
    delete = call("tests.delete", ANN, await _processing(processes, "w"), NOON)
    assert await processes.race(delete, forget) == [True, 0]
    test = await _new_test(processes, "q")
    delete = call("tests.delete", ANN, test.id, NOON)
    is_deleted, refused = await processes.race(delete, delivering(delivery(addressed(test))))
    assert (is_deleted, type(refused)) == (True, RecipientUnknown)


async def test_webhooks(processes: Processes) -> None:
    """One daemon gets the lease; changes and deletion by the owner win over a delivery."""
    for store in (processes.one, processes.other):
        assert not await store.webhooks.is_wanted("any", NOON)
    for now in (NOON, at(60)):
        holders = [(holder, now, 15_000) for holder in ("first", "second")]
        assert await race(processes, "webhooks.claim", *holders) == [True, False]
    one = await processes.one.webhooks.add(webhook("one"), noted(), is_from_now=True)
    await processes.one.webhooks.claim("mine", at(120), 15_000)
    record = call("webhooks.record", "mine", one, [WebhookDelivery("msg_1", NOON, Attempt(200), 1)])
    restart = call("webhooks.restart", ANN, one.id, None)
    kept, restarted = await processes.race(record, restart)
    assert (kept, restarted.revision) == (True, 1)
    again = await processes.race(restart, record)
    assert (again[0].revision, again[1]) == (2, False)
    assert await processes.race(call("webhooks.delete", ANN, one.id, noted()), record) == [
        True,
        False,
    ]


async def test_watches(processes: Processes) -> None:
    """A watch is made once and run by one daemon; results of a deleted watch are ignored.

    Watches that name the same URL share one webhook, which is deleted with the last one.
    """
    made, refused = await race(processes, "watches.add", (watch("one"),))
    assert (made.id, refused) == ("one", WatchExists)
    for now in (NOON, at(200)):
        holders = [(holder, now, 120_000, 4) for holder in ("first", "second")]
        found = await race(processes, "watches.claim", *holders)
        assert [[one.id for one in watches] for watches in found] == [["one"], []]
    (claimed,) = await processes.one.watches.claim("mine", at(400), 120_000, 4)
    kept = call("watches.record", "mine", RunRecord(claimed, NOON, at(60), "{}"))
    assert await processes.race(call("watches.delete", ANN, claimed.id), kept) == [True, False]
    names = ("two", "three")
    told = [
        (
            replace(watch(name), settings=WatchSettings(alert_to=("u:1",))),
            [replace(webhook(f"of {name}"), url="u:1", is_of_watches=True)],
        )
        for name in names
    ]
    await race(processes, "watches.add", *told)
    assert len(await processes.one.webhooks.of_account(ANN)) == 1
    ids = [(ANN, watch(name).id) for name in names]
    assert await race(processes, "watches.delete", *ids) == [True, True]
    assert await processes.one.webhooks.of_account(ANN) == []


def _report_of(number: int) -> ReceiverReport:
    return ReceiverReport(
        ReportId(f"report {number}"),
        ANN,
        ReportKind.DMARC,
        ReportState.COUNTED,
        NOON,
        domain="example.org",
        reporter="google.com",
        report_id="7",
        begins_at=NOON,
        ends_at=at(60),
    )


async def test_receiver_reports(processes: Processes) -> None:
    """One daemon claims a report; equal reports, and rows that both count, are counted once."""
    for number in range(2):
        sent = delivery(report_recipient("ann"), received_at=at(number))
        await processes.one.deliveries.deliver(sent)
    leases = [(Lease(name, at(300)), at(2)) for name in ("first", "second")]
    taken = await race(processes, "reports.claim", *leases)
    if taken[1] is None:  # it lost against the other claim, and tries again
        taken[1] = await processes.other.reports.claim(*leases[1])
    assert taken[0].id != taken[1].id
    read = [
        (taken[number].id, name, [_report_of(number)])
        for number, name in enumerate(("first", "second"))
    ]
    assert await race(processes, "reports.finish", *read) == [True, True]
    page = await processes.one.reports.of_account(ANN, 10, 0)
    assert sorted(one.state.value for one in page.entries) == ["counted", "repeated"]
    row = CountedRow(ANN, ReportKind.DMARC, "example.org", NOON, "d", "google.com", "{}", 5)
    await race(processes, "reports.count", [[row]])
    (kept,) = await processes.one.reports.sums(ANN, ReportKind.DMARC, "example.org", NOON, 10)
    assert kept.amount == 5

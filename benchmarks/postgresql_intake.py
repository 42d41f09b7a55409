"""Measure how fast mail is received on PostgreSQL, beside SQLite: two real daemons in one run.

Run it with ``python -m benchmarks.postgresql_intake`` (needs Debian's packages postfix and
postgresql). Both daemons get the same load from smtp-source: 5 KB messages on kept connections,
first with few sessions, then with many. The server runs on this machine with default settings, so
fsync and ``synchronous_commit`` are on. The rounds are interleaved, and the figures are medians.
After each round the number of stored messages is checked. The daemon that is not measured is
stopped.

CPU per mail is printed for the receiver (the daemon's main process), for its writer, and for all
processes of the server.

The second part measures the same while an equal number of mails expires. Before each round old mail
with its derived contents is put into the store, and the daemon is restarted. All of the old mail
has expired by then, and is deleted while the mails of the round arrive. The output says which share
was deleted when the last mail was acknowledged, because that must be nearly all. The peer has the
same old mail and the same restart.

The third part measures the store alone: mails arrive in groups while an equal number expires.

The last part measures the lower bound of CPU. A bare loop of psycopg2 sends again the statements
that the writer sent for groups of few mails. When all processors are busy, the rate follows from
the CPU time of a mail, so no writer could reach a better ratio to SQLite than the printed one:
receiver, sender and SQLite's writer, divided by receiver, sender and that loop with its server.

Targets: at least 0.8 x the rate on SQLite, also while mail expires.
"""

import argparse
import os
import resource
import signal
import sqlite3
import statistics
import tempfile
import time
from contextlib import closing, suppress
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from benchmarks.filled_store import TEXT, fill, make_delivery
from benchmarks.measuring import fsync_milliseconds
from benchmarks.smtp_intake import send
from mailcheck.core.accounts import Account, Quota
from mailcheck.core.identifiers import AccountId
from mailcheck.core.instants import DAY, SECOND, Instant
from mailcheck.engines.committing import Write, commit_group
from mailcheck.engines.database import DatabaseEngine
from mailcheck.engines.postgresql import PostgresqlEngine, upgrade_schema
from mailcheck.engines.postgresql_connection import (
    COPY_PIECE,
    INDEX_PLANS,
    PostgresqlTransaction,
    PostgresqlWriter,
)
from mailcheck.engines.postgresql_server import connect
from mailcheck.engines.schema_upgrade import schema_steps
from mailcheck.engines.sqlite import SqliteEngine
from mailcheck.store.accounts.account_store import AccountStore
from mailcheck.store.mail_delivery import DeliverMails
from mailcheck.store.messages import ExpiryStore
from mailcheck.workers.scheduling import DirectWorker
from tests.engines.deliveries import noted
from tests.servers.daemon import Daemon, running_daemon
from tests.servers.postgresql import PostgresqlServer, own_server

SESSIONS = (10, 64)
AT_LEAST = 0.8
NO_LIMIT = 10**15
TICKS = os.sysconf("SC_CLK_TCK")
GROUP = 64
SWEPT = 200
FEW = 5
"""Mails in a group of ten sessions: while it is committed, the other five mails arrive."""
FLOOR_GROUPS = 400
SIZE = 5_000  # octets


ANN = Account(AccountId("ann"), "ann", "dev-ann", False, Instant(1), None, None)


def cpu_of(pids: list[int]) -> float:
    """Return the CPU seconds that processes and their ended children have used."""
    ticks = 0
    for pid in pids:
        with suppress(FileNotFoundError):  # it has ended, and is counted by its parent
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            ticks += sum(map(int, fields[11:15]))
    return ticks / TICKS


def named(pids: list[int], name: str) -> list[int]:
    """Return the processes whose command line ends with a word."""
    return [
        pid
        for pid in pids
        if Path(f"/proc/{pid}/cmdline").read_bytes().rstrip(b"\0").endswith(name.encode())
    ]


def server_pids(server: PostgresqlServer) -> list[int]:
    """Return the processes of the server."""
    first = server.pid
    children = Path(f"/proc/{first}/task/{first}/children").read_text()
    return [first, *map(int, children.split())]


@dataclass
class Measured:
    """A daemon under load, with its figures for each round."""

    name: str
    daemon: Daemon
    server: PostgresqlServer | None
    url: str = ""
    expected: int = 0
    rates: list[float] = field(default_factory=list)
    cpu: list[tuple[float, ...]] = field(default_factory=list)
    few: tuple[float, ...] = ()
    expired: list[float] = field(default_factory=list)

    def put_old_mail(self, count: int) -> None:
        """Store old mails, and start the daemon, which begins to delete them."""
        os.killpg(self.daemon.process.pid, signal.SIGCONT)
        self.daemon.stop()
        fill(self.url, count, lambda _: "load", time.time() - 3 * DAY / SECOND, TEXT)
        os.sync()
        self.daemon.start()

    def stored(self) -> int:
        """Return the number of messages in the database, expired ones included."""
        count = "SELECT COUNT(*) FROM message"
        if self.server is not None:
            ((stored,),) = self.server.run(count, self.url.partition("?")[0].rpartition("/")[2])
        else:
            with closing(sqlite3.connect(self.url.removeprefix("sqlite:"))) as database:
                ((stored,),) = database.execute(count)
        return int(stored)

    def take_while_old_mail_expires(self, sessions: int, count: int) -> None:
        """Run one round while old mails expire, and record the share of deleted ones."""
        self.put_old_mail(count)
        before = self.stored()
        self.take(sessions, count)
        self.expired.append((before + count - self.stored()) / count)

    def take(self, sessions: int, count: int) -> None:
        """Run one round, and stop the daemon afterwards."""
        os.killpg(self.daemon.process.pid, signal.SIGCONT)
        before, began = self._used(), time.perf_counter()
        send(self.daemon.smtp_port, self.daemon.address("load"), count, sessions)
        self.rates.append(count / (time.perf_counter() - began))
        used = [(now - then) / count * 1e6 for now, then in zip(self._used(), before, strict=True)]
        self.cpu.append(tuple(used))
        self.expected += count
        if self.daemon.total() != self.expected:
            raise SystemExit(f"{self.daemon.total()} stored, {self.expected} acknowledged")
        os.killpg(self.daemon.process.pid, signal.SIGSTOP)

    def _used(self) -> tuple[float, ...]:
        main, *children = self.daemon.pids()
        server = [] if self.server is None else server_pids(self.server)
        sender = resource.getrusage(resource.RUSAGE_CHILDREN)
        return (
            cpu_of([main]),
            cpu_of(named(children, "writer")),
            cpu_of(server),
            sender.ru_utime + sender.ru_stime,
        )

    def summary(self) -> str:
        """Return the medians as text, and delete all rounds except those of few sessions."""
        used = tuple(statistics.median(one) for one in zip(*self.cpu, strict=True))
        self.few = self.few or used
        expired = f"  expired {statistics.median(self.expired):.2f}" if self.expired else ""
        receiver, writer, server, sender = used
        rate = statistics.median(self.rates)
        self.rates, self.cpu = [], []
        return (
            f"{self.name:10} {rate:6.0f} mails/s   us of CPU per mail: receiver {receiver:4.0f}"
            f"  writer {writer:4.0f}  server {server:4.0f}  sender {sender:4.0f}{expired}"
        )


def measure_intake(
    folder: Path, server: PostgresqlServer, rounds: int, count: int
) -> list[Measured]:
    """Run both daemons in turns."""
    limits: dict[str, Any] = {"inbox_max_messages": 10**9, "inbox_max_bytes": NO_LIMIT}
    urls = f"sqlite:{folder / 'intake.db'}", server.make_database("intake")
    with (
        running_daemon(folder / "sqlite", storage_url=urls[0], **limits) as on_sqlite,
        running_daemon(folder / "postgresql", storage_url=urls[1], **limits) as on_postgresql,
    ):
        both = [
            Measured("SQLite", on_sqlite, None, urls[0]),
            Measured("PostgreSQL", on_postgresql, server, urls[1]),
        ]
        for one in both:
            one.daemon.address()
            os.killpg(one.daemon.process.pid, signal.SIGSTOP)
        for expires in (False, True):
            for sessions in SESSIONS:
                for _ in range(rounds):
                    for one in both:
                        take = one.take_while_old_mail_expires if expires else one.take
                        take(sessions, count)
                show_rates(both, sessions, expires=expires)
        for one in both:
            os.killpg(one.daemon.process.pid, signal.SIGCONT)
        return both


def show_rates(both: list[Measured], sessions: int, *, expires: bool) -> None:
    """Print the results of the rounds, and delete them."""
    rates = [statistics.median(one.rates) for one in both]
    print(f"{sessions} sessions{', while as many mails expire' if expires else ''}:")
    for one in both:
        print("  " + one.summary())
    print(f"  {rates[1] / rates[0]:.2f} x SQLite's rate (at least {AT_LEAST})", flush=True)


def measure_expiry(folder: Path, server: PostgresqlServer, rounds: int, count: int) -> None:
    """Store mails in groups while as many expire, on both engines in turns."""
    worker = DirectWorker()
    engines: dict[str, DatabaseEngine] = {
        "SQLite": SqliteEngine(str(folder / "expiry.db"), worker, worker),
        "PostgreSQL": PostgresqlEngine(server.make_database("expiry"), worker, worker),
    }
    account = ANN
    runs: dict[tuple[str, bool], list[float]] = {}
    for engine in engines.values():
        engine.open()
        AccountStore(engine).add_account(account, noted())
    for number in range(rounds):
        for name, engine in engines.items():
            for expires in (False, True):
                began = time.perf_counter()
                store_and_sweep(engine, account, number * DAY * 3, count, expires=expires)
                rate = count / (time.perf_counter() - began)
                runs.setdefault((name, expires), []).append(rate)
    print(f"the store alone, groups of {GROUP}:")
    for (name, expires), rates in runs.items():
        what = "while as many expire" if expires else "mails alone"
        print(f"  {name:10} {what:22} {statistics.median(rates):6.0f} mails/s")
    for expires in (False, True):
        own, theirs = (statistics.median(runs[name, expires]) for name in ("PostgreSQL", "SQLite"))
        print(f"  {own / theirs:.2f} x SQLite's rate {'with' if expires else 'without'} expiry")
    for engine in engines.values():
        engine.close()


def store_and_sweep(
    engine: DatabaseEngine, account: Account, began: int, count: int, *, expires: bool
) -> None:
    """Store ``count`` mails, and delete the expired ones of the run before if ``expires``."""
    deliver, connection = DeliverMails(Quota(NO_LIMIT, NO_LIMIT)), engine.writer
    assert connection is not None
    start = 1_800_000_000_000 + began + (DAY * 3 // 2 if expires else 0)
    swept = stored = 0
    while stored < count:
        group = [
            Write(deliver, make_delivery(account, f"t{stored + n}", Instant(start + stored + n)))
            for n in range(GROUP)
        ]
        commit_group(connection, group)
        stored += GROUP
        if expires and stored - swept >= SWEPT:
            sweep = Write(ExpiryStore.expire, (None, (Instant(start), SWEPT), {}))
            (gone,) = commit_group(connection, [sweep])
            swept += SWEPT if gone else 0


Sent = list[tuple[bytes, bytes | None]]
"""Statements that were sent together, and the rows that were sent with them."""


class RecordingWriter(PostgresqlWriter):
    """A writer that records the statements it sends."""

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self.sent: Sent = []

    def begin(self) -> PostgresqlTransaction:
        """Begin a transaction whose statements are recorded."""
        transaction = super().begin()
        assert isinstance(transaction, PostgresqlTransaction)
        send = transaction.send

        def keep(statement: bytes, *, is_retryable: bool = True) -> None:
            rows = None if transaction._copied is None else transaction._copied.getvalue()
            self.sent.append((b";\n".join([*transaction._pending, statement]), rows))
            send(statement, is_retryable=is_retryable)

        transaction.send = keep  # type: ignore[method-assign]
        return transaction

    @property
    def prepared(self) -> list[str]:
        """Return the statements that were prepared."""
        known = self._connection._prepared.items()
        return [f"PREPARE {name} AS {statement}" for statement, name in known]


def measure_floor(server: PostgresqlServer, sqlite: Measured, rounds: int) -> None:
    """Send the recorded statements again, and print the CPU time."""
    writer = RecordingWriter(empty_store(server, "recorded"))
    raw = b"From: <load@example.com>\r\nSubject: Load\r\n\r\n".ljust(SIZE, b"x")
    deliver = DeliverMails(Quota(NO_LIMIT, NO_LIMIT))
    for number in range(FLOOR_GROUPS):
        mails = [
            make_delivery(ANN, "load", Instant(1_800_000_000_000 + number * FEW + n))
            for n in range(FEW)
        ]
        commit_group(writer, [Write(deliver, replace(one, raw_message=raw)) for one in mails])
    taken = [send_again(server, writer, f"floor_{number}") for number in range(rounds)]
    writer.close()
    client, its_server = (statistics.median(one) for one in zip(*taken, strict=True))
    receiver, of_sqlite, _, sender = sqlite.few
    ratio = (receiver + of_sqlite + sender) / (receiver + client + its_server + sender)
    print(
        f"a bare loop of psycopg2, groups of {FEW}: us of CPU per mail: loop {client:.0f}"
        f"  server {its_server:.0f}\n"
        f"  {ratio:.2f} x SQLite's rate is the upper bound for any writer at"
        f" {SESSIONS[0]} sessions where all processors are busy"
    )


def send_again(server: PostgresqlServer, writer: RecordingWriter, name: str) -> tuple[float, float]:
    """Send the recorded statements to another database, and return CPU microseconds per mail."""
    connection = connect(empty_store(server, name), INDEX_PLANS)
    with connection.cursor() as cursor:
        for statement in writer.prepared:
            cursor.execute(statement)
        pids = server_pids(server)
        before = time.process_time(), cpu_of(pids)
        for statements, rows in writer.sent:
            if rows is None:
                cursor.execute(statements)
            else:
                cursor.copy_expert(statements, BytesIO(rows), COPY_PIECE)
        after = time.process_time(), cpu_of(pids)
    connection.close()
    mails = FLOOR_GROUPS * FEW
    return (after[0] - before[0]) / mails * 1e6, (after[1] - before[1]) / mails * 1e6


def empty_store(server: PostgresqlServer, name: str) -> str:
    """Create a database with one account, and return its URL."""
    url = server.make_database(name)
    upgrade_schema(url, schema_steps())
    engine = PostgresqlEngine(url, DirectWorker(), DirectWorker())
    engine.open()
    AccountStore(engine).add_account(ANN, noted())
    engine.close()
    return url


def main() -> None:
    """Measure, and print the results."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only-intake", action="store_true", help="skip the store alone")
    parser.add_argument("--messages", type=int, default=5_000, help="number in each round")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="mailcheck-bench-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        print(f"fsync of 4 KiB in {folder}: {fsync_milliseconds(folder):.2f} ms (median)")
        with own_server(folder / "server") as server:
            sqlite, _ = measure_intake(folder, server, options.rounds, options.messages)
            if options.only_intake:
                return
            measure_expiry(folder, server, options.rounds, options.messages)
            measure_floor(server, sqlite, options.rounds)


if __name__ == "__main__":
    main()

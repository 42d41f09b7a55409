"""Measure what a store of many mails with different bodies costs: file, memory, lists, searches.

    nice -n 19 .venv/bin/python -m benchmarks.capacity [--sizes 10000,100000] [--postgresql]
        [--folder DIR]

For each number of mails, it prints the bytes of the store for each mail, the seconds of a start and
the memory of an idle daemon after it, the times of the first page of a list and of searches with
``q`` for a rare, a common and an absent word, and the speed with which retention deletes all of it.
It also builds an index of trigrams over the same texts, as a second way to search: SQLite's FTS5,
or pg_trgm. Bodies have 20 to 400 words of a vocabulary in which few words are frequent, as in
natural language. Times are medians of several requests to a real daemon. On a busy machine, only
CPU times, bytes and memory can be compared.
"""

import argparse
import itertools
import os
import random
import shutil
import sqlite3
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path

import psycopg2
from msgspec.structs import replace
from twisted.internet.defer import Deferred
from twisted.internet.task import Clock

from benchmarks.filled_store import GROUP, NO_LIMIT, BatchWorker, make_delivery
from benchmarks.measuring import own_pss_bytes, processes
from mailcheck.assembly.accounts import build_accounts
from mailcheck.assembly.runtime import open_runtime, time_and_chance_of
from mailcheck.assembly.workers import Workers
from mailcheck.checks.content.derive import derive_content
from mailcheck.config.options import Config, StorageOptions
from mailcheck.core.accounts import Account, Quota
from mailcheck.core.content import MessageContent
from mailcheck.core.instants import DAY, Instant
from mailcheck.daemon.retention import Retention
from mailcheck.store.content_store import ContentStore
from mailcheck.store.mail_store import MailStore
from mailcheck.store.messages import ExpiryStore
from mailcheck.workers.scheduling import DirectWorker
from tests.servers.daemon import Daemon, running_daemon
from tests.servers.postgresql import PostgresqlServer, own_server

SIZES = (10_000, 100_000)
REPEATS = 7
SLOW = 2.0
"""Seconds from which a request is sent only twice."""

VOCABULARY = 50_000
RARE_EVERY = 5_000
"""One mail in this many contains the rare word."""

RARE, COMMON, ABSENT = "zanzibarite", "invoice", "quxquuxcorge"
COMMON_SHARE = 0.3

WORDS = [
    f"{stem}{number:x}"
    for number, stem in zip(
        range(VOCABULARY),
        itertools.cycle(
            (
                "order",
                "ship",
                "track",
                "pay",
                "deliver",
                "account",
                "market",
                "summer",
                "price",
                "news",
            )
        ),
        strict=False,
    )
]
WEIGHTS = list(itertools.accumulate(1 / rank for rank in range(1, VOCABULARY + 1)))


def body_of(number: int) -> bytes:
    """Return the mail with a number, which is always the same."""
    choices = random.Random(number)
    words = choices.choices(WORDS, cum_weights=WEIGHTS, k=choices.randint(20, 400))
    if number % RARE_EVERY == RARE_EVERY // 2:
        words[5] = RARE
    if choices.random() < COMMON_SHARE:
        words[7] = COMMON
    lines = [" ".join(words[at : at + 12]) for at in range(0, len(words), 12)]
    text = "\r\n".join(lines)
    head = f"From: Shop <shop@example.com>\r\nSubject: {words[0]} {number}\r\n\r\n"
    return f"{head}{text}\r\nhttps://example.com/{number:x}\r\n".encode()


def fill(url: str, count: int, distinct: int) -> float:
    """Store mails in the inbox of the first account; return the CPU seconds for each mail.

    After ``distinct`` mails, their bodies and contents are stored again, to save time.
    """
    config = Config(storage=StorageOptions(url=url))
    worker, clock = BatchWorker(), Clock()
    runtime = open_runtime(
        config,
        clock,
        time_and_chance_of(config, clock.seconds, clock, os.urandom),
        Workers(worker, DirectWorker(), DirectWorker()),
    )
    runtime.engine.open()
    mails, contents = (
        MailStore(runtime.engine, Quota(NO_LIMIT, NO_LIMIT)),
        ContentStore(runtime.engine),
    )
    accounts: list[list[Account]] = []
    Deferred.fromCoroutine(build_accounts(runtime).keep.accounts()).addCallback(accounts.append)
    stored: dict[int, tuple[bytes, MessageContent]] = {}

    def made(number: int) -> tuple[bytes, MessageContent]:
        raw = body_of(number)
        return raw, derive_content(raw)

    began, used = time.time() - count / 1000 - 1, time.process_time()
    for number in range(count):
        raw, content = stored[number % distinct] if number >= distinct else made(number)
        stored[number % distinct] = raw, content
        delivery = make_delivery(
            accounts[0][0], f"t{number % 50}", Instant(int(began * 1000) + number)
        )
        mails.deliver(
            replace(delivery, raw_message=raw, expires_at=Instant(delivery.received_at + 7 * DAY))
        )
        contents.save_content(delivery.id, content)
        if number % GROUP == 0:
            worker.run_all()
    worker.run_all()
    runtime.engine.close()
    return (time.process_time() - used) / count


def expire_all(url: str, count: int) -> float:
    """Let all mail expire; return the mails deleted in a second."""
    config = Config(storage=StorageOptions(url=url))
    worker, clock = DirectWorker(), Clock()
    runtime = open_runtime(
        config,
        clock,
        time_and_chance_of(config, clock.seconds, clock, os.urandom),
        Workers(worker, worker, worker),
    )
    runtime.engine.open()
    later = Instant(int((time.time() + 30 * 86_400) * 1000))
    retention = Retention(ExpiryStore(runtime.engine), 7 * DAY, lambda: later, lambda _: None)
    began = time.monotonic()
    ended: list[object] = []
    Deferred.fromCoroutine(retention.sweep()).addBoth(ended.append)
    assert ended == [None], ended
    runtime.engine.close()
    return count / (time.monotonic() - began)


def timed(daemon: Daemon, path: str) -> float:
    """Return the median milliseconds of a request."""
    taken = []
    for _ in range(REPEATS):
        began = time.monotonic()
        answer = daemon.get(path)
        assert answer.status == 200, answer.body
        taken.append(time.monotonic() - began)
        if len(taken) == 2 and taken[-1] > SLOW:
            break
    return statistics.median(taken) * 1000


def trigrams_of_file(path: Path) -> str:
    """Build an index of FTS5 in a copy of a file, and describe its cost and its searches."""
    copy = path.with_name("trigrams.db")
    shutil.copy(path, copy)
    with closing(sqlite3.connect(copy, isolation_level=None)) as connection:
        (before,) = connection.execute(
            "SELECT page_count * page_size FROM pragma_page_count, pragma_page_size"
        ).fetchone()
        (count,) = connection.execute("SELECT COUNT(*) FROM content").fetchone()
        used = time.process_time()
        connection.execute(
            "CREATE VIRTUAL TABLE trigrams USING fts5(text, content='', tokenize='trigram')"
        )
        connection.execute("BEGIN")
        connection.execute("INSERT INTO trigrams (rowid, text) SELECT rowid, text_key FROM content")
        connection.execute("COMMIT")
        used = time.process_time() - used
        (after,) = connection.execute(
            "SELECT page_count * page_size FROM pragma_page_count, pragma_page_size"
        ).fetchone()

        def search(word: str) -> None:
            connection.execute(
                "SELECT rowid FROM trigrams WHERE text MATCH ? ORDER BY rowid DESC LIMIT 50",
                (f'"{word}"',),
            ).fetchall()

        times = _search_times(search)
    copy.unlink()
    return _described(count, after - before, used * 1000 / count, times)


def trigrams_of_server(server: PostgresqlServer, url: str) -> str:
    """Build an index of pg_trgm, and describe its cost and its searches."""
    with closing(psycopg2.connect(url)) as connection, connection.cursor() as cursor:
        connection.autocommit = True
        cursor.execute("CREATE EXTENSION IF NOT EXISTS pg_trgm")
        cursor.execute("SELECT COUNT(*) FROM content")
        (count,) = cursor.fetchone() or (0,)
        began = time.monotonic()
        cursor.execute("CREATE INDEX trigrams ON content USING gin (text_key gin_trgm_ops)")
        taken = time.monotonic() - began
        cursor.execute("SELECT pg_relation_size('trigrams')")
        (size,) = cursor.fetchone() or (0,)
        cursor.execute("ANALYZE content")

        def search(word: str) -> None:
            cursor.execute("SELECT * FROM content WHERE text_key LIKE %s LIMIT 50", (f"%{word}%",))
            cursor.fetchall()

        times = _search_times(search)
        cursor.execute("DROP INDEX trigrams")
    return _described(count, size, taken * 1000 / count, times)


def _search_times(search: Callable[[str], None]) -> dict[str, float]:
    times = {}
    for name, word in (("rare", RARE), ("common", COMMON), ("absent", ABSENT)):
        taken = []
        for _ in range(REPEATS):
            began = time.monotonic()
            search(word)
            taken.append(time.monotonic() - began)
        times[name] = statistics.median(taken) * 1000
    return times


def _described(count: int, size: int, cost: float, times: dict[str, float]) -> str:
    searches = ", ".join(f"{name} {taken:.1f} ms" for name, taken in times.items())
    return f"{size / count:.0f} bytes and {cost:.2f} ms for each mail; bare searches: {searches}"


def measure(folder: Path, count: int, server: PostgresqlServer | None, distinct: int) -> None:
    """Fill a store, and print its figures."""
    folder.mkdir()
    url = f"sqlite:{folder / 'mailcheck.db'}"
    if server is not None:
        url = server.make_database(f"capacity_{count}")
    options = {
        "inbox_max_messages": NO_LIMIT,
        "inbox_max_bytes": NO_LIMIT,
        "spamassassin_spamd": "off",
    }
    print(f"{count:,} mails, {'PostgreSQL' if server else 'SQLite'}", flush=True)
    with running_daemon(folder, storage_url=url, **options) as daemon:
        daemon.stop()
        raw = sum(len(body_of(number)) for number in range(0, count, 100)) * 100 / count
        cpu = fill(url, count, distinct) * 1000
        print(f"  filled with {cpu:.2f} ms of CPU, {raw:.0f} bytes for each mail", flush=True)
        size = _size(folder, server, url)
        print(f"  store: {size / 1e6:.0f} MB, {size / count:.0f} bytes for each mail", flush=True)
        os.sync()
        seconds = daemon.start()
        time.sleep(4)
        memory = sum(map(own_pss_bytes, processes(daemon.process.pid))) / 1e6
        print(
            f"  start: {seconds:.1f} s; memory of all processes (PSS): {memory:.0f} MB", flush=True
        )
        for name, path in (
            ("list", "/inbox/messages?limit=50"),
            ("rare", f"/inbox/messages?q={RARE}"),
            ("common", f"/inbox/messages?q={COMMON}"),
            ("absent", f"/inbox/messages?q={ABSENT}"),
        ):
            print(f"  {name}: {timed(daemon, path):.1f} ms", flush=True)
        memory = sum(map(own_pss_bytes, processes(daemon.process.pid))) / 1e6
        print(f"  memory after the searches (PSS): {memory:.0f} MB", flush=True)
        daemon.stop()
        trigrams = (
            trigrams_of_file(folder / "mailcheck.db")
            if server is None
            else trigrams_of_server(server, url)
        )
        print(f"  index of trigrams: {trigrams}", flush=True)
        print(f"  retention: {expire_all(url, count):,.0f} mails deleted in a second", flush=True)
        daemon.start()
        daemon.stop()


def _size(folder: Path, server: PostgresqlServer | None, url: str) -> int:
    if server is None:
        return sum(
            one.stat().st_size for one in folder.glob("mailcheck.db*") if "reserve" not in one.name
        )
    name = url.partition("?")[0].rpartition("/")[2]
    server.run("VACUUM (ANALYZE)", name)
    ((size,),) = server.run(f"SELECT pg_database_size('{name}')")
    return int(size)


@contextmanager
def place(
    folder: str | None, *, on_postgresql: bool
) -> Iterator[tuple[Path, PostgresqlServer | None]]:
    """Yield a folder, and a database server of its own for PostgreSQL."""
    with ExitStack() as running:
        made = running.enter_context(
            tempfile.TemporaryDirectory(prefix="mailcheck-capacity-", dir=folder)
        )
        path = Path(made)
        path.chmod(0o755)
        server = running.enter_context(own_server(path / "server")) if on_postgresql else None
        yield path, server


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure all sizes."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--sizes", default=",".join(map(str, SIZES)), help="numbers of mails")
    parser.add_argument("--postgresql", action="store_true", help="use a PostgreSQL server")
    parser.add_argument(
        "--distinct", type=int, help="number of different bodies; by default, each mail has its own"
    )
    parser.add_argument("--folder", help="folder for the stores, on the disk to be measured")
    options = parser.parse_args(arguments)
    with place(options.folder, on_postgresql=options.postgresql) as (folder, server):
        for count in map(int, options.sizes.split(",")):
            measure(folder / f"of-{count}", count, server, options.distinct or count)


if __name__ == "__main__":
    main()

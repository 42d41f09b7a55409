"""Measure what a store of many mails with different bodies costs: file, memory, lists, searches.

    nice -n 19 .venv/bin/python -m benchmarks.capacity [--sizes 10000,100000] [--postgresql]
        [--folder DIR]

For each number of mails, it prints the bytes of the store for each mail, the seconds of a start and
the memory of an idle daemon after it, the times of the first page of a list and of searches with
``q`` for a rare, a common and an absent word, and the speed with which retention deletes all of it.
It also builds an index of trigrams over the same texts, as a second way to search: SQLite's FTS5,
or pg_trgm. Each mail has a body of its own: 20 to 400 words of a vocabulary in which few words are
frequent, as in natural language. Times are medians of several requests to a real daemon, followed
by the CPU time of its processes. On a busy machine, only CPU times, bytes and memory can be
compared.
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
from benchmarks.measuring import cpu_seconds, own_pss_bytes, processes
from mailcheck.assembly.accounts import build_accounts
from mailcheck.assembly.runtime import open_runtime, time_and_chance_of
from mailcheck.assembly.workers import Workers
from mailcheck.checks.content.derive import derive_content
from mailcheck.config.options import Config, StorageOptions
from mailcheck.core.accounts import Account, Quota
from mailcheck.core.content import Candidate, CandidateKind, MessageContent, fold_text, sign_text
from mailcheck.core.instants import DAY, HOUR, Instant
from mailcheck.daemon.retention import Retention
from mailcheck.store.content_store import ContentStore
from mailcheck.store.mail_store import MailStore
from mailcheck.store.messages import ExpiryStore
from mailcheck.workers.scheduling import DirectWorker
from tests.servers.daemon import Daemon, running_daemon
from tests.servers.postgresql import PostgresqlServer, own_server

SIZES = (10_000, 100_000)
KEPT = 7 * DAY
SAMPLE = 300
"""Number of mails whose content is derived to measure it."""

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


def text_of(number: int) -> str:
    """Return the text of the mail with a number, which is always the same."""
    choices = random.Random(number)
    words = choices.choices(WORDS, cum_weights=WEIGHTS, k=choices.randint(20, 400))
    if number % RARE_EVERY == RARE_EVERY // 2:
        words[5] = RARE
    if choices.random() < COMMON_SHARE:
        words[7] = COMMON
    lines = [" ".join(words[at : at + 12]) for at in range(0, len(words), 12)]
    return "\n".join((*lines, f"https://example.com/{number:x}", ""))


def raw_of(number: int, text: str) -> bytes:
    """Return the mail with a number and its text."""
    subject = f"{text.partition(' ')[0]} {number}"
    head = f"From: Shop <shop@example.com>\nSubject: {subject}\n\n"
    return f"{head}{text}".replace("\n", "\r\n").encode()


def content_of(number: int, text: str) -> MessageContent:
    """Return what would be derived from a mail, in a tenth of the time."""
    searched = fold_text(text)
    link = text.split()[-1]
    return MessageContent(
        header_list=(
            ("From", "Shop <shop@example.com>"),
            ("Subject", f"{text.partition(' ')[0]} {number}"),
        ),
        text=text,
        html="",
        attachments=(),
        links=(link,),
        best_link=link,
        codes=(),
        candidates=(Candidate(CandidateKind.LINK, link, 10, True, ("the only link",)),),
        problems=(),
        snippet=searched[:160],
        searched=searched,
        signature=sign_text(searched),
    )


def derivation_milliseconds() -> float:
    """Return the CPU time in which the content of a mail is derived."""
    raws = [raw_of(number, text_of(number)) for number in range(SAMPLE)]
    used = time.process_time()
    for raw in raws:
        derive_content(raw)
    return (time.process_time() - used) / SAMPLE * 1000


def fill(url: str, count: int) -> float:
    """Store mails in the inbox of the first account; return the octets of each mail."""
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
    began, octets = time.time() - count / 1000 - 1, 0
    for number in range(count):
        text = text_of(number)
        raw = raw_of(number, text)
        octets += len(raw)
        delivery = make_delivery(
            accounts[0][0], f"t{number % 50}", Instant(int(began * 1000) + number)
        )
        mails.deliver(
            replace(
                delivery,
                raw_message=raw,
                expires_at=Instant(delivery.received_at + KEPT),
            )
        )
        contents.save_content(delivery.id, content_of(number, text))
        if number % GROUP == 0:
            worker.run_all()
    worker.run_all()
    runtime.engine.close()
    return octets / count


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
    retention = Retention(ExpiryStore(runtime.engine), KEPT, lambda: later, lambda _: None)
    began = time.monotonic()
    ended: list[object] = []
    Deferred.fromCoroutine(retention.sweep()).addBoth(ended.append)
    assert ended == [None], ended
    runtime.engine.close()
    return count / (time.monotonic() - began)


def timed(daemon: Daemon, path: str) -> str:
    """Return the median time of a request, and the CPU time of the daemon for each."""
    taken: list[float] = []
    used = cpu_seconds(daemon.process.pid)
    while len(taken) < (REPEATS if not taken or taken[-1] < SLOW else 2):
        began = time.monotonic()
        answer = daemon.get(path)
        assert answer.status == 200, answer.body
        taken.append(time.monotonic() - began)
    used = (cpu_seconds(daemon.process.pid) - used) / len(taken)
    return f"{statistics.median(taken) * 1000:.0f} ms, {used * 1000:.0f} ms of CPU"


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


def measure(folder: Path, count: int, server: PostgresqlServer | None) -> None:
    """Fill a store, and print its figures."""
    folder.mkdir()
    url = f"sqlite:{folder / 'mailcheck.db'}"
    if server is not None:
        url = server.make_database(f"capacity_{count}")
    options = {
        "inbox_max_messages": NO_LIMIT,
        "inbox_max_bytes": NO_LIMIT,
        "inbox_retention_hours": KEPT // HOUR,
        "spamassassin_spamd": "off",
    }
    print(f"{count:,} mails, {'PostgreSQL' if server else 'SQLite'}", flush=True)
    with running_daemon(folder, storage_url=url, **options) as daemon:
        daemon.stop()
        print(f"  mails of {fill(url, count):.0f} bytes", flush=True)
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
            print(f"  {name}: {timed(daemon, path)}", flush=True)
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
    parser.add_argument("--folder", help="folder for the stores, on the disk to be measured")
    options = parser.parse_args(arguments)
    with place(options.folder, on_postgresql=options.postgresql) as (folder, server):
        print(f"content is derived with {derivation_milliseconds():.2f} ms of CPU for each mail")
        for count in map(int, options.sizes.split(",")):
            measure(folder / f"of-{count}", count, server)


if __name__ == "__main__":
    main()

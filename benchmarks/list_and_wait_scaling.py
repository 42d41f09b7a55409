"""Compare lists and waits over 1,000 and over 200,000 stored messages.

Run it with ``python benchmarks/list_and_wait_scaling.py``, and with ``--postgresql`` for stores on
a real PostgreSQL (Debian's package postgresql). Two real daemons, one with few and one with many
messages in its inbox, get the same requests in turns on kept connections. The figures are medians,
and the ratio shows the additional cost of the larger store. A tenth of the messages has one tag.
The others have hundreds of tags (few messages) or thousands (many).

The peer is a simple mail store in the same run: one SQLite table with an index on its key only. It
is queried for a page, for a tag's page with its total, and for the tags with their counts, without
HTTP. It shows which queries become slower without further measures.

Targets: at most 1.5 x. Filters on From and Subject, where every message has another subject, take
at most 3 x once the headers are cached in memory. The first such request reads them and is printed
apart; inboxes of more than 500,000 messages are not cached. ``q`` searches an inbox of 10,000
messages, the quota, with 4 KB of text each within 100 ms.
"""

import argparse
import json
import os
import sqlite3
import statistics
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cached_property
from itertools import count as counting
from pathlib import Path
from typing import Any

from benchmarks.filled_store import NO_LIMIT, RAW, TEXT, fill
from benchmarks.waiting_clients import Connection
from tests.servers.daemon import API, HOST, Daemon, running_daemon
from tests.servers.postgresql import PostgresqlServer, own_server

FEW, MANY = 1_000, 200_000
BUSY_TAG, BUSY_SHARE = "busy", 10
MOST_TAGS = 20_000
QUOTA = 10_000
AT_MOST, FILTERED_AT_MOST = 1.5, 3.0
SEARCHED_AT_MOST = 100.0  # milliseconds
FRESH = counting(1)
LONG_WAIT = 1.0  # seconds


def tag_of(number: int) -> str:
    """Return the tag of a message."""
    return BUSY_TAG if number % BUSY_SHARE == 0 else f"t{number % MOST_TAGS}"


@dataclass(frozen=True)
class Store:
    """A daemon with a number of messages, and one connection to it."""

    daemon: Daemon
    count: int
    middle: str
    since: str

    @cached_property
    def connection(self) -> Connection:
        """Return the connection, opened at the first request because idle ones are closed."""
        return Connection(self.daemon.http_port)

    def ask(self, path: str, status: int = 200) -> tuple[Any, float]:
        """Send a request, and return the response and the milliseconds it took."""
        path = path.format(middle=self.middle, since=self.since, fresh=next(FRESH))
        head = f"GET {API}{path} HTTP/1.1\r\nHost: {HOST}\r\nX-API-Key: {self.daemon.key}"
        began = time.perf_counter()
        self.connection.send(f"{head}\r\n\r\n".encode())
        response, ended = self.connection.read()
        return json.loads(response.body(status)), (ended - began) * 1e3


PROMISED = (
    "/inbox",
    "/inbox/address",
    "/inbox/messages",
    f"/inbox/messages?tag={BUSY_TAG}",
    "/inbox/messages?tag=t7&limit=1",
    "/inbox/messages?after={middle}&limit=20",
    "/inbox/messages?since={since}",
    f"/inbox/wait?tag={BUSY_TAG}&after={{middle}}",
    "/inbox/wait?after={middle}",
    "/inbox/wait?since={since}",
    f"/inbox/wait?tag={BUSY_TAG}&since={{since}}",
)

FILTERED = (
    "/inbox/messages?from=shop",
    "/inbox/messages?from=nobody",
    "/inbox/messages?subject=welcome",
    "/inbox/messages?subject=welcome&page=3",
    "/inbox/messages?subject=welcome+{fresh}",
    "/inbox/messages?from=shop&subject={fresh}",
)
"""``fresh`` is another number each time, so that no earlier result can be reused."""

SEARCHED = (
    "/inbox/messages?q=nowhere",
    "/inbox/messages?q=newsletter",
    "/inbox/messages?q=ordinary+nowhere",
    "/inbox/messages?q=subject:welcome",
    "/inbox/messages?q=has:code",
    "/inbox/messages?text=nowhere",
)

IN_VAIN = f"/inbox/wait?tag=none&timeout={LONG_WAIT:g}"


@contextmanager
def filled(
    folder: Path, count: int, server: PostgresqlServer | None, text: bytes = b""
) -> Iterator[Store]:
    """Create an account, fill its inbox, and run a daemon on it until the context ends."""
    options: dict[str, Any] = {"inbox_max_messages": NO_LIMIT, "inbox_max_bytes": NO_LIMIT}
    url = f"sqlite:{folder / 'mailcheck.db'}"
    if server is not None:
        url = server.make_database(f"with_{count}")
    with running_daemon(folder, storage_url=url, **options) as daemon:
        daemon.stop()
        fill(url, count, tag_of, time.time() - count / 1000 - 1, text)
        if server is not None:
            vacuum(server, url)
        yield start(daemon, count)
        if server is not None:
            daemon.stop()


@contextmanager
def place(*, on_postgresql: bool) -> Iterator[tuple[Path, PostgresqlServer | None]]:
    """Yield a folder, and a database server of its own for PostgreSQL."""
    with ExitStack() as running:
        folder = Path(running.enter_context(tempfile.TemporaryDirectory(prefix="mailcheck-bench-")))
        folder.chmod(0o755)
        server = running.enter_context(own_server(folder / "server")) if on_postgresql else None
        yield folder, server


def vacuum(server: PostgresqlServer, url: str) -> None:
    """Vacuum now, so that autovacuum does not start during the measurement."""
    server.run("VACUUM (ANALYZE)", url.partition("?")[0].rpartition("/")[2])


def start(daemon: Daemon, count: int) -> Store:
    """Start a daemon whose inbox was filled."""
    os.sync()  # so that the disk is idle when reading is measured
    daemon.start()
    # The same position in both: twenty messages before the end.
    newest = daemon.get("/inbox/messages", limit=20).json["messages"]
    return Store(
        daemon,
        count,
        newest[-1]["cursor"],
        newest[-1]["receivedAt"],
    )


def compare(stores: list[Store], path: str, repeats: int) -> list[float]:
    """Return the median time of a request for each store, sent in turns."""
    times: list[list[float]] = [[] for _ in stores]
    for _ in range(repeats):
        for store, taken in zip(stores, times, strict=True):
            taken.append(store.ask(path)[1])
    return [statistics.median(taken) for taken in times]


def compare_in_vain(stores: list[Store], repeats: int) -> list[float]:
    """Return how many milliseconds late a wait without a match ends."""
    times = [
        [store.ask(IN_VAIN, 408)[1] - LONG_WAIT * 1e3 for _ in range(repeats)] for store in stores
    ]
    return [statistics.median(taken) for taken in times]


def plain_table(count: int) -> sqlite3.Connection:
    """Create the table of the peer."""
    database = sqlite3.connect(":memory:")
    database.execute("CREATE TABLE mail (id INTEGER PRIMARY KEY, tag TEXT, at INTEGER, raw BLOB)")
    rows = ((number, tag_of(number), number, RAW) for number in range(count))
    database.executemany("INSERT INTO mail VALUES (?, ?, ?, ?)", rows)
    return database


def compare_plain(tables: list[sqlite3.Connection], *queries: str) -> list[float]:
    """Return the milliseconds that queries take in each table."""
    times = []
    for table in tables:
        began = time.perf_counter()
        for query in queries:
            table.execute(query).fetchall()
        times.append((time.perf_counter() - began) * 1e3)
    return times


def show(what: str, times: list[float], target: float | None = None) -> None:
    """Print a line of the results."""
    few, many = times
    verdict = "" if target is None else "   ok" if many / few <= target else "   TOO MUCH"
    print(f"{what:46} {few:9.2f} ms {many:9.2f} ms {many / few:8.2f} x{verdict}", flush=True)


def show_plain(counts: tuple[int, int]) -> None:
    """Measure the peer, and print its results."""
    tables = [plain_table(count) for count in counts]
    queries: dict[str, tuple[str, ...]] = {
        "page and total of a tag": (
            f"SELECT id, tag, at FROM mail WHERE tag = '{BUSY_TAG}' ORDER BY at DESC LIMIT 50",
            f"SELECT COUNT(*) FROM mail WHERE tag = '{BUSY_TAG}'",
        ),
        "tags with their counts": ("SELECT tag, COUNT(*), MAX(at) FROM mail GROUP BY tag",),
        "oldest of a tag since": (f"SELECT id FROM mail WHERE tag = 'none' AND at > {FEW}",),
    }
    for what, some in queries.items():
        show(f"plain table: {what}", compare_plain(tables, *some))


def measure(stores: list[Store], repeats: int) -> None:
    """Measure all requests, and print their results."""
    for path in PROMISED:
        compare(stores, path, repeats)  # warm up both daemons after their start
    for path in PROMISED:
        show(path, compare(stores, path, repeats), AT_MOST)
    in_vain = compare_in_vain(stores, max(3, repeats // 10))
    show(f"{IN_VAIN}: beyond", in_vain, AT_MOST)
    first = FILTERED[0]
    show(f"{first}: the first time", [store.ask(first)[1] for store in stores])
    for path in FILTERED:
        show(path, compare(stores, path, max(5, repeats // 10)), FILTERED_AT_MOST)


def measure_searches(store: Store, repeats: int) -> None:
    """Measure searches in texts, and print their results."""
    for path in SEARCHED:
        (taken,) = compare([store], path, max(5, repeats // 10))
        verdict = "ok" if taken <= SEARCHED_AT_MOST else "TOO LONG"
        print(f"{path:46} {taken:9.2f} ms {'':24} {verdict}", flush=True)


def main() -> None:
    """Measure, and print the results."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--few", type=int, default=FEW)
    parser.add_argument("--many", type=int, default=MANY)
    parser.add_argument("--repeats", type=int, default=100)
    parser.add_argument("--postgresql", action="store_true", help="use PostgreSQL, not SQLite")
    options = parser.parse_args()
    counts = (options.few, options.many)
    with ExitStack() as running:
        folder, server = running.enter_context(place(on_postgresql=options.postgresql))
        few, many = (
            running.enter_context(filled(folder / str(count), count, server)) for count in counts
        )
        print(f"{'':46} {counts[0]:12,} {counts[1]:12,}    (messages stored)")
        measure([few, many], options.repeats)
    show_plain(counts)
    with ExitStack() as running:
        folder, server = running.enter_context(place(on_postgresql=options.postgresql))
        store = running.enter_context(filled(folder / "quota", QUOTA, server, TEXT))
        print(f"{'':46} {QUOTA:12,}    (messages stored, of 4 KB)")
        measure_searches(store, options.repeats)


if __name__ == "__main__":
    main()

"""Disk usage of mail in PostgreSQL, and the statements of docs/how-to/limit-disk-usage.md."""

import re
from pathlib import Path
from typing import Any

import psycopg2
from msgspec.structs import replace

from benchmarks.postgresql_disk import SIZES, TARGET, Writer
from mailcheck.checks.content.derive import derive_content
from mailcheck.core.accounts import Quota
from mailcheck.core.content import MessageContent
from mailcheck.engines.postgresql import PostgresqlEngine
from mailcheck.store.accounts.account_store import AccountStore
from mailcheck.store.content_store import (
    LOADED,
    SIGNED_FROM,
    ContentStore,
    dump_content,
    load_content,
)
from mailcheck.store.mail_store import MailStore
from mailcheck.workers.scheduling import DirectWorker
from tests.engines.deliveries import account, content, delivery, noted, recipient
from tests.house import result_of
from tests.table import rows

PAGE = (Path(__file__).parents[2] / "docs" / "how-to" / "limit-disk-usage.md").read_text("utf-8")


def sizes(connection: psycopg2.extensions.connection) -> int:
    """Return the bytes of all tables with their indexes."""
    with connection.cursor() as cursor:
        cursor.execute(SIZES)
        return sum(sum(row[1:]) for row in cursor.fetchall())


def test_notifications_take_little(postgresql_database: str) -> None:
    """Typical notifications need at most 2.5 bytes of disk per byte of mail."""
    engine = PostgresqlEngine(postgresql_database, DirectWorker(), DirectWorker())
    engine.open()
    result_of(AccountStore(engine).add_account(account("ann"), noted()))
    mails, contents = MailStore(engine, Quota(10**9, 10**12)), ContentStore(engine)
    writer, total = Writer(7), 0
    connection = psycopg2.connect(postgresql_database)
    connection.autocommit = True
    before = sizes(connection)
    for _ in range(60):
        raw = writer.notification().replace("\n", "\r\n").encode()
        total += len(raw)
        sent = replace(delivery(recipient("ann")), raw_message=raw)
        result_of(mails.deliver(sent))
        result_of(contents.save_content(sent.id, derive_content(raw)))
        assert result_of(contents.raw_message(sent.id)) == raw
    assert (sizes(connection) - before) / total <= TARGET
    connection.close()
    result_of(engine.close())


def derived(text: str) -> MessageContent:
    """Return the content derived from a text."""
    return content(text, signature="x" * 383)


def test_short_texts_have_no_signature() -> None:
    """A text that is as fast to read has none; a long one keeps its signature."""
    short, long = (
        dump_content(derived("a" * n))["signature"] for n in (SIGNED_FROM - 1, SIGNED_FROM)
    )
    assert (short, long) == ("", "x" * 383)


@rows("日本語のメール", "half \ud83d of a pair", 'quotes " and \\', "\0\r\n")
def test_documents_are_restored(text: str) -> None:
    """Any text is restored from its compact form, which can always be encoded."""
    one = content(text)
    row: dict[str, Any] = dump_content(one)
    row["document"].encode()
    found = load_content(**{name: row[name] for name in LOADED.split(", ")})
    assert (found.text, found.html, found.header_list) == (one.text, one.html, one.header_list)


def test_the_statements_of_the_page(postgresql_database: str) -> None:
    """Each statement of the page runs on a database of mailcheck."""
    blocks = re.findall(r"^```sql\n(.*?)^```", PAGE, re.S | re.M)
    connection = psycopg2.connect(postgresql_database)
    connection.autocommit = True
    ran = 0
    with connection.cursor() as cursor:
        for statement in "".join(blocks).split(";\n"):
            if statement.strip():
                cursor.execute(statement)
                ran += 1
    connection.close()
    assert ran == 8

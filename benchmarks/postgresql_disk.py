"""Measure how much of PostgreSQL's disk mail uses, by kind of mail, table and part of a table.

Run it with ``python -m benchmarks.postgresql_disk`` (needs Debian's package postgresql;
``--megabytes 5`` sets the amount of each kind). Each kind has a database of its own on a server
with default settings. Mails are stored as a daemon stores them: in groups, followed by their
derived contents. The words of the mails are drawn from a list with the frequencies of a language,
so that they compress like real mail. A header has the fields of two hops, DKIM and ARC.

For each kind the benchmark prints the bytes on disk per byte of mail: for the rows (heap), the long
values (TOAST) and the indexes of each table with more than a hundredth of the total. It also prints
the CPU time of the writer and of the server per mail. Then as much mail is stored and removed
again in several rounds, with the work of autovacuum between them. The growth is bloat.

Target: at most 2.5 bytes on disk for each byte of real mail (notifications, newsletters and
attachments in the proportions of an ordinary mailbox).
"""

import argparse
import base64
import os
import quopri
import random
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from msgspec.structs import replace
from twisted.internet.defer import Deferred

from benchmarks.filled_store import NO_LIMIT, BatchWorker, make_delivery
from mailcheck.checks.content.derive import derive_content
from mailcheck.core.accounts import Account, Quota
from mailcheck.core.content import MessageContent
from mailcheck.core.identifiers import AccountId
from mailcheck.core.instants import DAY, Instant
from mailcheck.engines.postgresql import PostgresqlEngine
from mailcheck.store.accounts.account_store import AccountStore
from mailcheck.store.content_store import ContentStore
from mailcheck.store.mail_store import MailStore
from mailcheck.store.messages import ExpiryStore
from mailcheck.workers.scheduling import DirectWorker
from tests.engines.deliveries import noted
from tests.servers.postgresql import PostgresqlServer, own_server

MEGABYTE = 1_000_000
GROUP = 64
ROUNDS = 4
START = 1_700_000_000_000
TARGET = 2.5

SYLLABLES = "ba con der el fi gra hon in jo ka lum men no or pre qui ra sta ti un ver wil yo zen"

SIZES = """
    SELECT relname, pg_relation_size(oid),
        COALESCE(pg_total_relation_size(NULLIF(reltoastrelid, 0)), 0), pg_indexes_size(oid)
    FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace
"""


class Writer:
    """Writes mails with random words, the same ones in each run."""

    def __init__(self, seed: int) -> None:
        self._chance = random.Random(seed)
        parts = SYLLABLES.split()
        self._words = [
            "".join(self._chance.choices(parts, k=self._chance.choice((1, 1, 2, 2, 3, 4))))
            for _ in range(4_000)
        ]
        self._weights = [1 / rank for rank in range(1, len(self._words) + 1)]

    def words(self, count: int) -> str:
        """Return one or more sentences, in lines of ordinary length."""
        drawn = self._chance.choices(self._words, self._weights, k=count)
        return "\n".join(" ".join(drawn[n : n + 12]) for n in range(0, count, 12))

    def token(self, octets: int) -> str:
        """Return a random text that does not compress."""
        return base64.b64encode(self._chance.randbytes(octets)).decode()

    def head(self, content_type: str) -> str:
        """Return a header with the fields of two hops, DKIM and ARC."""
        received = (
            f"Received: from mx{self._chance.randrange(99)}.example.net by mail.example.com with "
            f"ESMTPS id {self.token(9)}\n (version=TLS1_3 cipher=TLS_AES_256_GCM_SHA384);\n"
            " Tue, 17 Nov 2026 10:00:00 +0000\n"
        )
        signature = f"a=rsa-sha256; d=example.net; s=s1; bh={self.token(32)};\n b={self.token(256)}"
        return (
            f"{received * 2}DKIM-Signature: v=1; {signature}\nARC-Seal: i=1; {signature}\n"
            f"ARC-Message-Signature: i=1; {signature}\n"
            f"From: {self.words(2)} <news@example.net>\nTo: dev@example.com\n"
            f"Subject: {self.words(6)}\nMessage-ID: <{self.token(18)}@example.net>\n"
            "Date: Tue, 17 Nov 2026 10:00:00 +0000\nMIME-Version: 1.0\n"
            f"Content-Type: {content_type}\n"
        )

    def alternative(self, words: int, cards: int) -> str:
        """Return a text and an HTML page of so many cards with styles and tracked links."""
        card = (
            '<tr><td style="padding:0 24px 12px;font-family:Arial,Helvetica,sans-serif;font-size:'
            '15px;line-height:22px;color:#333333"><a href="https://click.example.net/{token}" '
            'style="color:#1a73e8;text-decoration:none">{words}</a></td></tr>\n'
        )
        each = max(words // cards, 6)
        texts = [self.words(each) for _ in range(cards)]
        page = "".join(card.format(token=self.token(45), words=text) for text in texts)
        page = f"<!doctype html><html><body><table width=600>\n{page}</table></body></html>"
        quoted = quopri.encodestring(page.encode()).decode()
        return (
            "--b\nContent-Type: text/plain; charset=utf-8\n\n" + "\n\n".join(texts) + "\n--b\n"
            "Content-Type: text/html; charset=utf-8\n"
            f"Content-Transfer-Encoding: quoted-printable\n\n{quoted}\n--b--\n"
        )

    def plain(self) -> str:
        """Return a short text mail, as a program on the same machine sends it."""
        return f"From: cron@example.net\nSubject: {self.words(4)}\n\n{self.words(120)}\n"

    def notification(self) -> str:
        """Return the most frequent kind of software's mail: a text with an HTML page."""
        body = self.alternative(self._chance.randrange(60, 250), self._chance.randrange(8, 24))
        return f"{self.head('multipart/alternative; boundary=b')}\n{body}"

    def newsletter(self) -> str:
        """Return a newsletter."""
        body = self.alternative(self._chance.randrange(900, 2_000), self._chance.randrange(60, 140))
        return f"{self.head('multipart/alternative; boundary=b')}\n{body}"

    def invoice(self) -> str:
        """Return a text with an attachment that is compressed already."""
        data = base64.encodebytes(self._chance.randbytes(self._chance.randrange(30_000, 200_000)))
        return (
            f"{self.head('multipart/mixed; boundary=a')}\n--a\n\n{self.words(80)}\n--a\n"
            'Content-Type: application/pdf\nContent-Disposition: attachment; filename="a.pdf"\n'
            f"Content-Transfer-Encoding: base64\n\n{data.decode()}--a--\n"
        )

    def mixed(self) -> str:
        """Return a mail of a random kind, with realistic frequencies."""
        kinds = (self.notification, self.newsletter, self.invoice)
        return self._chance.choices(kinds, (70, 25, 5))[0]()


KINDS: dict[str, Callable[[Writer], str]] = {
    "short texts": Writer.plain,
    "notifications": Writer.notification,
    "newsletters": Writer.newsletter,
    "attachments": Writer.invoice,
    "real mail (mixed)": Writer.mixed,
}


class Filled:
    """A database with the mails of one kind."""

    def __init__(self, server: PostgresqlServer, name: str) -> None:
        self._server, self._name = server, name
        self._worker = BatchWorker()
        self._engine = PostgresqlEngine(server.make_database(name), self._worker, DirectWorker())
        self._engine.open()
        self._mails = MailStore(self._engine, Quota(NO_LIMIT, NO_LIMIT))
        self._contents = ContentStore(self._engine)
        self._expiry = ExpiryStore(self._engine)
        self.account = Account(AccountId("a"), "a", "dev-a", False, Instant(START), None, None)
        AccountStore(self._engine).add_account(self.account, noted())
        self._worker.run_all()
        self._now = START

    def store(self, mails: list[tuple[bytes, MessageContent]]) -> None:
        """Store mails, and then their derived contents."""
        for number, (raw, content) in enumerate(mails):
            self._now += 1
            delivery = make_delivery(self.account, f"t{number % 50}", Instant(self._now))
            self._mails.deliver(replace(delivery, raw_message=raw))
            self._contents.save_content(delivery.id, content)
            if number % GROUP == 0:
                self._worker.run_all()
        self._worker.run_all()

    def expire(self) -> None:
        """Delete all mails, as the expiry does."""
        gone: list[int] = [1]
        while gone[-1]:
            done: Deferred[int] = self._expiry.expire(Instant(self._now + 2 * DAY), 500)
            done.addCallback(gone.append)
            self._worker.run_all()

    def sizes(self) -> dict[str, tuple[int, int, int]]:
        """Return the bytes of rows, of long values and of indexes, by table."""
        self._server.run("VACUUM", self._name)
        return {name: sizes for name, *sizes in self._server.run(SIZES, self._name)}  # type: ignore[misc]

    def close(self) -> None:
        """Close the connections."""
        self._engine.close()
        self._worker.run_all()


def read_all(write: Callable[[Writer], str], octets: int) -> Iterator[tuple[bytes, MessageContent]]:
    """Yield so much mail with its derived contents."""
    writer, total = Writer(1), 0
    while total < octets:
        raw = write(writer).replace("\n", "\r\n").encode()
        total += len(raw)
        yield raw, derive_content(raw)


def show(kind: str, filled: Filled, mails: list[tuple[bytes, MessageContent]]) -> None:
    """Print the disk usage of a kind."""
    raw = sum(len(one) for one, _ in mails)
    began = os.times().user
    filled.store(mails)
    spent = (os.times().user - began) / len(mails) * 1e6
    sizes = filled.sizes()
    total = sum(sum(one) for one in sizes.values())
    print(
        f"\n{kind}: {len(mails)} mails, {raw / len(mails):,.0f} bytes each; "
        f"{total / raw:.2f} x raw on disk; writer {spent:.0f} us CPU a mail"
    )
    for name, parts in sorted(sizes.items(), key=lambda one: -sum(one[1])):
        if sum(parts) > total / 100:
            heap, toast, indexes = (part / raw for part in parts)
            print(f"  {name:12} rows {heap:.2f}  long values {toast:.2f}  indexes {indexes:.2f}")


def main() -> None:
    """Measure, and print the results."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--megabytes", type=float, default=5)
    options = parser.parse_args()
    octets = int(options.megabytes * MEGABYTE)
    with tempfile.TemporaryDirectory(prefix="mailcheck-disk-") as folder:
        Path(folder).chmod(0o755)
        with own_server(Path(folder) / "pg") as server:
            for number, (kind, write) in enumerate(KINDS.items()):
                filled = Filled(server, f"kind{number}")
                mails = list(read_all(write, octets))
                show(kind, filled, mails)
                if number == len(KINDS) - 1:
                    for again in range(2, ROUNDS + 1):
                        filled.expire()
                        filled.sizes()
                        filled.store(mails)
                        total = sum(sum(one) for one in filled.sizes().values())
                        raw = sum(len(one) for one, _ in mails)
                        print(f"  removed and stored again, round {again}: {total / raw:.2f} x raw")
                filled.close()
    print(f"\ntarget: at most {TARGET} x raw for real mail")


if __name__ == "__main__":
    main()

"""Reports in the mailbox of a real IMAP server are fetched once, whichever daemons read it."""

import imaplib
import json
import os
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from mailcheck.daemon.first_start import ACCOUNT_NAME
from tests.corpus.report_files import document, gzipped, report_mail
from tests.interop.test_cluster import options_of
from tests.servers.daemon import HOST, running_daemon
from tests.servers.dovecot import PASSWORD, USER, Dovecot, running_dovecot
from tests.servers.postgresql import TEMPLATE, PostgresqlServer
from tests.servers.redis import running_redis

pytestmark = pytest.mark.end_to_end

MAILS, OTHERS = 2_000, 20
SECONDS = 90.0
"""Most seconds for all mails on a busy machine."""

REPORT, ID = document("google.xml"), b"12048340712345678901"


def mail(number: int) -> bytes:
    """Return a mail with a report of its own."""
    report = gzipped(REPORT.replace(ID, b"%d" % number))
    return report_mail(report, "application/gzip", f"{number}.xml.gz")


def fill(dovecot: Dovecot) -> None:
    """Add mails with reports to the inbox, and some other mails between them."""
    assert ID in REPORT
    with imaplib.IMAP4(HOST, dovecot.imap) as client:
        client.login(USER, PASSWORD)
        for number in range(MAILS):
            client.append("INBOX", "", "", mail(number))
            if number % (MAILS // OTHERS) == 0:
                client.append("INBOX", "", "", b"Subject: hello\r\n\r\nhello\r\n")


def count(dovecot: Dovecot, folder: str, query: str) -> int:
    """Return the number of mails in a folder that match."""
    with imaplib.IMAP4(HOST, dovecot.imap) as client:
        client.login(USER, PASSWORD)
        client.select(folder, readonly=True)
        _, (found,) = client.search(None, query)
        return len(found.split())


def mailbox_of(dovecot: Dovecot, **more: object) -> str:
    """Return the option that names the inbox of the server."""
    table = {
        "account": ACCOUNT_NAME,
        "imap": f"{HOST}:{dovecot.imap}",
        "tls": "none",
        "user": USER,
        "password": PASSWORD,
        "every_minutes": 1,
        **more,
    }
    options = ", ".join(f"{name} = {json.dumps(value)}" for name, value in table.items())
    return f"[{{{options}}}]"


def test_three_daemons_fetch_each_mail_once(
    tmp_path: Path, postgresql_server: PostgresqlServer
) -> None:
    """Of three daemons on one database, one reads the mailbox. Each report is new once, each mail
    with a report is moved, and all other mails stay unread.
    """
    name = f"mailboxes_{os.getpid()}_{time.monotonic_ns()}"
    url = postgresql_server.make_database(name, TEMPLATE)
    with running_dovecot() as dovecot, running_redis() as redis, ExitStack() as stack:
        fill(dovecot)
        options: dict[str, Any] = options_of(url, redis)
        options["reports_mailboxes"] = mailbox_of(dovecot, then="move", move_to="Done")
        began = time.monotonic()
        first = stack.enter_context(running_daemon(tmp_path / "0", **options))
        options["accounts_bootstrap_key"] = first.key
        for number in (1, 2):
            stack.enter_context(running_daemon(tmp_path / str(number), **options))
        state = "SELECT mails, reports, problem, succeeded_at IS NOT NULL FROM report_mailbox"
        first.wait_until(lambda: postgresql_server.run(state, name)[0][3])
        assert time.monotonic() - began < SECONDS
        assert postgresql_server.run(state, name) == [(MAILS + OTHERS, MAILS, "", True)]
        assert first.get("/reports").json["total"] == MAILS
        assert count(dovecot, "Done", "SEEN") == MAILS
        assert count(dovecot, "INBOX", "UNSEEN") == count(dovecot, "INBOX", "ALL") == OTHERS

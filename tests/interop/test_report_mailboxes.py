"""Reports in the mailbox of a real IMAP server are fetched once, whichever daemons read it."""

import imaplib
import json
import os
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
import pytest_twisted
from twisted.internet import reactor

from mailcheck.core.domains.report_mailboxes import ReportMailbox, Tls, TokenGrant
from mailcheck.core.instants import Instant
from mailcheck.daemon.first_start import ACCOUNT_NAME
from mailcheck.ports.report_mailboxes import MailboxFailed, Place
from mailcheck.probes.imap_mailbox import ImapMailbox, way_to
from mailcheck.probes.trust import TrustRoots, find_trust_roots
from tests.corpus.report_files import document, gzipped, report_mail
from tests.interop.test_cluster import options_of
from tests.servers.certificates import Authority
from tests.servers.daemon import HOST, free_ports, running_daemon
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


TLS = """
ssl = yes
ssl_cert = <{certificate}
ssl_key = <{key}
auth_mechanisms = plain xoauth2 oauthbearer
passdb {{
  driver = oauth2
  mechanisms = xoauth2 oauthbearer
  args = {oauth}
}}
service imap-login {{
  inet_listener imaps {{
    port = {imaps}
    ssl = yes
  }}
}}
"""

OAUTH = """
introspection_mode = get
introspection_url = {url}
username_attribute = username
active_attribute = active
active_value = true
"""

TOKEN = "t" * 2_500
NOW = Instant(int(time.time() * 1_000))


class Introspection(BaseHTTPRequestHandler):
    """Says whether a token is good (RFC 7662)."""

    def do_GET(self) -> None:
        """Answer."""
        token = parse_qs(urlsplit(self.path).query).get("token", [""])[0]
        body = json.dumps({"active": token == TOKEN, "username": USER}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Log nothing."""


@contextmanager
def encrypted(folder: Path) -> Iterator[tuple[Dovecot, int, TrustRoots]]:
    """Run a server with TLS and tokens. Yield it, its port for TLS, and the authority."""
    authority = Authority()
    certificate, key = authority.issue("localhost").write_to(folder)
    roots = find_trust_roots(authority.write_to(folder / "ca.pem"))
    server = ThreadingHTTPServer((HOST, 0), Introspection)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    oauth, (imaps,) = folder / "oauth.conf", free_ports(1)
    oauth.write_text(OAUTH.format(url=f"http://{HOST}:{server.server_port}/?token="))
    folder.chmod(0o755)
    settings = TLS.format(certificate=certificate, key=key, oauth=oauth, imaps=imaps)
    try:
        with running_dovecot(settings) as dovecot:
            yield dovecot, imaps, roots
    finally:
        server.shutdown()
        server.server_close()


async def failure_of(mailbox: ReportMailbox, roots: TrustRoots, token: str = "") -> str:
    """Open a mailbox, and return why that failed, or an empty string."""
    clock: Any = reactor
    opener = ImapMailbox(mailbox, lambda: way_to(mailbox, clock, lambda: roots), clock, lambda: NOW)
    try:
        opened = await opener.open(token, Place())
    except MailboxFailed as failure:
        return str(failure)
    assert await opened.next_batch(5) is None
    await opened.close()
    return ""


@pytest_twisted.ensureDeferred
async def test_tls_and_tokens(tmp_path: Path) -> None:
    """TLS from the first byte and STARTTLS work with a password and with a token of 2,500 octets.

    A wrong password, a wrong token and a certificate for another name are rejected with a reason.
    """
    with encrypted(tmp_path) as (dovecot, imaps, roots):
        grant = TokenGrant("https://login.example.com/token", "client", "secret")
        for port, tls in ((imaps, Tls.IMPLICIT), (dovecot.imap, Tls.STARTTLS)):
            one = ReportMailbox("shop", "localhost", port, tls, USER, PASSWORD)
            with_token = ReportMailbox("shop", "localhost", port, tls, USER, grant=grant)
            assert await failure_of(one, roots) == ""
            assert await failure_of(with_token, roots, TOKEN) == ""
            wrong = await failure_of(with_token, roots, "expired")
            assert "The server rejected the sign-in of reader" in wrong
            assert "(status " in wrong
            guessed = ReportMailbox("shop", "localhost", port, tls, USER, "wrong")
            assert "rejected the sign-in of reader" in await failure_of(guessed, roots)
            other = ReportMailbox("shop", HOST, port, tls, USER, PASSWORD)
            assert "its certificate is not for 127.0.0.1" in await failure_of(other, roots)
            stranger = find_trust_roots(Authority("Another").write_to(tmp_path / "other.pem"))
            assert "not from a known authority" in await failure_of(one, stranger)

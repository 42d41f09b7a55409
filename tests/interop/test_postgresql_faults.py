"""PostgreSQL stops, loses an answer, is full, hangs or fails over under a real daemon."""

import contextlib
import os
import signal
import smtplib
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg2
import pytest

from tests.end_to_end.load import OK, send
from tests.servers.daemon import HOST, Daemon, running_daemon
from tests.servers.postgresql import PostgresqlServer, require_installed

pytestmark = pytest.mark.end_to_end

SENDERS = 4
GIVEN_UP = 14.0  # seconds: LONGEST_CALL, and a failed reconnection
RECOVERY = 20.0  # seconds after the server's return; an otherwise idle machine needs 2
PATIENCE = 60.0  # seconds
POLL = 0.01  # seconds
MEBIBYTE = 1024 * 1024
LARGE = b"Subject: %d\r\nContent-Type: application/octet-stream\r\n\r\n" + b"x" * 200_000


class Senders:
    """Clients that send mail after mail and record the results."""

    def __init__(self, daemon: Daemon) -> None:
        self._daemon = daemon
        self._recipient = daemon.address()
        self._is_over = threading.Event()
        self.codes: list[tuple[float, int]] = []
        self.acknowledged: set[str] = set()
        self._threads = [threading.Thread(target=self._run, args=(n,)) for n in range(SENDERS)]

    def __enter__(self) -> "Senders":
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        for thread in self._threads:
            thread.join()

    def _run(self, name: int) -> None:
        number = 0
        while not self._is_over.wait(POLL):
            # A client with a rejected mail reconnects, because the server would close a connection
            # after a thousand commands without a mail.
            with smtplib.SMTP(HOST, self._daemon.smtp_port, timeout=60) as client:
                code = OK
                while code == OK and not self._is_over.is_set():
                    number += 1
                    code = self._send(client, f"{name}-{number}")

    def _send(self, client: smtplib.SMTP, subject: str) -> int:
        mail = f"Subject: {subject}\r\n\r\nHello\r\n".encode()
        code = send(client, [self._recipient], mail)
        self.codes.append((time.monotonic(), code))
        if code == OK:
            self.acknowledged.add(subject)
        return code

    def when(self, is_so: Callable[[int], bool], after: float = 0.0) -> float:
        """Return the time of the first reply later than ``after`` with a matching code."""
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            for moment, code in list(self.codes):
                if moment > after and is_so(code):
                    return moment
            time.sleep(POLL)
        raise AssertionError(f"no such answer among {self.codes[-9:]}")


def stored(server: PostgresqlServer) -> list[str]:
    """Return the stored subjects."""
    return [subject for (subject,) in server.run("SELECT subject FROM delivery", "mail")]


@pytest.fixture
def server() -> Iterator[PostgresqlServer]:
    """A separate server that commits to disk, with one database."""
    require_installed()
    with tempfile.TemporaryDirectory(prefix="mailcheck-own-pg-") as folder:
        server = PostgresqlServer(Path(folder), settings={"max_wal_senders": 4})
        server.initialise()
        server.start()
        server.make_database("mail")
        yield server
        if (server.data / "postmaster.pid").exists():
            server.stop()


def test_a_server_that_is_stopped_under_load(server: PostgresqlServer, tmp_path: Path) -> None:
    """During an outage senders get 451. No acknowledged mail is lost, and the daemon recovers."""
    with running_daemon(tmp_path, storage_url=server.url("mail")) as daemon:
        with Senders(daemon) as senders:
            senders.when(lambda code: code == 250)
            stopped_at = time.monotonic()
            server.stop("immediate")
            senders.when(lambda code: code == 451, stopped_at)
            server.start()
            back_at = time.monotonic()
            assert senders.when(lambda code: code == 250, back_at) < back_at + RECOVERY
        assert {code for _, code in senders.codes} <= {250, 451}
        assert senders.acknowledged <= set(stored(server))
        assert daemon.get("/inbox").json["total"] == len(stored(server))


def test_an_answer_that_is_lost(server: PostgresqlServer, tmp_path: Path) -> None:
    """If the session ends between COMMIT and its answer, the reply is 451; the mail is stored."""
    with running_daemon(tmp_path, storage_url=server.url("mail")) as daemon:
        recipient, codes = daemon.address(), []

        def send_one() -> None:
            with smtplib.SMTP(HOST, daemon.smtp_port) as client:
                codes.append(send(client, [recipient], b"Subject: once\r\n\r\n"))

        # COMMIT is written, and then waits for a standby that does not exist.
        wait_for(server, "synchronous_standby_names = 'nobody'")
        sender = threading.Thread(target=send_one)
        sender.start()
        waiting = "SELECT pid FROM pg_stat_activity WHERE wait_event = 'SyncRep'"
        while not (found := server.run(waiting)):
            time.sleep(POLL)
        server.run(f"SELECT pg_terminate_backend({found[0][0]}, 5000)")
        sender.join()
        wait_for(server, "synchronous_standby_names = ''")
        assert stored(server) == ["once"]
        send_one()
        assert codes == [451, 250]
        assert stored(server) == ["once", "once"]


def wait_for(server: PostgresqlServer, setting: str) -> None:
    """Change a setting of a running server, and wait until it is active."""
    name, _, value = setting.partition(" = ")
    server.run(f"ALTER SYSTEM SET {setting}")
    server.run("SELECT pg_reload_conf()")
    while server.run(f"SHOW {name}") != [(value.strip("'"),)]:
        time.sleep(POLL)


@pytest.mark.soak
def test_failover(server: PostgresqlServer, tmp_path: Path) -> None:
    """With both hosts in its URL the daemon continues with the standby without losing mail."""
    with tempfile.TemporaryDirectory(prefix="mailcheck-standby-pg-") as folder:
        standby = PostgresqlServer(Path(folder))
        standby.copy_of(server)
        standby.start()
        wait_for(server, "synchronous_standby_names = '*'")
        hosts = f"host={server.folder},{standby.folder}"
        url = f"postgresql:///mail?{hosts}&user=mailcheck&target_session_attrs=read-write"
        with running_daemon(tmp_path, storage_url=url) as daemon:
            with Senders(daemon) as senders:
                senders.when(lambda code: code == 250)
                server.stop("immediate")
                standby.run("SELECT pg_promote()")
                promoted_at = time.monotonic()
                taken_at = senders.when(lambda code: code == 250, promoted_at)
                assert taken_at < promoted_at + RECOVERY
            assert {code for _, code in senders.codes} <= {250, 451}
            assert senders.acknowledged <= set(stored(standby))
        standby.stop()


@pytest.fixture
def small_disk(server: PostgresqlServer) -> Iterator[Path]:
    """Move the database to a small filesystem."""
    folder = server.folder / "small"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=24m", "tmpfs", str(folder)]
    if subprocess.run(mount, capture_output=True, check=False).returncode != 0:
        pytest.skip("the user may not mount a filesystem here")
    try:
        subprocess.run(["chown", "postgres:postgres", str(folder)], check=True)
        server.run(f"CREATE TABLESPACE small LOCATION '{folder}'")
        server.run("ALTER DATABASE mail SET TABLESPACE small")
        yield folder
    finally:
        server.stop()
        subprocess.run(["umount", str(folder)], check=True)


@pytest.mark.soak
def test_a_full_disk(server: PostgresqlServer, small_disk: Path, tmp_path: Path) -> None:
    """A server with a full disk causes 452, no acknowledged mail is lost, and mail resumes."""
    filler = small_disk / "filler"
    with running_daemon(tmp_path, storage_url=server.url("mail")) as daemon:
        filler.write_bytes(bytes(8 * MEBIBYTE))
        recipient, acknowledged = daemon.address(), 0
        with smtplib.SMTP(HOST, daemon.smtp_port) as client:
            while (code := send(client, [recipient], LARGE % acknowledged)) == 250:
                acknowledged += 1
                assert acknowledged < 200, "the disk was never full"
            assert code == 452
            assert daemon.total() == acknowledged
            filler.unlink()
            assert send(client, [recipient], LARGE % 999) == 250
        assert daemon.total() == acknowledged + 1


@pytest.mark.soak
def test_a_server_that_hangs_under_load(server: PostgresqlServer, tmp_path: Path) -> None:
    """While the server hangs, senders get 451 and readers 503 before the timeout. Afterwards the
    daemon accepts mail again without a restart, and no acknowledged mail is missing.
    """
    with running_daemon(tmp_path, storage_url=server.url("mail")) as daemon:
        with Senders(daemon) as senders:
            senders.when(lambda code: code == 250)
            with hanging(server):
                hung_at = time.monotonic()
                assert senders.when(lambda code: code == 451, hung_at) < hung_at + GIVEN_UP
                assert daemon.get("/inbox/messages").status == 503
                assert time.monotonic() < hung_at + 2 * GIVEN_UP
            back_at = time.monotonic()
            assert senders.when(lambda code: code == 250, back_at) < back_at + RECOVERY
        assert {code for _, code in senders.codes} <= {250, 451}
        assert senders.acknowledged <= set(stored(server))
        # The unfinished transactions of the closed connections are gone.
        assert daemon.get("/inbox").json["total"] == len(stored(server))


@contextlib.contextmanager
def hanging(server: PostgresqlServer) -> Iterator[None]:
    """Stop all processes of a server, so that their input stays unanswered."""
    children = Path(f"/proc/{server.pid}/task/{server.pid}/children").read_text().split()
    pids = [server.pid, *map(int, children)]
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)


OTHER_INBOX = """
    INSERT INTO account (id, name, is_operator, created_at) VALUES ('other', 'other', 0, 0);
    INSERT INTO inbox (account_id, mailbox_name, last_position, message_count, byte_count)
    VALUES ('other', 'dev-other', 0, 0, 0)
"""


def test_an_inbox_that_stays_locked(server: PostgresqlServer, tmp_path: Path) -> None:
    """Mail for the locked inbox gets 451. Another inbox gets all of its mail, and the daemon stays
    ready with the same writer.
    """
    with running_daemon(tmp_path, storage_url=server.url("mail")) as daemon:
        server.run(OTHER_INBOX, "mail")
        locked, writer = daemon.address(), daemon.child("writer")
        name, _, domain = locked.partition("@")
        locker = psycopg2.connect(server.url("mail"))
        locker.cursor().execute(
            "SELECT FROM inbox WHERE mailbox_name = %s FOR UPDATE", (name.partition("+")[0],)
        )
        refused: list[int] = []

        def send_to_locked() -> None:
            with smtplib.SMTP(HOST, daemon.smtp_port, timeout=60) as client:
                refused.append(send(client, [locked], b"Subject: locked\r\n\r\nx\r\n"))

        senders = [threading.Thread(target=send_to_locked) for _ in range(6)]
        for sender in senders:
            sender.start()
        with smtplib.SMTP(HOST, daemon.smtp_port, timeout=60) as client:
            codes = {
                send(client, [f"dev-other@{domain}"], b"Subject: %d\r\n\r\nx\r\n" % number)
                for number in range(200)
            }
        for sender in senders:
            sender.join()
        assert daemon.is_ready()
        locker.close()
        assert codes == {250}
        assert refused == [451] * 6
        send_to_locked()
        assert refused[-1] == 250
        assert daemon.child("writer") == writer
        reasons = server.run("SELECT reason FROM refusal", "mail")
        assert reasons, "the reason is not stored for waits"
        assert all("reference" in reason for (reason,) in reasons)

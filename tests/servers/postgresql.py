"""A real PostgreSQL: one server for a whole test run, with databases copied from a template.

The first process of the run that needs it starts the server. A guardian process stops it after the
last process has ended, even if that process was killed. The server never waits for the disk, since
its data is not needed afterwards.
"""

import contextlib
import fcntl
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import psycopg2
import pytest

from mailcheck.engines.postgresql import upgrade_schema
from mailcheck.engines.schema_upgrade import schema_steps

BINARIES = sorted(Path("/usr/lib/postgresql").glob("*/bin"))
"""Program folders of Debian; on other systems the programs are in the PATH."""

START_DEADLINE = 60.0  # seconds
POLL = 0.01  # seconds

TEMPLATE = "mailcheck_template"

IMPATIENT = {
    "fsync": "off",
    "full_page_writes": "off",
    "synchronous_commit": "off",
    "wal_level": "minimal",
    "max_wal_senders": 0,
    "autovacuum": "off",
    "deadlock_timeout": "100ms",
    "shared_buffers": "16MB",
}
"""Settings for a server that may lose its data."""


class PostgresqlServer:
    """A server with a UNIX socket and, if it has a port, TCP."""

    def __init__(
        self, folder: Path, port: int | None = None, settings: Mapping[str, object] | None = None
    ) -> None:
        self.folder = folder
        self.port = port
        self.settings = settings or {}

    @property
    def data(self) -> Path:
        """The folder of the database cluster."""
        return self.folder / "data"

    def initialise(self) -> None:
        """Create an empty database cluster."""
        self.folder.mkdir(exist_ok=True)
        _give_away(self.folder)
        run_as_owner(
            "initdb", "--no-sync", "--auth=trust", "--username=mailcheck", "--encoding=UTF8",
            "--locale=C", "--no-instructions", f"--pgdata={self.data}",
        )  # fmt: skip

    def copy_of(self, primary: "PostgresqlServer") -> None:
        """Create a standby of a running server."""
        self.folder.mkdir(exist_ok=True)
        _give_away(self.folder)
        run_as_owner(
            "pg_basebackup", "--no-sync", "--checkpoint=fast", "--write-recovery-conf",
            f"--pgdata={self.data}", f"--host={primary.folder}", "--username=mailcheck",
        )  # fmt: skip

    def start(self) -> None:
        """Start the server and wait until it accepts connections."""
        settings = {
            "unix_socket_directories": self.folder,
            "listen_addresses": "" if self.port is None else "127.0.0.1",
            "port": self.port or 5432,
            "max_connections": 60,
            **self.settings,
        }
        options = " ".join(f"-c {name}='{value}'" for name, value in settings.items())
        log = self.folder / "server.log"
        run_as_owner(
            "pg_ctl", "start", "--no-wait", f"--pgdata={self.data}", f"--log={log}", "-o", options
        )
        deadline = time.monotonic() + START_DEADLINE
        while not self.is_answering():
            assert time.monotonic() < deadline, log.read_text()
            time.sleep(POLL)

    def stop(self, mode: str = "immediate") -> None:
        """Stop the server and wait for its end."""
        run_as_owner("pg_ctl", "stop", f"--pgdata={self.data}", f"--mode={mode}", "--silent")

    def is_answering(self) -> bool:
        """Return whether the server accepts connections."""
        try:
            psycopg2.connect(self.url("template1"), connect_timeout=2).close()
        except psycopg2.OperationalError:
            return False
        return True

    @property
    def pid(self) -> int:
        """The id of the main process."""
        return int((self.data / "postmaster.pid").read_text().split()[0])

    def url(self, database: str) -> str:
        """Return the URL of a database, by TCP if the server has a port."""
        if self.port is None:
            return f"postgresql:///{database}?host={self.folder}&user=mailcheck"
        return f"postgresql://mailcheck@127.0.0.1:{self.port}/{database}"

    def run(self, sql: str, database: str = "template1") -> list[tuple[Any, ...]]:
        """Run a single statement, and return its rows."""
        connection = psycopg2.connect(self.url(database))
        try:
            connection.autocommit = True
            with connection.cursor() as cursor:
                cursor.execute(sql)
                return cursor.fetchall() if cursor.description else []
        finally:
            connection.close()

    def make_database(self, name: str, template: str = "template1") -> str:
        """Create a database and return its URL."""
        self.run(f"CREATE DATABASE {name} TEMPLATE {template} STRATEGY file_copy")
        return self.url(name)


def program(name: str) -> str:
    """Return the path of a PostgreSQL program."""
    places = [*(str(folder) for folder in reversed(BINARIES)), os.environ.get("PATH", "")]
    found = shutil.which(name, path=os.pathsep.join(places))
    assert found is not None, f"{name} is missing: run scripts/install-test-needs"
    return found


def require_installed() -> None:
    """Skip the test if PostgreSQL is not installed."""
    if not BINARIES and shutil.which("initdb") is None:
        pytest.skip("PostgreSQL is missing: run scripts/install-test-needs as root")


def run_as_owner(name: str, *arguments: str) -> None:
    """Run a PostgreSQL program as the user of the server."""
    subprocess.run([program(name), *arguments], check=True, capture_output=True, **owner())


def owner() -> dict[str, Any]:
    """Return the options of `subprocess.run` for the server's user; it refuses to run as root."""
    return {"user": "postgres", "group": "postgres", "cwd": "/"} if os.geteuid() == 0 else {}


def _give_away(folder: Path) -> None:
    if os.geteuid() == 0:
        shutil.chown(folder, "postgres", "postgres")


@contextlib.contextmanager
def own_server(folder: Path) -> Iterator[PostgresqlServer]:
    """Run a server with default settings."""
    server = PostgresqlServer(folder)
    server.initialise()
    server.start()
    try:
        yield server
    finally:
        server.stop("fast")


@contextlib.contextmanager
def shared_server(run_folder: Path) -> Iterator[PostgresqlServer]:
    """Yield the server of the test run with this folder; start it if necessary."""
    users = (run_folder / "postgresql.users").open("w")
    place = run_folder / "postgresql.place"
    with (run_folder / "postgresql.start").open("w") as starting:
        fcntl.flock(starting, fcntl.LOCK_EX)
        # Held until this process ends; a guardian locks it exclusively to stop the server.
        fcntl.flock(users, fcntl.LOCK_SH)
        if not place.exists():
            server = _start_shared(run_folder)
            place.write_text(str(server.folder))
    try:
        yield PostgresqlServer(Path(place.read_text()))
    finally:
        users.close()


def _start_shared(run_folder: Path) -> PostgresqlServer:
    # Not below the folder of the run, which the server's user cannot enter.
    server = PostgresqlServer(Path(tempfile.mkdtemp(prefix="mailcheck-pg-")), settings=IMPATIENT)
    server.initialise()
    server.start()
    # Started by a shell, so that no process has to wait for its end.
    guardian = [sys.executable, "-m", "tests.servers.postgresql", run_folder, server.folder]
    in_background = ["sh", "-c", '"$@" < /dev/null > /dev/null 2>&1 &', "sh"]
    subprocess.run(
        [*in_background, *map(str, guardian)],
        check=True,
        start_new_session=True,
        cwd=Path(__file__).parents[2],
    )
    upgrade_schema(server.make_database(TEMPLATE), schema_steps())
    return server


def guard(run_folder: Path, server: PostgresqlServer) -> None:
    """Wait until no process uses the server, then stop it and delete its files."""
    with (run_folder / "postgresql.users").open("w") as users:
        fcntl.flock(users, fcntl.LOCK_EX)
        (run_folder / "postgresql.place").unlink(missing_ok=True)
        with contextlib.suppress(subprocess.CalledProcessError):
            server.stop()
        shutil.rmtree(server.folder, ignore_errors=True)


if __name__ == "__main__":
    guard(Path(sys.argv[1]), PostgresqlServer(Path(sys.argv[2])))

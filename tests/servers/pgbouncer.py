"""A real PgBouncer in front of a PostgreSQL of the tests, on a UNIX socket."""

import contextlib
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.servers.postgresql import PostgresqlServer, owner

PORT = 6432  # part of the socket's name; there is no TCP port
DEADLINE = 60.0  # seconds
POLL = 0.01

CONFIGURATION = """
[databases]
* = host={server} user=mailcheck
[pgbouncer]
listen_addr =
listen_port = {port}
unix_socket_dir = {folder}
auth_type = any
pool_mode = {mode}
{more}
"""


@contextlib.contextmanager
def running_pgbouncer(server: PostgresqlServer, mode: str, more: str = "") -> Iterator[Path]:
    """Run a pooler in a pool mode; yield the folder of its socket."""
    program = shutil.which("pgbouncer", path="/usr/sbin:/usr/bin:/usr/local/bin")
    if program is None:
        pytest.skip("pgbouncer is missing: run scripts/install-test-needs as root")
    with tempfile.TemporaryDirectory(prefix="mailcheck-pooler-") as name:
        folder = Path(name)
        folder.chmod(0o777)
        configuration = folder / "pgbouncer.ini"
        text = CONFIGURATION.format(
            server=server.folder, port=PORT, folder=folder, mode=mode, more=more
        )
        configuration.write_text(text)
        with (folder / "log").open("wb") as log:
            process = subprocess.Popen(
                [program, str(configuration)], stdout=log, stderr=log, **owner()
            )
        try:
            deadline = time.monotonic() + DEADLINE
            while not (folder / f".s.PGSQL.{PORT}").exists():
                assert process.poll() is None, (folder / "log").read_text()
                assert time.monotonic() < deadline
                time.sleep(POLL)
            yield folder
        finally:
            process.kill()
            process.wait()


def url_through(folder: Path, database: str) -> str:
    """Return the URL of a database behind a pooler."""
    return f"postgresql:///{database}?host={folder}&port={PORT}&user=mailcheck"

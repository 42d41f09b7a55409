"""Importing many reports while the daemon is killed, over both databases."""

import gzip
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from mailcheck.clients.mailcheck_client import Mailcheck
from tests.corpus.report_files import document
from tests.servers.daemon import HOST, Daemon
from tests.servers.postgresql import own_server

pytestmark = pytest.mark.interop

FILES, MESSAGES = 10_000, 123
KILLS = 3


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of different reports about ten domains."""
    folder = tmp_path_factory.mktemp("reports")
    text = document("google.xml")
    for number in range(FILES):
        begin = int(time.time()) // 86_400 * 86_400 - (2 + number % 300) * 86_400
        report = (
            text.replace(b"1795046400", b"%d" % begin)
            .replace(b"1795132799", b"%d" % (begin + 86_399))
            .replace(b"<report_id>", b"<report_id>%d-" % number)
            .replace(b"example.org", b"shop%d.example" % (number % 10))
        )
        (folder / f"{number}.xml.gz").write_bytes(gzip.compress(report, 1))
    return folder


@pytest.fixture(params=["sqlite", "postgresql"])
def daemon(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Daemon]:
    """A daemon of its own, which the test kills."""
    if request.param == "sqlite":
        daemon = Daemon(tmp_path / "daemon", storage_url=f"sqlite:{tmp_path / 'mail.db'}")
        daemon.start()
        yield daemon
        daemon.kill()
        return
    with tempfile.TemporaryDirectory(prefix="mailcheck-") as name:
        folder = Path(name)
        folder.chmod(0o755)  # the server has another user
        with own_server(folder / "server") as server:
            daemon = Daemon(tmp_path / "daemon", storage_url=server.make_database("reports"))
            daemon.start()
            yield daemon
            daemon.kill()


def test_a_killed_daemon_loses_and_doubles_nothing(
    daemon: Daemon, files: Path, tmp_path: Path
) -> None:
    """The command goes on after each restart, and each report counts exactly once."""
    key = tmp_path / "key"
    key.write_text(daemon.key)
    url = f"http://{HOST}:{daemon.http_port}"
    options = ["--url", url, "--key-file", str(key)]
    client = Mailcheck(url, daemon.key)

    def stored() -> int:
        return int(client.request("GET", "/reports", {"limit": 1})["total"])

    program = str(Path(sys.executable).with_name("mailcheck"))
    command = [program, "reports", "import", str(files), *options]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as importing:
        for kill in range(KILLS):
            while stored() < (kill + 1) * FILES // (KILLS + 2):
                time.sleep(0.05)
            assert importing.poll() is None
            daemon.kill()
            daemon.start()
        _, note = importing.communicate(timeout=300)
    assert importing.returncode == 0, note
    assert note.strip().endswith("0 rejected")
    sums = client.request("GET", "/reports")
    assert sums["total"] == FILES
    assert sum(one["messages"] for one in sums["domains"]) == FILES * MESSAGES
    rows = client.request("GET", "/reports/dmarc", {"domain": "shop3.example", "days": 400})
    assert rows["messages"] == FILES // 10 * MESSAGES

"""The first hour of a mail administrator: docs/tutorial/reports.md, on an empty Debian.

The machine has the package, and the zone of the test as its Internet. See ``test_first_hours.py``
for the walks of the other readers.
"""

import re
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.corpus.report_files import document, gzipped
from tests.docs.blocks import ROOT, SHELL, read_blocks
from tests.fakes.memory_zone import MemoryZone
from tests.fakes.report_senders import reports_records, signed_report
from tests.servers.booted_debian import BootedDebian, booted_debian
from tests.servers.debian_packages import build_package, copy_checkout, debian_root
from tests.servers.name_server import write_name_server
from tests.servers.programs import find_program

pytestmark = [pytest.mark.end_to_end, pytest.mark.long, pytest.mark.timeout(900)]

PAGE = ROOT / "docs" / "tutorial" / "reports.md"
INSTALL, RECORDS, REQUEST, LIST, PLAN = [
    block.text for block in read_blocks(PAGE) if block.language == "sh"
]
EXPORTS = "".join(re.findall(r"^export .*\n", REQUEST, re.M))
RECORD = re.compile(r"^ *(\S+?)\.?  (?:3600  IN  )?(TXT|MX)  (.+)$", re.M)
"""A record as ``doctor --dns`` and ``dmarc plan`` print it."""

RELEASE = "bookworm"
PASSWORD = "a-password-of-alice\n"
REPORT = "google.xml"
DAY = 86_400  # seconds
DEADLINE = 60.0  # seconds


@pytest.fixture
def debian(tmp_path: Path) -> Iterator[BootedDebian]:
    """An empty Debian with the package of the checkout in /packages."""
    sources = tmp_path / "sources"
    sources.mkdir()
    copy_checkout(sources)
    debian_root(RELEASE, "build")
    build_package(RELEASE, sources, tmp_path / "packages")
    with booted_debian(debian_root(RELEASE), tmp_path / "packages", tmp_path / "layers") as machine:
        yield machine


class Internet:
    """The only name server of a machine."""

    def __init__(self, machine: BootedDebian, folder: Path) -> None:
        self.zone = MemoryZone(reports_records())
        self.zone.publish("inbox.example.com", "A", "127.0.0.1")
        self._machine = machine
        self._folder = folder
        folder.mkdir()
        self._serial = 0

    @contextmanager
    def running(self) -> Iterator[None]:
        """Answer the machine's questions as long as the context lasts."""
        configuration = self._write()
        with self._machine.beside(find_program("nsd"), "-d", "-c", str(configuration)) as server:
            self._server = server
            self._machine.run("echo nameserver 127.0.0.1 > /etc/resolv.conf")
            yield

    def publish(self, printed: str) -> None:
        """Publish all records that a command has printed."""
        for name, rdtype, value in RECORD.findall(printed):
            self.zone.publish(name, rdtype, value.strip('"'))
        self._write()
        self._server.send_signal(signal.SIGHUP)

    def _write(self) -> Path:
        self._serial += 1
        return write_name_server(self.zone, self._folder, "127.0.0.1", 53, 0, self._serial)


def report_of_yesterday() -> bytes:
    """Return a report about yesterday."""
    midnight = int(time.time()) // DAY * DAY
    text = re.sub(rb"<begin>\d+", b"<begin>%d" % (midnight - DAY), document(REPORT))
    return gzipped(re.sub(rb"<end>\d+", b"<end>%d" % (midnight - 1), text))


def until(command: Callable[[], str], is_so: Callable[[str], bool]) -> str:
    """Repeat a command until it prints what is expected, and return that."""
    end = time.monotonic() + DEADLINE
    while not is_so(printed := command()):
        assert time.monotonic() < end, printed
        time.sleep(0.5)
    return printed


def test_a_mail_administrator(debian: BootedDebian, tmp_path: Path) -> None:
    """The commands of the page lead from an empty server to a plan that counts a report."""

    def run(commands: str) -> str:
        return debian.run(f"set +e\n{SHELL}{commands}\nexit 0")

    internet = Internet(debian, tmp_path / "zone")
    with internet.running():
        debian.run(f"cd /packages\n{SHELL}{INSTALL}", PASSWORD)
        internet.publish(run(RECORDS))
        plan = run(REQUEST)
        (address,) = re.findall(r"rua=mailto:(dmarc-\S+@inbox\.example\.com)", plan)
        internet.publish(plan)
        until(lambda: run(EXPORTS + PLAN), lambda said: "Request reports" not in said)

        mail = signed_report(REPORT, address, data=report_of_yesterday())
        (tmp_path / "packages" / "report.eml").write_bytes(mail)
        run(
            "curl -sf -T /packages/report.eml smtp://127.0.0.1:25"
            f" --mail-from noreply@google.com --mail-rcpt {address}"
        )
        until(lambda: run(EXPORTS + LIST), lambda said: "google.com" in said)
        assert "messages" in run(EXPORTS + PLAN)

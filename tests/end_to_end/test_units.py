"""The units of systemd: their commands, run with their own system call filters."""

import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.docs.blocks import ROOT
from tests.end_to_end.single_faults import SENDERS
from tests.end_to_end.test_dashboard import Visitor
from tests.end_to_end.test_deliverability import World
from tests.end_to_end.test_deliverability import dns as dns
from tests.end_to_end.test_deliverability import options as options_of_world
from tests.servers.daemon import Daemon
from tests.servers.programs import find_program
from tests.servers.systemd import SupervisedDaemon
from tests.servers.unit_sandbox import read_unit

pytestmark = [pytest.mark.end_to_end, pytest.mark.interop]

UNITS = {"mailcheck.service": SupervisedDaemon, "mailcheck@.service": Daemon}
"""The source of each unit's ports: sockets or the environment."""

WATCHDOG = 60.0  # seconds, as in the units
PASSWORD = "a long password of ann's"
SANDBOX = ROOT / "tests" / "servers" / "unit_sandbox.py"


def command_of(unit: Path, folder: Path) -> list[str]:
    """Return a unit's command with the program and the configuration of the tests."""
    (command,) = read_unit(unit)["ExecStart"]
    program, *arguments = shlex.split(command)
    assert program == "/opt/mailcheck/bin/twistd"
    settings = folder / "mailcheck.toml"
    settings.write_text("")
    twistd = str(Path(sys.executable).with_name("twistd"))
    given = [each.replace("/etc/mailcheck/mailcheck.toml", str(settings)) for each in arguments]
    assert str(settings) in given
    return [sys.executable, str(SANDBOX), str(unit), twistd, *given]


def daemon_of(unit: Path, folder: Path, dns: str) -> Daemon:
    """Return the daemon of a unit."""
    own = {"accounts_registration": "open", "spamassassin_spamd": "off"}
    options = {**options_of_world(folder, dns), **own}
    command = command_of(unit, folder)
    if UNITS[unit.name] is SupervisedDaemon:
        return SupervisedDaemon(folder, WATCHDOG, command=command, **options)
    return Daemon(folder, command=command, **options)


def assert_it_works(daemon: Daemon) -> None:
    """Sign up, sign in, receive a mail, and score one."""
    visitor = Visitor(daemon)
    visitor.open("/sign-up")
    visitor.open("/sign-up", name="ann", password=PASSWORD)
    assert 'id="address"' in visitor.open("/inbox")
    later = Visitor(daemon)
    later.open("/sign-in")
    later.open("/sign-in", name="ann", password=PASSWORD, next="/inbox")
    assert 'id="address"' in later.page
    world, sender = World(daemon), SENDERS["perfect"]
    cursor = daemon.cursor()
    world.send(sender, daemon.address("welcome"))
    message = daemon.get("/inbox/wait", after=cursor, timeout=30).json
    assert message["tag"] == "welcome"
    assert world.scored(sender)["score"] == 10.0
    assert daemon.open("/readyz").json == {"status": "ready"}


@contextmanager
def daemon_under(unit: Path, folder: Path, dns: str) -> Iterator[Daemon]:
    """Run a unit's daemon until the context ends."""
    find_program("systemd-analyze", package="systemd")
    daemon = daemon_of(unit, folder, dns)
    try:
        daemon.start()
        yield daemon
    finally:
        daemon.kill()
        if isinstance(daemon, SupervisedDaemon):
            daemon.close()


@pytest.mark.parametrize("name", UNITS)
def test_a_unit_under_its_own_filter(tmp_path: Path, dns: str, name: str) -> None:
    """A daemon with the filter of this unit does all of its work, and logs no failure."""
    with daemon_under(ROOT / "systemd" / name, tmp_path, dns) as daemon:
        assert_it_works(daemon)
        printed = daemon.output()
    for problem in ("Traceback", "not prepared", "lower priority"):
        assert problem not in printed


def test_a_stricter_filter(tmp_path: Path, dns: str) -> None:
    """A unit that forbids a lower priority, like earlier units, causes only one log line."""
    unit = tmp_path / "mailcheck@.service"
    given = (ROOT / "systemd" / unit.name).read_text()
    allowed = "SystemCallFilter=setpriority setrlimit\n"
    assert allowed in given
    unit.write_text(given.replace(allowed, ""))
    with daemon_under(unit, tmp_path, dns) as daemon:  # ready: its first password is hashed
        assert daemon.open("/readyz").json == {"status": "ready"}
        printed = daemon.output()
    assert printed.count("lower priority") == 1
    assert "Traceback" not in printed

"""The shell inside the daemon: ssh can log in with an authorized key only."""

import imaplib
import os
import subprocess
import threading
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, cast

import pytest
import pytest_twisted
from twisted.internet.threads import deferToThread
from twisted.logger import capturedLogs, formatEvent
from twisted.protocols.policies import WrappingFactory

from mailcheck.assembly.ops import manhole
from mailcheck.config.reading import ConfigError, load_config
from tests.servers.daemon import HOST, free_ports
from tests.servers.in_process_daemon import in_process_daemon
from tests.servers.redis import until
from tests.table import rows

pytestmark = pytest.mark.interop


def make_key(path: Path) -> Path:
    """Create a key pair, and return the path of the private key."""
    subprocess.run(
        ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(path)], check=True, timeout=60
    )
    return path


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Create a folder with the operator's key, another key, and the file of authorized keys."""
    folder = tmp_path_factory.mktemp("manhole")
    make_key(folder / "mine")
    make_key(folder / "other")
    mine = (folder / "mine.pub").read_text()
    (folder / "authorized_keys").write_text(f"# who may\n\n{mine}")
    return folder


def lets_in(folder: Path, keys: str = "authorized_keys") -> dict[str, str]:
    """Return the options of a manhole that reads the file of authorized keys."""
    (port,) = free_ports(1)
    return {"ops_manhole": f"{HOST}:{port}", "ops_manhole_keys": str(folder / keys)}


@pytest_twisted.async_yield_fixture
async def door(folder: Path, tmp_path: Path) -> AsyncIterator[int]:
    """Return the port of an empty shell. One key is in a file that the test may change."""
    keys = tmp_path / "authorized_keys"
    keys.write_text((folder / "authorized_keys").read_text())
    settings = {
        "MAILCHECK_OPS_MANHOLE": "127.0.0.1:2222",
        "MAILCHECK_OPS_MANHOLE_KEYS": str(keys),
        "MAILCHECK_STORAGE_STATE_DIRECTORY": str(tmp_path),
    }
    from twisted.internet import reactor

    listening: Any = reactor
    factory: Any = WrappingFactory(cast(Any, manhole(load_config(None, settings), {})))
    port = listening.listenTCP(0, factory, interface=HOST)
    yield port.getHost().port
    await port.stopListening()
    await until(lambda: not factory.protocols)


def command(port: int, key: Path, *options: str) -> list[str]:
    """Return the ssh command for a key."""
    known = ["-o", "StrictHostKeyChecking=no", "-o", "UserKnownHostsFile=/dev/null"]
    batch = ["-o", "BatchMode=yes", "-o", "IdentitiesOnly=yes", "-F", "/dev/null", *options]
    return ["ssh", "-tt", *known, *batch, "-i", str(key), "-p", str(port), f"ops@{HOST}"]


def refused(port: int, key: Path, *options: str) -> str:
    """Return the error of an ssh that cannot log in."""
    done = subprocess.run(
        command(port, key, *options),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=30,
    )
    assert done.returncode == 255
    return done.stderr


def shown_inside(port: int, key: Path, *typed: tuple[str, str]) -> str:
    """Type lines as a person does: each after the output of the last one."""
    shell = subprocess.Popen(
        command(port, key), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    assert shell.stdin is not None
    assert shell.stdout is not None
    seen = b""
    timer = threading.Timer(30.0, shell.kill)
    timer.start()
    for line, awaited in (*typed, ("\x04", "")):
        shell.stdin.write(line.encode() + b"\r")
        shell.stdin.flush()
        while awaited.encode() not in seen:
            more = os.read(shell.stdout.fileno(), 4_096)
            assert more, f"no {awaited!r} in {seen!r}"
            seen += more
    shell.communicate()
    timer.cancel()
    return seen.decode()


@pytest_twisted.ensureDeferred
async def test_inside(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The shell has services, waits, sessions and the store, and prints a list of its names."""
    (imap_port,) = free_ports(1)
    options = {**lets_in(folder), "imap_listen": f"{HOST}:{imap_port}"}
    async with in_process_daemon(tmp_path, **options) as house:
        wait = await deferToThread(house.ask, "GET", "/inbox/wait?tag=manhole&timeout=60")
        address = await deferToThread(house.address)
        program = await deferToThread(imaplib.IMAP4, HOST, imap_port, 30)
        await deferToThread(program.login, "any", house.key)
        await deferToThread(program.select)
        await deferToThread(
            shown_inside,
            int(options["ops_manhole"].partition(":")[2]),
            folder / "mine",
            ("help()", "You are inside the running mailcheck daemon."),
            (
                "print('names', [type(one).__name__ for one in services][:2])",
                "['PresenceService', 'StoreService']",
            ),
            ("print('waits', [one.wanted.tag for one in waiters], len(waiters))", "['manhole'] 1"),
            ("print('first', waiters[0].wanted.tag)", "first manhole"),
            ("waiters", "1 waiters"),
            ("sessions", "INBOX, between commands>"),
            (f"store.find_inbox('{address.partition('@')[0]}')", "InboxState("),
            ("print('store', conditions.problems['store'] == '')", "store True"),
            ("help", "Leave with Ctrl-D."),
        )
        wait.connection.close()
        await deferToThread(program.logout)
    assert "a shell was opened inside the daemon" in capsys.readouterr().out


@pytest_twisted.ensureDeferred
async def test_another_key(door: int, folder: Path) -> None:
    """Another key is rejected."""
    said = await deferToThread(refused, door, folder / "other")
    assert "Permission denied (publickey)" in said


@pytest_twisted.ensureDeferred
async def test_passwords(door: int, folder: Path) -> None:
    """Passwords are not accepted."""
    by_password = ("-o", "PreferredAuthentications=password")
    said = await deferToThread(refused, door, folder / "other", *by_password)
    assert "Permission denied (publickey)" in said


@pytest_twisted.ensureDeferred
async def test_a_key_that_is_taken_away(door: int, folder: Path, tmp_path: Path) -> None:
    """A key deleted from the file is rejected from then on, also while the file is invalid."""
    for content in ("# nobody any more\n", "no key\n"):
        (tmp_path / "authorized_keys").write_text(content)
        with capturedLogs() as events:
            said = await deferToThread(refused, door, folder / "mine")
        assert "Permission denied" in said
    told = [formatEvent(event) for event in events]
    assert any(line.startswith("the manhole rejects all keys: ") for line in told)


@rows(
    ("0.0.0.0:2222", "x", "must be 127.0.0.1:port"),
    ("192.0.2.1:2222", "x", "must be 127.0.0.1:port"),
    ("systemd:domain=INET:name=x", "x", "must be 127.0.0.1:port"),
    ("127.0.0.1:2222", "", "manhole requires manhole_keys; set both"),
)
def test_what_is_not_allowed(address: str, keys: str, problem: str) -> None:
    """The shell cannot listen for other machines, nor run without keys."""
    settings = {"MAILCHECK_OPS_MANHOLE": address, "MAILCHECK_OPS_MANHOLE_KEYS": keys}
    with pytest.raises(ConfigError, match=problem):
        load_config(None, settings)


@rows(None, "", "# nobody\n", "no key\n")
def test_keys_that_are_none(tmp_path: Path, content: str | None) -> None:
    """A daemon does not start with a file without keys; the error names the option."""
    path = tmp_path / "keys"
    if content is not None:
        path.write_text(content)
    settings = {
        "MAILCHECK_OPS_MANHOLE": "127.0.0.1:2222",
        "MAILCHECK_OPS_MANHOLE_KEYS": str(path),
        "MAILCHECK_STORAGE_STATE_DIRECTORY": str(tmp_path),
    }
    config = load_config(None, settings)
    with pytest.raises(ConfigError, match=r"\[ops\] manhole_keys"):
        manhole(config, {})

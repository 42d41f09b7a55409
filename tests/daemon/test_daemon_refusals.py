"""Whatever stops a start is found by ``mailcheck config check``, with the same sentence."""

import ast
import io
import os
import socket
import sqlite3
import subprocess
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import NamedTuple

import pytest
import pytest_twisted
from twisted.application.service import MultiService
from twisted.internet.defer import maybeDeferred

import mailcheck
from mailcheck.assembly.ops import Environment
from mailcheck.assembly.running.starting import build_process
from mailcheck.assembly.workers import Workers
from mailcheck.config.reading import ConfigError, load_config
from mailcheck.daemon.listening import CannotStart, ListeningService
from mailcheck.daemon.presence import PresenceService
from mailcheck.daemon.services import StoreService
from mailcheck.workers.scheduling import DirectWorker
from tests.cli.command_line import run_command, run_work

SOURCES = Path(mailcheck.__file__).parent

FILE = "mailcheck.toml"

DECIDING = ("assembly", "daemon")
"""The packages that refuse to start. `load_config` refuses for all commands alike."""

ELSEWHERE = {
    "parent_of_processes": "its certificate is that of each process",
    "Processes.privilegedStartService": "its ports are those of each process",
    "_build": "it passes on the refusals of the others",
    "naming": "its callers are counted",
    "cannot_listen": "its callers are counted",
    "PresenceService._has_begun": "below, with another process",
    "try_connecting": "it is the check",
}


REFUSING = ("ConfigError", "CannotStart", "cannot_listen", "naming")


class Refusal(NamedTuple):
    """A configuration with which no daemon starts: its options, and what prepares the folder."""

    options: str
    prepare: Callable[[Path], object] = lambda folder: None


def spoil(name: str) -> Callable[[Path], object]:
    """Return a function that writes a file without meaning."""
    return lambda folder: (folder / name).write_text("x")


BEFORE = {
    "certificate": Refusal('[smtp]\ncertificate = "none.pem"\nprivate_key = "none.pem"'),
    "no certificate": Refusal(
        '[smtp]\ncertificate = "x.pem"\nprivate_key = "x.pem"', spoil("x.pem")
    ),
    "state directory": Refusal('[storage]\nstate_directory = "x/y"', spoil("x")),
    "database folder": Refusal('[storage]\nurl = "sqlite:x/y.db"', spoil("x")),
    "manhole keys": Refusal('[ops]\nmanhole = "127.0.0.1:1"\nmanhole_keys = "none"'),
    "no manhole key": Refusal('[ops]\nmanhole = "127.0.0.1:1"\nmanhole_keys = "x"', spoil("x")),
    "manhole packages": Refusal('[ops]\nmanhole = "127.0.0.1:1"\nmanhole_keys = "x"'),
    "catalogue": Refusal('[blocklists]\ncatalogue = "none.toml"'),
    "zone": Refusal('[blocklists]\ndisabled = ["none.example"]'),
    "authorities": Refusal('[probes]\nca_file = "none.pem"'),
    "authorities of Redis": Refusal(
        '[cluster]\nredis = "rediss://redis.example:1"\nca_file = "none.pem"'
    ),
    "authorities of a provider": Refusal(
        '[web]\npublic_url = "https://m.example"\n'
        '[oidc]\nissuer = "https://i.example"\nclient_id = "x"\nca_file = "none.pem"'
    ),
    "endpoint": Refusal('[smtp]\nlisten = ["tcp:mail"]'),
    "endpoint with TLS": Refusal('[web]\nlisten = ["ssl:443"]'),
}
"""Found without a connection."""


def told(refused: BaseException) -> str:
    """Return what the operator sees of a refusal."""
    return f"mailcheck: {str(refused).removeprefix('mailcheck: ')}"


def build(config_file: Path, reactor: object) -> MultiService:
    """Build a daemon as a start does."""
    config = load_config(config_file, {})
    worker = DirectWorker()
    environment = Environment(io.StringIO(), {}, None, lambda: config, {})
    workers = Workers(worker, worker, worker)
    return build_process(config, reactor, workers, environment, os.urandom)[1]


def where_raised(error: BaseException) -> str:
    """Return the function of the deciding packages that has raised an error."""
    frames = [
        frame.f_code.co_qualname
        for frame, _ in traceback.walk_tb(error.__traceback__)
        if Path(frame.f_code.co_filename).is_relative_to(SOURCES)
        and Path(frame.f_code.co_filename).relative_to(SOURCES).parts[0] in DECIDING
        and frame.f_code.co_name not in ("naming", "cannot_listen")
    ]
    return frames[-1]


def refusing_functions() -> Iterator[str]:
    """Return the functions that can refuse a start."""

    def visit(node: ast.AST, name: str) -> Iterator[str]:
        for child in ast.iter_child_nodes(node):
            inner = name
            if isinstance(child, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                inner = f"{name}.{child.name}".lstrip(".")
            if isinstance(child, ast.Call) and ast.unparse(child.func) in REFUSING:
                yield name
            yield from visit(child, inner)

    for package in DECIDING:
        for path in (SOURCES / package).glob("*.py"):
            yield from visit(ast.parse(path.read_text("utf-8")), "")


def take_port(folder: Path, option: str = "web.listen") -> socket.socket:
    """Listen on a port, and write it into the configuration, as the only one of the daemon."""
    taken = socket.create_server(("127.0.0.1", 0))
    ports = dict.fromkeys(("smtp.listen", "smtp.submission_listen", "ops.listen"), "[]")
    ports |= {"web.listen": '"127.0.0.1:0"', option: f'"127.0.0.1:{taken.getsockname()[1]}"'}
    (folder / FILE).write_text("".join(f"{name} = {port}\n" for name, port in ports.items()))
    return taken


def lose_database(folder: Path) -> None:
    """Empty the database of a daemon that has run."""
    (folder / "var").mkdir()
    (folder / "var" / "api-key").write_text("mc_x")
    (folder / "var" / "mailcheck.db").write_text("")


def break_database(folder: Path) -> None:
    """Write something else into the file of the database."""
    (folder / "var").mkdir()
    (folder / "var" / "mailcheck.db").write_text("text" * 1000)


def leave_newer_database(folder: Path) -> None:
    """Leave the database of a newer version."""
    (folder / "var").mkdir()
    with closing(sqlite3.connect(folder / "var" / "mailcheck.db")) as connection:
        connection.execute("PRAGMA user_version = 9999")


BUSY = {
    "[smtp] listen or MAILCHECK_SMTP_LISTEN": "smtp.listen",
    "[smtp] submission_listen or MAILCHECK_SMTP_SUBMISSION_LISTEN": "smtp.submission_listen",
    "[web] listen or MAILCHECK_WEB_LISTEN": "web.listen",
}
"""The options of ports, by what the refusal of a busy one says."""

CONNECTED: dict[str, Callable[[Path], object]] = {
    **{told: partial(take_port, option=option) for told, option in BUSY.items()},
    "lost database": lose_database,
    "no database": break_database,
    "newer database": leave_newer_database,
}
"""Found with ``--connect`` only."""


async def refuse_start(config_file: Path, reactor: object) -> BaseException:
    """Start what a daemon starts first: its store and its ports. Return the refusal."""
    services = build(config_file, reactor)
    started = []
    try:
        for service in services:
            if isinstance(service, PresenceService | StoreService | ListeningService):
                started.append(service)
                service.privilegedStartService()
                service.startService()
    except CannotStart as refused:
        return refused
    finally:
        for service in reversed(started):
            if service.running:
                await maybeDeferred(service.stopService)
    raise AssertionError("the daemon starts")


@pytest.fixture
def folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Path]:
    """Return a function that makes a folder with a name the current one."""
    for name in list(os.environ):
        if name.startswith("MAILCHECK_"):
            monkeypatch.delenv(name)

    def enter(name: str) -> Path:
        folder = tmp_path / name
        folder.mkdir()
        monkeypatch.chdir(folder)
        (folder / FILE).write_text("")
        return folder

    return enter


@pytest_twisted.ensureDeferred
async def test_whatever_stops_a_start(
    folders: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A start and ``config check`` refuse with the same sentence, and the check changes nothing."""
    from twisted.internet import reactor

    raised = set()
    for name, refusal in BEFORE.items():
        folder = folders(name)
        (folder / FILE).write_text(refusal.options)
        refusal.prepare(folder)
        with monkeypatch.context() as modules:
            if name == "manhole packages":
                modules.setitem(sys.modules, "mailcheck.ops.manhole", None)
            before = sorted(folder.rglob("*"))
            checked = run_command("--config", FILE, "config", "check")
            assert sorted(folder.rglob("*")) == before, name
            with pytest.raises((ConfigError, CannotStart)) as refused:
                build(folder / FILE, reactor)
        raised.add(where_raised(refused.value))
        assert (checked.status, checked.errors) == (2, f"{told(refused.value)}\n"), name
    for name, prepare in CONNECTED.items():
        folder = folders(name)
        kept = prepare(folder)
        assert run_command("--config", FILE, "config", "check").status == 0, name
        before = sorted(folder.rglob("*"))
        connected = await run_work({}, "--config", FILE, "config", "check", "--connect")
        assert sorted(folder.rglob("*")) == before, name
        refused_start = await refuse_start(folder / FILE, reactor)
        raised.add(where_raised(refused_start))
        assert (connected.status, connected.errors) == (1, f"{told(refused_start)}\n"), name
        if isinstance(kept, socket.socket):
            assert f"choose another address with {name}\n" in connected.errors
            kept.close()
    assert set(refusing_functions()) - ELSEWHERE.keys() == raised


@pytest_twisted.ensureDeferred
async def test_a_configuration_that_starts(folders: Callable[[str], Path]) -> None:
    """``config check --connect`` tells that a new daemon can start, and leaves no port open."""
    folder = folders("good")
    with take_port(folder):
        pass
    for _ in range(2):
        connected = await run_work({}, "--config", FILE, "config", "check", "--connect")
        assert (connected.status, connected.output) == (0, "")
        assert connected.errors.endswith("is valid; its ports and its database can be used\n")
    assert list(folder.iterdir()) == [folder / FILE]


LOCK = """
import sys
from mailcheck.engines.sqlite import SqlitePresence
SqlitePresence("var/mailcheck.db").begin()
print("x", flush=True)
sys.stdin.read()
"""


@pytest.mark.interop
@pytest_twisted.ensureDeferred
async def test_a_database_in_use(folders: Callable[[str], Path]) -> None:
    """``config check --connect`` names the daemon that uses the database."""
    from twisted.internet import reactor

    folder = folders("used")
    command = [sys.executable, "-c", LOCK]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, cwd=folder) as other:
        assert other.stdout is not None
        other.stdout.readline()
        (folder / "var" / "mailcheck.db").touch()
        connected = await run_work({}, "--config", FILE, "config", "check", "--connect")
        refused = await refuse_start(folder / FILE, reactor)
        other.communicate()
    assert f"another daemon (process {other.pid}) uses" in connected.errors
    assert (connected.status, connected.errors) == (1, f"{told(refused)}\n")

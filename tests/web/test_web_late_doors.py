"""Doors that the first request for them opens: the modules of a daemon, and its first answers."""

import sys
from pathlib import Path

import pytest
from twisted.logger import LogEvent

from mailcheck.assembly import doors
from mailcheck.assembly.doors.late import DOORS
from mailcheck.assembly.doors.web import build_web
from mailcheck.config.options import WebOptions
from tests.house import House, config_in_memory
from tests.servers.daemon import Daemon
from tests.web.raw_http import RawHttp, read_answer, request

ALWAYS_OPEN = {"api", "site"}
"""Packages of ``mailcheck.web`` that every daemon needs. All others belong to late doors."""

PARTS = {"__init__", "access", "late", "rest", "web"}
"""Modules of ``mailcheck.assembly.doors`` that are needed before the first request."""

LATE = {one.stem for one in Path(doors.__path__[0]).glob("*.py")} - PARTS
"""The modules that open the late doors."""

SERVERS = {"imap", "milter"}
"""Packages of servers that listen only where they are configured."""

FIRST = {
    "mcp": "/mcp",
    "mailosaur": "/mailosaur/api/servers",
    "mailslurp": "/mailslurp/inboxes",
    "providers": "/providers/mailfrog/send",
    ".well-known": "/.well-known/oauth-authorization-server",
    "token": "/token",
    "register": "/register",
    "revoke": "/revoke",
    "scim": "/scim/v2/Users",
    "sign-in": "/sign-in",
    "docs": "/docs/missing",
}
"""A path of each door, by its first segment. The last ones are a page, and an error as a page."""

_RECORDED = """
import sys
from pathlib import Path
from typing import Any
from twisted.internet import reactor
from twisted.scripts.twistd import run
def write():
    Path("modules").write_text("\\n".join(sys.modules))
reactor.addSystemEventTrigger("before", "shutdown", write)
run()
"""
"""Runs ``twistd``, and writes the names of its modules when it stops."""


def rooms(modules: set[str], above: str) -> set[str]:
    """Return the packages below a package of which modules are loaded."""
    below = [name.removeprefix(f"{above}.") for name in modules if name.startswith(f"{above}.")]
    return {name.partition(".")[0] for name in below}


def test_a_ready_daemon_has_opened_no_door(tmp_path: Path) -> None:
    """A daemon that nobody has used has no module of a late door, or of a server that is off."""
    arguments = ["--nodaemon", "--pidfile=", "mailcheck"]
    daemon = Daemon(tmp_path, command=[sys.executable, "-c", _RECORDED, *arguments])
    try:
        daemon.start()
        daemon.stop()
    finally:
        daemon.kill()
    loaded = set((tmp_path / "modules").read_text().split())
    assert "mailcheck.web.api.door" in loaded
    assert rooms(loaded, "mailcheck.web") == ALWAYS_OPEN
    assert not rooms(loaded, "mailcheck") & SERVERS


def test_all_doors_can_be_opened_at_the_start(monkeypatch: pytest.MonkeyPatch) -> None:
    """With ``[web] preload``, the start opens every door: it fails if one cannot be imported."""
    house = House(config_in_memory(web=WebOptions(preload=True)))
    for name in LATE:
        with monkeypatch.context() as broken:
            broken.setitem(sys.modules, f"mailcheck.assembly.doors.{name}", None)
            with pytest.raises(ModuleNotFoundError, match=name):
                build_web(house.assembly)


def test_every_door_is_asked() -> None:
    """The list above has a path of each late door."""
    assert DOORS.keys() <= FIRST.keys()


def test_the_first_requests_are_answered(house: House) -> None:
    """The first requests for a door, two at once, are answered as by a door that is open."""
    opened = House(config_in_memory(web=WebOptions(preload=True)))
    for path in FIRST.values():
        visits = [RawHttp(house), RawHttp(house), RawHttp(opened)]
        for visit in visits:
            visit.send(request(path, "Accept: text/html"))
        first, second, expected = (read_answer(visit.received(), "GET")[0] for visit in visits)
        assert expected.status < 500
        assert first.status == second.status == expected.status, path
        assert first.headers.keys() == second.headers.keys() == expected.headers.keys()
        assert len(first.body) == len(second.body) == len(expected.body)


def test_a_door_that_could_not_be_opened_is_tried_again(
    house: House, monkeypatch: pytest.MonkeyPatch, logged_failures: list[LogEvent]
) -> None:
    """A failing import is a 500 as of any crash. The next request opens the door."""
    name, path = "mailcheck.assembly.doors.providers", FIRST["providers"]
    visit = RawHttp(house)
    with monkeypatch.context() as broken:
        broken.setitem(sys.modules, name, None)
        visit.send(request(path))
    failed, _ = read_answer(visit.received(), "GET")
    assert (failed.status, failed.headers["x-content-type-options"]) == (500, "nosniff")
    assert name not in failed.body.decode()
    assert [event["reference"] for event in logged_failures] == [failed.json["reference"]]
    assert house.open(path).answer().status == 404

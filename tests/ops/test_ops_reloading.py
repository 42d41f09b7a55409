"""The log lines of SIGHUP and HTTP, written by the real parts of a daemon."""

import io
import re
from collections.abc import Sequence
from pathlib import Path

import pytest
from twisted.logger import LogEvent, LogLevel, capturedLogs, formatEvent

from mailcheck.assembly.ops import Certificates, Environment, Reloading
from mailcheck.assembly.workers import Workers
from mailcheck.config.options import Config
from mailcheck.config.reading import load_config
from mailcheck.core.errors import SignInFailed
from mailcheck.core.instants import Instant
from mailcheck.core.instruments import Conditions
from mailcheck.ops.journal import log_changes
from mailcheck.ops.log import RENDERINGS, LogWriter
from mailcheck.workers.scheduling import DirectWorker
from tests.house import House, config_in_memory, run
from tests.table import rows
from tests.web.workers import FaultyWorker


def ours(events: Sequence[LogEvent], namespace: str) -> list[str]:
    """Return the lines of one module."""
    return [formatEvent(event) for event in events if event["log_namespace"].startswith(namespace)]


class Reloaded:
    """The outer parts of a daemon whose configuration file changes."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "mailcheck.toml"
        self.output = io.StringIO()
        self.log = LogWriter(self.output, RENDERINGS["text"], "info")
        options = {"MAILCHECK_STORAGE_STATE_DIRECTORY": str(folder)}

        def read() -> Config:
            return load_config(self.path, options)

        self.path.write_text("")
        conditions = Conditions()
        certificates = Certificates(read(), conditions, Instant(0))
        environment = Environment(self.output, {}, self.log, read, {})
        log_changes(conditions)
        self._reloading = Reloading(certificates, conditions, environment)

    def reload(self, content: str) -> list[tuple[LogLevel, str]]:
        """Write another configuration and reload it. Return the lines that are logged."""
        self.path.write_text(content)
        with capturedLogs() as events:
            self._reloading.reload()
        return [(event["log_level"], formatEvent(event)) for event in events]

    def writes(self, level: LogLevel) -> bool:
        """Return whether the log has lines of a level."""
        before = self.output.tell()
        self.log({"log_level": level, "log_format": "x", "log_time": 0.0})
        return self.output.tell() > before


def test_the_log_level_is_read_again(tmp_path: Path) -> None:
    """SIGHUP changes the level of the log."""
    daemon = Reloaded(tmp_path)
    for level, is_written in (("debug", True), ("error", False)):
        ((_, line),) = daemon.reload(f'[ops]\nlog_level = "{level}"\n')
        assert line == f"read again: certificates, and the log level: {level}"
        assert daemon.writes(LogLevel.debug) is is_written


@rows("[nonsense]\n", '[ops]\nlog_level = "loud"\n', "x =")
def test_a_bad_configuration_changes_nothing(tmp_path: Path, content: str) -> None:
    """SIGHUP with an invalid configuration logs the position of the error and changes no option."""
    daemon = Reloaded(tmp_path)
    daemon.reload('[ops]\nlog_level = "warn"\n')
    ((level, line),) = daemon.reload(content)
    assert level is LogLevel.error
    assert line.startswith("the configuration stays as it was: ")
    assert "mailcheck.toml" in line
    assert not daemon.writes(LogLevel.info)
    assert daemon.writes(LogLevel.warn)


JOURNAL = "mailcheck.ops.journal"


def test_a_fault_of_http_has_a_line(logged_failures: list[LogEvent]) -> None:
    """The line of a 500 has the reference of the response, and no share link."""
    reader = FaultyWorker()
    house = House(config_in_memory(), Workers(DirectWorker(), reader, DirectWorker()))
    reader.fault = RuntimeError("broken")
    token = "a" * 52
    with capturedLogs() as events:
        reference = house.open(f"/share/{token}").answer().json["reference"]
    (line,) = ours(events, JOURNAL)
    assert re.match(
        rf"HTTP 500: client=\S+ reference={reference} method=GET path=/share/\.\.\. "
        "why=internal error",
        line,
    )
    assert not any(token in formatEvent(event) for event in events)
    assert len(logged_failures) == 1
    house.close()


def test_what_is_answered_well_has_no_line(house: House) -> None:
    """Successful requests and mistakes of clients are counted, not logged."""
    with capturedLogs() as events:
        house.get("/inbox")
        house.get("/nowhere")
    assert ours(events, JOURNAL) == []
    assert house.site.answers.counts == {("200",): 1, ("404",): 1}


def test_a_failed_sign_in_has_a_line(house: House) -> None:
    """The line of a failed sign-in has the client's address, but neither name nor password."""
    with capturedLogs() as events, pytest.raises(SignInFailed):
        run(house.assembly.accounts.sign_in.sign_in("my-password", "hunter2", "203.0.113.9"))
    (line,) = ours(events, JOURNAL)
    assert line == ("failed sign-in: client=203.0.113.9 why=no account has this name and password")

"""The log: one line for each event, readable for people and programs, safe against injection."""

import io
import json
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from twisted.internet.error import ConnectionLost
from twisted.logger import Logger, LogLevel, capturedLogs
from twisted.python.failure import Failure

from mailcheck.core.identifiers import DeliveryId
from mailcheck.core.memory.instruments import Conditions
from mailcheck.core.messages import Session, TlsFacts
from mailcheck.ops.journal import (
    LINES_PER_MINUTE,
    MAX_CLIENTS,
    ClientJournal,
    MailJournal,
    Pace,
    log_changes,
)
from mailcheck.ops.log import (
    JOURNAL_RENDERINGS,
    PRIORITIES,
    RENDERINGS,
    LogWriter,
    Render,
    is_journal,
    render_journal_json,
    render_journal_text,
    twistd_output,
)
from mailcheck.ports.journals import WebFault
from tests.house import run
from tests.table import rows

TIME = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z"


class Written:
    """A log in memory, and loggers that write to it."""

    def __init__(
        self, kind: str = "text", level: str = "info", renderings: Mapping[str, Render] = RENDERINGS
    ) -> None:
        self.output = io.StringIO()
        self.writer = LogWriter(self.output, renderings[kind], level)

    def logger(self, namespace: str) -> Logger:
        """Return the logger of a module."""
        return Logger(namespace, observer=self.writer)

    def lines(self) -> list[str]:
        """Return the lines written so far, without the time."""
        return [re.sub(f"^{TIME} ", "", line) for line in self.output.getvalue().splitlines()]


@pytest.fixture
def written() -> Written:
    """Return a log that is empty."""
    return Written()


def test_text(written: Written) -> None:
    """A line of text begins with the time in UTC and the level."""
    written.logger("mailcheck.smtp").warn("{subject}: {problem}", subject="disk", problem="full")
    assert re.fullmatch(f"{TIME} warn disk: full\n", written.output.getvalue())


def test_json() -> None:
    """A line of JSON contains the message and its fields by name and type."""
    written = Written("json")
    written.logger("mailcheck.x").info("a={a} b={b}", a=1, b=b"two")
    line = json.loads(written.output.getvalue())
    assert re.fullmatch(TIME, line.pop("time"))
    assert line == {
        "level": "info",
        "message": "a=1 b=b'two'",
        "a": 1,
        "b": "b'two'",
        "source": "mailcheck.x",
    }


@rows(*RENDERINGS)
def test_one_event_is_one_line(kind: str) -> None:
    """Data sent by a client can neither begin a line nor send control codes to the terminal."""
    written = Written(kind)
    hostile = "x\r\n2026-01-01T00:00:00.000Z warn failed key: client=192.0.2.1\x1b[2J\x85\u2028"
    written.logger("mailcheck.smtp").info("sender={sender}", sender=hostile)
    text = written.output.getvalue()
    begins = [line for line in text.splitlines() if line[:1] not in ("\t", "")]
    assert len(begins) == 1
    assert "\x1b" not in text
    assert "\r" not in text


@rows(*PRIORITIES)
def test_the_journal(level: str) -> None:
    """In the journal each line has a priority, and its text contains neither time nor level."""
    event = {"log_time": 0.0, "log_failure": Failure(ConnectionLost("gone")), "log_namespace": "x"}
    mark = f"<{PRIORITIES[level]}>"
    first, *rest = render_journal_text(event, level, "disk: full").splitlines()
    assert first == f"{mark}disk: full"
    assert rest
    assert all(line.startswith(f"{mark}\t") for line in rest)
    (line,) = render_journal_json(event, level, "disk: full").splitlines()
    assert line.startswith(mark)
    assert json.loads(line.removeprefix(mark))["message"] == "disk: full"


@rows(*JOURNAL_RENDERINGS)
def test_a_client_chooses_no_priority(kind: str) -> None:
    """A journal line begins with the priority of its event, whatever text a client has sent."""
    written = Written(kind, renderings=JOURNAL_RENDERINGS)
    hostile = "x\r\n<2>failed key: client=192.0.2.1\n<1>y"
    written.logger("mailcheck.smtp").info("sender={sender}", sender=hostile)
    for line in written.output.getvalue().splitlines():
        assert re.match(r"<6>(?:\t|sender=|\{)", line)


def test_what_is_the_journal(tmp_path: Path) -> None:
    """The journal is recognised by device and inode; a redirected output is not the journal."""
    with (tmp_path / "journal").open("w") as journal, (tmp_path / "file").open("w") as other:
        status = os.fstat(journal.fileno())
        environment = {"JOURNAL_STREAM": f"{status.st_dev}:{status.st_ino}"}
        assert is_journal(journal, environment)
        assert not is_journal(other, environment)
        assert not is_journal(journal, {})
    assert not is_journal(journal, environment)  # closed
    assert not is_journal(io.StringIO(), environment)


@rows(*RENDERINGS)
def test_failure(kind: str) -> None:
    """The traceback of a failure is part of its event."""
    written = Written(kind)
    written.logger("mailcheck.x").failure("broken", Failure(ConnectionLost("gone")))
    first, *rest = written.lines()
    assert "broken" in first
    if kind == "json":
        assert rest == []
        assert "ConnectionLost" in json.loads(first)["traceback"]
    else:
        assert all(line.startswith("\t") for line in rest)
        assert any("ConnectionLost" in line for line in rest)


@rows("debug", "info", "warn", "error")
def test_level(level: str) -> None:
    """Events below the level are not written, and the level can be changed at any time."""
    written = Written(level=level)
    log = written.logger("mailcheck.x")
    levels = ["debug", "info", "warn", "error"]
    for each in levels:
        log.emit(LogLevel.lookupByName(each), each)
    assert [line.split()[0] for line in written.lines()] == levels[levels.index(level) :]
    written.writer.set_level("error")
    log.warn("late")
    assert written.lines()[-1] == "error error"


def test_problems_are_counted(written: Written) -> None:
    """Lines of level warning and above are counted by level."""
    log = written.logger("mailcheck.x")
    log.info("x")
    log.warn("x")
    log.warn("x")
    log.error("x")
    assert written.writer.problems.counts == {("warn",): 2, ("error",): 1}


@rows(
    "ConnectedSocket starting on 41813",
    "(UDP Port 41813 Closed)",
    "(TCP Port 25 Closed)",
    "Main loop terminated.",
    "reactor class: twisted.internet.epollreactor.EPollReactor.",
)
def test_noise(text: str) -> None:
    """Twisted's notes about sockets are not written; its warnings are."""
    written = Written()
    written.logger("log_legacy").info(text)
    assert written.lines() == []
    written.logger("log_legacy").warn(text)
    written.logger("mailcheck.x").info(text)
    assert len(written.lines()) == 2


def test_a_format_that_does_not_fit(written: Written) -> None:
    """An event with a faulty format string is still logged."""
    written.logger("mailcheck.x").info("{there} {missing}", there=1)
    (line,) = written.lines()
    assert "missing" in line


@rows({"logger": "x.y"}, {"syslog": True})
def test_the_choice_of_twistds_user(options: dict[str, Any]) -> None:
    """A logger or syslog requested by an option of twistd is used instead of our log."""
    assert twistd_output({"nodaemon": True, **options}) is None


def test_a_log_file(tmp_path: Any) -> None:
    """``twistd --logfile`` gets the same lines."""
    path = tmp_path / "mailcheck.log"
    file = twistd_output({"logfile": str(path), "nodaemon": True})
    assert file is not None
    Logger("mailcheck.x", observer=LogWriter(file, RENDERINGS["text"], "info")).info("grüße")
    assert path.read_text("utf-8").endswith(" info grüße\n")


SESSION = Session("192.0.2.9", "mx.example", True, TlsFacts("TLSv1.3", "X"), None)


def journal_of(written: Written, pace: Pace) -> MailJournal:
    """Return a mail journal that writes to this log."""
    return MailJournal("mail", pace, written.logger("mailcheck.ops.journal"))


def test_a_mail_has_a_line(written: Written) -> None:
    """The line has delivery, client, sender's domain, recipients, size, TLS, reply and duration."""
    journal = journal_of(written, Pace())
    journal.note_delivery(SESSION, "jane@shop.example", DeliveryId("d1"), 2, 5_000, 0.00312)
    (line,) = written.lines()
    assert line == (
        "info mail accepted: client=192.0.2.9 port=mail delivery=d1 recipients=2 size=5000 "
        "tls=TLSv1.3 reply=250 ms=3.1 sender=shop.example"
    )
    assert journal.replies.counts == {("DATA", "250", "2.0.0"): 1}


def test_refusals_of_one_client(written: Written) -> None:
    """Each client gets ten lines a minute, then a count; other clients are not affected."""
    pace = Pace(written.logger("mailcheck.ops.journal"))
    journal = journal_of(written, pace)
    for _ in range(LINES_PER_MINUTE + 7):
        journal.note_refusal("2001:db8::1", "RCPT", b"550 5.1.1 no such inbox\r\n")
    journal.note_refusal("192.0.2.1", "(connecting)", b"421 4.7.0 Too many connections\r\n")
    assert len(written.lines()) == LINES_PER_MINUTE + 1
    assert written.lines()[0] == (
        "info refused: client=2001:db8::1 port=mail command=RCPT reply=550 5.1.1 no such inbox"
    )
    run(pace.begin_minute())
    assert written.lines()[-1] == ("info 7 more refusals within a minute: client=2001:db8::/64")
    journal.note_refusal("2001:db8::2", "RCPT", b"550 5.1.1 no such inbox\r\n")
    assert len(written.lines()) == LINES_PER_MINUTE + 3
    assert journal.replies.counts["RCPT", "550", "5.1.1"] == LINES_PER_MINUTE + 8


def test_many_clients() -> None:
    """The number of lines is limited, however many clients are rejected."""
    pace = Pace()
    allowed = sum(pace.allows(f"192.{a}.{b}.1") for a in range(20) for b in range(256))
    assert allowed == MAX_CLIENTS + LINES_PER_MINUTE


def test_faults_of_http(written: Written) -> None:
    """A response of 5xx has a line with its reference."""
    journal = ClientJournal(Pace(), written.logger("mailcheck.ops.journal"))
    journal.note_fault(WebFault(500, "192.0.2.1", "GET", "/api/v1/inbox", "abc", "it failed"))
    assert written.lines() == [
        "warn HTTP 500: client=192.0.2.1 reference=abc method=GET path=/api/v1/inbox why=it failed"
    ]


def test_changes_of_state_have_a_line() -> None:
    """Each change of a state, to failing and back, has one line."""
    conditions = Conditions()
    log_changes(conditions)
    with capturedLogs() as events:
        for problem in ("", "no room", "no room", ""):
            conditions.set("disk", problem)
    assert [event["log_level"].name for event in events] == ["warn", "info"]

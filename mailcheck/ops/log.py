"""The log: a line for each event, as text for people or as JSON for programs.

Every line is one event; only the traceback of a failure follows in lines of its
own, each behind a tab. A control character becomes ``?``: nothing that a client
has sent can begin a line or move a terminal's cursor. In systemd's journal each
line has a priority in front, as sd-daemon(3) describes it, and text has neither
time nor level: the journal has both.
"""

import io
import json
import os
import re
import signal
import sys
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, Protocol

from twisted.logger import ILogObserver, LogEvent, LogLevel, formatEvent
from twisted.python.logfile import LogFile
from zope.interface import implementer

from mailcheck.core.instruments import Tally

LEVELS = {level: number for number, level in enumerate(LogLevel.iterconstants())}
INFO, WARN = LEVELS[LogLevel.info], LEVELS[LogLevel.warn]

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029]")

# What Twisted says of each socket and each factory; the first lines of the daemon
# say where it listens.
_NOISE = re.compile(
    r"\S+ starting on .+|\(.*Port .* Closed\)|Timing out client: .*|"
    r"twistd \S+ \(.*\) starting up\.|reactor class: .*|Main loop terminated\.",
    re.DOTALL,
)

OWN = "mailcheck."
"""What the names of our own modules begin with."""


class Output(Protocol):
    """Where lines go."""

    def write(self, text: str, /) -> object:
        """Take a text."""

    def flush(self) -> None:
        """Send it on."""


@implementer(ILogObserver)
class LogWriter:
    """Writes what is of ``level`` or above; it may be changed at any time.

    ``problems`` counts the lines from the level of a warning on.
    """

    def __init__(self, output: Output, render: "Render", level: str) -> None:
        self._output = output
        self._render = render
        self._lowest = 0
        self.set_level(level)
        self.problems = Tally()

    def set_level(self, level: str) -> None:
        """Write from this level on: ``debug``, ``info``, ``warn`` or ``error``."""
        self._lowest = LEVELS[LogLevel.lookupByName(level)]

    def __call__(self, event: LogEvent) -> None:
        """Write one event, in one piece."""
        level = event.get("log_level", LogLevel.info)
        number = LEVELS[level]
        if number < self._lowest:
            return
        is_our_own = event.get("log_namespace", "").startswith(OWN)
        text = _text_of(event, is_our_own=is_our_own)
        if not is_our_own and number <= INFO and _NOISE.fullmatch(text):
            return
        if number >= WARN:
            self.problems.add(level.name)
        self._output.write(self._render(event, level.name, text))
        self._output.flush()


Render = Callable[[LogEvent, str, str], str]
"""Writes an event, given the name of its level and its text."""


def render_text(event: LogEvent, level: str, text: str) -> str:
    """Write ``2026-11-22T17:31:23.120Z info ...``."""
    return f"{_time_of(event)} {level} {_printable(event, text)}\n"


def render_json(event: LogEvent, level: str, text: str) -> str:
    """Write an object: time, level, message, what the message is made of, and who says it."""
    failure = event.get("log_failure")
    source = event.get("log_namespace", "")
    line: dict[str, object] = {"time": _time_of(event), "level": level, "message": text}
    if source.startswith(OWN):
        line |= {
            name: value if isinstance(value, str | int | float | None) else str(value)
            for name, value in event.items()
            if not name.startswith("log_") and name not in line
        }
    line["source"] = source
    if failure is not None:
        line["traceback"] = failure.getTraceback()
    return json.dumps(line) + "\n"


RENDERINGS: dict[str, Render] = {"text": render_text, "json": render_json}
"""How a line is written, by the option's word."""

PRIORITIES = {"debug": 7, "info": 6, "warn": 4, "error": 3, "critical": 2}
"""The priorities of syslog(3), by the names of levels."""


def with_priority(level: str, text: str) -> str:
    """Return a text as the journal takes it: the priority stands in front of each line."""
    mark = f"<{PRIORITIES[level]}>"
    return mark + text.replace("\n", f"\n{mark}")


def render_journal_text(event: LogEvent, level: str, text: str) -> str:
    """Write ``<6>...``: the journal itself has the time."""
    return with_priority(level, _printable(event, text)) + "\n"


def render_journal_json(event: LogEvent, level: str, text: str) -> str:
    """Write ``<6>`` and the object."""
    return f"<{PRIORITIES[level]}>{render_json(event, level, text)}"


JOURNAL_RENDERINGS: dict[str, Render] = {
    "text": render_journal_text,
    "json": render_journal_json,
}
"""The same for systemd's journal."""

JOURNAL_STREAM = "JOURNAL_STREAM"
"""The variable in which systemd names the journal's end: its device and its inode."""


def is_journal(output: object, environment: Mapping[str, str]) -> bool:
    """Return whether the output is systemd's journal."""
    if not isinstance(output, io.IOBase):
        return False
    try:
        status = os.fstat(output.fileno())
    except (OSError, ValueError):  # it is closed, or not a file
        return False
    return environment.get(JOURNAL_STREAM) == f"{status.st_dev}:{status.st_ino}"


def twistd_output(twistd: Mapping[str, Any]) -> Output | None:
    """Give where ``twistd`` would write; nothing where its user has chosen another way.

    ``--logger`` and ``--syslog`` are such ways. A file is begun anew on SIGUSR1, as by twistd.
    """
    if twistd.get("logger") or twistd.get("syslog"):
        return None
    name = twistd.get("logfile") or ("-" if twistd.get("nodaemon") else "twistd.log")
    if name == "-":
        return sys.stdout
    file: LogFile = LogFile.fromFullPath(name)
    if hasattr(signal, "SIGUSR1") and not signal.getsignal(signal.SIGUSR1):
        signal.signal(signal.SIGUSR1, lambda *_: file.rotate())
    return file


def _printable(event: LogEvent, text: str) -> str:
    """Add the traceback of a failure; replace what could begin a line or move a cursor."""
    failure = event.get("log_failure")
    if failure is not None:
        text += "\n" + failure.getTraceback().rstrip()
    return text if text.isprintable() else _CONTROL.sub("?", text).replace("\n", "\n\t")


def _text_of(event: LogEvent, *, is_our_own: bool) -> str:
    """Format an event: ours are plain enough for what is twenty times as fast."""
    if is_our_own:
        try:
            return str(event["log_format"].format_map(event))
        except Exception:
            return formatEvent(event)  # which says what is wrong with it
    return formatEvent(event)


def _time_of(event: LogEvent) -> str:
    seconds, milliseconds = divmod(int(event["log_time"] * 1_000), 1_000)
    return f"{_second(seconds)}.{milliseconds:03}Z"


@lru_cache(2)  # many events fall into one second
def _second(seconds: int) -> str:
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%S}"

"""The log: a line for each event, as text for people or as JSON for programs.

Only the traceback of a failure has lines of its own, each indented with a tab. A control character
is replaced by ``?``, so that no input of a client can start a line or move a terminal's cursor. In
systemd's journal each line begins with a priority (sd-daemon(3)), and text has neither time nor
level, because the journal has both.
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

from mailcheck.core.memory.instruments import Tally

LEVELS = {level: number for number, level in enumerate(LogLevel.iterconstants())}
INFO, WARN = LEVELS[LogLevel.info], LEVELS[LogLevel.warn]

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029]")

# Twisted's messages about each socket and each factory. The first lines of the daemon name the
# listening addresses.
_NOISE = re.compile(
    r"\S+ starting on .+|\(.*Port .* Closed\)|Timing out client: .*|"
    r"twistd \S+ \(.*\) starting up\.|reactor class: .*|Main loop terminated\.|"
    r"Unhandled unsolicited response: .*|"  # of an IMAP server
    r"Server has no TLS support\. logging in over cleartext!|"  # the operator has chosen it
    r"EMFILE recovery: .*|Re-reserving EMFILE recovery file descriptor\.",
    re.DOTALL,
)

_NO_FILES = re.compile(r"EMFILE encountered; .*")
"""Twisted's message about a connection that it closes, since all open files are in use."""

OWN = "mailcheck."
"""Prefix of the names of mailcheck's modules."""


class Output(Protocol):
    """The destination of log lines."""

    def write(self, text: str, /) -> object:
        """Write a text."""

    def flush(self) -> None:
        """Flush the buffer."""


@implementer(ILogObserver)
class LogWriter:
    """Writes events of ``level`` or above; the level and ``render`` can be changed at any time.

    ``problems`` counts the lines of warnings and errors.
    """

    def __init__(self, output: Output, render: "Render", level: str) -> None:
        self.output = output
        self.render = render
        self._lowest = 0
        self.set_level(level)
        self.problems = Tally()

    def set_level(self, level: str) -> None:
        """Set the lowest level that is written: ``debug``, ``info``, ``warn`` or ``error``."""
        self._lowest = LEVELS[LogLevel.lookupByName(level)]

    def __call__(self, event: LogEvent) -> None:
        """Write one event with a single call of ``write``."""
        level = event.get("log_level", LogLevel.info)
        number = LEVELS[level]
        if number < self._lowest:
            return
        is_our_own = event.get("log_namespace", "").startswith(OWN)
        text = _text_of(event, is_our_own=is_our_own)
        if not is_our_own and number <= INFO and _NOISE.fullmatch(text):
            return
        if not is_our_own and _NO_FILES.fullmatch(text):
            level, number = LogLevel.warn, WARN
            text = "a connection was closed: all open files are in use (LimitNOFILE)"
        if number >= WARN:
            self.problems.add(level.name)
        self.output.write(self.render(event, level.name, text))
        self.output.flush()


Render = Callable[[LogEvent, str, str], str]
"""Returns the line of an event, from the event, the name of its level and its text."""


def render_text(event: LogEvent, level: str, text: str) -> str:
    """Return a line like ``2026-11-22T17:31:23.120Z info ...``."""
    return f"{_time_of(event)} {level} {_printable(event, text)}\n"


def render_json(event: LogEvent, level: str, text: str) -> str:
    """Return a JSON object with time, level, message, the values in the message, and the module."""
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
"""Functions that render a line, by the value of the option."""

PRIORITIES = {"debug": 7, "info": 6, "warn": 4, "error": 3, "critical": 2}
"""The priorities of syslog(3), by the names of levels."""


def with_priority(level: str, text: str) -> str:
    """Return a text with the priority before each line, as the journal expects it."""
    mark = f"<{PRIORITIES[level]}>"
    return mark + text.replace("\n", f"\n{mark}")


def render_journal_text(event: LogEvent, level: str, text: str) -> str:
    """Return a line like ``<6>...``, since the journal itself has the time."""
    return with_priority(level, _printable(event, text)) + "\n"


def render_journal_json(event: LogEvent, level: str, text: str) -> str:
    """Return ``<6>`` and the JSON object."""
    return f"<{PRIORITIES[level]}>{render_json(event, level, text)}"


JOURNAL_RENDERINGS: dict[str, Render] = {
    "text": render_journal_text,
    "json": render_journal_json,
}
"""The same for systemd's journal."""

JOURNAL_STREAM = "JOURNAL_STREAM"
"""The environment variable with the device and the inode of the journal's socket."""


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
    """Return the output that ``twistd`` would use, or ``None`` with ``--logger`` or ``--syslog``.

    A file is rotated on SIGUSR1, as twistd does.
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
    """Return a text with the traceback of a failure, without control characters."""
    failure = event.get("log_failure")
    if failure is not None:
        text += "\n" + failure.getTraceback().rstrip()
    return text if text.isprintable() else _CONTROL.sub("?", text).replace("\n", "\n\t")


def _text_of(event: LogEvent, *, is_our_own: bool) -> str:
    """Return the text of an event; mailcheck's own allow a formatter twenty times as fast."""
    if is_our_own:
        try:
            return str(event["log_format"].format_map(event))
        except Exception:
            return formatEvent(event)  # the result describes the mistake
    return formatEvent(event)


def _time_of(event: LogEvent) -> str:
    seconds, milliseconds = divmod(int(event["log_time"] * 1_000), 1_000)
    return f"{_second(seconds)}.{milliseconds:03}Z"


@lru_cache(2)  # many events fall into one second
def _second(seconds: int) -> str:
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%S}"

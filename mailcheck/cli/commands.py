"""Code that commands share: the configuration, the output, and the progress line on a terminal."""

import argparse
import json
import os
import sys
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sized
from contextlib import contextmanager
from pathlib import Path
from threading import Event, RLock, Thread
from typing import Any, TextIO

from msgspec import Struct

from mailcheck.cli.terminal import CLEAR_LINE, draw, is_safe_terminal, show_controls
from mailcheck.config.options import Config
from mailcheck.core.errors import cause_of
from mailcheck.core.instants import Instant, format_instant

RED, GREEN, YELLOW, BLUE, BOLD = "31", "32", "33", "34", "1"

PROGRESS_DELAY = 1.0
"""Seconds until the progress line is drawn first."""

PROGRESS_INTERVAL = 0.2
"""Seconds between two updates of the progress line."""


class Painted(Struct, frozen=True):
    """Text with one of the colours above, which is only drawn on a terminal."""

    text: str
    colour: str


Line = str | Painted | tuple[str | Painted, ...]
"""A line without its line feed, as one piece or several."""


class Console:
    """The configuration and the two output streams of a command, protected for terminals.

    ``as_json``: the result is wanted as JSON. ``progress`` is a line on the terminal with the
    activity of the command. It is removed while something is printed.
    """

    def __init__(
        self, config: Config, output: TextIO, errors: TextIO, *, as_json: bool = False
    ) -> None:
        self.config = config
        self.output = output
        self.errors = errors
        self.as_json = as_json
        self.progress = Progress(errors)

    def print_line(self, line: Line) -> None:
        """Print a line of the result. On a terminal, line feeds in it are escaped."""
        is_terminal = is_safe_terminal(self.output)
        is_coloured = self.output.isatty() and not os.environ.get("NO_COLOR")  # no-color.org
        with self.progress.hidden():
            for piece in line if isinstance(line, tuple) else (line,):
                colour, text = ("", piece) if isinstance(piece, str) else (piece.colour, piece.text)
                if colour and is_coloured:
                    draw(self.output, f"\x1b[{colour}m")
                self.output.write(text.replace("\n", "\\n") if is_terminal else text)
                if colour and is_coloured:
                    draw(self.output, "\x1b[0m")
            self.output.write("\n")

    def print_lines(self, lines: Iterable[Line]) -> None:
        """Print several lines of the result."""
        for line in lines:
            self.print_line(line)

    def print_text(self, text: str) -> None:
        """Print a text with any number of lines."""
        with self.progress.hidden():
            self.output.write(f"{text}\n")

    def print_json(self, shape: object) -> None:
        """Print indented JSON."""
        self.print_text(json.dumps(shape, indent=2, ensure_ascii=False))

    def write_bytes(self, data: bytes) -> None:
        """Write bytes unchanged, even to a terminal."""
        with self.progress.hidden():
            self.output.flush()
            self.output.buffer.write(data)
            self.output.buffer.flush()

    def print_words(self, words: Iterable[str | None]) -> None:
        """Print a row of a listing: its words, without those that are missing."""
        self.print_line("  ".join(filter(None, words)))

    def print_row(self, shape: Mapping[str, object], *words: str | None) -> None:
        """Print a row of a listing: its words, or its shape as JSON in one line."""
        if not self.print_answer(shape):
            self.print_words(words)

    def print_answer(self, shape: object) -> bool:
        """Print JSON in one line if the result is wanted as JSON. Return whether it is."""
        if self.as_json:
            self.print_text(json.dumps(shape))
        return self.as_json

    def explain_empty(self, rows: Sized, text: str) -> None:
        """Print a note about what would fill a list if it is empty."""
        if not rows:
            self.print_note(text)

    def print_note(self, text: str) -> None:
        """Print a note to standard error, which is not part of the result."""
        with self.progress.hidden():
            self.errors.write(f"{text}\n")


def fields_of(options: argparse.Namespace, *names: str, **renamed: str) -> dict[str, Any]:
    """Return the options that were given, as fields of a request.

    :param names: options that are named after their fields.
    :param renamed: other options, by their fields.
    """
    wanted = {**{name: name for name in names}, **renamed}
    found = {field: getattr(options, option) for field, option in wanted.items()}
    return {field: value for field, value in found.items() if value is not None}


def read_input(name: str) -> bytes:
    """Return the content of a file, or of standard input for ``-``."""
    return sys.stdin.buffer.read() if name == "-" else Path(name).read_bytes()


def moment(instant: Instant | None) -> str | None:
    """Return the text of an instant for JSON, or `None`."""
    return None if instant is None else format_instant(instant)


def whole_id(beginning: str, known: Collection[str], what: str) -> str:
    """Return the id that begins with a text, or the text if none does.

    :param what: what has the id, in the singular.
    :raises ConfigError: several ids begin with the text.
    """
    matching = [name for name in known if beginning and name.startswith(beginning)]
    if beginning in known or not matching:
        return beginning
    if len(matching) > 1:
        from mailcheck.config.reading import ConfigError  # only loaded for this error

        raise ConfigError(f"{len(matching)} {what}s have an id that begins with {beginning}")
    return matching[0]


def why_not_sent(error: OSError) -> str:
    """Return why a mail server did not take a mail: its replies, or what the system says."""
    import smtplib  # loaded already by the commands that send mail

    if isinstance(error, smtplib.SMTPRecipientsRefused):
        return "; ".join(write_reply(*reply) for reply in error.recipients.values())
    if isinstance(error, smtplib.SMTPResponseException):
        return write_reply(error.smtp_code, error.smtp_error)
    return cause_of(error)


def write_reply(code: int, text: bytes | str) -> str:
    """Return a reply of a mail server as a text."""
    return f"{code} {text.decode('utf-8', 'replace') if isinstance(text, bytes) else text}"


class Progress:
    """A line on standard error with the activity of a command and the elapsed time.

    ``text`` may be replaced at any time, also by a function that returns the current text. A thread
    draws the line, because most commands wait for a response in the main thread.
    """

    def __init__(self, stream: TextIO) -> None:
        self.text: str | Callable[[], str] = "working"
        self._stream = stream
        self._lock = RLock()
        self._is_drawn = False

    @contextmanager
    def shown(self, delay: float = PROGRESS_DELAY) -> Iterator[None]:
        """Show the line from ``delay`` seconds on, and remove it at the end."""
        if not self._stream.isatty():
            yield
            return
        began, is_over = time.monotonic(), Event()

        def update() -> None:
            pause = delay
            while not is_over.wait(pause):
                self.draw(time.monotonic() - began)
                pause = PROGRESS_INTERVAL

        thread = Thread(target=update, name="progress", daemon=True)
        thread.start()
        try:
            yield
        finally:
            is_over.set()
            thread.join()
            with self.hidden():
                pass

    @contextmanager
    def hidden(self) -> Iterator[None]:
        """Remove the line while something else is written to the terminal."""
        with self._lock:
            if self._is_drawn:
                self._is_drawn = False
                draw(self._stream, CLEAR_LINE)
                self._stream.flush()
            yield

    def draw(self, elapsed: float) -> None:
        """Draw the line, with the elapsed time in seconds. It is not longer than the terminal."""
        minutes, seconds = divmod(int(elapsed), 60)
        text = self.text if isinstance(self.text, str) else self.text()
        line = f"{show_controls(text)} ... {minutes}:{seconds:02}".replace("\n", " ")
        with self._lock:
            self._is_drawn = True
            draw(self._stream, CLEAR_LINE + line[: _columns(self._stream) - 1])
            self._stream.flush()


def _columns(stream: TextIO) -> int:
    """Return the width of a terminal."""
    try:
        return os.get_terminal_size(stream.fileno()).columns or 80
    except (OSError, ValueError):
        return 80


Command = Callable[[argparse.Namespace, Console], int]

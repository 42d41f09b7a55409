"""Run ``mailcheck`` in tests, and collect its output and its exit status."""

import io
import os
import threading
import tty
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from mailcheck.cli.commands import Console, Line, Painted
from mailcheck.cli.main import make_parser, run
from mailcheck.cli.terminal import protect
from mailcheck.config.options import Config
from mailcheck.config.reading import load_config


@dataclass(frozen=True)
class Outcome:
    """What a command printed, and its exit status."""

    status: int
    output: str
    errors: str

    @property
    def lines(self) -> list[str]:
        """Return the lines of the result."""
        return self.output.splitlines()


Mailcheck = Callable[..., Outcome]


def run_command(*arguments: str) -> Outcome:
    """Run a command line."""
    output, errors = io.StringIO(), io.StringIO()
    status = run(arguments, output, errors)
    return Outcome(status, output.getvalue(), errors.getvalue())


async def run_work(environment: Mapping[str, str], *arguments: str) -> Outcome:
    """Run a command that uses the network on the reactor of the tests, since a second cannot run.

    :param environment: its options, as in the environment of a process.
    """
    from twisted.internet import reactor

    output, errors = io.StringIO(), io.StringIO()
    options = make_parser(arguments).parse_args(arguments)
    config = load_config(Path(options.config) if options.config else None, environment)
    console = Console(config, output, errors, as_json=getattr(options, "json", False))
    status = await options.work(options, console, reactor)
    return Outcome(status, output.getvalue(), errors.getvalue())


def plain(lines: Iterable[Line]) -> list[str]:
    """Return lines without their colours."""
    return [
        "".join(
            piece.text if isinstance(piece, Painted) else piece
            for piece in (line if isinstance(line, tuple) else (line,))
        )
        for line in lines
    ]


class Screen:
    """A pseudo-terminal, and its output."""

    def __init__(self) -> None:
        self._reader, writer = os.openpty()
        tty.setraw(writer)
        self.stream = os.fdopen(writer, "w", encoding="utf-8", newline="")
        self._pieces: list[bytes] = []
        self.has_output = threading.Event()
        self._thread = threading.Thread(target=self._read)
        self._thread.start()

    def console(self) -> Console:
        """Return a console that prints to it."""
        stream = protect(self.stream)
        return Console(Config(), stream, stream)

    def read(self) -> str:
        """Close the terminal, and return its output."""
        self.stream.close()
        self._thread.join()
        os.close(self._reader)
        return b"".join(self._pieces).decode()

    def _read(self) -> None:
        while True:
            try:
                piece = os.read(self._reader, 65536)
            except OSError:  # Linux reports the closed other side like this
                return
            if not piece:
                return
            self._pieces.append(piece)
            self.has_output.set()


def on_screen(*arguments: str) -> str:
    """Run a command line on a terminal, and return the output."""
    screen = Screen()
    run(arguments, screen.stream, screen.stream)
    return screen.read()

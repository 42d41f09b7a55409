"""Code that commands share: the configuration and the output."""

import argparse
import json
import os
from collections.abc import Callable, Iterable
from typing import TextIO

from msgspec import Struct

from mailcheck.cli.progress import Progress
from mailcheck.cli.terminal import draw, is_safe_terminal
from mailcheck.config.options import Config

RED, GREEN, YELLOW, BLUE, BOLD = "31", "32", "33", "34", "1"


class Painted(Struct, frozen=True):
    """Text with one of the colours above, which is only drawn on a terminal."""

    text: str
    colour: str


Line = str | Painted | tuple[str | Painted, ...]
"""A line without its line feed, as one piece or several."""


class Console:
    """The configuration and the two output streams of a command, protected for terminals.

    ``progress`` is a line on the terminal with the activity of the command. It is removed
    while something is printed.
    """

    def __init__(self, config: Config, output: TextIO, errors: TextIO) -> None:
        self.config = config
        self.output = output
        self.errors = errors
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

    def print_note(self, text: str) -> None:
        """Print a note to standard error, which is not part of the result."""
        with self.progress.hidden():
            self.errors.write(f"{text}\n")


Command = Callable[[argparse.Namespace, Console], int]

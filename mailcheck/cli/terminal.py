"""Terminal protection: control characters in foreign text are shown and have no effect."""

import re
from collections.abc import Iterable
from typing import Any, TextIO, cast

from msgspec import Struct

CLEAR_LINE = "\r\x1b[K"

_STEERS = re.compile(
    # Control characters (with ESC and CSI) but tab and line feed; the marks, embeddings,
    # overrides and isolates of bidirectional text; other line ends; lone surrogates.
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u206f\ud800-\udfff]"
)


def show_controls(text: str) -> str:
    r"""Return text in which characters that control a terminal are written as ``\u001b``.

    JSON escapes them in the same way, so the meaning of JSON does not change.
    """
    return _STEERS.sub(lambda match: f"\\u{ord(match.group()):04x}", text)


class SafeTerminal(Struct, frozen=True, eq=False):
    """A text stream for a terminal. `write` escapes control characters."""

    stream: TextIO

    def __getattr__(self, name: str) -> Any:
        """Return another attribute of the stream, such as ``isatty``, ``flush`` or ``buffer``."""
        return getattr(self.stream, name)

    def write(self, text: str) -> int:
        """Write text that may be from others."""
        return self.stream.write(show_controls(text))

    def writelines(self, lines: Iterable[str]) -> None:
        """Write lines that may be from others."""
        for line in lines:
            self.write(line)

    def draw(self, sequence: str) -> None:
        """Write a control sequence of a command."""
        self.stream.write(sequence)


def protect(stream: TextIO) -> TextIO:
    """Return a stream for any text. Files and pipes receive it unchanged."""
    if is_safe_terminal(stream) or not stream.isatty():
        return stream
    return cast(TextIO, SafeTerminal(stream))


def is_safe_terminal(stream: TextIO) -> bool:
    """Return whether the stream is a protected terminal."""
    return isinstance(stream, SafeTerminal)


def draw(stream: TextIO, sequence: str) -> None:
    """Write a control sequence of a command to a protected stream."""
    if isinstance(stream, SafeTerminal):
        stream.draw(sequence)
    else:
        stream.write(sequence)

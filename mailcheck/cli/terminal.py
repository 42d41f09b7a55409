"""Protection of terminals: control characters in the text of strangers are shown, not obeyed."""

import re
from collections.abc import Iterable
from typing import Any, TextIO, cast

CLEAR_LINE = "\r\x1b[K"

_STEERS = re.compile(
    # Control characters (with ESC and CSI) but tab and line feed; the marks, embeddings,
    # overrides and isolates of bidirectional text; other line ends; lone surrogates.
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u206f\ud800-\udfff]"
)


def show_controls(text: str) -> str:
    r"""Return text with each character that would steer a terminal written as ``\u001b``.

    This is also how JSON writes such a character, so JSON keeps its meaning.
    """
    return _STEERS.sub(lambda match: f"\\u{ord(match.group()):04x}", text)


class SafeTerminal:
    """A terminal as a text stream: `write` shows control characters instead of obeying them."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def __getattr__(self, name: str) -> Any:
        """Return another attribute of the stream: ``isatty``, ``flush``, ``buffer``."""
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        """Write text that strangers may have written."""
        return self._stream.write(show_controls(text))

    def writelines(self, lines: Iterable[str]) -> None:
        """Write lines that strangers may have written."""
        for line in lines:
            self.write(line)

    def draw(self, sequence: str) -> None:
        """Write a control sequence of our own."""
        self._stream.write(sequence)


def protect(stream: TextIO) -> TextIO:
    """Return a stream that is safe to write any text to; a file or a pipe gets it unchanged."""
    if is_safe_terminal(stream) or not stream.isatty():
        return stream
    return cast(TextIO, SafeTerminal(stream))


def is_safe_terminal(stream: TextIO) -> bool:
    """Return whether the stream is a protected terminal."""
    return isinstance(stream, SafeTerminal)


def draw(stream: TextIO, sequence: str) -> None:
    """Write a control sequence of our own to a protected stream."""
    if isinstance(stream, SafeTerminal):
        stream.draw(sequence)
    else:
        stream.write(sequence)

"""The progress line of commands that take longer than a second, on a terminal only."""

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event, RLock, Thread
from typing import TextIO

from mailcheck.cli.terminal import CLEAR_LINE, draw, show_controls

DELAY = 1.0
"""Seconds until the line is drawn first."""

INTERVAL = 0.2
"""Seconds between two updates."""


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
    def shown(self, delay: float = DELAY) -> Iterator[None]:
        """Show the line from ``delay`` seconds on, and remove it at the end."""
        if not self._stream.isatty():
            yield
            return
        began, is_over = time.monotonic(), Event()

        def update() -> None:
            pause = delay
            while not is_over.wait(pause):
                self.draw(time.monotonic() - began)
                pause = INTERVAL

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

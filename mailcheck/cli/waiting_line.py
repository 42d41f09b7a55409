"""Shows for how long a command has been waiting, on a terminal only."""

import time
from threading import Event, Thread
from types import TracebackType
from typing import TextIO

from mailcheck.cli.check_progress import CLEAR_LINE

INTERVAL = 0.2  # seconds between two pictures


class WaitingLine:
    """One line with ``text`` and the time, drawn while the command waits; gone in the end.

    It has a thread of its own: who waits for an answer can't draw.
    """

    def __init__(self, stream: TextIO) -> None:
        self.text = "waiting for the mail"
        self._stream = stream
        self._began = time.monotonic()
        self._end = Event()
        self._thread = Thread(target=self._draw, daemon=True) if stream.isatty() else None

    @property
    def seconds(self) -> float:
        """Say how long it has been."""
        return time.monotonic() - self._began

    def __enter__(self) -> "WaitingLine":
        if self._thread is not None:
            self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._thread is not None:
            self._end.set()
            self._thread.join()
            self._stream.write(CLEAR_LINE)
            self._stream.flush()

    def _draw(self) -> None:
        while not self._end.wait(INTERVAL):
            minutes, seconds = divmod(int(self.seconds), 60)
            self._stream.write(f"{CLEAR_LINE}{self.text} ... {minutes}:{seconds:02}")
            self._stream.flush()

"""The progress line of checks, on a terminal only."""

from typing import TextIO

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IDelayedCall, IReactorTime

from mailcheck.checks.dns_answers import DnsAnswer, DnsQuestion
from mailcheck.cli.terminal import CLEAR_LINE, draw
from mailcheck.ports.resolver import Resolver

INTERVAL = 0.1  # seconds between two updates


class Progress:
    """Counts questions and answers, and draws one line that is removed at the end."""

    def __init__(self, clock: IReactorTime, stream: TextIO) -> None:
        self._clock = clock
        self._stream = stream
        self.asked = 0
        self.answered = 0  # or failed
        self._drawing: IDelayedCall | None = None
        if stream.isatty():
            self._drawing = clock.callLater(INTERVAL, self._draw)

    def watch(self, resolver: Resolver) -> Resolver:
        """Return a resolver that counts its questions."""
        return _Watched(resolver, self)

    def end(self) -> None:
        """Remove the line."""
        if self._drawing is not None:
            self._drawing.cancel()
            self._drawing = None
            draw(self._stream, CLEAR_LINE)
            self._stream.flush()

    def _draw(self) -> None:
        draw(self._stream, f"{CLEAR_LINE}{self.answered} of {self.asked} DNS answers ...")
        self._stream.flush()
        self._drawing = self._clock.callLater(INTERVAL, self._draw)


class _Watched:
    def __init__(self, resolver: Resolver, progress: Progress) -> None:
        self._resolver = resolver
        self._progress = progress

    def lookup(self, question: DnsQuestion) -> Deferred[DnsAnswer]:
        self._progress.asked += 1
        answer = self._resolver.lookup(question)

        def note(result: DnsAnswer) -> DnsAnswer:
            self._progress.answered += 1
            return result

        return answer.addBoth(note)

"""A reactor with a clock that tests advance."""

from typing import Any

from twisted.internet.task import Clock


class SteppedReactor(Clock):
    """A reactor that starts real processes, with a clock that the test advances."""

    def spawnProcess(self, *arguments: Any, **options: Any) -> object:
        """Start a process."""
        from twisted.internet import reactor

        real: Any = reactor
        return real.spawnProcess(*arguments, **options)

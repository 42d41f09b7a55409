"""What commands have in common: where they print, and how they reach the store."""

import argparse
import os
import time
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any, TextIO, TypeVar

from twisted.internet.defer import Deferred
from twisted.internet.task import Clock

from mailcheck.assembly.daemon import Assembly, Workers
from mailcheck.config_options import Config
from mailcheck.workers.direct import DirectWorker

EXIT_FINE, EXIT_PROBLEM, EXIT_USAGE, EXIT_UNDETERMINED = 0, 1, 2, 3

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class Console:
    """The configuration, and the two streams a command may write to."""

    config: Config
    output: TextIO
    errors: TextIO

    def say(self, text: str) -> None:
        """Print a line of the result."""
        print(text, file=self.output)

    def remark(self, text: str) -> None:
        """Print a line for people only: not part of the result."""
        print(text, file=self.errors)

    @property
    def is_coloured(self) -> bool:
        """Tell whether the one who reads the result can see colours, and wants to."""
        return self.output.isatty() and not os.environ.get("NO_COLOR")  # no-color.org

    def with_store(self, work: Callable[[Assembly], Coroutine[Any, Any, Result]]) -> Result:
        """Open the daemon's store beside it, do the work, and close the store.

        Nothing waits: a command needs no reactor.
        """
        clock = Clock()
        clock.advance(time.time())
        worker = DirectWorker()
        assembly = Assembly(self.config, clock, Workers(worker, worker, worker), os.urandom)
        assembly.engine.open()
        try:
            return _result_of(Deferred.fromCoroutine(work(assembly)))
        finally:
            assembly.engine.close()


Command = Callable[[argparse.Namespace, Console], int]


def _result_of(done: Deferred[Result]) -> Result:
    results: list[Result] = []
    problems: list[BaseException] = []
    done.addCallbacks(results.append, lambda failure: problems.append(failure.value))
    if problems:
        raise problems[0]
    return results[0]

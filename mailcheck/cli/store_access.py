"""How commands reach the store: beside the daemon, whether it runs or not."""

import os
import time
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from twisted.internet.defer import Deferred
from twisted.internet.task import Clock

from mailcheck.assembly.daemon import Assembly, Workers
from mailcheck.config.options import Config
from mailcheck.workers.direct import DirectWorker

Result = TypeVar("Result")


def with_store(config: Config, work: Callable[[Assembly], Coroutine[Any, Any, Result]]) -> Result:
    """Open the daemon's store, do the work, and close the store.

    Nothing waits: a command needs no reactor.
    """
    clock = Clock()
    clock.advance(time.time())
    worker = DirectWorker()
    assembly = Assembly(config, clock, Workers(worker, worker, worker), os.urandom)
    assembly.engine.open()
    try:
        return _result_of(Deferred.fromCoroutine(work(assembly)))
    finally:
        assembly.engine.close()


def _result_of(done: Deferred[Result]) -> Result:
    results: list[Result] = []
    problems: list[BaseException] = []
    done.addCallbacks(results.append, lambda failure: problems.append(failure.value))
    if problems:
        raise problems[0]
    return results[0]

"""How commands access the store, whether the daemon is running or not."""

import os
import time
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, TypeVar

from twisted.internet.defer import Deferred
from twisted.internet.task import Clock

from mailcheck.assembly.accounts import AccountParts, build_accounts
from mailcheck.assembly.runtime import Runtime, open_runtime, time_and_chance_of
from mailcheck.assembly.workers import Workers
from mailcheck.config.options import Config
from mailcheck.core.errors import StoreUnavailable
from mailcheck.engines.sqlite import IN_MEMORY
from mailcheck.workers.scheduling import DirectWorker

Result = TypeVar("Result")


def with_accounts(
    config: Config,
    work: Callable[[AccountParts], Coroutine[Any, Any, Result]],
    *,
    may_be_new: bool = False,
) -> Result:
    """Run work on the accounts of the daemon's store (`with_store`)."""
    return with_store(config, lambda runtime: work(build_accounts(runtime)), may_be_new=may_be_new)


def with_store(
    config: Config,
    work: Callable[[Runtime], Coroutine[Any, Any, Result]],
    *,
    may_be_new: bool = False,
) -> Result:
    """Open the daemon's store, run the work, and close the store.

    All work is synchronous, so no reactor is needed.

    :raises StoreUnavailable: there is no store, and the command must not create one.
    """
    path = config.storage.file
    is_file = not config.storage.is_shared and path != IN_MEMORY
    # Opening a SQLite file in the wrong directory would create it.
    if not may_be_new and is_file and not Path(path).is_file():
        raise StoreUnavailable(
            f"the daemon's database {Path(path).absolute()} does not exist. Run the command in the"
            " daemon's directory, or name its file with --config. The daemon creates the database"
            " on its first start"
        )
    clock = Clock()
    clock.advance(time.time())
    worker = DirectWorker()
    clock_and_randomness = time_and_chance_of(config, clock.seconds, clock, os.urandom)
    runtime = open_runtime(config, clock, clock_and_randomness, Workers(worker, worker, worker))
    runtime.engine.open()
    results: list[Result] = []
    problems: list[BaseException] = []
    try:
        done = Deferred.fromCoroutine(work(runtime))
        done.addCallbacks(results.append, lambda failure: problems.append(failure.value))
    finally:
        runtime.engine.close()
    if problems:
        raise problems[0]
    return results[0]

"""Running a command's work on the reactor, which ends with it."""

import contextlib
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from twisted.internet.defer import Deferred
from twisted.internet.task import react

from mailcheck.daemon.reactor import run_on_monotonic_clock

Result = TypeVar("Result")


def on_reactor(work: Callable[[Any], Coroutine[Any, Any, Result]]) -> Result:
    """Run the reactor until the work is done; gives its result, or raises what it raised."""
    results: list[Result] = []
    problems: list[Exception] = []

    async def run(reactor: Any) -> None:
        run_on_monotonic_clock(reactor)
        try:
            results.append(await work(reactor))
        except Exception as problem:
            problems.append(problem)

    with contextlib.suppress(SystemExit):  # how `react` says that it has ended
        react(lambda reactor: Deferred.fromCoroutine(run(reactor)))
    if problems:
        raise problems[0]
    return results[0]

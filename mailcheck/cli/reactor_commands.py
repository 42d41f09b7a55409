"""Running a command's work on the reactor, which ends with it."""

import argparse
import contextlib
from collections.abc import Callable, Coroutine
from typing import Any

from twisted.internet.defer import Deferred
from twisted.internet.task import react

from mailcheck.cli.commands import Console
from mailcheck.daemon.wall_clock import run_on_monotonic_clock

Work = Callable[[argparse.Namespace, Console, Any], Coroutine[Any, Any, int]]
"""A command that asks the network; it is given the reactor, and gives the exit status."""


def set_async_command(parser: argparse.ArgumentParser, work: Work) -> None:
    """Have a parser's command do its work on the reactor."""
    parser.set_defaults(command=on_reactor, work=work)


def on_reactor(options: argparse.Namespace, console: Console) -> int:
    """Run the reactor until ``options.work`` is done; gives its status, raises what it raises."""
    statuses: list[int] = []
    problems: list[Exception] = []

    async def run(reactor: Any) -> None:
        run_on_monotonic_clock(reactor)
        try:
            statuses.append(await options.work(options, console, reactor))
        except Exception as problem:
            problems.append(problem)

    with contextlib.suppress(SystemExit):  # how `react` says that it has ended
        react(lambda reactor: Deferred.fromCoroutine(run(reactor)))
    if problems:
        raise problems[0]
    return statuses[0]

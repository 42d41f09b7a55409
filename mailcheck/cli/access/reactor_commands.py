"""Running a command on the reactor, which stops when the command ends, and counting its lookups."""

import argparse
import contextlib
from collections.abc import Callable, Coroutine
from typing import Any

from msgspec import Struct
from twisted.internet.defer import Deferred
from twisted.internet.task import react

from mailcheck.checks.dns_answers import DnsAnswer, DnsQuestion
from mailcheck.cli.commands import Console
from mailcheck.daemon.wall_clock import run_on_monotonic_clock
from mailcheck.ports.resolver import Resolver

Work = Callable[[argparse.Namespace, Console, Any], Coroutine[Any, Any, int]]
"""An asynchronous command. It receives the reactor and returns the exit status."""


def set_async_command(parser: argparse.ArgumentParser, work: Work) -> None:
    """Let a parser's command run on the reactor."""
    parser.set_defaults(command=on_reactor, work=work)


def on_reactor(options: argparse.Namespace, console: Console) -> int:
    """Run ``options.work`` on the reactor; return its status or raise its exception."""
    statuses: list[int] = []
    problems: list[Exception] = []

    async def run(reactor: Any) -> None:
        run_on_monotonic_clock(reactor)
        try:
            statuses.append(await options.work(options, console, reactor))
        except Exception as problem:
            problems.append(problem)

    with contextlib.suppress(SystemExit):  # raised by `react` at the end
        react(lambda reactor: Deferred.fromCoroutine(run(reactor)))
    if problems:
        raise problems[0]
    return statuses[0]


class CountedLookups:
    """The number of DNS questions so far, and of their answers or failures."""

    def __init__(self) -> None:
        self.asked = 0
        self.answered = 0

    def describe(self) -> str:
        """Return the text of the progress line."""
        return f"{self.answered} of {self.asked} DNS answers"

    def watch(self, resolver: Resolver) -> Resolver:
        """Return a resolver that counts its questions."""
        return _Watched(resolver, self)


class _Watched(Struct, frozen=True, eq=False):
    resolver: Resolver
    counted: CountedLookups

    def lookup(self, question: DnsQuestion) -> Deferred[DnsAnswer]:
        self.counted.asked += 1
        answer = self.resolver.lookup(question)

        def note(result: DnsAnswer) -> DnsAnswer:
            self.counted.answered += 1
            return result

        return answer.addBoth(note)

"""Running ``mailcheck`` as a test sees it: what it printed, and its exit status."""

import io
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from mailcheck.cli.commands import Console
from mailcheck.cli.main import make_parser, run
from mailcheck.config.reading import load_config


@dataclass(frozen=True)
class Outcome:
    """What a command printed, and its exit status."""

    status: int
    output: str
    errors: str

    @property
    def lines(self) -> list[str]:
        """Give the lines of the result."""
        return self.output.splitlines()


Mailcheck = Callable[..., Outcome]


def run_command(*arguments: str) -> Outcome:
    """Run a command line as it stands."""
    output, errors = io.StringIO(), io.StringIO()
    status = run(arguments, output, errors)
    return Outcome(status, output.getvalue(), errors.getvalue())


async def run_work(environment: Mapping[str, str], *arguments: str) -> Outcome:
    """Run a command that asks the network on the reactor of the tests, where none can run beside.

    :param environment: its options, as in the environment of a process.
    """
    from twisted.internet import reactor

    output, errors = io.StringIO(), io.StringIO()
    options = make_parser(arguments).parse_args(arguments)
    config = load_config(Path(options.config) if options.config else None, environment)
    console = Console(config, output, errors)
    status = await options.work(options, console, reactor)
    return Outcome(status, output.getvalue(), errors.getvalue())

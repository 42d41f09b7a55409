"""Running ``mailcheck`` as a test sees it: what it printed, and its exit status."""

import io
from collections.abc import Callable
from dataclasses import dataclass

from mailcheck.cli.main import run


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

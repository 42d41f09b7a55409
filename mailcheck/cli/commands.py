"""What commands have in common: the configuration, and where they print."""

import argparse
import os
from collections.abc import Callable
from typing import TextIO

from msgspec import Struct

from mailcheck.config.options import Config


class Console(Struct, frozen=True):
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


Command = Callable[[argparse.Namespace, Console], int]

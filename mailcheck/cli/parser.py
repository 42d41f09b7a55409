"""The parser of the command line: errors name the nearest command or option, help has examples."""

import argparse
import re
import sys
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from mailcheck.cli.exit_statuses import EXIT_USAGE

_CHOICES = re.compile(r"(argument \S+): invalid choice: '?(.*?)'? \(choose from (.*)\)", re.DOTALL)
_OPTION = re.compile(r"--[a-z][a-z-]*")
_WORD = re.compile(r"[^\s',]+")


class Parser(argparse.ArgumentParser):
    """A parser of one command.

    The parsed options have the parser of the innermost command as ``parser``.
    """

    examples: Sequence[str] = ()
    """Command lines that the help shows."""

    usage_status = config_status = EXIT_USAGE
    """Exit statuses of a wrong command line and of a wrong configuration."""

    def __init__(self, *arguments: object, **settings: object) -> None:
        super().__init__(*arguments, **settings)  # type: ignore[arg-type]
        self.set_defaults(parser=self)
        self._group: Any = None

    def add_command(
        self, name: str, text: str, command: object = None, aliases: Sequence[str] = ()
    ) -> "Parser":
        """Add a command to the group that this parser is, and return its parser.

        :param command: runs it (`mailcheck.cli.commands.Command`).
        """
        if self._group is None:
            self._group = self.add_subparsers(
                title="commands", required=True, metavar="COMMAND", parser_class=Parser
            )
        parser: Parser = self._group.add_parser(name, help=text, aliases=aliases)
        parser.set_defaults(command=command)
        return parser

    def format_help(self) -> str:
        """Return the help text, followed by the examples."""
        examples = "".join(f"  {example}\n" for example in self.examples or self._of_group())
        return super().format_help() + (f"\nexamples:\n{examples}" if examples else "")

    def _of_group(self) -> Sequence[str]:
        """Return the examples of a command of a group."""
        import tomllib  # only loaded for help
        from importlib.resources import files

        text = files("mailcheck.cli").joinpath("examples.toml").read_text("utf-8")
        program, _, command = self.prog.partition(" ")
        return [f"{program} {example}" for example in tomllib.loads(text).get(command, ())]

    def error(self, message: str) -> NoReturn:
        """Print the error with the usage, and exit with the status of a wrong command line."""
        if message.endswith("required: COMMAND"):
            message = f"name a command: {', '.join(self._group.choices)}"
        self.print_usage(sys.stderr)
        self.exit(self.usage_status, f"{self.prog}: error: {_suggest_choice(message)}\n")

    def reject_unknown(self, words: Sequence[str]) -> NoReturn:
        """Print which words are no options or arguments of the command, and exit."""
        from mailcheck.core.errors import nearest_word  # only loaded for errors

        options = _OPTION.findall(self.format_help())
        unknown = next((word for word in words if word.startswith("-")), words[0])
        name = unknown.partition("=")[0]
        similar = nearest_word(name, options)
        hint = f"did you mean {similar}?" if similar else f"see {self.prog} --help"
        kind = "option" if unknown.startswith("-") else "argument"
        self.error(f"{self.prog} has no {kind} {name}; {hint}")


def _suggest_choice(message: str) -> str:
    """Name the nearest choice in the message about an invalid one."""
    match = _CHOICES.fullmatch(message)
    if match is None:
        return message
    from mailcheck.core.errors import nearest_word

    argument, word, written = match.groups()
    choices = _WORD.findall(written)
    similar = nearest_word(word, choices)
    hint = f"did you mean {similar}?" if similar else f"choose from {', '.join(choices)}"
    return f"{argument}: {word!r} is unknown; {hint}"


def whole_number(least: int, largest: int) -> Callable[[str], int]:
    """Return the type of an argument that is an integer within bounds, of which 0 is none."""

    def parse(text: str) -> int:
        number = read_digits(text)
        if not least <= number <= largest:
            raise argparse.ArgumentTypeError(
                f"must be an integer from {least} to {largest:,}; got {text}"
            )
        return number

    return parse


def read_digits(text: str) -> int:
    """Return a number of at most 19 digits, or 0 for any other text."""
    return int(text) if text.isascii() and text.isdigit() and len(text) < 20 else 0


def decimal_number(least: float, largest: float) -> Callable[[str], float]:
    """Return the type of an argument that is a number within bounds."""

    def parse(text: str) -> float:
        try:
            number = float(text)
        except ValueError:
            number = least - 1
        if not least <= number <= largest:
            raise argparse.ArgumentTypeError(
                f"must be a number from {least:g} to {largest:g}; got {text}"
            )
        return number

    return parse

"""``mailcheck``: parses the command line and turns what happens into an exit status."""

import argparse
import os
import sys
from collections.abc import Sequence
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import TextIO

from mailcheck.cli.account_commands import add_account_commands
from mailcheck.cli.check_commands import add_check_commands
from mailcheck.cli.commands import EXIT_FINE, EXIT_PROBLEM, EXIT_USAGE, Command, Console
from mailcheck.cli.config_commands import add_config_commands
from mailcheck.cli.deliverability_commands import add_deliverability_commands
from mailcheck.cli.inbox_commands import add_inbox_commands
from mailcheck.cli.score_commands import add_score_commands
from mailcheck.config import ConfigError, load_config
from mailcheck.core.errors import ExpectedFailure


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and exit."""
    sys.exit(run(sys.argv[1:] if arguments is None else arguments, sys.stdout, sys.stderr))


def run(arguments: Sequence[str], output: TextIO, errors: TextIO) -> int:
    """Run a command; gives the exit status: 0 fine, 1 problem, 2 usage, 3 undetermined."""
    try:
        with redirect_stdout(output), redirect_stderr(errors):
            options = _parser().parse_args(arguments)
    except SystemExit as said:  # --help, or what is wrong
        return EXIT_USAGE if said.code else EXIT_FINE
    command: Command = options.command
    try:
        config = load_config(Path(options.config) if options.config else None, os.environ)
        return command(options, Console(config, output, errors))
    except ConfigError as error:
        print(f"mailcheck: {error}", file=errors)
        return EXIT_USAGE
    except (ExpectedFailure, OSError) as failure:
        print(f"mailcheck: {failure}", file=errors)
        return EXIT_PROBLEM


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="mailcheck", description="Waits for mail, checks domains, manages accounts and keys."
    )
    parser.add_argument("--config", metavar="FILE", help="the daemon's configuration file (TOML)")
    groups = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    add_account_commands(groups)
    add_inbox_commands(groups)
    add_check_commands(groups)
    add_score_commands(groups)
    add_deliverability_commands(groups)
    add_config_commands(groups)
    return parser

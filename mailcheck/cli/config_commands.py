"""``mailcheck config ...``."""

import argparse
from typing import Any

from mailcheck.cli.commands import EXIT_FINE, Console
from mailcheck.config_example import render_example


def add_config_commands(groups: Any) -> None:
    """Add the commands to the parser."""
    config = groups.add_parser("config", help="the configuration: check, example")
    commands = config.add_subparsers(required=True, metavar="COMMAND")
    check = commands.add_parser("check", help="check file and environment, and say what is wrong")
    check.set_defaults(command=check_config)
    example = commands.add_parser("example", help="print a file with every option at its default")
    example.set_defaults(command=print_example)


def check_config(options: argparse.Namespace, console: Console) -> int:
    """``mailcheck config check``: reading it has found nothing wrong."""
    console.remark(f"{options.config or 'the configuration'} is fine")
    return EXIT_FINE


def print_example(options: argparse.Namespace, console: Console) -> int:
    """``mailcheck config example``: what `etc/mailcheck.toml` holds."""
    console.output.write(render_example())
    return EXIT_FINE

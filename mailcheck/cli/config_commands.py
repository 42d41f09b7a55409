"""``mailcheck config``: check and print configurations."""

import argparse

from mailcheck.checks.dnsbl.catalogue import packaged_catalogue_text
from mailcheck.cli.commands import Console
from mailcheck.cli.exit_statuses import EXIT_FINE
from mailcheck.config.example import render_example


def add_config_commands(parser: argparse.ArgumentParser) -> None:
    """Add the commands of ``mailcheck config``."""
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    check = commands.add_parser("check", help="check the file and the environment variables")
    check.set_defaults(command=check_config)
    example = commands.add_parser("example", help="print a file with all options and defaults")
    example.set_defaults(command=print_example)
    blocklists = commands.add_parser(
        "blocklists", help="print the packaged catalogue of blocklists, to be edited"
    )
    blocklists.set_defaults(command=print_blocklists)


def check_config(options: argparse.Namespace, console: Console) -> int:
    """``mailcheck config check``: succeeds, since errors are found when it is loaded."""
    console.print_note(f"{options.config or 'the configuration'} is valid")
    return EXIT_FINE


def print_example(options: argparse.Namespace, console: Console) -> int:
    """``mailcheck config example``: print the content of `etc/mailcheck.toml`."""
    console.output.write(render_example())
    return EXIT_FINE


def print_blocklists(options: argparse.Namespace, console: Console) -> int:
    """``mailcheck config blocklists``: print the catalogue to be edited for ``[blocklists]``."""
    console.output.write(packaged_catalogue_text())
    return EXIT_FINE

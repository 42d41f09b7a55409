"""``mailcheck config ...``."""

import argparse

from mailcheck.checks.dnsbl.catalogue import packaged_catalogue_text
from mailcheck.cli.commands import Console
from mailcheck.cli.exit_statuses import EXIT_FINE
from mailcheck.config.example import render_example


def add_config_commands(parser: argparse.ArgumentParser) -> None:
    """Add the commands of ``mailcheck config``."""
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    check = commands.add_parser("check", help="check file and environment, and say what is wrong")
    check.set_defaults(command=check_config)
    example = commands.add_parser("example", help="print a file with every option at its default")
    example.set_defaults(command=print_example)
    blocklists = commands.add_parser(
        "blocklists", help="print the catalogue of blocklists of the package, to be changed"
    )
    blocklists.set_defaults(command=print_blocklists)


def check_config(options: argparse.Namespace, console: Console) -> int:
    """``mailcheck config check``: reading it has found nothing wrong."""
    console.print_note(f"{options.config or 'the configuration'} is fine")
    return EXIT_FINE


def print_example(options: argparse.Namespace, console: Console) -> int:
    """``mailcheck config example``: what `etc/mailcheck.toml` holds."""
    console.output.write(render_example())
    return EXIT_FINE


def print_blocklists(options: argparse.Namespace, console: Console) -> int:
    """``mailcheck config blocklists``: what ``[blocklists] catalogue`` is a changed copy of."""
    console.output.write(packaged_catalogue_text())
    return EXIT_FINE

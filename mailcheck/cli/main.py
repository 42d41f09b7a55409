"""``mailcheck``: parses the command line and turns what happens into an exit status.

Each command is loaded when it is the one that was named: ``--help`` and the commands that talk
to a daemon need none of what the checks and the store need.
"""

import argparse
import os
import sys
from collections.abc import Mapping, Sequence
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from pkgutil import resolve_name
from typing import TextIO

from mailcheck.cli.exit_statuses import EXIT_FINE, EXIT_PROBLEM, EXIT_USAGE
from mailcheck.cli.terminal import protect


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and exit."""
    sys.stdout, sys.stderr = protect(sys.stdout), protect(sys.stderr)  # for tracebacks too
    try:
        status = run(sys.argv[1:] if arguments is None else arguments, sys.stdout, sys.stderr)
        sys.stdout.flush()
    except BrokenPipeError:  # whoever read it (head, less) has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        status = EXIT_PROBLEM
    sys.exit(status)


def run(arguments: Sequence[str], output: TextIO, errors: TextIO) -> int:
    """Run a command; gives the exit status: 0 fine, 1 problem, 2 usage, 3 undetermined."""
    output, errors = protect(output), protect(errors)
    try:
        with redirect_stdout(output), redirect_stderr(errors):
            options = make_parser(arguments).parse_args(arguments)
    except SystemExit as said:  # --help, or what is wrong
        return EXIT_USAGE if said.code else EXIT_FINE
    from mailcheck.cli.commands import Command, Console
    from mailcheck.config.reading import ConfigError, load_config
    from mailcheck.core.errors import ExpectedFailure, StoreUnavailable

    command: Command = options.command
    try:
        config = load_config(Path(options.config) if options.config else None, os.environ)
        return command(options, Console(config, output, errors))
    except ConfigError as error:
        print(f"mailcheck: {error}", file=errors)
        return EXIT_USAGE
    except BrokenPipeError:
        raise
    except StoreUnavailable as failure:
        print(f"mailcheck: {failure.cause}", file=errors)
        return EXIT_PROBLEM
    except (ExpectedFailure, OSError) as failure:
        print(f"mailcheck: {failure}", file=errors)
        return EXIT_PROBLEM


class _Version(argparse.Action):
    def __call__(self, parser: argparse.ArgumentParser, *arguments: object) -> None:
        """Print the version and end; looked up only now."""
        from mailcheck.core.version import installed_version

        print(f"mailcheck {installed_version()}")
        parser.exit()


def make_parser(arguments: Sequence[str]) -> argparse.ArgumentParser:
    """Make the parser; of the commands, those that stand among the arguments are complete."""
    parser = argparse.ArgumentParser(
        prog="mailcheck", description="Waits for mail, checks domains, manages accounts and keys."
    )
    parser.add_argument("--config", metavar="FILE", help="the daemon's configuration file (TOML)")
    parser.add_argument("--version", action=_Version, nargs=0, help="print the version")
    groups = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    for name, (text, complete) in COMMANDS.items():
        command = groups.add_parser(name, help=text)
        if name in arguments:
            resolve_name(f"mailcheck.cli.{complete}")(command)
    return parser


COMMANDS: Mapping[str, tuple[str, str]] = {
    "serve": ("run the daemon, as twistd --nodaemon mailcheck does", "serving_commands:add_serve"),
    "init": ("write a configuration file and make the first account", "serving_commands:add_init"),
    "account": (
        "accounts: add, list, invite, set-password",
        "account_commands:add_account_commands",
    ),
    "key": ("API keys: issue, list, revoke", "account_commands:add_key_commands"),
    "new": ("take an address and its cursor, before the mail is sent", "inbox_commands:add_new"),
    "wait": ("wait for a mail and print its code, link or all of it", "inbox_commands:add_wait"),
    "inbox": ("list the mails of an inbox, show one, or delete some", "inbox_commands:add_inbox"),
    "webhook": (
        "webhooks: add, list, test, replay, resume, remove",
        "webhook_commands:add_webhook_commands",
    ),
    "send-sample": (
        "send yourself a mail with a code and a link",
        "inbox_commands:add_send_sample",
    ),
    "mx": ("check a domain's MX, SPF and DMARC", "check_commands:add_mx"),
    "blacklist": ("ask 32 blocklists about an address or a domain", "check_commands:add_blacklist"),
    "reputation": (
        "score a domain from 0 to 100 and say what to fix",
        "check_commands:add_reputation",
    ),
    "domain": (
        "show everything that is known of a domain's mail set-up",
        "check_commands:add_domain",
    ),
    "score": ("score a mail in a file, as a deliverability test does", "score_commands:add_score"),
    "dmarc": (
        "read DMARC reports: who sends as a domain, and what fails",
        "report_commands:add_dmarc",
    ),
    "tls-report": (
        "read reports about TLS on the way to a domain",
        "report_commands:add_tls_report",
    ),
    "reports": (
        "reports that receivers sent here: list them, delete some",
        "reports_commands:add_reports_commands",
    ),
    "test": (
        "get a test address, wait for a mail to it, and print its report",
        "deliverability_commands:add_test",
    ),
    "watch": (
        "watch domains and addresses over time: add, list, show, remove",
        "watch_commands:add_watch_commands",
    ),
    "store": (
        "the store: back it up, restore, check, copy it to PostgreSQL",
        "store_commands:add_store_commands",
    ),
    "doctor": (
        "is this daemon set up right, and what is to be mended?",
        "doctor_commands:add_doctor",
    ),
    "config": (
        "the configuration: check, example, blocklists",
        "config_commands:add_config_commands",
    ),
}
"""What each is for, and the module and function here that add its options."""

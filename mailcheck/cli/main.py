"""``mailcheck``: parses the command line, runs the command and sets the exit status.

Only the named command is imported, because ``--help`` and the commands for a daemon need neither
the checks nor the store.
"""

import argparse
import os
import sys
from collections.abc import Mapping, Sequence
from contextlib import nullcontext, redirect_stderr, redirect_stdout
from pathlib import Path
from pkgutil import resolve_name
from typing import TextIO

from mailcheck.cli.exit_statuses import (
    EXIT_FINE,
    EXIT_INTERRUPTED,
    EXIT_PROBLEM,
    EXIT_USAGE,
)
from mailcheck.cli.terminal import protect


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and exit."""
    sys.stdout, sys.stderr = protect(sys.stdout), protect(sys.stderr)  # for tracebacks too
    try:
        status = run(sys.argv[1:] if arguments is None else arguments, sys.stdout, sys.stderr)
        sys.stdout.flush()
    except BrokenPipeError:  # the reader (head, less) has closed the pipe
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        status = EXIT_PROBLEM
    except KeyboardInterrupt:
        status = EXIT_INTERRUPTED
    sys.exit(status)


def run(arguments: Sequence[str], output: TextIO, errors: TextIO) -> int:
    """Run a command, and return its status: 0 fine, 1 problem, 2 usage error, 3 undetermined."""
    output, errors = protect(output), protect(errors)
    try:
        with redirect_stdout(output), redirect_stderr(errors):
            options = make_parser(arguments).parse_args(arguments)
    except SystemExit as said:  # --help or a usage error
        return EXIT_USAGE if said.code else EXIT_FINE
    from mailcheck.cli.commands import Command, Console
    from mailcheck.config.reading import ConfigError, load_config
    from mailcheck.core.errors import ExpectedFailure, StoreUnavailable

    command: Command = options.command
    try:
        config = load_config(Path(options.config) if options.config else None, os.environ)
        console = Console(config, output, errors)
        with console.progress.shown() if options.has_progress else nullcontext():
            return command(options, console)
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
        """Print the version and exit. It is only looked up when needed."""
        from mailcheck.core.version import installed_version

        print(f"mailcheck {installed_version()}")
        parser.exit()


class _Misplaced(argparse.Action):
    def __call__(self, parser: argparse.ArgumentParser, *arguments: object) -> None:
        """Reject an option of commands that was given before the command."""
        _, value, name = arguments
        parser.error(f"{name} belongs after the command: mailcheck COMMAND {name} {value}")


def make_parser(arguments: Sequence[str]) -> argparse.ArgumentParser:
    """Return the parser. Only the commands among the arguments have all their options."""
    parser = argparse.ArgumentParser(
        prog="mailcheck", description="Waits for mail, checks domains, manages accounts and keys."
    )
    parser.set_defaults(has_progress=True)
    parser.add_argument("--config", metavar="FILE", help="the daemon's configuration file (TOML)")
    parser.add_argument("--version", action=_Version, nargs=0, help="print the version")
    for name in ("--url", "--key-file"):
        parser.add_argument(name, action=_Misplaced, help=argparse.SUPPRESS)
    groups = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    for name, (text, complete) in COMMANDS.items():
        command = groups.add_parser(name, help=text)
        if name in arguments:
            resolve_name(f"mailcheck.cli.{complete}")(command)
    return parser


COMMANDS: Mapping[str, tuple[str, str]] = {
    "serve": ("run the daemon in the foreground", "serving_commands:add_serve"),
    "init": ("create a configuration file and the first account", "serving_commands:add_init"),
    "account": (
        "accounts: add, list, change, disable, enable, delete, sessions, invite, set-password",
        "account_commands:add_account_commands",
    ),
    "project": (
        "projects that people share: add, members, set-member, remove-member",
        "account_commands:add_project_commands",
    ),
    "audit": ("who did what with accounts and keys", "account_commands:add_audit"),
    "key": ("API keys: issue, list, fault, revoke", "account_commands:add_key_commands"),
    "client": (
        "programs that people connect by OAuth: add, list, remove",
        "account_commands:add_client_commands",
    ),
    "new": ("get an inbox address and its cursor", "inbox_commands:add_new"),
    "wait": ("wait for a mail and print its code, its link or all", "inbox_commands:add_wait"),
    "inbox": ("list, show or delete the mails of an inbox", "inbox_commands:add_inbox"),
    "webhook": (
        "webhooks: add, list, test, replay, resume, secret, remove",
        "webhook_commands:add_webhook_commands",
    ),
    "mcp": (
        "connect an agent that starts its MCP servers as programs (stdio)",
        "mcp_commands:add_mcp",
    ),
    "send-sample": (
        "send yourself a mail with a code and a link",
        "inbox_commands:add_send_sample",
    ),
    "mx": ("check a domain's MX, SPF and DMARC", "check_commands:add_mx"),
    "blacklist": ("check an address or a domain on 32 blocklists", "check_commands:add_blacklist"),
    "reputation": (
        "score a domain from 0 to 100 and list what to fix",
        "check_commands:add_reputation",
    ),
    "domain": (
        "show everything known about a domain's mail setup",
        "check_commands:add_domain",
    ),
    "score": ("score a mail file as a deliverability test does", "score_commands:add_score"),
    "dmarc": (
        "read DMARC reports, or plan the next policy of a domain",
        "report_commands:add_dmarc",
    ),
    "tls-report": (
        "read TLS reports about mail to a domain",
        "report_commands:add_tls_report",
    ),
    "reports": (
        "reports received by a daemon: list, delete",
        "reports_commands:add_reports_commands",
    ),
    "test": (
        "run a deliverability test and print its report",
        "deliverability_commands:add_test",
    ),
    "watch": (
        "watched domains and addresses: add, list, show, remove",
        "watch_commands:add_watch_commands",
    ),
    "store": (
        "the store: backup, restore, check, copy to PostgreSQL",
        "store_commands:add_store_commands",
    ),
    "doctor": (
        "check the setup of a daemon and list what to fix",
        "doctor_commands:add_doctor",
    ),
    "config": (
        "the configuration: check, example, blocklists",
        "serving_commands:add_config_commands",
    ),
    "completion": (
        "print the script with which bash, zsh or fish completes commands",
        "completion_commands:add_completion",
    ),
}
"""The commands with their descriptions, and the functions that add their options."""

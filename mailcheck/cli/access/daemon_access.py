"""How commands access a daemon: its URL, the API key and its errors."""

import argparse
import os
import shlex
from collections.abc import Callable
from functools import partial
from pathlib import Path

from mailcheck.cli.commands import Console
from mailcheck.cli.exit_statuses import EXIT_PROBLEM, EXIT_UNDETERMINED, EXIT_USAGE
from mailcheck.cli.parser import Parser
from mailcheck.clients.mailcheck_client import Mailcheck, MailcheckError, Unreachable
from mailcheck.config.access import daemon_url
from mailcheck.config.options import Config
from mailcheck.config.reading import ConfigError
from mailcheck.core.identifiers import ADDRESS_FILE, KEY_FILE

CANNOT_TELL = {401, 429}
"""Statuses of a request that the daemon did not execute: a wrong key, an exceeded limit."""


DaemonCommand = Callable[[Mailcheck, argparse.Namespace, Console], int]
"""Runs a command of a daemon, and returns its status."""


def add_daemon_command(group: Parser, name: str, text: str, do: DaemonCommand) -> Parser:
    """Add a command of a daemon, whose answer can be printed as JSON, to a group."""
    parser = group.add_command(name, text)
    set_daemon_command(parser, do)
    parser.add_argument("--json", action="store_true", help="print JSON")
    return parser


def set_daemon_command(parser: argparse.ArgumentParser, do: DaemonCommand) -> None:
    """Add the options that name the daemon."""
    add_daemon_options(parser)
    parser.set_defaults(command=partial(run_on_daemon, do))


def add_daemon_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that name the daemon."""
    daemon = parser.add_argument_group("the daemon")
    daemon.add_argument("--url", help="URL of the daemon (default: MAILCHECK_URL)")
    daemon.add_argument(
        "--key-file", type=Path, help="file with the API key (default: MAILCHECK_API_KEY)"
    )


def run_on_daemon(do: DaemonCommand, options: argparse.Namespace, console: Console) -> int:
    """Run a command of a daemon; return its status."""
    daemon = reach_daemon(options, console)
    console.progress.text = "waiting for the daemon"
    try:
        return do(daemon, options, console)
    except MailcheckError as error:
        return report_problem(error, console)


def reach_daemon(options: argparse.Namespace, console: Console) -> Mailcheck:
    """Return a client with the given key, or with the key from the daemon's first start.

    :raises ConfigError: there is no key, or it is malformed.
    """
    key = read_key(options, console)
    url = options.url or os.environ.get("MAILCHECK_URL") or local_url(console.config)
    if not url.startswith(("http://", "https://")):
        raise ConfigError(f"the URL must begin with http:// or https://; got {url}")
    try:
        return Mailcheck(url, key)
    except MailcheckError as error:
        raise ConfigError(str(error)) from None


def read_key(options: argparse.Namespace, console: Console) -> str:
    """Return the given key, or the key from the daemon's first start.

    :raises ConfigError: there is none.
    """
    path = options.key_file or Path(console.config.storage.state_directory) / KEY_FILE
    key = None if options.key_file else os.environ.get("MAILCHECK_API_KEY")
    if key:
        return key
    try:
        return str(path.read_text("utf-8")).strip()
    except OSError:
        raise ConfigError(
            f"no API key: set MAILCHECK_API_KEY or name a file with --key-file "
            f"({path} cannot be read)"
        ) from None


def local_url(config: Config) -> str:
    """Return the URL that the daemon of this directory has written, or the configured one."""
    try:
        return (Path(config.storage.state_directory) / ADDRESS_FILE).read_text("utf-8").strip()
    except OSError:
        return daemon_url(config)


def command_line(options: argparse.Namespace, *words: str) -> str:
    """Return a command to run next, for the same daemon and key."""
    line = ["mailcheck"]
    if options.config:
        line += ["--config", options.config]
    line += words
    if options.url:
        line += ["--url", options.url]
    if options.key_file:
        line += ["--key-file", str(options.key_file)]
    return shlex.join(line)


def report_problem(error: MailcheckError, console: Console) -> int:
    """Print an error of the daemon, or that it is unreachable, and return the exit status."""
    console.print_note(f"mailcheck: {error}")
    if isinstance(error, Unreachable):
        console.print_note(
            "is it running? start it with `mailcheck serve`, or name it with --url or MAILCHECK_URL"
        )
        return EXIT_UNDETERMINED
    if error.status in CANNOT_TELL or error.status >= 500:
        return EXIT_UNDETERMINED
    return EXIT_USAGE if error.status == 400 else EXIT_PROBLEM

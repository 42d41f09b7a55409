"""How commands reach a daemon: its address, the key, and what it refuses."""

import argparse
import os
import shlex
from collections.abc import Callable
from pathlib import Path

from mailcheck.cli.commands import Console
from mailcheck.cli.exit_statuses import EXIT_PROBLEM, EXIT_UNDETERMINED, EXIT_USAGE
from mailcheck.clients.mailcheck_client import Mailcheck, MailcheckError, Unreachable
from mailcheck.config.access import daemon_url
from mailcheck.config.options import Config
from mailcheck.config.reading import ConfigError
from mailcheck.core.identifiers import ADDRESS_FILE, KEY_FILE


def set_daemon_command(
    parser: argparse.ArgumentParser,
    do: Callable[[Mailcheck, argparse.Namespace, Console], int],
) -> None:
    """Add the options that name the daemon; ``do`` is the command, and returns its exit status."""
    parser.add_argument("--url", help="address of the daemon (MAILCHECK_URL)")
    parser.add_argument(
        "--key-file", type=Path, help="file with the API key (or MAILCHECK_API_KEY holds it)"
    )

    def command(options: argparse.Namespace, console: Console) -> int:
        daemon = reach_daemon(options, console)
        try:
            return do(daemon, options, console)
        except MailcheckError as error:
            return report_problem(error, console)

    parser.set_defaults(command=command)


def reach_daemon(options: argparse.Namespace, console: Console) -> Mailcheck:
    """Reach the daemon with the key that is given, or that its first start has left here.

    :raises ConfigError: there is no key, or it is none.
    """
    path = options.key_file or Path(console.config.storage.state_directory) / KEY_FILE
    key = None if options.key_file else os.environ.get("MAILCHECK_API_KEY")
    if not key:
        try:
            key = path.read_text("utf-8")
        except OSError:
            raise ConfigError(
                f"no API key: set MAILCHECK_API_KEY or name a file with --key-file "
                f"({path} can't be read)"
            ) from None
    url = options.url or os.environ.get("MAILCHECK_URL") or local_url(console.config)
    try:
        return Mailcheck(url, key)
    except MailcheckError as error:
        raise ConfigError(str(error)) from None


def local_url(config: Config) -> str:
    """Give the address that the daemon of this folder has left, or else the configured one."""
    try:
        return (Path(config.storage.state_directory) / ADDRESS_FILE).read_text("utf-8").strip()
    except OSError:
        return daemon_url(config)


def command_line(options: argparse.Namespace, *words: str) -> str:
    """Write a command to type next: to the same daemon, with the same key."""
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
    """Say what the daemon refused, or that it is not there, and give the exit status."""
    console.print_note(f"mailcheck: {error}")
    if isinstance(error, Unreachable):
        console.print_note(
            "is it running? `mailcheck serve` starts one; --url or MAILCHECK_URL names another"
        )
        return EXIT_UNDETERMINED
    return EXIT_USAGE if error.status == 400 else EXIT_PROBLEM

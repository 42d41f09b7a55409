"""How commands reach a daemon: its address, the key, and what it refuses."""

import argparse
import os
from pathlib import Path

from mailcheck.cli.commands import Console
from mailcheck.cli.exit_statuses import EXIT_PROBLEM, EXIT_USAGE
from mailcheck.clients.mailcheck_client import Mailcheck, MailcheckError
from mailcheck.config.access import daemon_url
from mailcheck.config.reading import ConfigError
from mailcheck.core.identifiers import KEY_FILE


def add_daemon_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that say which daemon, and with which key."""
    parser.add_argument("--url", help="address of the daemon (MAILCHECK_URL)")
    parser.add_argument(
        "--key-file", type=Path, help="file with the API key (or MAILCHECK_API_KEY holds it)"
    )


def reach_daemon(options: argparse.Namespace, console: Console) -> Mailcheck:
    """Reach the daemon with the key that is given, or that its first start has left here.

    :raises ConfigError: there is no key.
    """
    path = options.key_file or Path(console.config.storage.state_directory) / KEY_FILE
    key = None if options.key_file else os.environ.get("MAILCHECK_API_KEY")
    if not key:
        try:
            key = path.read_text("utf-8").strip()
        except OSError:
            raise ConfigError(
                f"no API key: set MAILCHECK_API_KEY or name a file with --key-file "
                f"({path} can't be read)"
            ) from None
    url = options.url or os.environ.get("MAILCHECK_URL") or daemon_url(console.config)
    return Mailcheck(url, key)


def report_problem(error: MailcheckError, console: Console) -> int:
    """Say what the daemon refused, and give the exit status."""
    console.remark(f"mailcheck: {error}")
    return EXIT_USAGE if error.status == 400 else EXIT_PROBLEM

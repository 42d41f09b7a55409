"""``mailcheck``: parses the command line and turns what happens into an exit status.

Each command is loaded when it is the one that was named: ``--help`` and the commands that talk
to a daemon need none of what the checks and the store need.
"""

import argparse
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import TextIO

from mailcheck.cli.exit_statuses import EXIT_FINE, EXIT_PROBLEM, EXIT_USAGE


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and exit."""
    sys.exit(run(sys.argv[1:] if arguments is None else arguments, sys.stdout, sys.stderr))


def run(arguments: Sequence[str], output: TextIO, errors: TextIO) -> int:
    """Run a command; gives the exit status: 0 fine, 1 problem, 2 usage, 3 undetermined."""
    try:
        with redirect_stdout(output), redirect_stderr(errors):
            options = _parser(arguments).parse_args(arguments)
    except SystemExit as said:  # --help, or what is wrong
        return EXIT_USAGE if said.code else EXIT_FINE
    return _run(options, output, errors)


def _run(options: argparse.Namespace, output: TextIO, errors: TextIO) -> int:
    from mailcheck.cli.commands import Command, Console
    from mailcheck.config.reading import ConfigError, load_config
    from mailcheck.core.errors import ExpectedFailure

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


class _Version(argparse.Action):
    def __call__(self, parser: argparse.ArgumentParser, *arguments: object) -> None:
        """Print the version and end; looked up only now."""
        from importlib.metadata import version

        print(f"mailcheck {version('mailcheck')}")
        parser.exit()


def _parser(arguments: Sequence[str]) -> argparse.ArgumentParser:
    """Make the parser; of the commands, those that stand among the arguments are complete."""
    parser = argparse.ArgumentParser(
        prog="mailcheck", description="Waits for mail, checks domains, manages accounts and keys."
    )
    parser.add_argument("--config", metavar="FILE", help="the daemon's configuration file (TOML)")
    parser.add_argument("--version", action=_Version, nargs=0, help="print the version")
    groups = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    for name, (text, complete) in _COMMANDS.items():
        command = groups.add_parser(name, help=text)
        if name in arguments:
            complete(command)
    return parser


def _account(parser: argparse.ArgumentParser) -> None:
    from mailcheck.cli.account_commands import add_account_commands

    add_account_commands(parser)


def _key(parser: argparse.ArgumentParser) -> None:
    from mailcheck.cli.account_commands import add_key_commands

    add_key_commands(parser)


def _wait(parser: argparse.ArgumentParser) -> None:
    from mailcheck.cli.inbox_commands import add_wait

    add_wait(parser)


def _inbox(parser: argparse.ArgumentParser) -> None:
    from mailcheck.cli.inbox_commands import add_inbox

    add_inbox(parser)


def _send_sample(parser: argparse.ArgumentParser) -> None:
    from mailcheck.cli.inbox_commands import add_send_sample

    add_send_sample(parser)


def _mx(parser: argparse.ArgumentParser) -> None:
    from mailcheck.cli.check_commands import add_mx

    add_mx(parser)


def _blacklist(parser: argparse.ArgumentParser) -> None:
    from mailcheck.cli.check_commands import add_blacklist

    add_blacklist(parser)


def _reputation(parser: argparse.ArgumentParser) -> None:
    from mailcheck.cli.check_commands import add_reputation

    add_reputation(parser)


def _domain(parser: argparse.ArgumentParser) -> None:
    from mailcheck.cli.check_commands import add_domain

    add_domain(parser)


def _score(parser: argparse.ArgumentParser) -> None:
    from mailcheck.cli.score_commands import add_score

    add_score(parser)


def _test(parser: argparse.ArgumentParser) -> None:
    from mailcheck.cli.deliverability_commands import add_test

    add_test(parser)


def _config(parser: argparse.ArgumentParser) -> None:
    from mailcheck.cli.config_commands import add_config_commands

    add_config_commands(parser)


def _serve(parser: argparse.ArgumentParser) -> None:
    from mailcheck.cli.serving_commands import add_serve

    add_serve(parser)


def _init(parser: argparse.ArgumentParser) -> None:
    from mailcheck.cli.serving_commands import add_init

    add_init(parser)


def _store(parser: argparse.ArgumentParser) -> None:
    from mailcheck.cli.store_commands import add_store_commands

    add_store_commands(parser)


def _doctor(parser: argparse.ArgumentParser) -> None:
    from mailcheck.cli.doctor_commands import add_doctor

    add_doctor(parser)


_COMMANDS: Mapping[str, tuple[str, Callable[[argparse.ArgumentParser], None]]] = {
    "serve": ("run the daemon, as twistd --nodaemon mailcheck does", _serve),
    "init": ("write a configuration file and make the first account", _init),
    "account": ("accounts: add, list, invite, set-password", _account),
    "key": ("API keys: issue, list, revoke", _key),
    "wait": ("wait for a mail and print its code, link or all of it", _wait),
    "inbox": ("list the mails of an inbox, or show one", _inbox),
    "send-sample": ("send yourself a mail with a code and a link", _send_sample),
    "mx": ("check a domain's MX, SPF and DMARC", _mx),
    "blacklist": ("ask 32 blocklists about an address or a domain", _blacklist),
    "reputation": ("score a domain from 0 to 100 and say what to fix", _reputation),
    "domain": ("show everything that is known of a domain's mail set-up", _domain),
    "score": ("score a mail in a file, as a deliverability test does", _score),
    "test": ("get a test address, wait for a mail to it, and print its report", _test),
    "store": ("the store: back it up, restore, check, copy it to PostgreSQL", _store),
    "doctor": ("is this daemon set up right, and what is to be mended?", _doctor),
    "config": ("the configuration: check, example, blocklists", _config),
}
"""What each is for, and what adds its options: it imports the command."""

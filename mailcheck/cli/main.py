"""``mailcheck``: parses the command line, runs the command and sets the exit status.

Only the named command is imported, because ``--help`` and the commands for a daemon need neither
the checks nor the store.
"""

import argparse
import gc
import os
import sys
from collections.abc import Mapping, Sequence
from contextlib import nullcontext, redirect_stderr, redirect_stdout
from pathlib import Path
from pkgutil import resolve_name
from typing import NamedTuple, TextIO

from mailcheck.cli.exit_statuses import (
    EXIT_FINE,
    EXIT_INTERRUPTED,
    EXIT_PROBLEM,
    EXIT_USAGE,
)
from mailcheck.cli.parser import Parser
from mailcheck.cli.terminal import protect

GARBAGE_THRESHOLD = 50_000
"""Number of new objects after which the garbage collector runs."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and exit."""
    # Nearly all objects are those of modules, which stay. With Python's threshold of 700, looking
    # for garbage among them takes a tenth of the startup time.
    gc.set_threshold(GARBAGE_THRESHOLD)
    sys.stdout, sys.stderr = protect(sys.stdout), protect(sys.stderr)  # for tracebacks too
    try:
        status = run(_given() if arguments is None else arguments, sys.stdout, sys.stderr)
        sys.stdout.flush()
    except BrokenPipeError:  # the reader (head, less) has closed the pipe
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        status = EXIT_PROBLEM
    except KeyboardInterrupt:
        status = EXIT_INTERRUPTED
    sys.exit(status)


def _given() -> Sequence[str]:
    """Return the arguments of the process. The link ``sendmail`` is the command of this name."""
    return ["sendmail"] * (Path(sys.argv[0]).name == "sendmail") + sys.argv[1:]


def run(arguments: Sequence[str], output: TextIO, errors: TextIO) -> int:
    """Run a command, and return its status: 0 fine, 1 problem, 2 usage error, 3 undetermined."""
    output, errors = protect(output), protect(errors)
    try:
        with redirect_stdout(output), redirect_stderr(errors):
            options, unknown = make_parser(arguments).parse_known_args(_spell_out(arguments))
            if unknown:
                options.parser.reject_unknown(unknown)
    except SystemExit as said:  # --help or a usage error
        return said.code if isinstance(said.code, int) else EXIT_FINE
    from mailcheck.cli.commands import Command, Console
    from mailcheck.config.reading import ConfigError, load_config
    from mailcheck.core.errors import ExpectedFailure, StoreUnavailable, cause_of

    command: Command = options.command
    try:
        config = load_config(Path(options.config) if options.config else None, os.environ)
        console = Console(config, output, errors, as_json=getattr(options, "json", False))
        with console.progress.shown() if options.has_progress else nullcontext():
            return command(options, console)
    except ConfigError as error:
        print(f"mailcheck: {error}", file=errors)
        status: int = options.parser.config_status
        return status
    except BrokenPipeError:
        raise
    except StoreUnavailable as failure:
        print(f"mailcheck: {failure.cause}", file=errors)
        return EXIT_PROBLEM
    except OSError as failure:
        name = os.fsdecode(failure.filename or "")
        print(f"mailcheck: {f'{name}: ' if name else ''}{cause_of(failure)}", file=errors)
        return EXIT_USAGE if name in _words_of(options) else EXIT_PROBLEM
    except ExpectedFailure as failure:
        print(f"mailcheck: {failure}", file=errors)
        return EXIT_PROBLEM


def _words_of(options: argparse.Namespace) -> set[str]:
    """Return the values of all options, of which some may be names of files."""
    values = [value if isinstance(value, list) else [value] for value in vars(options).values()]
    return {str(word) for words in values for word in words}


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


def _spell_out(arguments: Sequence[str]) -> Sequence[str]:
    """Return `help COMMAND` as `COMMAND --help`, `version` as `--version`, nothing as `--help`."""
    match list(arguments):
        case [] | ["help"]:
            return ["--help"]
        case ["help", *words]:
            return [*words, "--help"]
        case ["version"]:
            return ["--version"]
    return arguments


class _Program(Parser):
    """The parser of all commands. Its help lists them in groups."""

    examples = ("mailcheck wait --code", "mailcheck domain example.com")

    def format_help(self) -> str:
        """Return the help text with the commands of each group."""
        groups = "".join(
            f"\n{title}:\n"
            + "".join(f"  {name:<13}{command.text}\n" for name, command in group.items())
            for title, group in GROUPS.items()
        )
        before, _, rest = super().format_help().partition("\ncommands:\n")
        examples = rest[rest.index("\nexamples:\n") :]
        return f"{before}{groups}{examples}\n`mailcheck help COMMAND` shows all of a command.\n"


def make_parser(arguments: Sequence[str]) -> Parser:
    """Return the parser. Only the commands among the arguments have all their options."""
    parser = _Program(
        prog="mailcheck", description="Waits for mail, checks domains, manages accounts and keys."
    )
    parser.set_defaults(has_progress=True)
    parser.add_argument("--config", metavar="FILE", help="the daemon's configuration file (TOML)")
    parser.add_argument("--version", action=_Version, nargs=0, help="print the version")
    for name in ("--url", "--key-file"):
        parser.add_argument(name, action=_Misplaced, help=argparse.SUPPRESS)
    for name, command_row in COMMANDS.items():
        command = parser.add_command(name, command_row.text, aliases=command_row.aliases)
        command.examples = command_row.examples
        if not {name, *command_row.aliases}.isdisjoint(arguments):
            resolve_name(f"mailcheck.cli.{command_row.complete}")(command)
    return parser


class CommandRow(NamedTuple):
    """A command: its description, the function that adds its options, and two examples."""

    text: str
    complete: str
    examples: tuple[str, str]
    aliases: tuple[str, ...] = ()


GROUPS: Mapping[str, Mapping[str, CommandRow]] = {
    "mail of an inbox": {
        "new": CommandRow(
            "get an inbox address and its cursor",
            "inbox_commands:add_new",
            ("mailcheck new", "mailcheck new signup --json"),
        ),
        "wait": CommandRow(
            "wait for a mail and print its code, its link or all",
            "inbox_commands:add_wait",
            ("mailcheck wait --tag signup --code", "mailcheck wait --subject invoice --timeout 60"),
        ),
        "inbox": CommandRow(
            "list, show or delete the mails of an inbox",
            "inbox_commands:add_inbox",
            ("mailcheck inbox -q 'from:shop newer:2h'", "mailcheck inbox show 0198a2c4"),
        ),
        "send-sample": CommandRow(
            "send yourself a mail with a code and a link",
            "inbox_commands:add_send_sample",
            ("mailcheck send-sample", "mailcheck send-sample --server 127.0.0.1:2525"),
        ),
        "sendmail": CommandRow(
            "submit a mail in the place of /usr/sbin/sendmail",
            "sendmail_commands:add_sendmail",
            (
                "mailcheck sendmail -t -i < mail.eml",
                "mailcheck sendmail ann@example.com < mail.eml",
            ),
        ),
        "inbound": CommandRow(
            "mail into an application: add, routes, send, attempts, remove",
            "inbound_commands:add_inbound_commands",
            (
                "mailcheck inbound add 'support@*' http://127.0.0.1:8000/in --format postmark",
                "mailcheck inbound send 5zojdpcu6lum6 --text Hello",
            ),
        ),
        "webhook": CommandRow(
            "webhooks: add, list, test, replay, resume, secret, remove",
            "webhook_commands:add_webhook_commands",
            ("mailcheck webhook add https://app.example.com/mail", "mailcheck webhook list"),
        ),
        "mcp": CommandRow(
            "connect an agent that starts its MCP servers as programs (stdio)",
            "mcp_commands:add_mcp",
            ("mailcheck mcp", "mailcheck mcp --url https://mail.example.com"),
        ),
    },
    "checks": {
        "domain": CommandRow(
            "show everything known about a domain's mail setup",
            "check_commands:add_domain",
            ("mailcheck domain example.com", "mailcheck domain example.com --json"),
        ),
        "mx": CommandRow(
            "check a domain's MX, SPF and DMARC",
            "check_commands:add_mx",
            ("mailcheck mx example.com", "mailcheck mx example.com --json"),
        ),
        "reputation": CommandRow(
            "score a domain from 0 to 100 and list what to fix",
            "check_commands:add_reputation",
            ("mailcheck reputation example.com", "mailcheck reputation example.com --json"),
        ),
        "blocklist": CommandRow(
            "check an address or a domain on 32 blocklists",
            "check_commands:add_blocklist",
            ("mailcheck blocklist 192.0.2.25", "mailcheck blocklist example.com --json"),
            aliases=("blacklist",),
        ),
        "score": CommandRow(
            "score a mail file as a deliverability test does",
            "score_commands:add_score",
            ("mailcheck score mail.eml", "mailcheck score mail.eml --ip 192.0.2.25 --fail-under 8"),
        ),
        "test": CommandRow(
            "run a deliverability test and print its report",
            "deliverability_commands:add_test",
            ("mailcheck test", "mailcheck test --fail-under 9 --json"),
        ),
        "watch": CommandRow(
            "watched domains and addresses: add, list, show, remove",
            "watches.watch_commands:add_watch_commands",
            ("mailcheck watch add example.com 192.0.2.25", "mailcheck watch list"),
        ),
        "beat": CommandRow(
            "mail expected on a schedule: add, list, show, remove, send",
            "watches.beat_commands:add_beat_commands",
            ("mailcheck beat add backup --at 06:00 --zone Europe/Berlin", "mailcheck beat list"),
        ),
    },
    "reports of receivers": {
        "dmarc": CommandRow(
            "read DMARC reports, or plan the next policy of a domain",
            "report_commands:add_dmarc",
            ("mailcheck dmarc report.xml.gz", "mailcheck dmarc plan example.com"),
        ),
        "tls-report": CommandRow(
            "read TLS reports about mail to a domain",
            "report_commands:add_tls_report",
            ("mailcheck tls-report report.json.gz", "mailcheck tls-report report.json --json"),
        ),
        "reports": CommandRow(
            "reports received by a daemon: list, delete, import",
            "report_commands:add_reports",
            ("mailcheck reports list", "mailcheck reports list --limit 50"),
        ),
    },
    "the daemon": {
        "serve": CommandRow(
            "run the daemon in the foreground",
            "serving_commands:add_serve",
            ("mailcheck serve", "mailcheck serve --like mailpit"),
        ),
        "init": CommandRow(
            "create a configuration file and the first account",
            "serving_commands:add_init",
            ("mailcheck init", "mailcheck --config /etc/mailcheck/mailcheck.toml init"),
        ),
        "reload": CommandRow(
            "let the running daemon read its configuration again",
            "serving_commands:add_reload",
            ("mailcheck reload", "mailcheck --config /etc/mailcheck/mailcheck.toml reload"),
        ),
        "config": CommandRow(
            "the configuration: check, example, blocklists",
            "serving_commands:add_config_commands",
            ("mailcheck config check", "mailcheck config example > mailcheck.toml"),
        ),
        "doctor": CommandRow(
            "check the setup of a daemon and list what to fix",
            "doctor_commands:add_doctor",
            ("mailcheck doctor", "mailcheck doctor --json"),
        ),
        "store": CommandRow(
            "the store: backup, restore, check, copy to PostgreSQL",
            "store_commands:add_store_commands",
            ("mailcheck store backup mail.db", "mailcheck store check"),
        ),
    },
    "people and keys": {
        "account": CommandRow(
            "accounts: add, list, change, disable, enable, delete, sessions, invite, set-password",
            "accounts.account_commands:add_account_commands",
            ("mailcheck account add ann", "mailcheck account invite"),
        ),
        "project": CommandRow(
            "projects that people share: add, invite, members, set-member, remove-member",
            "accounts.project_commands:add_project_commands",
            ("mailcheck project add shop --owner ann", "mailcheck project members shop"),
        ),
        "key": CommandRow(
            "API keys: issue, list, rotate, fault, revoke",
            "accounts.key_commands:add_key_commands",
            ("mailcheck key issue ann", "mailcheck key list"),
        ),
        "apply": CommandRow(
            "set up projects from a file: members, keys, webhooks, watches, heartbeats",
            "setup.commands:add_apply",
            ("mailcheck apply team.toml", "mailcheck apply team.toml --yes"),
        ),
        "client": CommandRow(
            "programs that people connect by OAuth: add, list, remove",
            "accounts.client_commands:add_client_commands",
            ("mailcheck client list", "mailcheck client add --help"),
        ),
        "audit": CommandRow(
            "who did what with accounts and keys",
            "accounts.account_commands:add_audit",
            ("mailcheck audit", "mailcheck audit --json"),
        ),
    },
    "the shell": {
        "completion": CommandRow(
            "print the script with which bash, zsh or fish completes commands",
            "completion_commands:add_completion",
            ("mailcheck completion bash", "mailcheck completion fish"),
        ),
    },
}
"""The commands in the groups of the help."""

COMMANDS: Mapping[str, CommandRow] = {
    name: row for group in GROUPS.values() for name, row in group.items()
}
"""All commands by name."""

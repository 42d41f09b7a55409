"""``mailcheck serve``, ``reload``, ``init`` and ``config``: configure and run a daemon."""

import argparse
import json
import os
import shlex
import socket
import sys
from pathlib import Path
from typing import Any

from mailcheck.cli.commands import Console
from mailcheck.cli.exit_statuses import EXIT_FINE, EXIT_PROBLEM, EXIT_UNDETERMINED, EXIT_USAGE
from mailcheck.cli.parser import Parser
from mailcheck.config.example import render_example
from mailcheck.config.mailpit import translate_environment
from mailcheck.config.reading import load_config
from mailcheck.core.addresses import join_subaddress
from mailcheck.core.identifiers import KEY_FILE
from mailcheck.operations.reloads import (
    RELOAD,
    ReloadReport,
    control_socket,
    control_sockets,
    parse_report,
)

CONFIG_FILE = "mailcheck.toml"


def add_serve(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``mailcheck serve``."""
    parser.add_argument(
        "--like",
        choices=("mailpit",),
        help="listen as Mailpit does, and read the variables MP_* of its images",
    )
    parser.set_defaults(command=serve, has_progress=False)


def serve(options: argparse.Namespace, console: Console) -> int:
    """``mailcheck serve``: run the daemon in the foreground until it is stopped."""
    from twisted.scripts.twistd import run

    if options.like:
        translated = translate_environment(os.environ)
        os.environ.update(translated.variables)
        if translated.ignored:
            console.print_note(f"mailcheck: ignored: {', '.join(translated.ignored)}")

    config = ["--config", options.config] if options.config else []
    sys.argv = ["twistd", "--nodaemon", "--pidfile=", "mailcheck", *config]
    run()
    return EXIT_FINE


RELOAD_SECONDS = 60.0
"""Seconds to wait for the answer of a daemon. Several processes answer one after the other."""


def add_reload(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``mailcheck reload``."""
    parser.add_argument("--pid", type=int, help="process of the daemon, if several run")
    parser.set_defaults(command=reload)


def reload(options: argparse.Namespace, console: Console) -> int:
    """``mailcheck reload``: print what each daemon with this state directory has changed.

    It fails if no daemon could start with the configuration. Running ones keep their settings then.
    """
    if not _could_start(console):
        return EXIT_USAGE
    folder = Path(console.config.storage.state_directory)
    sockets = control_sockets(folder)
    if options.pid is not None:
        sockets = [control_socket(folder, options.pid)]
    reports = [report for report in map(_ask_for_reload, sockets) if report is not None]
    for report in reports:
        for line in report.lines():
            (console.print_note if report.problem else console.print_line)(line)
    if not reports:
        console.print_note(f"mailcheck: no daemon answers in {folder}, its state directory")
        return EXIT_UNDETERMINED
    return EXIT_PROBLEM if any(report.problem for report in reports) else EXIT_FINE


def _ask_for_reload(path: Path) -> ReloadReport | None:
    """Return the report of a daemon, or `None` if none listens on the socket."""
    with socket.socket(socket.AF_UNIX) as daemon:
        daemon.settimeout(RELOAD_SECONDS)
        try:
            daemon.connect(str(path))
        except (ConnectionRefusedError, FileNotFoundError):
            return None
        daemon.sendall(RELOAD + b"\n")
        try:
            with daemon.makefile("rb") as answer:
                return parse_report(answer.read())
        except ValueError:
            return ReloadReport(problem="the daemon ended before it answered; see its log")
        except TimeoutError:
            problem = f"no answer within {RELOAD_SECONDS:g} seconds; see the log of the daemon"
            return ReloadReport(problem=problem)


def add_init(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``mailcheck init``."""
    parser.add_argument(
        "file", nargs="?", type=Path, default=Path(CONFIG_FILE), help=f"file ({CONFIG_FILE})"
    )
    parser.add_argument("--domain", help="domain of the inbox addresses")
    parser.add_argument("--account", default="developer", help="name of the account (developer)")
    parser.set_defaults(command=init)


def init(options: argparse.Namespace, console: Console) -> int:
    """``mailcheck init``: create a commented configuration file, an account and its key."""
    from mailcheck.assembly.accounts import AccountParts
    from mailcheck.cli.access.store_access import with_accounts
    from mailcheck.daemon.first_start import write_secret

    if options.file.exists():
        console.print_note(f"mailcheck: {options.file} already exists; nothing was changed")
        return EXIT_PROBLEM
    options.file.parent.mkdir(parents=True, exist_ok=True)
    options.file.write_text(_configuration(options.domain), "utf-8")
    try:
        config = load_config(options.file, os.environ)

        async def make(accounts: AccountParts) -> tuple[str, str]:
            account = await accounts.keep.add(options.account)
            issued = await accounts.keep.issue_key(account, "init")
            return join_subaddress(account.mailbox_name, "", config.inbox.domain), issued.secret

        address, secret = with_accounts(config, make, may_be_new=True)
    except BaseException:
        options.file.unlink()
        raise
    key_path = Path(config.storage.state_directory) / KEY_FILE
    write_secret(key_path, secret)
    console.print_line(f"configuration  {options.file}")
    console.print_line(f"inbox          {address}")
    console.print_line(f"API key        in {key_path}")
    console.print_note(f"next: mailcheck --config {shlex.quote(str(options.file))} serve")
    console.print_note(f"then: mailcheck --config {shlex.quote(str(options.file))} doctor")
    return EXIT_FINE


def _configuration(domain: str | None) -> str:
    """Return a file with all options at their defaults, except the domain and ``bootstrap``."""
    text = render_example()
    settings = {"bootstrap": "true"}
    if domain is not None:
        settings["domain"] = json.dumps(domain)
    lines = text.splitlines(keepends=True)
    for number, line in enumerate(lines):
        name = line.partition(" = ")[0].removeprefix("#")
        if name in settings and line.startswith("#"):
            lines[number] = f"{name} = {settings.pop(name)}\n"
    return "".join(lines)


def add_config_commands(parser: Parser) -> None:
    """Add the commands of ``mailcheck config``."""
    text = "check all that could keep the daemon from starting with this configuration"
    check = parser.add_command("check", text, check_config)
    check.add_argument(
        "--connect",
        action="store_true",
        help="also bind the ports and connect to the database; for a daemon that is stopped",
    )
    check.set_defaults(work=check_connections)
    parser.add_command("example", "print a file with all options and defaults", print_example)
    text = "print the packaged catalogue of blocklists, to be edited"
    parser.add_command("blocklists", text, print_blocklists)


def check_config(options: argparse.Namespace, console: Console) -> int:
    """``mailcheck config check``: build the daemon as a start does, without starting it."""
    from mailcheck.cli.access.reactor_commands import on_reactor

    if not _could_start(console):
        return EXIT_USAGE
    if options.connect or console.config.oidc.issuer:
        return on_reactor(options, console)
    console.print_note(f"{options.config or 'the configuration'} is valid")
    return EXIT_FINE


async def _can_sign_in(console: Console, reactor: Any) -> bool:
    """Return whether the company's sign-in service is usable, if one is configured.

    A provider that does not answer now is only named.
    """
    if not console.config.oidc.issuer:
        return True
    from mailcheck.assembly.doctor import examine_company
    from mailcheck.checks.findings import Severity

    found = await examine_company(console.config, reactor)
    for finding in found:
        console.print_note(f"[oidc] {finding.meaning}\n  -> {finding.fix}")
    return all(found_finding.severity is not Severity.ERROR for found_finding in found)


def _could_start(console: Console) -> bool:
    """Return whether a daemon could start with this configuration. Print the problem.

    :raises ConfigError: it could not, because of an option.
    """
    # Imported here, since the other commands need no daemon.
    from twisted.internet import reactor

    from mailcheck.assembly.running.starting import try_start
    from mailcheck.daemon.listening import CannotStart

    try:
        try_start(console.config, reactor)
    except CannotStart as problem:
        console.print_note(str(problem))
        return False
    return True


async def check_connections(options: argparse.Namespace, console: Console, reactor: Any) -> int:
    """``mailcheck config check``: examine [oidc]; with ``--connect``, use ports and database."""
    from mailcheck.assembly.running.starting import try_connecting
    from mailcheck.daemon.listening import CannotStart

    if not await _can_sign_in(console, reactor):
        return EXIT_PROBLEM
    what = options.config or "the configuration"
    if not options.connect:
        console.print_note(f"{what} is valid")
        return EXIT_FINE
    try:
        await try_connecting(console.config, reactor)
    except CannotStart as problem:
        console.print_note(str(problem))
        return EXIT_PROBLEM
    console.print_note(f"{what} is valid; its ports and its database can be used")
    return EXIT_FINE


def print_example(options: argparse.Namespace, console: Console) -> int:
    """``mailcheck config example``: print the content of `etc/mailcheck.toml`."""
    console.output.write(render_example())
    return EXIT_FINE


def print_blocklists(options: argparse.Namespace, console: Console) -> int:
    """``mailcheck config blocklists``: print the catalogue to be edited for ``[blocklists]``."""
    from mailcheck.checks.dnsbl.catalogue import packaged_catalogue_text

    console.output.write(packaged_catalogue_text())
    return EXIT_FINE

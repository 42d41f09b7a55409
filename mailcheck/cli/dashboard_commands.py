"""``mailcheck account invite`` and ``set-password``: who may use the dashboard."""

import argparse
import getpass
import os
import sys
from typing import Any

from mailcheck.api.urls import PublicUrls
from mailcheck.assembly.daemon import Assembly
from mailcheck.cli.commands import Console
from mailcheck.cli.daemon_access import url_here
from mailcheck.cli.exit_statuses import EXIT_FINE
from mailcheck.cli.store_access import with_store
from mailcheck.core.identifiers import new_password
from mailcheck.operations.accounts.invitations import INVITATION_DAYS
from mailcheck.operations.accounts.register import Registration


def add_dashboard_commands(commands: Any) -> None:
    """Add the commands to those of ``mailcheck account``."""
    invite = commands.add_parser("invite", help="make a link with which one account can be made")
    invite.set_defaults(command=make_invitation)
    password = commands.add_parser(
        "set-password", help="set the password of an account for the dashboard"
    )
    password.add_argument("name", help="name of the account")
    password.add_argument(
        "--generate", action="store_true", help="make one up and print it, instead of asking for it"
    )
    password.set_defaults(command=set_password)


def make_invitation(options: argparse.Namespace, console: Console) -> int:
    """``mailcheck account invite``: prints the link, and nothing else, to standard output."""

    async def invite(assembly: Assembly) -> str:
        invitation = await assembly.dashboard.invitations.invite()
        return PublicUrls(url_here(console.config)).invitation_url(invitation)

    console.say(with_store(console.config, invite))
    console.remark(f"it works once, for {INVITATION_DAYS} days")
    if console.config.accounts.registration == Registration.CLOSED:
        console.remark("not now: [accounts] registration is closed")
    return EXIT_FINE


def set_password(options: argparse.Namespace, console: Console) -> int:
    """``mailcheck account set-password NAME``: sessions of the account end."""
    password = new_password(os.urandom) if options.generate else _ask()

    async def change(assembly: Assembly) -> None:
        account = await assembly.accounts.find(options.name)
        await assembly.dashboard.sign_in.set_password(account, password)

    with_store(console.config, change)
    if options.generate:
        console.say(password)
    console.remark("set; whoever was signed in to the account is no longer")
    return EXIT_FINE


def _ask() -> str:
    """Ask on a terminal, unseen; from a pipe the first line is read."""
    if sys.stdin.isatty():
        return getpass.getpass("new password: ")
    return sys.stdin.readline().rstrip("\r\n")

"""``mailcheck project``: projects that people share."""

import argparse
import shlex

from mailcheck.api.urls import PublicUrls
from mailcheck.assembly.accounts import AccountParts
from mailcheck.cli.access.daemon_access import local_url
from mailcheck.cli.access.store_access import with_accounts
from mailcheck.cli.commands import Command, Console
from mailcheck.cli.exit_statuses import EXIT_FINE
from mailcheck.cli.parser import Parser
from mailcheck.core.accounts import Account
from mailcheck.core.addresses import join_subaddress
from mailcheck.core.instants import format_instant
from mailcheck.core.projects import Member, Role
from mailcheck.operations.accounts.registration_rules import INVITATION_DAYS


def add_project_commands(parser: Parser) -> None:
    """Add the commands of ``mailcheck project``."""

    def add_command(name: str, text: str, command: Command) -> Parser:
        added = parser.add_command(name, text, command)
        added.add_argument("name", help="name of the project")
        return added

    add = add_command("add", "create a project with an inbox that people share", add_project)
    add.add_argument("--owner", required=True, help="name of the account of its first owner")
    invite = add_command("invite", "create a link with which one person can join", invite_member)
    invite.add_argument(
        "address", nargs="?", default="", help="mail address of a person who has no account"
    )
    members = add_command("members", "list the members of a project", list_members)
    members.add_argument("--json", action="store_true", help="print one JSON object per line")
    setting = add_command("set-member", "add a member, or change the role of one", set_member)
    removal = add_command("remove-member", "remove a member from a project", remove_member)
    for command in (setting, removal):
        command.add_argument("account", help="name of the person's account")
    for command in (invite, setting):
        command.add_argument("--role", choices=list(map(str, Role)), default=str(Role.EDITOR))


def add_project(options: argparse.Namespace, console: Console) -> int:
    """``mailcheck project add NAME --owner ACCOUNT``: print the inbox address."""

    async def add(accounts: AccountParts) -> Account:
        owner = await accounts.keep.find(options.owner)
        return await accounts.projects.create(owner, options.name)

    project = with_accounts(console.config, add)
    console.print_line(join_subaddress(project.mailbox_name, "", console.config.inbox.domain))
    console.print_note(f"next: mailcheck key issue {shlex.quote(project.name)}")
    return EXIT_FINE


def invite_member(options: argparse.Namespace, console: Console) -> int:
    """``mailcheck project invite NAME [ADDRESS]``: print only the link to standard output."""

    async def invite(accounts: AccountParts) -> str:
        project = await accounts.projects.find(options.name)
        invited = await accounts.projects.invite(project, Role(options.role), options.address)
        return invited.code

    code = with_accounts(console.config, invite)
    console.print_line(PublicUrls(local_url(console.config)).join_url(code))
    whose = f"{options.address} signs up with it, or" if options.address else "the person"
    console.print_note(f"{whose} signs in; it can be used once, within {INVITATION_DAYS} days")
    return EXIT_FINE


def list_members(options: argparse.Namespace, console: Console) -> int:
    """``mailcheck project members NAME``: print name, role and time of each member."""

    async def read(accounts: AccountParts) -> list[Member]:
        return await accounts.projects.members(await accounts.projects.find(options.name))

    for member in with_accounts(console.config, read):
        shown = {
            "name": member.name,
            "role": member.role,
            "addedAt": format_instant(member.added_at),
        }
        console.print_row(shown, *shown.values())
    return EXIT_FINE


def set_member(options: argparse.Namespace, console: Console) -> int:
    """``mailcheck project set-member NAME ACCOUNT``."""

    async def change(accounts: AccountParts) -> None:
        project = await accounts.projects.find(options.name)
        person = await accounts.keep.find(options.account)
        await accounts.projects.set_member(project, person, Role(options.role))

    with_accounts(console.config, change)
    console.print_note(f"{options.account} is {options.role} of {options.name}")
    return EXIT_FINE


def remove_member(options: argparse.Namespace, console: Console) -> int:
    """``mailcheck project remove-member NAME ACCOUNT``."""

    async def change(accounts: AccountParts) -> None:
        project = await accounts.projects.find(options.name)
        person = await accounts.keep.find(options.account)
        await accounts.projects.remove_member(project, person.id)

    with_accounts(console.config, change)
    console.print_note("removed")
    return EXIT_FINE

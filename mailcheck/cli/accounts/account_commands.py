"""``mailcheck account`` and ``audit``: accounts, passwords, sessions, the audit log."""

import argparse
import getpass
import os
import shlex
import sys
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any

from mailcheck.api.urls import PublicUrls
from mailcheck.assembly.accounts import AccountParts
from mailcheck.cli.access.daemon_access import local_url
from mailcheck.cli.access.store_access import Result, with_accounts
from mailcheck.cli.commands import Command, Console, moment, whole_id
from mailcheck.cli.exit_statuses import EXIT_FINE, EXIT_PROBLEM
from mailcheck.cli.parser import Parser, read_digits, whole_number
from mailcheck.core.accounts import Account, AccountLimits
from mailcheck.core.addresses import join_subaddress
from mailcheck.core.audit import COMMAND_LINE, AuditEntry, format_audit_cursor
from mailcheck.core.errors import InvalidParameter
from mailcheck.core.identifiers import new_password
from mailcheck.core.instants import format_instant
from mailcheck.core.signing_in.passkeys import Passkey
from mailcheck.operations.accounts.manage_accounts import (
    LONGEST_RETENTION,
    MAX_QUOTA,
    SHORTEST_RETENTION,
)
from mailcheck.operations.accounts.passkeys import remove_passkeys
from mailcheck.operations.accounts.registration_rules import INVITATION_DAYS, Registration
from mailcheck.operations.accounts.sign_in import LINK_MINUTES


def make_invitation(options: argparse.Namespace, console: Console) -> int:
    """``mailcheck account invite``: print only the link to standard output."""
    invitation = with_accounts(console.config, lambda accounts: accounts.invitations.invite())
    console.print_line(PublicUrls(local_url(console.config)).invitation_url(invitation))
    console.print_note(f"it can be used once, within {INVITATION_DAYS} days")
    if console.config.accounts.registration == Registration.CLOSED:
        console.print_note("it cannot be used now: [accounts] registration is closed")
    return EXIT_FINE


def _with_account(
    console: Console,
    name: str,
    work: Callable[[AccountParts, Account], Coroutine[Any, Any, Result]],
) -> Result:
    """Run work on the account with a name, in the store of the daemon.

    :raises AccountNotFound: no account has this name.
    """

    async def find_and_work(accounts: AccountParts) -> Result:
        return await work(accounts, await accounts.keep.find(name))

    return with_accounts(console.config, find_and_work)


def set_password(options: argparse.Namespace, console: Console) -> int:
    """``mailcheck account set-password NAME``: also end all sessions of the account."""
    if options.generate:
        password = new_password(os.urandom)
    elif sys.stdin.isatty():
        password = getpass.getpass("new password: ")
    else:
        password = sys.stdin.readline().rstrip("\r\n")

    _with_account(
        console,
        options.name,
        lambda accounts, account: accounts.sign_in.set_password(account, password),
    )
    if options.generate:
        console.print_line(password)
    console.print_note("password set; all sessions of the account have ended")
    return EXIT_FINE


def add_account_commands(parser: Parser) -> None:
    """Add the commands of ``mailcheck account``."""

    def add_command(name: str, text: str, command: Command) -> Parser:
        added = parser.add_command(name, text, command)
        added.add_argument("name", help="name of the account")
        return added

    add = add_command("add", "create an account with its own inbox", add_account)
    add.add_argument(
        "--operator", action="store_true", help="let it receive mail to postmaster and abuse"
    )
    quota = whole_number(1, MAX_QUOTA)
    add.add_argument("--max-messages", type=quota, help="maximum number of messages in its inbox")
    add.add_argument("--max-bytes", type=quota, help="maximum bytes of mail in its inbox")
    listing = parser.add_command("list", "list all accounts with what they use", list_accounts)
    _add_limits(add_command("change", "rename an account, or change its limits", change_account))
    add_command("disable", "refuse the sign-ins, keys and mail of an account", disable_account)
    add_command("enable", "enable a disabled account", enable_account)
    delete = add_command("delete", "delete an account with all of its data", delete_account)
    delete.add_argument("--yes", action="store_true", help="do not ask")
    sessions = add_command("sessions", "list or end the sessions of an account", show_sessions)
    sessions.add_argument("--end", metavar="ID", help="end the session with this id, or `all`")
    text = "create a link with which one person can sign up"
    parser.add_command("invite", text, make_invitation)
    text = "create a link that signs in to an account once"
    add_command("sign-in-link", text, make_sign_in_link)
    passkeys = add_command("passkeys", "list or remove the passkeys of an account", show_passkeys)
    passkeys.add_argument("--remove", metavar="ID", help="remove the one with this id, or `all`")
    for command in (listing, sessions, passkeys):
        command.add_argument("--json", action="store_true", help="print one JSON object per line")
    text = "let a person of the company's sign-in service sign in to an account"
    company = add_command("link", text, link_company)
    company.add_argument("subject", help="the claim `sub` of the person, or `none` to remove it")
    text = "set the password of an account for the dashboard"
    password = add_command("set-password", text, set_password)
    password.add_argument(
        "--generate", action="store_true", help="generate a password and print it"
    )
    for command in (delete, password):  # which ask
        command.set_defaults(has_progress=False)


def show_passkeys(options: argparse.Namespace, console: Console) -> int:
    """``mailcheck account passkeys NAME``: list the passkeys of an account, or remove them."""
    if options.remove is not None:
        return _remove_passkeys(options, console)

    async def read(accounts: AccountParts, account: Account) -> list[Passkey]:
        return await accounts.passkey_store.passkeys_of(account.id)

    found = _with_account(console, options.name, read)
    console.explain_empty(found, f"{options.name} has no passkeys: people add them on their page")
    for passkey in found:
        row = {
            "id": passkey.id,
            "name": passkey.name,
            "createdAt": moment(passkey.created_at),
            "lastUsedAt": moment(passkey.last_used_at),
        }
        words = (passkey.id, passkey.name, f"last used {row['lastUsedAt'] or 'never'}")
        console.print_row(row, *words)
    return EXIT_FINE


def _remove_passkeys(options: argparse.Namespace, console: Console) -> int:
    async def remove(accounts: AccountParts, account: Account) -> list[str]:
        known = [passkey.id for passkey in await accounts.passkey_store.passkeys_of(account.id)]
        is_all = options.remove == "all"
        chosen = None if is_all else whole_id(options.remove, known, "passkey")
        return await remove_passkeys(accounts.passkey_store, accounts.audit, account, chosen)

    removed = _with_account(console, options.name, remove)
    console.print_note(f"removed: {', '.join(removed) or 'none'}")
    return EXIT_FINE


def make_sign_in_link(options: argparse.Namespace, console: Console) -> int:
    """``mailcheck account sign-in-link NAME``: print only the link to standard output."""
    code = _with_account(
        console, options.name, lambda accounts, account: accounts.sign_in.create_link(account)
    )
    console.print_line(PublicUrls(local_url(console.config)).sign_in_url(code))
    console.print_note(f"it can be used once, within {LINK_MINUTES} minutes")
    return EXIT_FINE


def link_company(options: argparse.Namespace, console: Console) -> int:
    """``mailcheck account link NAME SUBJECT``."""

    async def link(accounts: AccountParts, account: Account) -> None:
        if accounts.company is None:
            raise InvalidParameter("issuer", "[oidc] issuer is not configured")
        if options.subject == "none":
            await accounts.company.unlink(account)
        else:
            await accounts.company.link(account, options.subject)

    _with_account(console, options.name, link)
    console.print_note("removed" if options.subject == "none" else "linked")
    return EXIT_FINE


def _add_limits(change: Parser) -> None:
    change.add_argument("--name", dest="new_name", help="new name; addresses and keys stay")
    change.add_argument(
        "--operator", action="store_true", help="let it receive mail to postmaster and abuse"
    )
    quota = partial(_limit, lowest=1, highest=MAX_QUOTA)
    hours = partial(_limit, lowest=SHORTEST_RETENTION, highest=LONGEST_RETENTION)
    of_default = "; `default` is the configured number"
    change.add_argument(
        "--max-messages", type=quota, help=f"maximum number of messages in its inbox{of_default}"
    )
    change.add_argument(
        "--max-bytes", type=quota, help=f"maximum bytes of mail in its inbox{of_default}"
    )
    change.add_argument(
        "--retention-hours",
        type=hours,
        help=f"hours until mail expires, at least {SHORTEST_RETENTION}{of_default}",
    )


def add_audit(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``mailcheck audit``."""
    parser.add_argument("--account", help="only entries about this account")
    limit = whole_number(1, 1_000_000)
    parser.add_argument("--limit", type=limit, default=100, help="number of entries (100)")
    parser.add_argument("--json", action="store_true", help="print one JSON object per line")
    parser.set_defaults(command=show_audit)


def add_account(options: argparse.Namespace, console: Console) -> int:
    """``mailcheck account add NAME``: print the inbox address, and how the person signs in."""
    password = new_password(os.urandom)
    urls = PublicUrls(local_url(console.config))

    async def add(accounts: AccountParts) -> tuple[Account, str]:
        account = await accounts.keep.add(
            options.name,
            is_operator=options.operator,
            max_messages=options.max_messages,
            max_bytes=options.max_bytes,
        )
        if not accounts.sign_in.has_passwords:
            code = await accounts.sign_in.create_link(account)
            return account, f"{urls.sign_in_url(code)} (once, within {LINK_MINUTES} minutes)"
        await accounts.sign_in.set_first_password(account, password)
        return account, f"{urls.public_url}/sign-in with the password {password}"

    account, way_in = with_accounts(console.config, add)
    console.print_line(join_subaddress(account.mailbox_name, "", console.config.inbox.domain))
    if account.is_operator:
        console.print_note("it receives mail to postmaster and abuse")
    console.print_note(f"a person signs in at {way_in}")
    console.print_note(f"next: mailcheck key issue {shlex.quote(account.name)}")
    return EXIT_FINE


def list_accounts(options: argparse.Namespace, console: Console) -> int:
    """``mailcheck account list``: print name, address, creation time and use of each account."""
    found = with_accounts(console.config, lambda accounts: accounts.keep.uses())
    console.explain_empty(found, "no accounts yet: mailcheck account add NAME")
    for use in found:
        account = use.account
        address = join_subaddress(account.mailbox_name, "", console.config.inbox.domain)
        shown = {
            "name": account.name,
            "address": address,
            "createdAt": format_instant(account.created_at),
            "isOperator": account.is_operator,
            "isProject": account.is_project,
            "messages": use.message_count,
            "bytes": use.byte_count,
            "lastActiveAt": moment(use.last_active_at),
            "disabledAt": moment(account.disabled_at),
            "maxMessages": account.max_messages,
            "maxBytes": account.max_bytes,
            "retentionHours": account.retention_hours,
        }
        words = (
            account.name,
            address,
            format_instant(account.created_at),
            f"{use.message_count} messages",
            f"last active {moment(use.last_active_at) or 'never'}",
            f"disabled {format_instant(account.disabled_at)}" if account.disabled_at else "",
            "operator" if account.is_operator else "",
            "project" if account.is_project else "",
        )
        console.print_row(shown, *words)
    return EXIT_FINE


def change_account(options: argparse.Namespace, console: Console) -> int:
    """``mailcheck account change NAME``: only the options that are there change something."""
    wanted = {
        name: getattr(options, name)
        for name in AccountLimits.__struct_fields__
        if getattr(options, name) is not None
    }
    if not (wanted or options.new_name is not None or options.operator):
        raise InvalidParameter("name", "nothing to change: add an option, such as --name")

    async def change(accounts: AccountParts, account: Account) -> None:
        keep = accounts.keep
        if wanted:
            given = {name: value if value else None for name, value in wanted.items()}
            kept = {name: getattr(account, name) for name in AccountLimits.__struct_fields__}
            await keep.set_limits(account, AccountLimits(**{**kept, **given}))
        if options.operator:
            await keep.make_operator(account)
        if options.new_name is not None:
            await keep.rename(account, options.new_name)

    _with_account(console, options.name, change)
    console.print_note("changed")
    return EXIT_FINE


def disable_account(options: argparse.Namespace, console: Console) -> int:
    """``mailcheck account disable NAME``: nothing is deleted."""
    _with_account(console, options.name, lambda accounts, account: accounts.keep.disable(account))
    console.print_note("disabled: it cannot sign in, its keys get 401, and its inbox refuses mail")
    return EXIT_FINE


def enable_account(options: argparse.Namespace, console: Console) -> int:
    """``mailcheck account enable NAME``."""
    _with_account(console, options.name, lambda accounts, account: accounts.keep.enable(account))
    console.print_note("enabled")
    return EXIT_FINE


def delete_account(options: argparse.Namespace, console: Console) -> int:
    """``mailcheck account delete NAME``: show what is deleted, and ask."""
    holdings = _with_account(
        console, options.name, lambda accounts, account: accounts.keep.holdings(account)
    )
    counts = ", ".join(f"{number} {name}" for name, number in holdings)
    console.print_note(f"{options.name}: {counts}")
    if not options.yes:
        if not sys.stdin.isatty():
            raise InvalidParameter("yes", "add --yes to delete the account without a question")
        if input(f"Enter {options.name} to delete all of this permanently: ") != options.name:
            console.print_note("nothing was deleted")
            return EXIT_PROBLEM

    _with_account(console, options.name, lambda accounts, account: accounts.keep.delete(account))
    console.print_note("deleted")
    return EXIT_FINE


def show_sessions(options: argparse.Namespace, console: Console) -> int:
    """``mailcheck account sessions NAME``: a line for each session, or end one or all."""
    if options.end is not None:
        return _end_sessions(options, console)
    found = _with_account(
        console, options.name, lambda accounts, account: accounts.sessions.of_account(account.id)
    )
    console.explain_empty(found, f"{options.name} is not signed in")
    for session in found:
        shown = {
            "id": session.id,
            "client": session.client or None,
            "createdAt": format_instant(session.created_at),
            "seenAt": format_instant(session.seen_at),
        }
        where = session.client or "unknown address"
        begun, seen = shown["createdAt"], shown["seenAt"]
        words = (session.id, where, f"signed in {begun}", f"last used {seen}")
        console.print_row(shown, *words)
    return EXIT_FINE


def _end_sessions(options: argparse.Namespace, console: Console) -> int:
    async def end(accounts: AccountParts, account: Account) -> int:
        listed = await accounts.sessions.of_account(account.id)
        chosen = whole_id(options.end, [session.id for session in listed], "session")
        ended = [session.id for session in listed if chosen in ("all", session.id)]
        if not ended and options.end != "all":
            problem = f"{options.name} has no session with the id {options.end!r}"
            raise InvalidParameter("end", problem)
        for session_id in ended:
            await accounts.sessions.end_listed(account.id, session_id, COMMAND_LINE)
        return len(ended)

    console.print_note(f"sessions ended: {_with_account(console, options.name, end)}")
    return EXIT_FINE


def show_audit(options: argparse.Namespace, console: Console) -> int:
    """``mailcheck audit``: print the entries of the audit log, newest first."""

    async def read(accounts: AccountParts) -> list[AuditEntry]:
        account = None if options.account is None else await accounts.keep.find(options.account)
        account_id = None if account is None else account.id
        return await accounts.audit.newest(account_id, limit=options.limit)

    found = with_accounts(console.config, read)
    console.explain_empty(found, "nothing has been recorded yet")
    for entry in found:
        shown = {
            "id": entry.id,
            "cursor": format_audit_cursor(entry.position),
            "at": format_instant(entry.happened_at),
            "account": entry.account_name or None,
            "action": entry.action,
            "actor": entry.actor,
            "client": entry.client or None,
            "detail": entry.detail or None,
        }
        by = f"by {entry.actor}" + (f" from {entry.client}" if entry.client else "")
        words = (shown["at"], entry.account_name or "-", entry.action, by, entry.detail)
        console.print_row(shown, *words)
    return EXIT_FINE


def _limit(text: str, lowest: int, highest: int) -> int:
    """Return a number within bounds, or 0 for ``default``."""
    if text == "default":
        return 0
    number = read_digits(text)
    if not lowest <= number <= highest:
        raise argparse.ArgumentTypeError(
            f"{text!r} is neither `default` nor an integer from {lowest} to {highest}"
        )
    return number

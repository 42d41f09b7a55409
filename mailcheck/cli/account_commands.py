"""``mailcheck account`` and ``key``: accounts, invitations, passwords and API keys."""

import argparse
import getpass
import json
import os
import re
import shlex
import sys
import time
from functools import partial

from mailcheck.api.urls import PublicUrls
from mailcheck.assembly.accounts import AccountParts
from mailcheck.cli.commands import Console
from mailcheck.cli.daemon_access import local_url
from mailcheck.cli.exit_statuses import EXIT_FINE
from mailcheck.cli.store_access import with_accounts
from mailcheck.core.accounts import Account, ApiKey
from mailcheck.core.addresses import join_subaddress
from mailcheck.core.faults import LARGEST_EVERY
from mailcheck.core.identifiers import new_password
from mailcheck.core.instants import DAY, HOUR, Instant, format_instant, instant_of
from mailcheck.core.rights import Scope, make_rights
from mailcheck.operations.accounts.manage_accounts import IssuedKey
from mailcheck.operations.accounts.register import INVITATION_DAYS, Registration


def make_invitation(options: argparse.Namespace, console: Console) -> int:
    """``mailcheck account invite``: print only the link to standard output."""
    invitation = with_accounts(console.config, lambda accounts: accounts.invitations.invite())
    console.print_line(PublicUrls(local_url(console.config)).invitation_url(invitation))
    console.print_note(f"it can be used once, within {INVITATION_DAYS} days")
    if console.config.accounts.registration == Registration.CLOSED:
        console.print_note("it cannot be used now: [accounts] registration is closed")
    return EXIT_FINE


def set_password(options: argparse.Namespace, console: Console) -> int:
    """``mailcheck account set-password NAME``: also end all sessions of the account."""
    if options.generate:
        password = new_password(os.urandom)
    elif sys.stdin.isatty():
        password = getpass.getpass("new password: ")
    else:
        password = sys.stdin.readline().rstrip("\r\n")

    async def change(accounts: AccountParts) -> None:
        account = await accounts.keep.find(options.name)
        await accounts.sign_in.set_password(account, password)

    with_accounts(console.config, change)
    if options.generate:
        console.print_line(password)
    console.print_note("password set; all sessions of the account have ended")
    return EXIT_FINE


MAX_REQUESTS, MAX_QUOTA = 2**31 - 1, 2**63 - 1
"""The largest numbers that the columns of all databases can store."""


def add_account_commands(parser: argparse.ArgumentParser) -> None:
    """Add the commands of ``mailcheck account``."""
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    add = commands.add_parser("add", help="create an account with its own inbox")
    add.add_argument("name", help="name of the account")
    add.add_argument(
        "--operator", action="store_true", help="let it receive mail to postmaster and abuse"
    )
    quota = partial(_whole_number, highest=MAX_QUOTA)
    add.add_argument("--max-messages", type=quota, help="maximum number of messages in its inbox")
    add.add_argument("--max-bytes", type=quota, help="maximum bytes of mail in its inbox")
    add.set_defaults(command=add_account)
    listing = commands.add_parser("list", help="list all accounts")
    listing.add_argument("--json", action="store_true", help="print one JSON object per line")
    listing.set_defaults(command=list_accounts)
    invite = commands.add_parser("invite", help="create a link with which one person can sign up")
    invite.set_defaults(command=make_invitation)
    password = commands.add_parser(
        "set-password", help="set the password of an account for the dashboard"
    )
    password.add_argument("name", help="name of the account")
    password.add_argument(
        "--generate", action="store_true", help="generate a password and print it"
    )
    password.set_defaults(command=set_password)


def add_key_commands(parser: argparse.ArgumentParser) -> None:
    """Add the commands of ``mailcheck key``."""
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    issue = commands.add_parser("issue", help="issue a key; it is printed once and never stored")
    issue.add_argument("account", help="name of the account")
    issue.add_argument("--name", default="", help="what the key is for")
    limit = partial(_whole_number, highest=MAX_REQUESTS)
    issue.add_argument("--per-minute", type=limit, help="requests per minute, if not the default")
    issue.add_argument("--per-day", type=limit, help="requests per day, if not the default")
    issue.add_argument(
        "--scope",
        action="append",
        default=[],
        dest="scopes",
        choices=[str(scope) for scope in Scope],
        help="allow only this area (repeat it for more); without it, the key has all rights",
    )
    issue.add_argument(
        "--tag",
        action="append",
        default=[],
        dest="tags",
        help="allow only messages with this tag (repeat it for more)",
    )
    issue.add_argument("--tag-prefix", help="allow only messages whose tag begins with this text")
    issue.add_argument(
        "--expires", type=_lifetime, help="time until the key expires, such as 12h, 30d or 8w"
    )
    issue.set_defaults(command=issue_key)
    listing = commands.add_parser("list", help="list keys, without their secrets")
    listing.add_argument("account", nargs="?", help="only the keys of this account")
    listing.add_argument("--json", action="store_true", help="print one JSON object per line")
    listing.set_defaults(command=list_keys)
    fault = commands.add_parser("fault", help="simulate failures of the mail that a key submits")
    fault.add_argument("id", help="the key's id, as `mailcheck key list` shows it")
    which = fault.add_mutually_exclusive_group(required=True)
    every = partial(_whole_number, highest=LARGEST_EVERY)
    which.add_argument("--every", type=every, help="reject every Nth mail with 451")
    which.add_argument("--off", action="store_true", help="reject no mail")
    fault.set_defaults(command=set_fault)
    revoke = commands.add_parser("revoke", help="revoke a key permanently")
    revoke.add_argument("id", help="the key's id, as `mailcheck key list` shows it")
    revoke.set_defaults(command=revoke_key)


def add_account(options: argparse.Namespace, console: Console) -> int:
    """``mailcheck account add NAME``: print the inbox address."""
    account = with_accounts(
        console.config,
        lambda accounts: accounts.keep.add(
            options.name,
            is_operator=options.operator,
            max_messages=options.max_messages,
            max_bytes=options.max_bytes,
        ),
    )
    console.print_line(join_subaddress(account.mailbox_name, "", console.config.inbox.domain))
    if account.is_operator:
        console.print_note("it receives mail to postmaster and abuse")
    console.print_note(f"next: mailcheck key issue {shlex.quote(account.name)}")
    return EXIT_FINE


def list_accounts(options: argparse.Namespace, console: Console) -> int:
    """``mailcheck account list``: print name, address and creation time of each account."""
    for account in with_accounts(console.config, lambda accounts: accounts.keep.accounts()):
        address = join_subaddress(account.mailbox_name, "", console.config.inbox.domain)
        if options.json:
            shown = {
                "name": account.name,
                "address": address,
                "createdAt": format_instant(account.created_at),
                "isOperator": account.is_operator,
            }
            console.print_text(json.dumps(shown))
            continue
        role = "  operator" if account.is_operator else ""
        console.print_line(f"{account.name}  {address}  {format_instant(account.created_at)}{role}")
    return EXIT_FINE


def issue_key(options: argparse.Namespace, console: Console) -> int:
    """``mailcheck key issue ACCOUNT``: print only the key to standard output."""
    lifetime = options.expires
    expires_at = None if lifetime is None else Instant(instant_of(time.time()) + lifetime)
    rights = make_rights(options.scopes, options.tags, options.tag_prefix)

    async def issue(accounts: AccountParts) -> IssuedKey:
        return await accounts.keep.issue_key(
            await accounts.keep.find(options.account),
            options.name,
            per_minute=options.per_minute,
            per_day=options.per_day,
            rights=rights,
            expires_at=expires_at,
        )

    console.print_line(with_accounts(console.config, issue).secret)
    console.print_note("save it: it is shown only once")
    if rights.is_limited:
        console.print_note(f"it is limited to {rights}")
    if expires_at is not None:
        console.print_note(f"it expires at {format_instant(expires_at)}")
    if options.per_minute and not options.per_day:
        per_day = console.config.limits.requests_per_day
        console.print_note(f"it has {per_day} requests per day; --per-day sets another limit")
    return EXIT_FINE


def list_keys(options: argparse.Namespace, console: Console) -> int:
    """``mailcheck key list [ACCOUNT]``: print a line for each key."""

    async def read(accounts: AccountParts) -> list[tuple[Account, ApiKey]]:
        keep = accounts.keep
        listed = (
            await keep.accounts() if options.account is None else [await keep.find(options.account)]
        )
        return [(account, key) for account in listed for key in await keep.list_keys(account)]

    defaults = console.config.limits
    for account, key in with_accounts(console.config, read):
        shown: dict[str, object] = {
            "id": key.id,
            "account": account.name,
            "name": key.name,
            "hint": key.hint,
            "perMinute": key.per_minute or defaults.requests_per_minute,
            "perDay": key.per_day or defaults.requests_per_day,
            "failsEvery": key.fails_every,
            "scopes": None if key.scopes is None else key.scopes.split(),
            "tags": None if key.tags is None else key.tags.split(),
            "tagPrefix": key.tag_prefix,
            "expiresAt": _moment(key.expires_at),
            "createdAt": format_instant(key.created_at),
            "revokedAt": _moment(key.revoked_at),
            "lastUsedAt": _moment(key.last_used_at),
        }
        if options.json:
            console.print_text(json.dumps(shown))
            continue
        state = _state_of(key)
        rates = f"{shown['perMinute']}/min {shown['perDay']}/day"
        used = f"last used {shown['lastUsedAt'] or 'never'}"
        rights = str(key.rights)
        words = (key.id, account.name, f"{key.hint}...", rights, rates, state, used, key.name)
        console.print_line("  ".join(words).rstrip())
    return EXIT_FINE


def set_fault(options: argparse.Namespace, console: Console) -> int:
    """``mailcheck key fault ID``: takes effect at the next sign-in on the submission port."""
    with_accounts(
        console.config, lambda accounts: accounts.keep.set_fault(options.id, options.every)
    )
    console.print_note("no mail is rejected" if options.off else "set")
    if not console.config.inbox.faults:
        console.print_note("[inbox] faults is false, so no mail is rejected")
    return EXIT_FINE


def revoke_key(options: argparse.Namespace, console: Console) -> int:
    """``mailcheck key revoke ID``: requests with the key get 401 from now on."""
    with_accounts(console.config, lambda accounts: accounts.keep.revoke_key(options.id))
    console.print_note("revoked")
    return EXIT_FINE


def _state_of(key: ApiKey) -> str:
    if key.revoked_at is not None:
        return f"revoked {format_instant(key.revoked_at)}"
    if key.expires_at is None:
        return "valid"
    is_expired = key.is_expired(instant_of(time.time()))
    return f"{'expired' if is_expired else 'valid until'} {format_instant(key.expires_at)}"


_LIFETIME = re.compile("([1-9][0-9]{0,3})([hdw])", re.ASCII)
_UNITS = {"h": HOUR, "d": DAY, "w": 7 * DAY}


def _lifetime(text: str) -> int:
    """Return a time such as 12h, 30d or 8w in milliseconds."""
    match = _LIFETIME.fullmatch(text)
    if match is None:
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a number of hours, days or weeks, such as 12h, 30d or 8w"
        )
    return int(match[1]) * _UNITS[match[2]]


def _moment(instant: Instant | None) -> str | None:
    return None if instant is None else format_instant(instant)


def _whole_number(text: str, highest: int) -> int:
    number = int(text) if text.isascii() and text.isdigit() and len(text) < 20 else 0
    if not 1 <= number <= highest:
        raise argparse.ArgumentTypeError(f"{text!r} is not an integer from 1 to {highest}")
    return number

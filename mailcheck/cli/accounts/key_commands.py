"""``mailcheck key``: API keys."""

import argparse
import re
import shlex
import time

from mailcheck.assembly.accounts import AccountParts
from mailcheck.cli.access.store_access import with_accounts
from mailcheck.cli.commands import Console, moment, whole_id
from mailcheck.cli.exit_statuses import EXIT_FINE
from mailcheck.cli.parser import Parser, whole_number
from mailcheck.core.accounts import MAX_REQUESTS, Account, ApiKey
from mailcheck.core.audit import COMMAND_LINE
from mailcheck.core.errors import InvalidParameter
from mailcheck.core.faults import LARGEST_EVERY
from mailcheck.core.instants import DAY, HOUR, Instant, format_instant, instant_of
from mailcheck.core.rights import Scope, make_rights
from mailcheck.operations.accounts.manage_accounts import IssuedKey, RotatedKey
from mailcheck.operations.accounts.own_keys import DEFAULT_OVERLAP, LONGEST_OVERLAP

_LIFETIME = re.compile("([1-9][0-9]{0,3})([hdw])", re.ASCII)
_UNITS = {"h": HOUR, "d": DAY, "w": 7 * DAY}


def add_key_commands(parser: Parser) -> None:
    """Add the commands of ``mailcheck key``."""
    issue = parser.add_command(
        "issue", "issue a key; it is printed once and never stored", issue_key
    )
    issue.add_argument("account", help="name of the account or project")
    issue.add_argument("--name", default="", help="what the key is for")
    limit = whole_number(1, MAX_REQUESTS)
    issue.add_argument("--per-minute", type=limit, help="requests per minute, if not the default")
    issue.add_argument("--per-day", type=limit, help="requests per day, if not the default")
    issue.add_argument(
        "--scope",
        action="append",
        default=[],
        dest="scopes",
        choices=[str(scope) for scope in Scope],
        help="allow only this area (repeat it for more); without it, the key has all areas but "
        "project:admin and operator",
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
    listing = parser.add_command("list", "list keys, without their secrets", list_keys)
    listing.add_argument("account", nargs="?", help="only the keys of this account")
    listing.add_argument("--json", action="store_true", help="print one JSON object per line")
    fault = parser.add_command(
        "fault", "simulate failures of the mail that a key submits", set_fault
    )
    which = fault.add_mutually_exclusive_group(required=True)
    every = whole_number(1, LARGEST_EVERY)
    which.add_argument("--every", type=every, help="reject every Nth mail with 451")
    which.add_argument("--off", action="store_true", help="reject no mail")
    rotate = parser.add_command(
        "rotate", "replace a key by one with the same rights and limits, printed once", rotate_key
    )
    rotate.add_argument(
        "--overlap",
        type=_lifetime,
        default=DEFAULT_OVERLAP,
        help="time for which the older key stays valid, such as 12h or 7d (1d)",
    )
    revoke = parser.add_command("revoke", "revoke a key permanently", revoke_key)
    for command in (fault, rotate, revoke):
        command.add_argument("id", help="the key's id, as `mailcheck key list` shows it")


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
    found = with_accounts(console.config, read)
    of_whom = "ACCOUNT" if options.account is None else shlex.quote(options.account)
    console.explain_empty(found, f"no keys yet: mailcheck key issue {of_whom}")
    for account, key in found:
        shown: dict[str, object] = {
            "id": key.id,
            "account": account.name,
            "name": key.name,
            "hint": key.hint,
            "clientId": key.client_id,
            "perMinute": key.per_minute or defaults.requests_per_minute,
            "perDay": key.per_day or defaults.requests_per_day,
            "failsEvery": key.fails_every,
            "scopes": None if key.scopes is None else key.scopes.split(),
            "tags": None if key.tags is None else key.tags.split(),
            "tagPrefix": key.tag_prefix,
            "expiresAt": moment(key.expires_at),
            "createdAt": format_instant(key.created_at),
            "revokedAt": moment(key.revoked_at),
            "lastUsedAt": moment(key.last_used_at),
        }
        state = _state_of(key)
        limits = {"min": shown["perMinute"], "day": shown["perDay"]}
        rates = " ".join(f"{most}/{of}" for of, most in limits.items() if most != MAX_REQUESTS)
        used = f"last used {shown['lastUsedAt'] or 'never'}"
        rights = str(key.rights)
        hint = f"{key.hint}..." if key.client_id is None else f"OAuth client {key.client_id}"
        words = (key.id, account.name, hint, rights, rates or "no limit", state, used, key.name)
        console.print_row(shown, *words)
    return EXIT_FINE


def _state_of(key: ApiKey) -> str:
    if key.revoked_at is not None:
        return f"revoked {format_instant(key.revoked_at)}"
    if key.expires_at is None:
        return "valid"
    is_expired = key.is_expired(instant_of(time.time()))
    return f"{'expired' if is_expired else 'valid until'} {format_instant(key.expires_at)}"


def set_fault(options: argparse.Namespace, console: Console) -> int:
    """``mailcheck key fault ID``: takes effect at the next sign-in on the submission port."""

    async def change(accounts: AccountParts) -> None:
        await accounts.keep.set_fault(await _whole_key_id(accounts, options.id), options.every)

    with_accounts(console.config, change)
    console.print_note("no mail is rejected" if options.off else "set")
    if not console.config.inbox.faults:
        console.print_note("[inbox] faults is false, so no mail is rejected")
    return EXIT_FINE


def rotate_key(options: argparse.Namespace, console: Console) -> int:
    """``mailcheck key rotate ID``: print only the new key to standard output."""
    if options.overlap > LONGEST_OVERLAP:
        problem = f"--overlap: an older key stays valid for at most {LONGEST_OVERLAP // DAY} days"
        raise InvalidParameter("overlap", problem)

    async def rotate(accounts: AccountParts) -> RotatedKey:
        key = await accounts.keep.find_key(await _whole_key_id(accounts, options.id))
        return await accounts.keep.rotate_key(key, options.overlap, key.made_by, COMMAND_LINE)

    rotated = with_accounts(console.config, rotate)
    console.print_line(rotated.secret)
    until = format_instant(rotated.earlier.expires_at or rotated.key.created_at)
    console.print_note(f"save it: it is shown only once; the older key is valid until {until}")
    return EXIT_FINE


def revoke_key(options: argparse.Namespace, console: Console) -> int:
    """``mailcheck key revoke ID``: requests with the key get 401 from now on."""

    async def revoke(accounts: AccountParts) -> None:
        await accounts.keep.revoke_key(await _whole_key_id(accounts, options.id))

    with_accounts(console.config, revoke)
    console.print_note("revoked")
    return EXIT_FINE


async def _whole_key_id(accounts: AccountParts, beginning: str) -> str:
    keep = accounts.keep
    listed = [key.id for account in await keep.accounts() for key in await keep.list_keys(account)]
    return whole_id(beginning, listed, "key")


def _lifetime(text: str) -> int:
    """Return a time such as 12h, 30d or 8w in milliseconds."""
    match = _LIFETIME.fullmatch(text)
    if match is None:
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a number of hours, days or weeks, such as 12h, 30d or 8w"
        )
    return int(match[1]) * _UNITS[match[2]]

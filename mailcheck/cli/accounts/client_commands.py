"""``mailcheck client``: programs that people connect by OAuth."""

import argparse

from mailcheck.assembly.accounts import AccountParts
from mailcheck.assembly.deployment import has_oauth
from mailcheck.cli.access.store_access import with_accounts
from mailcheck.cli.commands import Console, moment, whole_id
from mailcheck.cli.exit_statuses import EXIT_FINE
from mailcheck.cli.parser import Parser
from mailcheck.core.instants import format_instant


def add_client_commands(parser: Parser) -> None:
    """Add the commands of ``mailcheck client``."""
    text = "register a program that people can connect by OAuth"
    add = parser.add_command("add", text, add_client)
    add.add_argument("name", help="name of the program, which people see")
    add.add_argument(
        "--redirect-uri",
        action="append",
        required=True,
        dest="redirect_uris",
        help="address to which the access is sent (repeat it for more)",
    )
    add.add_argument("--secret", action="store_true", help="also create a secret, printed once")
    text = "list registered programs, without their secrets"
    listing = parser.add_command("list", text, list_clients)
    listing.add_argument("--json", action="store_true", help="print one JSON object per line")
    removal = parser.add_command("remove", "remove a program, and end its access", remove_client)
    removal.add_argument("id", help="the client id, as `mailcheck client list` shows it")


def add_client(options: argparse.Namespace, console: Console) -> int:
    """``mailcheck client add NAME --redirect-uri URI``: print the client id, and the secret."""
    made = with_accounts(
        console.config,
        lambda accounts: accounts.oauth_clients.add(
            options.name, options.redirect_uris, has_secret=options.secret
        ),
    )
    console.print_line(made.client.id)
    if made.secret:
        console.print_line(made.secret)
        console.print_note("the second line is the client secret; it is not stored")
    if not has_oauth(console.config):
        console.print_note("it cannot be used now: OAuth is off ([web] oauth, public_url)")
    return EXIT_FINE


def list_clients(options: argparse.Namespace, console: Console) -> int:
    """``mailcheck client list``: print a line for each registered client."""
    found = with_accounts(console.config, lambda accounts: accounts.oauth_clients.list())
    console.explain_empty(found, "no programs yet: mailcheck client add NAME --redirect-uri URI")
    for client in found:
        shown = {
            "id": client.id,
            "name": client.name,
            "source": client.source,
            "hasSecret": client.has_secret,
            "redirectUris": client.redirect_uris.split(),
            "createdAt": format_instant(client.created_at),
            "expiresAt": moment(client.expires_at),
        }
        expiry = f"expires {shown['expiresAt']}" if client.expires_at else "does not expire"
        kind = "with a secret" if client.has_secret else "without a secret"
        words = (client.id, client.source, kind, expiry, client.redirect_uris, client.name)
        console.print_row(shown, *words)
    return EXIT_FINE


def remove_client(options: argparse.Namespace, console: Console) -> int:
    """``mailcheck client remove ID``: also revoke what people have granted to it."""

    async def remove(accounts: AccountParts) -> int:
        known = [client.id for client in await accounts.oauth_clients.list()]
        return await accounts.oauth_clients.delete(whole_id(options.id, known, "program"))

    revoked = with_accounts(console.config, remove)
    console.print_note(f"removed; {revoked} grants were revoked")
    return EXIT_FINE

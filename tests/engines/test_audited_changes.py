"""Each change of rights is committed together with its entry in the audit log."""

import inspect
import pkgutil
import re
import sqlite3
from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from typing import Any

import pytest

import mailcheck.store
from mailcheck.core.accounts import AccountLimits, ApiKey
from mailcheck.core.identifiers import AccountId, KeyId
from mailcheck.core.inbound import InboundRouteId
from mailcheck.core.oauth.clients import Client, ClientSource
from mailcheck.core.oauth.grants import NewTokens
from mailcheck.core.projects import Member, Role
from mailcheck.core.signing_in.company import LinkedIdentity
from mailcheck.core.signing_in.passkeys import Passkey
from mailcheck.core.signing_in.provisioning import (
    GroupDraft,
    ProjectRole,
    ProvisionedGroup,
    ProvisionedUser,
    UserDraft,
)
from mailcheck.engines.sqlite_writer import SqliteTransaction
from mailcheck.store.accounts.audit_store import write_entry
from mailcheck.store.accounts.sign_in_store import session_id
from mailcheck.store.transactions import Store, write
from tests.engines.deliveries import NOON, account, at, inbound_route, noted, webhook
from tests.engines.test_storage_copy import fill

RIGHTS = {
    *("account", "account_password", "api_key", "dashboard_session", "invitation"),
    *("linked_identity", "member", "oauth_client", "oauth_code", "oauth_token", "passkey"),
    *("project_invitation", "sign_in_link", "webhook", "inbound_route"),
    *("provisioned_user", "provisioned_group", "provisioned_member", "provisioned_role"),
}
"""The tables of people, projects, and what gives access to them."""

NO_CHANGE_OF_RIGHTS: Mapping[str, str] = {
    "KeyStore.set_key_fault": "simulates failures",
    "KeyStore.note_key_use": "a time",
    "PasswordStore.renew_hash": "the same password",
    "SessionStore.note_confirmation": "a time",
    "SessionStore.note_session_use": "a time",
    "InboundRoutes.confirm_route": "the application confirms what the owner has made",
    "OAuthStore.add_code": "gives access when it is redeemed, which is noted",
    "OAuthStore.keep_client": "a time",
    "IdentityStore.use_link": "the session that it opens is noted",
    "IdentityStore.note_external_id": "the sign-in that reads it is noted",
    "PasskeyStore.note_use": "a counter",
    "WebhookStore.restart": "progress",
    "WebhookStore.record": "progress",
    "WebhookStore.note": "progress",
    "WatchStore.add": "webhooks of the watches of the account itself",
    "WatchStore.change": "webhooks of the watches of the account itself",
    "WatchStore.delete": "webhooks of the watches of the account itself",
}
"""Methods that change these tables without an entry, and why."""

ANN, BOB, SHOP = AccountId("ann"), AccountId("bob"), AccountId("shop")
GRANT = ApiKey(KeyId("n"), ANN, "", "", NOON, None, None, None, None, client_id="agent")
KEY = ApiKey(KeyId("n"), ANN, "new", "mc_new", NOON, None, None, None, None)
CLIENT = Client("new", "New", "https://a.example/", ClientSource.OPERATOR, False, NOON)
TOKENS = NewTokens(b"a2", at(60), b"r2", at(60))
BOB_SEEN = ProvisionedUser(account("bob"), "bob", None, {}, False, NOON, version=0)
TEAM = ProvisionedGroup("t", "team", None, NOON, NOON, 1)
BOBS_ROLE = [ProjectRole("team", SHOP, Role.READER)]
PASSKEY = Passkey("q", ANN, b"\xfe", b"cose", 0, "Phone", NOON)

EXAMPLES: Mapping[str, tuple[Any, ...]] = {
    "AccountStore.add_account": (account("new"),),
    "AccountStore.rename": (BOB, "robert"),
    "AccountStore.set_limits": (BOB, AccountLimits(5)),
    "AccountStore.make_operator": (BOB,),
    "AccountStore.disable": (BOB,),
    "AccountStore.enable": (ANN,),
    "AccountStore.end_access": (ANN,),
    "KeyStore.add_key": (KEY, b"digest"),
    "KeyStore.rotate_key": (KeyId("k"), at(60), KEY, b"digest"),
    "KeyStore.revoke_key": (KeyId("k"),),
    "AccountRemoval.delete": (BOB,),
    "PasswordStore.set_password": (ANN, "$new"),
    "PasswordStore.set_first_password": (BOB, "$new"),
    "PasswordStore.register": (account("new"), "$new", b"invitation"),
    "PasswordStore.add_invitation": (b"more", at(60)),
    "SessionStore.open_session": (b"more", BOB, at(60)),
    "SessionStore.end_session": (b"session",),
    "SessionStore.end_listed": (ANN, session_id(b"session")),
    "ProjectStore.add": (account("p", is_project=True), Member(ANN, "", Role.OWNER, NOON), 9),
    "ProjectStore.set_member": (SHOP, Member(BOB, "bob", Role.READER, NOON)),
    "ProjectStore.remove_member": (SHOP, BOB),
    "ProjectStore.add_invitation": (b"more", SHOP, Role.READER, "", at(60)),
    "ProjectStore.revoke_invitation": (SHOP, session_id(b"join")),
    "ProjectStore.join": (b"join", BOB),
    "ProjectStore.register": (account("new"), "$new", b"join"),
    "OAuthStore.add_client": (CLIENT, None, 9),
    "OAuthStore.delete_client": ("agent",),
    "OAuthStore.redeem_code": (b"code", GRANT, b"digest", "", "challenge", TOKENS, 9),
    "OAuthStore.redeem_refresh_token": (b"refresh", "another", TOKENS),
    "PasskeyStore.add_passkey": (PASSKEY,),
    "PasskeyStore.rename_passkey": (ANN, "p", "Old laptop"),
    "PasskeyStore.remove_passkeys": (ANN, None),
    "PasskeyStore.remove_spare_passkey": (ANN, "p"),
    "PasskeyStore.require_passkey": (ANN,),
    "IdentityStore.add_person": (account("new"), LinkedIdentity("i", "s", AccountId("new"), NOON)),
    "IdentityStore.link": (LinkedIdentity("i", "s", BOB, NOON),),
    "IdentityStore.unlink": (ANN,),
    "IdentityStore.add_link": (b"more", BOB, at(60)),
    "ProvisioningStore.add_user": (account("new"), UserDraft("new", None, {})),
    "ProvisioningStore.change_user": (BOB_SEEN, UserDraft("bob", "x", {})),
    "ProvisioningStore.add_group": ("more", GroupDraft("more", None, (BOB,)), []),
    "ProvisioningStore.change_group": (TEAM, GroupDraft("team", None, (BOB,)), []),
    "ProvisioningStore.delete_group": ("t", []),
    "ProvisioningStore.follow_groups": (BOBS_ROLE,),
    "InboundRoutes.add_route": (inbound_route("more"),),
    "InboundRoutes.change_route": (ANN, InboundRouteId("route"), {"speed": 7}),
    "InboundRoutes.delete_route": (ANN, InboundRouteId("route")),
    "WebhookStore.add": (webhook("more"),),
    "WebhookStore.delete": (ANN, "ci"),
    "WebhookStore.replace_secret": (ANN, "ci", "whsec_new", at(60)),
}
"""Arguments before the entry with which each method changes something."""

OPTIONS: Mapping[str, Mapping[str, bool | None]] = {
    "InboundRoutes.add_route": {"is_per_recipient": True, "opening": None},
    "PasskeyStore.remove_spare_passkey": {"has_passwords": True},
    "PasskeyStore.require_passkey": {"is_required": True},
    "WebhookStore.add": {"is_from_now": True},
}

_WITH_TEAM = "INSERT INTO provisioned_group VALUES ('t', 'team', 'team', NULL, 1, 1, 1)"

PREPARATIONS: Mapping[str, str] = {
    "AccountStore.enable": "UPDATE account SET disabled_at = 1 WHERE id = 'ann'",
    "ProjectStore.remove_member": "INSERT INTO member VALUES ('shop', 'bob', 'reader', 1)",
    "ProvisioningStore.change_group": _WITH_TEAM,
    "ProvisioningStore.delete_group": _WITH_TEAM,
    "ProvisioningStore.change_user": "DELETE FROM provisioned_user",
    "ProvisioningStore.follow_groups": f"DELETE FROM provisioned_role; {_WITH_TEAM}; "
    "INSERT INTO provisioned_member VALUES ('t', 'bob')",
    "OAuthStore.redeem_code": "UPDATE oauth_code SET key_id = NULL, client_id = 'agent'",
}


def writes() -> Iterator[tuple[type[Store], Any]]:
    """Return all writing methods of all stores."""
    for module in pkgutil.walk_packages(mailcheck.store.__path__, "mailcheck.store."):
        for kind in vars(import_module(module.name)).values():
            if inspect.isclass(kind) and issubclass(kind, Store) and kind.__module__ == module.name:
                yield from ((kind, one) for one in vars(kind).values() if isinstance(one, write))


METHODS = {f"{kind.__name__}.{one.__name__}": (kind, one) for kind, one in writes()}


def changed_tables(function: Callable[..., Any], seen: set[Any]) -> set[str]:
    """Return the tables that a function names in a change, and those of what it calls."""
    seen.add(function)
    source = inspect.getsource(function)
    found = set(re.findall(r"(?:INSERT INTO|UPDATE|DELETE FROM) (\w+)", source))
    found |= set(re.findall(r'insert\(\s*transaction, "(\w+)"', source))
    found |= set(re.findall(r'delete_(?:first\(|listed\(transaction,)\s*"(\w+)"', source))
    for name in function.__code__.co_names:
        called = function.__globals__.get(name)
        if isinstance(called, str):
            found |= set(re.findall(r"(?:INSERT INTO|UPDATE|DELETE FROM) (\w+)", called))
        elif inspect.isfunction(called) and called not in seen and called is not write_entry:
            found |= changed_tables(called, seen)
    return found


def takes_entry(method: Any) -> bool:
    """Return whether a method takes an entry of the audit log."""
    return "entry" in inspect.signature(method).parameters


def test_every_change_of_rights_is_noted() -> None:
    """A store method that changes a table of rights takes an entry, or is known to change none."""
    unnoted, noting = set(), set()
    for name, (_, method) in METHODS.items():
        if takes_entry(method):
            noting.add(name)
        elif changed_tables(method.__wrapped__, set()) & RIGHTS:
            unnoted.add(name)
    assert noting - {"AuditStore.add"} == set(EXAMPLES)
    assert unnoted == set(NO_CHANGE_OF_RIGHTS)


@pytest.fixture(scope="module")
def connection(tmp_path_factory: pytest.TempPathFactory) -> Iterator[sqlite3.Connection]:
    """A full database. Each test rolls its transaction back."""
    path = str(tmp_path_factory.mktemp("full") / "mail.db")
    fill(path)
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA foreign_keys = ON")
    connection.execute("CREATE TEMP TABLE closed (x)")
    connection.execute(
        "CREATE TEMP TRIGGER refuse BEFORE INSERT ON main.audit_entry "
        "WHEN EXISTS (SELECT 1 FROM closed) BEGIN SELECT RAISE(ABORT, 'the log is closed'); END"
    )
    yield connection
    connection.close()


@pytest.fixture
def transaction(connection: sqlite3.Connection) -> Iterator[SqliteTransaction]:
    """A transaction that is rolled back after the test."""
    connection.execute("BEGIN")
    yield SqliteTransaction(connection)
    connection.execute("ROLLBACK")


def prepare(transaction: SqliteTransaction, name: str) -> None:
    """Change the store so that a method has something to change."""
    for statement in filter(None, PREPARATIONS.get(name, "").split("; ")):
        transaction.execute(statement)


@pytest.mark.parametrize("name", EXAMPLES)
def test_a_change_has_its_entry(transaction: SqliteTransaction, name: str) -> None:
    """The entry is written by the transaction of the change, which fails without it."""
    kind, method = METHODS[name]
    prepare(transaction, name)
    before, entries = _state(transaction), _entries(transaction)
    entry = noted(at(1))

    def change() -> Any:
        store = object.__new__(kind)
        wanted, options = EXAMPLES[name], OPTIONS.get(name, {})
        return method.__wrapped__(store, transaction, *wanted, entry=entry, **options)

    transaction.execute("INSERT INTO closed VALUES (1)")
    with pytest.raises(sqlite3.DatabaseError, match="the log is closed"):
        change()
    transaction.execute("ROLLBACK")
    transaction.execute("BEGIN")
    prepare(transaction, name)
    change()
    assert _state(transaction) != before
    added = [row for row in _entries(transaction) if row not in entries]
    assert added
    assert all(row.id.startswith(entry.id) for row in added)


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("AccountStore.rename", (BOB, "ann")),
        ("AccountStore.disable", (AccountId("gone"),)),
        ("AccountStore.enable", (ANN,)),
        ("KeyStore.revoke_key", (KeyId("gone"),)),
        ("SessionStore.end_session", (b"gone",)),
        ("ProjectStore.remove_member", (SHOP, BOB)),
        ("ProjectStore.join", (b"gone", BOB)),
        ("IdentityStore.unlink", (BOB,)),
        ("WebhookStore.delete", (ANN, "gone")),
        ("OAuthStore.delete_client", ("gone",)),
    ],
)
def test_nothing_is_noted_without_a_change(
    transaction: SqliteTransaction, name: str, arguments: tuple[Any, ...]
) -> None:
    """A change that was refused, or finds nothing to change, has no entry."""
    kind, method = METHODS[name]
    entries = _entries(transaction)
    method.__wrapped__(object.__new__(kind), transaction, *arguments, entry=noted())
    assert _entries(transaction) == entries


def _state(transaction: SqliteTransaction) -> dict[str, list[Any]]:
    return {table: transaction.rows(f"SELECT * FROM {table}") for table in sorted(RIGHTS)}


def _entries(transaction: SqliteTransaction) -> list[Any]:
    return transaction.rows("SELECT id, position FROM audit_entry ORDER BY position")

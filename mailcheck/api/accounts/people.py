"""JSON shapes of accounts, for the operator."""

from collections.abc import Sequence
from typing import Annotated, Any, TypeVar

from msgspec.structs import asdict

from mailcheck.api.accounts.projects import Deleted
from mailcheck.api.shapes import Always, Count, Shape, Timestamp, doc, shape_from, timestamp
from mailcheck.core import accounts


class Account(Shape):
    """An account of a person, or a project."""

    id: str
    name: str
    address: Annotated[str, doc("the address of its inbox")]
    is_project: bool
    is_operator: bool
    created_at: Timestamp
    disabled_at: Annotated[Timestamp | None, doc("null: it is enabled")]
    max_messages: Annotated[int | None, doc("null: the configured limit")]
    max_bytes: Annotated[int | None, doc("null: the configured limit")]
    retention_hours: Annotated[int | None, doc("null: the configured time")]


A = TypeVar("A", bound=Account)


class AccountUse(Account):
    """An account with what it uses."""

    messages: Count
    bytes: Count
    last_active_at: Annotated[Timestamp | None, doc("last use of a key or a page")]


class Accounts(Shape):
    """Accounts of this service."""

    accounts: tuple[AccountUse, ...]
    total: Annotated[Count, doc("number on all pages")]


class AccountAccess(Account):
    """An account with the access that it has."""

    sessions: Annotated[Count, doc("browsers that are signed in")]
    programs: Annotated[Count, doc("programs that the person has connected, to any project")]
    keys: Annotated[Count, doc("valid keys of the account itself")]
    shared_keys: Annotated[Count, doc("valid keys that the person made in projects; they go on")]


class AccessEnded(Shape):
    """What has ended of the access of a person."""

    success: Always
    id: str
    sessions: Count
    programs: Count


class SignInLink(Shape):
    """A link with which a person signs in once."""

    id: Annotated[str, doc("id of the account")]
    url: Annotated[str, doc("send it to the person; it is not shown again")]


class LinkedAccount(Shape):
    """An account that a person of the company's sign-in service uses."""

    success: Always
    id: str


class DeletedAccount(Shape):
    """An account that was deleted."""

    success: Always
    id: str
    deleted: Deleted


def render_account(account: accounts.Account, domain: str) -> Account:
    """Render an account. ``domain`` is that of its address."""
    return _account(Account, account, domain)


def render_uses(uses: Sequence[accounts.AccountUse], total: int, domain: str) -> Accounts:
    """Render a page of accounts."""
    return Accounts(
        tuple(
            _account(
                AccountUse,
                use.account,
                domain,
                messages=use.message_count,
                bytes=use.byte_count,
                last_active_at=timestamp(use.last_active_at),
            )
            for use in uses
        ),
        total,
    )


def render_access(
    account: accounts.Account, access: accounts.PersonalAccess, domain: str
) -> AccountAccess:
    """Render an account with its access."""
    return _account(AccountAccess, account, domain, **asdict(access))


def _account(kind: type[A], account: accounts.Account, domain: str, **others: Any) -> A:
    address = f"{account.mailbox_name}@{domain}"
    return shape_from(kind, account, address=address, **others)

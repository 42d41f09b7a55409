"""Rules for new accounts: who may create or invite one, and which names are possible."""

from enum import StrEnum

from msgspec import Struct, field

from mailcheck.core.accounts import Account
from mailcheck.core.addresses import parse_mailbox
from mailcheck.core.errors import (
    AccountNameTaken,
    InvalidParameter,
    NotOperator,
    RegistrationClosed,
)
from mailcheck.operations.accounts.sign_in import MAX_NAME
from mailcheck.store.accounts.confusable_names import look_alike

INVITATION_DAYS = 7
"""Days until an unused invitation expires."""


class Registration(StrEnum):
    """Policy for new accounts."""

    OPEN = "open"
    INVITE = "invite"
    CLOSED = "closed"


class InviteBy(StrEnum):
    """Who may invite people without an account to a project."""

    OPERATORS = "operators"
    OWNERS = "owners"


class NameRules(Struct):
    """Which names people may choose: none that is similar to a ``reserved`` one.

    A reload of the configuration may reserve other names. Only the operator can add such accounts.
    """

    reserved: tuple[str, ...] = ()

    def require(self, name: str, *, is_assigned: bool = False) -> str:
        """Return the name of a new account or project without surrounding spaces.

        :param is_assigned: whether the operator chooses the name, which may be reserved then.

        :raises InvalidParameter: the name is empty, too long, or has invisible characters.
        :raises AccountNameTaken: the name is reserved.
        """
        name = name.strip()
        if not name or len(name) > MAX_NAME:
            raise InvalidParameter("name", f"the name must have 1 to {MAX_NAME} characters")
        if not name.isprintable():
            raise InvalidParameter("name", "the name contains invisible characters")
        if not is_assigned and any(look_alike(name, reserved) for reserved in self.reserved):
            problem = f"the name {name!r} is reserved by the operator of this service"
            raise AccountNameTaken(f"{problem}; choose another one")
        return name


class RegistrationRules(Struct, frozen=True):
    """The policy for new accounts, and how many one client address may create in a UTC day.

    With ``is_first_ours``, the daemon creates the first account and issues a key for it.
    ``invite_by`` applies to owners of projects who invite people without an account.
    """

    mode: Registration
    per_address: int
    names: NameRules = field(default_factory=NameRules)
    is_first_ours: bool = False
    invite_by: InviteBy = InviteBy.OPERATORS

    def may_invite_new(self, inviter: Account | None) -> bool:
        """Return whether an owner may invite a person without an account.

        ``inviter`` is `None` on the command line.
        """
        is_ours = inviter is None or inviter.is_operator or self.invite_by is InviteBy.OWNERS
        return self.mode is Registration.OPEN or (self.mode is Registration.INVITE and is_ours)

    def require_invited(self, address: str, inviter: Account | None) -> str:
        """Return the address of a person who is invited, without surrounding spaces.

        :raises InvalidParameter: it is not a mail address, or too long for a name.
        :raises AccountNameTaken: it is reserved.
        :raises RegistrationClosed: nobody can be invited.
        :raises NotOperator: only operators may invite people without an account.
        """
        address = address.strip()
        if self.mode is Registration.CLOSED:
            raise RegistrationClosed(
                "only the operator of this service can create accounts; without an address, the "
                "invitation is for a person who has an account"
            )
        if not self.may_invite_new(inviter):
            raise NotOperator(
                "only operators of this service invite people who have no account ([accounts] "
                "invite_by); without an address, the invitation is for a person who has one"
            )
        try:
            parse_mailbox(address)
        except ValueError:
            problem = f"enter a mail address, such as ann@example.com; got {address[:40]!r}"
            raise InvalidParameter("address", problem) from None
        return self.names.require(address)

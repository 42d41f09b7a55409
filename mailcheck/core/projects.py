"""Projects that several people share: their members and the roles of the members."""

from collections.abc import Mapping
from enum import StrEnum

from msgspec import Struct

from mailcheck.core.accounts import Account
from mailcheck.core.errors import NotPermitted
from mailcheck.core.identifiers import AccountId
from mailcheck.core.instants import Instant


class Role(StrEnum):
    """The role of a member in a project. Each role includes those after it."""

    OWNER = "owner"
    EDITOR = "editor"
    READER = "reader"

    def includes(self, other: "Role") -> bool:
        """Return whether a member with this role may do what the other role may do."""
        ranks = list(Role)
        return ranks.index(self) <= ranks.index(other)

    def require(self, needed: "Role") -> None:
        """Check that a member with this role may do what a role may do.

        :raises NotPermitted: the role does not include it; the message names both.
        """
        if not self.includes(needed):
            raise NotPermitted(
                f"you are a {self} of this project: ask an owner for the role {needed}"
            )


ROLE_TEXTS: Mapping[Role, str] = {
    Role.OWNER: "all that an editor may do; manage API keys, webhooks, members and the project",
    Role.EDITOR: "all that a reader may do; delete mail, run checks and tests, change watches",
    Role.READER: "read mail, tests, checks, watches and reports",
}
"""What each role permits, for documents and pages."""


class Member(Struct, frozen=True):
    """A person in a project."""

    account_id: AccountId
    name: str
    role: Role
    added_at: Instant


class Membership(Struct, frozen=True):
    """A project of a person, and the role of the person in it."""

    project: Account
    role: Role


MAX_INVITATIONS = 100
"""Maximum number of invitations to a project that were not used yet."""


class ListedInvitation(Struct, frozen=True):
    """An invitation that was not used yet. ``id`` is not secret.

    ``address`` is that of a person who may have no account, or empty.
    """

    id: str
    role: Role
    address: str
    expires_at: Instant


class Invitation(Struct, frozen=True):
    """An invitation to a project.

    An account that is created with it has the ``address`` as its name. An invitation without an
    address (empty) is for people who have an account.
    """

    membership: Membership
    address: str = ""

"""People and groups that the directory of a company manages over SCIM 2.0 (RFC 7643)."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Any

from msgspec import Struct

from mailcheck.core.accounts import Account
from mailcheck.core.errors import ExpectedFailure
from mailcheck.core.identifiers import AccountId
from mailcheck.core.instants import Instant
from mailcheck.core.projects import Role

MAX_GROUP_NAME = 256
"""Maximum number of characters of the name of a group."""

MAX_EXTERNAL_ID = 255
"""Maximum number of characters of ``externalId``."""

MAX_PROFILE = 16 * 1024
"""Maximum number of characters of the other attributes of a person, as JSON."""

MAX_MEMBERS = 5_000
"""Maximum number of members of a group."""

MAX_GROUPS = 1_000
"""Maximum number of groups."""


class Kind(StrEnum):
    """Why a request is refused (RFC 7644 3.12)."""

    INVALID_FILTER = "invalidFilter"
    INVALID_SYNTAX = "invalidSyntax"
    INVALID_PATH = "invalidPath"
    INVALID_VALUE = "invalidValue"
    NO_TARGET = "noTarget"
    MUTABILITY = "mutability"
    UNIQUENESS = "uniqueness"
    TOO_MANY = "tooMany"


class ProvisioningRefused(ExpectedFailure):
    """A request of a directory cannot be carried out. ``kind`` tells the directory why."""

    def __init__(self, kind: Kind, problem: str) -> None:
        super().__init__(problem)
        self.kind = kind


class AlreadyProvisioned(ExpectedFailure):
    """Another person or group has the unique value of a request."""


class ProvisionedNotFound(ExpectedFailure):
    """No person or group has this id."""


class ChangedMeanwhile(ExpectedFailure):
    """Another request has changed the person or the group since it was read."""


class Reference(Struct, frozen=True):
    """A group of a person, or a member of a group: its id and its name."""

    id: str
    name: str


class UserDraft(Struct, frozen=True):
    """What a directory says about a person.

    ``profile`` has the other attributes as they were sent. ``is_active`` is `None` to leave it.
    """

    user_name: str
    external_id: str | None
    profile: Mapping[str, Any]
    is_active: bool | None = None


class ProvisionedUser(Struct, frozen=True):
    """A person as a directory sees it: every account that is not a project.

    ``version`` is 0 until the directory changes the account for the first time. With
    ``is_created``, the directory has created the account.
    """

    account: Account
    user_name: str
    external_id: str | None
    profile: Mapping[str, Any]
    is_created: bool
    modified_at: Instant
    version: int
    groups: tuple[Reference, ...] = ()

    @property
    def draft(self) -> UserDraft:
        """The values that a directory can change."""
        is_active = self.account.disabled_at is None
        return UserDraft(self.user_name, self.external_id, self.profile, is_active)


class GroupDraft(Struct, frozen=True):
    """What a directory says about a group. ``members`` are ids of accounts without repetition."""

    display_name: str
    external_id: str | None
    members: tuple[AccountId, ...]


class ProvisionedGroup(Struct, frozen=True):
    """A group of a directory. ``version`` grows with each change."""

    id: str
    display_name: str
    external_id: str | None
    created_at: Instant
    modified_at: Instant
    version: int
    members: tuple[Reference, ...] = ()

    @property
    def draft(self) -> GroupDraft:
        """The values that a directory can change."""
        members = tuple(AccountId(member.id) for member in self.members)
        return GroupDraft(self.display_name, self.external_id, members)


class ProjectRole(Struct, frozen=True):
    """The role that the members of a group have in a project, by the id of the project."""

    group: str
    project_id: AccountId
    role: Role

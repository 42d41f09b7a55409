"""Requests about projects, members, invitations and keys."""

from typing import Annotated, ClassVar

from mailcheck.api.requests.fields import (
    INTEGER,
    NAME,
    TAG,
    TAG_PREFIX,
    filled,
    one_of,
    required_text,
)
from mailcheck.api.requests.parsing import Description, FieldType, Request
from mailcheck.core.accounts import MAX_REQUESTS
from mailcheck.core.instants import DAY, SECOND
from mailcheck.core.projects import Role
from mailcheck.core.rights import MAX_LIMITED_TAGS, Rights, Scope, make_rights
from mailcheck.operations.accounts.manage_accounts import (
    DEFAULT_OVERLAP,
    LONGEST_KEY_LIFE,
    LONGEST_OVERLAP,
    MAX_KEY_NAME,
    KeyWish,
)
from mailcheck.operations.accounts.registration_rules import INVITATION_DAYS
from mailcheck.operations.accounts.sign_in import MAX_NAME

LONGEST_INVITATION = 30
"""Maximum number of days until an invitation expires."""

ROLE = one_of([str(role) for role in Role])

SCOPE = one_of([str(scope) for scope in Scope])

Name = Annotated[str, required_text(MAX_NAME)]


class ProjectToCreate(Request, frozen=True, kw_only=True):
    """A new project."""

    example: ClassVar = '{"name": "shop"}'

    name: Annotated[Name, Description("name of the project; no other account may have it")]
    owner: Annotated[
        Name | None,
        Description(
            "name of the account of its first owner; only for keys with the scope operator. The "
            "default is the person of the key"
        ),
    ] = None


class ProjectToRename(Request, frozen=True, kw_only=True):
    """The new name of a project."""

    example: ClassVar = '{"name": "shop"}'

    name: Annotated[Name, Description("the new name; its addresses and keys stay")]


class NamedDeletion(Request, frozen=True, kw_only=True):
    """The name of what is deleted, as a confirmation."""

    name: Annotated[
        str,
        filled(NAME),
        Description(
            "The current name, as a confirmation. Any other name deletes nothing.", example="shop"
        ),
    ]


class MemberToSet(Request, frozen=True, kw_only=True):
    """The role of a member."""

    example: ClassVar = '{"role": "editor"}'

    role: Annotated[str, ROLE, Description("what the member may do")]


class InvitationToCreate(Request, frozen=True, kw_only=True):
    """A new invitation to a project."""

    example: ClassVar = '{"role": "editor", "address": "ann@example.com"}'

    role: Annotated[str, ROLE, Description("what the person may do as a member")]
    address: Annotated[
        str,
        FieldType({"type": "string", "format": "email", "maxLength": MAX_NAME}, longest=MAX_NAME),
        Description(
            "mail address of a person who may have no account: it becomes the name of the account. "
            "Without it, the invitation is for a person who has an account"
        ),
    ] = ""
    days: Annotated[
        int,
        INTEGER,
        Description("days until the invitation expires", low=1, high=LONGEST_INVITATION),
    ] = INVITATION_DAYS


class KeyToCreate(Request, frozen=True, kw_only=True):
    """A new API key. It has at most the rights and limits of the key that creates it."""

    example: ClassVar = '{"name": "CI of the shop", "scopes": ["inbox:read"]}'

    name: Annotated[
        str, required_text(MAX_KEY_NAME), Description("what the key is for, for people")
    ]
    scopes: Annotated[
        tuple[Annotated[str, SCOPE], ...],
        Description(
            "the areas that it may use; without any, all but project:admin and operator",
            at_most=len(Scope),
        ),
    ] = ()
    tags: Annotated[
        tuple[Annotated[str, TAG], ...],
        Description("limit it to messages with these tags", at_most=MAX_LIMITED_TAGS),
    ] = ()
    tag_prefix: Annotated[
        Annotated[str, TAG_PREFIX] | None,
        Description("limit it to messages whose tag begins with this"),
    ] = None
    per_minute: Annotated[
        Annotated[int, INTEGER] | None,
        Description("requests in a clock minute, if not the default", low=1, high=MAX_REQUESTS),
    ] = None
    per_day: Annotated[
        Annotated[int, INTEGER] | None,
        Description("requests in a UTC day, if not the default", low=1, high=MAX_REQUESTS),
    ] = None
    expires_in_seconds: Annotated[
        Annotated[int, INTEGER] | None,
        Description(
            "seconds until it expires; without it, it does not",
            low=60,
            high=LONGEST_KEY_LIFE // SECOND,
        ),
    ] = None

    @property
    def rights(self) -> Rights:
        """The rights that were asked for.

        :raises InvalidParameter: they cannot be combined.
        """
        return make_rights(self.scopes, self.tags, self.tag_prefix)

    @property
    def wish(self) -> KeyWish:
        """The key that was asked for.

        :raises InvalidParameter: its rights cannot be combined.
        """
        seconds = self.expires_in_seconds
        return KeyWish(
            self.name,
            self.rights,
            self.per_minute,
            self.per_day,
            None if seconds is None else seconds * SECOND,
        )


class KeyRotation(Request, frozen=True, kw_only=True):
    """How long the older key stays valid."""

    example: ClassVar = '{"overlapSeconds": 86400}'

    overlap_seconds: Annotated[
        int,
        INTEGER,
        Description(
            f"seconds for which the older key stays valid, at most {LONGEST_OVERLAP // DAY} days; "
            "0 ends it at once",
            low=0,
            high=LONGEST_OVERLAP // SECOND,
        ),
    ] = DEFAULT_OVERLAP // SECOND

    @property
    def overlap(self) -> int:
        """The overlap in milliseconds."""
        return self.overlap_seconds * SECOND

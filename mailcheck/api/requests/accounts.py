"""Requests about projects, members, invitations and keys."""

from typing import Annotated, ClassVar

from msgspec import UNSET, UnsetType

from mailcheck.api.requests.checks import ListPage
from mailcheck.api.requests.fields import (
    DEFAULT_PAGE,
    INTEGER,
    LONGEST_WAIT,
    NAME,
    SEARCH_TEXT,
    SECONDS,
    SHORTEST_WAIT,
    TAG,
    TAG_PREFIX,
    Limit,
    filled,
    one_of,
    required_text,
)
from mailcheck.api.requests.parsing import Description, FieldType, Request
from mailcheck.core.accounts import MAX_REQUESTS, AccountLimits, AccountOrder
from mailcheck.core.audit import AUDIT_CURSOR_PATTERN, Action, parse_audit_cursor
from mailcheck.core.instants import DAY, SECOND
from mailcheck.core.projects import Role
from mailcheck.core.rights import MAX_LIMITED_TAGS, Rights, Scope, make_rights
from mailcheck.core.signing_in.company import MAX_SUBJECT
from mailcheck.operations.accounts.manage_accounts import LONGEST_RETENTION, SHORTEST_RETENTION
from mailcheck.operations.accounts.own_keys import (
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

AUDIT_CURSOR = FieldType(
    {"type": "string", "pattern": AUDIT_CURSOR_PATTERN},
    parse_audit_cursor,
    "{name} must be a cursor from an earlier response, unchanged; got {sent}",
)

LARGEST_NUMBER = 10**14
"""The highest quota that a request can name; it is never reached."""

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
        FieldType(
            {
                "anyOf": [
                    {"type": "string", "format": "email", "maxLength": MAX_NAME},
                    {"const": ""},
                ]
            },
            longest=MAX_NAME,
        ),
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


class AuditToRead(Request, frozen=True, kw_only=True):
    """The entries of the audit log to read."""

    after: Annotated[
        Annotated[int, AUDIT_CURSOR] | None,
        Description(
            "Only entries after this cursor of an earlier response, oldest first. `a0` begins with "
            "the oldest one. Without a cursor, the newest entries are returned.",
            example="a0",
        ),
    ] = None
    action: Annotated[
        str | None,
        one_of([str(action) for action in Action]),
        Description("Only entries with this action."),
    ] = None
    limit: Limit = DEFAULT_PAGE
    timeout: Annotated[
        Annotated[float, SECONDS] | None,
        Description(
            "Seconds to wait for an entry after the cursor. Without it, the answer comes at once.",
            low=SHORTEST_WAIT,
            high=LONGEST_WAIT,
        ),
    ] = None

    @property
    def wanted_action(self) -> Action | None:
        """The action of the entries, or `None` for all."""
        return None if self.action is None else Action(self.action)


class AuditOfAllToRead(AuditToRead, frozen=True, kw_only=True):
    """The entries of the audit log of the service to read."""

    account: Annotated[
        str | None, NAME, Description("Only entries about the account or project with this id.")
    ] = None


class AccountsToList(ListPage, frozen=True, kw_only=True):
    """Which accounts are listed."""

    search: Annotated[
        str | None, SEARCH_TEXT, Description("Only names that contain this, in any case.")
    ] = None
    kind: Annotated[
        str | None, one_of(["person", "project"]), Description("Only people, or only projects.")
    ] = None
    sort: Annotated[
        str,
        one_of([str(order) for order in AccountOrder]),
        Description("Order of the accounts: newest, largest and last used come first."),
    ] = str(AccountOrder.NAME)


class AccountToCreate(Request, frozen=True, kw_only=True):
    """A new account of a person."""

    example: ClassVar = '{"name": "ann@example.com"}'

    name: Annotated[Name, Description("name of the account; no other account may have it")]


class AccountChoice(Request, frozen=True, kw_only=True):
    """What is changed of an account. `null` restores the configured limit."""

    example: ClassVar = '{"maxMessages": 5000, "retentionHours": 72}'
    may_be_null: ClassVar = ("maxMessages", "maxBytes", "retentionHours")

    name: Annotated[Name | UnsetType, Description("the new name; its addresses and keys stay")] = (
        UNSET
    )
    max_messages: Annotated[
        Annotated[int, INTEGER] | UnsetType | None,
        Description("messages that the inbox may hold", low=1, high=LARGEST_NUMBER),
    ] = UNSET
    max_bytes: Annotated[
        Annotated[int, INTEGER] | UnsetType | None,
        Description("octets of mail that the inbox may hold", low=1, high=LARGEST_NUMBER),
    ] = UNSET
    retention_hours: Annotated[
        Annotated[int, INTEGER] | UnsetType | None,
        Description("hours for which mail is kept", low=SHORTEST_RETENTION, high=LONGEST_RETENTION),
    ] = UNSET

    @property
    def limits(self) -> dict[str, int | None]:
        """The limits that are changed, by their names in `AccountLimits`."""
        return self.chosen(*AccountLimits.__struct_fields__)


class IdentityToLink(Request, frozen=True, kw_only=True):
    """A person of the company's sign-in service."""

    example: ClassVar = '{"subject": "248289761001"}'

    subject: Annotated[
        str,
        required_text(MAX_SUBJECT),
        Description("the claim `sub` of the person at the sign-in service"),
    ]


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

"""People, groups, lists, errors and the description of the service as SCIM documents."""

from collections.abc import Mapping, Sequence
from typing import Any

from mailcheck.api.scim.schemas import (
    CORE,
    GROUP,
    MESSAGES,
    TYPES,
    USER,
    Document,
    ResourceType,
    read_resource,
)
from mailcheck.core.identifiers import AccountId
from mailcheck.core.instants import Instant, format_instant
from mailcheck.core.signing_in.provisioning import (
    GroupDraft,
    Kind,
    ProvisionedGroup,
    ProvisionedUser,
    ProvisioningRefused,
    UserDraft,
)

MAX_RESULTS = 500
"""Maximum number of resources on a page."""

DEFAULT_RESULTS = 100
"""Number of resources on a page for a client that does not say."""


def render_user(user: ProvisionedUser, base: str) -> Document:
    """Return a person as a document."""
    document: Document = {
        **_head(USER, user.account.id, user.external_id),
        "userName": user.user_name,
        **user.profile,
        "active": user.account.disabled_at is None,
    }
    if user.groups:
        document["groups"] = [
            {"value": item.id, "display": item.name, "$ref": f"{base}{GROUP.endpoint}/{item.id}"}
            for item in user.groups
        ]
    created = user.account.created_at
    document["meta"] = _meta(USER, user.account.id, created, user.modified_at, base)
    return document


def render_group(group: ProvisionedGroup, base: str) -> Document:
    """Return a group as a document."""
    document: Document = {
        **_head(GROUP, group.id, group.external_id),
        "displayName": group.display_name,
    }
    if group.members:
        document["members"] = [
            {"value": item.id, "$ref": f"{base}{USER.endpoint}/{item.id}"} for item in group.members
        ]
    document["meta"] = _meta(GROUP, group.id, group.created_at, group.modified_at, base)
    return document


def _head(kind: ResourceType, resource_id: str, external_id: str | None) -> Document:
    known = {} if external_id is None else {"externalId": external_id}
    return {"schemas": [kind.schema], "id": resource_id, **known}


def _meta(
    kind: ResourceType, resource_id: str, created: Instant, modified: Instant, base: str
) -> Document:
    return {
        "resourceType": kind.name,
        "created": format_instant(created),
        "lastModified": format_instant(modified),
        "location": f"{base}{kind.endpoint}/{resource_id}",
    }


def read_user(document: object) -> UserDraft:
    """Return what a document says about a person.

    :raises ProvisioningRefused: the document is not valid.
    """
    return draft_user(read_resource(document, USER))


def draft_user(found: Mapping[str, Any]) -> UserDraft:
    """Return what the stored attributes of a document say about a person."""
    own = ("userName", "externalId", "active")
    profile = {
        name: value for name in USER.stored if name not in own and (value := found.get(name))
    }
    return UserDraft(
        _required(found, "userName"), found.get("externalId"), profile, found.get("active")
    )


def read_group(document: object) -> GroupDraft:
    """Return what a document says about a group.

    :raises ProvisioningRefused: the document is not valid.
    """
    return draft_group(read_resource(document, GROUP))


def draft_group(found: Mapping[str, Any]) -> GroupDraft:
    """Return what the stored attributes of a document say about a group."""
    members = [member.get("value") for member in found.get("members", [])]
    if not all(members):
        raise ProvisioningRefused(Kind.INVALID_VALUE, "each of the members needs a value, its id")
    unique = tuple(AccountId(entry) for entry in dict.fromkeys(members))
    return GroupDraft(_required(found, "displayName"), found.get("externalId"), unique)


def _required(found: Mapping[str, Any], name: str) -> str:
    value = found.get(name)
    if not isinstance(value, str) or not value.strip():
        raise ProvisioningRefused(Kind.INVALID_VALUE, f"{name} is missing: send a text")
    return value


def page(resources: Sequence[Document], start: int, count: int) -> Document:
    """Return a page of resources (RFC 7644 3.4.2.4).

    :param start: number of the first resource, from 1.
    :param count: maximum number of resources.
    """
    shown = resources[start - 1 : start - 1 + count]
    return {
        "schemas": [f"{MESSAGES}ListResponse"],
        "totalResults": len(resources),
        "startIndex": start,
        "itemsPerPage": len(shown),
        "Resources": shown,
    }


def render_error(status: int, detail: str, kind: Kind | None) -> Document:
    """Return an error (RFC 7644 3.12). Its status is a text."""
    named = {} if kind is None else {"scimType": kind}
    return {
        "schemas": [f"{MESSAGES}Error"],
        "status": str(status),
        **named,
        "detail": detail,
    }


def describe_service(base: str, guide: str) -> Document:
    """Return what the service supports (RFC 7643 5).

    :param guide: URL of the documentation.
    """
    off = {"supported": False}
    return {
        "schemas": [f"{CORE}ServiceProviderConfig"],
        "documentationUri": guide,
        "patch": {"supported": True},
        "bulk": {**off, "maxOperations": 0, "maxPayloadSize": 0},
        "filter": {"supported": True, "maxResults": MAX_RESULTS},
        "changePassword": off,
        "sort": off,
        "etag": off,
        "authenticationSchemes": [
            {
                "type": "oauthbearertoken",
                "name": "API key",
                "description": "An operator's API key with the scope operator, as Bearer token",
                "primary": True,
            }
        ],
        "meta": {
            "resourceType": "ServiceProviderConfig",
            "location": f"{base}/ServiceProviderConfig",
        },
    }


def describe_types(base: str) -> dict[str, Document]:
    """Return the types of resources, by their names."""
    return {kind.name: kind.describe(base) for kind in TYPES}


def describe_schemas(base: str) -> dict[str, Document]:
    """Return the schemas, by their URIs."""
    return {kind.schema: kind.describe_schema(base) for kind in TYPES}

"""The answers of SCIM 2.0 (RFC 7643, RFC 7644): people, groups, lists, errors, descriptions."""

from collections.abc import Mapping

from tests.spec.matching import Schema
from tests.spec.shapes import (
    BOOLEAN,
    COUNT,
    OBJECT,
    STRING,
    TIMESTAMP,
    WORD,
    Bytes,
    Shape,
    array,
    one_of,
    record,
    shape,
)

_CORE = "urn:ietf:params:scim:schemas:core:2.0:"
_MESSAGES = "urn:ietf:params:scim:api:messages:2.0:"


def _schemas(uri: str) -> Schema:
    return {"const": [uri]}


def _meta(kind: str) -> Schema:
    times = {"created": TIMESTAMP, "lastModified": TIMESTAMP}
    return record({"resourceType": {"const": kind}, "location": WORD}, times)


_GROUPS = array(record({"value": WORD, "display": WORD, "$ref": WORD}))
_MEMBERS = array(record({"value": WORD, "$ref": WORD}))
_NAME = record({}, dict.fromkeys(("formatted", "givenName", "familyName"), STRING))
_EMAIL = record({}, {"value": STRING, "type": STRING, "display": STRING, "primary": BOOLEAN})

_USER = record(
    {"schemas": _schemas(f"{_CORE}User"), "id": WORD},
    {
        "userName": WORD,
        "externalId": WORD,
        "name": _NAME,
        "displayName": STRING,
        "active": BOOLEAN,
        "emails": array(_EMAIL),
        "groups": _GROUPS,
        "meta": _meta("User"),
    },
)
_GROUP = record(
    {"schemas": _schemas(f"{_CORE}Group"), "id": WORD},
    {
        "displayName": WORD,
        "externalId": WORD,
        "members": _MEMBERS,
        "meta": _meta("Group"),
    },
)


def _listed(item: Schema) -> Shape:
    return shape(
        record(
            {
                "schemas": _schemas(f"{_MESSAGES}ListResponse"),
                "totalResults": COUNT,
                "startIndex": {"type": "integer", "minimum": 1},
                "itemsPerPage": COUNT,
                "Resources": array(item),
            }
        )
    )


_TYPE = record(
    {
        "schemas": _schemas(f"{_CORE}ResourceType"),
        **dict.fromkeys(("id", "name", "endpoint", "description", "schema"), WORD),
        "schemaExtensions": array(OBJECT, maxItems=0),
        "meta": _meta("ResourceType"),
    }
)
_SCHEMA = record(
    {
        "schemas": _schemas(f"{_CORE}Schema"),
        **dict.fromkeys(("id", "name", "description"), WORD),
        "attributes": array(OBJECT, minItems=1),
        "meta": _meta("Schema"),
    }
)
_SUPPORTED = record({"supported": BOOLEAN})
_SERVICE = record(
    {
        "schemas": _schemas(f"{_CORE}ServiceProviderConfig"),
        "documentationUri": WORD,
        **dict.fromkeys(("patch", "changePassword", "sort", "etag"), _SUPPORTED),
        "bulk": record({"supported": BOOLEAN, "maxOperations": COUNT, "maxPayloadSize": COUNT}),
        "filter": record({"supported": BOOLEAN, "maxResults": COUNT}),
        "authenticationSchemes": array(OBJECT, minItems=1),
        "meta": _meta("ServiceProviderConfig"),
    }
)

SCIM_ERROR = shape(
    record(
        {
            "schemas": _schemas(f"{_MESSAGES}Error"),
            "status": {"type": "string", "pattern": "^[45][0-9][0-9]$"},
            "detail": WORD,
        },
        {
            "scimType": one_of(
                "invalidFilter",
                "invalidSyntax",
                "invalidPath",
                "invalidValue",
                "noTarget",
                "mutability",
                "uniqueness",
                "tooMany",
            )
        },
    )
)
"""The body of every error. Its status is a text."""

_NOTHING = Bytes("application/scim\\+json", is_from_mail=False)

SCIM_ROUTES: Mapping[tuple[str, str], Mapping[int, Shape | Bytes]] = {
    ("GET", "/scim/v2/Users"): {200: _listed(_USER)},
    ("POST", "/scim/v2/Users"): {201: shape(_USER)},
    ("GET", "/scim/v2/Users/{id}"): {200: shape(_USER)},
    ("PUT", "/scim/v2/Users/{id}"): {200: shape(_USER)},
    ("PATCH", "/scim/v2/Users/{id}"): {200: shape(_USER)},
    ("DELETE", "/scim/v2/Users/{id}"): {204: _NOTHING},
    ("GET", "/scim/v2/Groups"): {200: _listed(_GROUP)},
    ("POST", "/scim/v2/Groups"): {201: shape(_GROUP)},
    ("GET", "/scim/v2/Groups/{id}"): {200: shape(_GROUP)},
    ("PUT", "/scim/v2/Groups/{id}"): {200: shape(_GROUP)},
    ("PATCH", "/scim/v2/Groups/{id}"): {200: shape(_GROUP)},
    ("DELETE", "/scim/v2/Groups/{id}"): {204: _NOTHING},
    ("POST", "/scim/v2/.search"): {200: _listed({"anyOf": [_USER, _GROUP]})},
    ("POST", "/scim/v2/{type}/.search"): {200: _listed({"anyOf": [_USER, _GROUP]})},
    ("GET", "/scim/v2/ServiceProviderConfig"): {200: shape(_SERVICE)},
    ("GET", "/scim/v2/ResourceTypes"): {200: _listed(_TYPE)},
    ("GET", "/scim/v2/ResourceTypes/{name}"): {200: shape(_TYPE)},
    ("GET", "/scim/v2/Schemas"): {200: _listed(_SCHEMA)},
    ("GET", "/scim/v2/Schemas/{name}"): {200: shape(_SCHEMA)},
}

"""The attributes of people and groups that are stored, in one table.

Reading of requests, changes, answers and the published schemas follow from it. Attributes that are
not stored are not published, and are ignored in requests.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from msgspec import Struct

from mailcheck.core.signing_in.provisioning import Kind, ProvisioningRefused

CORE = "urn:ietf:params:scim:schemas:core:2.0:"
MESSAGES = "urn:ietf:params:scim:api:messages:2.0:"

Document = dict[str, Any]
"""A resource as JSON."""


class Attribute(Struct, frozen=True):
    """An attribute (RFC 7643 7). ``parts`` are the sub-attributes of a complex one."""

    name: str
    description: str
    type: str = "string"
    is_multi: bool = False
    is_required: bool = False
    is_exact: bool = False
    mutability: str = "readWrite"
    uniqueness: str = "none"
    returned: str = "default"
    parts: tuple["Attribute", ...] = ()
    targets: tuple[str, ...] = ()

    @property
    def is_read_only(self) -> bool:
        """Whether only the service sets the attribute."""
        return self.mutability == "readOnly"

    def describe(self) -> Document:
        """Return the attribute as it is published."""
        described: Document = {
            "name": self.name,
            "type": self.type,
            "multiValued": self.is_multi,
            "description": self.description,
            "required": self.is_required,
            "mutability": self.mutability,
            "returned": self.returned,
        }
        if self.type == "complex":
            return {**described, "subAttributes": [part.describe() for part in self.parts]}
        if self.type in ("string", "reference"):
            described |= {"caseExact": self.is_exact, "uniqueness": self.uniqueness}
        return {**described, "referenceTypes": list(self.targets)} if self.targets else described


def find(attributes: Iterable[Attribute], name: str) -> Attribute | None:
    """Return the attribute with a name, whose case is ignored (RFC 7643 2.1), or `None`."""
    folded = name.lower()
    return next((item for item in attributes if item.name.lower() == folded), None)


class ResourceType(Struct, frozen=True):
    """A type of resources, and its attributes.

    ``ignored`` are attributes of the standard that are not stored.
    """

    name: str
    endpoint: str
    description: str
    attributes: tuple[Attribute, ...]
    ignored: frozenset[str] = frozenset()

    @property
    def schema(self) -> str:
        """The URI of its schema."""
        return f"{CORE}{self.name}"

    @property
    def stored(self) -> tuple[str, ...]:
        """The names of the attributes that a directory sets."""
        return tuple(item.name for item in self.all_attributes if not item.is_read_only)

    @property
    def all_attributes(self) -> tuple[Attribute, ...]:
        """The attributes with those that all types have."""
        return (*COMMON, *self.attributes)

    def describe(self, base: str) -> Document:
        """Return the type as it is published (RFC 7643 6)."""
        return {
            "schemas": [f"{CORE}ResourceType"],
            "id": self.name,
            "name": self.name,
            "endpoint": self.endpoint,
            "description": self.description,
            "schema": self.schema,
            "schemaExtensions": [],
            "meta": {
                "resourceType": "ResourceType",
                "location": f"{base}/ResourceTypes/{self.name}",
            },
        }

    def describe_schema(self, base: str) -> Document:
        """Return its schema as it is published (RFC 7643 7)."""
        return {
            "schemas": [f"{CORE}Schema"],
            "id": self.schema,
            "name": self.name,
            "description": self.description,
            "attributes": [item.describe() for item in self.attributes],
            "meta": {"resourceType": "Schema", "location": f"{base}/Schemas/{self.schema}"},
        }


COMMON = (
    Attribute(
        "id", "Id that never changes.", is_exact=True, mutability="readOnly", returned="always"
    ),
    Attribute("externalId", "Id in the directory.", is_exact=True),
    Attribute("schemas", "URIs of the schemas.", is_multi=True, mutability="readOnly"),
    Attribute(
        "meta",
        "When the resource was created and changed, and its address.",
        type="complex",
        mutability="readOnly",
        parts=tuple(
            Attribute(name, "", type=kind, is_exact=True, mutability="readOnly")
            for name, kind in (
                ("resourceType", "string"),
                ("created", "dateTime"),
                ("lastModified", "dateTime"),
                ("location", "reference"),
            )
        ),
    ),
)

USER = ResourceType(
    "User",
    "/Users",
    "A person with an account.",
    (
        Attribute("userName", "Name of the account.", is_required=True, uniqueness="server"),
        Attribute(
            "name",
            "Parts of the name of the person.",
            type="complex",
            parts=(
                Attribute("formatted", "The whole name."),
                Attribute("givenName", "Given name."),
                Attribute("familyName", "Family name."),
            ),
        ),
        Attribute("displayName", "Name for lists."),
        Attribute(
            "active",
            "Whether the person can sign in. false ends sessions, keys and grants at once.",
            type="boolean",
            # It may be left out, but cannot be removed.
            is_required=True,
        ),
        Attribute(
            "emails",
            "Mail addresses. None of them finds an account.",
            type="complex",
            is_multi=True,
            parts=(
                Attribute("value", "The address."),
                Attribute("display", "Name of the address."),
                Attribute("type", "Such as work or home."),
                Attribute("primary", "Whether it is preferred.", type="boolean"),
            ),
        ),
        Attribute(
            "groups",
            "Groups of the person. They are changed at the groups.",
            type="complex",
            is_multi=True,
            mutability="readOnly",
            parts=(
                Attribute("value", "Id of the group.", is_exact=True, mutability="readOnly"),
                Attribute("display", "Name of the group.", mutability="readOnly"),
                Attribute(
                    "$ref",
                    "Address of the group.",
                    type="reference",
                    is_exact=True,
                    mutability="readOnly",
                    targets=("Group",),
                ),
            ),
        ),
    ),
    frozenset(
        name.lower()
        for name in (
            "nickName",
            "profileUrl",
            "title",
            "userType",
            "preferredLanguage",
            "locale",
            "timezone",
            "password",
            "phoneNumbers",
            "ims",
            "photos",
            "addresses",
            "entitlements",
            "roles",
            "x509Certificates",
            "manager",
        )
    ),
)

GROUP = ResourceType(
    "Group",
    "/Groups",
    "A group of people. The configuration maps it to roles in projects.",
    (
        Attribute("displayName", "Name of the group.", is_required=True, uniqueness="server"),
        Attribute(
            "members",
            "People in the group.",
            type="complex",
            is_multi=True,
            parts=(
                Attribute("value", "Id of the person.", is_exact=True, mutability="immutable"),
                Attribute(
                    "$ref",
                    "Address of the person.",
                    type="reference",
                    is_exact=True,
                    mutability="immutable",
                    targets=("User",),
                ),
            ),
        ),
    ),
)

TYPES = (USER, GROUP)

MAX_TEXT = 1_000
"""Maximum number of characters of a text."""

MAX_VALUES = 50
"""Maximum number of values of an attribute of a person."""


def read_resource(document: object, kind: ResourceType) -> Document:
    """Return the stored attributes of a resource in a request, with their own spelling.

    Attributes that only the service sets, and those that are not stored, are left out.

    :raises ProvisioningRefused: the document is not an object, or a value has the wrong type.
    """
    if not isinstance(document, dict):
        raise ProvisioningRefused(Kind.INVALID_SYNTAX, "the body must be a JSON object")
    found: Document = {}
    for name, value in document.items():
        attribute = find(kind.all_attributes, name)
        if attribute is not None and not attribute.is_read_only and value is not None:
            found[attribute.name] = read_value(attribute, value)
    return found


def read_value(attribute: Attribute, value: Any) -> Any:
    """Return the value of an attribute in a request.

    :raises ProvisioningRefused: it has the wrong type, or is too long.
    """
    if not attribute.is_multi:
        return _read_one(attribute, value)
    listed = value if isinstance(value, list) else [value]
    read = [_read_one(attribute, item) for item in listed if item is not None]
    if attribute is not _MEMBERS and len(read) > MAX_VALUES:
        problem = f"{attribute.name} has more than {MAX_VALUES} values"
        raise ProvisioningRefused(Kind.INVALID_VALUE, problem)
    return read


_MEMBERS = find(GROUP.attributes, "members")


def _read_one(attribute: Attribute, value: Any) -> Any:
    if attribute.type == "complex":
        if isinstance(value, str) and find(attribute.parts, "value"):
            value = {"value": value}
        if not isinstance(value, dict):
            raise _wrong(attribute, "an object", value)
        found: Document = {}
        for name, part in value.items():
            known = find(attribute.parts, name)
            if known is not None and part is not None and not known.is_read_only:
                found[known.name] = read_value(known, part)
        return found
    if attribute.type == "boolean":
        return _read_boolean(attribute, value)
    if not isinstance(value, str):
        raise _wrong(attribute, "a text", value)
    if len(value) > MAX_TEXT:
        problem = f"{attribute.name} has more than {MAX_TEXT} characters"
        raise ProvisioningRefused(Kind.INVALID_VALUE, problem)
    return value


def _read_boolean(attribute: Attribute, value: Any) -> bool:
    """Return a boolean. Entra ID sends it as a text, such as "False"."""
    if isinstance(value, bool):
        return value
    folded = value.lower() if isinstance(value, str) else ""
    if folded in ("true", "false"):
        return folded == "true"
    raise _wrong(attribute, "true or false", value)


def _wrong(attribute: Attribute, wanted: str, value: Any) -> ProvisioningRefused:
    kind = type(value).__name__ if isinstance(value, dict | list) else repr(value)[:40]
    problem = f"{attribute.name} must be {wanted}; got {kind}"
    return ProvisioningRefused(Kind.INVALID_VALUE, problem)


class Path(Struct, frozen=True):
    """The name of an attribute, and of its sub-attribute (empty for the whole attribute)."""

    attribute: Attribute
    part: Attribute | None = None


def find_path(kind: ResourceType, text: str) -> Path | None:
    """Return the attribute that a name means, such as ``name.givenName``, or `None`.

    The name may begin with the URI of the schema.
    """
    prefix = f"{kind.schema}:".lower()
    plain = text[len(prefix) :] if text.lower().startswith(prefix) else text
    name, dot, rest = plain.partition(".")
    attribute = find(kind.all_attributes, name)
    if attribute is None:
        return None
    part = find(attribute.parts, rest) if dot else None
    return None if dot and part is None else Path(attribute, part)


def is_ignored(kind: ResourceType, text: str) -> bool:
    """Return whether a name means an attribute of an extension, or one that is not stored.

    Any other unknown name is a mistake.
    """
    folded = text.lower()
    prefix = f"{kind.schema}:".lower()
    if folded.startswith(prefix):
        folded = folded[len(prefix) :]
    elif folded.startswith("urn:"):
        return True
    name = folded.partition("[")[0].partition(".")[0]
    return name in kind.ignored


ALWAYS = ("id", "schemas")
"""Attributes that every answer has."""

WHOLE: frozenset[str] = frozenset()
"""Stands for all sub-attributes of an attribute."""


def select(
    document: Document, kind: ResourceType, only: Sequence[str], without: Sequence[str]
) -> Document:
    """Return the requested attributes of a resource (RFC 7644 3.9).

    :param only: ``attributes``; empty is all.
    :param without: ``excludedAttributes``.
    """
    wanted, unwanted = _parts_by_name(kind, only), _parts_by_name(kind, without)
    selected: Document = {}
    for name, value in document.items():
        if name in ALWAYS:
            selected[name] = value
            continue
        kept, dropped = wanted.get(name), unwanted.get(name)
        if (only and kept is None) or dropped == WHOLE:
            continue
        selected[name] = _select_parts(value, kept or WHOLE, dropped or WHOLE)
    return selected


def _parts_by_name(kind: ResourceType, names: Iterable[str]) -> dict[str, frozenset[str]]:
    """Return the sub-attributes that paths name, by their attributes. Unknown ones are ignored."""
    found: dict[str, frozenset[str]] = {}
    for path in filter(None, (find_path(kind, text) for text in names)):
        name, known = path.attribute.name, found.get(path.attribute.name)
        if path.part is None or known == WHOLE:
            found[name] = WHOLE
        else:
            found[name] = (known or WHOLE) | {path.part.name}
    return found


def _select_parts(value: Any, kept: frozenset[str], dropped: frozenset[str]) -> Any:
    if isinstance(value, list):
        return [_select_parts(item, kept, dropped) for item in value]
    if not isinstance(value, Mapping):
        return value
    return {
        name: part
        for name, part in value.items()
        if (not kept or name in kept) and name not in dropped
    }

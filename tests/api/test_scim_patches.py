"""PATCH of SCIM: the operations of the RFC, of Entra ID and of Okta."""

import copy
from typing import Any

import pytest

from mailcheck.api.scim.patches import apply, read_operations
from mailcheck.api.scim.schemas import GROUP, USER, ResourceType
from mailcheck.core.signing_in.provisioning import Kind, ProvisioningRefused
from tests.table import rows

ENTERPRISE = "urn:ietf:params:scim:schemas:extension:enterprise:2.0:User"
WORK = {"value": "ann@example.com", "type": "work", "primary": True}
HOME = {"value": "ann@home.example", "type": "home"}
ANN: dict[str, Any] = {
    "id": "a1",
    "userName": "ann",
    "name": {"givenName": "Ann", "familyName": "Lee"},
    "active": True,
    "emails": [WORK, HOME],
}
TEAM: dict[str, Any] = {
    "id": "g1",
    "displayName": "team",
    "members": [{"value": one, "display": one.upper()} for one in ("a", "b", "c")],
}


def changed(document: Any, kind: ResourceType, *operations: Any) -> Any:
    """Return what differs in a document after operations."""
    before = copy.deepcopy(document)
    after = apply(document, read_operations({"Operations": list(operations)}), kind)
    assert document == before
    return {
        name: after.get(name) for name in {*before, *after} if before.get(name) != after.get(name)
    }


def op(op: str, path: str | None = None, value: Any = None) -> Any:
    """Return an operation. Without a path or a value it has none."""
    return {
        "op": op,
        **({"path": path} if path else {}),
        **({} if value is None else {"value": value}),
    }


@rows(
    # Entra ID
    ([op("Replace", "active", "False")], {"active": False}),
    ([op("Replace", "active", "false")], {"active": False}),
    ([op("replace", "active", False)], {"active": False}),
    ([op("Replace", "ACTIVE", "False")], {"active": False}),
    ([op("Add", "displayName", "Ann Lee")], {"displayName": "Ann Lee"}),
    (
        [op("Replace", "name.givenName", "Anna"), op("Replace", "name.familyName", "Li")],
        {"name": {"givenName": "Anna", "familyName": "Li"}},
    ),
    (
        [op("Replace", 'emails[type eq "work"].value', "anna@example.com")],
        {"emails": [{**WORK, "value": "anna@example.com"}, HOME]},
    ),
    (
        [op("Add", 'emails[type eq "other"].value', "a@other.example")],
        {"emails": [WORK, HOME, {"type": "other", "value": "a@other.example"}]},
    ),
    (
        [op("Replace", 'emails[type eq "other"].value', "a@other.example")],
        {"emails": [WORK, HOME, {"type": "other", "value": "a@other.example"}]},
    ),
    ([op("Add", f"{ENTERPRISE}:department", "Sales")], {}),
    ([op("Replace", f"{ENTERPRISE}:manager", "m1")], {}),
    ([op("Replace", 'addresses[type eq "work"].formatted', "Road 1")], {}),
    ([op("Replace", 'roles[primary eq "True"].value', "admin")], {}),
    (
        [
            op(
                "replace",
                None,
                {
                    "displayName": "Ann Lee",
                    "name.givenName": "Anna",
                    f"{ENTERPRISE}:employeeNumber": "7",
                    'emails[type eq "work"].value': "anna@example.com",
                },
            )
        ],
        {
            "displayName": "Ann Lee",
            "name": {"givenName": "Anna", "familyName": "Lee"},
            "emails": [{**WORK, "value": "anna@example.com"}, HOME],
        },
    ),
    # Okta
    ([op("replace", None, {"active": False})], {"active": False}),
    (
        [op("replace", None, {"id": "a1", "displayName": "Ann", "password": "x"})],
        {"displayName": "Ann"},
    ),
    (
        [op("replace", None, {"name": {"givenName": "Anna"}})],
        {"name": {"givenName": "Anna", "familyName": "Lee"}},
    ),
    # RFC 7644
    ([op("add", "emails", [HOME])], {}),
    (
        [op("add", "emails", [{"value": "new@example.com", "type": "other", "primary": True}])],
        {
            "emails": [
                {**WORK, "primary": False},
                HOME,
                {"value": "new@example.com", "type": "other", "primary": True},
            ]
        },
    ),
    ([op("replace", "emails", [HOME])], {"emails": [HOME]}),
    ([op("replace", "emails", [])], {"emails": []}),
    ([op("remove", 'emails[type eq "home"]')], {"emails": [WORK]}),
    ([op("remove", 'emails[type eq "other"]')], {}),
    (
        [op("remove", 'emails[type eq "work"].primary')],
        {"emails": [{"value": "ann@example.com", "type": "work"}, HOME]},
    ),
    ([op("remove", "name.familyName")], {"name": {"givenName": "Ann"}}),
    ([op("remove", "name")], {"name": None}),
    ([op("remove", "displayName")], {}),
    (
        [op("replace", 'emails[type eq "home"]', {"value": "h@home.example"})],
        {"emails": [WORK, {**HOME, "value": "h@home.example"}]},
    ),
    (
        [op("replace", "urn:ietf:params:scim:schemas:core:2.0:User:displayName", "A")],
        {"displayName": "A"},
    ),
)
def test_changes_of_people(operations: list[Any], difference: Any) -> None:
    """Each operation changes what it names, and nothing else."""
    assert changed(ANN, USER, *operations) == difference


def members(*names: str) -> Any:
    """Return members as a directory sends them."""
    return [{"$ref": None, "value": name} for name in names]


@rows(
    # Entra ID
    ([op("Add", "members", members("d"))], "abcd"),
    ([op("Add", "members", members("b", "d", "d"))], "abcd"),
    ([op("Remove", "members", members("b"))], "ac"),
    ([op("Remove", "members", [{"value": "a"}, {"value": "c"}])], "b"),
    ([op("Remove", "members", [{"value": "x", "display": "A"}])], "abc"),
    ([op("Remove", "members", [])], "abc"),
    ([op("remove", 'members[value eq "b"]')], "ac"),
    # Okta
    (
        [
            op("remove", 'members[value eq "a"]'),
            op("add", "members", [{"value": "d", "display": "D"}]),
        ],
        "bcd",
    ),
    ([op("replace", "members", [{"value": "b"}])], "b"),
    ([op("replace", "members", [])], ""),
    ([op("replace", None, {"id": "g1", "displayName": "team", "members": members("c")})], "c"),
    # RFC 7644
    ([op("remove", "members")], ""),
    ([op("remove", 'MEMBERS[VALUE EQ "b" or value eq "c"]')], "a"),
    ([op("add", "members", "d")], "abcd"),
)
def test_changes_of_members(operations: list[Any], left: str) -> None:
    """Members are added once, and exactly those leave that the operation names."""
    after = apply(TEAM, read_operations({"operations": operations}), GROUP)
    assert "".join(one["value"] for one in after.get("members", [])) == left


@rows(
    ([], Kind.INVALID_SYNTAX),
    ([op("move", "active", True)], Kind.INVALID_SYNTAX),
    (["x"], Kind.INVALID_SYNTAX),
    ([{"op": "replace", "path": 7}], Kind.INVALID_PATH),
    ([op("remove")], Kind.NO_TARGET),
    ([op("replace", None, "x")], Kind.INVALID_VALUE),
    ([op("replace", None, {"actve": False})], Kind.INVALID_PATH),
    ([op("replace", "actve", False)], Kind.INVALID_PATH),
    ([op("replace", "name.nick", "x")], Kind.INVALID_PATH),
    ([op("replace", 'emails[type eq "work"', "x")], Kind.INVALID_PATH),
    ([op("replace", 'name[givenName eq "x"].familyName', "x")], Kind.INVALID_PATH),
    ([op("replace", "active", "no")], Kind.INVALID_VALUE),
    ([op("replace", "active", 1)], Kind.INVALID_VALUE),
    ([op("replace", "userName", 7)], Kind.INVALID_VALUE),
    ([op("replace", "displayName", "x" * 1_001)], Kind.INVALID_VALUE),
    ([op("replace", "emails", [{"value": str(n)} for n in range(51)])], Kind.INVALID_VALUE),
    ([op("replace", "id", "x")], Kind.MUTABILITY),
    ([op("add", "groups", [{"value": "g"}])], Kind.MUTABILITY),
    ([op("replace", 'emails[value co "zzz"].value', "y")], Kind.NO_TARGET),
    ([op("replace", "displayName", "done"), op("replace", "actve", 1)], Kind.INVALID_PATH),
)
def test_what_is_refused(operations: list[Any], kind: Kind) -> None:
    """A request with a wrong operation changes nothing, and says why."""
    with pytest.raises(ProvisioningRefused) as refused:
        changed(ANN, USER, *operations)
    assert refused.value.kind is kind


def test_long_lists_are_not_searched() -> None:
    """Members of a large group are removed by their ids; other conditions are too much work."""
    members = [{"value": f"id{number}", "display": "x"} for number in range(600)]
    group = {"schemas": [GROUP.schema], "displayName": "all", "members": members}

    def removal(condition: str) -> dict[str, str]:
        return {"op": "remove", "path": f"members[{condition}]"}

    by_id = [removal(f'value eq "id{number}"') for number in range(100)]
    left = apply(group, read_operations({"Operations": by_id}), GROUP)["members"]
    assert left == members[100:]
    both = read_operations({"Operations": [removal('value eq "id0" or VALUE eq "id1"')]})
    assert apply(group, both, GROUP)["members"] == members[2:]
    for condition in ('display eq "x"', 'value eq "id1" or display eq "x"', 'value co "1"'):
        operations = read_operations({"Operations": [removal(condition)]})
        with pytest.raises(ProvisioningRefused) as refused:
            apply(group, operations, GROUP)
        assert refused.value.kind is Kind.TOO_MANY

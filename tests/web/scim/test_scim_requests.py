"""The requests that Entra ID and Okta send, in their order, and what follows from them."""

from typing import Any

import pytest
from msgspec.structs import replace

from mailcheck.assembly.doors.scim import build_provisioning
from mailcheck.core.audit import DAEMON
from mailcheck.core.projects import Role
from mailcheck.core.signing_in.company import parse_group_role
from mailcheck.core.signing_in.provisioning import GroupDraft, ProvisionedGroup
from tests.house import run
from tests.table import rows
from tests.web.scim.directory import CORE, ENTERPRISE, Directory

ANN_FROM_ENTRA = {
    "schemas": [f"{CORE}User", ENTERPRISE],
    "externalId": "ann-oid",
    "userName": "ann@example.com",
    "active": True,
    "emails": [{"primary": True, "type": "work", "value": "ann@example.com"}],
    "meta": {"resourceType": "User"},
    "name": {"formatted": "Ann Lee", "familyName": "Lee", "givenName": "Ann"},
    "roles": [],
    f"{ENTERPRISE}": {"manager": "m-1", "department": "Sales"},
}

ANN_FROM_OKTA = {
    "schemas": [f"{CORE}User"],
    "userName": "ann@example.com",
    "name": {"givenName": "Ann", "familyName": "Lee"},
    "emails": [{"primary": True, "value": "ann@example.com", "type": "work"}],
    "displayName": "Ann Lee",
    "locale": "en-US",
    "externalId": "00u1",
    "groups": [],
    "password": "1mz050nq",
    "active": True,
}


@pytest.fixture
def directory() -> Directory:
    """A directory with two groups that have roles."""
    return Directory("developers=shop:editor", "leads=shop:owner", "developers=missing:owner")


def test_entra_provisions_a_person(directory: Directory) -> None:
    """Entra ID tests the connection, finds nobody, creates, changes, disables and deletes Ann."""
    more = "&aadOptscim062020"
    assert directory.find("Users", 'userName eq "c1f7-random"', more) == []
    assert (
        directory.find("Groups", 'displayName eq "c1f7-random"', "&excludedAttributes=members")
        == []
    )
    assert directory.find("Users", 'userName eq "ann@example.com"') == []
    ann = directory.send("POST", "/Users?aadOptscim062020", ANN_FROM_ENTRA).json
    assert ann["name"] == ANN_FROM_ENTRA["name"]
    assert (ann["externalId"], ann["active"]) == ("ann-oid", True)
    assert directory.find("Users", 'externalId eq "ann-oid"') == [ann]
    assert directory.find("Users", 'emails[type eq "work"].value eq "ann@example.com"') == [ann]
    path = f"Users/{ann['id']}"
    changed = directory.patch(
        path,
        {"op": "Replace", "path": "userName", "value": "ann.lee@example.com"},
        {"op": "Add", "path": 'emails[type eq "other"].value', "value": "lee@example.com"},
        {"op": "Add", "path": f"{ENTERPRISE}:manager", "value": "m-2"},
    )
    assert changed.status == 200
    assert changed.json["userName"] == "ann.lee@example.com"
    assert [one["type"] for one in changed.json["emails"]] == ["work", "other"]
    left = directory.patch(path, {"op": "Replace", "path": "active", "value": "False"})
    assert left.json["active"] is False
    assert directory.find("Users", 'userName eq "ann.lee@example.com"')[0]["active"] is False
    assert directory.send("DELETE", f"/{path}?aadOptscim062020").status == 204
    assert directory.send("GET", f"/{path}").status == 404
    assert directory.send("DELETE", f"/{path}").status == 404


def test_entra_provisions_a_group(directory: Directory) -> None:
    """Entra ID creates a group without members, and adds and removes them one by one."""
    ann, bob = (
        directory.create_user(name)["id"] for name in ("ann@example.com", "bob@example.com")
    )
    group = directory.send(
        "POST",
        "/Groups",
        {
            "schemas": [
                f"{CORE}Group",
                "http://schemas.microsoft.com/2006/11/ResourceManagement/ADSCIM/2.0/Group",
            ],
            "externalId": "g-oid",
            "displayName": "developers",
            "meta": {"resourceType": "Group"},
        },
    ).json
    path = f"Groups/{group['id']}"
    for person in (ann, bob, ann):
        added = {"op": "Add", "path": "members", "value": [{"$ref": None, "value": person}]}
        assert directory.patch(path, added).status == 200
    everyone = {"first": Role.OWNER, "ann@example.com": Role.EDITOR, "bob@example.com": Role.EDITOR}
    assert directory.roles() == everyone
    listed = directory.send("GET", f"/{path}").json["members"]
    assert {one["value"] for one in listed} == {ann, bob}
    assert "members" not in directory.send("GET", f"/{path}?excludedAttributes=members").json
    removed = {"op": "Remove", "path": "members", "value": [{"value": ann}]}
    assert directory.patch(path, removed).status == 200
    del everyone["ann@example.com"]
    assert directory.roles() == everyone
    renamed = {"op": "Replace", "path": "displayName", "value": "others"}
    assert directory.patch(path, renamed).status == 200
    assert directory.roles() == {"first": Role.OWNER}
    assert directory.send("DELETE", f"/{path}").status == 204


def test_okta_provisions_a_person(directory: Directory) -> None:
    """Okta creates Ann without keeping the password, meets its own 409, and replaces her by PUT."""
    page = directory.send("GET", "/Users?startIndex=1&count=2").json
    assert (page["totalResults"], page["startIndex"], page["itemsPerPage"]) == (1, 1, 1)
    ann = directory.send("POST", "/Users", ANN_FROM_OKTA).json
    again = directory.send("POST", "/Users", {**ANN_FROM_OKTA, "userName": "ANN@example.com"})
    assert (again.status, again.json["scimType"]) == (409, "uniqueness")
    assert "password" not in ann
    assert b"1mz050nq" not in directory.send("GET", "/Users").body
    found = directory.find("Users", 'userName eq "ANN@EXAMPLE.COM"', "&startIndex=1&count=100")
    assert found == [ann]
    path = f"/Users/{ann['id']}"
    read = directory.send("GET", path).json
    changed = {**read, "name": {"givenName": "Anna", "familyName": "Lee"}, "active": False}
    replaced = directory.send("PUT", path, changed).json
    assert (replaced["name"]["givenName"], replaced["active"]) == ("Anna", False)
    active = {"op": "replace", "value": {"active": True}}
    assert directory.patch(path[1:], active).json["active"] is True
    kept = directory.send("PUT", path, {"userName": "ann@example.com"}).json
    assert (kept["active"], "name" in kept, "externalId" in kept) == (True, False, False)


def test_okta_pushes_a_group(directory: Directory) -> None:
    """Okta pushes members by several operations, by the whole list, and by an empty one."""
    ann, bob, eve = (
        directory.create_user(f"{name}@example.com")["id"] for name in ("ann", "bob", "eve")
    )
    group = directory.create_group("developers", ann)
    path = f"Groups/{group['id']}"
    directory.patch(
        path,
        {"op": "replace", "value": {"id": group["id"], "displayName": "developers"}},
        {"op": "remove", "path": f'members[value eq "{ann}"]'},
        {"op": "add", "path": "members", "value": [{"value": bob, "display": "bob"}]},
    )
    assert set(directory.roles()) == {"first", "bob@example.com"}
    whole = [{"value": ann, "display": "x"}, {"value": eve, "display": "y"}]
    directory.patch(path, {"op": "replace", "path": "members", "value": whole})
    assert set(directory.roles()) == {"first", "ann@example.com", "eve@example.com"}
    put = {**group, "members": [{"value": bob, "display": "bob"}]}
    assert directory.send("PUT", f"/{path}", put).json["members"][0]["value"] == bob
    assert set(directory.roles()) == {"first", "bob@example.com"}
    directory.patch(path, {"op": "replace", "path": "members", "value": []})
    assert set(directory.roles()) == {"first"}


def test_a_leaver_loses_everything_at_once(directory: Directory) -> None:
    """Disabling ends sessions and keys at once, and enabling again revives none of them."""
    ann = directory.create_user()
    house, path = directory.house, f"Users/{ann['id']}"
    accounts = house.assembly.accounts
    account = run(accounts.keep.get(ann["id"]))
    key = house.issue_key(account)
    session = run(accounts.sessions.open(account.id, DAEMON))
    assert house.get("/inbox", key=key).status == 200
    assert (
        directory.patch(path, {"op": "Replace", "path": "active", "value": "False"}).status == 200
    )
    assert house.get("/inbox", key=key).status == 401
    assert run(accounts.sessions.find(session)) is None
    assert directory.patch(path, {"op": "Replace", "path": "active", "value": "True"}).json[
        "active"
    ]
    assert house.get("/inbox", key=key).status == 401
    assert [one for one, _ in directory.actions() if one.startswith("account")][-2:] == [
        "account disabled",
        "account enabled",
    ]


def test_enabling_revives_no_key_of_an_account_that_the_operator_disabled(
    directory: Directory,
) -> None:
    """A directory that enables an account revives no key, whoever has disabled it."""
    ann = directory.create_user()
    keep = directory.house.assembly.accounts.keep
    account = run(keep.get(ann["id"]))
    key = directory.house.issue_key(account)
    run(keep.disable(account))
    for value, status in ((False, 200), (True, 200)):
        answer = directory.patch(
            f"Users/{account.id}", {"op": "replace", "value": {"active": value}}
        )
        assert (answer.status, answer.json["active"]) == (status, value)
    assert directory.house.get("/inbox", key=key).status == 401


def test_somebody_who_was_here_before(directory: Directory) -> None:
    """An account with the name of a person is found, keeps its name in the request that adopts it,
    and is never given to the directory.
    """
    bob = directory.house.add_account("bob@example.com")
    refused = directory.send("POST", "/Users", {"userName": "Bob@example.com"})
    assert (refused.status, refused.json["scimType"]) == (409, "uniqueness")
    found = directory.find("Users", 'userName eq "bob@example.com"')
    assert [one["id"] for one in found] == [bob.id]
    path = f"Users/{bob.id}"
    taken = directory.patch(
        path,
        {"op": "Replace", "path": "externalId", "value": "b-1"},
        {"op": "Replace", "path": "userName", "value": "eve@example.com"},
    )
    assert (taken.status, taken.json["scimType"]) == (400, "mutability")
    adopted = directory.patch(path, {"op": "Replace", "path": "externalId", "value": "b-1"})
    assert adopted.json["externalId"] == "b-1"
    renamed = directory.patch(path, {"op": "Replace", "path": "userName", "value": "b@example.com"})
    assert renamed.json["userName"] == "b@example.com"
    assert run(directory.house.assembly.accounts.keep.get(bob.id)).name == "bob@example.com"


def test_an_owner_by_hand_stays(directory: Directory) -> None:
    """A role that was set by hand is raised by groups, and never lowered or taken."""
    accounts = directory.house.assembly.accounts
    ann, bob = directory.create_user("ann@example.com"), directory.create_user("bob@example.com")
    for person, role in ((ann, Role.OWNER), (bob, Role.READER)):
        account = run(accounts.keep.get(person["id"]))
        run(accounts.projects.set_member(directory.project, account, role))
    group = directory.create_group("developers", ann["id"], bob["id"])
    assert directory.roles()["ann@example.com"] is Role.OWNER
    assert directory.roles()["bob@example.com"] is Role.EDITOR
    assert directory.send("DELETE", f"/Groups/{group['id']}").status == 204
    assert directory.roles() == {"first": Role.OWNER, "ann@example.com": Role.OWNER}


def test_the_last_owner_stays(directory: Directory) -> None:
    """A project keeps its last owner, whatever the groups say."""
    accounts = directory.house.assembly.accounts
    ann = directory.create_user()
    group = directory.create_group("leads", ann["id"])
    run(accounts.projects.remove_member(directory.project, directory.operator.id))
    empty = {"op": "replace", "path": "members", "value": []}
    assert directory.patch(f"Groups/{group['id']}", empty).status == 200
    assert directory.roles() == {"ann@example.com": Role.OWNER}
    refused = directory.send("DELETE", f"/Users/{ann['id']}")
    assert refused.status == 409


def test_the_operator_stays(directory: Directory) -> None:
    """A directory neither disables nor deletes the account of the operator."""
    path = f"Users/{directory.operator.id}"
    for answer in (
        directory.patch(path, {"op": "replace", "value": {"active": False}}),
        directory.send("DELETE", f"/{path}"),
    ):
        assert answer.status == 409
    assert directory.send("GET", f"/{path}").json["active"] is True


@rows(
    ({}, None, 401),
    ({"key": "mck_" + "a" * 32}, None, 401),
    ({}, "all rights", 403),
    ({}, "of a former operator", 403),
)
def test_who_may_provision(sent: Any, kind: str | None, status: int) -> None:
    """Only a key of the operator that names the scope provisions accounts."""
    directory = Directory()
    house = directory.house
    key = sent.get("key", "")
    if kind == "all rights":
        key = house.key
    elif kind:
        key = directory.key
        run(house.assembly.accounts.keep.make_operator(house.add_account("other")))
    for method, path in (
        ("GET", "/Users"),
        ("POST", "/Users"),
        ("DELETE", "/Users/x"),
        ("GET", "/Schemas"),
    ):
        answer = directory.send(method, path, key=key)
        assert (answer.status, answer.json["status"]) == (status, str(status)), path


@rows(
    ("GET", "/Users/unknown", None, 404, None),
    ("GET", "/Bulk", None, 404, None),
    ("POST", "/Users", {}, 400, "invalidValue"),
    ("POST", "/Users", [], 400, "invalidSyntax"),
    ("POST", "/Users", {"userName": " "}, 400, "invalidValue"),
    ("POST", "/Users", {"userName": "x" * 65}, 400, "invalidValue"),
    ("POST", "/Users", {"userName": "first "}, 409, "uniqueness"),
    ("POST", "/Users", {"userName": "shop"}, 409, "uniqueness"),
    (
        "POST",
        "/Users",
        {"userName": "x", "emails": [{"value": "y" * 999}] * 20},
        400,
        "invalidValue",
    ),
    ("POST", "/Groups", {"displayName": "x" * 257}, 400, "invalidValue"),
    ("POST", "/Groups", {"displayName": "x", "members": [{"value": "y"}]}, 400, "invalidValue"),
    ("POST", "/Groups", {"displayName": "x", "members": [{"display": "y"}]}, 400, "invalidValue"),
    ("GET", "/Users?filter=nickname%20eq%20%22x%22", None, 400, "invalidFilter"),
    ("GET", "/Users?count=x", None, 400, "invalidValue"),
    ("GET", "/Schemas?filter=id%20pr", None, 403, None),
    ("GET", "/Schemas/urn:unknown", None, 404, None),
    ("DELETE", "/Users/x?confirm=no", None, 400, "invalidValue"),
    ("POST", "/Schemas", {}, 405, None),
)
def test_what_is_refused(method: str, path: str, body: Any, status: int, kind: str | None) -> None:
    """Errors have the form of the RFC, and say which rule was broken."""
    directory = Directory("developers=shop:editor")
    answer = directory.send(method, path, body)
    assert (answer.status, answer.json.get("scimType")) == (status, kind), answer.body


def test_pages_of_a_list(directory: Directory) -> None:
    """Pages have numbers, begin with 1, and have the same order every time."""
    names = []
    for number in range(5):
        directory.house.pass_time(1)
        names.append(directory.create_user(f"p{number}@example.com")["userName"])
    listed = directory.send("GET", "/Users").json
    assert [one["userName"] for one in listed["Resources"]] == ["first", *names]
    for query, shown in (
        ("startIndex=2&count=2", names[:2]),
        ("startIndex=0&count=1", ["first"]),
        ("startIndex=6", names[4:]),
        ("startIndex=9", []),
        ("count=0", []),
        ("count=-1", []),
    ):
        page = directory.send("GET", f"/Users?{query}").json
        assert [one["userName"] for one in page["Resources"]] == shown, query
        assert (page["totalResults"], page["itemsPerPage"]) == (6, len(shown))
    only = directory.send("GET", "/Users?attributes=userName&count=1").json["Resources"][0]
    assert set(only) == {"schemas", "id", "userName"}


@rows(
    ("GET", "/ServiceProviderConfig", None, "patch"),
    ("GET", "/ResourceTypes", None, "Resources"),
    ("GET", "/ResourceTypes/Group", None, "endpoint"),
    ("GET", "/Schemas", None, "Resources"),
    ("GET", f"/Schemas/{CORE}User", None, "attributes"),
    ("POST", "/.search", {"filter": 'displayName eq "developers"'}, "Resources"),
    ("POST", "/Users/.search", {"filter": "userName pr", "count": 1}, "Resources"),
    ("POST", "/Groups/.search", {"attributes": ["members"]}, "Resources"),
)
def test_descriptions_and_searches(method: str, path: str, body: Any, field: str) -> None:
    """The service describes itself, and a search by a body finds as one by parameters does."""
    directory = Directory()
    directory.create_group("developers", directory.operator.id)
    answer = directory.send(method, path, body)
    assert answer.status == 200
    assert answer.json[field]
    if "Resources" in answer.json and method == "POST":
        assert answer.json["totalResults"] == 1


def test_changes_at_the_same_time(directory: Directory) -> None:
    """A change that another request overtakes is made again, from what that has left."""
    ann, bob = (
        directory.create_user(name)["id"] for name in ("ann@example.com", "bob@example.com")
    )
    group = directory.create_group("testers")
    provisioning = build_provisioning(directory.house.assembly, [])
    calls = []

    def add_ann(before: ProvisionedGroup) -> GroupDraft:
        calls.append(before.version)
        if len(calls) == 1:
            added = {"op": "add", "path": "members", "value": [{"value": bob}]}
            assert directory.patch(f"Groups/{group['id']}", added).status == 200
        return replace(before.draft, members=(*before.draft.members, ann))

    changed = run(provisioning.change_group(group["id"], add_ann, DAEMON))
    assert calls == [1, 2]
    assert {member.id for member in changed.members} == {ann, bob}


def test_the_mapping_is_followed_from_the_start(directory: Directory) -> None:
    """After a change of the configuration, the first request gives and takes the roles."""
    ann = directory.create_user()
    directory.create_group("testers", ann["id"])
    assert directory.roles() == {"first": Role.OWNER}
    roles = [parse_group_role("testers=shop:reader")]
    changed = build_provisioning(directory.house.assembly, roles)
    run(changed.follow_groups(DAEMON))
    assert directory.roles() == {"first": Role.OWNER, "ann@example.com": Role.READER}
    run(build_provisioning(directory.house.assembly, []).follow_groups(DAEMON))
    assert directory.roles() == {"first": Role.OWNER}

"""Projects, members, invitations and keys over the REST API."""

import json
from typing import Any

import pytest

from mailcheck.core.accounts import Account
from mailcheck.core.instants import Instant
from mailcheck.core.projects import Role
from mailcheck.core.rights import NAMED_ONLY, Scope, make_rights
from mailcheck.operations.accounts.own_keys import MAX_KEYS_A_DAY
from tests.house import Answer, House, run
from tests.table import rows

ADMIN = ["project:admin"]

ALL = [str(scope) for scope in Scope if scope is not Scope.OPERATOR]


class Team:
    """A house with two people, a project of each, and keys that manage them."""

    def __init__(self, house: House) -> None:
        self.house = house
        self.ann, self.bob = house.add_account("ann"), house.add_account("bob")
        projects = house.assembly.accounts.projects
        self.shop = run(projects.create(self.ann, "shop"))
        self.lab = run(projects.create(self.bob, "lab"))
        self.of_ann = self.key(self.ann, ALL)
        self.of_shop = self.key(self.shop, ALL)
        self.of_operator = self.key(house.account, [*ALL, "operator"])

    def key(self, account: Account, scopes: list[str]) -> str:
        """Return a key with scopes."""
        return self.house.issue_key(account, rights=make_rights(scopes))

    def send(self, method: str, path: str, key: str, **body: Any) -> Answer:
        """Send a request with a JSON body, if there is one."""
        data = {"data": json.dumps(body).encode()} if body else {}
        return self.house.ask(method, path, key=key, **data).answer()


@pytest.fixture
def team(house: House) -> Team:
    """The team."""
    return Team(house)


def test_a_project_is_created_renamed_and_deleted(team: Team) -> None:
    """The person of the key owns a new project; only its current name deletes it."""
    made = team.send("POST", "/projects", team.of_ann, name="crew")
    assert (made.status, made.json["name"]) == (200, "crew")
    one = f"/projects/{made.json['id']}"
    (owner,) = team.send("GET", f"{one}/members", team.of_ann).json["members"]
    assert (owner["name"], owner["role"]) == ("ann", "owner")
    assert team.send("POST", "/projects", team.of_ann, name="shop").status == 409
    assert team.send("PATCH", one, team.of_ann, name="crew 2").json["name"] == "crew 2"
    assert team.send("DELETE", one, team.of_ann).status == 400
    assert team.send("DELETE", f"{one}?name=crew", team.of_ann).status == 400
    assert team.send("GET", one, team.of_ann).status == 200
    gone = team.send("DELETE", f"{one}?name=crew%202", team.of_ann)
    assert (gone.status, gone.json["deleted"]["members"]) == (200, 1)
    assert team.send("GET", one, team.of_ann).status == 404


def test_who_manages_which_projects(team: Team) -> None:
    """A key manages its own account, a person's key owned projects, the operator's all."""

    def names(key: str) -> list[str]:
        return [one["name"] for one in team.send("GET", "/projects", key).json["projects"]]

    assert names(team.of_shop) == names(team.of_ann) == ["shop"]
    assert names(team.of_operator) == ["lab", "shop"]
    assert names(team.key(team.house.account, ALL)) == []
    for key in (team.of_shop, team.of_ann):
        assert team.send("GET", f"/projects/{team.lab.id}/members", key).status == 404
    assert team.send("GET", f"/projects/{team.lab.id}/members", team.of_operator).status == 200
    run(team.house.assembly.accounts.projects.set_member(team.lab, team.ann, Role.EDITOR))
    assert team.send("GET", f"/projects/{team.lab.id}/members", team.of_ann).status == 404
    assert team.send("GET", "/projects/me", team.of_shop).json["id"] == team.shop.id
    assert team.send("GET", "/projects/me", team.of_ann).json["id"] == team.ann.id
    assert team.send("GET", "/projects/me/members", team.of_ann).status == 404
    assert team.send("POST", "/projects", team.of_shop, name="more").status == 403
    for key in (team.of_shop, team.of_ann, team.of_operator):
        missing = team.send("GET", "/projects/xyz/keys", key)
        assert missing.status == 404
        assert missing.json["error"].startswith("this project does not exist")
    assert team.send("POST", "/projects", team.of_ann, name="more", owner="bob").status == 403
    made = team.send("POST", "/projects", team.of_operator, name="more", owner="bob")
    assert made.status == 200
    other = team.send("GET", f"/projects/{made.json['id']}", team.of_ann)
    assert other.status == 404


def test_members_and_invitations(team: Team) -> None:
    """Roles are changed, people removed, and invitations made, listed and revoked."""
    one = f"/projects/{team.shop.id}"
    bob = f"{one}/members/{team.bob.id}"
    assert team.send("PUT", bob, team.of_shop, role="reader").status == 404
    assert team.send("PUT", bob, team.of_operator, role="reader").json["role"] == "reader"
    assert team.send("PUT", bob, team.of_shop, role="editor").json["role"] == "editor"
    ann = f"{one}/members/{team.ann.id}"
    assert team.send("DELETE", ann, team.of_shop).status == 409
    assert team.send("PUT", ann, team.of_shop, role="reader").status == 409
    assert team.send("DELETE", bob, team.of_shop).status == 200
    assert team.send("DELETE", bob, team.of_shop).status == 404
    invitations = f"{one}/invitations"
    made = team.send("POST", invitations, team.of_shop, role="reader", days=2).json
    (listed,) = team.send("GET", invitations, team.of_shop).json["invitations"]
    assert listed == {name: value for name, value in made.items() if name != "url"}
    code = made["url"].partition("invitation=")[2]
    assert listed["id"] not in code
    revoke = f"{invitations}/{listed['id']}"
    assert team.send("DELETE", revoke, team.of_ann).status == 200
    assert team.send("DELETE", revoke, team.of_ann).status == 404
    assert team.send("GET", invitations, team.of_shop).json["invitations"] == []


def test_a_key_is_created_rotated_and_revoked(team: Team) -> None:
    """Secrets are shown once; the older key stays valid for the overlap; the maker is known."""
    keys = f"/projects/{team.shop.id}/keys"
    wish = {"name": "CI", "scopes": ["inbox:read"], "perMinute": 50, "expiresInSeconds": 864_000}
    made = team.send("POST", keys, team.of_ann, **wish).json
    assert (made["perMinute"], made["scopes"]) == (50, ["inbox:read"])
    assert made["madeBy"] == {"id": team.ann.id, "name": "ann", "hasLeft": False}
    assert team.house.get("/inbox", key=made["secret"]).status == 200
    assert team.house.ask("DELETE", "/inbox/messages", key=made["secret"]).answer().status == 403
    shown = team.send("GET", f"{keys}/{made['id']}", team.of_shop)
    assert made["secret"] not in shown.body.decode()
    assert shown.json["lastUsedAt"] is not None
    rotated = team.send("POST", f"{keys}/{made['id']}/rotate", team.of_shop, overlapSeconds=60).json
    assert rotated["earlierId"] == made["id"]
    assert rotated["madeBy"] is None
    for secret in (made["secret"], rotated["secret"]):
        assert team.house.get("/inbox", key=secret).status == 200
    team.house.pass_time(61)
    assert team.house.get("/inbox", key=made["secret"]).status == 401
    listed = team.send("GET", keys, team.of_ann).json["keys"]
    assert rotated["id"] in {one["id"] for one in listed}
    assert made["id"] not in {one["id"] for one in listed}
    assert team.send("DELETE", f"{keys}/{rotated['id']}", team.of_ann).status == 200
    assert team.house.get("/inbox", key=rotated["secret"]).status == 401
    assert team.send("DELETE", f"{keys}/{rotated['id']}", team.of_ann).status == 404


@rows(
    ({"scopes": ["operator"]}, 403),
    ({"scopes": ["webhooks"]}, 403),
    ({}, 403),
    ({"scopes": ["project:admin"]}, 200),
    ({"tags": ["a"]}, 200),
    ({"scopes": ["inbox:read"], "perDay": 1_000_001}, 400),
    ({"scopes": ["inbox:read"], "perMinute": 1_000_000}, 200),
    ({"scopes": ["nothing"]}, 400),
)
def test_no_key_gives_more_than_it_has(team: Team, wish: dict[str, Any], status: int) -> None:
    """A new key has at most the scopes and limits of the key that creates it."""
    scopes = ["project:admin", "inbox:read", "inbox:write"]
    key = team.key(team.shop, scopes)
    made = team.send("POST", "/projects/me/keys", key, name="new", **wish)
    assert made.status == status, made.body


def test_keys_of_a_day_are_bounded(team: Team) -> None:
    """Ended keys stay in the store, so an account gets a bounded number of new ones in a day."""
    keep = team.house.assembly.accounts.keep
    soon = Instant(int(team.house.clock.seconds() * 1000) + 1)
    for _ in range(MAX_KEYS_A_DAY):
        run(keep.issue_key(team.lab, "short", expires_at=soon))
    team.house.pass_time(1)
    wish = {"name": "new", "scopes": ["inbox:read"]}
    path = f"/projects/{team.lab.id}/keys"
    refused = team.send("POST", path, team.of_operator, **wish)
    assert (refused.status, "24 hours" in refused.json["error"]) == (409, True)
    team.house.pass_time(86_400)
    assert team.send("POST", path, team.of_operator, **wish).status == 200


def test_a_key_hands_its_lower_limits_on(team: Team) -> None:
    """A key that has a lower limit than the configured one creates no key with a higher one."""
    rights = make_rights(["project:admin", "inbox:read"])
    key = team.house.issue_key(team.shop, rights=rights, per_minute=7, per_day=9)
    made = team.send("POST", "/projects/me/keys", key, name="new", scopes=["inbox:read"]).json
    assert (made["perMinute"], made["perDay"]) == (7, 9)


def test_the_operator_manages_no_keys_of_other_people(team: Team) -> None:
    """A key of another person's account would open that person's mail."""
    keys = f"/projects/{team.bob.id}/keys"
    assert team.send("GET", keys, team.of_operator).status == 404
    wish = {"name": "x", "scopes": ["inbox:read"]}
    assert team.send("POST", keys, team.of_operator, **wish).status == 404


def test_a_key_with_more_rights_is_not_rotated(team: Team) -> None:
    """A key that manages the project gets no secret of a key that may do more."""
    strong = team.send("POST", "/projects/me/keys", team.of_shop, name="all").json
    weak = team.key(team.shop, ADMIN)
    rotate = f"/projects/me/keys/{strong['id']}/rotate"
    assert team.send("POST", rotate, weak, overlapSeconds=0).status == 403
    assert team.house.get("/inbox", key=strong["secret"]).status == 200
    assert team.send("POST", rotate, team.of_shop, overlapSeconds=0).status == 200
    assert team.house.get("/inbox", key=strong["secret"]).status == 401


def test_a_key_with_higher_limits_is_not_rotated(team: Team) -> None:
    """A key gets no secret of a key that may send more requests, except one of the operator."""
    rights = make_rights(["project:admin", "inbox:read"])
    slow = team.house.issue_key(team.shop, rights=rights, per_minute=7)
    fast = {"name": "fast", "scopes": ["inbox:read"]}
    made = team.send("POST", "/projects/me/keys", team.of_shop, **fast).json
    rotate = f"/projects/{team.shop.id}/keys/{made['id']}/rotate"
    refused = team.send("POST", rotate, slow, overlapSeconds=0)
    assert (refused.status, "7 requests a minute" in refused.json["error"]) == (403, True)
    assert team.send("POST", rotate, team.of_operator, overlapSeconds=0).status == 200
    (own,) = [
        one
        for one in team.send("GET", "/projects/me/keys", slow).json["keys"]
        if one["perMinute"] == 7
    ]
    assert (
        team.send("POST", f"/projects/me/keys/{own['id']}/rotate", slow, overlapSeconds=0).status
        == 200
    )


def test_only_the_scope_operator_invites_as_the_operator(team: Team) -> None:
    """A key of the operator without the scope invites no people who have no account."""
    for scopes, status in ((ADMIN, 403), ([*ADMIN, "operator"], 200)):
        key = team.key(team.house.account, scopes)
        one = f"/projects/{team.send('POST', '/projects', key, name=str(status)).json['id']}"
        wish = {"role": "reader", "address": "new@example.com"}
        assert team.send("POST", f"{one}/invitations", key, **wish).status == status


def test_no_key_has_the_scopes_of_administrators_unless_it_names_them(team: Team) -> None:
    """A key without scopes has the rights that it had before, also one of the operator."""
    key = team.house.issue_key(team.house.account)
    assert not make_rights().granted & NAMED_ONLY
    refused = team.send("GET", "/projects", key)
    assert (refused.status, "project:admin" in refused.json["error"]) == (403, True)
    assert team.house.get("/inbox", key=key).status == 200


def test_only_the_operator_has_keys_with_the_scope_operator(team: Team) -> None:
    """A key keeps the scope operator no longer than its account keeps the role."""
    refused = team.send(
        "POST", f"/projects/{team.shop.id}/keys", team.of_operator, name="x", scopes=["operator"]
    )
    assert refused.status == 403
    run(team.house.assembly.accounts.keep.make_operator(team.ann))
    assert team.send("GET", f"/projects/{team.lab.id}", team.of_operator).status == 404

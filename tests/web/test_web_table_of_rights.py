"""Who may use which route of the REST API: every route, each kind of key, and foreign projects.

The table is drawn from the list of routes: a new route is in it, and one that answers anybody else
fails. The pages have such tables in ``dashboard/test_dashboard_projects.py`` (each role) and
``dashboard/test_dashboard_two_projects.py`` (foreign projects).
"""

from collections.abc import Mapping
from typing import Any

import pytest

from mailcheck.api.urls import API_PATH
from mailcheck.assembly.doors.rest import build_routes
from mailcheck.core.accounts import Caller, RequestLimits
from mailcheck.core.errors import NotPermitted
from mailcheck.core.identifiers import KeyId
from mailcheck.core.projects import Role
from mailcheck.core.rights import NAMED_ONLY, ORDINARY, Scope, make_rights
from mailcheck.web.dashboard.api_reference.pages import can_be_tried
from tests.house import House, run
from tests.web.test_web_rights import PATHS

EVERY = [str(scope) for scope in Scope]
ALL_BUT_OPERATOR = [scope for scope in EVERY if scope != Scope.OPERATOR]

NOT_MANAGED = "this project does not exist, or another key manages it"

SOME_PROJECT = "<project_id>"


class Keys:
    """A house with a project, a foreign one, and keys of everybody who has to do with them."""

    def __init__(self, house: House) -> None:
        projects = house.assembly.accounts.projects
        people = {role: house.add_account(role) for role in Role}
        other = house.add_account("other")
        self.house, self.shop = house, run(projects.create(people[Role.OWNER], "shop"))
        foreign = run(projects.create(other, "foreign"))
        for role in (Role.EDITOR, Role.READER):
            run(projects.set_member(self.shop, people[role], role))
        keys = {
            "the project": (self.shop, ALL_BUT_OPERATOR),
            "an owner": (people[Role.OWNER], ALL_BUT_OPERATOR),
            "an editor": (people[Role.EDITOR], ALL_BUT_OPERATOR),
            "a reader": (people[Role.READER], ALL_BUT_OPERATOR),
            "a stranger": (other, ALL_BUT_OPERATOR),
            "a foreign project": (foreign, ALL_BUT_OPERATOR),
            "the operator": (house.account, EVERY),
            "the operator without the scope": (house.account, ALL_BUT_OPERATOR),
            "the operator without a limit": (house.account, []),
            "the project without a limit": (self.shop, []),
            "an administrator alone": (self.shop, [str(Scope.PROJECT_ADMIN)]),
        }
        self.secrets = {
            name: house.issue_key(account, rights=make_rights(scopes))
            for name, (account, scopes) in keys.items()
        }
        self.granted = {name: make_rights(scopes).granted for name, (_, scopes) in keys.items()}


MANAGES = {"the project", "an owner", "the operator", "an administrator alone"}
"""The keys that manage the project in the path, if they have the scopes of the route."""

OF_ORDINARY_ROUTES = ("the project without a limit", "an administrator alone")
"""The keys that are tried with the other routes, which act on the account of the key alone."""


def reached(keys: Keys, route: Any, name: str) -> bool:
    """Return whether a key gets beyond the checks of its rights, whatever the answer is then."""
    path = route.path.replace(SOME_PROJECT, keys.shop.id)
    for variable, value in PATHS.items():
        path = path.replace(f"<{variable}>", value)
    query = "?name=x" if route.method == "DELETE" and "name" in route.operation.query_names else ""
    data = route.operation.request.example.encode() if route.operation.reads_body else None
    sent: Mapping[str, Any] = {} if data is None else {"data": data}
    pending = keys.house.ask(route.method, path + query, key=keys.secrets[name], **sent)
    if not pending.is_answered or "event-stream" in pending.media_type:
        pending.hang_up()
        return True
    answer = pending.answer()
    if answer.status == 404 and NOT_MANAGED in answer.body.decode():
        return False
    assert answer.status != 401, (route.path, name)
    lacks = "does not have the scope" in answer.body.decode()
    return not (answer.status == 403 and lacks)


@pytest.mark.parametrize("is_of_administrators", [True, False])
def test_every_route_for_every_key(house: House, is_of_administrators: bool) -> None:
    """A route answers the keys with its scopes, and one with a project only who manages it."""
    keys = Keys(house)
    table, surprises = {}, []
    routes = [
        one
        for one in build_routes(house.assembly)
        if bool(set(one.operation.scopes) & NAMED_ONLY) is is_of_administrators
    ]
    assert routes
    names = tuple(keys.secrets) if is_of_administrators else OF_ORDINARY_ROUTES
    for route in routes:
        for name in names:
            expected = keys.granted[name].issuperset(route.operation.scopes)
            if SOME_PROJECT in route.path:
                expected = expected and name in MANAGES
            found = reached(keys, route, name)
            table[f"{route.method} {route.path}", name] = found
            if found is not expected:
                surprises.append((route.method, route.path, name, found))
    assert surprises == []
    assert len(table) == len(routes) * len(names)


def test_no_route_of_administrators_is_tried_on_a_page(house: House) -> None:
    """The page of the API calls routes for its visitor, who has no key and confirms nothing."""
    routes = build_routes(house.assembly)
    tried = {one.operation.id for one in routes if can_be_tried(one)}
    of_administrators = {
        one.operation.id for one in routes if NAMED_ONLY.intersection(one.operation.scopes)
    }
    assert tried
    assert of_administrators
    assert not tried & of_administrators
    visitor = Caller(house.account.id, KeyId("visitor"), RequestLimits(1, 1))
    administer = house.assembly.accounts.administer
    for identify in (administer.administrator, administer.operator):
        with pytest.raises(NotPermitted):
            run(identify(visitor))


def test_no_route_is_open_without_a_key(house: House) -> None:
    """Every route but the description answers 401 without a key."""
    for route in build_routes(house.assembly):
        answer = house.ask(route.method, route.path, key=None).answer()
        assert answer.status in (401, 429), f"{route.method} {API_PATH}{route.path}"


def test_scopes_of_administrators_are_never_ordinary(house: House) -> None:
    """Routes that manage projects and accounts need a scope that no key has by itself."""
    for route in build_routes(house.assembly):
        is_administrative = route.path.startswith(("/projects", "/accounts", "/audit"))
        named = set(route.operation.scopes) & NAMED_ONLY
        assert bool(named) is is_administrative, route.path
        assert is_administrative or ORDINARY.issuperset(route.operation.scopes)

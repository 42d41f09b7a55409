"""Every entry point for strangers has a declared cost, and attacks do not exceed it."""

from collections.abc import Iterator

import pytest
from msgspec import Struct, structs

from mailcheck.assembly.reachable import COSTS as OTHER_COSTS
from mailcheck.web.dashboard.visits import Page
from mailcheck.web.mcp.tools import Tool
from mailcheck.web.site.application import Route
from mailcheck.web.site.costs import Cost
from tests.attacks.strangers import Target, declared_costs
from tests.table import rows

pytestmark = [pytest.mark.attack, pytest.mark.untraced]

SLACK = 65_536
"""Octets by which a store may grow for any write, because it grows by whole pages."""


COSTS = declared_costs()
ENTRIES = sorted(COSTS)
OVER_HTTP = [
    one for one in ENTRIES if one.split(" ")[0] in ("GET", "POST", "PUT", "PATCH", "DELETE")
]
DOORS = {"POST /check", "POST /sign-in", "POST /sign-up", "POST /tls-reports/{token}"}
"""Entry points that do some work for callers without an account."""


@pytest.fixture(scope="module")
def target() -> Iterator[Target]:
    """An application to attack."""
    target = Target()
    yield target
    target.close()


def too_much(declared: Cost, spent: Cost, times: int) -> list[str]:
    """Return a line for each cost that exceeds the declared one."""
    found = []
    for name in Cost.__struct_fields__:
        limit = times * getattr(declared, name) + (SLACK if name == "octets" else 0)
        if getattr(spent, name) > limit:
            found.append(f"{name}: {getattr(spent, name)} in {times} calls")
    return found


def attacked(target: Target, entry: str, times: int) -> list[str]:
    """Call an entry point with an account, and return the exceeded costs."""
    target.prepare()
    return too_much(COSTS[entry], target.cost(target.call, entry, times), times)


def attacked_by_nobody(target: Target, entry: str, times: int) -> list[str]:
    """Call an entry point over HTTP without an account, and return the exceeded costs."""
    declared = COSTS[entry] if entry in DOORS else Cost()
    return too_much(declared, target.cost(target.call_as_stranger, entry, times), times)


def test_everything_that_can_be_reached_is_declared(target: Target) -> None:
    """Each command, address and port has a declared cost. Routes and tools cannot be without."""
    assert set(target.others()) == set(OTHER_COSTS)


@rows(Route, Page, Tool)
def test_nothing_is_made_without_its_cost(kind: type[Struct]) -> None:
    """A route, page or tool without a declared cost cannot be created."""
    assert "cost" in {one.name for one in structs.fields(kind) if one.required}


@rows(*ENTRIES)
def test_hostile_calls_cost_what_is_declared(target: Target, entry: str) -> None:
    """A call with an account costs no more rows, octets, queries and work than declared."""
    assert attacked(target, entry, 1) == []


@rows(*OVER_HTTP)
def test_calls_without_an_account_cost_nothing(target: Target, entry: str) -> None:
    """An HTTP call without key and session causes no row, query or work, except at `DOORS`."""
    assert attacked_by_nobody(target, entry, 1) == []


@rows(*(one for one in ENTRIES if one.startswith("open ")))
def test_the_open_listener_rejects_public_clients(target: Target, entry: str) -> None:
    """Without a password, each of its routes answers 403 to a public address, at no cost."""
    statuses: list[int] = []

    def call(name: str) -> None:
        statuses.append(target.call_open_from_outside(name))

    assert too_much(Cost(), target.cost(call, entry, 1), 1) == []
    assert statuses == [403]


@pytest.mark.soak
@pytest.mark.parametrize("entry", ENTRIES)
def test_a_thousand_calls_cost_what_is_declared(target: Target, entry: str) -> None:
    """As many calls as a key has in a day cost no more than declared for each."""
    assert attacked(target, entry, 1_000) == []


@pytest.mark.soak
@pytest.mark.parametrize("entry", OVER_HTTP)
def test_ten_thousand_calls_without_an_account(target: Target, entry: str) -> None:
    """10,000 calls without key and session do not grow the store."""
    assert attacked_by_nobody(target, entry, 10_000) == []


@pytest.mark.soak
@pytest.mark.parametrize("entry", [one for one in ENTRIES if one not in OVER_HTTP])
def test_ten_thousand_calls_of_strangers(target: Target, entry: str) -> None:
    """10,000 SMTP commands or mails cost no more than declared."""
    if not entry.startswith("tool"):
        assert attacked(target, entry, 10_000) == []

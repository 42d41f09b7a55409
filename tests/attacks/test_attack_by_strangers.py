"""Everything that a stranger can reach has a declared cost, and costs no more when attacked."""

from collections.abc import Iterator

import pytest

from mailcheck.assembly.reachable import Cost, read_costs
from tests.attacks.strangers import Target

pytestmark = [pytest.mark.attack, pytest.mark.untraced]

SLACK = 65_536
"""Octets that a store may grow by in whole pages, however little is written."""


ENTRIES = sorted(read_costs())
OVER_HTTP = [
    one for one in ENTRIES if one.split(" ")[0] in ("GET", "POST", "PUT", "PATCH", "DELETE")
]
DOORS = {"POST /sign-in", "POST /sign-up", "POST /tls-reports/{token}"}
"""What does something for callers without an account."""


@pytest.fixture(scope="module")
def target() -> Iterator[Target]:
    """A house to attack."""
    target = Target()
    yield target
    target.close()


def too_much(declared: Cost, spent: Cost, times: int) -> list[str]:
    """List what calls have cost beyond what is declared for each."""
    found = []
    for name in Cost.__struct_fields__:
        limit = times * getattr(declared, name) + (SLACK if name == "octets" else 0)
        if getattr(spent, name) > limit:
            found.append(f"{name}: {getattr(spent, name)} in {times} calls")
    return found


def attacked(target: Target, entry: str, times: int) -> list[str]:
    """Call an entry point so many times with an account; return what has cost too much."""
    if not target.is_whole:
        target.restore()
    return too_much(read_costs()[entry], target.cost(target.call, entry, times), times)


def attacked_by_nobody(target: Target, entry: str, times: int) -> list[str]:
    """Call an entry point over HTTP so many times without an account."""
    declared = read_costs()[entry] if entry in DOORS else Cost()
    return too_much(declared, target.cost(target.call_as_stranger, entry, times), times)


def test_everything_that_can_be_reached_is_declared(target: Target) -> None:
    """Each route, tool, command, address and port has a declared cost, and nothing else has."""
    assert set(target.entries()) == set(read_costs())


@pytest.mark.parametrize("entry", ENTRIES)
def test_hostile_calls_cost_what_is_declared(target: Target, entry: str) -> None:
    """Calls with an account cost no more rows, octets, questions and work than is declared."""
    assert attacked(target, entry, 2) == []


@pytest.mark.parametrize("entry", OVER_HTTP)
def test_calls_without_an_account_cost_nothing(target: Target, entry: str) -> None:
    """Over HTTP a call without key and session causes no row, question or work, except at doors."""
    assert attacked_by_nobody(target, entry, 2) == []


@pytest.mark.soak
@pytest.mark.parametrize("entry", ENTRIES)
def test_a_thousand_calls_cost_what_is_declared(target: Target, entry: str) -> None:
    """As many calls as a key has in a day cost, each, no more than is declared."""
    assert attacked(target, entry, 1_000) == []


@pytest.mark.soak
@pytest.mark.parametrize("entry", OVER_HTTP)
def test_ten_thousand_calls_without_an_account(target: Target, entry: str) -> None:
    """After 10,000 calls without key and session nothing has grown."""
    assert attacked_by_nobody(target, entry, 10_000) == []


@pytest.mark.soak
@pytest.mark.parametrize("entry", [one for one in ENTRIES if one not in OVER_HTTP])
def test_ten_thousand_calls_of_strangers(target: Target, entry: str) -> None:
    """After 10,000 commands of SMTP or mails nothing has cost more than is declared."""
    if not entry.startswith("tool"):
        assert attacked(target, entry, 10_000) == []

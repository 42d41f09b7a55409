"""Attacks on other people's accounts, by strangers who may sign in, sign up and choose names."""

import pytest

from mailcheck.operations.accounts.sign_in import PER_NAME_AND_ADDRESS
from tests.house import House
from tests.web.dashboard.browser import Browser
from tests.web.dashboard.conftest import browser as browser
from tests.web.dashboard.conftest import house as house

pytestmark = pytest.mark.attack

VICTIM = "127.0.0.9"
"""The address from which the victim signs in."""


@pytest.mark.parametrize(
    "name",
    [
        f"developer from {VICTIM}",
        f"developer:{VICTIM}",
        f"developer {VICTIM}",
        "developer%3A" + VICTIM,
        "Developer",
        "DEVELOPER",
        "developer" + "\u200b",
        "developer" + "x" * 60,
    ],
)
def test_attempts_with_another_name_lock_nobody_out(house: House, name: str) -> None:
    """However often a stranger signs in with other names, the owner of an account gets in."""
    Browser(house, "192.0.2.11").sign_up("developer")
    for attempt in range(2 * PER_NAME_AND_ADDRESS.per_minute):
        Browser(house, f"192.0.2.{100 + attempt}").sign_in(name, "a wrong horse")
    owner = Browser(house, VICTIM)
    assert owner.follow(owner.sign_in("developer")).status == 200


def test_names_that_begin_alike_are_counted_apart(house: House) -> None:
    """Two long names that fold to the same beginning do not share a counter."""
    first, second = "\u00df" * 32 + "a", "\u00df" * 32 + "b"
    Browser(house, "192.0.2.11").sign_up(first)
    for _ in range(2 * PER_NAME_AND_ADDRESS.per_minute):
        Browser(house, VICTIM).sign_in(second, "a wrong horse")
    owner = Browser(house, VICTIM)
    owner.sign_in(first)
    assert not owner.is_signed_in, "the address has its own limit"
    house.pass_time(60)
    for attempt in range(2 * PER_NAME_AND_ADDRESS.per_minute):
        Browser(house, f"192.0.2.{100 + attempt}").sign_in(second, "a wrong horse")
    assert owner.follow(owner.sign_in(first)).status == 200

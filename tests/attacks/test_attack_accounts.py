"""Attacks on accounts by strangers, who may sign in, sign up and choose names."""

from contextlib import closing

import pytest
from twisted.internet.testing import MemoryReactor
from twisted.logger import capturedLogs, formatEvent

from mailcheck.assembly.deployment import named_accounts
from mailcheck.config.options import AlertOptions, WebhookOptions
from mailcheck.daemon.reserved_names import MissingAccounts
from mailcheck.operations.accounts.sign_in import PER_NAME_AND_ADDRESS
from mailcheck.store.accounts.account_store import look_alike
from tests.house import House, config_in_memory, run
from tests.web.dashboard.browser import Browser
from tests.web.dashboard.conftest import CHEAP
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
    """Failed sign-ins with other names never lock out the owner of an account."""
    Browser(house, "192.0.2.11").sign_up("developer")
    for attempt in range(2 * PER_NAME_AND_ADDRESS.per_minute):
        Browser(house, f"192.0.2.{100 + attempt}").sign_in(name, "a wrong horse")
    owner = Browser(house, VICTIM)
    assert owner.follow(owner.sign_in("developer")).status == 200


def test_names_that_begin_alike_are_counted_apart(house: House) -> None:
    """Two long names with the same beginning have separate counters of failed sign-ins."""
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


LOOKALIKES = [
    ("developer", "Developer"),
    ("developer", "DEVELOPER"),
    ("developer", "\u217eeveloper"),
    ("developer", "d\u0435v\u0435l\u043ep\u0435r"),
    ("developer", "deve1oper"),
    ("developer", "deveIoper"),
    ("developer", "\uff44eveloper"),
    ("developer", "developer\ufe0f"),
    ("developer", "de\u034fveloper"),
    ("developer", "\U0001d41d\U0001d41e\U0001d42f\U0001d41e\U0001d425\U0001d428\U0001d429er"),
    ("lisa", "Iisa"),
    ("modern shop", "modem shop"),
    ("modern shop", "modern  shop"),
    ("admin", "adm\u0131n"),
    ("zero-0", "zero\u2010o"),
    ("strasse", "stra\u00dfe"),
    ("o'neil", "o\u2019neil"),
    ("\u0430\u0441\u0435", "ace"),
]


@pytest.mark.parametrize(("name", "lookalike"), LOOKALIKES)
def test_names_that_look_alike_are_refused(house: House, name: str, lookalike: str) -> None:
    """A name that people could confuse with an existing account's cannot be signed up."""
    assert look_alike(name, lookalike)
    assert look_alike(lookalike, name)
    Browser(house).sign_up(lookalike)
    other = Browser(house, "192.0.2.11")
    other.open("/sign-up")
    answer = other.submit("/sign-up", name=name, password="another horse")
    assert answer.status == 409
    assert "looks like that of another account" in other.page.text


@pytest.mark.parametrize(
    "name", ["anna", "bob", "ann 2", "\u00e4nn", "\u738b", "\u0438\u0432\u0430\u043d"]
)
def test_other_names_are_taken(house: House, name: str) -> None:
    """A name that cannot be confused with another one is free, in any alphabet."""
    Browser(house).sign_up("ann")
    assert Browser(house, "192.0.2.11").sign_up(name).status == 200


@pytest.mark.parametrize("name", ["ci", "CI", "c\u0456", "ops", "Ops", "*"])
def test_names_that_come_with_rights_are_reserved(name: str) -> None:
    """A name with rights in the configuration, or a similar one, cannot be signed up."""
    config = config_in_memory(
        accounts=CHEAP,
        webhooks=WebhookOptions(allow=("ci=10.0.0.0/8",)),
        alerts=AlertOptions(allow_recipients=("ops=@example.org", "*=a@example.org")),
    )
    with closing(House(config)) as house:
        stranger = Browser(house)
        stranger.open("/sign-up")
        answer = stranger.submit("/sign-up", name=name, password="correct horse")
        assert answer.status == 409
        assert "is reserved by the operator" in stranger.page.text
        assert run(house.assembly.accounts.keep.add("ci")).name == "ci"


def test_missing_accounts_are_named_at_the_start() -> None:
    """The log names each account that an option refers to but does not exist, and the remedy."""
    config = config_in_memory(
        webhooks=WebhookOptions(allow=("ci=10.0.0.0/8", "first=10.0.0.0/8")),
        alerts=AlertOptions(allow_recipients=("ops=@example.org", "*=a@example.org")),
    )
    with closing(House(config)) as house, capturedLogs() as events:
        reactor = MemoryReactor()
        missing = MissingAccounts(house.assembly.accounts.keep, named_accounts(config), reactor)
        missing.startService()
        reactor.run()
    said = [str(formatEvent(event)) for event in events]
    assert [one.partition(",")[0] for one in said] == [
        "[webhooks] allow names the account 'ci'",
        "[alerts] allow_recipients names the account 'ops'",
    ]
    assert all("mailcheck account add" in one for one in said)

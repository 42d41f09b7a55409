"""Attacks on accounts by strangers, who may sign in, sign up and choose names."""

import re
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest
from msgspec.structs import fields, replace
from twisted.internet.testing import MemoryReactor
from twisted.logger import capturedLogs, formatEvent

from mailcheck.assembly.deployment import named_accounts
from mailcheck.config.options import (
    AlertOptions,
    Config,
    MailboxOptions,
    WebhookOptions,
    options_of,
)
from mailcheck.core.audit import Actor
from mailcheck.core.errors import AccountNameTaken
from mailcheck.daemon.reserved_names import MissingAccounts
from mailcheck.operations.accounts.sign_in import PER_NAME_AND_ADDRESS
from mailcheck.operations.inbox.open_inbox import find_owner
from mailcheck.store.accounts.confusable_names import look_alike
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
    assert Browser(house, "192.0.2.11").sign_up_by_form(name).status == 200


NAMED = {
    "webhooks.allow": ("in-webhooks=10.0.0.0/8",),
    "alerts.allow_recipients": ("in-alerts=@example.org", "*=a@example.org"),
    "release.allow_recipients": ("in-release=@example.org",),
    "reports.mailboxes": (MailboxOptions("in-reports", maildir="/nowhere"),),
    "milter.project": "in-milter",
    "mailpit.project": "in-mailpit",
    "oidc.roles": ("staff=in-oidc:editor",),
    "scim.roles": ("staff=in-scim:editor",),
    "accounts.bootstrap": True,
}
"""The options that mean accounts by their names, with a value for each."""

NOT_NAMES = {
    "smtp.submission_listen",
    "oidc.issuer",
    "oidc.title",
    "oidc.create_accounts",
    "oidc.allowed_groups",
    "accounts.bootstrap_key",
    "accounts.invite_by",
    "accounts.registration",
    "accounts.passwords",
    "accounts.per_address",
    "alerts.smtp_relay",
    "backup.folder",
    "release.per_hour",
    "limits.requests_per_minute",
    "limits.stranger_checks_per_day",
}
"""The options whose texts speak of accounts or projects, but do not name any."""

RESERVED = (
    *(
        "in-webhooks",
        "in-alerts",
        "in-release",
        "in-milter",
        "in-mailpit",
        "in-oidc",
        "in-scim",
        "developer",
        "*",
    ),
    *("IN-mailpit", "\u0456n-oidc"),
)
"""The names in those options, and some that look like them."""


@pytest.fixture
def named_house() -> Iterator[House]:
    """An application whose options mean accounts that do not exist, with all sections."""
    options: dict[str, dict[str, Any]] = {}
    for name, value in NAMED.items():
        section, _, option = name.partition(".")
        options.setdefault(section, {})[option] = value
    sections = {
        section: replace(getattr(Config(), section), **values)
        for section, values in options.items()
    }
    sections["accounts"] = replace(CHEAP, **options["accounts"])
    with closing(House(config_in_memory(**sections))) as house:
        yield house


def test_every_option_that_means_accounts_is_known() -> None:
    """A new option that speaks of accounts or projects is judged: its names are reserved."""
    spoken = {
        f"{section.name}.{option.name}"
        for section in fields(Config)
        for option in options_of(section.type)
        if re.search("account|project", option.described.text, re.IGNORECASE)
    }
    assert spoken <= set(NAMED) | NOT_NAMES, "name the option here and in named_accounts()"


def test_names_that_options_mean_are_reserved(named_house: House) -> None:
    """No visitor and no member takes a name in the configuration, or a similar one."""
    accounts, by = named_house.assembly.accounts, Actor("ann", "192.0.2.1")
    person = replace(named_house.account, is_operator=False)
    project = run(accounts.projects.create(person, "shop", by))
    for name in RESERVED:
        for taking in (
            accounts.register.register(name, "correct horse battery", "", "192.0.2.1"),
            accounts.projects.create(person, name, by),
            accounts.projects.rename(project, name, by),
        ):
            with pytest.raises(AccountNameTaken, match="reserved by the operator"):
                run(taking)


def test_the_operator_assigns_reserved_names(named_house: House) -> None:
    """The command line and the operator give a reserved name to an account or a project."""
    accounts = named_house.assembly.accounts
    assert run(accounts.keep.add("in-webhooks")).name == "in-webhooks"
    assert run(accounts.projects.create(named_house.account, "in-oidc")).is_project
    by = Actor("first", "192.0.2.1")
    assert run(accounts.projects.create(named_house.account, "in-milter", by)).is_project


def test_an_empty_name_means_the_first_account(house: House) -> None:
    """It stays that account, whoever is the operator, and nobody follows when it is deleted."""
    keep = house.assembly.accounts.keep
    other = house.add_account("other", is_operator=True)
    Browser(house).sign_up("ann")
    for _ in range(2):
        assert run(find_owner(keep, "")).id == house.account.id
    run(keep.delete(run(keep.get(house.account.id))))
    assert run(find_owner(keep, "")) is None
    run(keep.add("later"))
    assert run(find_owner(keep, "")) is None
    assert other.id in {one.id for one in run(keep.accounts())}


def test_a_name_means_the_account_that_had_it_first(house: House) -> None:
    """A role follows a project that is renamed, and none that gets its name afterwards."""
    accounts = house.assembly.accounts
    ops = run(accounts.projects.create(house.account, "ops"))
    assert run(accounts.projects.meant_by("ops")).id == ops.id
    run(accounts.keep.rename(ops, "operations"))
    impostor = run(accounts.projects.create(house.account, "ops"))
    assert run(accounts.projects.meant_by("ops")).id == ops.id != impostor.id
    run(accounts.keep.delete(ops))
    assert run(accounts.projects.meant_by("ops")).id == impostor.id, "the operator has assigned it"


def test_the_first_start_creates_its_account() -> None:
    """No warning names the account that the first start creates at the same time."""
    config = config_in_memory(webhooks=WebhookOptions(allow=("developer=10.0.0.0/8",)))
    with closing(House(config)) as house, capturedLogs() as events:
        house.sqlite.connection.execute("DELETE FROM account")
        run_missing(house, config)
    assert not events


def run_missing(house: House, config: Config) -> None:
    """Look for missing accounts as at the start."""
    reactor = MemoryReactor()
    accounts = house.assembly.accounts.keep
    MissingAccounts(accounts, lambda: named_accounts(config), reactor).startService()
    reactor.run()


def test_missing_accounts_are_named_at_the_start() -> None:
    """The log names each account that an option refers to but does not exist, and the remedy."""
    config = config_in_memory(
        webhooks=WebhookOptions(allow=("ci=10.0.0.0/8", "first=10.0.0.0/8")),
        alerts=AlertOptions(allow_recipients=("ops=@example.org", "*=a@example.org")),
    )
    with closing(House(config)) as house, capturedLogs() as events:
        run_missing(house, config)
    said = [str(formatEvent(event)) for event in events]
    assert [one.partition(",")[0] for one in said] == [
        "[webhooks] allow names the account 'ci'",
        "[alerts] allow_recipients names the account 'ops'",
    ]
    assert all("mailcheck account add" in one for one in said)

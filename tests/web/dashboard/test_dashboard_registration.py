"""Registration: who can create an account, how many, and how often sign-in may be tried."""

import re
from typing import Any

from msgspec.structs import replace

from mailcheck.assembly.workers import Workers
from mailcheck.config.options import WebOptions
from mailcheck.core.instants import DAY, SECOND
from mailcheck.operations.accounts.sign_in import (
    PER_ADDRESS,
    PER_DEVICE,
    PER_NAME,
    PER_NAME_AND_ADDRESS,
)
from mailcheck.workers.scheduling import DirectWorker
from tests.house import EmptyHouse, House, config_in_memory, run
from tests.table import rows
from tests.web.dashboard.browser import Browser
from tests.web.dashboard.conftest import CHEAP
from tests.web.workers import FaultyWorker


def build(web: WebOptions | None = None, **options: Any) -> House:
    """Build a house with account options."""
    accounts = replace(CHEAP, **options)
    return House(config_in_memory(accounts=accounts, web=web or WebOptions()))


def count_accounts(house: House) -> int:
    """Count all accounts."""
    return len(run(house.assembly.accounts.keep.accounts()))


def test_closed() -> None:
    """With closed registration no account can be created, not even with an invitation."""
    house = build(registration="closed")
    code = run(house.assembly.accounts.invitations.invite())
    browser = Browser(house)
    for path in ("/sign-up", f"/sign-up?invitation={code}"):
        assert browser.open(path).status == 403
        assert "Only the operator of this service can create accounts" in browser.page.text
    browser.open("/sign-in")
    assert "/sign-up" not in browser.page.addresses
    form = {"name": "ann", "password": "correct horse", "invitation": code}
    assert browser.submit("/sign-up", **form).status == 403
    browser.open("/")
    assert "/sign-up" not in browser.page.addresses
    assert count_accounts(house) == 1


def test_by_invitation() -> None:
    """An invitation creates one account; a name that exists does not use it up."""
    house = build(registration="invite")
    code = run(house.assembly.accounts.invitations.invite())
    browser = Browser(house)
    assert browser.open("/sign-up").status == 403
    assert "you need an invitation" in browser.page.text.lower()
    assert browser.open(f"/sign-up?invitation={code}").status == 200
    form = {"password": "correct horse", "invitation": code}
    assert browser.submit("/sign-up", name="first", **form).status == 409
    assert browser.submit("/sign-up", name="ann", **form).status == 303
    other = Browser(house, "192.0.2.11")
    assert other.open(f"/sign-up?invitation={code}").status == 403
    other.open("/sign-in")
    assert other.submit("/sign-up", name="bob", **form).status == 403
    assert "has been used" in other.page.text
    assert count_accounts(house) == 2


@rows("", "a" * 32, "\0", "x' OR 1=1", "\udcff", "é" * 100)
def test_an_invalid_invitation(code: str) -> None:
    """An invalid invitation is rejected."""
    house = build(registration="invite")
    browser = Browser(house)
    browser.open("/sign-in")
    encoded = code.encode("utf-8", "surrogateescape").decode("latin-1")
    form = {"name": "ann", "password": "correct horse", "invitation": encoded}
    assert browser.submit("/sign-up", **form).status in (400, 403)
    assert count_accounts(house) == 1


def test_the_operator_invites() -> None:
    """Only the operator can create invitation links."""
    house = build(registration="invite")
    run(house.assembly.accounts.sign_in.set_password(house.account, "operator's own"))
    operator = Browser(house)
    operator.follow(operator.sign_in("first", "operator's own"))
    assert operator.submit("/account/invitations").status == 200
    found = re.search(
        r"http://127.0.0.1:8080(/sign-up\?invitation=([a-z2-7]+))", operator.page.text
    )
    assert found is not None
    browser = Browser(house, "192.0.2.11")
    assert browser.open(found[1]).status == 200
    code = found[2]
    form = {"name": "ann", "password": "correct horse", "invitation": code}
    browser.follow(browser.submit("/sign-up", **form))
    browser.open("/account")
    assert "/account/invitations" not in browser.page.addresses
    assert browser.submit("/account/invitations").status == 403


def test_accounts_of_one_address() -> None:
    """An address can create a limited number of accounts a day; others are not affected."""
    house = build(per_address=2)
    for number in range(2):
        assert Browser(house).sign_up_by_form(f"ann{number}").status == 200
    browser = Browser(house)
    browser.open("/sign-up")
    answer = browser.submit("/sign-up", name="ann2", password="correct horse")
    assert answer.status == 429
    assert int(answer.headers["retry-after"]) >= 1
    assert "too many accounts" in browser.page.text.lower()
    assert Browser(house, "192.0.2.77").sign_up_by_form("bob").status == 200
    house.pass_time(DAY / SECOND)
    assert Browser(house).sign_up_by_form("ann2").status == 200


def test_nobody_signs_up_as_the_operator() -> None:
    """The first account that signs up on a new service is not the operator."""
    house = EmptyHouse(config_in_memory(accounts=CHEAP))
    Browser(house).sign_up_by_form("ann")
    (account,) = run(house.assembly.accounts.keep.accounts())
    assert (account.name, account.is_operator) == ("ann", False)


def test_nobody_signs_up_before_the_account_of_the_daemon() -> None:
    """Signing up is rejected until the daemon has created the first account."""
    house = EmptyHouse(config_in_memory(accounts=replace(CHEAP, bootstrap=True)))
    browser = Browser(house)
    assert browser.open("/sign-up").status == 403
    assert "service is starting" in browser.page.text
    run(house.assembly.accounts.keep.add("developer"))
    assert browser.sign_up_by_form("ann").status == 200


def test_rejected_registrations_do_not_count() -> None:
    """A rejected registration does not count for the limit."""
    house = build(per_address=1)
    browser = Browser(house)
    browser.open("/sign-up")
    for name, password in (("first", "correct horse"), ("ann", "short"), ("", "correct horse")):
        assert browser.submit("/sign-up", name=name, password=password).status in (400, 409)
    assert browser.submit("/sign-up", name="ann", password="correct horse").status == 303


def test_addresses_behind_a_proxy() -> None:
    """Behind a trusted proxy the client's address counts; other clients cannot choose theirs."""
    house = build(WebOptions(trusted_proxies=("10.0.0.1/32",)), per_address=1)

    def statuses(peer: str) -> list[int]:
        found = []
        for client in ("198.51.100.1", "198.51.100.2"):
            browser = Browser(house, peer, f"X-Forwarded-For: {client}")
            browser.open("/sign-up")
            name = f"{peer} {client}"
            answer = browser.submit("/sign-up", name=name, password="correct horse")
            found.append(answer.status)
        return found

    assert statuses("10.0.0.1") == [303, 303]
    assert statuses("203.0.113.5") == [303, 429]


def test_an_ipv6_network_is_one_client() -> None:
    """All addresses of a /64 count as one client."""
    house = build(per_address=1)
    assert Browser(house, "2001:db8:1::1").sign_up_by_form("ann").status == 200
    browser = Browser(house, "2001:db8:1::2")
    browser.open("/sign-up")
    assert browser.submit("/sign-up", name="bob", password="correct horse").status == 429
    assert Browser(house, "2001:db8:2::1").sign_up_by_form("bob").status == 200


def test_attempts_of_one_address(house: House) -> None:
    """An address that tries many names is blocked until the next minute."""
    Browser(house, "192.0.2.1").sign_up_by_form("ann")
    browser = Browser(house)
    for number in range(PER_ADDRESS.per_minute):
        assert browser.sign_in(f"name{number}", "wrong horse!").status == 403
    answer = browser.sign_in("ann")
    assert answer.status == 429
    assert answer.headers["retry-after"] == "60"
    assert "try again in 60 seconds" in browser.page.text
    assert Browser(house, "192.0.2.2").sign_in("ann").status == 303
    house.pass_time(60)
    assert browser.sign_in("ann").status == 303


def test_attempts_for_one_name(house: House) -> None:
    """A name that is tried from many addresses is blocked for all of them until the minute ends.

    Spaces and capital letters do not change the name, and unknown names are blocked too.
    """
    Browser(house, "192.0.2.1").sign_up_by_form("ann")
    for name in ("ann", "nobody"):
        spellings = [name, f" {name}", name.upper(), f"{name} "]
        for number in range(PER_NAME.per_minute):
            browser = Browser(house, f"198.51.100.{number}")
            assert browser.sign_in(spellings[number % 4], "wrong horse!").status == 403
        assert Browser(house, "192.0.2.5").sign_in(name).status == 429
    house.pass_time(60)
    assert Browser(house, "192.0.2.5").sign_in("ann").status == 303


def test_guessing_does_not_lock_out_known_browsers(house: House) -> None:
    """A browser that has signed in before can sign in while others guess the password."""
    owner = Browser(house, "192.0.2.1")
    owner.sign_up_by_form("ann")
    owner.submit("/sign-out")
    other = Browser(house, "192.0.2.9")
    other.sign_up_by_form("bob")
    for number in range(PER_NAME.per_minute + PER_ADDRESS.per_minute):
        peer = "192.0.2.1" if number % 2 else f"198.51.100.{number}"
        Browser(house, peer).sign_in("ann", "wrong horse!")
    # Browsers of other accounts and forged device cookies are not known.
    assert other.sign_in("ann").status == 429
    other.cookies["mailcheck-device"] = "a" * 48
    assert other.sign_in("ann").status == 429
    assert owner.sign_in("ann").status == 303


def test_a_known_browser_is_limited_too(house: House) -> None:
    """A stolen device cookie is limited too, and a new password revokes it."""
    owner = Browser(house, "192.0.2.1")
    owner.sign_up_by_form("ann")
    thief = Browser(house, "198.51.100.1")
    thief.cookies["mailcheck-device"] = stolen = owner.cookies["mailcheck-device"]
    for _ in range(PER_DEVICE.per_minute):
        assert thief.sign_in("ann", "wrong horse!").status == 403
    assert thief.sign_in("ann").status == 429
    owner.open("/account")
    new = "battery staple"
    owner.submit("/account/password", old="correct horse", new=new, again=new)
    assert owner.cookies["mailcheck-device"] != stolen
    for number in range(PER_NAME_AND_ADDRESS.per_minute):  # not known any more, with its own limit
        assert thief.sign_in("ann", f"wrong horse {number}").status == 403
    assert thief.sign_in("ann", new).status == 429


def test_attempts_to_change_a_password(ann: Browser) -> None:
    """A stolen session cannot be used to guess the password quickly."""
    ann.open("/account")
    new = "battery staple"
    form = {"old": "wrong horse!", "new": new, "again": new}
    for _ in range(PER_DEVICE.per_minute):
        assert ann.submit("/account/password", **form).status == 403
    form["old"] = "correct horse"
    assert ann.submit("/account/password", **form).status == 429


def test_an_unknown_name_takes_as_long() -> None:
    """An unknown name, or one without a password, costs one hash like a wrong password."""
    worker = FaultyWorker()
    direct = DirectWorker()
    house = House(config_in_memory(accounts=CHEAP), Workers(direct, direct, direct, worker))
    Browser(house, "192.0.2.1").sign_up_by_form("ann")
    costs = []
    for name in ("ann", "nobody", "first", ""):
        before = worker.calls
        assert Browser(house).sign_in(name, "wrong horse!").status == 403
        costs.append(worker.calls - before)
    assert costs == [1, 1, 1, 1]

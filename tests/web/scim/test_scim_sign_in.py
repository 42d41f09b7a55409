"""Signing in with the company's account as a person whom the directory manages."""

import pytest

from mailcheck.config.options import ScimOptions
from mailcheck.core.accounts import Account
from tests.fakes.company import Company
from tests.house import Answer, House, run
from tests.web.dashboard.browser import Browser
from tests.web.dashboard.test_dashboard_company import company_house, sign_in
from tests.web.scim.directory import Directory


@pytest.fixture
def company() -> Company:
    """A provider that knows Ann, with the id that the directory has for her."""
    company = Company()
    company.claims["oid"] = "ann-oid"
    return company


@pytest.fixture
def directory(company: Company) -> Directory:
    """A directory of the same company."""
    return Directory(house=company_house(company, scim=ScimOptions(id_claim="oid")))


def enter(house: House, company: Company) -> tuple[Browser, Answer]:
    """Sign in with the company's account in a new browser."""
    browser = Browser(house)
    return browser, sign_in(browser, company)


def names(house: House) -> set[str]:
    """Return the names of all accounts."""
    return {account.name for account in run(house.assembly.accounts.keep.accounts())}


def test_the_account_of_the_directory_is_found(directory: Directory, company: Company) -> None:
    """The first sign-in finds the account by its external id, and the next by the subject."""
    directory.create_user("ann@example.com", externalId="ann-oid")
    known = names(directory.house)
    for _ in range(2):
        browser, _ = enter(directory.house, company)
        assert browser.is_signed_in
        assert names(directory.house) == known
        company.claims.pop("oid", None)


def test_whoever_left_stays_out(directory: Directory, company: Company) -> None:
    """A person whom the directory has disabled gets in neither at first nor by another account."""
    ann = directory.create_user("ann@example.com", externalId="ann-oid", active=False)
    browser, answer = enter(directory.house, company)
    assert not browser.is_signed_in
    assert b"disabled" in answer.body
    directory.patch(f"Users/{ann['id']}", {"op": "remove", "path": "externalId"})
    assert enter(directory.house, company)[0].is_signed_in
    other = {"op": "add", "path": "externalId", "value": "ann-oid"}
    directory.patch(f"Users/{ann['id']}", other)
    assert not enter(directory.house, company)[0].is_signed_in


def test_nobody_gets_the_account_of_another_person(directory: Directory, company: Company) -> None:
    """An account that was found by its name is not given to the person of the directory."""
    bob: Account = directory.house.add_account("bob@example.com")
    adopted = {"op": "add", "path": "externalId", "value": "ann-oid"}
    assert directory.patch(f"Users/{bob.id}", adopted).status == 200
    browser, answer = enter(directory.house, company)
    assert not browser.is_signed_in
    assert b"sign in with its password" in answer.body
    company_sign_in = directory.house.assembly.accounts.company
    assert company_sign_in is not None
    run(company_sign_in.link(bob, "ann-1"))
    assert enter(directory.house, company)[0].is_signed_in


def test_whoever_signed_in_before_is_recognized(directory: Directory, company: Company) -> None:
    """Creating a user takes over the account with which the person has signed in."""
    enter(directory.house, company)
    known = names(directory.house)
    ann = directory.create_user("ann.lee@example.com", externalId="ann-oid")
    assert names(directory.house) == known
    assert ann["userName"] == "ann.lee@example.com"
    left = directory.patch(
        f"Users/{ann['id']}", {"op": "Replace", "path": "active", "value": "False"}
    )
    assert left.status == 200
    assert not enter(directory.house, company)[0].is_signed_in

"""Accounts are renamed, limited, disabled and deleted, and the audit log says so."""

import pytest

from mailcheck.core.accounts import Account, AccountLimits
from mailcheck.core.audit import AUDIT_KEPT, Action, Actor
from mailcheck.core.errors import (
    AccountDisabled,
    AccountIsOperator,
    AccountNameTaken,
    AccountNotFound,
    InboxDisabled,
    InvalidCredentials,
    InvalidParameter,
)
from mailcheck.core.instants import DAY, HOUR, Instant
from tests.house import House, config_in_memory, run
from tests.table import rows
from tests.web.dashboard.conftest import CHEAP

BOSS = Actor("boss", "192.0.2.1")


@pytest.fixture
def house() -> House:
    """A house with cheap password hashes."""
    return House(config_in_memory(accounts=CHEAP))


@pytest.fixture
def bob(house: House) -> Account:
    """A second account."""
    return house.add_account("bob")


def actions(house: House) -> list[tuple[str, str, str]]:
    """Return the action, the actor and the account of all entries, oldest first."""
    found = run(house.assembly.accounts.audit.newest())
    return [(one.action, one.actor, one.account_name) for one in reversed(found)]


def test_a_renamed_account_keeps_its_address(house: House, bob: Account) -> None:
    """A new name is taken for signing in; the inbox address and the keys stay."""
    keep = house.assembly.accounts.keep
    key = house.issue_key(bob)
    run(keep.rename(bob, " Robert ", BOSS))
    renamed = run(keep.find("Robert"))
    assert renamed.mailbox_name == bob.mailbox_name
    assert house.get("/inbox", key=key).status == 200
    assert actions(house)[-1] == (Action.ACCOUNT_RENAMED, "boss", "Robert")
    with pytest.raises(AccountNameTaken):
        run(keep.rename(renamed, "f\u0456rst", BOSS))  # a Cyrillic letter looks like the i
    with pytest.raises(InvalidParameter):
        run(keep.rename(renamed, " ", BOSS))
    run(keep.rename(renamed, "ROBERT", BOSS))


def test_a_disabled_account_can_do_nothing(house: House, bob: Account) -> None:
    """Its keys are 401, its password does not sign in, and its mail is refused, until enabled."""
    parts = house.assembly.accounts
    key, address = house.issue_key(bob), house.address(account=bob)
    run(parts.sign_in.set_password(bob, "correct horse"))
    session = run(parts.sign_in.sign_in("bob", "correct horse", "192.0.2.7")).secret
    pending = house.ask("GET", "/inbox/events", key=key)
    run(parts.keep.disable(bob, BOSS))
    run(parts.ended_access.check())
    assert "revoked" in pending.answer().body.decode()
    assert run(parts.sessions.find(session)) is None
    answer = house.get("/inbox", key=key)
    assert answer.status == 401
    assert "disabled" in answer.json["error"]
    with pytest.raises(AccountDisabled):
        run(parts.sign_in.sign_in("bob", "correct horse", "192.0.2.7"))
    with pytest.raises(InboxDisabled):
        house.receive(address)
    with pytest.raises(InvalidCredentials):
        run(parts.authenticator.identify(key))
    run(parts.keep.enable(bob, BOSS))
    house.pass_time(3)
    house.receive(address)
    assert house.get("/inbox", key=key).json["total"] == 1
    assert run(parts.sign_in.sign_in("bob", "correct horse", "192.0.2.7"))


def test_a_wrong_password_does_not_tell_whether_an_account_is_disabled(
    house: House, bob: Account
) -> None:
    """A stranger gets the same answer for a disabled account as for any other."""
    parts = house.assembly.accounts
    run(parts.sign_in.set_password(bob, "correct horse"))
    run(parts.keep.disable(bob, BOSS))
    with pytest.raises(Exception, match="no account has this name and password"):
        run(parts.sign_in.sign_in("bob", "wrong horse", "192.0.2.7"))


def test_the_operators_account_stays(house: House, bob: Account) -> None:
    """The operator's account is neither disabled nor deleted, until another one has the role."""
    keep = house.assembly.accounts.keep
    for operation in (keep.disable, keep.delete):
        with pytest.raises(AccountIsOperator):
            run(operation(house.account, BOSS))
    run(keep.make_operator(bob, BOSS))
    run(keep.delete(run(keep.find("first")), BOSS))
    assert [one.name for one in run(keep.accounts())] == ["bob"]


def test_a_deleted_account_is_gone(house: House, bob: Account) -> None:
    """Its mail, its key and its address are gone, and the log says what was deleted and by whom."""
    keep = house.assembly.accounts.keep
    key, address = house.issue_key(bob), house.address("a", account=bob)
    for _ in range(3):
        house.receive(address)
    holdings = run(keep.delete(bob, BOSS))
    assert (holdings.messages, holdings.keys) == (3, 1)
    assert house.get("/inbox", key=key).status == 401
    with pytest.raises(AccountNotFound):
        run(keep.find("bob"))
    for operation in (keep.holdings, keep.delete):
        with pytest.raises(AccountNotFound):
            run(operation(bob))
    newest = run(house.assembly.accounts.audit.newest())[0]
    assert (newest.action, newest.actor, newest.client) == ("account deleted", "boss", "192.0.2.1")
    assert newest.detail.startswith("bob: 3 messages, ")


def test_the_retention_of_one_account(house: House, bob: Account) -> None:
    """Mail to an account with a retention of its own expires after that time."""
    keep = house.assembly.accounts.keep
    run(keep.set_limits(bob, AccountLimits(retention_hours=72), BOSS))
    key = house.issue_key(bob)
    house.receive(house.address(account=bob), house.address())
    assert house.get("/inbox", key=key).json["retentionHours"] == 72
    (message,) = house.get("/inbox/messages", key=key).json["messages"]
    (other,) = house.get("/inbox/messages").json["messages"]
    assert message["expiresAt"][:10] == "2026-11-24"
    assert other["expiresAt"][:10] == "2026-11-22"
    house.pass_time(71 * HOUR / 1000)
    assert house.get("/inbox/messages", key=key).json["total"] == 1
    assert house.get("/inbox/messages").json["total"] == 0


@rows(*AccountLimits.__struct_fields__)
def test_wrong_limits(house: House, bob: Account, field: str) -> None:
    """A limit out of range is an error that names it, and nothing is changed."""
    for value in (0, -1, 2**63, 23 if field == "retention_hours" else 0):
        with pytest.raises(InvalidParameter, match=field):
            run(house.assembly.accounts.keep.set_limits(bob, AccountLimits(**{field: value})))
    assert run(house.assembly.accounts.keep.find("bob")) == bob


def test_the_log_of_a_day(house: House, bob: Account) -> None:
    """Each change has an entry with its actor; keys and webhooks are named without secrets."""
    parts = house.assembly.accounts
    run(parts.sign_in.set_password(bob, "correct horse", BOSS))
    signed_in = run(parts.sign_in.sign_in("bob", "correct horse", "192.0.2.7"))
    issued = run(parts.keep.issue_key(bob, "CI", per_minute=1_000, per_day=1_000, by=BOSS))
    made = house.ask(
        "POST", "/inbox/webhooks", issued.secret, json={"url": "https://ci.example.com/secret"}
    ).answer()
    assert made.status == 200, made.body
    run(parts.keep.revoke_key(issued.key.id, BOSS))
    run(parts.sessions.end(signed_in.secret, bob.id, Actor("bob", "192.0.2.7")))
    run(parts.invitations.invite(BOSS))
    expected = [
        ("password changed", "boss", "bob"),
        ("signed in", "bob", "bob"),
        ("key issued", "boss", "bob"),
        ("webhook created", f"API key {issued.key.id}", "bob"),
        ("key revoked", "boss", "bob"),
        ("signed out", "bob", "bob"),
        ("person invited", "boss", ""),
    ]
    assert set(expected) <= set(actions(house))  # entries of one millisecond are in any order
    text = str(run(parts.audit.newest()))
    for secret in (issued.secret, "correct horse", signed_in.secret, "/secret", "whsec_"):
        assert secret not in text
    assert f"{issued.key.id} 'CI', all rights" in text
    assert "host ci.example.com" in text


def test_old_entries_of_the_log_are_deleted(house: House) -> None:
    """Entries are kept for 400 days."""
    parts = house.assembly.accounts
    run(parts.audit_retention.sweep())
    count = len(actions(house))
    assert count > 0
    house.pass_time((AUDIT_KEPT - DAY) / 1000)
    run(parts.audit_retention.sweep())
    assert len(actions(house)) == count
    house.pass_time(2 * DAY / 1000)
    run(parts.audit_retention.sweep())
    assert actions(house) == []
    assert Instant(AUDIT_KEPT) == 400 * DAY

"""Accounts and keys: creation, use and revocation."""

import pytest
from twisted.internet.defer import Deferred

from mailcheck.assembly.workers import Workers
from mailcheck.config.options import LimitsOptions
from mailcheck.core.accounts import RequestLimits
from mailcheck.core.errors import (
    AccountNameTaken,
    AccountNotFound,
    InvalidCredentials,
    InvalidParameter,
    KeyNotFound,
    StoreUnavailable,
)
from mailcheck.core.instants import Instant, instant_of
from mailcheck.ports.engine import Transaction
from mailcheck.store.transactions import for_each
from mailcheck.workers.scheduling import DirectWorker
from tests.engines.blocked_worker import BlockedWorker
from tests.house import House, config_in_memory, result_of, run
from tests.table import rows


@pytest.fixture
def house() -> House:
    """A house with its own rate limits."""
    return House(config_in_memory(limits=LimitsOptions(requests_per_minute=7, requests_per_day=9)))


@for_each
def _break_store(transaction: Transaction, table_exists: bool) -> None:
    names = ("api_key", "hidden") if table_exists else ("hidden", "api_key")
    transaction.execute(f"ALTER TABLE {names[0]} RENAME TO {names[1]}")


def last_use(house: House) -> Instant | None:
    """Return when the only key of the first account was last used."""
    (key,) = run(house.assembly.accounts.keep.list_keys(house.account))
    last_used_at: Instant | None = key.last_used_at
    return last_used_at


def test_names_of_accounts(house: House) -> None:
    """Names of accounts are unique and not empty. Surrounding spaces are stripped."""
    accounts = house.assembly.accounts.keep
    assert run(accounts.add("  Ann  ")).name == "Ann"
    with pytest.raises(AccountNameTaken):
        run(accounts.add("Ann"))
    for name in ("", "  ", "\n"):
        with pytest.raises(InvalidParameter) as caught:
            run(accounts.add(name))
        assert caught.value.name == "name"
    assert run(accounts.find("Ann")).name == "Ann"
    with pytest.raises(AccountNotFound, match="Bob"):
        run(accounts.find("Bob"))


def test_keys_are_shown_once(house: House) -> None:
    """Only the beginning of a key is stored, and it does not authenticate."""
    accounts = house.assembly.accounts.keep
    issued = run(accounts.issue_key(house.account, "CI", per_minute=5, per_day=6))
    assert issued.secret.startswith("mck_")
    assert issued.key.hint == issued.secret[:8]
    (kept,) = (one for one in run(accounts.list_keys(house.account)) if one.name == "CI")
    assert kept == issued.key
    assert (kept.name, kept.per_minute, kept.per_day) == ("CI", 5, 6)
    assert issued.secret not in repr(kept)


def test_a_key_that_the_operator_chose(house: House) -> None:
    """A preset key works if it is long enough and plain ASCII."""
    accounts = house.assembly.accounts.keep
    preset = "a-key-of-our-own-choice"
    assert not run(accounts.has_key(preset))
    run(accounts.issue_key(house.account, "preset", preset=preset))
    assert run(accounts.has_key(preset))
    assert (
        run(house.assembly.accounts.authenticator.identify(preset)).account_id == house.account.id
    )
    for wrong in ("", "fifteen letters", "sixteen lettersü"):
        with pytest.raises(InvalidParameter):
            run(accounts.issue_key(house.account, "preset", preset=wrong))


def test_the_account_of_a_key(house: House) -> None:
    """A key identifies its account and its limits. Limits of the key override the defaults."""
    identify = house.assembly.accounts.authenticator.identify
    plain = run(house.assembly.accounts.keep.issue_key(house.account, "")).secret
    assert run(identify(plain)).limits == RequestLimits(7, 9)
    caller = run(identify(house.issue_key(house.account, per_minute=1, per_day=2)))
    assert (caller.account_id, caller.limits) == (house.account.id, RequestLimits(1, 2))


@rows("", "mck_", "mck_unknown", "\udcff", "x" * 100_000)
def test_unknown_keys(house: House, secret: str) -> None:
    """A text that is not a key is unknown, and never causes an internal error."""
    with pytest.raises(InvalidCredentials, match="unknown"):
        run(house.assembly.accounts.authenticator.identify(secret))


def test_revoked_keys(house: House) -> None:
    """A revoked key stops working at once with that reason, and cannot be revoked again."""
    accounts = house.assembly.accounts.keep
    issued = run(accounts.issue_key(house.account, ""))
    run(accounts.revoke_key(issued.key.id))
    with pytest.raises(InvalidCredentials, match="revoked"):
        run(house.assembly.accounts.authenticator.identify(issued.secret))
    assert run(accounts.has_key(issued.secret))
    for key_id in (issued.key.id, "nobody"):
        with pytest.raises(KeyNotFound, match=key_id):
            run(accounts.revoke_key(key_id))


def test_uses_of_keys_are_saved_periodically(house: House) -> None:
    """The last use of a key is saved periodically, and only the latest use counts."""
    authenticator = house.assembly.accounts.authenticator
    run(authenticator.save_key_uses())
    assert last_use(house) is None
    for _ in range(3):
        run(authenticator.identify(house.key))
        house.clock.advance(1)
    assert last_use(house) is None
    run(authenticator.save_key_uses())
    last = instant_of(house.clock.seconds() - 1)
    assert last_use(house) == last


def test_uses_of_keys_that_cannot_be_saved(house: House) -> None:
    """Uses that could not be saved are saved the next time, unless a later use replaces them."""
    authenticator = house.assembly.accounts.authenticator
    run(authenticator.identify(house.key))
    result_of(house.assembly.runtime.engine.write(_break_store, True))
    for _ in range(2):
        with pytest.raises(StoreUnavailable):
            run(authenticator.save_key_uses())
    result_of(house.assembly.runtime.engine.write(_break_store, False))
    run(authenticator.save_key_uses())
    assert last_use(house) == instant_of(house.clock.seconds())


def test_a_later_use_is_not_overwritten() -> None:
    """A use during a failing save is newer than the saved one, and is kept."""
    writer = BlockedWorker()
    house = House(config_in_memory(), Workers(writer, DirectWorker(), DirectWorker()))
    authenticator = house.assembly.accounts.authenticator
    run(authenticator.identify(house.key))
    writer.hold_calls()
    saving = Deferred.fromCoroutine(authenticator.save_key_uses())
    house.clock.advance(5)
    run(authenticator.identify(house.key))
    connection = house.sqlite.connection
    connection.execute("ALTER TABLE api_key RENAME TO hidden")
    writer.let_go()
    with pytest.raises(StoreUnavailable):
        result_of(saving)
    connection.execute("ALTER TABLE hidden RENAME TO api_key")
    run(authenticator.save_key_uses())
    assert last_use(house) == instant_of(house.clock.seconds())

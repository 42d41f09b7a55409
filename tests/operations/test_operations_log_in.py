"""Login of programs with a name and a password, as mail programs and SMTP clients send them."""

import pytest

from mailcheck.config.options import AccountsOptions
from mailcheck.core.accounts import Caller
from mailcheck.core.errors import ExpectedFailure, InvalidCredentials, LimitExceeded, NotPermitted
from mailcheck.core.rights import Scope, make_rights
from mailcheck.core.signing_in.passkeys import Passkey
from mailcheck.operations.accounts.sign_in import PER_ADDRESS, PER_NAME_AND_ADDRESS
from tests.engines.deliveries import noted
from tests.house import CHEAP_HASH, House, config_in_memory, result_of, run
from tests.table import rows

CLIENT = "203.0.113.9"
PASSWORD = "correct horse battery"
READ = (Scope.INBOX_READ,)


@pytest.fixture
def house() -> House:
    """An application whose first account has a password."""
    house = House(config_in_memory(accounts=AccountsOptions(password_cost=CHEAP_HASH)))
    run(house.assembly.accounts.sign_in.set_password(house.account, PASSWORD))
    return house


def log_in(house: House, name: str, password: str, client: str = CLIENT) -> Caller:
    """Log in as a program that reads mail."""
    caller: Caller = run(house.assembly.accounts.log_in.identify(name, password, client, READ))
    return caller


def test_a_key_is_a_password_for_any_name(house: House) -> None:
    """An API key opens the inbox of its account, whatever the name is."""
    for name in ("", "first", "nobody", "x@y.example"):
        assert log_in(house, name, house.key).account_id == house.account.id


def test_the_password_of_an_account(house: House) -> None:
    """Name and password of an account open its inbox with all rights."""
    caller = log_in(house, " first ", PASSWORD)
    assert caller.account_id == house.account.id
    assert not caller.rights.is_limited


@rows(("first", "wrong"), ("nobody", PASSWORD), ("", PASSWORD), ("first", "mck_wrong"))
def test_a_wrong_password_is_rejected(house: House, name: str, password: str) -> None:
    """A wrong name, password or key is rejected, without saying which names exist."""
    with pytest.raises(InvalidCredentials) as caught:
        log_in(house, name, password)
    assert name not in str(caught.value).split() or not name


def test_a_key_needs_the_scope(house: House) -> None:
    """A key without the scope of the protocol cannot log in."""
    issued = house.assembly.accounts.keep.issue_key(
        house.account, "", rights=make_rights(["inbox:write"])
    )
    with pytest.raises(NotPermitted, match="inbox:read"):
        log_in(house, "", run(issued).secret)


def test_a_disabled_account_cannot_log_in(house: House) -> None:
    """The password of a disabled account is rejected, also if it was verified before."""
    other = house.add_account("second")
    accounts = house.assembly.accounts
    run(accounts.sign_in.set_password(other, PASSWORD))
    log_in(house, "second", PASSWORD)
    run(accounts.keep.disable(other))
    with pytest.raises(InvalidCredentials, match="disabled"):
        log_in(house, "second", PASSWORD)


def test_guesses_are_limited_for_a_name(house: House) -> None:
    """After some wrong passwords, the right one is rejected for a while, as on the pages."""
    for _ in range(PER_NAME_AND_ADDRESS.per_minute):
        with pytest.raises(InvalidCredentials):
            log_in(house, "first", "wrong")
    with pytest.raises(LimitExceeded):
        log_in(house, "first", PASSWORD)
    with pytest.raises(ExpectedFailure):
        run(house.assembly.accounts.sign_in.sign_in("first", PASSWORD, CLIENT))
    house.pass_time(60)
    log_in(house, "first", PASSWORD)


def test_wrong_keys_are_limited_for_an_address(house: House) -> None:
    """Wrong keys use up the attempts of their address; valid keys still work from there."""
    for _ in range(PER_ADDRESS.per_minute):
        with pytest.raises(InvalidCredentials):
            log_in(house, "", "mck_wrong")
    with pytest.raises(LimitExceeded):
        log_in(house, "", "mck_wrong")
    log_in(house, "", house.key)
    with pytest.raises(InvalidCredentials):
        log_in(house, "", "mck_wrong", "198.51.100.7")


def test_polling_uses_no_attempts(house: House) -> None:
    """A program that logs in with the right password many times is not limited."""
    for _ in range(PER_NAME_AND_ADDRESS.per_day + 1):
        log_in(house, "first", PASSWORD)


def test_a_changed_password_is_not_remembered(house: House) -> None:
    """A password that was verified before is refused as soon as it is changed."""
    log_in(house, "first", PASSWORD)
    run(house.assembly.accounts.sign_in.set_password(house.account, "another horse battery"))
    with pytest.raises(InvalidCredentials):
        log_in(house, "first", PASSWORD)


def test_a_password_that_needs_a_passkey_logs_no_program_in(house: House) -> None:
    """Once a passkey is required, a program needs an API key, and running logins end."""
    accounts, account_id = house.assembly.accounts, house.account.id
    caller = log_in(house, "first", PASSWORD)
    ended: list[ExpectedFailure] = []
    passkey = Passkey("id", account_id, b"c", b"key", 0, "Phone", house.assembly.runtime.now())
    result_of(accounts.passkey_store.add_passkey(passkey, noted()))
    with accounts.log_in.watched(caller, ended.append):
        result_of(accounts.passkey_store.require_passkey(account_id, noted(), is_required=True))
        run(accounts.ended_access.check())
    assert len(ended) == 1
    for _ in range(2):
        with pytest.raises(InvalidCredentials, match="passkey"):
            log_in(house, "first", PASSWORD)
    with pytest.raises(InvalidCredentials, match="no account has"):
        log_in(house, "first", "wrong")
    assert log_in(house, "first", house.key).account_id == account_id


def test_passwords_that_are_switched_off_log_no_program_in() -> None:
    """Without passwords, only API keys log in."""
    options = AccountsOptions(password_cost=CHEAP_HASH, passwords=False)
    house = House(config_in_memory(accounts=options))
    run(house.assembly.accounts.sign_in.set_password(house.account, PASSWORD))
    with pytest.raises(InvalidCredentials):
        log_in(house, "first", PASSWORD)
    assert log_in(house, "first", house.key).account_id == house.account.id


def test_a_project_has_no_password(house: House) -> None:
    """A project is opened with its keys only, by no password of a member."""
    accounts = house.assembly.accounts
    project = run(accounts.projects.create(house.account, "shop"))
    with pytest.raises(InvalidCredentials):
        log_in(house, "shop", PASSWORD)
    assert log_in(house, "first", house.issue_key(project)).account_id == project.id


@rows("page", "program")
def test_guesses_do_not_lock_the_owner_out(house: House, before: str) -> None:
    """Whoever has signed in before logs in while others at the same address guess passwords."""
    if before == "page":
        run(house.assembly.accounts.sign_in.sign_in("first", PASSWORD, CLIENT))
    else:
        log_in(house, "first", PASSWORD)
    for _ in range(PER_ADDRESS.per_minute + 1):
        with pytest.raises((InvalidCredentials, LimitExceeded)):
            log_in(house, "first", "guess")
    with pytest.raises(LimitExceeded):
        log_in(house, "first", "guess")
    assert log_in(house, "first", PASSWORD).account_id == house.account.id

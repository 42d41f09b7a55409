"""Sessions of mail programs end within seconds when the caller loses its access."""

from collections.abc import Callable, Iterator

import pytest

from mailcheck.assembly.accounts import account_services
from mailcheck.core.accounts import Account
from mailcheck.core.instants import MINUTE, Instant
from mailcheck.core.projects import Role
from mailcheck.operations.accounts.authenticate import REVOKED_KEYS_INTERVAL
from tests.house import House, config_in_memory, mail, run
from tests.imap import imap_talk, pop3_talk
from tests.web.dashboard.conftest import CHEAP

PASSWORD = "correct horse battery"

Session = Callable[[House, str, str], bool]


@pytest.fixture
def house() -> Iterator[House]:
    """An application that looks for lost access, with a second account that has a password."""
    house = House(config_in_memory(accounts=CHEAP))
    house.add_account("bob")
    services = account_services(house.assembly.runtime, house.assembly.accounts)
    for service in services:
        service.startService()
    yield house
    for service in services:
        service.stopService()
    house.close()


@pytest.fixture
def bob(house: House) -> Account:
    """The second account, with a password and a mail."""
    bob: Account = run(house.assembly.accounts.keep.find("bob"))
    run(house.assembly.accounts.sign_in.set_password(bob, PASSWORD))
    house.receive(house.address(account=bob), raw=mail("secret"))
    return bob


class OpenSessions:
    """An IMAP client in IDLE and a POP3 client, which have logged in alike."""

    def __init__(self, house: House, name: str, password: str) -> None:
        self._house = house
        self.imap = imap_talk.Talk(house)
        self._log_in = f'"{name}" "{password}"'.encode()
        self.are_open = b"x OK" in self.imap.do(b"LOGIN " + self._log_in)
        self.imap.do(b"SELECT INBOX")
        self.imap.do(b"IDLE")
        self.pop3 = pop3_talk.Talk(house)
        said = self.pop3.say(b"USER " + name.encode(), b"PASS " + password.encode())
        self.are_open = self.are_open and b"+OK logged in" in said

    def end(self) -> None:
        """Check that both end at the next look, with a reason and without mail."""
        assert not self.imap.is_closing
        assert not self.pop3.is_closing
        self.imap.take()
        self._house.clock.advance(REVOKED_KEYS_INTERVAL)
        assert self.imap.take().startswith(b"* BYE the ")
        assert self.imap.is_closing
        assert self.pop3.take().startswith(b"-ERR [AUTH] the ")
        assert self.pop3.is_closing
        for talk in (self.imap, self.pop3):
            assert talk.send(b"a UID FETCH 1:* BODY[]\r\nRETR 1\r\n") == b""

    def stay(self) -> None:
        """Check that both go on."""
        self._house.clock.advance(2 * REVOKED_KEYS_INTERVAL)
        assert b" OK " in self.imap.send(b"DONE\r\n")
        assert self.pop3.say(b"STAT").startswith(b"+OK ")


def delete(house: House, account: Account) -> None:
    """Delete an account."""
    run(house.assembly.accounts.keep.delete(account))


def disable(house: House, account: Account) -> None:
    """Disable an account."""
    run(house.assembly.accounts.keep.disable(account))


def revoke(house: House, account: Account) -> None:
    """Revoke the keys of an account."""
    keep = house.assembly.accounts.keep
    for key in run(keep.list_keys(account)):
        run(keep.revoke_key(key.id))


def set_password(house: House, account: Account) -> None:
    """Set another password."""
    run(house.assembly.accounts.sign_in.set_password(account, "another horse battery"))


@pytest.mark.parametrize("lose", [delete, disable, revoke])
def test_a_key_that_loses_its_access(
    house: House, bob: Account, lose: Callable[[House, Account], None]
) -> None:
    """Sessions of a key end when it is revoked, and when its account is disabled or deleted."""
    other, sessions = (OpenSessions(house, "any", key) for key in (house.key, house.issue_key(bob)))
    assert sessions.are_open
    lose(house, bob)
    sessions.end()
    other.stay()


def test_a_key_that_expires(house: House, bob: Account) -> None:
    """Sessions of a key end when it expires."""
    soon = Instant(house.assembly.runtime.now() + MINUTE)
    sessions = OpenSessions(house, "any", house.issue_key(bob, expires_at=soon))
    house.clock.advance(58)
    sessions.end()


@pytest.mark.parametrize("lose", [delete, disable, set_password])
def test_a_password_that_loses_its_access(
    house: House, bob: Account, lose: Callable[[House, Account], None]
) -> None:
    """Sessions of a password end when it is changed, or its account is disabled or deleted."""
    sessions = OpenSessions(house, "bob", PASSWORD)
    assert sessions.are_open
    lose(house, bob)
    sessions.end()


def test_projects(house: House, bob: Account) -> None:
    """A project is read with its keys only, so a former member has no session in it.

    Sessions of its keys end when they are revoked or the project is deleted.
    """
    accounts = house.assembly.accounts
    project = run(accounts.projects.create(house.account, "shop"))
    run(accounts.projects.set_member(project, bob, Role.READER))
    assert not OpenSessions(house, "shop", PASSWORD).are_open
    house.receive(house.address(account=project))
    house.receive(house.address(account=project))
    own = OpenSessions(house, "bob", PASSWORD)
    assert own.pop3.say(b"STAT").startswith(b"+OK 1 "), "the inbox of the person"
    with_key = OpenSessions(house, "bob", house.issue_key(project))
    assert with_key.pop3.say(b"STAT").startswith(b"+OK 2 ")
    run(accounts.projects.remove_member(project, bob.id))
    own.stay()
    delete(house, project)
    with_key.end()

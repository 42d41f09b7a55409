"""Rejected mail of strangers uses a limited number of stored rows."""

from functools import partial

import pytest
from twisted.internet.defer import maybeDeferred

from mailcheck.core.addresses import parse_mailbox
from mailcheck.core.errors import FaultMet
from mailcheck.core.identifiers import AccountId
from mailcheck.core.instants import BEGINNING
from mailcheck.core.messages import Recipient, Refusal, Session
from mailcheck.operations.inbox.receive_mail import ReceiveMail
from mailcheck.store.mail_store import MAX_REFUSALS
from tests.house import House, config_in_memory, result_of

pytestmark = pytest.mark.attack

SESSION = Session("192.0.2.66", "client.example", is_extended=True)


@pytest.fixture
def house() -> House:
    """A house with one account."""
    return House(config_in_memory())


def kept(house: House) -> list[Refusal]:
    """Return all stored rejections of the account, newest first."""
    account_id = AccountId(house.account.id)
    found: list[Refusal] = result_of(
        house.assembly.mail.store.recent_refusals(account_id, BEGINNING, 10**6)
    )
    return found


@pytest.mark.parametrize("tag", ["fault.rcpt-451", "Fault.RCPT-550", "fault.quota"])
def test_refusals_on_request_are_one_row_a_minute(house: House, tag: str) -> None:
    """Repeated faults of a tag on request are one row a minute, with a count."""
    receiver: ReceiveMail = house.receiver
    address = f"{house.account.mailbox_name}+{tag}@mailcheck.example"
    for number in range(2):
        for attempt in range(300):
            written = address.upper() if attempt % 2 else address
            accept = partial(receiver.accept_recipient, SESSION, f"s{attempt}@client.example")
            with pytest.raises(FaultMet):
                result_of(maybeDeferred(accept, parse_mailbox(written)))
        house.pass_time(0)
        assert [one.count for one in kept(house)] == [300] * (number + 1)
        house.pass_time(60)
    newest, before = kept(house)
    assert newest.position == 600
    assert before.position == 300


def test_refusals_of_any_tags_are_bounded(house: House) -> None:
    """A stranger who uses another tag each time fills only a limited number of rows a minute."""
    for number in range(3 * MAX_REFUSALS):
        recipient = Recipient(f"dev-a+{number}@x", AccountId(house.account.id), f"t{number}")
        house.receiver.record_refusal(SESSION, "", (recipient,), "the inbox is full")
    house.pass_time(0)
    found = kept(house)
    assert len(found) == MAX_REFUSALS
    assert found[0].tag == f"t{3 * MAX_REFUSALS - 1}"

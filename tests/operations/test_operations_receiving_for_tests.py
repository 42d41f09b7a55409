"""Mail to test addresses: valid addresses, rejections and their replies."""

import pytest
from twisted.internet.defer import Deferred, maybeDeferred

from mailcheck.config.options import InboxOptions
from mailcheck.core.addresses import parse_mailbox
from mailcheck.core.deliverability_tests import State, local_part_of
from mailcheck.core.filters import MessageFilter
from mailcheck.core.identifiers import DeliverabilityTestId, DeliveryId
from mailcheck.core.instants import instant_of
from mailcheck.core.messages import Envelope, Recipient, Session
from tests.house import House, HouseWithAnalyst, config_in_memory, mail, result_of, run

STRANGER = Session("192.0.2.7", "mx.example.com", True)


@pytest.fixture
def house() -> House:
    """A house with an alias, whose analyses do not run."""
    return HouseWithAnalyst(config_in_memory(inbox=InboxOptions(aliases=("alias.example",))))


def generate(house: House) -> DeliverabilityTestId:
    """Create a test."""
    test = run(house.assembly.tests.operations.manage.create(house.account.id))
    return DeliverabilityTestId(test.id)


def state(house: House, test_id: DeliverabilityTestId) -> State:
    """Return the state of a test."""
    found = run(house.assembly.tests.operations.manage.one(house.account.id, test_id))
    state: State = found.test.state
    return state


def accept(house: House, address: str, session: Session = STRANGER) -> Recipient:
    """Send RCPT for an address."""
    recipient: Recipient = result_of(
        maybeDeferred(house.assembly.receiver.accept_recipient, session, "", parse_mailbox(address))
    )
    return recipient


def deliver(
    house: House, *recipients: Recipient, raw: bytes | None = None
) -> "Deferred[DeliveryId]":
    """Deliver a mail."""
    return maybeDeferred(
        house.assembly.receiver.deliver, STRANGER, Envelope("", recipients), raw or mail()
    )


def messages(house: House) -> int:
    """Count the messages of the first account."""
    store = house.assembly.mail.store
    now = house.assembly.runtime.now()
    found, _ = result_of(store.oldest_matches(house.account.id, MessageFilter(), now, 100))
    return len(found)


@pytest.mark.parametrize("domain", ["mailcheck.example", "MAILCHECK.example.", "alias.example"])
@pytest.mark.parametrize("is_upper", [False, True])
def test_the_address(house: House, domain: str, is_upper: bool) -> None:
    """A test has its address in every domain of the server, in upper and lower case."""
    test_id = generate(house)
    local_part = local_part_of(test_id)
    address = f"{local_part.upper() if is_upper else local_part}@{domain}"
    assert accept(house, address) == Recipient(address, house.account.id, "", test_id)
    assert state(house, test_id) is State.PENDING
    result_of(deliver(house, accept(house, address)))
    assert state(house, test_id) is State.PROCESSING


def test_inbox_waits_are_not_notified(house: House) -> None:
    """Mail for a test does not notify waits for inbox mail."""
    woken: list[str] = []
    house.assembly.mail.notifications.listen(woken.append)
    result_of(deliver(house, accept(house, f"test-{generate(house)}@mailcheck.example")))
    assert woken == []
    test_id = generate(house)
    address = f"test-{test_id}@mailcheck.example"
    result_of(deliver(house, accept(house, address), accept(house, house.address())))
    assert woken == [house.account.id]


def test_refusals(house: House) -> None:
    """Rejected mail for a test is not a rejection of the account's inbox."""
    recipients = (
        accept(house, f"test-{generate(house)}@mailcheck.example"),
        accept(house, house.address()),
    )
    house.assembly.receiver.record_refusal(STRANGER, "", recipients, "552 too large")
    store = house.assembly.mail.store
    found = result_of(store.recent_refusals(house.account.id, instant_of(0), 10))
    assert [refusal.recipient for refusal in found] == [house.address()]


def test_a_full_inbox_takes_tests(house: House) -> None:
    """A full inbox does not reject mail for tests."""
    house.account = house.add_account("small", max_messages=0)
    test_id = generate(house)
    result_of(deliver(house, accept(house, f"test-{test_id}@mailcheck.example")))
    assert state(house, test_id) is State.PROCESSING

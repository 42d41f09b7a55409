"""Deliverability tests as a sender sees them: real bytes to the whole house, and its replies."""

import base64
from collections.abc import Iterator

import pytest

from mailcheck.assembly.running.services import mail_factory
from mailcheck.connections.policies import offer_no_tls
from mailcheck.core.deliverability_tests import DeliverabilityTest, State
from mailcheck.core.filters import MessageFilter
from tests.house import House, HouseWithAnalyst, config_in_memory, result_of, run
from tests.smtp.talk import PUBLIC_IP, Talk

MAIL = b"MAIL FROM:<ann@sender.example>\r\n"
BODY = b"From: ann@sender.example\r\nSubject: Hello\r\n\r\nText\r\n.\r\n"
OTHER_BODY = b"From: ann@sender.example\r\nSubject: Again\r\n\r\nText\r\n.\r\n"


class Sender:
    """A client of a house whose analyses never end."""

    def __init__(self, house: House) -> None:
        self.house = house
        run(house.assembly.tests.runner.start())

    def connect(self, *, is_submission: bool = False, client_ip: str = PUBLIC_IP) -> Talk:
        """Connect and send EHLO."""
        factory = mail_factory(self.house.assembly, offer_no_tls, is_submission=is_submission)
        talk = Talk(factory, client_ip)
        talk.say(b"EHLO sender.example\r\n")
        return talk

    def generate(self) -> tuple[DeliverabilityTest, bytes]:
        """Create a test; return it with its address."""
        operations = self.house.assembly.tests.operations
        test: DeliverabilityTest = run(operations.manage.create(self.house.account.id))
        return test, f"test-{test.id}@mailcheck.example".encode()

    def state(self, test: DeliverabilityTest) -> State:
        """Return the state of a test."""
        find = self.house.assembly.tests.operations.manage
        state: State = run(find.one(self.house.account.id, test.id)).test.state
        return state

    def messages(self) -> int:
        """Count the messages of the inbox."""
        store, now = self.house.assembly.mail.store, self.house.assembly.runtime.now()
        found, _ = result_of(store.oldest_matches(self.house.account.id, MessageFilter(), now, 9))
        return len(found)


@pytest.fixture
def sender() -> Iterator[Sender]:
    """A sender for a house."""
    house = HouseWithAnalyst(config_in_memory())
    sender = Sender(house)
    yield sender
    run(house.assembly.tests.runner.stop())


def rcpt(*addresses: bytes) -> bytes:
    """Return a mail's commands up to DATA, pipelined."""
    return MAIL + b"".join(b"RCPT TO:<%s>\r\n" % one for one in addresses) + b"DATA\r\n"


def test_the_first_mail(sender: Sender) -> None:
    """At the 250 the test is in processing, while its analysis has not ended."""
    test, address = sender.generate()
    talk = sender.connect()
    assert talk.codes(rcpt(address), BODY) == ["250", "250", "354", "250"]
    assert sender.state(test) is State.PROCESSING
    mail = run(sender.house.assembly.tests.operations.manage.mail(sender.house.account.id, test.id))
    assert mail.raw_message == BODY[:-3]
    assert mail.transcript[-2:] == ("C: DATA", "S: 354 End data with <CR><LF>.<CR><LF>")


def test_mails_after_the_first(sender: Sender) -> None:
    """The same mail again gets 250; another gets 550 that says where to create a new test."""
    _, address = sender.generate()
    talk = sender.connect()
    talk.say(rcpt(address), BODY)
    assert talk.codes(rcpt(address), BODY) == ["250", "250", "354", "250"]
    talk.say(rcpt(address))
    assert talk.say(OTHER_BODY) == (
        b"550 5.2.1 this test has already received its mail; "
        b"create a new test at http://127.0.0.1:8080\r\n"
    )
    assert sender.messages() == 0


def test_addresses_that_take_nothing(sender: Sender) -> None:
    """An address that never existed, has expired or has a tag is rejected at RCPT."""
    _, address = sender.generate()
    sender.house.clock.advance(3600)
    fresh = sender.generate()[1].replace(b"@", b"+tag@")
    talk = sender.connect()
    talk.say(MAIL)
    assert talk.say(b"RCPT TO:<%s>\r\n" % address) == (
        b"550 5.1.1 this test address has expired; create a new test at http://127.0.0.1:8080\r\n"
    )
    assert talk.codes(b"RCPT TO:<test-aaaaaaaaaaaaa@mailcheck.example>\r\n") == ["550"]
    assert talk.codes(b"RCPT TO:<%s>\r\n" % fresh) == ["550"]
    assert talk.codes(b"DATA\r\n") == ["554"]


def test_a_test_and_an_inbox(sender: Sender) -> None:
    """One mail for both is one transaction: at the 250 both have it, or neither."""
    test, address = sender.generate()
    inbox = sender.house.address("tag").encode()
    talk = sender.connect()
    assert talk.codes(rcpt(inbox, address), BODY)[-1] == "250"
    assert (sender.messages(), sender.state(test)) == (1, State.PROCESSING)
    assert talk.codes(rcpt(inbox, address), OTHER_BODY)[-1] == "550"
    assert talk.codes(rcpt(inbox, address), BODY)[-1] == "250"
    assert sender.messages() == 1


def test_a_program_that_authenticates(sender: Sender) -> None:
    """A test address works for authenticated clients, too; no key is in its transcript."""
    test, address = sender.generate()
    talk = sender.connect(is_submission=True, client_ip="127.0.0.1")
    key = sender.house.key
    secret = base64.b64encode(b"\0user\0" + key.encode())
    assert talk.codes(b"AUTH PLAIN " + secret + b"\r\n") == ["235"]
    assert talk.codes(rcpt(address, b"someone@customer.example"), BODY)[-1] == "250"
    assert (sender.messages(), sender.state(test)) == (1, State.PROCESSING)
    mail = run(sender.house.assembly.tests.operations.manage.mail(sender.house.account.id, test.id))
    text = "\n".join(mail.transcript)
    assert "C: AUTH ..." in text
    assert key not in text
    assert secret.decode() not in text
    assert "customer" not in text


def test_a_failure_of_the_store(sender: Sender) -> None:
    """If the store fails, RCPT and the end of the mail get a temporary error."""
    test, address = sender.generate()
    talk = sender.connect()
    talk.say(rcpt(address))
    result_of(sender.house.assembly.runtime.engine.close())
    assert talk.codes(BODY) == ["451"]
    assert talk.codes(MAIL, b"RCPT TO:<%s>\r\n" % address) == ["250", "451"]
    assert test.state is State.PENDING

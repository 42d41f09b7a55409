"""Replies of receivers at the end of a message, while the mail is stored with its report."""

from collections.abc import Iterator
from typing import Any

import pytest
from twisted.internet.defer import Deferred, maybeDeferred

from mailcheck.core.addresses import parse_mailbox
from mailcheck.core.deliverability_tests import ReceivedMail
from mailcheck.core.errors import FaultMet, RecipientUnknown
from mailcheck.core.faults import Fault, Meeting
from mailcheck.core.messages import Envelope, Recipient
from mailcheck.operations.deliverability.reply_as_receiver import PATIENCE
from mailcheck.operations.inbox import receive_mail
from mailcheck.ports.mail_receiver import ReceiverReply
from tests.fakes.analyst import Analyst
from tests.house import result_of, run
from tests.operations.scored_mails import MAIL, received
from tests.web.scored_house import ScoredHouse

UNSIGNED = received(MAIL)


@pytest.fixture
def scored() -> Iterator[ScoredHouse]:
    """Create a house whose sender passes neither SPF nor DKIM with an unsigned mail."""
    house = ScoredHouse()
    house.zone.publish("sender.example", "TXT", "v=spf1 -all")
    yield house
    house.close()


def accept(scored: ScoredHouse, address: str) -> Recipient:
    """Send RCPT, and raise the error that the SMTP server would see."""
    receiver = scored.house.assembly.receiver
    accepted: Recipient = result_of(
        maybeDeferred(
            receiver.accept_recipient,
            UNSIGNED.session,
            "ann@sender.example",
            parse_mailbox(address),
        )
    )
    return accepted


def find_fault(scored: ScoredHouse, accepted: Recipient) -> Fault:
    """Return the fault of a mail to a test, or to an inbox from a client that signed in."""
    receiver = scored.house.assembly.receiver
    caller = result_of(receiver.authenticate("", scored.house.key, "192.0.2.7"))
    finding = receiver.find_fault(None if accepted.test_id else caller, (accepted,))
    assert finding is not None
    found: Fault = result_of(finding)
    return found


def send(
    scored: ScoredHouse, address: str, mail: ReceivedMail = UNSIGNED
) -> "Deferred[ReceiverReply]":
    """Send a mail as the SMTP server does, and return the pending reply of the receiver."""
    receiver, accepted = scored.house.assembly.receiver, accept(scored, address)
    assert find_fault(scored, accepted).meeting is Meeting.ANSWERED_AS
    envelope = Envelope(mail.envelope_sender, (accepted,), mail.transcript)
    delivery_id = result_of(receiver.deliver(mail.session, envelope, mail.raw_message))
    return receiver.reply_as_receiver(accepted, delivery_id)


def reply_to(scored: ScoredHouse, address: str, mail: ReceivedMail = UNSIGNED) -> ReceiverReply:
    """Send a mail, and return the reply of the receiver."""
    pending = send(scored, address, mail)
    scored.house.pass_time(1)
    answer: ReceiverReply = result_of(pending)
    return answer


def tests_of(scored: ScoredHouse) -> Any:
    """Return the list of tests."""
    return scored.house.get("/test").json["tests"]


def test_a_mail_to_the_inbox(scored: ScoredHouse) -> None:
    """The mail is in the inbox, its report is stored, and the reply is that of the report."""
    found = reply_to(scored, scored.house.address("Receiver.Gmail"))
    assert (found.code, found.enhanced) == (550, "5.7.26")
    assert found.text.startswith("Unauthenticated email from sender.example")
    assert found.note.startswith("Gmail: reject. DMARC fails")
    assert scored.house.get("/inbox").json["total"] == 1
    (test,) = tests_of(scored)
    assert test["status"] == "completed"
    (reply,) = (
        one for one in scored.get(test["testId"])["report"]["replies"] if one["receiver"] == "gmail"
    )
    assert reply["reply"]["text"] == found.text


def test_a_good_mail_is_accepted(scored: ScoredHouse) -> None:
    """A mail that meets all rules gets 250, with the receiver in the note."""
    scored.zone.publish("sender.example", "TXT", "v=spf1 mx -all")
    found = reply_to(scored, scored.house.address("receiver.strict"), received())
    assert (found.code, found.enhanced, found.text) == (250, "2.0.0", "OK")
    assert "A strict receiver by the RFCs: accept." in found.note


def test_a_stranger_gets_no_reply_of_a_receiver(scored: ScoredHouse) -> None:
    """The tag of an inbox address works for signed-in clients only; strangers cause no analysis."""
    recipient = accept(scored, scored.house.address("receiver.gmail"))
    assert scored.house.assembly.receiver.find_fault(None, (recipient,)) is None


def test_a_mail_to_a_test_address(scored: ScoredHouse) -> None:
    """A test address with the tag of a receiver is that of the test; its mail has one report."""
    test_id = scored.generate()
    address = scored.address(test_id).replace("@", "+receiver.yahoo@")
    for _ in range(2):  # the second one is the sender's retry
        found = reply_to(scored, address)
        assert (found.code, found.enhanced) == (554, "5.7.9")
    (test,) = tests_of(scored)
    assert (test["testId"], test["status"]) == (test_id, "completed")
    for tag in ("receiver.example", "x"):
        with pytest.raises(RecipientUnknown):
            accept(scored, scored.address(test_id).replace("@", f"+{tag}@"))


def test_an_unknown_reply_is_an_acceptance_with_its_reason(scored: ScoredHouse) -> None:
    """Mail from a private address gets 250, and the note says that the reply is unknown."""
    mail = received(MAIL, client_ip="10.0.0.7")
    found = reply_to(scored, scored.house.address("receiver.gmail"), mail)
    assert found.code == 250
    assert "Gmail: unknown. The mail came from 10.0.0.7" in found.note


def test_replies_of_an_inbox_are_limited(
    scored: ScoredHouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Beyond the daily limit the mail gets a temporary refusal and is not stored."""
    monkeypatch.setattr(receive_mail, "RECEIVER_REPLIES", 1)
    address = scored.house.address("receiver.gmail")
    reply_to(scored, address)
    with pytest.raises(FaultMet) as caught:
        find_fault(scored, accept(scored, address))
    assert caught.value.reply == (451, "4.3.0")
    assert "more than 1 replies" in str(caught.value)


def test_an_analysis_that_does_not_end_is_temporary(logged_failures: list[Any]) -> None:
    """A report that is late, or a service that stops, gives a temporary failure."""
    scored = ScoredHouse(analyse=Analyst())
    address = scored.house.address("receiver.gmail")
    late = send(scored, address)
    scored.house.pass_time(int(PATIENCE) + 1)
    found = result_of(late)
    assert (found.code, found.enhanced) == (451, "4.3.0")
    assert len(logged_failures) == 1
    stopped = send(scored, address)
    run(scored.house.assembly.tests.runner.stop())
    scored.house.assembly.tests.feeds.close()
    assert result_of(stopped).code == 451
    scored.house.close()

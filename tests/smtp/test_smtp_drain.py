"""Stopping without losing a mail."""

from twisted.internet.defer import Deferred
from twisted.internet.error import ConnectionAborted
from twisted.python.failure import Failure

from tests.fakes.mail_receiver import FakeMailReceiver
from tests.smtp.talk import House


def fired(deferred: Deferred[None]) -> bool:
    """Return whether it has fired, without a failure."""
    results: list[None] = []
    deferred.addCallback(results.append)
    return bool(results)


def test_idle_clients_are_disconnected_at_once(house: House) -> None:
    """Clients without a mail in progress get 421 4.3.2; draining ends when all have left."""
    talks = [house.greeted(), house.connect()]
    talks[0].say(b"MAIL FROM:<s@client.example>\r\n")
    drained = house.factory.drain(30)
    for talk in talks:
        assert b"421 4.3.2 " in talk.heard()
        assert talk.is_closed
    assert not drained.called
    for talk in talks:
        talk.leave()
    assert fired(drained)
    assert house.clock.getDelayedCalls() == []


def test_draining_without_clients_ends_at_once(house: House) -> None:
    """A factory without connections does not wait."""
    assert fired(house.factory.drain(30))
    assert house.clock.getDelayedCalls() == []


def test_a_delivery_in_progress_is_answered_first() -> None:
    """The mail gets its reply, then the client is disconnected despite pipelined commands."""
    house = House(FakeMailReceiver(slow=frozenset({"deliver"})))
    talk = house.at_data()
    talk.say(b"hi\r\n.\r\nMAIL FROM:<s@client.example>\r\n")
    drained = house.factory.drain(30)
    assert talk.heard() == b""
    house.receiver.answer()
    assert talk.codes() == ["250", "421"]
    assert talk.is_closed
    talk.leave()
    assert fired(drained)


def test_a_message_in_progress_may_be_finished(house: House) -> None:
    """A client in the middle of DATA may finish it, and is disconnected right after it."""
    talk = house.at_data()
    talk.say(b"hi\r\n")
    house.factory.drain(30)
    assert talk.codes(b".\r\n") == ["250", "421"]
    assert house.messages == [b"hi\r\n"]


def test_after_the_grace_time_the_rest_is_aborted(house: House) -> None:
    """Clients that have not finished by then are disconnected, which ends draining."""
    talk = house.at_data()
    drained = house.factory.drain(30)
    house.clock.advance(29)
    assert not talk.transport.disconnected
    house.clock.advance(1)
    assert talk.transport.disconnected
    assert not drained.called
    talk.protocol.connectionLost(Failure(ConnectionAborted()))
    assert fired(drained)


def test_new_connections_are_rejected(house: House) -> None:
    """A connection that was accepted just before the port closed gets 421."""
    house.at_data()
    house.factory.drain(30)
    late = house.connect()
    assert late.heard().startswith(b"421 4.3.2 ")
    assert late.is_closed

"""A wait is answered at once when the daemon is overloaded, or the access of its caller ends."""

import pytest
from twisted.internet.defer import Deferred

from mailcheck.assembly.workers import Workers
from mailcheck.core.filters import MessageFilter
from mailcheck.operations.inbox.contents import LARGE, OF_ACCOUNT, WAITING
from mailcheck.operations.inbox.wait_for_message import GRACE
from mailcheck.workers.scheduling import DirectWorker
from tests.house import House, config_in_memory, mail, run
from tests.web.mcp.agent import HANDSHAKE, STATELESS, Agent, failure_of
from tests.web.workers import FaultyWorker

LARGE_MAIL = mail(body="x" * LARGE)


@pytest.fixture
def content() -> FaultyWorker:
    """The process that derives contents, which may be busy."""
    return FaultyWorker()


@pytest.fixture
def busy(content: FaultyWorker) -> House:
    """A house with that process."""
    workers = Workers(DirectWorker(), DirectWorker(), content, large=content)
    return House(config_in_memory(), workers)


def end_access(house: House) -> None:
    """Revoke the key of the calls, and look for ended access as every half second."""
    (key,) = run(house.assembly.accounts.keep.list_keys(house.account))
    run(house.assembly.accounts.keep.revoke_key(key.id))
    run(house.assembly.accounts.ended_access.check())


@pytest.mark.parametrize("version", [HANDSHAKE, STATELESS])
def test_a_wait_for_a_content_ends_with_its_access(
    busy: House, content: FaultyWorker, version: str
) -> None:
    """A wait that has found its mail, but not read it yet, is answered when its access ends."""
    content.is_slow = True
    reply = Agent(busy, version=version).call("wait_for_message", {"tag": "a", "timeout": 60})
    busy.receive(busy.address("a"), raw=LARGE_MAIL)
    busy.pass_time(1)
    assert not reply.is_over
    end_access(busy)
    assert (reply.is_over, reply.status) == (True, 401)
    content.catch_up()


def test_every_call_ends_with_its_access(busy: House, content: FaultyWorker) -> None:
    """A call that waits for a busy process is answered when its access ends."""
    busy.receive(raw=b"From: a@b.example\r\nContent-Type: text/html\r\n\r\n<p>Hello</p>\r\n")
    agent = Agent(busy)
    cursor = agent.use("list_messages")["cursor"]
    content.is_slow = True
    reply = agent.call("wait_for_message", {"after": "c0"})
    assert (cursor, reply.is_over) == ("c1", False)
    end_access(busy)
    assert (reply.is_over, reply.status) == (True, 401)
    content.catch_up()


def test_a_wait_is_answered_while_too_many_mails_are_read(house: House) -> None:
    """If no more large mails can be read, a wait fails at once, with the cursor to go on from."""
    house.receive(house.address("a"), raw=LARGE_MAIL)
    found = run(house.assembly.inbox.read.page(house.account.id, MessageFilter(), 1, 1))
    (large,) = (one.summary for one in found.messages)

    async def read() -> None:
        async with house.assembly.mail.mail_bytes.turn(large):
            await Deferred()

    reading = [Deferred.fromCoroutine(read()) for _ in range(OF_ACCOUNT + WAITING)]
    reply = Agent(house).call("wait_for_message", {"after": "c0", "timeout": 60})
    assert "too many large mails are being read" in failure_of(reply)
    assert "pass after=c0" in failure_of(reply)
    for one in reading:
        one.addErrback(lambda _: None)
        one.cancel()


def test_a_mail_that_is_not_read_in_time_is_said(busy: House, content: FaultyWorker) -> None:
    """A wait whose mail is not readable ends soon after its time, and does not call it missing."""
    content.is_slow = True
    reply = Agent(busy).call("wait_for_message", {"after": "c0", "timeout": 10})
    busy.receive(busy.address("a"), raw=LARGE_MAIL)
    busy.pass_time(10 + GRACE)
    assert "not derived in time" in failure_of(reply)
    assert "pass after=c0" in failure_of(reply)
    content.catch_up()

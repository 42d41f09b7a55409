"""Reading the bytes of mails: few large mails at a time, small ones at once."""

from collections.abc import Callable
from typing import Any, cast

import pytest
from msgspec.structs import replace
from twisted.internet.defer import Deferred
from twisted.internet.task import Clock

from mailcheck.core.errors import AttachmentNotFound, MessageNotFound, Overloaded
from mailcheck.core.identifiers import AccountId, DeliveryId
from mailcheck.core.messages import MessageSummary
from mailcheck.operations.inbox.contents import AT_ONCE, LARGE, OF_ACCOUNT, PATIENCE, MailBytes
from mailcheck.store.content_store import ContentStore
from tests.house import House, result_of

RAW = (
    b"MIME-Version: 1.0\r\nContent-Type: application/pdf; name=a.pdf\r\n"
    b"Content-Transfer-Encoding: base64\r\n\r\nJVBERg==\r\n"
)


class SlowStore:
    """A store that returns a mail when the test releases it."""

    def __init__(self) -> None:
        self.asked: list[Deferred[bytes | None]] = []

    def raw_message(self, delivery_id: DeliveryId) -> Deferred[bytes | None]:
        """Queue a read."""
        self.asked.append(Deferred())
        return self.asked[-1]


class SlowWorker:
    """A worker that runs a call when the test releases it."""

    def __init__(self) -> None:
        self.calls: list[tuple[Callable[[], Any], Deferred[Any]]] = []

    def run(self, call: Callable[[], Any], owner: str = "") -> Deferred[Any]:
        """Queue a call."""
        self.calls.append((call, Deferred()))
        return self.calls[-1][1]

    def go_on(self) -> None:
        """Run the next call."""
        call, result = self.calls.pop(0)
        result.callback(call())


class Desk:
    """The operation that reads mails, and the number of requested mails."""

    def __init__(self, house: House) -> None:
        house.receive(raw=RAW)
        message = house.get("/inbox/messages").json["messages"][0]
        loading = house.assembly.inbox.read.message(house.account.id, message["id"])
        self.summary: MessageSummary = result_of(Deferred.fromCoroutine(loading)).summary
        self.clock, self.store, self.worker = Clock(), SlowStore(), SlowWorker()
        worker = cast(Any, self.worker)
        self.mails = MailBytes(cast(ContentStore, self.store), worker, worker, self.clock)

    def of(self, owner: str, size: int = LARGE) -> MessageSummary:
        """Return a message of an account."""
        return replace(self.summary, account_id=AccountId(owner), size=size)

    def read(self, owner: str, size: int = LARGE) -> Deferred[bytes]:
        """Start to read a mail."""
        return Deferred.fromCoroutine(self.mails.whole(self.of(owner, size)))


@pytest.fixture
def desk(house: House) -> Desk:
    """A reader without requests."""
    return Desk(house)


def test_few_large_mails_are_in_memory(desk: Desk) -> None:
    """If many large mails are requested, few are in memory. The others follow in turn."""
    wanted = [desk.read(f"account {number}") for number in range(3 * AT_ONCE)]
    for number in range(3 * AT_ONCE):
        assert len(desk.store.asked) == min(number + AT_ONCE, 3 * AT_ONCE)
        desk.store.asked[number].callback(RAW)
    assert [result_of(raw) for raw in wanted] == [RAW] * 3 * AT_ONCE


def test_small_mails_are_read_at_once(desk: Desk) -> None:
    """A mail of ordinary size is read at once, however many large ones are requested."""
    for _ in range(20):
        desk.read("greedy")
    before = len(desk.store.asked)
    small = [desk.read("greedy", LARGE - 1) for _ in range(20)]
    for asked in desk.store.asked[before:]:
        asked.callback(RAW)
    assert [result_of(raw) for raw in small] == [RAW] * 20


def test_a_long_wait_ends_as_overload(desk: Desk) -> None:
    """A request without a permit in time fails with `Overloaded`, and not as an error."""
    wanted = [desk.read("greedy") for _ in range(OF_ACCOUNT + 1)]
    desk.clock.advance(PATIENCE)
    with pytest.raises(Overloaded):
        result_of(wanted[-1])


def test_a_mail_holds_its_permit_until_it_is_parsed(desk: Desk) -> None:
    """Large mails that wait to be parsed keep their permit, and release it afterwards."""
    wanted = [
        Deferred.fromCoroutine(desk.mails.attachment(desk.of("one"), name))
        for name in ("1", "none", "1", "1")
    ]
    for asked in desk.store.asked:
        asked.callback(RAW)
    assert len(desk.store.asked) == len(desk.worker.calls) == OF_ACCOUNT
    for number in range(OF_ACCOUNT):
        desk.worker.go_on()
        assert len(desk.store.asked) == OF_ACCOUNT + number + 1
    assert result_of(wanted[0]).data == b"%PDF"
    with pytest.raises(AttachmentNotFound):
        result_of(wanted[1])


def test_a_deleted_mail_releases_its_permit(desk: Desk) -> None:
    """A mail that was deleted meanwhile is not found, and its permit is released."""
    for number in range(2 * OF_ACCOUNT):
        wanted = desk.read("one")
        desk.store.asked[number].callback(None)
        with pytest.raises(MessageNotFound):
            result_of(wanted)

"""Reading, sharing and deleting messages, and how often their content is derived."""

from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial
from typing import Any

import pytest
from msgspec.structs import replace
from twisted.internet.defer import Deferred, fail

from mailcheck.assembly.workers import Workers
from mailcheck.core.cursors import Position
from mailcheck.core.errors import (
    AttachmentNotFound,
    InvalidParameter,
    MessageNotFound,
    ShareNotFound,
    StoreUnavailable,
    WorkerDied,
    WorkTooSlow,
)
from mailcheck.core.filters import MessageFilter
from mailcheck.core.identifiers import AccountId, format_share_token
from mailcheck.core.instants import Instant
from mailcheck.core.messages import MessageSummary, Recipient
from mailcheck.operations.inbox.contents import (
    ATTEMPTS,
    LARGE,
    OF_ACCOUNT,
    RECENT_CONTENTS,
    RECENT_SIZE,
    TOO_SLOW,
)
from mailcheck.operations.inbox.messages import BATCH, MessageList
from mailcheck.workers.scheduling import DirectWorker
from tests.engines.blocked_worker import BlockedWorker
from tests.engines.deliveries import delivery
from tests.house import House, config_in_memory, mail, result_of, run

ANY = MessageFilter()

NEVER = Instant(0)
"""A time before which no message expires."""

ATTACHMENT = (
    b"Content-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\n\r\ntext\r\n--b\r\n"
    b'Content-Disposition: attachment; filename="a.txt"\r\n\r\ninside\r\n--b--\r\n'
)


class ReadingRoom(House):
    """A house whose reads and parsing can be held and counted."""

    def __init__(self) -> None:
        self.reader, self.writer, self.content = BlockedWorker(), BlockedWorker(), BlockedWorker()
        self.large = BlockedWorker()
        super().__init__(
            config_in_memory(),
            Workers(self.writer, self.reader, self.content, large=self.large),
        )

    def newest(self) -> MessageSummary:
        """Return the newest message."""
        page = result_of(self.assembly.mail.store.page(self.account.id, ANY, NEVER, 1, 0))
        summary: MessageSummary = page.entries[0][0]
        return summary

    def page(self, wanted: MessageFilter = ANY, limit: int = 10, page: int = 1) -> MessageList:
        """Return a page of a list."""
        found: MessageList = run(
            self.assembly.inbox.read.page(self.account.id, wanted, limit, page)
        )
        return found


@pytest.fixture
def room() -> Iterator[ReadingRoom]:
    """A house to read in."""
    room = ReadingRoom()
    yield room
    room.close()


class FatalWorker(DirectWorker):
    """A worker that fails for every mail that contains a word, as a killed process does."""

    def __init__(self, error: Exception) -> None:
        self.error = error
        self.deaths = 0

    def run(self, call: Callable[[], Any], owner: str = "") -> Deferred[Any]:
        """Run the call, or fail."""
        if isinstance(call, partial) and b"poison" in call.args[0]:
            self.deaths += 1
            return fail(self.error)
        return super().run(call)


class TestContentsThatFail:
    """A mail whose content cannot be derived hides no other mail."""

    def test_poison_is_listed_without_links(self) -> None:
        """A mail that kills each worker is listed with the others, without content."""
        worker = FatalWorker(WorkerDied("the content process has died"))
        with closing(
            House(config_in_memory(), Workers(DirectWorker(), DirectWorker(), worker))
        ) as house:
            house.receive(raw=mail(subject="Good"))
            house.receive(raw=mail(subject="Bad", body="poison https://example.com/verify"))
            page = run(house.assembly.inbox.read.page(house.account.id, ANY, 10, 1))
            assert [one.summary.header.subject for one in page.messages] == ["Bad", "Good"]
            assert page.messages[0].extracted.links == ()
            assert page.messages[1].extracted.codes == ("482913",)
            assert worker.deaths == ATTEMPTS
            bad = page.messages[0].summary
            message = run(house.assembly.inbox.read.message(house.account.id, bad.id))
            assert "could not be parsed" in message.content.problems[0]
            assert b"poison" in run(house.assembly.inbox.read.raw_message(house.account.id, bad.id))
            assert (
                result_of(house.assembly.mail.content_store.find_content(bad.delivery_id)) is None
            )

    def test_a_mail_that_takes_too_long(self) -> None:
        """A mail that exceeds the time of its worker is tried once, and that result is stored."""
        worker = FatalWorker(WorkTooSlow("it took the content process longer than 20 seconds"))
        with closing(
            House(config_in_memory(), Workers(DirectWorker(), DirectWorker(), worker))
        ) as house:
            house.receive(raw=mail(subject="Bad", body="poison"))
            page = run(house.assembly.inbox.read.page(house.account.id, ANY, 10, 1))
            (listed,) = page.messages
            house.pass_time(1)
            kept = result_of(
                house.assembly.mail.content_store.find_content(listed.summary.delivery_id)
            )
            assert kept.problems == (TOO_SLOW,)
            assert worker.deaths == 1

    def test_a_stopped_worker_is_no_verdict(self) -> None:
        """While the daemon stops, deriving content fails with `StoreUnavailable`."""
        worker = FatalWorker(StoreUnavailable("the content process has been stopped"))
        with closing(
            House(config_in_memory(), Workers(DirectWorker(), DirectWorker(), worker))
        ) as house:
            house.receive(raw=mail(body="poison"))
            with pytest.raises(StoreUnavailable):
                run(house.assembly.inbox.read.page(house.account.id, ANY, 10, 1))


class TestContents:
    """Contents are derived once."""

    def test_derived_once_and_kept(self, room: ReadingRoom) -> None:
        """The content is derived for the first reader. Later readers get the stored content."""
        delivery_id = room.receive()
        contents = room.assembly.mail.contents
        first = run(contents.of(delivery_id))
        assert first.codes == ("482913",)
        assert run(contents.of(delivery_id)) is first
        assert room.content.calls == 1
        assert result_of(room.assembly.mail.content_store.find_content(delivery_id)) == first

    def test_derived_once_for_concurrent_readers(self, room: ReadingRoom) -> None:
        """Readers that arrive while the content is derived wait for the same result."""
        delivery_id = room.receive()
        contents = room.assembly.mail.contents
        room.content.hold_calls()
        asked = [Deferred.fromCoroutine(contents.of(delivery_id)) for _ in range(5)]
        room.content.let_go()
        assert len({id(result_of(one)) for one in asked}) == 1
        assert room.content.calls == 1

    def test_not_derived_again(self, room: ReadingRoom) -> None:
        """Content that left the cache is read from the store, and is not derived again."""
        deliveries = [room.receive() for _ in range(RECENT_CONTENTS + 1)]
        contents = room.assembly.mail.contents
        for delivery_id in deliveries:
            run(contents.of(delivery_id))
        calls, reads = room.content.calls, room.reader.calls
        for delivery_id in deliveries[1:]:
            run(contents.of(delivery_id))
        assert room.reader.calls == reads
        run(contents.of(deliveries[0]))
        assert room.reader.calls == reads + 1
        assert room.content.calls == calls

    def test_large_contents_are_not_kept_in_memory(self, room: ReadingRoom) -> None:
        """Large content is read from the store each time, so that memory stays bounded."""
        delivery_id = room.receive(raw=mail(body="x" * (RECENT_SIZE + 10)))
        contents = room.assembly.mail.contents
        run(contents.of(delivery_id))
        reads = room.reader.calls
        run(contents.of(delivery_id))
        assert room.reader.calls == reads + 1

    def test_deleted_while_it_is_derived(self, room: ReadingRoom) -> None:
        """A mail that is deleted while its content is derived leaves no data behind."""
        delivery_id = room.receive()
        room.content.hold_calls()
        asked = Deferred.fromCoroutine(room.assembly.mail.contents.of(delivery_id))
        run(room.assembly.inbox.delete.matching(room.account.id, ANY))
        room.content.let_go()
        assert result_of(asked).codes == ("482913",)
        assert result_of(room.assembly.mail.content_store.find_content(delivery_id)) is None

    def test_deleted_before_it_is_derived(self, room: ReadingRoom) -> None:
        """The content of a deleted mail is not found."""
        delivery_id = room.receive()
        run(room.assembly.inbox.delete.matching(room.account.id, ANY))
        with pytest.raises(MessageNotFound):
            run(room.assembly.mail.contents.of(delivery_id))

    def test_large_mails_take_turns(self, room: ReadingRoom) -> None:
        """Few of many large mails are in memory at a time, and a small mail does not wait.

        They are parsed in a separate process, which also unpacks stored content.
        """
        for number in range(3 * OF_ACCOUNT):
            room.receive(raw=mail(body=f"Your code is 48291{number}" + "\r\n" * LARGE))
        read = room.assembly.inbox.read.message
        page = result_of(room.assembly.mail.store.page(room.account.id, ANY, NEVER, 10, 0))
        room.large.hold_calls()
        large = [
            Deferred.fromCoroutine(read(room.account.id, summary.id)) for summary, _ in page.entries
        ]
        assert room.large.calls == OF_ACCOUNT
        room.receive()
        small = Deferred.fromCoroutine(read(room.account.id, room.newest().id))
        assert result_of(small).content.codes == ("482913",)
        assert (room.large.calls, room.content.calls) == (OF_ACCOUNT, 1)
        room.large.let_go()
        codes = [result_of(one).content.codes[0] for one in large]
        assert codes == [f"48291{number}" for number in reversed(range(3 * OF_ACCOUNT))]
        again = [
            Deferred.fromCoroutine(read(room.account.id, summary.id)) for summary, _ in page.entries
        ]
        assert [result_of(one).content.codes[0] for one in again] == codes
        assert (room.large.calls, room.content.calls) == (6 * OF_ACCOUNT, 1)

    def test_content_that_cannot_be_saved(self, room: ReadingRoom) -> None:
        """Content that cannot be saved is still returned, since it can be derived again."""
        delivery_id = room.receive()
        room.writer.hold_calls()
        content = run(room.assembly.mail.contents.of(delivery_id))
        assert content.codes == ("482913",)
        assert result_of(room.assembly.mail.content_store.find_content(delivery_id)) is None
        room.writer.let_go()


class TestMessages:
    """Single messages."""

    def test_a_message(self, room: ReadingRoom) -> None:
        """A message has its envelope and content. Concurrent readers load them once."""
        room.receive(room.address("a"))
        summary = room.newest()
        room.reader.hold_calls()
        asked = [
            Deferred.fromCoroutine(room.assembly.inbox.read.message(room.account.id, summary.id))
            for _ in range(3)
        ]
        room.reader.let_go()
        messages = [result_of(one) for one in asked]
        assert messages[0] is messages[1] is messages[2]
        assert messages[0].summary == summary
        assert messages[0].envelope_sender == "shop@example.com"
        assert messages[0].content.text.startswith("Your code")

    def test_raw_bytes_that_go_meanwhile(self, room: ReadingRoom) -> None:
        """A message that is deleted while its bytes are read is not found."""
        room.receive()
        summary = room.newest()
        room.reader.hold_answers()
        asked = Deferred.fromCoroutine(
            room.assembly.inbox.read.raw_message(room.account.id, summary.id)
        )
        run(room.assembly.inbox.delete.one(room.account.id, summary.id))
        room.reader.let_go()
        with pytest.raises(MessageNotFound):
            result_of(asked)

    def test_attachments(self, room: ReadingRoom) -> None:
        """An attachment is returned decoded by its id. Other ids are not found."""
        room.receive(raw=ATTACHMENT)
        summary, read = room.newest(), room.assembly.inbox.read
        message = run(read.message(room.account.id, summary.id))
        (facts,) = message.content.attachments
        attachment = run(read.attachment(room.account.id, summary.id, facts.id))
        assert (attachment.filename, attachment.data) == ("a.txt", b"inside")
        for wrong in ("", "99", "../1"):
            with pytest.raises(AttachmentNotFound):
                run(read.attachment(room.account.id, summary.id, wrong))

    def test_the_inbox_of_a_deleted_account(self, room: ReadingRoom) -> None:
        """The inbox of a deleted account is not found."""
        with pytest.raises(MessageNotFound):
            run(room.assembly.inbox.read.state(AccountId("gone")))


class TestLists:
    """Pages of a list."""

    def test_pages(self, room: ReadingRoom) -> None:
        """Pages are numbered from 1. Each names the next one, except the last."""
        for _ in range(5):
            room.receive()
        pages = [room.page(limit=2, page=number) for number in (1, 2, 3, 4)]
        assert [page.next_page for page in pages] == [2, 3, None, None]
        positions = [[message.summary.position for message in page.messages] for page in pages]
        assert positions == [[5, 4], [3, 2], [1], []]
        assert {(page.total, page.cursor) for page in pages} == {(5, 5)}

    def test_a_single_page(self, room: ReadingRoom) -> None:
        """A page that contains all messages names no next page."""
        for _ in range(2):
            room.receive()
        assert room.page(limit=2).next_page is None

    def test_links_and_codes(self, room: ReadingRoom) -> None:
        """Each listed message has its links and codes, which are derived now if necessary."""
        room.receive(raw=mail(body="Your code is 111222"))
        room.receive(raw=mail(body="Your code is 333444"))
        run(room.assembly.inbox.read.message(room.account.id, room.newest().id))
        assert [message.extracted.codes for message in room.page().messages] == [
            ("333444",),
            ("111222",),
        ]

    def test_deleted_while_it_is_listed(self, room: ReadingRoom) -> None:
        """A message that is deleted while it is listed is left out."""
        for _ in range(3):
            room.receive()
        summary = room.newest()
        room.reader.hold_answers()
        listed = Deferred.fromCoroutine(room.assembly.inbox.read.page(room.account.id, ANY, 10, 1))
        run(room.assembly.inbox.delete.one(room.account.id, summary.id))
        room.reader.let_go()
        positions = [message.summary.position for message in result_of(listed).messages]
        assert positions == [2, 1]

    def test_a_foreign_cursor(self, room: ReadingRoom) -> None:
        """Lists and bulk deletion reject a cursor that the inbox has not reached."""
        room.receive()
        beyond = MessageFilter(after=Position(2))
        with pytest.raises(InvalidParameter):
            room.page(beyond)
        for owner in (room.account.id, AccountId("gone")):
            with pytest.raises(InvalidParameter):
                run(room.assembly.inbox.delete.matching(owner, beyond))
        assert room.page(replace(beyond, after=Position(1))).messages == ()


class TestDeleting:
    """Permanent deletion of messages."""

    @pytest.mark.parametrize("count", [0, 1, BATCH, BATCH + 1])
    def test_many(self, room: ReadingRoom, count: int) -> None:
        """All matching messages are deleted in batches, and counted."""
        room.receive(room.address("kept"))
        if count:
            room.receive(*[room.address(f"t{number}") for number in range(count)])
        after = MessageFilter(after=Position(1))
        writes = room.writer.calls
        assert run(room.assembly.inbox.delete.matching(room.account.id, after)) == count
        assert room.writer.calls - writes == count // BATCH + 1
        assert [message.summary.tag for message in room.page().messages] == ["kept"]

    def test_mail_that_arrives_meanwhile_is_kept(self, room: ReadingRoom) -> None:
        """Mail that arrives while a large inbox is emptied is kept."""
        room.receive(*[room.address(f"t{number}") for number in range(BATCH)])
        room.writer.hold_answers()
        deleting = Deferred.fromCoroutine(room.assembly.inbox.delete.matching(room.account.id, ANY))
        late = Recipient(room.address("late"), room.account.id, "late")
        arriving = room.assembly.mail.store.deliver(
            delivery(late, received_at=room.assembly.runtime.now())
        )
        room.writer.let_go()
        assert result_of(deleting) == BATCH
        assert result_of(arriving)
        assert [message.summary.tag for message in room.page().messages] == ["late"]


class TestSharing:
    """Share links."""

    def token(self, room: ReadingRoom) -> str:
        """Return the share token of the newest message."""
        summary = room.newest()
        return format_share_token(summary.id, summary.share_token)

    def test_wrong_links(self, room: ReadingRoom) -> None:
        """Any other link is not found, with the same error."""
        room.receive()
        token = self.token(room)
        wrong = ["", "x", token[:-1], token[:-1] + "!", token + "a", token[26:], "a" * 52, "\ud800"]
        messages = set()
        for one in wrong:
            with pytest.raises(ShareNotFound) as caught:
                run(room.assembly.inbox.share.open(one))
            messages.add(str(caught.value))
        assert len(messages) == 1

    def test_revoking_while_it_is_read(self, room: ReadingRoom) -> None:
        """Replacing a share link returns the new one, even while others read the message."""
        room.receive()
        summary = room.newest()
        room.reader.hold_answers()
        reading = Deferred.fromCoroutine(
            room.assembly.inbox.read.message(room.account.id, summary.id)
        )
        renewing = Deferred.fromCoroutine(
            room.assembly.inbox.share.renew(room.account.id, summary.id)
        )
        room.reader.let_go()
        assert result_of(reading).summary.share_token == summary.share_token
        assert result_of(renewing).summary.share_token == room.newest().share_token
        assert room.newest().share_token != summary.share_token

    def test_the_end_of_a_link(self, room: ReadingRoom) -> None:
        """A link ends with its message, when it expires or is deleted."""
        room.receive()
        token = self.token(room)
        room.clock.advance(24 * 3600)
        with pytest.raises(ShareNotFound):
            run(room.assembly.inbox.share.open(token))
        room.receive()
        token, summary = self.token(room), room.newest()
        room.reader.hold_answers()
        opening = Deferred.fromCoroutine(room.assembly.inbox.share.open(token))
        run(room.assembly.inbox.delete.one(room.account.id, summary.id))
        room.reader.let_go()
        with pytest.raises(ShareNotFound):
            result_of(opening)

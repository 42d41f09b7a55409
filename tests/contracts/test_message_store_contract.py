"""What every `MessageStore` promises."""

from dataclasses import replace

from twisted.internet.defer import gatherResults

from mailcheck.core.accounts import InboxState
from mailcheck.core.content import Extracted
from mailcheck.core.cursors import START, Position
from mailcheck.core.filters import MessageFilter
from mailcheck.core.identifiers import AccountId, MessageId
from mailcheck.core.instants import Instant
from mailcheck.core.messages import Delivery, TagCount
from mailcheck.core.search import parse_search
from tests.contracts.conftest import DEFAULT_QUOTA, Stores
from tests.storage.deliveries import (
    NOON,
    RETENTION,
    account,
    at,
    content,
    delivery,
    recipient,
    refusal,
)

ANN, BOB = AccountId("ann"), AccountId("bob")

ANY = MessageFilter()

EXPIRY = Instant(NOON + RETENTION)
"""When a mail of noon expires."""


async def receive(stores: Stores, *tags: str, owner: str = "ann", seconds: float = 0) -> Delivery:
    """Deliver a mail for some tags of an inbox; one without a tag where none is given."""
    sent = delivery(*[recipient(owner, tag) for tag in tags or ("",)], received_at=at(seconds))
    await stores.deliveries.deliver(sent)
    return sent


async def listed(
    stores: Stores, wanted: MessageFilter = ANY, now: Instant = NOON, owner: AccountId = ANN
) -> list[int]:
    """Give the positions of all that match, newest first."""
    page = await stores.messages.page(owner, wanted, now, 10_000, 0)
    assert page.total == len(page.entries)
    return [summary.position for summary, _ in page.entries]


async def accounts(stores: Stores) -> None:
    """Add two accounts."""
    for name in ("ann", "bob"):
        await stores.accounts.add_account(account(name))


async def test_oldest_matches(stores: Stores) -> None:
    """The oldest messages that match come first, with the inbox's newest position."""
    await accounts(stores)
    for number in range(6):
        await receive(stores, "ab"[number % 2])
    store = stores.messages
    found, last = await store.oldest_matches(ANN, MessageFilter(tag="b"), NOON, 2)
    assert [message.summary.position for message in found] == [2, 4]
    assert last == 6
    found, last = await store.oldest_matches(ANN, MessageFilter(after=Position(4)), NOON, 10)
    assert [message.summary.position for message in found] == [5, 6]
    assert last == 6


async def test_oldest_matches_of_nothing(stores: Stores) -> None:
    """Where nothing matches the position is told all the same; nothing is there of nobody."""
    await accounts(stores)
    store = stores.messages
    assert await store.oldest_matches(ANN, ANY, NOON, 1) == ((), START)
    assert await store.oldest_matches(AccountId("gone"), ANY, NOON, 1) == ((), START)
    await receive(stores, "a")
    assert await store.oldest_matches(ANN, MessageFilter(tag="b"), NOON, 1) == ((), 1)
    assert await store.oldest_matches(ANN, MessageFilter(after=Position(1)), NOON, 1) == ((), 1)
    assert await store.oldest_matches(BOB, ANY, NOON, 1) == ((), START)


async def test_newest(stores: Stores) -> None:
    """The newest messages since a moment come newest first; what has expired is not among them."""
    await accounts(stores)
    for number in range(5):
        await receive(stores, f"t{number}", seconds=number)
    await receive(stores, owner="bob", seconds=9)
    for since, now, limit, positions in [
        (NOON, NOON, 10, [5, 4, 3, 2, 1]),
        (at(2), NOON, 10, [5, 4, 3]),
        (at(2), NOON, 2, [5, 4]),
        (at(5), NOON, 2, []),
        (NOON, Instant(EXPIRY + 1_000), 10, [5, 4, 3]),
    ]:
        found = await stores.messages.newest(ANN, since, now, limit)
        assert [message.position for message in found] == positions


async def test_pages(stores: Stores) -> None:
    """Pages hold the newest first, each message once, with the number of all that match."""
    await accounts(stores)
    for _ in range(7):
        await receive(stores)
    await receive(stores, owner="bob")
    pages = [await stores.messages.page(ANN, ANY, NOON, 3, offset) for offset in (0, 3, 6, 9)]
    positions = [[summary.position for summary, _ in page.entries] for page in pages]
    assert positions == [[7, 6, 5], [4, 3, 2], [1], []]
    assert {(page.total, page.last_position) for page in pages} == {(7, 7)}


async def test_total_of_a_filter(stores: Stores) -> None:
    """The total counts what matches, whichever filter asks."""
    await accounts(stores)
    for number in range(6):
        await receive(stores, "Ab", seconds=number)
    await receive(stores, "c", seconds=6)
    for wanted, total in [
        (MessageFilter(tag="aB"), 6),
        (MessageFilter(tag=""), 0),
        (MessageFilter(tag="aB", after=Position(4)), 2),
        (MessageFilter(since=at(4.5)), 2),
        (MessageFilter(subject="WELCOME"), 7),
        (MessageFilter(author="nobody"), 0),
    ]:
        page = await stores.messages.page(ANN, wanted, NOON, 1, 0)
        assert page.total == total, wanted


async def test_what_was_extracted_comes_with_the_list(stores: Stores) -> None:
    """A list has links and codes of what was derived, and nothing of what was not."""
    await accounts(stores)
    await receive(stores)
    derived = await receive(stores)
    what = content(codes=["482913"], links=("https://a.example/",), best_link="https://a.example/")
    await stores.contents.save_content(derived.id, what)
    page = await stores.messages.page(ANN, ANY, NOON, 10, 0)
    assert [extracted for _, extracted in page.entries] == [
        Extracted(("https://a.example/",), "https://a.example/", ("482913",)),
        None,
    ]


async def test_overview(stores: Stores) -> None:
    """An overview counts messages and tags, the tag with the newest mail first."""
    await accounts(stores)
    await receive(stores, "a", seconds=1)
    await receive(stores, "B", seconds=2)
    await receive(stores, "b", "", seconds=3)
    overview = await stores.messages.overview(ANN, NOON, 10)
    assert overview.state.message_count == 4
    assert overview.state.last_position == 4
    assert set(overview.tags) == {
        TagCount("b", 2, at(3)),
        TagCount("", 1, at(3)),
        TagCount("a", 1, at(1)),
    }
    assert overview.tags[-1].tag == "a"
    assert overview.tag_total == 3
    some = await stores.messages.overview(ANN, NOON, 1)
    assert (len(some.tags), some.tag_total) == (1, 3)


async def test_overview_of_an_empty_inbox(stores: Stores) -> None:
    """An empty inbox has an overview, too."""
    await accounts(stores)
    overview = await stores.messages.overview(ANN, NOON, 10)
    assert overview.state == InboxState(ANN, "dev-ann", START, 0, 0, DEFAULT_QUOTA)
    assert (overview.tags, overview.tag_total) == ((), 0)


async def test_a_message_is_its_owners(stores: Stores) -> None:
    """A message is found, changed and deleted by its own account only."""
    await accounts(stores)
    message_id = (await receive(stores)).message_ids[0]
    store = stores.messages
    assert await store.find_message(BOB, message_id, NOON) is None
    assert not await store.replace_share_token(BOB, message_id, "new", NOON)
    assert not await store.delete_message(BOB, message_id, NOON)
    row = await store.find_message(ANN, message_id, NOON)
    assert row is not None
    assert row.summary.share_token == "secret0"
    assert row == await store.find_any_message(message_id, NOON)


async def test_messages_that_are_not_there(stores: Stores) -> None:
    """An id that no message has is not found, and is no failure."""
    await accounts(stores)
    store, nobody = stores.messages, MessageId("nobody")
    assert await store.find_message(ANN, nobody, NOON) is None
    assert await store.find_any_message(nobody, NOON) is None
    assert not await store.replace_share_token(ANN, nobody, "new", NOON)
    assert not await store.delete_message(ANN, nobody, NOON)


async def test_share_tokens(stores: Stores) -> None:
    """A new share token takes the place of the old one, of this message alone."""
    await accounts(stores)
    sent = await receive(stores, "a", "b")
    assert await stores.messages.replace_share_token(ANN, sent.message_ids[0], "new", NOON)
    rows = [await stores.messages.find_any_message(one, NOON) for one in sent.message_ids]
    assert [row and row.summary.share_token for row in rows] == ["new", "secret1"]


async def test_deleting_one(stores: Stores) -> None:
    """A deleted message is gone from everywhere, and its position is never used again."""
    await accounts(stores)
    sent = await receive(stores, "a")
    await stores.contents.save_content(sent.id, content())
    store = stores.messages
    assert await store.delete_message(ANN, sent.message_ids[0], NOON)
    assert not await store.delete_message(ANN, sent.message_ids[0], NOON)
    assert await store.find_message(ANN, sent.message_ids[0], NOON) is None
    assert await stores.contents.raw_message(sent.id) is None
    assert await stores.contents.find_content(sent.id) is None
    assert await listed(stores) == []
    overview = await store.overview(ANN, NOON, 10)
    assert (overview.state.message_count, overview.state.byte_count) == (0, 0)
    assert (overview.tags, overview.tag_total) == ((), 0)
    assert await stores.deliveries.deliver(delivery(recipient("ann"))) == (2,)


async def test_shared_bytes(stores: Stores) -> None:
    """The bytes that messages share go with the last of them."""
    await accounts(stores)
    sent = delivery(recipient("ann", "a"), recipient("bob"), recipient("ann", "b"))
    await stores.deliveries.deliver(sent)
    await stores.contents.save_content(sent.id, content())
    for owner, message_id in zip((ANN, BOB, ANN), sent.message_ids, strict=True):
        assert await stores.contents.raw_message(sent.id) == sent.raw_message
        assert await stores.contents.find_content(sent.id) is not None
        assert await stores.messages.delete_message(owner, message_id, NOON)
    assert await stores.contents.raw_message(sent.id) is None
    assert await stores.contents.find_content(sent.id) is None


async def test_deleting_many(stores: Stores) -> None:
    """All that match are deleted, at most so many at a time, and nothing else."""
    await accounts(stores)
    for number in range(7):
        await receive(stores, "ab"[number % 2])
    await receive(stores, "a", owner="bob")
    store, wanted = stores.messages, MessageFilter(tag="A")
    assert await store.delete_matches(ANN, wanted, NOON, 3) == 3
    assert await store.delete_matches(ANN, wanted, NOON, 3) == 1
    assert await store.delete_matches(ANN, wanted, NOON, 3) == 0
    assert await listed(stores) == [6, 4, 2]
    assert await listed(stores, owner=BOB) == [1]
    overview = await store.overview(ANN, NOON, 10)
    assert [(tag.tag, tag.message_count) for tag in overview.tags] == [("b", 3)]


async def test_deleting_by_every_filter(stores: Stores) -> None:
    """Bulk deletion takes the same filters as a list."""
    await accounts(stores)
    derived = await receive(stores, "x")
    await stores.contents.save_content(derived.id, content("needle"))
    for number in range(5):
        await receive(stores, "y", seconds=number + 1)
    store = stores.messages
    assert (
        await store.delete_matches(
            ANN, MessageFilter(search=parse_search("needle", NOON)), NOON, 10
        )
        == 1
    )
    assert await store.delete_matches(ANN, MessageFilter(since=at(5)), NOON, 10) == 1
    assert await store.delete_matches(ANN, MessageFilter(after=Position(4)), NOON, 10) == 1
    assert await store.delete_matches(ANN, MessageFilter(subject="no"), NOON, 10) == 0
    assert await store.delete_matches(ANN, ANY, NOON, 10) == 3


async def test_a_tag_after_deletion(stores: Stores) -> None:
    """A tag is as its newest message that is left wrote it, and as recent as that one."""
    await accounts(stores)
    await receive(stores, "SignUp", seconds=1)
    newest = await receive(stores, "signup", seconds=2)
    assert (await stores.messages.overview(ANN, NOON, 9)).tags == (TagCount("signup", 2, at(2)),)
    await stores.messages.delete_message(ANN, newest.message_ids[0], NOON)
    assert (await stores.messages.overview(ANN, NOON, 9)).tags == (TagCount("SignUp", 1, at(1)),)


async def test_what_has_expired_is_hidden(stores: Stores) -> None:
    """From the moment it expires a message is nowhere, though nothing has swept it away yet."""
    await accounts(stores)
    old = await receive(stores, "old")
    await receive(stores, "new", seconds=1)
    store, old_id = stores.messages, old.message_ids[0]
    before = Instant(EXPIRY - 1)
    assert await listed(stores, now=before) == [2, 1]
    assert await store.find_message(ANN, old_id, before) is not None
    for wanted in (ANY, MessageFilter(after=START), MessageFilter(since=NOON)):
        assert await listed(stores, wanted, EXPIRY) == [2]
    assert await listed(stores, MessageFilter(tag="old"), EXPIRY) == []
    assert await listed(stores, MessageFilter(tag="new"), EXPIRY) == [2]
    found, last = await store.oldest_matches(ANN, ANY, EXPIRY, 10)
    assert ([message.summary.position for message in found], last) == ([2], 2)
    assert await store.find_message(ANN, old_id, EXPIRY) is None
    assert await store.find_any_message(old_id, EXPIRY) is None
    assert not await store.replace_share_token(ANN, old_id, "new", EXPIRY)
    assert not await store.delete_message(ANN, old_id, EXPIRY)
    assert await store.delete_matches(ANN, MessageFilter(tag="old"), EXPIRY, 10) == 0


async def test_the_overview_hides_what_has_expired(stores: Stores) -> None:
    """An overview counts neither messages nor tags that have expired."""
    await accounts(stores)
    await receive(stores, "old")
    await receive(stores, "both")
    await receive(stores, "both", seconds=1)
    await receive(stores, "old", owner="bob")
    overview = await stores.messages.overview(ANN, EXPIRY, 10)
    assert overview.state.message_count == 1
    assert overview.tags == (TagCount("both", 1, at(1)),)
    assert overview.tag_total == 1
    assert (await stores.messages.page(ANN, ANY, EXPIRY, 1, 0)).total == 1


async def test_refusals_come_newest_first(stores: Stores) -> None:
    """Refusals since a moment come newest first, and no more than asked for."""
    await accounts(stores)
    for number in range(5):
        await stores.deliveries.note_refusal(refusal("ann", number, f"reason {number}"))
    await stores.deliveries.note_refusal(refusal("bob", 9))
    found = await stores.messages.recent_refusals(ANN, at(2), 2)
    assert [one.reason for one in found] == ["reason 4", "reason 3"]
    found = await stores.messages.recent_refusals(ANN, at(2), 10)
    assert [one.reason for one in found] == ["reason 4", "reason 3", "reason 2"]


async def test_readers_see_whole_mails(stores: Stores) -> None:
    """A reader sees a mail for many recipients as a whole or not at all."""
    await accounts(stores)
    everyone = [recipient("ann", f"t{number}") for number in range(20)]
    done = gatherResults([stores.deliveries.deliver(delivery(*everyone)) for _ in range(20)])
    while not done.called:
        page = await stores.messages.page(ANN, ANY, NOON, 1, 0)
        assert page.total % 20 == 0
        assert page.last_position == page.total
    await done
    overview = await stores.messages.overview(ANN, NOON, 1)
    assert overview.state == replace(overview.state, message_count=400, last_position=Position(400))

"""The contract of `MailStore` for stored messages, on every engine."""

from dataclasses import replace

from msgspec import structs
from twisted.internet.defer import gatherResults

from mailcheck.checks.content.header.fields import summarize_header
from mailcheck.core.accounts import InboxState
from mailcheck.core.content import AttachmentFacts, Extracted
from mailcheck.core.cursors import START, Position
from mailcheck.core.filters import MessageFilter
from mailcheck.core.identifiers import AccountId, MessageId
from mailcheck.core.instants import SECOND, Instant
from mailcheck.core.messages import Delivery, TagCount
from mailcheck.core.searches import parse_search
from tests.contracts.conftest import DEFAULT_QUOTA, Stores
from tests.engines.deliveries import (
    NOON,
    RETENTION,
    at,
    content,
    delivery,
    mail,
    recipient,
    refusal,
)

ANN, BOB = AccountId("ann"), AccountId("bob")

ANY = MessageFilter()

EXPIRY = Instant(NOON + RETENTION)
"""The expiry of a mail that arrives at noon."""


async def receive(stores: Stores, *tags: str, owner: str = "ann", seconds: float = 0) -> Delivery:
    """Deliver a mail for tags of an inbox, or for the inbox without a tag."""
    sent = delivery(*[recipient(owner, tag) for tag in tags or ("",)], received_at=at(seconds))
    await stores.deliveries.deliver(sent)
    return sent


async def listed(
    stores: Stores, wanted: MessageFilter = ANY, now: Instant = NOON, owner: AccountId = ANN
) -> list[int]:
    """Return the positions of all matches, newest first."""
    page = await stores.messages.page(owner, wanted, now, 10_000, 0)
    assert page.total == len(page.entries)
    return [summary.position for summary, _ in page.entries]


async def test_oldest_matches(stores: Stores) -> None:
    """The oldest matches come first, with the inbox's newest position."""
    for number in range(6):
        await receive(stores, "ab"[number % 2])
    store = stores.messages
    found, last = await store.oldest_matches(ANN, MessageFilter(tag="b"), NOON, 2)
    assert [message.summary.position for message in found] == [2, 4]
    assert last == 6
    found, last = await store.oldest_matches(ANN, MessageFilter(after=Position(4)), NOON, 10)
    assert [message.summary.position for message in found] == [5, 6]
    assert last == 6


async def test_oldest_matches_without_a_match(stores: Stores) -> None:
    """Without a match the position is still returned; a missing account has no messages."""
    store = stores.messages
    assert await store.oldest_matches(ANN, ANY, NOON, 1) == ((), START)
    assert await store.oldest_matches(AccountId("gone"), ANY, NOON, 1) == ((), START)
    await receive(stores, "a")
    assert await store.oldest_matches(ANN, MessageFilter(tag="b"), NOON, 1) == ((), 1)
    assert await store.oldest_matches(ANN, MessageFilter(after=Position(1)), NOON, 1) == ((), 1)
    assert await store.oldest_matches(BOB, ANY, NOON, 1) == ((), START)


async def test_pages(stores: Stores) -> None:
    """Pages have the newest messages first, each once, with the number of all matches."""
    for _ in range(7):
        await receive(stores)
    await receive(stores, owner="bob")
    pages = [await stores.messages.page(ANN, ANY, NOON, 3, offset) for offset in (0, 3, 6, 9)]
    positions = [[summary.position for summary, _ in page.entries] for page in pages]
    assert positions == [[7, 6, 5], [4, 3, 2], [1], []]
    assert {(page.total, page.last_position) for page in pages} == {(7, 7)}


async def test_lists_by_from_and_subject(stores: Stores) -> None:
    """In a large inbox matches are found after any arrivals, deletions and expiry."""
    sent: dict[int, Delivery] = {}
    keys: dict[int, tuple[str, str]] = {}

    async def send(count: int) -> None:
        mails = [
            delivery(
                recipient("ann"),
                raw=mail(f"Order {number % 7}", author=f"{'Shop' * (number % 3)} <a@example.com>"),
                received_at=at(number),
            )
            for number in range(len(sent), len(sent) + count)
        ]
        given = await gatherResults([stores.deliveries.deliver(one) for one in mails])
        for (position,), one in zip(given, mails, strict=True):
            header = summarize_header(one.raw_message)
            sent[position], keys[position] = one, (header.author_key, header.subject_key)

    async def check(now: Instant = NOON) -> None:
        for part in ("shopshop", "a@", "nobody"):
            for subject in (None, "r 6"):
                wanted = MessageFilter(author=part, subject=subject)
                assert await listed(stores, wanted, now) == [
                    position
                    for position, one in sorted(sent.items(), reverse=True)
                    if one.expires_at > now
                    if part in keys[position][0] and (subject or "") in keys[position][1]
                ]

    await send(130)
    await check()
    await send(3)
    await check()
    await send(190)
    await check()
    for position in (70, 200, max(sent)):
        assert await stores.messages.delete_message(ANN, sent.pop(position).message_ids[0], NOON)
    await check()
    later = Instant(EXPIRY + 20_000)
    await check(later)
    await stores.expiry.expire(later, 15)
    await check(later)
    await stores.expiry.expire(later, 1_000)
    await send(1)
    await check(later)
    last = Instant(EXPIRY + 250_000)
    await stores.expiry.expire(last, 1_000)
    await check(last)


async def test_lists_have_extracted_values(stores: Stores) -> None:
    """A list has the values that were derived for it, and none of underived mails."""
    await receive(stores)
    derived = await receive(stores)
    what = content(
        codes=["482913"],
        links=("https://a.example/",),
        best_link="https://a.example/",
        snippet="Your code is 482913",
        html="<img src=CID:logo@a>",
        attachments=(
            AttachmentFacts("1", "logo.png", "image/png", 9, "logo@a"),
            AttachmentFacts("2", "bill.pdf", "application/pdf", 9, None),
        ),
    )
    await stores.contents.save_content(derived.id, what)
    page = await stores.messages.page(ANN, ANY, NOON, 10, 0)
    assert [extracted for _, extracted in page.entries] == [
        Extracted(
            ("https://a.example/",), "https://a.example/", ("482913",), "Your code is 482913", 1
        ),
        None,
    ]


async def test_overview(stores: Stores) -> None:
    """An overview counts messages and tags, the tag with the newest mail first."""
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
    overview = await stores.messages.overview(ANN, NOON, 10)
    assert overview.state == InboxState(ANN, "dev-ann", START, 0, 0, DEFAULT_QUOTA)
    assert (overview.tags, overview.tag_total) == ((), 0)


async def test_messages_belong_to_their_account(stores: Stores) -> None:
    """A message is found, changed and deleted by its own account only."""
    message_id = (await receive(stores)).message_ids[0]
    store = stores.messages
    assert await store.find_message(BOB, message_id, NOON) is None
    assert not await store.replace_share_token(BOB, message_id, "new", NOON)
    assert not await store.delete_message(BOB, message_id, NOON)
    row = await store.find_message(ANN, message_id, NOON)
    assert row is not None
    assert row.summary.share_token == "secret0"
    assert row == await store.find_any_message(message_id, NOON)


async def test_missing_messages(stores: Stores) -> None:
    """An unknown id is not found, without an exception."""
    store, nobody = stores.messages, MessageId("nobody")
    assert await store.find_message(ANN, nobody, NOON) is None
    assert await store.find_any_message(nobody, NOON) is None
    assert not await store.replace_share_token(ANN, nobody, "new", NOON)
    assert not await store.delete_message(ANN, nobody, NOON)


async def test_share_tokens(stores: Stores) -> None:
    """A new share token replaces the old one, for this message only."""
    sent = await receive(stores, "a", "b")
    assert await stores.messages.replace_share_token(ANN, sent.message_ids[0], "new", NOON)
    rows = [await stores.messages.find_any_message(one, NOON) for one in sent.message_ids]
    assert [row and row.summary.share_token for row in rows] == ["new", "secret1"]


async def test_deleting_one(stores: Stores) -> None:
    """A deleted message is found nowhere, and its position is never used again."""
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
    """Bytes that messages share are deleted with the last message."""
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
    """Matching messages are deleted, up to a maximum per call, and no others."""
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


async def test_a_tag_after_deletion(stores: Stores) -> None:
    """A tag has the spelling and time of its newest remaining message."""
    await receive(stores, "SignUp", seconds=1)
    newest = await receive(stores, "signup", seconds=2)
    assert (await stores.messages.overview(ANN, NOON, 9)).tags == (TagCount("signup", 2, at(2)),)
    await stores.messages.delete_message(ANN, newest.message_ids[0], NOON)
    assert (await stores.messages.overview(ANN, NOON, 9)).tags == (TagCount("SignUp", 1, at(1)),)


async def test_expired_messages_are_hidden(stores: Stores) -> None:
    """From its expiry on a message is found nowhere, even before the expiry run."""
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


async def test_the_overview_without_expired_messages(stores: Stores) -> None:
    """An overview counts neither messages nor tags that have expired."""
    await receive(stores, "old")
    await receive(stores, "both")
    await receive(stores, "both", seconds=1)
    await receive(stores, "old", owner="bob")
    overview = await stores.messages.overview(ANN, EXPIRY, 10)
    assert overview.state.message_count == 1
    assert overview.tags == (TagCount("both", 1, at(1)),)
    assert overview.tag_total == 1
    assert (await stores.messages.page(ANN, ANY, EXPIRY, 1, 0)).total == 1


async def test_the_total_of_an_address_without_expired_messages(stores: Stores) -> None:
    """A page of an address counts its messages only, without expired ones."""
    for tag, seconds in (("old", 0), ("both", 0), ("both", 1), ("new", 1)):
        await receive(stores, tag, seconds=seconds)
    await receive(stores, "both", owner="bob", seconds=1)
    both = MessageFilter(recipient=recipient("ann", "BOTH").address)
    assert await listed(stores, both) == [3, 2]
    assert await listed(stores, both, EXPIRY) == [3]
    assert await listed(stores, structs.replace(both, after=Position(2)), EXPIRY) == [3]
    assert await listed(stores, MessageFilter(recipient="nobody@example.com")) == []


async def test_refusals_are_listed_newest_first(stores: Stores) -> None:
    """Refusals since a given time are listed newest first, up to a limit."""
    for number in range(5):
        await stores.deliveries.note_refusal(refusal("ann", number, f"reason {number}"))
    await stores.deliveries.note_refusal(refusal("bob", 9))
    found = await stores.messages.recent_refusals(ANN, at(2), 2)
    assert [one.reason for one in found] == ["reason 4", "reason 3"]
    found = await stores.messages.recent_refusals(ANN, at(2), 10)
    assert [one.reason for one in found] == ["reason 4", "reason 3", "reason 2"]


async def test_refusals_take_positions(stores: Stores) -> None:
    """A refusal takes the next position of its inbox, between those of messages."""
    await receive(stores, "a")
    await stores.deliveries.note_refusal(refusal("ann", 1))
    await stores.deliveries.note_refusal(refusal("ann", 2))
    await receive(stores, "a", seconds=3)
    await stores.deliveries.note_refusal(refusal("bob", 4))
    assert await listed(stores) == [4, 1]
    found = await stores.messages.recent_refusals(ANN, NOON, 10)
    assert [one.position for one in found] == [3, 2]
    assert await stores.messages.newest_positions([ANN, BOB]) == {ANN: 4, BOB: 1}
    between = MessageFilter(after=Position(1), up_to=Position(2))
    found = await stores.messages.recent_refusals(ANN, NOON, 10, between)
    assert [one.position for one in found] == [2]


async def test_refusals_of_wanted_mail(stores: Stores) -> None:
    """Only refusals of mail to the recipient or tag of the filter are returned, newest first."""
    tags = ["Sign-Up", "sign-up-2", "other", "", "other"]
    for number, tag in enumerate(tags):
        address = recipient("ann", tag).address
        one = replace(refusal("ann", number), recipient=address, tag=tag)
        await stores.deliveries.note_refusal(one)
    for wanted, positions in [
        (MessageFilter(tag="SIGN-UP"), [1]),
        (MessageFilter(tag_prefix="SIGN-"), [2, 1]),
        (MessageFilter(tag=""), [4]),
        (MessageFilter(recipient=recipient("ann", "OTHER").address), [5, 3]),
        (MessageFilter(subject="x"), [5, 4, 3, 2, 1]),
    ]:
        found = await stores.messages.recent_refusals(ANN, NOON, 10, wanted)
        assert [one.position for one in found] == positions, wanted
        assert [one.tag for one in found] == [tags[position - 1] for position in positions]
        first = await stores.messages.recent_refusals(ANN, NOON, 1, wanted)
        assert first == found[:1]


async def test_readers_see_whole_mails(stores: Stores) -> None:
    """A reader sees a mail for many recipients completely or not at all."""
    everyone = [recipient("ann", f"t{number}") for number in range(20)]
    done = gatherResults([stores.deliveries.deliver(delivery(*everyone)) for _ in range(20)])
    while not done.called:
        page = await stores.messages.page(ANN, ANY, NOON, 1, 0)
        assert page.total % 20 == 0
        assert page.last_position == page.total
    await done
    overview = await stores.messages.overview(ANN, NOON, 1)
    assert overview.state == structs.replace(
        overview.state, message_count=400, last_position=Position(400)
    )


async def test_unsearched_messages_are_counted(stores: Stores) -> None:
    """A list with a filter on content counts the messages without derived content."""
    known = await receive(stores, "a")
    await stores.contents.save_content(known.id, content("Hello"))
    earlier = await receive(stores, "a")
    await stores.earlier_contents.save_content(earlier.id, content("Hello"))
    await receive(stores, "a")
    await receive(stores, "b")

    async def not_searched(wanted: MessageFilter) -> int:
        return (await stores.messages.page(ANN, wanted, NOON, 1, 0)).not_searched

    assert await not_searched(MessageFilter(text="nowhere")) == 3
    assert await not_searched(MessageFilter(text="nowhere", tag="a")) == 2
    assert await not_searched(MessageFilter(has_attachment=True, tag="b")) == 1
    for text, count in (
        ("nowhere", 3),
        ("has:code", 3),
        ("has:code tag:a", 2),
        ("is:read here", 0),
        ("subject:welcome", 0),
        ("is:unread", 0),
    ):
        assert await not_searched(MessageFilter(search=parse_search(text, NOON))) == count
    assert await not_searched(MessageFilter(tag="a")) == 0
    assert await not_searched(MessageFilter(text="nowhere", up_to=Position(1))) == 0


async def test_filters_of_the_content(stores: Stores) -> None:
    """A field is found by its name and a part of a value; unknown content matches only in the
    oldest matches.
    """
    fields = [("X-Run", "7 of\n9"), ("Subject", "Straße_%"), ("x-run", "last"), ("X-Run-2", "8")]
    known = await receive(stores)
    await stores.contents.save_content(known.id, content("One zwei", header_list=tuple(fields)))
    await receive(stores)
    for wanted, does_match in [
        ({"headers": (("X-RUN", "7 OF 9"), ("subject", "STRASSE_%"))}, True),
        ({"headers": (("X-Run", "LAST"), ("X-Run", ""), ("X-Run-2", "8"))}, True),
        ({"headers": (("X-Run", "8"),)}, False),
        ({"headers": (("X-Run", "9 last"),)}, False),
        ({"headers": (("X-R_n", ""),)}, False),
        ({"headers": (("Run", "7"),)}, False),
        ({"text": "ONE ZWEI", "has_attachment": False}, True),
        ({"text": "zwei one"}, False),
        ({"has_attachment": True}, False),
    ]:
        asked = MessageFilter(**wanted)  # type: ignore[arg-type]
        assert await listed(stores, asked) == [1] * does_match, wanted
        found, _ = await stores.messages.oldest_matches(ANN, asked, NOON, 10)
        assert [one.summary.position for one in found] == [1, 2] if does_match else [2], wanted


async def test_the_newest_messages_are_scanned(stores: Stores) -> None:
    """The newest matches since a given time are returned: a few whole, all by position."""
    for number in range(8):
        await receive(stores, "ab"[number % 2], seconds=number)

    def later(seconds: int) -> Instant:
        return Instant(NOON + seconds * SECOND)

    async def newest(wanted: MessageFilter, limit: int, looked: int) -> tuple[list[int], list[int]]:
        found = await stores.messages.newest(ANN, wanted, NOON, limit, looked)
        return [one.position for one in found.messages], list(found.positions)

    assert await newest(ANY, 2, 100) == ([8, 7], [8, 7, 6, 5, 4, 3, 2, 1])
    assert await newest(ANY, 9, 3) == ([8, 7, 6], [8, 7, 6])
    assert await newest(MessageFilter(tag="a"), 1, 3) == ([7], [7, 5, 3])
    since = MessageFilter(since=later(4), up_to=Position(7))
    assert await newest(since, 9, 100) == ([7, 6, 5], [7, 6, 5])
    assert await newest(structs.replace(since, after=Position(5)), 1, 100) == ([7], [7, 6])
    assert await newest(MessageFilter(tag="a", since=later(6)), 9, 2) == ([7], [7])
    assert await newest(MessageFilter(tag="none"), 9, 9) == ([], [])


async def test_marking_matches_as_read(stores: Stores) -> None:
    """Matches of one account are marked, up to a maximum per call, each once, and no others."""
    for number in range(6):
        await receive(stores, "ab"[number % 2])
    await receive(stores, "a", owner="bob")
    store = stores.messages

    async def unread(wanted: MessageFilter = ANY, looked: int = 100, owner: AccountId = ANN) -> int:
        return await store.count_unread(owner, wanted, NOON, looked)

    tagged = MessageFilter(tag="a", up_to=Position(4))
    assert await unread() == 6
    assert await unread(looked=4) == 4
    assert await store.mark_matches(ANN, tagged, NOON, 1, 1) == 1
    assert await store.mark_matches(ANN, tagged, NOON, 100, 1) == 1
    assert await store.mark_matches(ANN, tagged, NOON, 100, 1) == 0
    assert (await unread(), await unread(MessageFilter(tag="a"))) == (4, 1)
    assert await unread(looked=3) == 3
    assert await listed(stores, MessageFilter(search=parse_search("is:read", NOON))) == [3, 1]
    asked = MessageFilter(search=parse_search("welcome", NOON))
    assert await store.mark_matches(ANN, asked, NOON, 100, 1) == 4
    assert await unread(owner=BOB) == 1
    assert await store.mark_matches(ANN, ANY, EXPIRY, 100, 1) == 0

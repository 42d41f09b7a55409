"""The contract of `MailStore` for incoming mail, on every engine."""

import pytest
from twisted.internet.defer import DeferredList, gatherResults

from mailcheck.core.accounts import InboxState
from mailcheck.core.cursors import START
from mailcheck.core.errors import InboxFull, RecipientUnknown
from mailcheck.core.filters import MessageFilter
from mailcheck.core.identifiers import AccountId
from mailcheck.core.messages import MessageSummary, Session
from tests.contracts.conftest import DEFAULT_QUOTA, Stores
from tests.engines.deliveries import NOON, account, at, delivery, mail, noted, recipient, refusal
from tests.table import rows

ANN, BOB = AccountId("ann"), AccountId("bob")


async def add(empty: Stores, name: str, **facts: object) -> None:
    """Add an account."""
    await empty.accounts.add_account(account(name, **facts), noted())


async def state(stores: Stores, name: str) -> InboxState:
    """Return the inbox of an existing account."""
    inbox = await stores.deliveries.find_account_inbox(AccountId(name))
    assert inbox is not None
    return inbox


async def stored(stores: Stores, name: str) -> list[MessageSummary]:
    """Return all messages of an account, oldest first."""
    found = await stores.messages.oldest_matches(AccountId(name), MessageFilter(), NOON, 10_000)
    return [one.summary for one in found[0]]


async def test_inbox_of_a_new_account(stores: Stores) -> None:
    """A new account has an stores inbox, found by its name and by its account."""
    expected = InboxState(ANN, "dev-ann", START, 0, 0, DEFAULT_QUOTA)
    assert await stores.deliveries.find_inbox("dev-ann") == expected
    assert await stores.deliveries.find_account_inbox(ANN) == expected


async def test_a_missing_inbox(empty: Stores) -> None:
    """A missing inbox is not found, without an exception."""
    assert await empty.deliveries.find_inbox("dev-bob") is None
    assert await empty.deliveries.find_inbox("ann") is None
    assert await empty.deliveries.find_account_inbox(BOB) is None
    assert await empty.deliveries.find_operator_inbox() is None


async def test_operator(empty: Stores) -> None:
    """The operator's inbox belongs to the account with the role, which can move."""
    await add(empty, "ann", is_operator=True)
    await add(empty, "bob")
    first = await empty.deliveries.find_operator_inbox()
    assert first == await state(empty, "ann")
    await add(empty, "cid", is_operator=True)
    assert await empty.deliveries.find_operator_inbox() == await state(empty, "cid")
    roles = {one.name: one.is_operator for one in await empty.accounts.list_accounts()}
    assert roles == {"ann": False, "bob": False, "cid": True}


async def test_positions(stores: Stores) -> None:
    """Each message gets the next position of its inbox; inboxes count independently."""
    store = stores.deliveries
    assert await store.deliver(delivery(recipient("ann"))) == (1,)
    assert await store.deliver(delivery(recipient("bob"), recipient("ann"))) == (1, 2)
    assert await store.deliver(delivery(recipient("ann", "a"), recipient("ann", "b"))) == (3, 4)
    assert [message.position for message in await stored(stores, "ann")] == [1, 2, 3, 4]
    assert (await state(stores, "ann")).last_position == 4
    assert (await state(stores, "bob")).last_position == 1


async def test_positions_of_a_burst(stores: Stores) -> None:
    """Mails submitted together get consecutive positions in the order of submission."""
    mails = [delivery(recipient("ann", f"t{number}")) for number in range(300)]
    positions = await gatherResults([stores.deliveries.deliver(one) for one in mails])
    assert positions == [(number,) for number in range(1, 301)]
    tags = [message.tag for message in await stored(stores, "ann")]
    assert tags == [f"t{number}" for number in range(300)]


async def test_the_message_of_a_delivery(stores: Stores) -> None:
    """The first message of a delivery in an inbox is found, and none in an inbox without it."""
    sent = delivery(recipient("bob"), recipient("ann", "a"), recipient("ann", "b"))
    await stores.deliveries.deliver(sent)
    find = stores.deliveries.find_message_of_delivery
    assert await find(ANN, sent.id) == sent.message_ids[1]
    assert await find(AccountId("cid"), sent.id) is None


async def test_what_is_stored(stores: Stores) -> None:
    """A message keeps its envelope, its session, its times and its header summary."""
    mails = mail("Grüße", "Text", "Jörg <joerg@example.com>")
    sent = delivery(recipient("ann", "SignUp"), raw=mails, received_at=at(1), sender="")
    await stores.deliveries.deliver(sent)
    row = await stores.messages.find_message(ANN, sent.message_ids[0], at(1))
    assert row is not None
    assert (row.envelope_sender, row.session) == ("", sent.session)
    summary = row.summary
    assert (summary.id, summary.account_id, summary.delivery_id) == (
        sent.message_ids[0],
        ANN,
        sent.id,
    )
    assert (summary.recipient, summary.tag) == ("dev-ann+SignUp@mailcheck.example", "SignUp")
    assert (summary.received_at, summary.expires_at) == (sent.received_at, sent.expires_at)
    assert (summary.size, summary.share_token) == (len(mails), sent.share_tokens[0])
    assert summary.header.subject == "Grüße"
    assert summary.header.author_text == "Jörg <joerg@example.com>"


async def test_a_connection_without_tls(stores: Stores) -> None:
    """A session without TLS or without EHLO is stored as such."""
    plain = Session("2001:db8::7", "", False)
    sent = delivery(recipient("ann"), session=plain)
    await stores.deliveries.deliver(sent)
    row = await stores.messages.find_message(ANN, sent.message_ids[0], NOON)
    assert row is not None
    assert row.session == plain


@rows(b"", bytes(range(256)) * 10, b"\r\n.\r\n" * 100, b"\xff\xfe\x00", b"x" * 1_000_000)
async def test_bytes_are_unchanged(stores: Stores, raw: bytes) -> None:
    """Any bytes are returned unchanged, and count with their size."""
    before = (await state(stores, "ann")).byte_count
    sent = delivery(recipient("ann"), raw=raw)
    await stores.deliveries.deliver(sent)
    assert await stores.contents.raw_message(sent.id) == raw
    assert (await state(stores, "ann")).byte_count == before + len(raw)


async def test_sizes_count_for_each_message(stores: Stores) -> None:
    """A mail for two recipients counts twice in their inbox, although it is stored once."""
    await stores.deliveries.deliver(
        delivery(recipient("ann", "a"), recipient("ann", "b"), raw=b"x" * 100)
    )
    inbox = await state(stores, "ann")
    assert (inbox.message_count, inbox.byte_count) == (2, 200)


async def test_unknown_recipient(stores: Stores) -> None:
    """A mail with a deleted recipient is not stored for the others either."""
    with pytest.raises(RecipientUnknown):
        await stores.deliveries.deliver(delivery(recipient("ann"), recipient("gone")))
    assert await stored(stores, "ann") == []
    assert await state(stores, "ann") == InboxState(ANN, "dev-ann", START, 0, 0, DEFAULT_QUOTA)


async def test_quota_of_messages(empty: Stores) -> None:
    """An inbox accepts as many messages as its account's own quota."""
    await add(empty, "ann", max_messages=2)
    await empty.deliveries.deliver(delivery(recipient("ann")))
    with pytest.raises(InboxFull):
        await empty.deliveries.deliver(delivery(recipient("ann", "a"), recipient("ann", "b")))
    await empty.deliveries.deliver(delivery(recipient("ann")))
    with pytest.raises(InboxFull):
        await empty.deliveries.deliver(delivery(recipient("ann")))
    inbox = await state(empty, "ann")
    assert (inbox.message_count, inbox.last_position, inbox.has_room) == (2, 2, False)


async def test_quota_of_bytes(empty: Stores) -> None:
    """An inbox accepts as many bytes as its quota."""
    await add(empty, "ann", max_bytes=100)
    with pytest.raises(InboxFull):
        await empty.deliveries.deliver(delivery(recipient("ann"), raw=b"x" * 101))
    with pytest.raises(InboxFull):
        await empty.deliveries.deliver(
            delivery(recipient("ann", "a"), recipient("ann", "b"), raw=b"x" * 51)
        )
    await empty.deliveries.deliver(delivery(recipient("ann"), raw=b"x" * 100))
    inbox = await state(empty, "ann")
    assert (inbox.message_count, inbox.byte_count, inbox.has_room) == (1, 100, False)


async def test_full_inbox_of_one_recipient(empty: Stores) -> None:
    """A mail for which one of its inboxes has no room is not stored in the others either."""
    await add(empty, "ann", max_messages=1)
    await add(empty, "bob")
    await empty.deliveries.deliver(delivery(recipient("ann")))
    with pytest.raises(InboxFull):
        await empty.deliveries.deliver(delivery(recipient("bob"), recipient("ann")))
    assert await stored(empty, "bob") == []
    assert await empty.contents.underived(10) == [(await stored(empty, "ann"))[0].delivery_id]


async def test_refused_mails_in_a_burst(empty: Stores) -> None:
    """Rejected mails do not affect others of a burst, and take no position."""
    await add(empty, "ann")
    await add(empty, "bob", max_messages=5)
    mails = [
        delivery(recipient(("ann", "bob", "gone")[number % 3], f"t{number}"))
        for number in range(60)
    ]
    outcomes = await DeferredList(
        [empty.deliveries.deliver(one) for one in mails], consumeErrors=True
    )
    kinds = [type(getattr(result, "value", result)) for _, result in outcomes]
    assert kinds[0::3] == [tuple] * 20
    assert kinds[1::3] == [tuple] * 5 + [InboxFull] * 15
    assert kinds[2::3] == [RecipientUnknown] * 20
    assert [message.position for message in await stored(empty, "ann")] == list(range(1, 21))
    assert [message.position for message in await stored(empty, "bob")] == [1, 2, 3, 4, 5]


async def test_an_unexpected_failure_affects_one_mail(stores: Stores) -> None:
    """A mail that cannot be stored fails alone; all others of its burst are stored."""
    mails = [delivery(recipient("ann", f"t{number}")) for number in range(20)]
    mails[7] = delivery(recipient("ann", "broken"), session=Session("\udcff", "", False))
    mails.append(mails[3])  # its ids already exist
    outcomes = await DeferredList(
        [stores.deliveries.deliver(one) for one in mails], consumeErrors=True
    )
    assert [number for number, (ok, _) in enumerate(outcomes) if not ok] == [7, 20]
    positions = [result[0] for ok, result in outcomes if ok]
    assert positions == list(range(1, 20))
    inbox = await state(stores, "ann")
    assert (inbox.last_position, inbox.message_count) == (19, 19)


async def test_many_recipients(stores: Stores) -> None:
    """A burst of mails with a hundred recipients each is stored."""
    everyone = [recipient("ann", f"t{number}") for number in range(100)]
    mails = [delivery(*everyone, raw=b"") for _ in range(9)]
    positions = await gatherResults([stores.deliveries.deliver(one) for one in mails])
    assert [position for some in positions for position in some] == list(range(1, 901))


async def test_refusals(stores: Stores) -> None:
    """Refusals are stored for the inbox; refusals of a deleted account are ignored."""
    await stores.deliveries.note_refusal(refusal("ann", 1))
    await stores.deliveries.note_refusal(refusal("gone", 1))
    assert await stores.messages.recent_refusals(ANN, NOON, 10) == [refusal("ann", 1)]
    assert await stores.messages.recent_refusals(AccountId("gone"), NOON, 10) == []

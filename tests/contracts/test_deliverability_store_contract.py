"""The contract of `DeliverabilityStore` on every engine, and of `MailStore` for mail to tests."""

import pytest
from msgspec.structs import replace
from pytest_twisted import async_fixture
from twisted.internet.defer import DeferredList

from mailcheck.core.content import HeaderSummary
from mailcheck.core.cursors import START
from mailcheck.core.deliverability_tests import (
    ADDRESS_LIFETIME,
    MAX_ATTEMPTS,
    MAX_PENDING,
    DeliverabilityResult,
    DeliverabilityTest,
    ListedTest,
    ReceivedMail,
    State,
    StoredReport,
)
from mailcheck.core.errors import (
    AddressUsed,
    InboxFull,
    RecipientUnknown,
    TooManyPendingTests,
    TooMuchHeldMail,
)
from mailcheck.core.filters import MessageFilter
from mailcheck.core.identifiers import AccountId, DeliverabilityTestId, MessageId
from mailcheck.core.instants import DAY, MINUTE, Instant
from mailcheck.core.messages import Delivery, MessageSummary
from mailcheck.ports.workers import Lease
from mailcheck.store import deliverability_store
from mailcheck.store.deliverability_store import Claimed
from tests.contracts.conftest import Stores
from tests.engines.deliveries import (
    NOON,
    RETENTION,
    SESSION,
    account,
    addressed,
    at,
    deliverability_test,
    delivery,
    mail,
    noted,
    recipient,
)

ANN, BOB = AccountId("ann"), AccountId("bob")
FORGET_AT = Instant(NOON + 7 * DAY)
EXPIRY = Instant(NOON + ADDRESS_LIFETIME)
REPORT = StoredReport(95, '{"checks": {}}')
TRANSCRIPT = ("S: 220 ready", "C: EHLO mx.example.com")


async def add(stores: Stores, name: str, **facts: object) -> DeliverabilityTest:
    """Add a test of ann's."""
    test = deliverability_test(name, **facts)  # type: ignore[arg-type]
    await stores.tests.add(test, Instant(test.created_at + 7 * DAY))
    return test


async def receive(
    stores: Stores, test: DeliverabilityTest, seconds: float = 60, **facts: object
) -> Delivery:
    """Deliver a mail to a test."""
    sent = delivery(addressed(test), received_at=at(seconds), **facts)  # type: ignore[arg-type]
    assert await stores.deliveries.deliver(sent) == ()
    return sent


async def state(stores: Stores, test: DeliverabilityTest, now: Instant = NOON) -> State:
    """Return the state of a test."""
    found = await stores.tests.find_any(test.id, now)
    assert found is not None
    return found.test.state


async def claimed(
    stores: Stores, holder: str = "one", now: Instant = NOON, until: Instant = EXPIRY
) -> list[DeliverabilityTestId]:
    """Claim all available tests; return their ids."""
    found = await stores.tests.claim(Lease(holder, until), now, 10)
    return [test.id for test in found.tests]


async def completed(stores: Stores, name: str, seconds: float = 60) -> DeliverabilityTest:
    """Add a test with its mail and its report."""
    test = await add(stores, name)
    await receive(stores, test, seconds)
    assert await claimed(stores) == [test.id]
    assert await stores.tests.complete(test.id, "one", REPORT)
    return test


async def messages(stores: Stores, account_id: AccountId) -> list[MessageSummary]:
    """Return the messages of an inbox."""
    found, _ = await stores.messages.oldest_matches(account_id, MessageFilter(), NOON, 100)
    return [one.summary for one in found]


@async_fixture
async def test(stores: Stores) -> DeliverabilityTest:
    """Add a test of ann's."""
    return await add(stores, "x")


async def test_a_new_test(stores: Stores, test: DeliverabilityTest) -> None:
    """A new test is found by its account, unchanged, without a mail or a report."""
    assert await stores.tests.find(ANN, test.id, NOON) == DeliverabilityResult(test)
    assert await stores.tests.find_any(test.id, NOON) == DeliverabilityResult(test)
    assert await stores.tests.read_mail(test.id) is None


async def test_isolation(stores: Stores) -> None:
    """A test of another account cannot be found, listed, rechecked or shared."""
    test = await completed(stores, "x")
    assert await stores.tests.find(BOB, test.id, NOON) is None
    assert (await stores.tests.page(BOB, NOON, 10, 0)).total == 0
    assert await stores.tests.recheck(BOB, test.id, NOON) is None
    assert not await stores.tests.replace_share_token(BOB, test.id, "new", NOON)
    found = await stores.tests.find(ANN, test.id, NOON)
    assert found is not None
    assert (found.test.state, found.test.share_token) == (State.COMPLETED, "secret-x")


async def test_pending_tests_are_bounded(stores: Stores) -> None:
    """An account has a maximum of pending tests; used and expired ones do not count."""
    tests = [await add(stores, f"x{chr(97 + n // 26)}{chr(97 + n % 26)}") for n in range(99)]
    await add(stores, "y", created_at=at(-60.5))
    assert len(tests) + 1 == MAX_PENDING
    late = deliverability_test("z")
    with pytest.raises(TooManyPendingTests) as caught:
        await stores.tests.add(late, FORGET_AT)
    # The oldest expires in 3539.5 s.
    assert caught.value.retry_after == 3540
    await stores.tests.add(deliverability_test("b", "bob"), FORGET_AT)
    await receive(stores, tests[0])
    await stores.tests.add(late, FORGET_AT)
    await stores.tests.add(replace(late, id="q", created_at=at(3540)), FORGET_AT)


async def test_held_mail_is_bounded(stores: Stores, monkeypatch: pytest.MonkeyPatch) -> None:
    """While the mails of an account's tests are too large, it cannot create more in any way."""
    monkeypatch.setattr(deliverability_store, "MAX_HELD_BYTES", 8_000)
    await stores.accounts.add_account(account("cid"), noted())
    sent = delivery(recipient("cid"), raw=b"x" * 1_000)
    await stores.deliveries.deliver(sent)
    (message_id,) = sent.message_ids
    # Each test counts its mail, as in an inbox, although the bytes are stored once.
    for number, name in enumerate("abcdefgh"):
        test = deliverability_test(name, "cid")
        assert await stores.tests.add_of_message(test, message_id, at(100 + number))
    late = deliverability_test("z", "cid")
    for added in (
        stores.tests.add(late, FORGET_AT),
        stores.tests.add_of_message(late, message_id, FORGET_AT),
    ):
        with pytest.raises(TooMuchHeldMail) as caught:
            await added
        assert caught.value.retry_after == 100
    await stores.tests.add(deliverability_test("q", "bob"), FORGET_AT)
    await stores.tests.forget(at(100), 10)
    await stores.tests.add(late, FORGET_AT)


async def test_mail_for_a_test(stores: Stores, test: DeliverabilityTest) -> None:
    """The first mail is stored byte for byte, and the test is then in processing."""
    raw = bytes(range(256))
    sent = await receive(stores, test, 60, raw=raw, sender="", transcript=TRANSCRIPT)
    found = await stores.tests.find(ANN, test.id, NOON)
    assert found == DeliverabilityResult(
        replace(test, state=State.PROCESSING, received_at=at(60), delivery_id=sent.id)
    )
    assert await stores.tests.read_mail(test.id) == ReceivedMail(
        SESSION, "", at(60), raw, TRANSCRIPT, delivery_id=sent.id, account_id=ANN
    )
    assert await messages(stores, ANN) == []
    inbox = await stores.deliveries.find_account_inbox(ANN)
    assert inbox is not None
    assert (inbox.message_count, inbox.byte_count) == (0, 0)


@pytest.mark.parametrize("seconds", [3600, 3601])
async def test_mail_for_an_expired_address(
    stores: Stores, test: DeliverabilityTest, seconds: float
) -> None:
    """From its expiry on an address accepts no mail, even before the expiry run."""
    late = delivery(addressed(test), received_at=at(seconds))
    for _ in range(2):
        with pytest.raises(RecipientUnknown):
            await stores.deliveries.deliver(late)
        await stores.tests.expire(at(seconds), 10)
    assert await state(stores, test, at(seconds)) is State.EXPIRED
    assert await stores.contents.underived(10) == []


async def test_mail_in_the_last_moment(stores: Stores, test: DeliverabilityTest) -> None:
    """A mail that arrives a millisecond before the expiry is accepted."""
    await receive(stores, test, 3599.999)
    assert await stores.tests.expire(EXPIRY, 10) == 0
    assert await state(stores, test, EXPIRY) is State.PROCESSING


async def test_mail_for_a_missing_test(stores: Stores) -> None:
    """A test that never existed accepts no mail."""
    with pytest.raises(RecipientUnknown):
        await stores.deliveries.deliver(delivery(addressed(deliverability_test("x"))))


async def test_the_same_mail_again(stores: Stores, test: DeliverabilityTest) -> None:
    """The identical mail succeeds again and changes nothing, in any state of the test."""
    sent = await receive(stores, test, transcript=TRANSCRIPT)
    before = await stores.tests.find(ANN, test.id, NOON)
    await receive(stores, test, 61)
    assert await stores.tests.find(ANN, test.id, NOON) == before
    await claimed(stores)
    await stores.tests.complete(test.id, "one", REPORT)
    await receive(stores, test, 3700)
    assert await state(stores, test) is State.COMPLETED
    received = await stores.tests.read_mail(test.id)
    assert received is not None
    assert (received.received_at, received.transcript) == (at(60), TRANSCRIPT)
    assert await stores.contents.underived(10) == [sent.id]


@pytest.mark.parametrize(
    "other",
    [{"raw": mail("Welcome", "Hallo")}, {"raw": mail() + b"\r\n"}, {"sender": "else@example.com"}],
    ids=["same size", "another size", "another sender"],
)
async def test_another_mail(
    stores: Stores, test: DeliverabilityTest, other: dict[str, object]
) -> None:
    """Another mail for a test that has one is rejected and not stored."""
    sent = await receive(stores, test)
    again = delivery(addressed(test), recipient("ann"), received_at=at(61), **other)  # type: ignore[arg-type]
    with pytest.raises(AddressUsed):
        await stores.deliveries.deliver(again)
    assert await messages(stores, ANN) == []
    assert await stores.contents.underived(10) == [sent.id]


async def test_mail_for_a_test_in_a_burst(stores: Stores, test: DeliverabilityTest) -> None:
    """In a burst the first mail belongs to the test; copies succeed, others are rejected."""
    mails = [
        delivery(addressed(test), raw=mail(subject), received_at=at(60))
        for subject in ("one", "one", "two", "one", "two")
    ]
    # While some are being written, the others are collected for the next group.
    mails[:0] = [delivery(recipient("ann")) for _ in range(3)]
    outcomes = await DeferredList(
        [stores.deliveries.deliver(one) for one in mails], consumeErrors=True
    )
    assert [ok for ok, _ in outcomes] == [True] * 5 + [False, True, False]
    assert [type(getattr(why, "value", None)) for ok, why in outcomes if not ok] == [
        AddressUsed
    ] * 2
    found = await stores.tests.find(ANN, test.id, NOON)
    assert found is not None
    assert found.test.delivery_id == mails[3].id
    assert len(await messages(stores, ANN)) == 3


async def test_mail_for_tests_and_inboxes(stores: Stores) -> None:
    """A mail for tests and inboxes of several accounts reaches all of them, stored once."""
    ours, theirs = await add(stores, "x"), await add(stores, "y", account_id="bob")
    sent = delivery(
        recipient("bob", "b"),
        addressed(ours),
        recipient("ann", "a"),
        addressed(theirs),
        received_at=at(60),
    )
    assert await stores.deliveries.deliver(sent) == (1, 1)
    for test in (ours, theirs):
        assert await state(stores, test) is State.PROCESSING
    for account_id, number in ((ANN, 2), (BOB, 0)):
        (message,) = await messages(stores, account_id)
        assert (message.delivery_id, message.id) == (sent.id, sent.message_ids[number])
    # Sent again by a client that missed our reply: there is no second copy.
    again = delivery(*sent.envelope.recipients, received_at=at(61))
    assert await stores.deliveries.deliver(again) == ()
    assert len(await messages(stores, ANN)) == len(await messages(stores, BOB)) == 1
    # An inbox that was not a recipient of the first one gets it.
    more = delivery(addressed(ours), recipient("ann", "a"), recipient("ann", "c"))
    assert await stores.deliveries.deliver(more) == (2,)


async def test_all_or_nothing(stores: Stores) -> None:
    """A mail for which one of its inboxes has no room does not reach the test either."""
    await stores.accounts.add_account(account("cid", max_messages=0), noted())
    test, gone = await add(stores, "x"), deliverability_test("y")
    with pytest.raises(InboxFull):
        await stores.deliveries.deliver(delivery(addressed(test), recipient("cid")))
    with pytest.raises(RecipientUnknown):
        await stores.deliveries.deliver(
            delivery(addressed(test), recipient("ann"), addressed(gone))
        )
    assert await state(stores, test) is State.PENDING
    assert await messages(stores, ANN) == []
    assert await stores.contents.underived(10) == []
    await receive(stores, test)


async def test_claims(stores: Stores) -> None:
    """Waiting tests are claimed once, the oldest mail first, and each claim is an attempt."""
    tests = [await add(stores, name) for name in ("x", "y", "z")]
    await add(stores, "p")
    for test, seconds in zip(tests, (30, 10, 20), strict=True):
        await receive(stores, test, seconds)
    lease = Lease("one", at(30))
    first = await stores.tests.claim(lease, NOON, 2)
    assert first.given_up == ()
    assert [(test.id, test.attempts) for test in first.tests] == [
        (tests[1].id, 1),
        (tests[2].id, 1),
    ]
    assert await claimed(stores, "two") == [tests[0].id]
    assert await claimed(stores, "one") == []


async def test_accounts_take_turns(stores: Stores) -> None:
    """The only mail of an account does not wait for many older ones of another account."""
    many = [await add(stores, name) for name in ("u", "v", "w", "x")]
    for seconds, test in enumerate(many):
        await receive(stores, test, seconds)
    one = await add(stores, "z", account_id=BOB)
    await receive(stores, one, 10)
    lease = Lease("one", at(30))
    turns = [await stores.tests.claim(lease, NOON, limit) for limit in (1, 2, 2)]
    assert [[test.id for test in turn.tests] for turn in turns] == [
        [many[0].id],
        [one.id, many[1].id],
        [many[2].id, many[3].id],
    ]


async def test_tests_in_progress_count_for_the_turn(stores: Stores) -> None:
    """An account without an analysis in progress comes before an account with one."""
    many = [await add(stores, name) for name in ("x", "y")]
    for seconds, test in enumerate(many):
        await receive(stores, test, seconds)
    lease = Lease("one", at(30))
    assert len((await stores.tests.claim(lease, NOON, 1)).tests) == 1
    one = await add(stores, "z", account_id=BOB)
    await receive(stores, one, 10)
    for expected in (one, many[1]):
        (found,) = (await stores.tests.claim(lease, NOON, 1)).tests
        assert found.id == expected.id


async def test_a_lease_that_ends(stores: Stores, test: DeliverabilityTest) -> None:
    """After the end of a lease another holder takes over; the first one's result is ignored."""
    await receive(stores, test)
    await claimed(stores, "one", NOON, at(30))
    assert await claimed(stores, "two", at(29.999)) == []
    assert await claimed(stores, "two", at(30), at(60)) == [test.id]
    assert await stores.tests.renew(Lease("one", at(90)), [test.id]) == frozenset()
    assert not await stores.tests.complete(test.id, "one", REPORT)
    assert await stores.tests.fail_attempt(test.id, "one", "no", NOON) is None
    await stores.tests.release("one", is_attempt=False)
    assert await state(stores, test) is State.PROCESSING
    assert await stores.tests.complete(test.id, "two", REPORT)


async def test_renewing(stores: Stores, test: DeliverabilityTest) -> None:
    """A renewed lease continues."""
    await receive(stores, test)
    await claimed(stores, "one", NOON, at(30))
    assert await stores.tests.renew(Lease("one", at(60)), [test.id]) == {test.id}
    assert await claimed(stores, "two", at(59)) == []
    assert await claimed(stores, "two", at(60)) == [test.id]


async def test_completing(stores: Stores) -> None:
    """The report is stored unchanged, once; then the test has no holder."""
    test = await completed(stores, "x")
    found = await stores.tests.find(ANN, test.id, NOON)
    assert found is not None
    assert (found.test.state, found.report, found.failure) == (State.COMPLETED, REPORT, "")
    assert not await stores.tests.complete(test.id, "one", StoredReport(0, "{}"))
    assert await stores.tests.renew(Lease("one", at(60)), [test.id]) == frozenset()
    assert await claimed(stores, now=EXPIRY) == []


async def test_failing(stores: Stores, test: DeliverabilityTest) -> None:
    """A failed analysis is retried later, and goes into error after the last attempt."""
    await receive(stores, test)
    for attempt in range(1, MAX_ATTEMPTS + 1):
        now = at(attempt * 10)
        assert await claimed(stores, now=now) == [test.id]
        after = await stores.tests.fail_attempt(test.id, "one", "why", Instant(now + 5_000))
        assert after is (State.ERROR if attempt == MAX_ATTEMPTS else State.PROCESSING)
        assert await claimed(stores, now=Instant(now + 4_999)) == []
    found = await stores.tests.find(ANN, test.id, NOON)
    assert found is not None
    assert (found.test.state, found.report, found.failure) == (State.ERROR, None, "why")


async def test_analyses_that_never_end(stores: Stores, test: DeliverabilityTest) -> None:
    """A mail that crashes the daemon each time goes into error, and is not retried for ever."""
    await receive(stores, test)
    for _ in range(MAX_ATTEMPTS):
        assert await claimed(stores) == [test.id]
        await stores.tests.release("one", is_attempt=True)
    assert await stores.tests.claim(Lease("one", EXPIRY), NOON, 10) == Claimed((), (test.id,))
    assert await claimed(stores) == []
    found = await stores.tests.find(ANN, test.id, NOON)
    assert found is not None
    assert (found.test.state, found.failure) == (
        State.ERROR,
        "the analysis began 3 times and never ended",
    )


async def test_releasing(stores: Stores) -> None:
    """A released test can be claimed at once, and the attempt is not counted."""
    tests = [await add(stores, name) for name in ("x", "y")]
    for test in tests:
        await receive(stores, test)
    for _ in range(MAX_ATTEMPTS + 1):
        assert await claimed(stores) == [test.id for test in tests]
        await stores.tests.release("two", is_attempt=False)
        assert await claimed(stores) == []
        await stores.tests.release("one", is_attempt=False)
    again = await stores.tests.claim(Lease("a", EXPIRY), NOON, 9)
    assert [test.attempts for test in again.tests] == [1, 1]


async def test_recheck(stores: Stores) -> None:
    """A recheck starts again: no report, no failure, all attempts."""
    test = await completed(stores, "x")
    assert await stores.tests.recheck(ANN, test.id, NOON) is State.COMPLETED
    found = await stores.tests.find(ANN, test.id, NOON)
    assert found is not None
    assert (found.test.state, found.test.attempts, found.report) == (State.PROCESSING, 0, None)
    assert await stores.tests.recheck(ANN, test.id, NOON) is State.PROCESSING
    assert await claimed(stores) == [test.id]
    assert await stores.tests.recheck(ANN, test.id, NOON) is State.PROCESSING
    assert await claimed(stores, "two") == []
    for _ in range(MAX_ATTEMPTS):
        await stores.tests.fail_attempt(test.id, "one", "why", NOON)
        await claimed(stores)
    assert await stores.tests.recheck(ANN, test.id, NOON) is State.ERROR
    assert await state(stores, test) is State.PROCESSING
    assert await claimed(stores) == [test.id]


async def test_expiry(stores: Stores) -> None:
    """A test counts as expired from its expiry on; its stored state follows in batches."""
    tests = [await add(stores, name, created_at=at(n)) for n, name in enumerate("xyz")]
    assert await state(stores, tests[0], Instant(EXPIRY - 1)) is State.PENDING
    assert await state(stores, tests[0], EXPIRY) is State.EXPIRED
    assert await state(stores, tests[1], EXPIRY) is State.PENDING
    late = at(3602)
    assert [await stores.tests.expire(late, 2) for _ in range(3)] == [2, 1, 0]
    # An expired test stays expired, even if the clock goes back.
    assert [await state(stores, test) for test in tests] == [State.EXPIRED] * 3


async def test_scoring_a_message(stores: Stores) -> None:
    """A test of a message begins in processing with the message's mail, which both share."""
    sent = delivery(recipient("ann"), received_at=at(-60), sender="")
    await stores.deliveries.deliver(sent)
    test = deliverability_test("x", state=State.PROCESSING)
    assert await stores.tests.add_of_message(test, sent.message_ids[0], FORGET_AT)
    found = await stores.tests.find(ANN, test.id, NOON)
    assert found == DeliverabilityResult(replace(test, received_at=at(-60), delivery_id=sent.id))
    assert await stores.tests.read_mail(test.id) == ReceivedMail(
        SESSION, "", at(-60), sent.raw_message, delivery_id=sent.id, account_id=ANN
    )
    assert await claimed(stores) == [test.id]


async def test_scoring_a_missing_message(stores: Stores) -> None:
    """A message that is missing, expired or of another account creates no test."""
    sent = delivery(recipient("ann"))
    await stores.deliveries.deliver(sent)
    (message_id,) = sent.message_ids
    for test, wanted in (
        (deliverability_test("x", "bob"), message_id),
        (deliverability_test("x", created_at=Instant(NOON + RETENTION)), message_id),
        (deliverability_test("x", created_at=Instant(NOON + RETENTION + 1)), message_id),
        (deliverability_test("x"), MessageId("gone")),
    ):
        assert not await stores.tests.add_of_message(test, wanted, FORGET_AT)
        assert await stores.tests.find_any(test.id, NOON) is None


async def test_a_mail_is_kept_while_it_is_needed(stores: Stores) -> None:
    """The bytes are kept while a message or a test refers to them, in any order of deletion."""
    first, second = await add(stores, "x"), await add(stores, "y")
    both = [delivery(addressed(test), recipient("ann")) for test in (first, second)]
    for sent in both:
        await stores.deliveries.deliver(sent)
    # The message is deleted first.
    (message_id,) = both[0].message_ids[1:]
    assert await stores.messages.delete_message(ANN, message_id, NOON)
    assert await stores.contents.raw_message(both[0].id) is not None
    assert await stores.expiry.expire(Instant(NOON + RETENTION), 10) == 1
    assert [await stores.contents.raw_message(one.id) for one in both] == [mail(), mail()]
    assert await stores.tests.forget(FORGET_AT, 10) == 2
    assert [await stores.contents.raw_message(one.id) for one in both] == [None, None]


async def test_deleting_a_test_keeps_the_message(stores: Stores) -> None:
    """Deleting tests keeps the bytes of a message, and those of other tests."""
    sent = delivery(recipient("ann"))
    await stores.deliveries.deliver(sent)
    (message_id,) = sent.message_ids
    for name, forget_at in (("x", at(1)), ("y", at(2)), ("z", at(3))):
        if name == "y":
            assert await stores.tests.forget(at(1), 10) == 1
            assert await stores.contents.raw_message(sent.id) == sent.raw_message
        test = deliverability_test(name)
        assert await stores.tests.add_of_message(test, message_id, forget_at)
    await stores.messages.delete_message(ANN, message_id, NOON)
    assert await stores.tests.forget(at(2), 10) == 1
    assert await stores.contents.raw_message(sent.id) == sent.raw_message
    assert await stores.tests.forget(at(3), 10) == 1
    assert await stores.contents.raw_message(sent.id) is None


async def test_forgetting(stores: Stores) -> None:
    """Results are hidden and deleted a time after the mail, unused tests after their creation."""
    unused, used = await add(stores, "x"), await completed(stores, "y", 600)
    assert await stores.tests.find(ANN, unused.id, Instant(FORGET_AT - 1)) is not None
    assert await stores.tests.find(ANN, unused.id, FORGET_AT) is None
    later = Instant(FORGET_AT + 10 * MINUTE)
    assert (await stores.tests.page(ANN, Instant(later - 1), 10, 0)).total == 1
    assert await stores.tests.find_any(used.id, Instant(later - 1)) is not None
    assert await stores.tests.find_any(used.id, later) is None
    assert await stores.tests.recheck(ANN, used.id, later) is None
    assert not await stores.tests.replace_share_token(ANN, used.id, "new", later)
    assert [await stores.tests.forget(later, 1) for _ in range(3)] == [1, 1, 0]
    assert await stores.tests.find_any(used.id, NOON) is None


async def test_deleting(stores: Stores) -> None:
    """A test is deleted in any state, with a mail without other references, by its account only."""
    pending, done = await add(stores, "p"), await completed(stores, "d")
    shared = await add(stores, "s")
    sent = delivery(addressed(shared), recipient("ann"))
    await stores.deliveries.deliver(sent)
    assert not await stores.tests.delete(BOB, done.id, NOON)
    assert not await stores.tests.delete(ANN, done.id, Instant(FORGET_AT + DAY))
    for test in (pending, done, shared):
        assert await stores.tests.delete(ANN, test.id, NOON)
        assert not await stores.tests.delete(ANN, test.id, NOON)
        assert await stores.tests.find_any(test.id, NOON) is None
        assert await stores.tests.read_mail(test.id) is None
    assert (await stores.tests.page(ANN, NOON, 10, 0)).total == 0
    assert await stores.contents.raw_message(sent.id) == sent.raw_message
    (message_id,) = sent.message_ids[1:]
    assert await stores.messages.delete_message(ANN, message_id, NOON)
    assert await stores.contents.raw_message(sent.id) is None


async def test_deleting_while_an_analysis_runs(stores: Stores, test: DeliverabilityTest) -> None:
    """The report of a test that was deleted meanwhile is ignored."""
    sent = await receive(stores, test)
    await claimed(stores)
    assert await stores.tests.delete(ANN, test.id, NOON)
    assert not await stores.tests.complete(test.id, "one", REPORT)
    assert await stores.contents.raw_message(sent.id) is None


async def test_the_mail_of_a_test_as_a_message(stores: Stores, test: DeliverabilityTest) -> None:
    """It has the facts of a message: its sender, its size and its expiry."""
    assert await stores.tests.find_message(test.id) is None
    sent = await receive(stores, test)
    row = await stores.tests.find_message(test.id)
    assert row is not None
    assert (row.envelope_sender, row.session) == (sent.envelope.envelope_sender, sent.session)
    assert row.summary == MessageSummary(
        id=MessageId(test.id),
        account_id=ANN,
        delivery_id=sent.id,
        position=START,
        recipient=f"test-{test.id}",
        tag="",
        header=HeaderSummary("shop@example.com", "Shop", "Welcome"),
        size=len(sent.raw_message),
        received_at=sent.received_at,
        expires_at=Instant(FORGET_AT + MINUTE),
        share_token=test.share_token,
    )


async def test_the_tests_of_a_domain(stores: Stores) -> None:
    """The newest completed tests are found by the domain of the mails' authors only."""
    first, second = await completed(stores, "a", 60), await completed(stores, "b", 120)
    await add(stores, "p")
    found = await stores.tests.of_domain(ANN, "example.com", NOON, 10)
    assert {one.test.id for one in found} == {first.id, second.id}
    assert [one.tenths for one in found] == [95, 95]
    assert len(await stores.tests.of_domain(ANN, "example.com", NOON, 1)) == 1
    for other in ("xample.com", "mple.com", "e_ample.com", "%", "example.org"):
        assert await stores.tests.of_domain(ANN, other, NOON, 10) == ()
    assert await stores.tests.of_domain(BOB, "example.com", NOON, 10) == ()


async def test_content_only(stores: Stores) -> None:
    """A list marks scores of the content alone, independent of the text of the mail."""
    for name, document, expected in (
        ("a", '{"contentOnly":true,"notes":[]}', True),
        ("b", '{"contentOnly":false,"notes":["\\"contentOnly\\":true"]}', False),
    ):
        test = await add(stores, name)
        await receive(stores, test)
        await claimed(stores)
        assert await stores.tests.complete(test.id, "one", StoredReport(80, document))
        (listed,) = (await stores.tests.page(ANN, NOON, 10, 0)).entries
        assert listed.is_content_only is expected
        assert await stores.tests.delete(ANN, test.id, NOON)


async def test_listing(stores: Stores) -> None:
    """Tests are listed newest first, with the facts that their state allows, by pages."""
    pending = await add(stores, "p", created_at=at(5))
    done = await completed(stores, "d")
    running = await add(stores, "r", created_at=at(-5))
    await receive(stores, running, raw=mail("Subject", author="Ann <ann@example.com>"))
    await add(stores, "b", account_id="bob")
    page = await stores.tests.page(ANN, NOON, 10, 0)
    assert page.total == 3
    assert [entry.test.id for entry in page.entries] == [pending.id, done.id, running.id]
    assert page.entries[0] == ListedTest(pending)
    header = HeaderSummary("shop@example.com", "Shop", "Welcome")
    assert (page.entries[1].tenths, page.entries[1].header) == (95, header)
    assert page.entries[2].tenths is None
    assert page.entries[2].header == HeaderSummary("ann@example.com", "Ann", "Subject")
    second = await stores.tests.page(ANN, NOON, 2, 2)
    assert (second.entries, second.total) == (page.entries[2:], 3)

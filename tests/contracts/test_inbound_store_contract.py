"""The contract of `InboundStore`, and of routing at arrival, on every engine."""

import pytest
from msgspec.structs import replace

from mailcheck.core.errors import InboundQueueFull, TooManyRoutes
from mailcheck.core.identifiers import AccountId, MessageId
from mailcheck.core.inbound import (
    ANSWER_KEPT,
    HELD_FOR,
    MOST_A_LOOP,
    MOST_ROUTES,
    SENDER_IP,
    InboundAttempt,
    InboundDeliveryId,
    InboundFault,
    InboundFormat,
    InboundMailId,
    InboundRoute,
    InboundRouteId,
    InboundState,
    InboundVerdict,
    NextStep,
    Verdicts,
)
from mailcheck.core.instants import MINUTE, Instant
from mailcheck.core.messages import Session
from mailcheck.ports.engine import Value
from mailcheck.ports.workers import Lease
from mailcheck.store.inbound_store import (
    MOST_WAITING,
    OF_ACCOUNT,
    InboundFilter,
    InboundJob,
    InboundMailFacts,
)
from tests.contracts.conftest import Stores
from tests.engines.deliveries import (
    NOON,
    at,
    delivery,
    inbound_delivery,
    inbound_mail,
    inbound_route,
    noted,
    recipient,
)

ANN, BOB = AccountId("ann"), AccountId("bob")
MINE, OTHER = "this daemon", "another one"
ALL = InboundFilter()
HIDDEN_CLIENT = Session("198.51.100.9", "mx.customer.example", is_extended=True)


async def added(stores: Stores, route: InboundRoute, *, each: bool = False) -> InboundRoute:
    """Add a route."""
    kept = await stores.inbound.add_route(route, noted(), is_per_recipient=each, opening=None)
    assert kept is not None
    return kept


async def sent(stores: Stores, route: InboundRoute, name: str, **facts: object) -> None:
    """Add a mail with one delivery; both have the name."""
    mail = inbound_mail(name, owner=route.account_id)
    assert await stores.inbound.add_mail(mail, [inbound_delivery(name, route, mail, **facts)])


async def claimed(stores: Stores, seconds: float = 0, limit: int = 99) -> list[InboundJob]:
    """Claim what is due, for a minute."""
    lease = Lease(MINE, at(seconds + 60))
    return list((await stores.inbound.claim(lease, at(seconds), limit)).jobs)


def tried(job: InboundJob, status: int = 200) -> InboundAttempt:
    """Return an attempt."""
    assert job.delivery.mail_id is not None
    return InboundAttempt(
        delivery_id=job.id,
        route_id=job.route.id,
        mail_id=job.delivery.mail_id,
        number=job.delivery.attempts + 1,
        at=at(job.delivery.attempts),
        status=status,
        milliseconds=7,
        problem="" if status == 200 else "it answered",
        request_headers=(("A", "1"), ("A", "2")),
        answer_headers=(("B", "ü"),),
        answer=b"\x00\xff" * (ANSWER_KEPT // 2),
    )


DONE = NextStep(InboundState.DELIVERED)


async def test_a_route_is_kept_whole(stores: Stores) -> None:
    """A route is found by its account only, changed by columns, and found unchanged."""
    one = inbound_route(
        "one",
        to="support@*",
        format=InboundFormat.SMTP,
        user="u",
        password="p",
        speed=7,
        fault=InboundFault.TWICE,
        is_confirmed=False,
    )
    assert await added(stores, one) == one
    assert await stores.inbound.find_route(ANN, one.id) == one
    assert await stores.inbound.find_route(BOB, one.id) is None
    assert await stores.inbound.find_any_route(one.id) == one
    assert await stores.inbound.routes(BOB) == []
    two = await added(stores, inbound_route("two", created_at=at(1)))
    assert await stores.inbound.routes(ANN) == [one, two]
    assert await stores.inbound.accounts() == {ANN}
    changes: dict[str, Value] = {"pattern": "*", "speed": 9, "fault": None}
    changed = await stores.inbound.change_route(ANN, one.id, changes, noted())
    assert changed == replace(one, to="*", speed=9, fault=None)
    assert await stores.inbound.change_route(BOB, one.id, {"speed": 1}, noted()) is None
    assert await stores.inbound.confirm_route(one.id)
    assert not await stores.inbound.confirm_route(InboundRouteId("none"))
    assert (await stores.inbound.find_any_route(one.id)) == replace(changed, is_confirmed=True)


async def test_the_number_of_routes_is_limited(stores: Stores) -> None:
    """An account has at most `MOST_ROUTES` routes."""
    for number in range(MOST_ROUTES):
        await added(stores, inbound_route(f"r{number}"))
    with pytest.raises(TooManyRoutes):
        await added(stores, inbound_route("more"))
    await added(stores, inbound_route("other", "bob"))


async def test_arriving_mail_is_queued_for_its_routes(stores: Stores) -> None:
    """A mail is one delivery for each route that it matches, or one for each recipient."""
    whole = await added(stores, inbound_route("whole", to="*@app.test"))
    each = await added(stores, inbound_route("each", to="*+T*"), each=True)
    await added(stores, inbound_route("other", to="nobody@*"))
    bobs = await added(stores, inbound_route("bobs", "bob"))
    addresses = ("in+ta@app.test", "in+tb@app.test", "in@elsewhere.test")
    reached = [replace(recipient("ann"), address=address) for address in addresses]
    mail = replace(delivery(*reached, recipient("bob")), session=HIDDEN_CLIENT)
    await stores.deliveries.deliver(mail)
    jobs = await claimed(stores)
    found = sorted((job.route.id, job.delivery.recipients) for job in jobs)
    assert found == [
        (bobs.id, (recipient("bob").address,)),
        (each.id, (addresses[0],)),
        (each.id, (addresses[1],)),
        (whole.id, addresses[:2]),
    ]
    mail_id = InboundMailId(mail.message_ids[0])
    stored = await stores.inbound.find_mail(ANN, mail_id)
    assert stored is not None
    assert (stored.mail.raw_message, stored.mail.recipients) == (mail.raw_message, addresses[:2])
    assert (stored.has_verdicts, stored.mail.client_ip) == (False, HIDDEN_CLIENT.client_ip)
    judged = Verdicts(spf=InboundVerdict.FAIL, spam_score=1.5)
    await stores.inbound.set_verdicts(mail_id, judged)
    stored = await stores.inbound.find_mail(ANN, mail_id)
    assert stored is not None
    assert (stored.has_verdicts, stored.mail.verdicts) == (True, judged)
    assert await stores.inbound.find_mail(BOB, mail_id) is None
    facts = await stores.inbound.describe_mail(ANN, mail_id)
    assert facts == InboundMailFacts(
        mail_id,
        stored.mail.envelope_sender,
        stored.mail.recipients,
        stored.mail.received_at,
        stored.mail.verdicts,
        size=len(stored.mail.raw_message),
    )
    assert await stores.inbound.describe_mail(BOB, mail_id) is None


async def test_submitted_mail_passes(stores: Stores) -> None:
    """Mail of an authenticated or local client has verdicts, and the address of no real client."""
    await added(stores, inbound_route("one"))
    submitted = Session("198.51.100.9", "laptop", is_extended=True, account_id=ANN)
    local = Session("10.0.0.7", "laptop", is_extended=True)
    for session in (submitted, local):
        mail = replace(delivery(recipient("ann")), session=session)
        await stores.deliveries.deliver(mail)
        stored = await stores.inbound.find_mail(ANN, InboundMailId(mail.message_ids[0]))
        assert stored is not None
        assert (stored.has_verdicts, stored.mail.verdicts) == (True, Verdicts())
        assert stored.mail.client_ip == SENDER_IP


async def test_mail_without_routes_is_not_queued(stores: Stores) -> None:
    """After the last route of an account was deleted, its mail is for nobody."""
    route = await added(stores, inbound_route("one"))
    assert not await stores.inbound.delete_route(BOB, route.id, noted())
    assert await stores.inbound.delete_route(ANN, route.id, noted())
    assert not await stores.inbound.delete_route(ANN, route.id, noted())
    await stores.deliveries.deliver(delivery(recipient("ann")))
    assert await claimed(stores) == []
    assert not await stores.inbound.has_pending()


async def test_a_loop_stops(stores: Stores) -> None:
    """More than `MOST_A_LOOP` mails of the same addresses in a minute are listed, and not sent."""
    await added(stores, inbound_route("one"))
    for number in range(MOST_A_LOOP + 2):
        mail = replace(delivery(recipient("ann")), received_at=at(number))
        await stores.deliveries.deliver(mail)
    listed = await stores.inbound.deliveries(ANN, ALL, 99)
    stopped = [one for one in listed if one.delivery.state is InboundState.STOPPED]
    assert [one.delivery.due_at for one in stopped] == [None, None]
    assert all(one.last_attempt and "loop" in one.last_attempt.problem for one in stopped)
    assert len(await claimed(stores, 99)) == MOST_A_LOOP
    later = replace(delivery(recipient("ann")), received_at=Instant(at(3) + MINUTE))
    await stores.deliveries.deliver(later)
    assert len(await claimed(stores, 99)) == 1


async def test_a_delivery_belongs_to_one_daemon(stores: Stores) -> None:
    """A claimed delivery is free after its lease, a release or a renewal by nobody."""
    route = await added(stores, inbound_route("one"))
    await sent(stores, route, "a")
    (job,) = await claimed(stores)
    assert job.delivery == inbound_delivery("a", route, inbound_mail("a"))
    assert job.route == route
    assert await claimed(stores, 1) == []
    held = await stores.inbound.renew(Lease(MINE, at(90)), [job.id, InboundDeliveryId("b")])
    assert held == {job.id}
    assert await stores.inbound.renew(Lease(OTHER, at(90)), [job.id]) == frozenset()
    assert await claimed(stores, 89) == []
    assert len(await claimed(stores, 90)) == 1
    await stores.inbound.release(OTHER)
    assert await claimed(stores, 91) == []
    await stores.inbound.release(MINE)
    assert len(await claimed(stores, 91)) == 1
    assert not await stores.inbound.record(job, OTHER, tried(job), DONE, at(91), is_taken=True)
    assert await stores.inbound.attempts(ANN, ALL, 9) == []


async def test_attempts_are_kept_whole(stores: Stores) -> None:
    """Attempts are listed newest first, by route and by mail; a retry is due after its wait."""
    route = await added(stores, inbound_route("one"))
    await sent(stores, route, "a")
    (job,) = await claimed(stores)
    first = tried(job, 500)
    retried = NextStep(InboundState.RETRYING, 7_000)
    assert await stores.inbound.record(job, MINE, first, retried, at(0), is_taken=False)
    claim = await stores.inbound.claim(Lease(MINE, at(60)), at(1), 9)
    assert (claim.jobs, claim.wait) == ((), 6_000)
    (again,) = await claimed(stores, 7)
    assert (again.delivery.attempts, again.delivery.state) == (1, InboundState.RETRYING)
    second = tried(again)
    assert await stores.inbound.record(again, MINE, second, DONE, at(8), is_taken=True)
    assert await stores.inbound.attempts(ANN, ALL, 9) == [second, first]
    assert await stores.inbound.attempts(ANN, ALL, 1, 1) == [first]
    assert await stores.inbound.attempts(ANN, InboundFilter(route.id, first.mail_id), 1) == [second]
    assert await stores.inbound.attempts(ANN, InboundFilter(InboundRouteId("no")), 9) == []
    assert await stores.inbound.attempts(BOB, ALL, 9) == []
    assert await stores.inbound.count_attempts(ANN, ALL) == 2
    (listed,) = await stores.inbound.deliveries(ANN, ALL, 9)
    assert (listed.delivery.taken_at, listed.delivery.due_at) == (at(8), None)
    assert listed.last_attempt == second
    assert listed.header is not None
    assert listed.header.subject == "Hi"
    assert not await stores.inbound.has_pending()


async def test_a_mail_out_of_order_waits_for_the_next_one(stores: Stores) -> None:
    """It becomes due after an attempt for a later mail, or after `HELD_FOR`."""
    route = await added(stores, inbound_route("one"))
    await sent(stores, route, "a", fault=InboundFault.OUT_OF_ORDER)
    assert await claimed(stores) == []
    await sent(stores, route, "b", fault=InboundFault.OUT_OF_ORDER)
    (second,) = await claimed(stores)
    assert second.id == "b"
    await stores.inbound.record(second, MINE, tried(second), DONE, at(0), is_taken=True)
    (first,) = await claimed(stores)
    assert first.id == "a"
    await stores.inbound.record(first, MINE, tried(first), DONE, at(0), is_taken=True)
    await sent(stores, route, "c", fault=InboundFault.OUT_OF_ORDER)
    assert len(await claimed(stores, HELD_FOR / 1_000)) == 1


async def test_an_account_has_some_deliveries_at_once(stores: Stores) -> None:
    """An account with many mails does not delay the mail of another account."""
    for route in (inbound_route("one"), inbound_route("other", "bob")):
        kept = await added(stores, route)
        for number in range(OF_ACCOUNT + 1 if route.account_id == ANN else 1):
            await sent(stores, kept, f"{route.id}{number}")
    jobs = await claimed(stores)
    assert [job.route.id for job in jobs].count(InboundRouteId("one")) == OF_ACCOUNT
    assert len(jobs) == OF_ACCOUNT + 1
    assert await claimed(stores) == []


async def test_mail_waits_for_the_confirmation_of_its_route(stores: Stores) -> None:
    """Only the request that opens a route is due before the route is confirmed."""
    route = inbound_route("one", is_confirmed=False)
    opening = inbound_delivery("opening", route, None)
    assert await stores.inbound.add_route(route, noted(), is_per_recipient=False, opening=opening)
    await sent(stores, route, "a")
    (job,) = await claimed(stores)
    assert job.id == "opening"
    assert await stores.inbound.record(job, MINE, None, DONE, at(0), is_taken=True)
    assert await claimed(stores) == []
    await stores.inbound.confirm_route(route.id)
    assert [job.id for job in await claimed(stores)] == ["a"]


async def test_a_stored_message_is_sent_again(stores: Stores) -> None:
    """Its bytes are shared, and stay when the message is deleted, until the mail is deleted."""
    route = await added(stores, inbound_route("one", to="none@*"))
    received = delivery(recipient("ann"))
    await stores.deliveries.deliver(received)
    mail = inbound_mail("a", raw_message=b"")
    queued = [inbound_delivery("a", route, mail)]
    (message_id,) = received.message_ids
    add = stores.inbound.add_stored
    assert not await add(mail, MessageId("none"), NOON, queued)
    assert not await add(replace(mail, account_id=BOB), message_id, NOON, queued)
    assert await add(mail, message_id, NOON, queued)
    await stores.removal.delete_messages(ANN, 9)
    stored = await stores.inbound.find_mail(ANN, mail.id)
    assert stored is not None
    assert stored.mail.raw_message == received.raw_message
    assert await stores.inbound.delete_route(ANN, route.id, noted())
    assert await stores.inbound.find_mail(ANN, mail.id) is None
    assert await stores.contents.raw_message(received.id) is None


async def test_the_queue_is_limited(stores: Stores) -> None:
    """An account has at most `MOST_WAITING` deliveries that wait for their first attempt."""
    route = await added(stores, inbound_route("one"))
    mail = inbound_mail("many")
    many = [inbound_delivery(f"d{number}", route, mail) for number in range(MOST_WAITING)]
    assert await stores.inbound.add_mail(mail, many)
    with pytest.raises(InboundQueueFull):
        await sent(stores, route, "one more")
    other = inbound_route("gone", "bob")
    gone = inbound_mail("b", "bob")
    assert not await stores.inbound.add_mail(gone, [inbound_delivery("x", other, gone)])


async def test_old_mails_are_deleted(stores: Stores) -> None:
    """Old mails are deleted with their attempts, and their bytes with them."""
    route = await added(stores, inbound_route("one"))
    await sent(stores, route, "a")
    (job,) = await claimed(stores)
    await stores.inbound.record(job, MINE, tried(job), DONE, at(0), is_taken=True)
    assert await stores.inbound.forget_attempts(9) == 0
    assert await stores.inbound.forget_mails(NOON, 9) == 0
    assert await stores.inbound.forget_mails(at(1), 9) == 1
    assert await stores.inbound.attempts(ANN, ALL, 9) == []
    assert await stores.inbound.find_mail(ANN, InboundMailId("a")) is None


async def test_postponed(stores: Stores) -> None:
    """A delivery that could not be attempted is due later, without an attempt."""
    route = await added(stores, inbound_route("one"))
    await sent(stores, route, "a")
    (job,) = await claimed(stores)
    await stores.inbound.postpone(job.id, MINE, at(9))
    assert await claimed(stores, 8) == []
    (again,) = await claimed(stores, 9)
    assert again.delivery.attempts == 0


async def test_a_deleted_account_takes_its_mails(stores: Stores) -> None:
    """The routes, mails and bytes of an account are deleted with it."""
    route = await added(stores, inbound_route("one"))
    await sent(stores, route, "a")
    holdings = await stores.removal.holdings(ANN)
    assert holdings is not None
    assert holdings.routes == 1
    assert await stores.removal.delete(ANN, noted())
    assert await claimed(stores) == []


async def test_mails_are_found_by_their_routes(stores: Stores) -> None:
    """Only mails of the given routes of the account are found and listed, newest first."""
    one, two = await added(stores, inbound_route("one")), await added(stores, inbound_route("two"))
    for name in ("a", "b", "c", "d"):
        await sent(stores, one, name)
    await sent(stores, two, "e")
    found = await stores.inbound.find_routed(ANN, (one.id,), ("b", "b"))
    assert found is not None
    assert (found.mail_id, found.route_id, found.account_id) == ("b", one.id, ANN)
    kept = await stores.inbound.find_mail(ANN, found.mail_id)
    assert kept is not None
    assert found.size == len(kept.mail.raw_message)
    first = await stores.inbound.find_routed(ANN, (one.id,), ("b", "c"))
    assert first == found
    assert await stores.inbound.find_routed(ANN, (two.id,), ("a", "d")) is None
    assert await stores.inbound.find_routed(BOB, (one.id,), ("a", "d")) is None
    assert await stores.inbound.find_routed(ANN, (), ("a", "d")) is None

    async def listed(limit: int = 9, after: str = "", before: str = "") -> list[str]:
        return await stores.inbound.routed_ids(ANN, (one.id,), limit, after=after, before=before)

    assert await listed() == ["d", "c", "b", "a"]
    assert await listed(2) == ["d", "c"]
    assert await listed(2, after="c") == ["b", "a"]
    assert await listed(2, before="a") == ["c", "b"]
    assert await listed(after="d", before="a") == ["c", "b"]
    assert await stores.inbound.routed_ids(ANN, (), 9, after="", before="") == []

"""What a `ContentStore` promises on every engine."""

import pickle

from twisted.internet.defer import gatherResults

from mailcheck.core.content import AttachmentFacts, Candidate, CandidateKind, Extracted
from mailcheck.core.errors import MessageNotFound
from mailcheck.core.filters import MessageFilter
from mailcheck.core.identifiers import AccountId, DeliveryId
from tests.contracts.conftest import Stores
from tests.engines.deliveries import account, at, content, delivery, recipient

WHOLE = content(
    "Grüße 🎉",
    codes=["482913", "AB-12"],
    header_list=(("Subject", "Grüße"), ("Received", "a\nb"), ("Received", "")),
    html="<p>é</p>",
    attachments=(
        AttachmentFacts("1", "résumé.pdf", "application/pdf", 0, None),
        AttachmentFacts("2", "", "text/plain", 17, "cid@example.com"),
    ),
    links=("https://example.com/ä?b=c", "http://x.example/"),
    best_link="http://x.example/",
    candidates=(
        Candidate(CandidateKind.CODE, "482913", 7, True, ("near a label",)),
        Candidate(CandidateKind.LINK, "http://x.example/", -3, False, ()),
        Candidate(CandidateKind.MAIL_ADDRESS, "a@b.example", 0, False, ("one", "two")),
    ),
    problems=("broken", "too deep"),
    snippet="Grüße 🎉",
)


async def test_content_comes_back_whole(stores: Stores) -> None:
    """What was derived comes back equal, whatever is in it."""
    await stores.accounts.add_account(account("ann"))
    sent = delivery(recipient("ann"))
    await stores.deliveries.deliver(sent)
    assert await stores.contents.find_content(sent.id) is None
    await stores.contents.save_content(sent.id, WHOLE)
    assert await stores.contents.find_content(sent.id) == WHOLE


async def test_content_comes_back_packed(stores: Stores) -> None:
    """It comes packed too, for a worker, who may be another process."""
    await stores.accounts.add_account(account("ann"))
    sent = delivery(recipient("ann"))
    await stores.deliveries.deliver(sent)
    assert await stores.contents.packed_content(sent.id) is None
    await stores.contents.save_content(sent.id, WHOLE)
    unpack = pickle.loads(pickle.dumps(await stores.contents.packed_content(sent.id)))
    assert unpack() == WHOLE


async def test_packed_content_that_is_deleted_meanwhile(stores: Stores) -> None:
    """It is unpacked whole, or is a message that is not there: never less of it."""
    await stores.accounts.add_account(account("ann"))
    sent = delivery(recipient("ann"))
    await stores.deliveries.deliver(sent)
    await stores.contents.save_content(sent.id, WHOLE)
    unpack = await stores.contents.packed_content(sent.id)
    assert unpack is not None
    (key,) = sent.message_ids
    assert await stores.messages.delete_message(AccountId("ann"), key, sent.received_at)
    try:
        assert unpack() == WHOLE
    except MessageNotFound:
        assert await stores.contents.packed_content(sent.id) is None


async def test_content_without_anything(stores: Stores) -> None:
    """An empty content is a content: it is not derived again."""
    await stores.accounts.add_account(account("ann"))
    sent = delivery(recipient("ann"), raw=b"")
    await stores.deliveries.deliver(sent)
    await stores.contents.save_content(sent.id, content(""))
    assert await stores.contents.find_content(sent.id) == content("")
    assert await stores.contents.underived(10) == []


async def test_the_first_content_stays(stores: Stores) -> None:
    """Saved twice, the first one stays: both were derived from the same bytes."""
    await stores.accounts.add_account(account("ann"))
    sent = delivery(recipient("ann"))
    await stores.deliveries.deliver(sent)
    await gatherResults(
        [stores.contents.save_content(sent.id, content(text)) for text in ("one", "two")]
    )
    found = await stores.contents.find_content(sent.id)
    assert found == content("one")


async def test_what_earlier_rules_derived_is_derived_again(stores: Stores) -> None:
    """It is not found, listed as not derived, replaced by what is saved, and never comes back."""
    await stores.accounts.add_account(account("ann"))
    sent = delivery(recipient("ann"))
    await stores.deliveries.deliver(sent)
    await stores.earlier_contents.save_content(sent.id, content("old"))
    assert await stores.earlier_contents.find_content(sent.id) == content("old")
    assert await stores.contents.find_content(sent.id) is None
    assert await stores.contents.find_content(sent.id, or_raw_below=1_000_000) == sent.raw_message
    assert await stores.contents.underived(10) == [sent.id]
    assert await _listed(stores) == [None]
    await stores.contents.save_content(sent.id, WHOLE)
    await stores.earlier_contents.save_content(sent.id, content("old"))
    assert await stores.contents.find_content(sent.id) == WHOLE
    assert await stores.earlier_contents.find_content(sent.id) == WHOLE
    assert await stores.contents.underived(10) == []
    assert await _listed(stores) == [WHOLE.extracted]


async def _listed(stores: Stores) -> list[Extracted | None]:
    page = await stores.messages.page(AccountId("ann"), MessageFilter(), at(1), 10, 0)
    return [extracted for _, extracted in page.entries]


async def test_content_or_the_mail_itself(stores: Stores) -> None:
    """One question gives what was derived, else the bytes of a mail that is small enough."""
    await stores.accounts.add_account(account("ann"))
    sent = delivery(recipient("ann"))
    size = len(sent.raw_message)
    assert await stores.contents.find_content(sent.id, or_raw_below=size + 1) is None
    await stores.deliveries.deliver(sent)
    assert await stores.contents.find_content(sent.id, or_raw_below=size + 1) == sent.raw_message
    assert await stores.contents.find_content(sent.id, or_raw_below=size) is None
    await stores.contents.save_content(sent.id, content())
    assert await stores.contents.find_content(sent.id, or_raw_below=size + 1) == content()


async def test_content_of_a_mail_that_has_gone(stores: Stores) -> None:
    """What was derived of a mail that was deleted meanwhile is dropped in silence."""
    await stores.accounts.add_account(account("ann"))
    kept = delivery(recipient("ann"))
    await stores.deliveries.deliver(kept)
    gone = DeliveryId("gone")
    await gatherResults([stores.contents.save_content(one, content()) for one in (gone, kept.id)])
    assert await stores.contents.find_content(gone) is None
    assert await stores.contents.raw_message(gone) is None
    assert await stores.contents.find_content(kept.id) is not None


async def test_underived_mail(stores: Stores) -> None:
    """What nothing was derived of yet is listed, the oldest first."""
    await stores.accounts.add_account(account("ann"))
    sent = [delivery(recipient("ann"), received_at=at(-number)) for number in range(5)]
    for one in sent:
        await stores.deliveries.deliver(one)
    await stores.contents.save_content(sent[3].id, content())
    oldest_first = [sent[number].id for number in (4, 2, 1, 0)]
    assert await stores.contents.underived(10) == oldest_first
    assert await stores.contents.underived(2) == oldest_first[:2]

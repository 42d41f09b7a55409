"""The contract of `ContentStore` on every engine."""

import pickle

from twisted.internet.defer import gatherResults

from mailcheck.core.content import AttachmentFacts, Candidate, CandidateKind, Extracted
from mailcheck.core.errors import MessageNotFound
from mailcheck.core.filters import MessageFilter
from mailcheck.core.identifiers import AccountId
from tests.contracts.conftest import Stores
from tests.engines.deliveries import at, content, delivery, recipient

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
    """Any derived content is restored equal."""
    sent = delivery(recipient("ann"))
    await stores.deliveries.deliver(sent)
    assert await stores.contents.find_content(sent.id) is None
    await stores.contents.save_content(sent.id, WHOLE)
    assert await stores.contents.find_content(sent.id) == WHOLE


async def test_content_comes_back_packed(stores: Stores) -> None:
    """Content can also be read packed, for a worker in another process."""
    sent = delivery(recipient("ann"))
    await stores.deliveries.deliver(sent)
    assert await stores.contents.packed_content(sent.id) is None
    await stores.contents.save_content(sent.id, WHOLE)
    unpack = pickle.loads(pickle.dumps(await stores.contents.packed_content(sent.id)))
    assert unpack() == WHOLE


async def test_packed_content_that_is_deleted_meanwhile(stores: Stores) -> None:
    """Unpacking gives the whole content, or an exception for a deleted message."""
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
    """Empty content counts as derived, and is not derived again."""
    sent = delivery(recipient("ann"), raw=b"")
    await stores.deliveries.deliver(sent)
    await stores.contents.save_content(sent.id, content(""))
    assert await stores.contents.find_content(sent.id) == content("")
    assert await stores.contents.underived(10) == []


async def test_the_first_content_stays(stores: Stores) -> None:
    """Content that is saved again is ignored, since both were derived from the same bytes."""
    sent = delivery(recipient("ann"))
    await stores.deliveries.deliver(sent)
    await gatherResults(
        [stores.contents.save_content(sent.id, content(text)) for text in ("one", "two")]
    )
    found = await stores.contents.find_content(sent.id)
    assert found == content("one")


async def test_what_earlier_rules_derived_is_derived_again(stores: Stores) -> None:
    """It is not found, listed as not derived, replaced by new content, and never returns."""
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
    """One query returns the derived content, or the bytes of a small mail."""
    sent = delivery(recipient("ann"))
    size = len(sent.raw_message)
    assert await stores.contents.find_content(sent.id, or_raw_below=size + 1) is None
    await stores.deliveries.deliver(sent)
    assert await stores.contents.find_content(sent.id, or_raw_below=size + 1) == sent.raw_message
    assert await stores.contents.find_content(sent.id, or_raw_below=size) is None
    await stores.contents.save_content(sent.id, content())
    assert await stores.contents.find_content(sent.id, or_raw_below=size + 1) == content()


async def test_underived_mail(stores: Stores) -> None:
    """Mails without derived content are listed, oldest first."""
    sent = [delivery(recipient("ann"), received_at=at(-number)) for number in range(5)]
    for one in sent:
        await stores.deliveries.deliver(one)
    await stores.contents.save_content(sent[3].id, content())
    oldest_first = [sent[number].id for number in (4, 2, 1, 0)]
    assert await stores.contents.underived(10) == oldest_first
    assert await stores.contents.underived(2) == oldest_first[:2]

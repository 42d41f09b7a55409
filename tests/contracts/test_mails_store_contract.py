"""The contract of `MailsStore`, on every engine: searches of clients of Mailpit and MailHog."""

from collections.abc import Sequence

from mailcheck.core.conditions import sent_to
from mailcheck.core.content import AttachmentFacts, Person, fold_text, sign_text
from mailcheck.core.filters import MessageFilter
from mailcheck.core.identifiers import AccountId, DeliveryId
from mailcheck.core.instants import DAY, Instant
from mailcheck.core.messages import Delivery
from mailcheck.core.rights import make_rights
from mailcheck.store.messages import Prefetch
from mailcheck.web.compatible.mailpit.search import read_search
from tests.contracts.conftest import Stores
from tests.engines.deliveries import NOON, at, content, delivery, mail, recipient

ANN = AccountId("ann")
NOW = Instant(NOON + DAY // 2)
SHOP = "Shop <shop@example.com>"
ALONG = Prefetch(lambda _: True, 10_000, 100)
PAPER = AttachmentFacts("1", "paper.pdf", "application/pdf", 9, None)


async def fill(stores: Stores) -> tuple[Delivery, Delivery, Delivery]:
    """Add a mail to two recipients, one with an attachment that was read, and one of bob's."""
    welcome = delivery(
        recipient("ann", "promo"),
        recipient("ann", "hidden"),
        raw=mail("Welcome", author=SHOP),
    )
    invoice = delivery(
        recipient("ann", ""),
        raw=mail("Invoice", "x" * 2_000, "Bank <bank@b.test>"),
        received_at=at(3_600),
    )
    other = delivery(
        recipient("bob", "promo"), raw=mail("Welcome", author="Shop <shop@example.com>")
    )
    people = (
        Person("to", "dev-ann+promo@mailcheck.example", "Ann"),
        Person("cc", "boss@team.example", "Größe"),
        Person("reply-to", "help@desk.example", ""),
    )
    headers = (
        ("To", "Ann <dev-ann+promo@mailcheck.example>"),
        ("Cc", "boss@team.example"),
        ("Reply-To", "help@desk.example"),
        ("Message-ID", "<one@shop.example>"),
    )
    texts = ("Your code is 482913", "See the paper", "Your code")
    for sent, text in zip((welcome, invoice, other), texts, strict=True):
        await stores.deliveries.deliver(sent)
        derived = content(
            text,
            signature=sign_text(fold_text(text)),
            header_list=() if sent is invoice else headers,
            people=() if sent is invoice else people,
            attachments=(PAPER,) if sent is invoice else (),
        )
        await stores.contents.save_content(sent.id, derived)
    await stores.messages.mark_read(ANN, invoice.message_ids)
    return welcome, invoice, other


async def find(stores: Stores, wanted: MessageFilter) -> Sequence[DeliveryId]:
    """Return the ids of the mails that a filter finds, newest first, as all methods see them."""
    wanted = MessageFilter(search=wanted.search, mails=wanted.mails, once_per_mail=True)
    page = await stores.mails.page(ANN, wanted, NOW, 100, 0, ALONG)
    found = [row.summary.delivery_id for row in page.rows]
    assert page.count == await stores.mails.count(ANN, wanted, NOW)
    assert page.count.total == len(found)
    assert list(await stores.mails.ids(ANN, wanted, NOW)) == found[::-1]
    return found


FOUND: dict[str, str] = {
    "482913": "w",
    "-482913": "i",
    '"code is"': "w",
    "paper.pdf": "i",
    "from:shop": "w",
    "!from:shop": "i",
    "to:dev-ann": "w",
    "-to:dev-ann": "i",
    "to:hidden": "",
    "bcc:hidden": "w",
    "bcc:promo": "",
    "cc:boss": "w",
    "reply-to:HELP": "w",
    "message-id:one@shop": "w",
    'addressed:"dev-ann+hidden@mailcheck.example"': "w",
    "addressed:bank@": "i",
    "addressed:groß": "w",
    "-addressed:bank@": "w",
    "subject:welcome": "w",
    "tag:promo": "w",
    "tag:HIDDEN": "w",
    "tag:prom": "",
    "is:tagged": "w",
    "-is:tagged": "i",
    "is:read": "i",
    "is:unread": "w",
    "has:attachment": "i",
    "larger:1k": "i",
    "smaller:1k": "w",
    "after:2026-11-21": "iw",
    "after:2026-11-21T12:30:00Z": "i",
    "before:2026-11-21T12:30:00Z": "w",
    "from:shop is:unread -has:attachment tag:promo": "w",
    "100%": "",
    "": "iw",
}
"""Queries of Mailpit, and the mails that they find: the welcome, the invoice, or both."""


async def test_the_grammar_of_mailpit(stores: Stores) -> None:
    """A search finds whole mails of the account, each once, on every engine."""
    welcome, invoice, _ = await fill(stores)
    names = {welcome.id: "w", invoice.id: "i"}
    found = {
        query: "".join(names[one] for one in await find(stores, read_search(query)))
        for query in FOUND
    }
    assert found == FOUND


async def test_the_recipients_of_mailhog(stores: Stores) -> None:
    """Its searches for a recipient look at the envelope and at all fields, not at the author."""
    welcome, _, _ = await fill(stores)
    for text, expected in (("hidden", [welcome.id]), ("boss", [welcome.id]), ("bank", [])):
        assert list(await find(stores, MessageFilter(search=(sent_to(text),)))) == expected


async def test_pages_and_counts(stores: Stores) -> None:
    """A page has all messages of its mails, and the number of all and of unread mails."""
    welcome, invoice, other = await fill(stores)
    wanted = MessageFilter(once_per_mail=True)
    page = await stores.mails.page(ANN, wanted, NOW, 1, 1, ALONG)
    assert [row.summary.delivery_id for row in page.rows] == [welcome.id]
    assert [(one.tag, one.is_read) for one in page.messages] == [
        ("promo", False),
        ("hidden", False),
    ]
    assert (page.count.total, page.count.unread) == (2, 1)
    assert await find(stores, MessageFilter(mails=(invoice.id, other.id))) == [invoice.id]


async def test_tags_of_a_key(stores: Stores) -> None:
    """A caller that is limited to a tag finds only its messages of a mail."""
    welcome, *_ = await fill(stores)
    allowed = make_rights(tags=("hidden",)).tags
    wanted = MessageFilter(allowed=allowed, once_per_mail=True)
    page = await stores.mails.page(ANN, wanted, NOW, 10, 0, ALONG)
    assert [row.summary.delivery_id for row in page.rows] == [welcome.id]
    assert [one.tag for one in page.messages] == ["hidden"]


async def test_content_that_is_not_derived(stores: Stores) -> None:
    """A search counts the mails that it could not search, and they are listed."""
    await fill(stores)
    new = delivery(recipient("ann", "new"), received_at=at(7_200))
    await stores.deliveries.deliver(new)
    wanted = MessageFilter(search=read_search("482913").search, once_per_mail=True)
    page = await stores.mails.page(ANN, wanted, NOW, 10, 0, ALONG)
    assert (page.count.total, page.not_searched) == (1, 1)
    found = await stores.mails.underived(ANN, wanted, NOW, 10)
    assert [one.delivery_id for one in found] == [new.id]

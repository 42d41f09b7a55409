"""Searches have the same results on every engine."""

from collections.abc import Sequence

from mailcheck.core.content import AttachmentFacts, Person, fold_text, sign_text
from mailcheck.core.filters import MessageFilter
from mailcheck.core.instants import HOUR, Instant
from mailcheck.core.messages import Delivery
from mailcheck.core.searches import parse_search
from tests.contracts.conftest import Stores
from tests.engines.deliveries import NOON, account, at, content, delivery, mail, recipient

PEOPLE = (
    Person("to", "first@team.example", "Erster Größer"),
    Person("cc", "copied@team.example", ""),
    Person("bcc", "hidden@team.example", ""),
    Person("reply-to", "answers@desk.example", "Desk"),
)

NOT_DERIVED = 4
"""Position of the message whose content is not derived."""

NOW = Instant(NOON + 10 * HOUR)

AUTHOR = "Café Größenwahn <shop@example.com>"
TEXT = "Ihr Code:\r\n\tSTRASSE 100%_! Ελλάδα Привёт 하나 so\u00adft\u200bly\u00a0put ＡＢＣ"
PAPER = AttachmentFacts("1", "Größenplan paper.pdf", "application/pdf", 9, None)


async def search(stores: Stores, text: str) -> Sequence[int]:
    """Return the positions of ann's messages that a search finds, newest first."""
    wanted = MessageFilter(search=parse_search(text, NOW))
    page = await stores.messages.page(account("ann").id, wanted, NOW, 100, 0)
    found = [summary.position for summary, _ in page.entries]
    assert page.total == len(found)
    oldest, _ = await stores.messages.oldest_matches(account("ann").id, wanted, NOW, 100)
    # A message without derived content may match.
    known = {message.summary.position for message in oldest} - {NOT_DERIVED}
    assert known == set(found) - {NOT_DERIVED}
    return found


async def receive(stores: Stores, tag: str, raw: bytes, seconds: float = 0) -> Delivery:
    """Deliver a mail to a tag of ann's."""
    sent = delivery(recipient("ann", tag), raw=raw, received_at=at(seconds))
    await stores.deliveries.deliver(sent)
    return sent


async def fill(stores: Stores) -> None:
    """Add four mails for ann: one with all kinds of content, two plain ones, and one without
    derived content. Add one for bob that all searches would find.
    """
    full = await receive(stores, "SignUp", mail("Willkommen im Shop", "x" * 3_000, AUTHOR))
    signature = sign_text(fold_text(TEXT))
    derived = content(
        TEXT, codes=["482913"], attachments=(PAPER,), signature=signature, people=PEOPLE
    )
    await stores.contents.save_content(full.id, derived)
    # One mail with a signature of its text, and one without.
    hello = "Hello https://a.example/?x=1"
    for tag, moment, signature in (("", 3_600, sign_text(fold_text(hello))), ("b", 7_200, "")):
        plain = await receive(stores, tag, mail("Order 66"), moment)
        await stores.contents.save_content(plain.id, content(hello, signature=signature))
    await receive(stores, "b", mail("Order 67"), 10_800)
    other = delivery(recipient("bob", "b"), raw=mail("Willkommen Order", author=AUTHOR))
    await stores.deliveries.deliver(other)
    await stores.contents.save_content(other.id, content(TEXT))


FOUND: dict[str, list[int]] = {
    # Words and phrases, in subject, author, recipient and text.
    "willkommen": [1],
    "SHOP im": [1],
    "shop willkommen": [1],
    '"im shop"': [1],
    '"shop im"': [],
    "order": [4, 3, 2],
    "order 66": [3, 2],
    "order hello": [3, 2],
    "nowhere": [],
    "+signup@": [1],
    "https://a.example/?x=1": [3, 2],
    # Folding: case, accents, widths, invisible characters, white space.
    "cafe": [1],
    "CAFÉ": [1],
    "GROSSENWAHN": [1],
    "straße": [1],
    '"code: strasse"': [1],
    "ελλαδα": [1],
    "ПРИВЕТ": [1],
    "하나": [1],
    "하": [1],
    '"softly put abc"': [1],
    "ａｂｃ": [1],
    # No character is a wildcard.
    "100%_!": [1],
    "100_%": [],
    "str_sse": [],
    "w%n": [],
    "!!": [],
    # Terms.
    "from:café": [1],
    'from:"cafe grossenwahn <shop@example"': [1],
    "from:willkommen": [],
    "to:SIGNUP": [1],
    "to:shop": [],
    # Addresses of the header, and names of attachments.
    "to:first@TEAM.example": [1],
    "to:copied@team.example": [1],
    "to:hidden": [1],
    "to:answers@desk": [1],
    "to:grosser": [1],
    "to:paper.pdf": [],
    "to:team.example to:signup": [1],
    "from:copied": [],
    "copied@team.example": [1],
    "hidden willkommen": [1],
    "paper.pdf": [1],
    "grossenplan answers": [1],
    "text:paper.pdf": [],
    "text:copied": [],
    "tag:signup": [1],
    "tag:sign": [],
    'tag:""': [2],
    "tag:b": [4, 3],
    "tag:b tag:signup": [],
    "subject:shop": [1],
    "subject:cafe": [],
    "text:hello": [3, 2],
    "text:order": [],
    'text:"hello https:"': [3, 2],
    "has:attachment": [1],
    "has:code": [1],
    "larger:1k": [1],
    "larger:0": [4, 3, 2, 1],
    "larger:1G": [],
    # Ten hours later; a given time belongs to the newer mails.
    "newer:8h": [4, 3],
    "newer:9h": [4, 3, 2],
    "older:9h": [1],
    "older:8h": [2, 1],
    "newer:9h older:8h": [2],
    "newer:2026-11-21": [4, 3, 2, 1],
    "newer:2026-11-22": [],
    "older:2026-11-21T13:00:00.001Z": [2, 1],
    'newer:"2026-11-21 15:00+01:00"': [4, 3],
    "is:unread": [4, 3, 2, 1],
    "is:read": [],
    # All kinds together.
    "from:shop tag:b order newer:1d code": [],
    "from:shop tag:b order newer:1d is:unread": [4, 3],
}


async def test_search_results(stores: Stores) -> None:
    """A search finds the account's own mails that match all of its terms, newest first."""
    await fill(stores)
    wrong = {}
    for text, expected in FOUND.items():
        found = await search(stores, text)
        if found != expected:
            wrong[text] = found
    assert wrong == {}


async def test_read_marks(stores: Stores) -> None:
    """A message that was opened is marked as read; that of another account is not."""
    await fill(stores)
    store = stores.messages
    rows, _ = await store.oldest_matches(account("ann").id, MessageFilter(), NOW, 100)
    found = [row.summary for row in rows]
    assert not any(message.is_read for message in found)
    for _ in range(2):
        await store.mark_read(account("ann").id, [found[1].id])
    await store.mark_read(account("bob").id, [found[2].id])
    assert await search(stores, "is:read") == [2]
    assert await search(stores, "is:unread order") == [4, 3]
    row = await store.find_message(account("ann").id, found[1].id, NOW)
    assert row is not None
    assert row.summary.is_read

"""A filter has the same result in memory, on SQLite and on PostgreSQL.

The conditions are drawn from the table, and their values from the messages, so that most filters
select some of the messages and not all.
"""

import random
from collections.abc import Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from mailcheck.checks.content.header.fields import summarize_header
from mailcheck.core import conditions
from mailcheck.core.conditions import (
    ANY_FIELD,
    CONDITIONS,
    AllOf,
    AnyOf,
    Comparison,
    InMail,
    Not,
    Term,
    Where,
    is_derived,
    is_met,
)
from mailcheck.core.content import AttachmentFacts, MessageContent, Person, fold_text, sign_text
from mailcheck.core.cursors import Position
from mailcheck.core.filters import BY_FIELD, MessageFilter
from mailcheck.core.identifiers import AccountId
from mailcheck.core.messages import Delivery, MessageSummary
from mailcheck.core.rights import TagLimit
from tests.contracts.conftest import Stores
from tests.engines.deliveries import NOON, at, content, delivery, mail, recipient

ANN = AccountId("ann")
MAILS, FILTERS = 24, 60

WORDS = ["", "a", "A", "b", "ab", "%", "_", "!", "a%b", "a_b", "ß", "SS", "İ", "ı", "K", "ﬁ", "FI"]
WORDS += ["Ǆ", "order", "shop", "\\Flagged"]
TAGS = ["", "a", "A", "b", "ß", "ss", "İ", "a%", "a_"]
KEYWORDS = ["paid", "New=20order", "a%"]
FILES = (
    AttachmentFacts("1", "Plan a_b.pdf", "application/pdf", 1, None),
    AttachmentFacts("2", "İ.png", "image/png", 1, "shown"),
)
PEOPLE = (Person("to", "first@team.example", "Erster Größer"), Person("cc", "b@x.example", ""))


class Known(Struct, frozen=True):
    """A message, what is known of its content, and the messages of its mail."""

    message: MessageSummary
    content: MessageContent | None
    mail: tuple[MessageSummary, ...]


def draw_mail(draw: random.Random) -> Delivery:
    """Return a mail with one or two recipients, of ANN or another account."""
    subject, name, sender = ("".join(draw.choices(WORDS, k=2)) for _ in range(3))
    to = {
        one.address: one
        for one in (
            recipient(draw.choice(["ann", "ann", "bob"]), draw.choice(TAGS))
            for _ in range(draw.randint(1, 2))
        )
    }
    raw = mail(subject, "text" * draw.randint(1, 9), f'"{name}" <{sender}x@example.com>')
    sent = delivery(*to.values(), raw=raw, received_at=at(draw.randint(-3, 3)))
    keywords = tuple(draw.sample(KEYWORDS, k=draw.randint(0, 2)))
    return replace(sent, envelope=replace(sent.envelope, keywords=keywords))


def draw_content(draw: random.Random) -> MessageContent:
    """Return the content of a mail: some have files, people, codes and a signature."""
    text = " ".join(draw.choices(WORDS, k=draw.choice([2, 400])))
    fields = [("SUBJECT", "a b"), ("X-a_", "A%b\n_"), ("Subject", draw.choice(WORDS))]
    return content(
        html='<img src="cid:shown">',
        codes=draw.choice([[], ["482913"]]),
        header_list=tuple(draw.sample(fields, k=draw.randint(0, 3))),
        attachments=tuple(draw.sample(FILES, k=draw.randint(0, 2))),
        people=tuple(draw.sample(PEOPLE, k=draw.randint(0, 2))),
        searched=text,
        signature=sign_text(fold_text(text)),
    )


def draw_value(draw: random.Random, term: Comparison, held: Any) -> Any:
    """Return a value to compare, near one that a message has."""
    if term is conditions.ALLOWED:
        return TagLimit((draw.choice(TAGS),), draw.choice([None, held[:1] or "a"]))
    if term is conditions.ELSEWHERE:
        return tuple(draw.choice([["mailcheck.example"], ["other.example", "x.example"]]))
    if term is conditions.ONE_OF:
        return draw.choice([(held,), (), (held, "other")])
    if term is conditions.HAS_FIELD:
        return draw.choice([ANY_FIELD, "Subject", "x-A_", "X-A%"]), draw.choice(WORDS)
    if isinstance(held, int):
        return held + draw.choice([0, 0, 1, -1])
    if term is conditions.HAS_WORD:
        held = draw.choice(held.split() or ["paid"])
    elif term in (conditions.CONTAINS, conditions.BEGINS):
        start, end = sorted(draw.randint(0, min(len(held), 9)) for _ in range(2))
        held = held[start if term is conditions.CONTAINS else 0 : end] or held[:5]
    return draw.choice([held, held, held.upper(), held.swapcase()])


def draw_term(draw: random.Random, known: Sequence[Known]) -> Term:
    """Return a term of any row, with a value of one of its places in one of the messages."""
    condition, one = draw.choice(CONDITIONS), draw.choice(known)
    if condition.fixed is not None:
        return Term(condition, condition.fixed)
    place = draw.choice(condition.places)
    held = place.read((one.content or content("a b")) if place.is_derived else one.message)
    return Term(condition, draw_value(draw, condition.comparison, held))


def draw_where(draw: random.Random, known: Sequence[Known], depth: int = 2) -> Where:
    """Return an expression; half of them are single terms."""
    kind = draw.choice(["term"] * 4 + ["not", "all", "any", "mail"]) if depth else "term"
    if kind == "term":
        return draw_term(draw, known)
    parts = tuple(draw_where(draw, known, depth - 1) for _ in range(2))
    if kind == "mail" and not is_derived(parts[0]):
        return InMail(parts[0])
    if kind == "not":
        return Not(parts[0])
    return AllOf(parts) if kind == "all" else AnyOf(parts)


def draw_filter(draw: random.Random, known: Sequence[Known]) -> MessageFilter:
    """Return a filter with one or two conditions."""
    asked: dict[str, Any] = {}
    for _ in range(draw.choice([1, 1, 2])):
        term = draw_term(draw, known)
        if term.condition in BY_FIELD:
            asked[term.condition.name] = term.value
        elif term.condition.name == "headers":
            asked["headers"] = (term.value,)
        elif term.condition.name == "has_attachment":
            asked["has_attachment"] = draw.choice([True, False])
        else:
            asked["search"] = (*asked.get("search", ()), draw_where(draw, known))
    return MessageFilter(**asked)


def is_certain(where: Where, one: Known) -> bool | None:
    """Evaluate an expression in memory; `None` if it depends on content that is not known."""
    if one.content is not None or not is_derived(where):
        return is_met(where, one.message, one.content, one.mail)
    match where:
        case Term(condition):
            parts: list[Where] = [
                Term(replace(condition, places=(place,)), where.value)
                for place in condition.places
                if not place.is_derived
            ]
            return any(is_certain(part, one) for part in parts) or None
        case Not(part):
            found = is_certain(part, one)
            return None if found is None else not found
        case AllOf(many):
            results = [is_certain(part, one) for part in many]
            return False if False in results else (None if None in results else True)
        case AnyOf(many):
            return True if True in [is_certain(part, one) for part in many] else None
        case InMail():
            raise AssertionError("it is never about content")


async def test_memory_and_stores_agree(stores: Stores) -> None:
    """Each store lists, counts and deletes exactly the messages that match in memory."""
    seed = random.randrange(1 << 32)
    draw = random.Random(seed)
    contents = {}
    for number in range(MAILS):
        sent = draw_mail(draw)
        await stores.deliveries.deliver(sent)
        if number % 3:
            contents[sent.id] = draw_content(draw)
            await stores.contents.save_content(sent.id, contents[sent.id])
        if number % 3 == 0:
            await stores.messages.mark_read(ANN, [sent.message_ids[0]])
    rows, _ = await stores.messages.oldest_matches(ANN, MessageFilter(), NOON, 1_000)
    summaries = [row.summary for row in rows]
    known = [
        Known(
            one,
            contents.get(one.delivery_id),
            tuple(other for other in summaries if other.delivery_id == one.delivery_id),
        )
        for one in summaries
    ]
    partial = 0
    for _ in range(FILTERS):
        wanted = draw_filter(draw, known)
        case = f"seed {seed}: {wanted}"
        found, possible = find_in_memory(wanted, known)
        rows, _ = await stores.messages.oldest_matches(ANN, wanted, NOON, 1_000)
        assert [row.summary for row in rows] == possible, case
        for limit, offset in ((1_000, 0), (2, draw.randint(0, 4))):
            page = await stores.messages.page(ANN, wanted, NOON, limit, offset)
            listed = [one for one, _ in page.entries]
            assert listed == found[::-1][offset : offset + limit], case
            assert page.total == len(found), case
        certain, open_ones = await stores.mailboxes.matches(ANN, wanted, NOON)
        positions = certain | {one.position for one in open_ones}
        assert sorted(positions) == [one.position for one in possible], case
        partial += 0 < len(possible) < len(known)
    assert partial > FILTERS / 2
    while known:
        wanted = draw_filter(draw, known)
        found, _ = find_in_memory(wanted, known)
        deleted = await stores.messages.delete_matches(ANN, wanted, NOON, 1_000)
        assert deleted == len(found), f"seed {seed}: {wanted}"
        known = [
            replace(one, mail=tuple(other for other in one.mail if other not in found))
            for one in known
            if one.message not in found
        ]


def find_in_memory(
    wanted: MessageFilter, known: Sequence[Known]
) -> tuple[list[MessageSummary], list[MessageSummary]]:
    """Return the messages that match for certain, and all that may match."""
    results = [
        (one.message, [is_certain(where, one) for where in (*wanted.known, *wanted.derived)])
        for one in known
    ]
    certain = [message for message, all_of in results if all(all_of)]
    kept = [
        message
        for (message, _), one in zip(results, known, strict=True)
        if all(is_met(where, message, None, one.mail) for where in wanted.known)
        and (
            one.content is None
            or all(is_met(where, message, one.content, one.mail) for where in wanted.derived)
        )
    ]
    return certain, kept


def test_reasons_of_an_inline_picture() -> None:
    """A picture that the HTML shows is no attachment, for the condition and for its reason."""
    sent = delivery(recipient("ann"))
    summary = sent.message(0, Position(1), summarize_header(sent.raw_message))
    shown = content(html='<img src="cid:shown">', attachments=(FILES[1],))
    reasons = MessageFilter(has_attachment=True).content_mismatches(summary, shown)
    assert reasons == ["it has no attachment"]
    assert MessageFilter(has_attachment=False).content_mismatches(summary, shown) == []

"""The store of derived content, and of the raw mails that it is derived from."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from mailcheck.core.conditions import FILE_NAMES, FILES, HEADER, PEOPLE, TEXT
from mailcheck.core.content import (
    DERIVATION,
    AttachmentFacts,
    Candidate,
    CandidateKind,
    MessageContent,
    Person,
)
from mailcheck.core.errors import MessageNotFound
from mailcheck.core.identifiers import DeliveryId, first_id_of
from mailcheck.core.instants import BEGINNING, END, Instant
from mailcheck.ports.engine import Engine, Transaction, Value
from mailcheck.store.transactions import Store, read, write

if TYPE_CHECKING:
    from twisted.internet.defer import Deferred

SIGNED_FROM = 1_024
"""Minimum number of characters of a text with a stored signature. Reading a shorter text is as
fast."""

_COMPACT = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))
_SURROGATE = re.compile("[\ud800-\udfff]")


def dump_content(content: MessageContent) -> dict[str, Value]:
    """Return the derived columns of ``content``."""
    document: dict[str, object] = {
        "headers": content.header_list,
        "text": content.text,
        "html": content.html,
        "attachments": [
            (fact.id, fact.filename, fact.content_type, fact.size, fact.content_id)
            for fact in content.attachments
        ],
        "candidates": [
            (
                candidate.kind.value,
                candidate.value,
                candidate.score,
                candidate.is_accepted,
                candidate.reasons,
            )
            for candidate in content.candidates
        ],
        "problems": content.problems,
        "people": [(person.field, person.address, person.name) for person in content.people],
    }
    text_key = TEXT.read(content)
    return {
        "attachment_count": FILES.read(content),
        "codes": _dump(content.codes),
        "signature": content.signature if len(text_key) >= SIGNED_FROM else "",
        "links": _dump(content.links),
        "best_link": content.best_link,
        "snippet": content.snippet,
        "address_key": PEOPLE.read(content),
        "file_key": FILE_NAMES.read(content),
        "header_key": HEADER.read(content),
        "text_key": text_key,
        "document": _dump(document),
    }


def _dump(value: object) -> str:
    """Return compact JSON; half of a surrogate pair, which UTF-8 cannot encode, is escaped."""
    text = _COMPACT.encode(value)
    return json.dumps(value) if _SURROGATE.search(text) else text


LOADED = "text_key, links, codes, best_link, snippet, document"
"""The columns that `load_content` takes."""


def load_content(
    text_key: str, links: str, codes: str, best_link: str | None, snippet: str, document: str
) -> MessageContent:
    """Return the value of a ``content`` row; the searched text is in its folded form."""
    known = json.loads(document)
    return MessageContent(
        header_list=tuple((name, value) for name, value in known["headers"]),
        text=known["text"],
        html=known["html"],
        attachments=tuple(AttachmentFacts(*facts) for facts in known["attachments"]),
        links=load_list(links),
        best_link=best_link,
        codes=load_list(codes),
        candidates=tuple(
            Candidate(CandidateKind(kind), value, score, is_accepted, tuple(reasons))
            for kind, value, score, is_accepted, reasons in known["candidates"]
        ),
        problems=tuple(known["problems"]),
        snippet=snippet,
        people=tuple(Person(*person) for person in known.get("people", ())),
        searched=text_key,
    )


def load_list(text: str) -> tuple[str, ...]:
    """Parse a JSON array of strings."""
    return tuple(json.loads(text))


_DERIVED = "FROM content WHERE delivery_id = ? AND derivation >= ?"


def read_packed_content(
    transaction: Transaction, delivery_id: DeliveryId, derivation: int = DERIVATION
) -> Callable[[], MessageContent] | None:
    """Return a callable that unpacks the derived content, or `None` if there is none."""
    row = transaction.row(
        f"SELECT {LOADED} {_DERIVED}",
        (delivery_id, derivation),
    )
    return None if row is None else partial(load_content, **row._asdict())


def unpack_content(
    delivery_id: DeliveryId, derivation: int, transaction: Transaction
) -> MessageContent:
    """Return the derived content; a query that may run in another process.

    :raises MessageNotFound: it has been deleted meanwhile.
    """
    unpack = read_packed_content(transaction, delivery_id, derivation)
    if unpack is None:
        raise MessageNotFound
    return unpack()


def read_content(
    transaction: Transaction,
    delivery_id: DeliveryId,
    or_raw_below: int,
    derivation: int = DERIVATION,
) -> MessageContent | bytes | None:
    """Return the derived content, or the raw mail if its size is below ``or_raw_below``."""
    unpack = read_packed_content(transaction, delivery_id, derivation)
    if unpack is not None:
        return unpack()
    if not or_raw_below:
        return None
    row = transaction.row(
        "SELECT raw_message FROM delivery WHERE id = ? AND size < ?", (delivery_id, or_raw_below)
    )
    return None if row is None else row.raw_message


class ContentStore(Store):
    """The content that was derived from mails.

    Content of an earlier ``derivation`` counts as not derived.
    """

    def __init__(self, engine: Engine, derivation: int = DERIVATION) -> None:
        super().__init__(engine)
        self._derivation = derivation

    @read
    def raw_message(self, transaction: Transaction, delivery_id: DeliveryId) -> bytes | None:
        """Return the bytes of a delivery."""
        row = transaction.row("SELECT raw_message FROM delivery WHERE id = ?", (delivery_id,))
        return None if row is None else row.raw_message

    @read
    def find_content(
        self, transaction: Transaction, delivery_id: DeliveryId, or_raw_below: int = 0
    ) -> MessageContent | bytes | None:
        """Return the derived content, or the raw mail if its size is below ``or_raw_below``."""
        return read_content(transaction, delivery_id, or_raw_below, self._derivation)

    def packed_content(
        self, delivery_id: DeliveryId
    ) -> Deferred[Callable[[], MessageContent] | None]:
        """Return a callable that unpacks the derived content, or `None` if there is none.

        A worker should call it, since unpacking large content takes a while. It can be pickled. If
        it reads the content itself, it raises `MessageNotFound` for a deleted mail.
        """
        key = delivery_id, self._derivation
        unpack = self._engine.remote_query(partial(unpack_content, *key))
        if unpack is None:
            return self._engine.read(lambda t: read_packed_content(t, *key))
        return self._engine.read(lambda t: unpack if t.row(f"SELECT 1 {_DERIVED}", key) else None)

    def save_content(self, delivery_id: DeliveryId, content: MessageContent) -> Deferred[None]:
        """Store derived content; do nothing if the delivery has been deleted."""
        return self._save(delivery_id, content, self._derivation)

    @write
    def _save(
        self,
        transaction: Transaction,
        delivery_id: DeliveryId,
        content: MessageContent,
        derivation: int,
    ) -> None:
        derived: dict[str, Value] = {**dump_content(content), "derivation": derivation}
        columns = ", ".join(derived)
        marks = ", ".join("?" * len(derived))
        newer = ", ".join(f"{column} = excluded.{column}" for column in derived)
        transaction.execute_many(
            f"INSERT INTO content (delivery_id, {columns}) "
            f"SELECT ?, {marks} WHERE EXISTS (SELECT 1 FROM delivery WHERE id = ?) "
            f"ON CONFLICT (delivery_id) DO UPDATE SET {newer} "
            "WHERE content.derivation < excluded.derivation",
            [(delivery_id, *derived.values(), delivery_id)],
        )

    @read
    def underived(
        self,
        transaction: Transaction,
        limit: int,
        *,
        since: Instant = BEGINNING,
        before: Instant = END,
    ) -> list[DeliveryId]:
        """Return deliveries of a period without derived content, oldest first."""
        first, last = (first_id_of(moment) for moment in (since, before))
        return [
            row.id
            for row in transaction.rows(
                "SELECT id FROM delivery WHERE id >= ? AND id < ? AND NOT EXISTS "
                "(SELECT 1 FROM content WHERE content.delivery_id = delivery.id "
                "AND content.derivation >= ?) "
                "ORDER BY id LIMIT ?",
                (first, last, self._derivation, limit),
            )
        ]

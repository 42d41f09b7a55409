"""The store of derived content, and the bytes it is derived from."""

import json
from collections.abc import Sequence

from twisted.internet.defer import Deferred

from mailcheck.core.content import AttachmentFacts, Candidate, CandidateKind, MessageContent
from mailcheck.core.folded_text import fold_text
from mailcheck.core.identifiers import DeliveryId, first_id_of
from mailcheck.core.instants import BEGINNING, END, Instant
from mailcheck.storage.engine import Engine, Transaction

CONTENT_COLUMNS = "text_key, attachment_count, links, codes, best_link, document"


def dump_content(content: MessageContent) -> tuple[str, int, str, str, str | None, str]:
    """Give the values of `CONTENT_COLUMNS`."""
    document: dict[str, object] = {
        "headers": content.header_list,
        "text": content.text,
        "html": content.html,
        "attachments": [
            (fact.id, fact.filename, fact.content_type, fact.size, fact.content_id)
            for fact in content.attachments
        ],
        "candidates": [
            (one.kind.value, one.value, one.score, one.is_accepted, one.reasons)
            for one in content.candidates
        ],
        "problems": content.problems,
    }
    return (
        fold_text(content.searched),
        len(content.attachments),
        json.dumps(content.links),
        json.dumps(content.codes),
        content.best_link,
        json.dumps(document),
    )


def load_content(
    links: str, codes: str, best_link: str | None, document_text: str
) -> MessageContent:
    """Make the value of a ``content`` row again."""
    document = json.loads(document_text)
    return MessageContent(
        header_list=tuple((name, value) for name, value in document["headers"]),
        text=document["text"],
        html=document["html"],
        attachments=tuple(AttachmentFacts(*facts) for facts in document["attachments"]),
        links=load_list(links),
        best_link=best_link,
        codes=load_list(codes),
        candidates=tuple(
            Candidate(CandidateKind(kind), value, score, is_accepted, tuple(reasons))
            for kind, value, score, is_accepted, reasons in document["candidates"]
        ),
        problems=tuple(document["problems"]),
    )


def load_list(text: str) -> tuple[str, ...]:
    """Read a JSON array of strings."""
    return tuple(json.loads(text))


class SqlContentStore:
    """Fills the port `ContentStore` on any engine."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def raw_message(self, delivery_id: DeliveryId) -> Deferred[bytes | None]:
        """Read the bytes of a delivery."""

        def query(transaction: Transaction) -> bytes | None:
            row = transaction.row("SELECT raw_message FROM delivery WHERE id = ?", (delivery_id,))
            return None if row is None else bytes(row[0])

        return self._engine.read(query)

    def find_content(
        self, delivery_id: DeliveryId, or_bytes: int = 0
    ) -> Deferred[MessageContent | bytes | None]:
        """Read what was derived earlier; else the mail itself, if it has less than ``or_bytes``."""

        def query(transaction: Transaction) -> MessageContent | bytes | None:
            row = transaction.row(
                "SELECT links, codes, best_link, document FROM content WHERE delivery_id = ?",
                (delivery_id,),
            )
            if row is not None:
                return load_content(*row)
            if not or_bytes:
                return None
            row = transaction.row(
                "SELECT raw_message FROM delivery WHERE id = ? AND size < ?",
                (delivery_id, or_bytes),
            )
            return None if row is None else bytes(row[0])

        return self._engine.read(query)

    def save_content(self, delivery_id: DeliveryId, content: MessageContent) -> Deferred[None]:
        """Keep what was derived; nothing happens when the delivery has gone."""
        return self._engine.write(_save_contents, (delivery_id, content))

    def underived(
        self, limit: int, *, since: Instant = BEGINNING, before: Instant = END
    ) -> Deferred[list[DeliveryId]]:
        """List deliveries of these moments nothing was derived of yet, oldest first."""
        first, last = (first_id_of(moment) for moment in (since, before))
        return self._engine.read(
            lambda t: [
                DeliveryId(row[0])
                for row in t.rows(
                    "SELECT id FROM delivery WHERE id >= ? AND id < ? AND NOT EXISTS "
                    "(SELECT 1 FROM content WHERE content.delivery_id = delivery.id) "
                    "ORDER BY id LIMIT ?",
                    (first, last, limit),
                )
            ]
        )


def _save_contents(
    transaction: Transaction, items: Sequence[tuple[DeliveryId, MessageContent]]
) -> list[None]:
    transaction.execute_many(
        f"INSERT INTO content (delivery_id, {CONTENT_COLUMNS}) "
        "SELECT ?, ?, ?, ?, ?, ?, ? WHERE EXISTS (SELECT 1 FROM delivery WHERE id = ?) "
        "ON CONFLICT (delivery_id) DO NOTHING",
        [(delivery_id, *dump_content(content), delivery_id) for delivery_id, content in items],
    )
    return [None] * len(items)

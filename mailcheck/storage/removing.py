"""Taking messages out: counters, tags and bytes that nobody shares any more go with them."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from mailcheck.storage.deliverability_rows import DROP_UNSHARED_DELIVERY
from mailcheck.storage.engine import Transaction

REMOVABLE_COLUMNS = (
    "message.id, message.account_id, message.tag_key, message.size, message.delivery_id"
)

_SHRINK_INBOX = """
    UPDATE inbox SET message_count = message_count - ?, byte_count = byte_count - ?
    WHERE account_id = ?
"""

_SHRINK_TAG = """
    UPDATE inbox_tag SET message_count = message_count - ? WHERE account_id = ? AND tag_key = ?
"""

_DROP_EMPTY_TAG = """
    DELETE FROM inbox_tag WHERE account_id = ? AND tag_key = ? AND message_count <= 0
"""

# What is left of a tag is as its newest message wrote it.
_REFRESH_TAG = """
    UPDATE inbox_tag SET (tag, latest_at) = (
        SELECT message.tag, message.received_at FROM message
        WHERE message.account_id = inbox_tag.account_id AND message.tag_key = inbox_tag.tag_key
        ORDER BY message.position DESC LIMIT 1
    ) WHERE account_id = ? AND tag_key = ?
"""


@dataclass(frozen=True, slots=True)
class Removable:
    """What must be known of a message to remove it: a row of `REMOVABLE_COLUMNS`."""

    message_id: str
    account_id: str
    tag_key: str
    size: int
    delivery_id: str


def remove_messages(transaction: Transaction, messages: Sequence[Removable]) -> None:
    """Remove the messages for good, and the deliveries that no other message and no test needs."""
    transaction.execute_many(
        "DELETE FROM message WHERE id = ?", [(m.message_id,) for m in messages]
    )
    counts = Counter(message.account_id for message in messages)
    sizes: Counter[str] = Counter()
    for message in messages:
        sizes[message.account_id] += message.size
    transaction.execute_many(
        _SHRINK_INBOX, [(count, sizes[account], account) for account, count in counts.items()]
    )
    tags = Counter((message.account_id, message.tag_key) for message in messages)
    transaction.execute_many(
        _SHRINK_TAG, [(count, account, key) for (account, key), count in tags.items()]
    )
    transaction.execute_many(_DROP_EMPTY_TAG, list(tags))
    transaction.execute_many(_REFRESH_TAG, list(tags))
    transaction.execute_many(
        DROP_UNSHARED_DELIVERY, [(delivery,) for delivery in {m.delivery_id for m in messages}]
    )

"""A mail that somebody here waits for: derived while it is written, offered once it is on disk."""

from collections.abc import Callable, Iterator, Sequence

from mailcheck.checks.content.header import summarize_header
from mailcheck.core.cursors import Position
from mailcheck.core.identifiers import DeliveryId
from mailcheck.core.messages import Delivery, MessageSummary
from mailcheck.operations.inbox.contents import Contents
from mailcheck.operations.inbox.feeds import InboxFeeds
from mailcheck.operations.ports import MessageRow


class HandOver:
    """Stands between those who take mail in and those who wait for it.

    :param when_stored: told of each delivery that is on disk, to be derived when there is time.
    """

    def __init__(
        self, feeds: InboxFeeds, contents: Contents, when_stored: Callable[[DeliveryId], None]
    ) -> None:
        self._feeds = feeds
        self._contents = contents
        self._when_stored = when_stored

    def expect(self, delivery: Delivery) -> None:
        """Take note of a mail that is being written.

        Where that fails its content is lost with its id, which nobody has seen.
        """
        if list(self._expected(delivery)):
            self._contents.prepare(delivery)

    def stored(self, delivery: Delivery, positions: Sequence[Position]) -> None:
        """Offer a mail that is on disk, at these positions, to those who wait for it.

        Who does not get it here finds it by the hint that follows.
        """
        self._when_stored(delivery.id)
        # A repeated mail has no position where it was before: which one is left to the store.
        if len(positions) != len(delivery.envelope.recipients):
            return
        for number in self._expected(delivery):
            self._feeds.take(_message_of(delivery, number, positions[number]))

    def _expected(self, delivery: Delivery) -> Iterator[int]:
        for number, one in enumerate(delivery.envelope.recipients):
            if one.test_id is None and self._feeds.expects(one.account_id, one.tag):
                yield number


def _message_of(delivery: Delivery, number: int, position: Position) -> MessageRow:
    """Give the message of one recipient, as the store gives it."""
    recipient = delivery.envelope.recipients[number]
    summary = MessageSummary(
        id=delivery.message_ids[number],
        account_id=recipient.account_id,
        delivery_id=delivery.id,
        position=position,
        recipient=recipient.address,
        tag=recipient.tag,
        header=summarize_header(delivery.raw_message),
        size=len(delivery.raw_message),
        received_at=delivery.received_at,
        expires_at=delivery.expires_at,
        share_token=delivery.share_tokens[number],
    )
    # Which account has sent it is no fact of the connection that is kept.
    session = delivery.session._replace(account_id=None)
    return MessageRow(summary, delivery.envelope.envelope_sender, session)

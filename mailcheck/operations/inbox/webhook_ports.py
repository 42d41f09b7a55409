"""What webhooks need of the outside."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from msgspec import Struct

from mailcheck.core.cursors import Position
from mailcheck.core.identifiers import AccountId, WebhookId
from mailcheck.core.instants import Instant
from mailcheck.core.webhooks import Attempt, Webhook, WebhookDelivery

if TYPE_CHECKING:
    from twisted.internet.defer import Deferred


class Post(Struct, frozen=True):
    """One event to be told, signed by each of the secrets (Standard Webhooks); or a mail."""

    url: str
    secrets: tuple[str, ...]
    event_id: str
    sent_at: Instant
    body: bytes


class WebhookLine(Protocol):
    """The way to one receiver; its connection is kept from one event to the next."""

    def post(self, post: Post) -> Deferred[Attempt]:
        """Send an event; whatever goes wrong is the result. Cancelling hangs up."""

    def hang_up(self) -> None:
        """Close what is open."""


class WebhookDialer(Protocol):
    """Opens lines, each to where its account may send."""

    def require_foreign(self, url: str) -> None:
        """See that a URL does not lead to this service itself, as far as that shows.

        :raises InvalidParameter: it does.
        """

    def line(self, account_name: str) -> WebhookLine:
        """Give a line of its own for a webhook of an account; nothing is sent yet."""


class WebhookStore(Protocol):
    """Keeps webhooks, and how far each was told."""

    def add(self, webhook: Webhook, *, is_from_now: bool) -> Deferred[Webhook]:
        """Add one; gives it as it is kept. ``is_from_now``: its position is the inbox's newest.

        :raises TooManyWebhooks: the account has as many as it may.
        :raises InvalidParameter: the inbox has not reached its position.
        """

    def of_account(self, account_id: AccountId) -> Deferred[list[Webhook]]:
        """List the webhooks of an account, oldest first."""

    def find(self, account_id: AccountId, webhook_id: WebhookId) -> Deferred[Webhook | None]:
        """Find a webhook of an account."""

    def deliveries(self, webhook_id: WebhookId) -> Deferred[list[WebhookDelivery]]:
        """List the last tries, newest first."""

    def delete(self, account_id: AccountId, webhook_id: WebhookId) -> Deferred[bool]:
        """Delete a webhook; false where there is none."""

    def replace_secret(
        self, account_id: AccountId, webhook_id: WebhookId, secret: str, until: Instant
    ) -> Deferred[Webhook | None]:
        """Let a new secret sign; the one before it does too, until that moment."""

    def restart(
        self, account_id: AccountId, webhook_id: WebhookId, after: Position | None
    ) -> Deferred[Webhook | None]:
        """Let a webhook go on as if it had never failed, from behind a position if one is given.

        :raises WebhookEnded: its receiver has ended it.
        :raises InvalidParameter: the inbox has not reached that position.
        """

    def is_wanted(self, holder: str, now: Instant) -> Deferred[bool]:
        """Tell whether there is a webhook that may be told, and nobody else holds the lease."""

    def claim(self, holder: str, now: Instant, milliseconds: int) -> Deferred[bool]:
        """Take the lease, or hold it for so much longer; false while another daemon has it."""

    def release(self, holder: str) -> Deferred[None]:
        """Let go of the lease."""

    def open_ones(self) -> Deferred[list[Webhook]]:
        """List all webhooks that have not ended."""

    def record(
        self, holder: str, webhook: Webhook, deliveries: Sequence[WebhookDelivery]
    ) -> Deferred[bool]:
        """Keep what came of some tries, in their order, and how the webhook stands after them.

        False, and nothing is changed, where its owner has changed or deleted it meanwhile, or
        the holder has lost the lease.
        """

    def note(self, webhook_id: WebhookId, delivery: WebhookDelivery) -> Deferred[None]:
        """Keep what came of a try that changes nothing; nothing happens where it was deleted."""

"""Pages to list, create, test, resume and delete webhooks. A secret is shown once."""

from collections.abc import Sequence

from msgspec import Struct

from mailcheck.api.inbox.webhooks import describe_filter
from mailcheck.api.requests.fields import TAG
from mailcheck.core.cursors import START
from mailcheck.core.errors import ExpectedFailure, InvalidParameter
from mailcheck.core.filters import MessageFilter
from mailcheck.core.identifiers import MessageId
from mailcheck.core.webhooks import EVENT_PROVIDERS, LONGEST_URL, MESSAGE_EVENT, Webhook
from mailcheck.operations.accounts.authenticate import CheckBudget
from mailcheck.operations.inbox.messages import ReadInbox
from mailcheck.operations.inbox.webhooks.manage_webhooks import ManageWebhooks
from mailcheck.web.dashboard.rendering import Renderer, redirect
from mailcheck.web.dashboard.visits import CONFIRMED_OWNERS, EDITORS, OWNERS, Page, Visit, with_form
from mailcheck.web.site import costs
from mailcheck.web.site.replies import Reply

LIST_PATH = "/webhooks"
"""Path of the page that lists the webhooks."""

FIELDS = ("url", "tag", "provider")
"""Fields of the form for a new webhook."""


class WebhookPages(Struct, frozen=True):
    """The page of an account's webhooks with their deliveries, and the actions on them."""

    _webhooks: ManageWebhooks
    _inbox: ReadInbox
    _budget: CheckBudget
    _renderer: Renderer

    def pages(self) -> list[Page]:
        """List the pages."""
        one = "/webhooks/<webhook_id>"
        return [
            Page("GET", "/webhooks", self.show, costs.FREE, EDITORS),
            *with_form(
                self.show, Page("POST", "/webhooks", self.create, costs.SMALL, CONFIRMED_OWNERS)
            ),
            Page("POST", f"{one}/rotate", self.rotate, costs.AUDITED, CONFIRMED_OWNERS),
            Page("POST", f"{one}/test", self.test, costs.SMALL, OWNERS),
            Page("POST", f"{one}/resume", self.resume, costs.FREE, OWNERS),
            Page("POST", f"{one}/replay", self.replay, costs.FREE, OWNERS),
            Page("POST", f"{one}/delete", self.delete, costs.AUDITED, OWNERS),
        ]

    async def show(self, visit: Visit, failure: ExpectedFailure | None = None) -> Reply:
        """GET /webhooks. A failure of the form is shown on the same page."""
        account = visit.account
        webhooks = await self._webhooks.all_shown(account.id)
        ids = {
            delivery.event_id: MessageId(delivery.event_id.removeprefix(MESSAGE_EVENT))
            for shown in webhooks
            for delivery in shown.deliveries
            if delivery.event_id.startswith(MESSAGE_EVENT)
        }
        subjects = await self._inbox.subjects(account.id, list(set(ids.values())))
        return self._renderer.page(
            visit,
            "webhooks.html",
            error=failure,
            webhooks=webhooks,
            message_ids={
                event: message_id for event, message_id in ids.items() if message_id in subjects
            },
            subjects=subjects,
            checks=await self._budget.peek(account.id),
            filters={
                webhook.webhook.id: describe_filter(webhook.webhook.wanted) for webhook in webhooks
            },
            webhook_form=visit.entered(FIELDS),
            longest_url=LONGEST_URL,
            event_providers=EVENT_PROVIDERS,
        )

    async def create(self, visit: Visit) -> Reply:
        """POST /webhooks: url, tag, provider. The response shows the secret."""
        url, tag, provider = visit.entered(FIELDS).values()
        wanted = MessageFilter(tag=TAG.parse("tag", tag) if tag else None)
        if provider and provider not in EVENT_PROVIDERS:
            raise InvalidParameter("provider", f"choose one of {', '.join(EVENT_PROVIDERS)}")
        made = await self._webhooks.create(visit.account.id, url, wanted, visit.actor, provider)
        return self._shown_once(visit, made)

    async def rotate(self, visit: Visit) -> Reply:
        """POST /webhooks/<webhook_id>/rotate. The response shows the new secret."""
        webhook_id = visit.path["webhook_id"]
        rotated = await self._webhooks.rotate(visit.account.id, webhook_id, visit.actor)
        return self._shown_once(visit, rotated)

    async def test(self, visit: Visit) -> Reply:
        """POST /webhooks/<webhook_id>/test. It counts as a check."""
        await self._budget.take(visit.account.id)
        delivery = await self._webhooks.test(visit.account.id, visit.path["webhook_id"])
        outcome = "taken" if delivery.attempt.is_taken else "failed"
        return redirect(visit, LIST_PATH, done=f"webhook-test-{outcome}")

    async def resume(self, visit: Visit) -> Reply:
        """POST /webhooks/<webhook_id>/resume."""
        await self._webhooks.restart(visit.account.id, visit.path["webhook_id"])
        return redirect(visit, LIST_PATH, done="webhook-resumed")

    async def replay(self, visit: Visit) -> Reply:
        """POST /webhooks/<webhook_id>/replay: send all messages of the inbox again."""
        await self._webhooks.restart(visit.account.id, visit.path["webhook_id"], START)
        return redirect(visit, LIST_PATH, done="webhook-replayed")

    async def delete(self, visit: Visit) -> Reply:
        """POST /webhooks/<webhook_id>/delete."""
        await self._webhooks.delete(visit.account.id, visit.path["webhook_id"], visit.actor)
        return redirect(visit, LIST_PATH, done="webhook-deleted")

    def _shown_once(self, visit: Visit, webhook: Webhook) -> Reply:
        return self._renderer.page(
            visit, "webhook_secret.html", webhooks=[webhook], place=LIST_PATH
        )


def show_secrets(
    renderer: Renderer, visit: Visit, receivers: Sequence[Webhook], place: str, done: str
) -> Reply:
    """Show the secrets of new receivers of alerts, or lead to a page if none has one."""
    signing = [receiver for receiver in receivers if receiver.is_signed]
    if not signing:
        return redirect(visit, place, done=done)
    return renderer.page(visit, "webhook_secret.html", webhooks=signing, place=place)

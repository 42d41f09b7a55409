"""Those who are told of alerts of a watch beside its owner's inbox: webhooks, and people by mail.

Each is a webhook of the account that asks for the mails which name it; what is told, in which order
and how often it is tried is the same as for any other. It is there as long as a watch names it.
"""

from collections.abc import Sequence

from mailcheck.core.cursors import START
from mailcheck.core.errors import InvalidParameter
from mailcheck.core.filters import MessageFilter
from mailcheck.core.identifiers import AccountId, WebhookId, new_short_id, new_webhook_secret
from mailcheck.core.watches import ALERT_FIELD, ALERT_TAG, MOST_RECEIVERS, receiver_key
from mailcheck.core.webhooks import ALERT_TO, MAILTO, Webhook, address_of, parse_alert_receiver
from mailcheck.ports.clocks import TimeAndChance
from mailcheck.ports.cluster import WakeUps
from mailcheck.ports.probes import ReceiverRules
from mailcheck.store.accounts.webhook_store import WebhookStore


class AlertReceivers:
    """Makes them ready for the store of watches; whoever delivers is told of ``changes``."""

    def __init__(
        self,
        store: WebhookStore,
        rules: ReceiverRules,
        changes: WakeUps[str],
        time_and_chance: TimeAndChance,
    ) -> None:
        self._store = store
        self._rules = rules
        self._changes = changes
        self._now = time_and_chance.now
        self._random_bytes = time_and_chance.random_bytes

    async def read(self, account_id: AccountId, named: Sequence[str]) -> tuple[Webhook, ...]:
        """Give those that a watch names, as they are added where they are not there yet.

        :raises InvalidParameter: one can't be told, or not by this account; or they are too many.
        """
        urls = tuple(dict.fromkeys(map(parse_alert_receiver, named)))
        if len(urls) > MOST_RECEIVERS:
            raise InvalidParameter(ALERT_TO, f"{ALERT_TO} are at most {MOST_RECEIVERS} addresses")
        account_name = await self._store.account_name(account_id) if urls else ""
        for url in urls:
            if url.startswith(MAILTO):
                self._rules.require_mailable(address_of(url), account_name)
            else:
                self._rules.require_foreign(url)
        return tuple(self._new(account_id, url) for url in urls)

    async def made_of(
        self, account_id: AccountId, receivers: Sequence[Webhook]
    ) -> tuple[Webhook, ...]:
        """Give those that are new: the account did not have them before."""
        self.note_change()
        found = [await self._store.find(account_id, one.id) for one in receivers]
        return tuple(one for one in found if one is not None)

    async def of(self, account_id: AccountId, urls: Sequence[str]) -> list[Webhook]:
        """Give how those stand which a watch names, in its order: not those that were deleted."""
        known = await self._store.of_account(account_id) if urls else []
        told = {one.url: one for one in known if one.is_of_watches}
        return [told[url] for url in urls if url in told]

    def note_change(self) -> None:
        """Say that some were made, or have gone."""
        self._changes.publish("some")

    def _new(self, account_id: AccountId, url: str) -> Webhook:
        return Webhook(
            id=WebhookId(new_short_id(self._random_bytes)),
            account_id=account_id,
            account_name="",
            url=url,
            wanted=MessageFilter(tag=ALERT_TAG, headers=((ALERT_FIELD, receiver_key(url)),)),
            created_at=self._now(),
            position=START,
            secret=new_webhook_secret(self._random_bytes),
            is_of_watches=True,
        )

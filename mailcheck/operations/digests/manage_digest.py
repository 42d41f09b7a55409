"""The settings of an account's digest."""

from collections.abc import Awaitable, Callable

from msgspec import Struct
from msgspec.structs import replace

from mailcheck.core.domains.digests import MOST_DIGEST_RECEIVERS, DigestSettings, next_digest
from mailcheck.core.errors import InvalidParameter
from mailcheck.core.identifiers import AccountId
from mailcheck.core.instants import Instant
from mailcheck.core.webhooks import MAILTO, parse_alert_receiver
from mailcheck.ports.clocks import Now
from mailcheck.ports.probes import ReceiverRules
from mailcheck.store.domains.digest_store import DigestStore


class ShownDigest(Struct, frozen=True):
    """The settings of a digest; ``next_at`` is `None` if none is sent."""

    settings: DigestSettings
    next_at: Instant | None


class ManageDigest(Struct, frozen=True, eq=False):
    """The operations of an owner on the digest.

    :param account_name: returns the name of an account.
    """

    store: DigestStore
    rules: ReceiverRules
    account_name: Callable[[AccountId], Awaitable[str]]
    now: Now

    async def show(self, account_id: AccountId) -> ShownDigest:
        """Return the settings."""
        return self._shown(await self.store.find(account_id))

    async def change(self, account_id: AccountId, settings: DigestSettings) -> ShownDigest:
        """Change the settings; without ``every``, no digest is sent any more.

        :raises InvalidParameter: an address is invalid or not allowed, or there are too many.
        """
        if settings.every is None:
            await self.store.delete(account_id)
            return self._shown(DigestSettings())
        addresses = tuple(dict.fromkeys(map(_parse_address, settings.to)))
        if len(addresses) > MOST_DIGEST_RECEIVERS:
            problem = f"to has {len(addresses)} addresses; {MOST_DIGEST_RECEIVERS} are allowed"
            raise InvalidParameter("to", problem)
        name = await self.account_name(account_id) if addresses else ""
        for address in addresses:
            self.rules.require_mailable(address, name)
        chosen, now = replace(settings, to=addresses), self.now()
        await self.store.save(account_id, chosen, now, next_digest(settings.every, now))
        return self._shown(chosen)

    def _shown(self, settings: DigestSettings) -> ShownDigest:
        every = settings.every
        return ShownDigest(settings, None if every is None else next_digest(every, self.now()))


def _parse_address(text: str) -> str:
    url = parse_alert_receiver(text) if "@" in text and "://" not in text else ""
    if not url.startswith(MAILTO):
        raise InvalidParameter("to", f"to: {text[:100]!r} is not a mail address like a@example.com")
    return url.removeprefix(MAILTO)

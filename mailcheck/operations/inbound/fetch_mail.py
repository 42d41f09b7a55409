"""Mails that routes have brought to applications, as the providers' APIs give them out."""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple, TypeVar

from msgspec import Struct

from mailcheck.core.errors import InboundMailNotFound, InboundRouteNotFound
from mailcheck.core.identifiers import AccountId
from mailcheck.core.inbound import InboundMail, InboundRoute, InboundRouteId
from mailcheck.operations.inbox.contents import MailBytes
from mailcheck.store.inbound_store import InboundStore, RoutedMailFacts

Has = Callable[[InboundRoute], bool]
"""Whether the mails of a route are wanted."""


class RoutedMail(NamedTuple):
    """A mail, and one of the routes that carry it."""

    mail: InboundMail
    route: InboundRoute


Result = TypeVar("Result")


class FetchInbound(Struct, frozen=True, eq=False):
    """Shows mails by the routes that carry them. Few large ones are in memory at the same time."""

    store: InboundStore
    mail_bytes: MailBytes

    async def show(
        self,
        account_id: AccountId,
        has: Has,
        ids: tuple[str, str],
        show: Callable[[RoutedMail], Result],
    ) -> Result:
        """Show the first mail of some routes whose id is between two ids, or equal to them.

        :param show: a function of a module, which runs in the process that parses mails.
        :raises InboundMailNotFound: there is none.
        :raises Overloaded: too many large mails are being read.
        """
        routes = await self._routes(account_id, has)
        found = await self.store.find_routed(account_id, tuple(routes), ids)
        if found is None:
            raise _missing()
        return await self._show(found, routes[found.route_id], show)

    async def show_of_route(
        self, route: InboundRoute, mail_id: str, show: Callable[[RoutedMail], Result]
    ) -> Result:
        """Show a mail of a route to a caller that has proved a secret of it; raises as `show`."""
        found = await self.store.find_routed(route.account_id, (route.id,), (mail_id, mail_id))
        if found is None:
            raise _missing()
        return await self._show(found, route, show)

    async def _show(
        self, found: RoutedMailFacts, route: InboundRoute, show: Callable[[RoutedMail], Result]
    ) -> Result:
        async with self.mail_bytes.turn(found):
            stored = await self.store.find_mail(found.account_id, found.mail_id)
            if stored is None:
                raise _missing()
            call = partial(show, RoutedMail(stored.mail, route))
            return await self.mail_bytes.work(call, found.size, found.account_id)

    async def ids(
        self, account_id: AccountId, has: Has, limit: int, after: str = "", before: str = ""
    ) -> tuple[list[str], bool]:
        """Return the ids of mails of some routes, newest first, and whether there are more.

        :param after: the id of the mail after which the page begins; empty for the newest.
        :param before: the id of the mail before which the page ends.
        """
        routes = await self._routes(account_id, has)
        found = await self.store.routed_ids(
            account_id, tuple(routes), limit + 1, after=after, before=before
        )
        has_more = len(found) > limit
        if before and not after:
            # The page ends with the mails next to the given one.
            return found[-limit:], has_more
        return found[:limit], has_more

    async def route(self, route_id: str) -> InboundRoute:
        """Return a route of any account, for a caller that proves a secret of it.

        :raises InboundRouteNotFound: there is none.
        """
        found = await self.store.find_any_route(InboundRouteId(route_id))
        if found is None:
            raise InboundRouteNotFound("there is no such route")
        return found

    async def _routes(self, account_id: AccountId, has: Has) -> dict[InboundRouteId, InboundRoute]:
        return {route.id: route for route in await self.store.routes(account_id) if has(route)}


def _missing() -> InboundMailNotFound:
    return InboundMailNotFound("there is no such mail: the id is wrong or it is gone")

"""Mails that routes have brought to applications, as the providers' APIs give them out."""

from collections.abc import Callable
from typing import NamedTuple

from mailcheck.core.errors import InboundMailNotFound, InboundRouteNotFound
from mailcheck.core.identifiers import AccountId
from mailcheck.core.inbound import InboundMail, InboundRoute, InboundRouteId
from mailcheck.store.inbound_store import InboundStore

Has = Callable[[InboundRoute], bool]
"""Whether the mails of a route are wanted."""


class RoutedMail(NamedTuple):
    """A mail, and one of the routes that carry it."""

    mail: InboundMail
    route: InboundRoute


class FetchInbound:
    """Finds mails by the routes that carry them."""

    def __init__(self, store: InboundStore) -> None:
        self._store = store

    async def mail(self, account_id: AccountId, has: Has, ids: tuple[str, str]) -> RoutedMail:
        """Return the first mail of some routes whose id is between two ids, or equal to them.

        :raises InboundMailNotFound: there is none.
        """
        routes = await self._routes(account_id, has)
        found = await self._store.find_routed(account_id, tuple(routes), ids)
        if found is None:
            raise InboundMailNotFound("there is no such mail: the id is wrong or it is gone")
        route_id, stored = found
        return RoutedMail(stored.mail, routes[route_id])

    async def ids(
        self, account_id: AccountId, has: Has, limit: int, after: str = "", before: str = ""
    ) -> tuple[list[str], bool]:
        """Return the ids of mails of some routes, newest first, and whether there are more.

        :param after: the id of the mail after which the page begins; empty for the newest.
        :param before: the id of the mail before which the page ends.
        """
        routes = await self._routes(account_id, has)
        found = await self._store.routed_ids(
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
        found = await self._store.find_any_route(InboundRouteId(route_id))
        if found is None:
            raise InboundRouteNotFound("there is no such route")
        return found

    async def mail_of_route(self, route: InboundRoute, mail_id: str) -> InboundMail:
        """Return a mail of a route, for a caller that has proved a secret of it.

        :raises InboundMailNotFound: there is none.
        """
        found = await self._store.find_routed(route.account_id, (route.id,), (mail_id, mail_id))
        if found is None:
            raise InboundMailNotFound("there is no such mail: the id is wrong or it is gone")
        return found[1].mail

    async def _routes(self, account_id: AccountId, has: Has) -> dict[InboundRouteId, InboundRoute]:
        return {route.id: route for route in await self._store.routes(account_id) if has(route)}

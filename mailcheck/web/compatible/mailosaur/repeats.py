"""Searches that a client repeats until mail arrives: together they count as one request.

Mailosaur's clients have no request that waits. They repeat a search, which is held here until mail
arrives. A search that was held in vain may be repeated once without being counted, so a wait of any
length counts once. At most as many searches are repeated as the key has wait slots, and each of
them is held for its time.
"""

from functools import partial
from hashlib import sha256
from typing import Any

from twisted.web.server import Request

from mailcheck.core.accounts import Caller
from mailcheck.core.instants import SECOND
from mailcheck.core.memory.keys import Key, key_of
from mailcheck.ports.cluster import Memory
from mailcheck.web.site.access_control import AccessControl, Denied
from mailcheck.web.site.application import Admit, ReadKey, Route, admit_with_key
from mailcheck.web.site.replies import MoreHeaders

LIFETIME = 10 * SECOND
"""Milliseconds in which a search must be repeated, longer than the delays of all clients."""

LONGEST = 120 * SECOND
"""Milliseconds after which a search that is being repeated cannot be answered any more."""

_MAY_REPEAT, _USED = "1", ""


class Repeats:
    """Remembers the searches that may be repeated."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory
        self._taking: set[Key] = set()

    async def take(self, caller: Caller, request: Request) -> bool:
        """Return whether a search repeats one that was held in vain, and use this up."""
        name = _name_of(caller, request)
        if name in self._taking:
            return False  # of the same searches at the same time, one is the repeated one
        self._taking.add(name)
        try:
            if await self._memory.recall(name) != _MAY_REPEAT:
                return False
            if not await self._memory.acquire(name, LONGEST):
                return False
            await self._memory.keep(name, _USED, LIFETIME)
            return True
        finally:
            self._taking.discard(name)

    async def allow(self, caller: Caller, request: Request) -> None:
        """Let a search that was held in vain be repeated once."""
        name = _name_of(caller, request)
        await self._memory.keep(name, _MAY_REPEAT, LIFETIME)
        await self._memory.release(name)


def _name_of(caller: Caller, request: Request) -> Key:
    body = b""
    if request.content is not None:
        request.content.seek(0)
        body = request.content.read()
        request.content.seek(0)
    digest = sha256(request.uri + b"\n" + body).hexdigest()
    return key_of("mailosaur wait", caller.key_id, digest)


def admit_repeats(
    access: AccessControl, read_key: ReadKey, repeats: Repeats, search: object
) -> Admit:
    """Return the admission of a door whose searches are not counted while they are repeated.

    :param search: the handler of the route that is repeated.
    """
    admit_counted = admit_with_key(access, read_key)

    async def admit(request: Request, route: Route[Any], headers: MoreHeaders) -> Caller:
        if route.handle is not search:
            return await admit_counted(request, route, headers)
        caller = await access.authenticate(request, partial(read_key, request))
        if isinstance(caller, Denied):
            raise caller.failure
        if await repeats.take(caller, request):
            return caller
        found = await access.count(caller)
        if isinstance(found, Denied):
            raise found.failure
        return found.caller

    return admit

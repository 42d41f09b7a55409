"""Mailosaur's servers: beginnings of tags, with names that are remembered for a time."""

import re
from collections import Counter

from msgspec import Struct
from msgspec.structs import replace

from mailcheck.core.accounts import Caller
from mailcheck.core.addresses import fold_tag
from mailcheck.core.errors import InvalidParameter, MessageNotFound, NotPermitted
from mailcheck.core.filters import MessageFilter
from mailcheck.core.identifiers import RandomBytes, new_short_id
from mailcheck.core.instants import DAY
from mailcheck.core.memory.keys import Key, key_of
from mailcheck.operations.inbox.messages import ReadInbox
from mailcheck.ports.cluster import Memory
from mailcheck.web.compatible.mailosaur.shapes import ID_LENGTH, server_of
from mailcheck.web.compatible.reading import Messages

NAME_LIFETIME = 30 * DAY
"""Milliseconds for which the name of a server is remembered."""

MAX_NAME = 200
"""Maximum number of characters of a name."""

_SERVER_ID = re.compile("[A-Za-z0-9]{8}")
_OF_A_SERVER = re.compile("[A-Za-z0-9]{8}(?:[^A-Za-z0-9]|$)")


class Server(Struct, frozen=True):
    """A server with the number of its messages."""

    id: str
    name: str
    messages: int
    users: tuple[str, ...] = ()


class KeepServers(Struct, frozen=True):
    """Finds, names and deletes the servers of a caller.

    A server exists if it was created, or if it has mail.
    """

    _read: ReadInbox
    _messages: Messages
    _memory: Memory
    _random_bytes: RandomBytes

    async def of_caller(self, caller: Caller) -> list[Server]:
        """List the servers with mail among the newest tags, in the order of their names."""
        overview = await self._read.overview(caller.account_id, caller.rights.tags)
        counts: Counter[str] = Counter()
        for tag in overview.tags:
            if _OF_A_SERVER.match(tag.tag):
                counts[fold_tag(server_of(tag.tag))] += tag.message_count
        found = [
            Server(server_id, await self._name(caller, server_id) or server_id, count)
            for server_id, count in counts.items()
        ]
        return sorted(found, key=lambda one: (one.name, one.id))

    async def create(self, caller: Caller, name: str | None) -> Server:
        """Create a server with a random id.

        :raises InvalidParameter: the name is missing or too long.
        :raises NotPermitted: the key is limited to tags that no new server has.
        """
        server_id = caller.rights.unique_tag(new_short_id(self._random_bytes))[:ID_LENGTH]
        return Server(server_id, await self._keep(caller, server_id, name), 0)

    async def one(self, caller: Caller, server_id: str) -> Server:
        """Return a server.

        :raises MessageNotFound: the server does not exist, or the key may not use it.
        """
        limit = caller.rights.tags
        if _SERVER_ID.fullmatch(server_id) and (limit is None or limit.allows_any_in(server_id)):
            name = await self._name(caller, server_id)
            count = await self._messages.count(caller, MessageFilter(tag_prefix=server_id))
            if name or count:
                return Server(server_id, name or server_id, count)
        raise MessageNotFound(f"the server {server_id[:100]!r} does not exist")

    async def rename(self, caller: Caller, server_id: str, name: str | None) -> Server:
        """Change the name of a server; raises as `one` and `create`."""
        server = await self.one(caller, server_id)
        return replace(server, name=await self._keep(caller, server_id, name))

    async def delete(self, caller: Caller, server_id: str) -> None:
        """Delete the messages and the name of a server; raises as `one`."""
        await self.one(caller, server_id)
        _require_own(caller, server_id)
        await self.empty(caller, server_id)
        await self._memory.keep(_key(caller, server_id), "", 1)

    async def empty(self, caller: Caller, server_id: str) -> None:
        """Delete the messages of a server that the caller may use."""
        await self._messages.delete_matches(caller, MessageFilter(tag_prefix=server_id))

    async def _keep(self, caller: Caller, server_id: str, name: str | None) -> str:
        if not name or not name.strip():
            raise InvalidParameter("name", "Servers need a name")
        if len(name) > MAX_NAME:
            raise InvalidParameter(
                "name", f"a name has at most {MAX_NAME} characters; you sent {len(name)}"
            )
        _require_own(caller, server_id)
        await self._memory.keep(_key(caller, server_id), name, NAME_LIFETIME)
        return name

    async def _name(self, caller: Caller, server_id: str) -> str | None:
        return await self._memory.recall(_key(caller, server_id))


def require_server(server_id: str | None) -> str:
    """Return the id of a server from a request.

    :raises InvalidParameter: it is missing, or has another form.
    """
    if server_id is None or _SERVER_ID.fullmatch(server_id) is None:
        sent = "nothing" if server_id is None else repr(server_id[:100])
        raise InvalidParameter(
            "server", f"a server has {ID_LENGTH} letters and digits; you sent {sent}"
        )
    return server_id


def _require_own(caller: Caller, server_id: str) -> None:
    """Check that all tags of a server are open to the caller."""
    limit = caller.rights.tags
    if limit is not None and not limit.allows_all_in(server_id):
        raise NotPermitted(
            f"this API key is limited to {limit}, which are not all tags of the server {server_id}"
        )


def _key(caller: Caller, server_id: str) -> Key:
    return key_of("mailosaur server", caller.account_id, fold_tag(server_id))

"""The names, descriptions and tags of MailSlurp's inboxes, which are stored for a time."""

import msgspec
from msgspec import Struct

from mailcheck.core.accounts import Caller
from mailcheck.core.addresses import fold_tag
from mailcheck.core.errors import InvalidParameter
from mailcheck.core.instants import DAY
from mailcheck.core.memory.keys import Key, key_of
from mailcheck.ports.cluster import Memory

LIFETIME = 30 * DAY
"""Milliseconds for which a name is stored after its last change."""

MAX_SIZE = 2_000
"""Maximum number of characters of a name, a description and tags together, as JSON."""


class InboxNames(Struct, frozen=True):
    """The texts that a client has given to an inbox."""

    name: str | None = None
    description: str | None = None
    tags: tuple[str, ...] | str = ()

    @property
    def all_tags(self) -> tuple[str, ...]:
        """The tags; a query with one tag has it as a text."""
        return (self.tags,) if isinstance(self.tags, str) else self.tags


class KeepNames(Struct, frozen=True):
    """Stores the names of a caller's inboxes."""

    _memory: Memory

    async def keep(self, caller: Caller, inbox_id: str, names: InboxNames) -> None:
        """Store the names of an inbox in place of earlier ones.

        :raises InvalidParameter: they are too long.
        """
        text = msgspec.json.encode(names).decode()
        if len(text) > MAX_SIZE:
            raise InvalidParameter(
                "name",
                f"name, description and tags have at most {MAX_SIZE:,} characters together; you "
                f"sent {len(text):,}",
            )
        await self._memory.keep(_key(caller, inbox_id), text, LIFETIME)

    async def recall(self, caller: Caller, inbox_id: str) -> InboxNames:
        """Return the names of an inbox, which are empty if none are stored."""
        text = await self._memory.recall(_key(caller, inbox_id))
        return msgspec.json.decode(text or "{}", type=InboxNames)


def _key(caller: Caller, inbox_id: str) -> Key:
    return key_of("mailslurp inbox", caller.account_id, fold_tag(inbox_id))

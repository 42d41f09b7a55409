"""Keywords: words that clients give to messages after they have arrived.

They are the keywords of IMAP (RFC 9051 2.3.2). Clients of Mailpit know them as tags.
"""

import re
from collections.abc import Sequence

from mailcheck.core.accounts import Caller
from mailcheck.core.errors import InvalidParameter
from mailcheck.core.filters import ANY, MessageFilter
from mailcheck.core.identifiers import DeliveryId
from mailcheck.core.messages import keywords_among
from mailcheck.operations.inbox.mailboxes import Mailboxes
from mailcheck.operations.inbox.mails import MOST
from mailcheck.store.mailbox_store import Marking

MAX_KEYWORDS = 50
"""Maximum number of keywords that a client sets at once."""

_KEYWORD = re.compile(r"[A-Za-z0-9_.@-]{1,100}")


def require_keywords(words: Sequence[str]) -> frozenset[str]:
    """Return the words as keywords.

    :raises InvalidParameter: one has characters that keywords cannot have, or there are too many.
    """
    if len(words) > MAX_KEYWORDS:
        raise InvalidParameter(
            "tags", f"tags may have at most {MAX_KEYWORDS} words; got {len(words)}"
        )
    for word in words:
        if not _KEYWORD.fullmatch(word):
            raise InvalidParameter(
                "tags",
                "a tag has 1 to 100 letters, digits, '-', '_', '.' and '@', and no space; got "
                f"{word[:100]!r}",
            )
    return frozenset(words)


class Keywords:
    """The operations on the keywords of an inbox. Capital and small letters are the same."""

    def __init__(self, mailboxes: Mailboxes) -> None:
        self._mailboxes = mailboxes

    async def counts(self, caller: Caller) -> dict[str, int]:
        """Return all keywords of an inbox in order, with the number of their messages."""
        words = keywords_among(await self._mailboxes.keywords(caller))
        counts = {one: len(await self._mailboxes.flagged(caller, ANY, one)) for one in words}
        return {word: count for word, count in counts.items() if count}

    async def set(
        self, caller: Caller, mails: Sequence[DeliveryId], keywords: frozenset[str]
    ) -> None:
        """Give mails these keywords, and no others.

        :raises NotPermitted: the key lacks the scope.
        """
        known = keywords_among(await self._mailboxes.keywords(caller))
        spelled = {one.lower(): one for one in known}
        wanted = frozenset(spelled.get(one.lower(), one) for one in keywords)
        for first in range(0, len(mails), MOST):
            some = MessageFilter(mails=tuple(mails[first : first + MOST]))
            positions = [one.position for one in await self._mailboxes.marks(caller, some)]
            others = frozenset(known) - wanted
            await self._mailboxes.mark(caller, positions, Marking.REMOVE, others)
            await self._mailboxes.mark(caller, positions, Marking.ADD, wanted)

    async def replace(self, caller: Caller, keyword: str, by: frozenset[str]) -> None:
        """Replace a keyword of all messages by others; by none, it is removed.

        :raises InvalidParameter: no message has the keyword.
        :raises NotPermitted: the key lacks the scope.
        """
        known = await self._mailboxes.keywords(caller)
        old = frozenset(one for one in known if one.lower() == keyword.lower())
        if not old:
            raise InvalidParameter("tag", f"no message was given the tag {keyword[:100]!r}")
        for one in old:
            positions = await self._mailboxes.flagged(caller, ANY, one)
            await self._mailboxes.mark(caller, positions, Marking.REMOVE, frozenset((one,)))
            await self._mailboxes.mark(caller, positions, Marking.ADD, by)

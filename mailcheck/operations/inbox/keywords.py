"""Keywords of messages: words that mail programs and tests put on them.

IMAP shows them as keywords (RFC 9051 2.3.2), Mailpit's API as tags. They are stored with the flags,
as IMAP writes them: a space is ``=20``.
"""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import suppress

from msgspec import Struct

from mailcheck.checks.content.header.fields import split_header
from mailcheck.core.accounts import Caller
from mailcheck.core.conditions import WITH_KEYWORD, WITHOUT_KEYWORDS, Not, Term
from mailcheck.core.errors import InvalidParameter
from mailcheck.core.filters import MessageFilter
from mailcheck.core.identifiers import DeliveryId
from mailcheck.core.messages import encode_keyword, keywords_in, read_keyword
from mailcheck.operations.inbox.mailboxes import Mailboxes
from mailcheck.store.mailbox_store import Marking, Marks

MOST = 100
"""Maximum number of keywords that one request sets, and of characters of a keyword."""

PARAMETER = "Tags"
HEADER = "x-tags"

_KEYWORD = re.compile(r"[ -~]+")
_SPECIAL = frozenset('(){%*"\\],')
"""Characters that keywords cannot have in IMAP (RFC 9051 9), and the separator in X-Tags."""


def write_keyword(text: str) -> str:
    """Return a keyword as IMAP writes it.

    :raises InvalidParameter: it is empty, too long, or has other characters.
    """
    written = encode_keyword(text)
    is_printable = _KEYWORD.fullmatch(text.strip()) is not None
    if not is_printable or len(written) > MOST or _SPECIAL.intersection(text):
        raise InvalidParameter(
            PARAMETER,
            f"{PARAMETER}: a tag has up to {MOST} printable ASCII characters without any of "
            f"{' '.join(sorted(_SPECIAL))}; got {text[:MOST]!r}",
        )
    return written


def write_keywords(texts: Iterable[str]) -> tuple[str, ...]:
    """Return distinct keywords as IMAP writes them, without empty ones; raises as the first.

    :raises InvalidParameter: there are too many.
    """
    found = {write_keyword(text).casefold(): write_keyword(text) for text in texts if text.strip()}
    if len(found) > MOST:
        raise InvalidParameter(
            PARAMETER, f"{PARAMETER}: a message has at most {MOST} tags; got {len(found)}"
        )
    return tuple(found.values())


def keywords_of_mail(raw_message: bytes) -> tuple[str, ...]:
    """Return the valid keywords in the header field X-Tags, which are separated by commas."""
    field = split_header(raw_message, 0, len(raw_message)).find(HEADER)
    if field is None:
        return ()
    found: list[str] = []
    for part in field.decode().split(",")[:MOST]:
        with suppress(InvalidParameter):
            found += write_keywords([part])
    return tuple(dict.fromkeys(found))


class Keywords(Struct, frozen=True, eq=False):
    """Counts and changes the keywords of an inbox. Spellings in another case are the same."""

    mailboxes: Mailboxes

    async def counts(self, caller: Caller) -> Counter[str]:
        """Return the number of messages of each keyword. Requires the scope `INBOX_READ`."""
        marks = await self._marks(caller, "")
        return Counter(
            read_keyword(keyword) for each in marks for keyword in keywords_in(each.flags)
        )

    async def replace(
        self, caller: Caller, mails: Sequence[DeliveryId], keywords: Sequence[str]
    ) -> None:
        """Replace the keywords of all messages of these mails.

        :raises InvalidParameter: a keyword is invalid; see `write_keyword`.
        :raises NotPermitted: the key lacks the scope `INBOX_WRITE`.
        """
        written = frozenset(write_keywords(keywords))
        marks = await self.mailboxes.marks(caller, MessageFilter(mails=tuple(mails)))
        await self._mark(caller, marks, Marking.REPLACE_KEYWORDS, written)

    async def rename(self, caller: Caller, keyword: str, name: str) -> None:
        """Rename a keyword of all messages. Raises as `replace`, and if no message has it."""
        written = frozenset((write_keyword(name),))
        marks = await self._require_marks(caller, keyword)
        await self._mark(caller, marks, Marking.REMOVE, _spellings(marks, keyword) - written)
        await self._mark(caller, marks, Marking.ADD, written)

    async def remove(self, caller: Caller, keyword: str) -> None:
        """Remove a keyword from all messages. Raises as `rename`."""
        marks = await self._require_marks(caller, keyword)
        await self._mark(caller, marks, Marking.REMOVE, _spellings(marks, keyword))

    async def _require_marks(self, caller: Caller, keyword: str) -> list[Marks]:
        marks = await self._marks(caller, keyword) if keyword.strip() else []
        if not marks:
            raise InvalidParameter(
                PARAMETER,
                f"no message was given the tag {keyword[:MOST]!r}; the +tags of recipients stay",
            )
        return marks

    async def _marks(self, caller: Caller, keyword: str) -> list[Marks]:
        """Return the marks of all messages with a keyword; of those with any, if it is empty."""
        written = encode_keyword(keyword)
        term = Term(WITH_KEYWORD, written) if written else Not(Term(WITHOUT_KEYWORDS, ""))
        return await self.mailboxes.marks(caller, MessageFilter(search=(term,)))

    async def _mark(
        self, caller: Caller, marks: Sequence[Marks], marking: Marking, flags: frozenset[str]
    ) -> None:
        await self.mailboxes.mark(caller, [mark.position for mark in marks], marking, flags)


def _spellings(marks: Sequence[Marks], keyword: str) -> frozenset[str]:
    key = encode_keyword(keyword).casefold()
    return frozenset(
        known for each in marks for known in keywords_in(each.flags) if known.casefold() == key
    )

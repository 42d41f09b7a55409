"""SEARCH: the messages that match a key (RFC 9051 6.4.4).

The store evaluates one filter for each key with text, size or time. Flags, sets and NOT, AND and OR
are evaluated here, on sets of UIDs.
"""

from collections.abc import Iterator, Mapping, Sequence

from mailcheck.core.accounts import Caller
from mailcheck.core.cursors import Position
from mailcheck.core.filters import MessageFilter
from mailcheck.core.instants import Instant
from mailcheck.imap.commands import (
    AllOf,
    AnyOf,
    ChangedSince,
    Everything,
    HasFlag,
    InSet,
    Not,
    Search,
    SearchKey,
    SentSince,
)
from mailcheck.imap.selected import Selected
from mailcheck.imap.writing import CRLF, write_set
from mailcheck.operations.inbox.mailboxes import AT_ONCE, Mailboxes
from mailcheck.store.mailbox_store import Marks

Found = frozenset[Position]


class SearchMessages:
    """Runs one SEARCH."""

    def __init__(self, mailboxes: Mailboxes, caller: Caller, selected: Selected) -> None:
        self._mailboxes = mailboxes
        self._caller = caller
        self._selected = selected
        self._all: Found = frozenset(selected.uids)
        self._marks: Sequence[Marks] | None = None
        self._sent: Mapping[Position, Instant] | None = None

    async def run(self, search: Search) -> list[Position]:
        """Return the UIDs of matching messages in order."""
        return sorted(await self._find(search.key))

    async def mod_sequence(self, search: Search, uids: Sequence[Position]) -> int | None:
        """Return the highest mod-sequence of a result, if a key is MODSEQ (RFC 7162 3.1.5).

        With RETURN, it is that of the returned messages (RFC 4731 3.2). It is `None` for an empty
        result.
        """
        if not search.has_mod_sequence:
            return None
        returned = frozenset(_returned(search, uids))
        marks = await self._all_marks() if returned else ()
        return max((one.mod_sequence for one in marks if one.position in returned), default=None)

    async def _all_marks(self) -> Sequence[Marks]:
        if self._marks is None:
            self._marks = await self._mailboxes.marks(self._caller, self._selected.mailbox.wanted)
        return self._marks

    async def _find(self, key: SearchKey) -> Found:
        if isinstance(key, AllOf | AnyOf | Not):
            return await self._combine(key)
        if isinstance(key, HasFlag | ChangedSince):
            return await self._find_marked(key)
        if isinstance(key, Everything):
            return self._all
        if isinstance(key, InSet):
            return frozenset(self._selected.resolve(key.numbers, is_uid=key.is_uid))
        if isinstance(key, SentSince):
            return await self._find_sent(key)
        wanted = self._selected.mailbox.within(MessageFilter(search=(key,)))
        return self._all & await self._mailboxes.matches(self._caller, wanted)

    async def _combine(self, key: AllOf | AnyOf | Not) -> Found:
        if isinstance(key, Not):
            return self._all - await self._find(key.key)
        if isinstance(key, AllOf):
            found = self._all
            for one in key.keys:
                if not found:
                    break  # no further query can add a message
                found &= await self._find(one)
            return found
        some: Found = frozenset()
        for one in key.keys:
            some |= await self._find(one)
        return some

    async def _find_marked(self, key: HasFlag | ChangedSince) -> Found:
        marks = await self._all_marks()
        if isinstance(key, ChangedSince):
            changed = (one for one in marks if one.mod_sequence >= key.mod_sequence)
            return self._all & frozenset(one.position for one in changed)
        # Flags have any case (RFC 9051 2.3.2).
        flag = key.flag.lower()
        return self._all & frozenset(
            one.position
            for one in marks
            if any(one_flag.lower() == flag for one_flag in one.all_flags)
        )

    async def _find_sent(self, key: SentSince) -> Found:
        if self._sent is None:
            sent: dict[Position, Instant] = {}
            uids = self._selected.uids
            for first in range(0, len(uids), AT_ONCE):
                some = uids[first : first + AT_ONCE]
                for entry, structure in await self._mailboxes.structured(self._caller, some):
                    if structure.sent_at is not None:
                        sent[entry.position] = structure.sent_at
            self._sent = sent
        return frozenset(uid for uid, day in self._sent.items() if day >= key.day)


def write_result(
    search: Search,
    tag: bytes,
    selected: Selected,
    uids: Sequence[Position],
    mod_sequence: int | None,
    *,
    is_extended: bool,
) -> bytes:
    """Return the response to a search.

    :param is_extended: whether it is ESEARCH although the client did not send RETURN, as in
        IMAP4rev2 (RFC 9051 6.4.4).
    """
    numbers = uids if search.is_uid else [selected.number_of(uid) or 0 for uid in uids]
    wanted = search.wanted
    if wanted is None:
        if not is_extended:
            written = b"".join(b" %d" % number for number in numbers)
            if mod_sequence is not None:
                written += b" (MODSEQ %d)" % mod_sequence
            return b"* SEARCH" + written + CRLF
        wanted = frozenset({"ALL"})
    if wanted == {"SAVE"}:
        return b""
    parts = [b'* ESEARCH (TAG "%s")' % tag, *([b"UID"] if search.is_uid else [])]
    parts += _extended(wanted, numbers)
    if mod_sequence is not None:
        parts.append(b"MODSEQ %d" % mod_sequence)
    return b" ".join(parts) + CRLF


def _extended(wanted: frozenset[str], numbers: Sequence[int]) -> Iterator[bytes]:
    if numbers:
        if "MIN" in wanted:
            yield b"MIN %d" % numbers[0]
        if "MAX" in wanted:
            yield b"MAX %d" % numbers[-1]
        if "ALL" in wanted:
            yield b"ALL " + write_set(numbers)
    if "COUNT" in wanted:
        yield b"COUNT %d" % len(numbers)


def saved_of(search: Search, uids: Sequence[Position]) -> list[Position] | None:
    """Return the result that SAVE keeps, or `None` without SAVE (RFC 9051 6.4.4.1)."""
    is_saved = search.wanted is not None and "SAVE" in search.wanted
    return list(_returned(search, uids)) if is_saved else None


def _returned(search: Search, uids: Sequence[Position]) -> Sequence[Position]:
    """Return the first or the last message if only these are asked for; otherwise all."""
    wanted = search.wanted
    if (
        wanted is None
        or wanted.isdisjoint({"MIN", "MAX"})
        or not wanted.isdisjoint({"ALL", "COUNT"})
    ):
        return uids
    ends = {"MIN": uids[:1], "MAX": uids[-1:]}
    return sorted({uid for name, some in ends.items() if name in wanted for uid in some})

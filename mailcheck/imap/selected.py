"""The mailbox that a connection has selected: message numbers, UIDs and changes."""

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Sequence

from mailcheck.core.accounts import Caller
from mailcheck.core.cursors import Position
from mailcheck.imap.mailbox_names import MailboxName
from mailcheck.imap.scanning import SequenceSet
from mailcheck.imap.writing import CRLF, write_flags
from mailcheck.operations.inbox.mailboxes import Mailboxes
from mailcheck.store.mailbox_store import MailboxState, Marks


class Selected:
    """A selected mailbox. The client knows its messages by number and by UID.

    ``has_news``: whether the inbox may have changed since `sync`. ``saved`` is the saved result of
    a search (RFC 9051 6.4.4.1).
    """

    def __init__(self, mailbox: MailboxName, state: MailboxState, *, is_read_only: bool) -> None:
        self.mailbox = mailbox
        self.is_read_only = is_read_only
        self.uid_validity = state.uid_validity
        self.has_news = False
        self.saved: list[Position] = []
        self.keywords: frozenset[str] = frozenset()
        self._uids: array[int] = state.positions
        self._known = state.last_position
        self._own: dict[Position, int] = {}

    def __len__(self) -> int:
        return len(self._uids)

    @property
    def highest_mod_sequence(self) -> int:
        """The mod-sequence up to which the client knows all changes (RFC 7162 3.1.2)."""
        return max(1, self._known)

    @property
    def next_uid(self) -> int:
        """The UID that the next message has at least."""
        return max(self._known, self._uids[-1] if self._uids else 0) + 1

    @property
    def uids(self) -> Sequence[Position]:
        """The UIDs of all messages, in order."""
        return [Position(uid) for uid in self._uids]

    def number_of(self, uid: Position) -> int | None:
        """Return the number of a message, or `None` if the client does not know its UID."""
        at = bisect_left(self._uids, uid)
        return at + 1 if at < len(self._uids) and self._uids[at] == uid else None

    def resolve(self, numbers: SequenceSet, *, is_uid: bool) -> list[Position]:
        """Return the UIDs of a set, in order and each once (RFC 9051 9, sequence-set)."""
        if numbers is None:
            return [uid for uid in self.saved if self.number_of(uid) is not None]
        if not self._uids:
            return []
        found: list[tuple[int, int]] = []
        last = self._uids[-1] if is_uid else len(self._uids)
        for start, end in numbers:
            low, high = sorted((last if start is None else start, last if end is None else end))
            if is_uid:
                found.append((bisect_left(self._uids, low), bisect_right(self._uids, high)))
            else:
                found.append((low - 1, min(high, len(self._uids))))
        # Overlapping ranges are read once, so that a set costs no more than all messages.
        uids: list[Position] = []
        reached = 0
        for first, end in sorted(found):
            uids += map(Position, self._uids[max(first, reached) : end])
            reached = max(reached, end)
        return uids

    def has_all(self, numbers: SequenceSet) -> bool:
        """Return whether all messages with these numbers exist."""
        if numbers is None:
            return True
        count = len(self._uids)
        return all((start or 1) <= count and (end or 1) <= count for start, end in numbers)

    def note_own(self, marked: Sequence[Marks]) -> None:
        """Record marks that this client has set and knows."""
        for marks in marked:
            self._own[marks.position] = marks.mod_sequence

    def forget(self, uids: Sequence[Position]) -> list[bytes]:
        """Remove messages that were deleted; return the responses that say so."""
        gone = set(uids)
        numbers = [number for number, uid in enumerate(self._uids, 1) if uid in gone]
        self._uids = array("I", [uid for uid in self._uids if uid not in gone])
        # Each response changes the numbers behind it (RFC 9051 7.5.1).
        return [b"* %d EXPUNGE\r\n" % number for number in reversed(numbers)]

    async def sync(
        self, mailboxes: Mailboxes, caller: Caller, *, may_expunge: bool, with_mod_sequence: bool
    ) -> list[bytes]:
        """Return the responses about all changes since the last call.

        :param may_expunge: whether the client expects that message numbers change now
            (RFC 9051 7.5.1). Otherwise deleted messages stay until it does.
        """
        self.has_news = False
        wanted = self.mailbox.wanted
        changes = await mailboxes.changes(caller, wanted, self._known)
        known = self._uids[-1] if self._uids else 0
        arrived = [uid for uid in changes.arrived if uid > known]
        responses: list[bytes] = []
        if len(self._uids) + len(arrived) != changes.message_count:
            if may_expunge:
                state = await mailboxes.open(caller, wanted)
                present = set(state.positions)
                responses += self.forget([Position(u) for u in self._uids if u not in present])
                # Later messages follow with their marks in the next call.
                up_to = changes.last_position
                arrived = [Position(uid) for uid in state.positions if known < uid <= up_to]
            else:
                self.has_news = True
        if arrived:
            self._uids.extend(arrived)
            responses.append(b"* %d EXISTS\r\n" % len(self._uids))
        for marks in changes.marked:
            if self._own.get(marks.position) != marks.mod_sequence:
                responses += self.write_marks(marks, with_mod_sequence=with_mod_sequence)
        self._own = {}
        self._known = max(self._known, changes.last_position)
        return responses

    def write_marks(
        self,
        marks: Marks,
        *,
        with_mod_sequence: bool,
        with_flags: bool = True,
        with_uid: bool = True,
    ) -> list[bytes]:
        """Return the response about the flags of a message."""
        number = self.number_of(marks.position)
        if number is None:
            return []
        items = []
        if with_uid:
            items.append(b"UID %d" % marks.position)
        if with_flags:
            items.append(b"FLAGS " + write_flags(marks.all_flags))
        if with_mod_sequence:
            items.append(b"MODSEQ (%d)" % marks.mod_sequence)
        return [b"* %d FETCH (%s)%s" % (number, b" ".join(items), CRLF)]

"""The commands of a client, parsed. Names of mailboxes and texts are octets as they were sent."""

from msgspec import Struct

from mailcheck.core.conditions import Where
from mailcheck.imap.scanning import SequenceSet
from mailcheck.store.mailbox_store import Marking


class Plain(Struct, frozen=True):
    """A command without arguments, or whose arguments have no effect."""

    verb: str


class Authenticate(Struct, frozen=True):
    """AUTHENTICATE; ``initial`` is the initial response, still encoded (RFC 4959)."""

    mechanism: str
    initial: bytes | None


class Login(Struct, frozen=True):
    """LOGIN."""

    user: bytes
    password: bytes


class Enable(Struct, frozen=True):
    """ENABLE (RFC 9051 6.3.1)."""

    capabilities: tuple[str, ...]


class Select(Struct, frozen=True):
    """SELECT or EXAMINE."""

    mailbox: bytes
    is_examine: bool
    wants_condstore: bool


class ChangeMailbox(Struct, frozen=True):
    """CREATE, DELETE, RENAME, SUBSCRIBE or UNSUBSCRIBE."""

    verb: str
    mailbox: bytes


class ListMailboxes(Struct, frozen=True):
    """LIST (RFC 9051 6.3.9) or LSUB. ``status`` are the items of RETURN (STATUS ...)."""

    reference: bytes
    patterns: tuple[bytes, ...]
    selection: frozenset[str] = frozenset()
    wanted: frozenset[str] = frozenset()
    status: tuple[str, ...] = ()
    is_lsub: bool = False


class Status(Struct, frozen=True):
    """STATUS."""

    mailbox: bytes
    items: tuple[str, ...]


class Append(Struct, frozen=True):
    """APPEND. The time that it may name is not used: retention begins when a mail is stored."""

    mailbox: bytes
    flags: frozenset[str]
    raw_message: bytes


class Expunge(Struct, frozen=True):
    """EXPUNGE, or UID EXPUNGE with a set (RFC 4315)."""

    uids: SequenceSet = None
    is_uid: bool = False


class Everything(Struct, frozen=True):
    """The search key ALL."""


class HasFlag(Struct, frozen=True):
    """A search key for a flag."""

    flag: str


class SentSince(Struct, frozen=True):
    """The search key SENTSINCE: a day as milliseconds since the epoch."""

    day: int


class InSet(Struct, frozen=True):
    """A search key with message numbers or UIDs."""

    numbers: SequenceSet
    is_uid: bool


class ChangedSince(Struct, frozen=True):
    """The search key MODSEQ (RFC 7162 3.1.5): at least this mod-sequence."""

    mod_sequence: int


class Not(Struct, frozen=True):
    """All messages that do not match a key."""

    key: "SearchKey"


class AnyOf(Struct, frozen=True):
    """Messages that match one of the keys."""

    keys: "tuple[SearchKey, ...]"


class AllOf(Struct, frozen=True):
    """Messages that match all keys."""

    keys: "tuple[SearchKey, ...]"


SearchKey = Where | Everything | HasFlag | SentSince | InSet | ChangedSince | Not | AnyOf | AllOf
"""A key. The store evaluates those that are expressions (`Where`)."""


class Search(Struct, frozen=True):
    """SEARCH. ``wanted`` are the options of RETURN; `None` without RETURN (RFC 9051 6.4.4).

    ``has_mod_sequence``: whether a key is MODSEQ, which the response then has, too.
    """

    key: SearchKey
    wanted: frozenset[str] | None
    is_uid: bool
    charset: str = "UTF-8"
    has_mod_sequence: bool = False


class Section(Struct, frozen=True):
    """A part of a mail that FETCH asks for (RFC 9051 6.4.5).

    ``kind`` is ``BODY``, ``BINARY``, ``BINARY.SIZE``, ``RFC822``, ``RFC822.HEADER`` or
    ``RFC822.TEXT``. ``part`` are the numbers of a part. ``text`` is empty, ``HEADER``,
    ``HEADER.FIELDS``, ``HEADER.FIELDS.NOT``, ``TEXT`` or ``MIME``. ``label`` names the item in the
    answer. ``partial`` has the first octet and the number of octets.
    """

    kind: str
    label: bytes
    part: tuple[int, ...] = ()
    text: str = ""
    fields: frozenset[str] = frozenset()
    partial: tuple[int, int] | None = None
    is_peek: bool = False


class Fetch(Struct, frozen=True):
    """FETCH: the names of attributes, and sections."""

    numbers: SequenceSet
    attributes: tuple[str, ...]
    sections: tuple[Section, ...]
    changed_since: int | None
    is_uid: bool


class Store(Struct, frozen=True):
    """STORE."""

    numbers: SequenceSet
    marking: Marking
    flags: frozenset[str]
    is_silent: bool
    unchanged_since: int | None
    is_uid: bool


class Copy(Struct, frozen=True):
    """COPY or MOVE."""

    numbers: SequenceSet
    mailbox: bytes
    is_move: bool
    is_uid: bool


Command = (
    Plain
    | Authenticate
    | Login
    | Enable
    | Select
    | ChangeMailbox
    | ListMailboxes
    | Status
    | Append
    | Expunge
    | Search
    | Fetch
    | Store
    | Copy
)


class Tagged(Struct, frozen=True):
    """A valid command with its tag. ``verb`` is its name, such as ``UID FETCH``."""

    tag: bytes
    verb: str
    command: Command


class Invalid(Struct, frozen=True):
    """A command that is not valid. ``tag`` is ``*`` if it has none."""

    tag: bytes
    problem: str

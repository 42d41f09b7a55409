"""The parser of commands (RFC 9051 9, with the commands of RFC 3501 that it has dropped)."""

import re
from calendar import timegm
from collections.abc import Callable, Mapping, Sequence
from functools import partial

from mailcheck.core import conditions
from mailcheck.core.conditions import Term
from mailcheck.core.messages import SYSTEM_FLAGS
from mailcheck.imap.commands import (
    AllOf,
    AnyOf,
    Append,
    Authenticate,
    ChangedSince,
    ChangeMailbox,
    Command,
    Copy,
    Enable,
    Everything,
    Expunge,
    Fetch,
    HasFlag,
    InSet,
    Invalid,
    ListMailboxes,
    Login,
    Not,
    Plain,
    Search,
    SearchKey,
    Section,
    Select,
    SentSince,
    Status,
    Store,
    Tagged,
)
from mailcheck.imap.scanning import MAX_LARGE_NUMBER, Scanner, SyntaxProblem
from mailcheck.store.mailbox_store import SEEN, Marking

MAX_KEYS = 200
"""Maximum number of keys of one search. Each may be a query."""

MAX_DEPTH = 20
"""Maximum depth of a search key in parentheses, NOT and OR."""

MAX_SECTIONS = 50
"""Maximum number of sections of one FETCH. Each is a copy of a part of each mail."""

MAX_FLAGS = 50
"""Maximum number of flags of one command."""

MAX_FLAG = 100
"""Maximum length of a keyword."""

MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
"""Names of months in dates, in any locale (RFC 9051 9)."""

ALL_FLAGS = (SEEN, *SYSTEM_FLAGS)
"""The flags that every message can have (RFC 9051 2.3.2). No message has ``\\Recent``."""

_CANONICAL = {flag.lower(): flag for flag in ALL_FLAGS}

_DATE = re.compile(rb"(\d{1,2})-([A-Za-z]{3})-(\d{4})")
_DATE_TIME = re.compile(
    rb" ?\d{1,2}-(?:%s)-\d{4} \d\d:\d\d:\d\d [+-]\d{4}" % "|".join(MONTHS).encode("ascii"),
    re.IGNORECASE,
)


_ATTRIBUTES = frozenset(
    {
        "FLAGS",
        "UID",
        "INTERNALDATE",
        "RFC822.SIZE",
        "ENVELOPE",
        "BODY",
        "BODYSTRUCTURE",
        "MODSEQ",
    }
)
_MACROS = {
    "ALL": ["FLAGS", "INTERNALDATE", "RFC822.SIZE", "ENVELOPE"],
    "FAST": ["FLAGS", "INTERNALDATE", "RFC822.SIZE"],
    "FULL": ["FLAGS", "INTERNALDATE", "RFC822.SIZE", "ENVELOPE", "BODY"],
}
_WHOLE = {
    "RFC822": Section("RFC822", b"RFC822"),
    "RFC822.HEADER": Section("RFC822.HEADER", b"RFC822.HEADER", text="HEADER", is_peek=True),
    "RFC822.TEXT": Section("RFC822.TEXT", b"RFC822.TEXT", text="TEXT"),
}
_SECTIONS = frozenset({"BODY[", "BODY.PEEK[", "BINARY[", "BINARY.PEEK[", "BINARY.SIZE["})

_TEXTS = ("", "HEADER", "HEADER.FIELDS", "HEADER.FIELDS.NOT", "TEXT", "MIME")

_SIMPLE_KEYS: Mapping[str, SearchKey] = {
    "ALL": Everything(),
    "ANSWERED": HasFlag("\\Answered"),
    "DELETED": HasFlag("\\Deleted"),
    "DRAFT": HasFlag("\\Draft"),
    "FLAGGED": HasFlag("\\Flagged"),
    "SEEN": HasFlag(SEEN),
    "UNANSWERED": Not(HasFlag("\\Answered")),
    "UNDELETED": Not(HasFlag("\\Deleted")),
    "UNDRAFT": Not(HasFlag("\\Draft")),
    "UNFLAGGED": Not(HasFlag("\\Flagged")),
    "UNSEEN": Not(HasFlag(SEEN)),
    # No message is recent (RFC 3501 6.4.4).
    "RECENT": Not(Everything()),
    "NEW": Not(Everything()),
    "OLD": Everything(),
}
_TEXT_KEYS: Mapping[str, Callable[[str], conditions.Where]] = {
    "BCC": lambda text: Term(conditions.WITH_HEADER, ("bcc", text)),
    "CC": lambda text: Term(conditions.WITH_HEADER, ("cc", text)),
    "TO": lambda text: Term(conditions.WITH_HEADER, ("to", text)),
    "FROM": partial(Term, conditions.FROM),
    "SUBJECT": partial(Term, conditions.WITH_SUBJECT),
    "BODY": partial(Term, conditions.WITH_TEXT),
    "TEXT": lambda text: conditions.AnyOf(
        (
            Term(conditions.WITH_WORDS, text),
            Term(conditions.WITH_HEADER, (conditions.ANY_FIELD, text)),
        )
    ),
}
_DAY_KEYS = frozenset({"BEFORE", "ON", "SINCE", "SENTBEFORE", "SENTON", "SENTSINCE"})


_PLAIN = (
    *("CAPABILITY", "NOOP", "LOGOUT", "STARTTLS", "IDLE"),
    *("CHECK", "CLOSE", "UNSELECT", "NAMESPACE"),
)

_WITHOUT_ARGUMENTS: Mapping[str, Command] = {
    "EXPUNGE": Expunge(),
    **{verb: Plain(verb) for verb in _PLAIN},
}


def parse_command(lines: Sequence[bytes], literals: Sequence[bytes] = ()) -> Tagged | Invalid:
    """Parse a command. Never raises.

    :param lines: its lines without CRLF. Each but the last ends with the announcement of a literal.
    """
    scanner = Scanner(lines, literals)
    tag = b"*"
    try:
        tag = scanner.tag()
        scanner.space()
        verb = scanner.word()
        if verb == "UID":
            scanner.space()
            verb = f"UID {scanner.word()}"
        command = _WITHOUT_ARGUMENTS.get(verb)
        if command is None:
            if verb not in _PARSERS:
                raise SyntaxProblem(f"{verb[:30]} is not a command")
            scanner.space()
            command = _PARSERS[verb](scanner)
        scanner.end()
    except SyntaxProblem as problem:
        return Invalid(tag, str(problem))
    return Tagged(tag, verb, command)


def _authenticate(scanner: Scanner) -> Authenticate:
    mechanism = scanner.word()
    initial = scanner.base64() if scanner.skip(b" ") else None
    return Authenticate(mechanism, initial)


def _login(scanner: Scanner) -> Login:
    user = scanner.astring()
    scanner.space()
    return Login(user, scanner.astring())


def _enable(scanner: Scanner) -> Enable:
    found = [scanner.word()]
    while scanner.skip(b" "):
        found.append(scanner.word())
    return Enable(tuple(found))


def _identify(scanner: Scanner) -> Plain:
    """Read the names and values of a program, which are not used (RFC 2971 3.1)."""

    def pair() -> None:
        scanner.string()
        scanner.space()
        scanner.nstring()

    if scanner.sees(b"("):
        scanner.items(pair, may_be_empty=True)
    elif scanner.nstring() is not None:
        raise SyntaxProblem("ID needs a list or NIL")
    return Plain("ID")


def _select(scanner: Scanner, *, is_examine: bool) -> Select:
    mailbox = scanner.astring()
    parameters = scanner.items(scanner.word) if scanner.skip(b" ") else []
    unknown = [parameter for parameter in parameters if parameter != "CONDSTORE"]
    if unknown:
        raise SyntaxProblem(f"{unknown[0][:30]} is not a parameter of SELECT")
    return Select(mailbox, is_examine, bool(parameters))


def _change_mailbox(scanner: Scanner, verb: str) -> ChangeMailbox:
    mailbox = scanner.astring()
    if verb == "RENAME":
        scanner.space()
        scanner.astring()
    elif verb == "CREATE" and scanner.skip(b" "):
        # CREATE x (USE (\Trash)) of RFC 6154 3.
        scanner.expect(b"(")
        if scanner.word() != "USE":
            raise SyntaxProblem("CREATE has the parameter USE only")
        scanner.space()
        scanner.items(scanner.flag, may_be_empty=True)
        scanner.expect(b")")
    return ChangeMailbox(verb, mailbox)


_SELECTIONS = frozenset({"SUBSCRIBED", "REMOTE", "RECURSIVEMATCH", "SPECIAL-USE"})
_RETURNS = frozenset({"SUBSCRIBED", "CHILDREN", "SPECIAL-USE", "STATUS"})


def _list(scanner: Scanner) -> ListMailboxes:
    selection: list[str] = []
    if scanner.sees(b"("):
        selection = scanner.items(scanner.word, may_be_empty=True)
        scanner.space()
        _require_known(selection, _SELECTIONS, "a selection option of LIST")
        if set(selection) == {"RECURSIVEMATCH"}:
            # RFC 9051 6.3.9.1
            raise SyntaxProblem("RECURSIVEMATCH needs another selection option")
    reference = scanner.astring()
    scanner.space()
    if scanner.sees(b"("):
        patterns = scanner.items(scanner.list_mailbox)
    else:
        patterns = [scanner.list_mailbox()]
    wanted: list[str] = []
    status: list[str] = []
    if scanner.skip(b" "):
        if scanner.word() != "RETURN":
            raise SyntaxProblem("RETURN is missing after the patterns of LIST")
        scanner.space()

        def option() -> str:
            name = scanner.word()
            if name == "STATUS":
                scanner.space()
                status.extend(_status_items(scanner))
            return name

        wanted = scanner.items(option, may_be_empty=True)
        _require_known(wanted, _RETURNS, "a return option of LIST")
    return ListMailboxes(
        reference, tuple(patterns), frozenset(selection), frozenset(wanted), tuple(status)
    )


def _lsub(scanner: Scanner) -> ListMailboxes:
    reference = scanner.astring()
    scanner.space()
    return ListMailboxes(reference, (scanner.list_mailbox(),), is_lsub=True)


def _require_known(names: Sequence[str], known: frozenset[str], kind: str) -> None:
    for name in names:
        if name not in known:
            raise SyntaxProblem(f"{name[:30]} is not {kind}")


STATUS_ITEMS = frozenset(
    {
        "MESSAGES",
        "RECENT",
        "UIDNEXT",
        "UIDVALIDITY",
        "UNSEEN",
        "DELETED",
        "SIZE",
        "HIGHESTMODSEQ",
    }
)
"""The items of STATUS (RFC 9051 6.3.11; RECENT of RFC 3501; HIGHESTMODSEQ of RFC 7162)."""


def _status_items(scanner: Scanner) -> list[str]:
    items = scanner.items(scanner.word)
    _require_known(items, STATUS_ITEMS, "an item of STATUS")
    return list(dict.fromkeys(items))


def _status(scanner: Scanner) -> Status:
    mailbox = scanner.astring()
    scanner.space()
    return Status(mailbox, tuple(_status_items(scanner)))


def _append(scanner: Scanner) -> Append:
    mailbox = scanner.astring()
    scanner.space()
    flags: frozenset[str] = frozenset()
    if scanner.sees(b"("):
        flags = _flag_list(scanner)
        scanner.space()
    if scanner.sees(b'"'):
        if _DATE_TIME.fullmatch(scanner.string()) is None:
            raise SyntaxProblem('a date and time has the form "26-Nov-2026 09:30:00 +0000"')
        scanner.space()
    if scanner.skip_word(b"UTF8 ("):  # RFC 6855 4
        raw_message = scanner.literal()
        scanner.expect(b")")
    else:
        raw_message = scanner.literal()
    return Append(mailbox, flags, raw_message)


def _flag_list(scanner: Scanner) -> frozenset[str]:
    return _flags_of(scanner.items(scanner.flag, may_be_empty=True))


def _flags_of(written: Sequence[bytes]) -> frozenset[str]:
    if len(written) > MAX_FLAGS:
        raise SyntaxProblem(f"a command may name at most {MAX_FLAGS} flags")
    return frozenset({flag.lower(): flag for flag in map(_flag_of, written)}.values())


def _flag_of(written: bytes) -> str:
    flag = written.decode("ascii")
    if len(flag) > MAX_FLAG:
        raise SyntaxProblem(f"a keyword may have at most {MAX_FLAG} characters")
    if not flag.startswith("\\"):
        return flag
    known = _CANONICAL.get(flag.lower())
    if known is None:
        raise SyntaxProblem(f"{flag[:30]} cannot be set")
    return known


def _fetch(scanner: Scanner, *, is_uid: bool) -> Fetch:
    numbers = scanner.sequence_set()
    scanner.space()
    attributes = ["UID"] if is_uid else []
    sections: list[Section] = []
    read = partial(_fetch_item, scanner, attributes, sections)
    macro = _MACROS.get(scanner.peek_name())
    if macro is not None:
        scanner.item_name()
        attributes += macro
    elif scanner.sees(b"("):
        scanner.items(read)
    else:
        read()
    changed_since = None
    if scanner.skip(b" "):
        changed_since = _modifier(scanner, "CHANGEDSINCE")
        attributes.append("MODSEQ")
    if len(sections) > MAX_SECTIONS:
        raise SyntaxProblem(f"FETCH may have at most {MAX_SECTIONS} sections")
    # Equal sections would only be sent twice. BODY[] beside BODY.PEEK[] still marks as read.
    peeks_first = sorted(sections, key=lambda one: one.is_peek, reverse=True)
    distinct = {(section.label, section.partial): section for section in peeks_first}
    return Fetch(
        numbers,
        tuple(dict.fromkeys(attributes)),
        tuple(distinct.values()),
        changed_since,
        is_uid,
    )


def _fetch_item(scanner: Scanner, attributes: list[str], sections: list[Section]) -> None:
    name = scanner.item_name()
    if name in _SECTIONS:
        sections.append(_section(scanner, name))
    elif name in _WHOLE:
        sections.append(_WHOLE[name])
    elif name in _ATTRIBUTES:
        attributes.append(name)
    else:
        raise SyntaxProblem(f"{name[:30]} is not an item of FETCH")


def _section(scanner: Scanner, name: str) -> Section:
    kind = name[:-1].removesuffix(".PEEK")
    part: list[int] = []
    text = ""
    fields: list[bytes] = []
    while not scanner.sees(b"]"):
        if part or text:
            scanner.expect(b".")
        if scanner.sees_digit():
            number = scanner.number()
            if number == 0:
                raise SyntaxProblem("the parts of a mail are counted from 1")
            part.append(number)
            continue
        text = scanner.section_text()
        if text in ("HEADER.FIELDS", "HEADER.FIELDS.NOT"):
            scanner.space()
            fields = scanner.items(scanner.astring)
        break
    scanner.expect(b"]")
    if text not in _TEXTS or (text and kind != "BODY") or (text == "MIME" and not part):
        raise SyntaxProblem(f"{text[:30]} is not a section here")
    partial_range = None if kind == "BINARY.SIZE" else _partial(scanner)
    written = b".".join([b"%d" % one for one in part] + ([text.encode("ascii")] if text else []))
    if fields:
        written += b" (" + b" ".join(map(_field_name, fields)) + b")"
    label = kind.encode("ascii") + b"[" + written + b"]"
    if partial_range is not None:
        label += b"<%d>" % partial_range[0]
    names = frozenset(field.decode("latin-1").lower() for field in fields)
    return Section(
        kind, label, tuple(part), text, names, partial=partial_range, is_peek="PEEK" in name
    )


_PLAIN_NAME = re.compile(rb"[A-Za-z0-9_-]+")


def _field_name(name: bytes) -> bytes:
    """Return the name of a field as the answer repeats it."""
    if _PLAIN_NAME.fullmatch(name):
        return name
    kept = bytes(octet for octet in name if 32 <= octet < 127)
    return b'"' + kept.replace(b"\\", b"\\\\").replace(b'"', b'\\"') + b'"'


def _partial(scanner: Scanner) -> tuple[int, int] | None:
    if not scanner.skip(b"<"):
        return None
    start = scanner.number(MAX_LARGE_NUMBER)
    scanner.expect(b".")
    count = scanner.number(MAX_LARGE_NUMBER)
    scanner.expect(b">")
    if count == 0:
        raise SyntaxProblem("a partial FETCH needs at least one octet")
    return start, count


def _modifier(scanner: Scanner, wanted: str) -> int:
    """Read ``(CHANGEDSINCE n)`` or ``(UNCHANGEDSINCE n)`` (RFC 7162 3.1)."""
    scanner.expect(b"(")
    name = scanner.word()
    if name != wanted:
        raise SyntaxProblem(f"{name[:30]} is not a modifier here")
    scanner.space()
    number = scanner.number(MAX_LARGE_NUMBER)
    scanner.expect(b")")
    return number


_MARKINGS = {"FLAGS": Marking.REPLACE, "+FLAGS": Marking.ADD, "-FLAGS": Marking.REMOVE}


def _store(scanner: Scanner, *, is_uid: bool) -> Store:
    numbers = scanner.sequence_set()
    scanner.space()
    unchanged_since = None
    if scanner.sees(b"("):
        unchanged_since = _modifier(scanner, "UNCHANGEDSINCE")
        scanner.space()
    name = scanner.word()
    marking = _MARKINGS.get(name.removesuffix(".SILENT"))
    if marking is None:
        raise SyntaxProblem(f"{name[:30]} is not an item of STORE")
    scanner.space()
    if scanner.sees(b"("):
        flags = _flag_list(scanner)
    else:
        written = [scanner.flag()]
        while scanner.skip(b" "):
            written.append(scanner.flag())
        flags = _flags_of(written)
    return Store(numbers, marking, flags, name.endswith(".SILENT"), unchanged_since, is_uid=is_uid)


def _copy(scanner: Scanner, *, is_move: bool, is_uid: bool) -> Copy:
    numbers = scanner.sequence_set()
    scanner.space()
    return Copy(numbers, scanner.astring(), is_move, is_uid)


_SEARCH_RETURNS = frozenset({"MIN", "MAX", "ALL", "COUNT", "SAVE"})


def _search(scanner: Scanner, *, is_uid: bool) -> Search:
    wanted: frozenset[str] | None = None
    if scanner.skip_word(b"RETURN "):
        options = scanner.items(scanner.word, may_be_empty=True)
        _require_known(options, _SEARCH_RETURNS, "a return option of SEARCH")
        wanted = frozenset(options or ("ALL",))
        scanner.space()
    charset = "UTF-8"
    if scanner.skip_word(b"CHARSET "):
        charset = scanner.astring().decode("ascii", "replace").upper()
        scanner.space()
    keys = _SearchKeys(scanner)
    found = [keys.read(0)]
    while scanner.skip(b" "):
        found.append(keys.read(0))
    key = found[0] if len(found) == 1 else AllOf(tuple(found))
    return Search(key, wanted, is_uid, charset, keys.has_mod_sequence)


class _SearchKeys:
    """Reads the keys of one search, and limits their number and depth.

    ``has_mod_sequence``: whether one of them is MODSEQ.
    """

    def __init__(self, scanner: Scanner) -> None:
        self._scanner = scanner
        self._count = 0
        self.has_mod_sequence = False

    def read(self, depth: int) -> SearchKey:
        """Read one key."""
        scanner = self._scanner
        self._count += 1
        if self._count > MAX_KEYS or depth > MAX_DEPTH:
            raise SyntaxProblem(f"a search has at most {MAX_KEYS} keys in {MAX_DEPTH} levels")
        if scanner.sees(b"("):
            return AllOf(tuple(scanner.items(lambda: self.read(depth + 1))))
        if scanner.sees_digit() or scanner.sees(b"*") or scanner.sees(b"$"):
            return InSet(scanner.sequence_set(), is_uid=False)
        name = scanner.word()
        simple = _SIMPLE_KEYS.get(name)
        if simple is not None:
            return simple
        if name not in ("NOT", "OR", *_TEXT_KEYS, *_DAY_KEYS, *_KEY_ARGUMENTS):
            raise SyntaxProblem(f"{name[:30]} is not a search key")
        scanner.space()
        if name == "NOT":
            return Not(self.read(depth + 1))
        if name == "OR":
            first = self.read(depth + 1)
            scanner.space()
            return AnyOf((first, self.read(depth + 1)))
        if name in _TEXT_KEYS:
            return _TEXT_KEYS[name](_text(scanner.astring()))
        if name in _DAY_KEYS:
            return _of_day(name, _day(scanner))
        self.has_mod_sequence = self.has_mod_sequence or name == "MODSEQ"
        return _KEY_ARGUMENTS[name](scanner)


def _header_key(scanner: Scanner) -> Term:
    name = _text(scanner.astring())
    scanner.space()
    return Term(conditions.WITH_HEADER, (name, _text(scanner.astring())))


def _larger_than(size: int) -> Term:
    return Term(conditions.LARGER, size)


def _mod_sequence_key(scanner: Scanner) -> ChangedSince:
    if scanner.sees(b'"'):
        # The name and the kind of an entry are ignored (RFC 7162 3.1.5).
        scanner.string()
        scanner.space()
        scanner.word()
        scanner.space()
    return ChangedSince(scanner.number(MAX_LARGE_NUMBER))


_KEY_ARGUMENTS: Mapping[str, Callable[[Scanner], SearchKey]] = {
    "UID": lambda scanner: InSet(scanner.sequence_set(), is_uid=True),
    "KEYWORD": lambda scanner: HasFlag(_flag_of(scanner.flag())),
    "UNKEYWORD": lambda scanner: Not(HasFlag(_flag_of(scanner.flag()))),
    "LARGER": lambda scanner: _larger_than(scanner.number(MAX_LARGE_NUMBER)),
    "SMALLER": lambda scanner: Not(_larger_than(scanner.number(MAX_LARGE_NUMBER) - 1)),
    "HEADER": _header_key,
    "MODSEQ": _mod_sequence_key,
}


_ONE_DAY = 86_400_000


def _of_day(name: str, day: int) -> SearchKey:
    since = SentSince if name.startswith("SENT") else partial(Term, conditions.SINCE)
    which = name.removeprefix("SENT")
    if which == "SINCE":
        return since(day)
    if which == "BEFORE":
        return Not(since(day))
    return AllOf((since(day), Not(since(day + _ONE_DAY))))


def _day(scanner: Scanner) -> int:
    match = _DATE.fullmatch(scanner.astring())
    month = match[2].decode("ascii").capitalize() if match else ""
    if match is None or month not in MONTHS or not 1 <= int(match[1]) <= 31 or int(match[3]) < 1:
        raise SyntaxProblem("a date has the form 26-Nov-2026")
    return timegm((int(match[3]), MONTHS.index(month) + 1, int(match[1]), 0, 0, 0)) * 1000


def _text(octets: bytes) -> str:
    return octets.decode("utf-8", "replace")


_PARSERS: Mapping[str, Callable[[Scanner], Command]] = {
    **{
        verb: partial(_change_mailbox, verb=verb)
        for verb in ("CREATE", "DELETE", "RENAME", "SUBSCRIBE", "UNSUBSCRIBE")
    },
    "AUTHENTICATE": _authenticate,
    "LOGIN": _login,
    "ENABLE": _enable,
    "ID": _identify,
    "SELECT": partial(_select, is_examine=False),
    "EXAMINE": partial(_select, is_examine=True),
    "LIST": _list,
    "LSUB": _lsub,
    "STATUS": _status,
    "APPEND": _append,
    "UID EXPUNGE": lambda scanner: Expunge(scanner.sequence_set(), is_uid=True),
    "SEARCH": partial(_search, is_uid=False),
    "UID SEARCH": partial(_search, is_uid=True),
    "FETCH": partial(_fetch, is_uid=False),
    "UID FETCH": partial(_fetch, is_uid=True),
    "STORE": partial(_store, is_uid=False),
    "UID STORE": partial(_store, is_uid=True),
    "COPY": partial(_copy, is_move=False, is_uid=False),
    "UID COPY": partial(_copy, is_move=False, is_uid=True),
    "MOVE": partial(_copy, is_move=True, is_uid=False),
    "UID MOVE": partial(_copy, is_move=True, is_uid=True),
}
"""Parsers of what follows a verb and a space."""

COMMANDS = (*_WITHOUT_ARGUMENTS, *_PARSERS)
"""The names of all commands."""

"""The parser of IMAP commands: what it accepts, what it rejects, and any bytes."""

import random
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from mailcheck.core import conditions
from mailcheck.core.conditions import Term
from mailcheck.imap.commands import (
    AllOf,
    AnyOf,
    Append,
    Fetch,
    HasFlag,
    InSet,
    Invalid,
    ListMailboxes,
    Login,
    Not,
    Search,
    Section,
    Store,
    Tagged,
)
from mailcheck.imap.mailbox_names import NamePattern, decode_name, encode_name
from mailcheck.imap.parsing import parse_command
from mailcheck.imap.writing import write_set
from mailcheck.store.mailbox_store import Marking
from tests.house import House
from tests.imap.imap_talk import Talk, make_factory
from tests.table import rows

DAY = 86_400_000


def parsed(line: bytes, *literals_and_lines: bytes) -> object:
    """Return the command of a line, with literals and the lines behind them in turn."""
    lines = [b"a " + line, *literals_and_lines[1::2]]
    found = parse_command(lines, literals_and_lines[::2])
    assert isinstance(found, Tagged), found
    assert found.tag == b"a"
    return found.command


def test_strings() -> None:
    """A string is a word, quoted, or a literal of any octets."""
    assert parsed(b"login ann s]cret") == Login(b"ann", b"s]cret")
    assert parsed(rb'LOGIN "a \"b\\" ""') == Login(b'a "b\\', b"")
    assert parsed(b"LOGIN {3}", b"\r\n\0", b" {1+}", b"x", b"") == Login(b"\r\n\0", b"x")


def test_search_keys() -> None:
    """Keys are combined with AND, OR and NOT (RFC 9051 6.4.4)."""
    command = parsed(b'SEARCH OR FROM a (UNSEEN NOT SUBJECT "b c") LARGER 10 2:*')
    assert isinstance(command, Search)
    first = AnyOf(
        (
            Term(conditions.FROM, "a"),
            AllOf((Not(HasFlag("\\Seen")), Not(Term(conditions.WITH_SUBJECT, "b c")))),
        )
    )
    larger = Term(conditions.LARGER, 10)
    assert command.key == AllOf((first, larger, InSet(((2, None),), is_uid=False)))
    assert command.wanted is None
    command = parsed(b"UID SEARCH RETURN () CHARSET utf-8 HEADER X-A {2}", "ü".encode(), b"")
    header = Term(conditions.WITH_HEADER, ("X-A", "ü"))
    assert command == Search(header, frozenset({"ALL"}), is_uid=True)
    day = 1_795_651_200_000
    since, behind = (Term(conditions.SINCE, moment) for moment in (day, day + DAY))
    assert parsed(b"SEARCH SINCE 26-Nov-2026") == Search(since, None, is_uid=False)
    on = AllOf((since, Not(behind)))
    assert parsed(b'SEARCH ON "26-NOV-2026"') == Search(on, None, is_uid=False)


def test_fetch_items() -> None:
    """Sections, parts, fields and partial ranges are read, and equal ones are merged."""
    command = parsed(b"FETCH 1,3:5 (FLAGS BODY.PEEK[1.2.HEADER.FIELDS (To cc)]<5.10> body[])")
    assert isinstance(command, Fetch)
    assert (command.numbers, command.attributes) == (((1, 1), (3, 5)), ("FLAGS",))
    fields = Section(
        "BODY",
        b"BODY[1.2.HEADER.FIELDS (To cc)]<5>",
        (1, 2),
        "HEADER.FIELDS",
        frozenset({"to", "cc"}),
        (5, 10),
        is_peek=True,
    )
    assert command.sections == (fields, Section("BODY", b"BODY[]"))
    command = parsed(b"UID FETCH $ FULL (CHANGEDSINCE 7)")
    assert isinstance(command, Fetch)
    assert command.attributes[0] == "UID"
    assert "MODSEQ" in command.attributes
    assert (command.numbers, command.changed_since) == (None, 7)


def test_store_and_append() -> None:
    """Flags of the system have their own spelling, keywords that of the client."""
    assert parsed(rb"STORE 1 (UNCHANGEDSINCE 3) -FLAGS.SILENT (\SEEN a)") == Store(
        ((1, 1),), Marking.REMOVE, frozenset({"\\Seen", "a"}), True, 3, False
    )
    assert parsed(b"APPEND x (a) {3}", b"abc", b"") == Append(b"x", frozenset({"a"}), b"abc")
    assert parsed(b"APPEND x UTF8 (~{3+}", b"a\0c", b")") == Append(b"x", frozenset(), b"a\0c")


def test_list_options() -> None:
    """LIST has selection and return options, and several patterns (RFC 5258)."""
    assert parsed(b'LIST (SUBSCRIBED) "" (% a*) RETURN (STATUS (MESSAGES) CHILDREN)') == (
        ListMailboxes(
            b"",
            (b"%", b"a*"),
            frozenset({"SUBSCRIBED"}),
            frozenset({"STATUS", "CHILDREN"}),
            ("MESSAGES",),
        )
    )


@rows(
    (b"", "a tag is missing"),
    (b"a", "' ' is missing"),
    (b"a FROB", "FROB is not a command"),
    (b"a NOOP x", "unexpected ' x'"),
    (b"a LOGIN x", "' ' is missing"),
    (b'a LOGIN x "y', "a string is missing"),
    (b"a FETCH 0 FLAGS", "0 is not a number"),
    (b"a FETCH 1 FROB", "FROB is not an item"),
    (b"a FETCH 1 BODY[0]", "counted from 1"),
    (b"a FETCH 1 BODY[MIME]", "MIME is not a section here"),
    (b"a FETCH 1 BODY[]<0.0>", "at least one octet"),
    (b"a SEARCH SINCE 31-Foo-2026", "form 26-Nov-2026"),
    (b"a SEARCH SINCE 1-Jan-0000", "form 26-Nov-2026"),
    (b"a SEARCH FROB", "FROB is not a search key"),
    (b"a SEARCH " + b"(" * 30, "at most"),
    (b"a SEARCH " + b"NOT " * 30 + b"ALL", "at most"),
    (b"a SEARCH" + b" ALL" * 300, "at most"),
    (b"a STORE 1 FLAGS (\\Frob)", "cannot be set"),
    (b"a STORE 1 FROBS (x)", "FROBS is not an item"),
    (b"a STATUS x (FROB)", "FROB is not an item"),
    (b"a FETCH 99999999999 FLAGS", "99999999999 is not a number"),
)
def test_invalid_commands(line: bytes, problem: str) -> None:
    """The text of BAD names the problem."""
    found = parse_command([line])
    assert isinstance(found, Invalid)
    assert problem in found.problem


WORDS = [
    *(b"a1", b"UID", b"FETCH", b"SEARCH", b"STORE", b"LIST", b"APPEND", b"LOGIN", b"SELECT"),
    *(b"BODY[", b"]", b"HEADER.FIELDS", b"(", b")", b"<0.1>", b'"', b"\\", b"NIL", b"$", b"*"),
    *(b"1:*", b"4294967296", b"OR", b"NOT", b"FLAGS", b"\\Seen", b"RETURN", b"STATUS", b"{3}"),
    *(b"SINCE", b"1-Jan-2026", b"UTF8", b"~{1+}", b" ", b"  ", b"", b"\xff", b"&-", b"%"),
]


@given(st.lists(st.sampled_from(WORDS) | st.binary(max_size=8), max_size=12), st.data())
def test_any_command_is_parsed_or_rejected(words: list[bytes], data: st.DataObject) -> None:
    """The parser never raises, for any lines and literals."""
    line = b" ".join(words).replace(b"\r", b"").replace(b"\n", b"")
    literals = data.draw(st.lists(st.binary(max_size=5), max_size=3))
    lines = [line, *data.draw(st.lists(st.binary(max_size=9), min_size=3, max_size=3))]
    parse_command(lines[: len(literals) + 1], literals)


COMMANDS = [
    b"CREATE Tags/evil\r\n",
    b"z LOGOUT\r\n",
    b"\r\nz APPEND INBOX {1+}\r\nx\r\n",
    b"z NOOP",
]
"""Texts in literals that would have an effect or a response if they were run as commands."""


@given(
    st.lists(st.sampled_from(COMMANDS), min_size=1, max_size=3),
    st.lists(st.integers(1, 400), max_size=6),
    st.booleans(),
)
def test_literals_are_never_commands(texts: list[bytes], cuts: list[int], is_valid: bool) -> None:
    """Wherever the packets are cut, a literal is not run, even in a command that is not valid."""
    literals = b" ".join(b"{%d+}\r\n%s" % (len(text), text) for text in texts)
    verb = b"SEARCH SUBJECT " if is_valid else b"FROB "
    stream = b"t1 " + verb + literals + b"\r\nt2 NOOP\r\n"
    talk = Talk(LOGGED_IN.house, factory=LOGGED_IN.factory)
    talk.log_in(LOGGED_IN.house.key)
    edges = sorted({0, len(stream), *(cut % len(stream) for cut in cuts)})
    pieces = [stream[first:end] for first, end in pairwise(edges)]
    answered = [line.split()[0] for line in talk.send(*pieces).split(b"\r\n")[:-1]]
    assert answered == [b"t1", b"t2"], "each command has its response, and no other line has one"
    assert not talk.is_closing


class _LoggedIn:
    """One application for all examples."""

    def __init__(self) -> None:
        self._house: House | None = None

    @property
    def house(self) -> House:
        """The application."""
        if self._house is None:
            from tests.house import config_in_memory

            self._house = House(config_in_memory())
            self.factory = make_factory(self._house)
        return self._house


LOGGED_IN = _LoggedIn()


@given(st.binary(max_size=200), st.lists(st.integers(1, 200), max_size=4))
def test_any_bytes(data: bytes, cuts: list[int]) -> None:
    """Any bytes get responses or end the connection; no exception is logged."""
    talk = Talk(LOGGED_IN.house, factory=LOGGED_IN.factory)
    edges = sorted({0, len(data), *(cut % (len(data) + 1) for cut in cuts)})
    for first, end in pairwise(edges):
        if not talk.is_closing:
            talk.send(data[first:end])


def test_a_long_line_ends_the_connection(house: House) -> None:
    """Input after a line that is too long is not read: its end may announce a literal."""
    talk = Talk(house)
    sent = talk.send(b"a LOGIN " + b"x" * 70_000 + b"{9+}\r\n", b"b LOGOUT\r\n")
    assert sent == b"* BYE the line is too long\r\n"


# Names of mailboxes.


@rows(
    ("Tags/a&b", b"Tags/a&-b"),
    ("~peter/mail/台北/日本語", b"~peter/mail/&U,BTFw-/&ZeVnLIqe-"),
    ("\U0001f600", b"&2D3eAA-"),
)
def test_modified_utf_7(name: str, encoded: bytes) -> None:
    """Names are encoded as in RFC 3501 5.1.3, and decoded from that and from UTF-8."""
    assert encode_name(name) == encoded
    assert decode_name(encoded) == name
    assert decode_name(name.replace("&", "&-").encode()) == name


@given(st.text(max_size=30))
def test_names_survive(name: str) -> None:
    """Any name is the same after encoding and decoding."""
    assert decode_name(encode_name(name)) == name


@given(st.binary(max_size=30))
def test_any_name_is_decoded_or_not(octets: bytes) -> None:
    """Broken names are rejected without an exception."""
    decode_name(octets)


def simple_match(pattern: str, name: str) -> bool:
    """Return whether a name matches, by trying everything."""
    if not pattern:
        return not name
    if pattern[0] in "*%":
        ends = (
            range(len(name) + 1)
            if pattern[0] == "*"
            else range(len((name + "/").split("/")[0]) + 1)
        )
        return any(simple_match(pattern[1:], name[end:]) for end in ends)
    return bool(name) and name[0] == pattern[0] and simple_match(pattern[1:], name[1:])


@given(st.text("a/*%", max_size=7), st.text("a/", max_size=7))
def test_patterns(pattern: str, name: str) -> None:
    """``*`` stands for any text, ``%`` for any text without a separator."""
    assert NamePattern(pattern).matches(name) is simple_match(pattern, name)


def test_sets_are_short() -> None:
    """Increasing numbers are written as ranges."""
    assert write_set([1, 2, 3, 7, 9, 10]) == b"1:3,7,9:10"
    assert write_set([]) == b""
    numbers = sorted(random.Random(1).sample(range(1, 200), 100))
    ranges = [one.split(b":") for one in write_set(numbers).split(b",")]
    assert [n for one in ranges for n in range(int(one[0]), int(one[-1]) + 1)] == numbers

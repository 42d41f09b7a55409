r"""The same sequences of commands are sent to Dovecot and to a daemon, and have the same answers.

These differences are known, and are removed before the answers are compared:

* UIDs: a change of flags takes a position in our inbox, so ours have gaps. UIDs are replaced by the
  number of the mail in the order of arrival. UIDNEXT, UIDVALIDITY and mod-sequences are left out.
* ``\Recent`` and RECENT: they do not exist in IMAP4rev2 (RFC 9051 appendix E).
* Texts for people, and response codes that are only advice. READ-ONLY and READ-WRITE are compared.
* Keywords that a mailbox offers (FLAGS, PERMANENTFLAGS): Dovecot lists those of the past too.
* Flags that a command has not changed: Dovecot does not repeat them, our server may. FETCH FLAGS
  after each command compares them.
* STORE and EXPUNGE after EXAMINE: Dovecot says OK and does nothing, our server says NO [READ-ONLY].
* SELECT without a name: Dovecot closes the mailbox, although the command is BAD.
* STORE without a list of flags: Dovecot takes it for an empty list, our server says BAD.
* A part that does not exist: Dovecot sends an empty string, our server NIL.
* BODYSTRUCTURE: case of types and parameters, the default ``charset=us-ascii`` of a part without a
  Content-Type (RFC 2045 5.2), and NIL at the end of a list (RFC 9051 7.5.2).
* ENVELOPE: Dovecot writes the host of an address without a domain as ``MISSING_DOMAIN``.
* Order of the untagged responses of a command.
* POP3: texts for people, and the form of unique ids.
"""

import random
import re
import socket
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import pytest

from tests.interop.imap_answers import ImapClient, parse
from tests.servers.daemon import free_ports, running_daemon
from tests.servers.dovecot import PASSWORD, USER, running_dovecot

pytestmark = pytest.mark.end_to_end

CHANGES = re.compile(r"(UID )?(STORE|EXPUNGE)")

SEQUENCES = 500
COMMANDS = (4, 9)
"""Number of commands of a sequence, at least and at most."""

FEWEST = 5
"""Mails are added before a sequence if there are fewer."""

MAILS = [
    raw.strip("\n").replace("\n", "\r\n").encode() + b"\r\n"
    for raw in (
        """
From: Ann <ann@example.com>
To: bob@example.com
Subject: one
Date: Mon, 2 Nov 2026 10:00:00 +0000
Message-ID: <1@example.com>

hello
""",
        """
From: "Shop, Inc." <shop@example.com>
To: a@example.com, "B" <b@example.com>
Cc: c@example.com
Subject: =?utf-8?q?caf=C3=A9?=
Date: Tue, 3 Nov 2026 11:00:00 +0100
MIME-Version: 1.0
Content-Type: multipart/alternative; boundary=xx

preamble
--xx
Content-Type: text/plain; charset=utf-8

code 482913
--xx
Content-Type: text/html; charset=utf-8
Content-Transfer-Encoding: 7bit

<p>code 482913</p>
--xx--
""",
        """
From: list@example.org
Reply-To: owner@example.org
Sender: robot@example.org
To: bob@example.com
Subject: Report of the week
Date: Wed, 4 Nov 2026 12:00:00 -0500
In-Reply-To: <1@example.com>
MIME-Version: 1.0
Content-Type: multipart/mixed; boundary="b 1"

--b 1

see below
--b 1
Content-Type: application/pdf; name=a.pdf
Content-Transfer-Encoding: base64
Content-Disposition: attachment; filename=a.pdf

JVBERi0=
--b 1--
""",
        """
Subject: no sender

line one
line two
.
line four
""",
        """
From: f@example.com
To: g@example.com
Subject: forwarded
MIME-Version: 1.0
Content-Type: message/rfc822

From: inner@example.com
Subject: inside

inner
""",
    )
]
MAILS.append(b"From: x@example.com\r\nTo: y@example.com\r\nSubject:\r\n\r\n")

FLAGS = (r"\Seen", r"\Flagged", r"\Answered", r"\Deleted", r"\Draft", "$Label1", "Junk")

ITEMS = (
    "FLAGS",
    "RFC822.SIZE",
    "ENVELOPE",
    "BODYSTRUCTURE",
    "BODY",
    "BODY.PEEK[]",
    "BODY[]",
    "BODY.PEEK[HEADER]",
    "BODY.PEEK[TEXT]",
    "BODY[TEXT]<0.5>",
    "BODY.PEEK[]<3.20>",
    "BODY.PEEK[]<99999.5>",
    "BODY.PEEK[1]",
    "BODY.PEEK[1.MIME]",
    "BODY.PEEK[2]",
    "BODY.PEEK[HEADER.FIELDS (Subject FROM)]",
    "BODY.PEEK[HEADER.FIELDS.NOT (Subject)]",
    "RFC822.HEADER",
    "UID",
)

KEYS = (
    "ALL",
    "SEEN",
    "UNSEEN",
    "FLAGGED",
    "UNFLAGGED",
    "ANSWERED",
    "DELETED",
    "UNDELETED",
    "DRAFT",
    "KEYWORD $Label1",
    "UNKEYWORD Junk",
    "SUBJECT one",
    "SUBJECT report",
    "FROM shop",
    "TO bob",
    "CC c@example",
    'HEADER Reply-To ""',
    "HEADER Message-ID 1@",
    "BODY hello",
    "BODY 482913",
    "TEXT example.org",
    "LARGER 200",
    "SMALLER 200",
    "SENTSINCE 3-Nov-2026",
    "SENTBEFORE 4-Nov-2026",
    "SENTON 3-Nov-2026",
    "SINCE 1-Jan-2020",
    "BEFORE 1-Jan-2020",
    "1:3",
    "*",
    "NOT SEEN",
    "OR FLAGGED SUBJECT one",
    "(SEEN UNDELETED)",
    "NOT (SUBJECT one)",
)

INVALID = (
    "FETCH",
    "FETCH 1",
    "FETCH 1 (",
    "FETCH x FLAGS",
    "FETCH 1 NOSUCHITEM",
    "STORE 1 +FLAGS (",
    "SEARCH",
    "SEARCH NOSUCHKEY",
    "SEARCH SINCE yesterday",
    "FOO",
    "STATUS INBOX",
    "UID FOO 1",
)


class Side:
    """A server, and the mails that this test has put into its inbox."""

    def __init__(self, port: int, user: str, password: str) -> None:
        self._port, self._user, self._password = port, user, password
        self.client = ImapClient(port, user, password)
        self._names: dict[int, str] = {}
        self._count = 0
        self.is_selected = self.is_read_only = False

    def restart(self) -> None:
        """Begin a new session."""
        self.client.close()
        self.is_selected = self.is_read_only = False
        self.client = ImapClient(self._port, self._user, self._password)

    def clear(self) -> None:
        """Delete all mails."""
        for command in (b"SELECT INBOX", rb"STORE 1:* FLAGS.SILENT (\Deleted)", b"EXPUNGE"):
            self.client.send(command)

    def append(self, raw: bytes, flags: str) -> None:
        """Add a mail."""
        _, status, text = self.client.send(
            b"APPEND INBOX (%s) {%d}" % (flags.encode(), len(raw)), raw
        )
        assert status == b"OK", text
        uid = re.search(rb"APPENDUID \d+ (\d+)", text)
        assert uid is not None, text
        self._count += 1
        self._names[int(uid[1])] = f"mail {self._count}"

    def send(self, command: str) -> Any:
        """Send a command, with numbers of mails for UIDs; return the normalized answer."""
        uids = {name: uid for uid, name in self._names.items()}
        text = re.sub(
            r"<mail (\d+)>", lambda found: str(uids.get(f"mail {found[1]}", 4_000_000)), command
        )
        untagged, status, said = self.client.send(text.encode())
        answer = normalize(untagged, status, said, self._names, text)
        if self.is_read_only and CHANGES.match(text) and status != b"BAD":
            answer = "a change of a read-only mailbox"
        self._note_selection(text, status)
        return answer

    def flags(self) -> Any:
        """Return the flags of all mails, if a mailbox is selected."""
        return self.send("FETCH 1:* (UID FLAGS)") if self.is_selected else None

    def _note_selection(self, text: str, status: bytes) -> None:
        verb = text.upper().partition(" ")[0]
        if verb in ("SELECT", "EXAMINE") and status != b"BAD":
            self.is_selected, self.is_read_only = status == b"OK", verb == "EXAMINE"
        elif verb in ("CLOSE", "UNSELECT") and status == b"OK":
            self.is_selected = self.is_read_only = False

    def uids(self) -> list[str]:
        """Return the mails of the inbox, in order."""
        self.client.send(b"EXAMINE INBOX")
        untagged, _, _ = self.client.send(b"UID SEARCH ALL")
        numbers = parse(untagged[0])[2:]
        return [self._names[int(number)] for number in numbers]


def normalize(
    untagged: list[Any], status: bytes, said: bytes, names: dict[int, str], command: str
) -> Any:
    """Return the parts of an answer that servers must agree on."""
    found: list[Any] = []
    removed = 0
    is_uid = command.startswith("UID")
    wants_flags = "FETCH" in command and re.search(r"[ (]FLAGS", command) is not None
    for parts in untagged:
        words = parse(parts)
        kind = words[1] if len(words) > 1 else None
        if {b"OK", b"FLAGS", b"CAPABILITY", b"RECENT"}.intersection(map(_word, words[1:3])):
            continue
        if len(words) > 2 and words[2] == b"EXPUNGE":
            removed += 1
        elif len(words) > 2 and words[2] == b"FETCH":
            items = _items(words[3], names, wants_flags=wants_flags)
            if "FETCH" in command and items:
                found.append(["FETCH", words[1], items])
        elif kind == b"SEARCH":
            numbers = [int(one) for one in words[2:] if isinstance(one, bytes) and one.isdigit()]
            found.append(["SEARCH", [names[one] for one in numbers] if is_uid else numbers])
        elif kind == b"LIST":
            found.append(["LIST", words[2:-1], str(words[-1]).strip("b'")])
        elif kind == b"STATUS":
            pairs = dict(zip(words[3][::2], words[3][1::2], strict=True))
            kept = {
                k: v for k, v in pairs.items() if k in (b"MESSAGES", b"UNSEEN", b"DELETED", b"SIZE")
            }
            found.append(["STATUS", sorted(kept.items())])
        else:
            found.append(words[1:])
    if removed:
        found.append(["EXPUNGE", removed])
    code = re.match(rb"\[(READ-ONLY|READ-WRITE)\]", said)
    return [status, code and code[1], sorted(found, key=repr)]


def _word(value: Any) -> bytes:
    return value if isinstance(value, bytes) else b""


def _items(items: list[Any], names: dict[int, str], *, wants_flags: bool) -> list[Any]:
    pairs = dict(zip(items[::2], items[1::2], strict=True))
    shown: list[Any] = []
    for name, value in pairs.items():
        if name == b"UID":
            value = names[int(value)]
        elif name == b"FLAGS":
            value = sorted(one for one in value if one != rb"\RECENT")
        elif name in (b"BODYSTRUCTURE", b"BODY"):
            value = _structure(value)
        elif name == b"ENVELOPE":
            value = _envelope(value)
        elif name.startswith(b"BODY["):
            value = value or ""
        if name == b"MODSEQ" or (name == b"FLAGS" and not wants_flags):
            continue
        shown.append([name, value])
    return sorted(shown, key=repr)


def _structure(value: Any) -> Any:
    """Return a structure in upper case, without defaults and without `None` at the end of lists."""
    if isinstance(value, str):
        return value.upper()
    if isinstance(value, bytes):
        return value.decode().upper()
    if not isinstance(value, list):
        return value
    parts = [_structure(one) for one in value]
    parts = [None if one == ["CHARSET", "US-ASCII"] else one for one in parts]
    while parts and parts[-1] is None:
        parts.pop()
    return parts


def _envelope(value: list[Any]) -> list[Any]:
    return [
        [[None if part == "MISSING_DOMAIN" else part for part in one] for one in field]
        if isinstance(field, list)
        else field
        for field in value
    ]


def sequences(random_: random.Random, mails: list[str]) -> list[str]:
    """Return the commands of a sequence."""
    count = len(mails)

    def numbers() -> str:
        first, last = sorted(random_.choices(range(1, count + 1), k=2))
        return random_.choice(
            [
                str(first),
                f"{first}:{last}",
                f"{last}:{first}",
                f"{first}:*",
                "1:*",
                f"{first},{last}",
            ]
        )

    def uids() -> str:
        first, last = sorted(random_.choices(range(count), k=2))
        shown = [
            f"<{mails[first]}>",
            f"<{mails[first]}>:<{mails[last]}>",
            f"<{mails[first]}>,<{mails[last]}>",
            "1:*",
        ]
        return random_.choice(shown)

    def fetch(prefix: str, who: str) -> str:
        items = random_.sample(ITEMS, random_.randint(1, 3))
        return f"{prefix}FETCH {who} ({' '.join(items)})"

    def store(prefix: str, who: str) -> str:
        sign, silent = random_.choice(["+", "-", ""]), random_.choice(["", ".SILENT"])
        flags = " ".join(random_.sample(FLAGS, random_.randint(0, 3)))
        return f"{prefix}STORE {who} {sign}FLAGS{silent} ({flags})"

    def search(prefix: str) -> str:
        return f"{prefix}SEARCH {' '.join(random_.sample(KEYS, random_.randint(1, 3)))}"

    def one() -> str:
        return random_.choices(
            [
                fetch("", numbers()),
                fetch("UID ", uids()),
                store("", numbers()),
                store("UID ", uids()),
                search(""),
                search("UID "),
                "NOOP",
                "CHECK",
                "STATUS INBOX (MESSAGES UNSEEN)",
                "EXPUNGE",
                random_.choice(INVALID),
                random_.choice(
                    ["SELECT INBOX", "EXAMINE INBOX", "SELECT inbox", "SELECT NoSuchBox"]
                ),
                random_.choice(["CLOSE", "UNSELECT"]),
                f"UID EXPUNGE {uids()}",
                random_.choice(
                    ['LIST "" INBOX', 'LIST "" ""', "FETCH 99 FLAGS", "UID FETCH 4000000 FLAGS"]
                ),
            ],
            [6, 5, 4, 4, 8, 4, 1, 1, 1, 1, 2, 1, 0.5, 1, 1],
        )[0]

    begin = random_.choice(["SELECT INBOX", "SELECT INBOX", "EXAMINE INBOX"])
    return [begin, *(one() for _ in range(random_.randint(*COMMANDS)))]


class Servers(NamedTuple):
    """A session of IMAP with each server, and their ports of POP3."""

    sides: tuple[Side, Side]
    dovecot_pop3: int
    our_pop3: int
    key: str


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Servers]:
    """Dovecot and a daemon, each with an empty inbox."""
    imap, pop3 = free_ports(2)
    listen = {"imap_listen": f"127.0.0.1:{imap}", "pop3_listen": f"127.0.0.1:{pop3}"}
    with (
        running_dovecot() as dovecot,
        running_daemon(tmp_path_factory.mktemp("imap"), **listen) as daemon,
    ):
        sides = Side(dovecot.imap, USER, PASSWORD), Side(imap, "any", daemon.key)
        yield Servers(sides, dovecot.pop3, pop3, daemon.key)
        for side in sides:
            side.client.close()


def fill(sides: Sequence[Side], random_: random.Random, flags: Sequence[str]) -> list[str]:
    """Add mails to both inboxes if there are only a few; return the mails, which must be equal."""
    while True:
        theirs, ours = (side.uids() for side in sides)
        assert theirs == ours
        if len(ours) >= FEWEST:
            return ours
        raw = random_.choice(MAILS)
        chosen = " ".join(random_.sample(flags, random_.randint(0, len(flags))))
        for side in sides:
            side.append(raw, chosen)


@pytest.mark.timeout(600)
def test_answers_are_those_of_dovecot(servers: Servers) -> None:
    """Random sequences of commands have the same answers on both servers."""
    sides, random_ = servers.sides, random.Random(45)
    different: list[str] = []
    for side in sides:
        side.restart()
        side.clear()
    for number in range(SEQUENCES):
        mails = fill(sides, random_, FLAGS[:3])
        done: list[str] = []
        for command in sequences(random_, mails):
            done.append(command)
            theirs, ours = ((side.send(command), side.flags()) for side in sides)
            if theirs != ours:
                different.append(
                    f"{number}: {' | '.join(done)}\n  dovecot   {theirs}\n  mailcheck {ours}"
                )
                for side in sides:
                    side.clear()
                break
        for side in sides:
            side.restart()
    assert not different, f"{len(different)} differences:\n" + "\n".join(different[:40])


# POP3.

POP3_SEQUENCES = 150
MULTI_LINE = re.compile(r"(LIST|UIDL)$|(RETR|TOP) ", re.IGNORECASE)
POP3_INVALID = (
    "RETR",
    "RETR 0",
    "RETR x",
    "LIST 99",
    "DELE 99",
    "TOP 1",
    "TOP x 1",
    "FOO",
    "PASS x",
)


class Pop3Side:
    """A session of POP3."""

    def __init__(self, port: int, user: str, password: str) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=30)
        self._file = self._socket.makefile("rb")
        self._file.readline()
        for command in (f"USER {user}", f"PASS {password}"):
            assert self.send(command)[0] == b"+OK"

    def send(self, command: str) -> list[Any]:
        """Send a command; return the status, and what servers must agree on."""
        self._socket.sendall(command.encode() + b"\r\n")
        status, _, text = self._file.readline().rstrip().partition(b" ")
        if status == b"+OK" and MULTI_LINE.match(command):
            lines = []
            while (line := self._file.readline()) != b".\r\n":
                lines.append(line.split()[0] if command == "UIDL" else line)
            return [status, *lines]
        if status == b"+OK" and command.startswith(("STAT", "LIST")):
            return [status, text]
        return [status]

    def close(self) -> None:
        """Close the connection without QUIT."""
        self._file.close()
        self._socket.close()


def pop3_sequence(random_: random.Random, count: int) -> list[str]:
    """Return the commands of a session with some messages."""
    commands = []
    for _ in range(random_.randint(*COMMANDS)):
        number = random_.randint(1, count)
        choices = [
            "STAT",
            "LIST",
            f"LIST {number}",
            "UIDL",
            f"RETR {number}",
            f"retr {number}",
            f"TOP {number} {random_.randint(0, 5)}",
            f"DELE {number}",
            "RSET",
            "NOOP",
            random_.choice(POP3_INVALID),
        ]
        commands.append(random_.choices(choices, [2, 2, 2, 2, 3, 1, 4, 3, 1, 1, 2])[0])
    return [*commands, *random_.choice([["QUIT"], ["QUIT"], []])]


def test_pop3_sessions_are_those_of_dovecot(servers: Servers) -> None:
    """Random sessions of POP3 have the same answers, and leave the same mails."""
    sides, random_ = servers.sides, random.Random(1_939)
    different: list[str] = []
    for side in sides:
        side.restart()
        side.clear()
    for number in range(POP3_SEQUENCES):
        mails = fill(sides, random_, ())
        sessions = [
            Pop3Side(servers.dovecot_pop3, USER, PASSWORD),
            Pop3Side(servers.our_pop3, "any", servers.key),
        ]
        done: list[str] = []
        for command in pop3_sequence(random_, len(mails)):
            done.append(command)
            theirs, ours = (session.send(command) for session in sessions)
            if theirs != ours:
                different.append(
                    f"{number}: {' | '.join(done)}\n  dovecot   {theirs}\n  mailcheck {ours}"
                )
        for session in sessions:
            session.close()
        for side in sides:
            side.restart()
    assert not different, f"{len(different)} differences:\n" + "\n".join(different[:40])

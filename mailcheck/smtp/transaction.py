"""One mail on its way in: its bytes, its envelope, and what was said on its connection.

The bytes come by DATA or BDAT; they are read here without any I/O. A reader is fed what
arrives, in pieces of any size. It says how far its part goes; what lies behind belongs to
the next command. Only CR LF . CR LF ends a DATA (RFC 5321 4.1.1.4): servers that also took
a bare CR or LF for a line end could be told a second mail inside the first.
"""

import re
from collections.abc import Collection
from enum import Enum

from mailcheck.core.client_limits import largest_holder
from mailcheck.core.messages import Envelope, Recipient, Session

CRLF = b"\r\n"
LINE_WITH_DOT = b"\r\n."
FINAL_DOT = b"\r\n.\r\n"
_OVERLAP = len(FINAL_DOT) - 1


class _HeldOfClient:
    """What is held of one client: his messages, the oldest first."""

    __slots__ = ("messages", "size")

    def __init__(self) -> None:
        self.messages: dict[MessageBuffer, None] = {}
        self.size = 0


class MemoryBudget:
    """What all messages on their way in together may hold, in octets.

    When it is overdrawn, the client that holds most loses the newest of his messages: one who
    sends many at once gets the first of them through.
    """

    __slots__ = ("_clients", "limit", "used")

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.used = 0
        self._clients: dict[str, _HeldOfClient] = {}

    def take(self, message: "MessageBuffer", octets: int) -> None:
        """Count what a message has got more; some may be crowded out by it, itself too."""
        self.used += octets
        client = self._clients.get(message.client)
        if client is None:
            client = self._clients[message.client] = _HeldOfClient()
        client.messages[message] = None
        client.size += octets
        while self.used > self.limit:
            next(reversed(largest_holder(self._clients.values()).messages)).evict()

    def give_back(self, message: "MessageBuffer", octets: int) -> None:
        """Count that nothing is kept any more of a message that something was kept of."""
        client = self._clients[message.client]
        self.used -= octets
        client.size -= octets
        del client.messages[message]
        if not client.messages:
            del self._clients[message.client]


class LineEnds(Enum):
    """How the lines of a message end."""

    CRLF = "each with CRLF"
    LONE_LF = "some with an LF that stands alone"
    STRAY = "there is a CR that stands alone, or a NUL"


class MessageBuffer:
    """Keeps the bytes of one message for as long as it may still be accepted.

    ``size`` counts all of them, kept or not; ``client`` is whom they are held for.
    """

    __slots__ = (
        "_budget",
        "_counted",
        "_ends_with_cr",
        "_has_nul",
        "_kept",
        "_line_feeds",
        "_max_size",
        "_pairs",
        "_returns",
        "client",
        "is_evicted",
        "size",
    )

    def __init__(self, max_size: int, budget: MemoryBudget, client: str) -> None:
        self._max_size = max_size
        self._budget = budget
        self._counted = 0
        self._kept: bytes | bytearray = b""
        self._line_feeds = 0
        self._returns = 0
        self._pairs = 0
        self._has_nul = False
        self._ends_with_cr = False
        self.client = client
        self.is_evicted = False
        self.size = 0

    def add(self, block: bytes) -> None:
        """Take in the next bytes (not none), or drop all once there are too many."""
        self.size += len(block)
        if self.is_evicted:
            return
        if self.size > self._max_size:
            self.discard()
            return
        # Counted as it comes: at the end of 25 MiB it would hold everyone up.
        self._pairs += block.count(CRLF) + (self._ends_with_cr and block.startswith(b"\n"))
        self._line_feeds += block.count(b"\n")
        self._returns += block.count(b"\r")
        self._has_nul = self._has_nul or b"\0" in block
        self._ends_with_cr = block.endswith(b"\r")
        if not self._kept:
            self._kept = block
        elif isinstance(self._kept, bytearray):
            self._kept += block
        else:
            # Grows in place: a list of pieces would cost an attacker's
            # one-byte packets forty bytes each.
            self._kept = bytearray(self._kept)
            self._kept += block

    def hold(self) -> None:
        """Count against the budget what is kept until more comes.

        Most mails come whole: they are taken out again before anything else happens.
        """
        more = len(self._kept) - self._counted
        if more:
            self._counted += more
            self._budget.take(self, more)

    def evict(self) -> None:
        """Make room for others."""
        self.is_evicted = True
        self.discard()

    def discard(self) -> None:
        """Let go of what was kept."""
        self._kept = b""
        if self._counted:
            self._budget.give_back(self, self._counted)
            self._counted = 0

    @property
    def is_too_large(self) -> bool:
        """Tell whether there were more bytes than allowed: they are not kept any more."""
        return self.size > self._max_size

    @property
    def line_ends(self) -> LineEnds:
        """Say how its lines end (RFC 5321 2.3.8, 4.1.1.4): each CRLF has a CR and an LF."""
        if self._has_nul or self._returns != self._pairs:
            return LineEnds.STRAY
        return LineEnds.CRLF if self._line_feeds == self._pairs else LineEnds.LONE_LF

    def take(self) -> bytes:
        """Give the whole message, byte for byte, and let go of it."""
        raw_message = bytes(self._kept)
        self.discard()
        return raw_message


_STUFFED_AFTER_LF = re.compile(rb"(?<!\r)\n\.\.")


def undo_dots_after_lf(raw_message: bytes) -> bytes:
    """Undo the dots that a client has doubled in lines that it ends with LF alone.

    Python's ``smtplib`` takes any LF for the end of a line there, and sends it as it is.
    """
    if b"\n.." not in raw_message:
        return raw_message
    return _STUFFED_AFTER_LF.sub(b"\n.", raw_message)


class DataReader:
    """Finds the final dot of a DATA and undoes the dot-stuffing (RFC 5321 4.5.2)."""

    __slots__ = ("_is_first", "_is_line_start", "_message", "_tail")

    def __init__(self, message: MessageBuffer) -> None:
        self._message = message
        # The CRLF of the DATA line stands before the first line: a dot that
        # comes first may be the final one already.
        self._tail = CRLF
        self._is_first = True
        self._is_line_start = False

    def feed(self, data: bytes, start: int) -> int | None:
        """Take in ``data`` from ``start``; give the position behind the final dot, once seen."""
        tail = self._tail
        window = tail + (data[start:] if start else data)
        # A dot that begins a line is the final one, or one of those that were doubled.
        dot = window.find(LINE_WITH_DOT)
        end = window.find(FINAL_DOT, dot) if dot >= 0 else -1
        if end >= 0:
            self._keep(window[: end + len(CRLF)], has_dots=dot != end)
            return start + end + len(FINAL_DOT) - len(tail)
        cut = max(len(window) - _OVERLAP, 0)
        if window[cut - 1 : cut] == b"\r":
            cut -= 1  # so that no CRLF is torn apart
        if cut:
            self._keep(window[:cut], has_dots=dot >= 0)
            self._tail = window[cut:]
        else:
            self._tail = window
        self._message.hold()
        return None

    def _keep(self, block: bytes, *, has_dots: bool) -> None:
        ends_line = block.endswith(CRLF)
        if self._is_line_start and block.startswith(b"."):
            block = block[1:]
        if has_dots:
            block = block.replace(LINE_WITH_DOT, CRLF)
        if self._is_first:
            self._is_first = False
            block = block[len(CRLF) :]
        self._is_line_start = ends_line
        if block:
            self._message.add(block)


class ChunkReader:
    """Takes the counted octets of one BDAT chunk (RFC 3030 2)."""

    __slots__ = ("_message", "_missing")

    def __init__(self, size: int, message: MessageBuffer | None) -> None:
        """Read ``size`` octets into the message; without one they are dropped."""
        self._missing = size
        self._message = message

    def feed(self, data: bytes, start: int) -> int | None:
        """Take in ``data`` from ``start``; give the position behind the chunk, once complete."""
        end = min(len(data), start + self._missing)
        self._missing -= end - start
        if self._message is not None and end > start:
            self._message.add(data[start:end])
            self._message.hold()
        return None if self._missing else end


MAX_SIZE = 16_384
"""Octets kept of a connection: a mail with 100 recipients, the fewest that a server must take,
fits in; 5,000 connections of those who only talk hold 80 MB."""

LINE_OVERHEAD = 50
"""Octets that a line takes beside its own."""

CONCEALED = frozenset({b"AUTH", b"XCLIENT", b"XFORWARD"})
"""Commands whose arguments are secrets, or come from a host that speaks for the client."""

_INTRODUCTIONS = frozenset({b"EHLO", b"HELO", b"STARTTLS", b"AUTH"})
"""Commands that are part of what leads to a mail, whatever mails came before it."""

_SPECIAL = CONCEALED | _INTRODUCTIONS


class Transcript:
    """The lines of both sides: how the client introduced itself, and the mail it is sending.

    A report on the mail may need it. It is kept for every connection, because the recipients are
    not known beforehand: a line costs an append, and a transcript is made readable on demand.
    """

    __slots__ = ("_is_introduced", "_left", "_left_for_mail", "_mail_at", "kept")

    def __init__(self) -> None:
        self.kept: list[bytes] = []
        """The lines that were kept: replies end with CRLF, commands do not."""
        self._left = MAX_SIZE
        self._left_for_mail = MAX_SIZE
        self._mail_at = 0
        self._is_introduced = True

    def hear(self, verb: bytes, line: bytes) -> None:
        """Keep a command; ``verb`` in upper case, one that is known."""
        if verb in _SPECIAL:
            self._is_introduced = True
            if verb in CONCEALED:
                line = verb + b" ..."
        self._left -= len(line) + LINE_OVERHEAD
        if self._left >= 0:
            self.kept.append(line)

    def say(self, line: bytes) -> None:
        """Keep a reply, with its CRLF."""
        self._left -= len(line) + LINE_OVERHEAD
        if self._left >= 0:
            self.kept.append(line)

    def begin_mail(self) -> None:
        """Forget the mails before the one that begins with the command just heard.

        They may be of other people; how the client has introduced itself stays.
        """
        lines = self.kept
        # It is not there when too much was said before.
        mail = lines[-1] if self._left >= 0 else b"MAIL ..."
        if self._is_introduced:
            self._is_introduced = False
            lines[:] = _introduction(lines)  # without the command, which is no part of that
            self._left_for_mail = MAX_SIZE - sum(len(line) + LINE_OVERHEAD for line in lines)
            while self._left_for_mail < MAX_SIZE // 2:
                self._left_for_mail += len(lines.pop(0)) + LINE_OVERHEAD
        else:
            del lines[self._mail_at :]
        self._mail_at = len(lines)
        lines.append(mail)
        self._left = self._left_for_mail - len(mail) - LINE_OVERHEAD

    def lines(self, addresses: Collection[bytes]) -> tuple[str, ...]:
        """Give the conversation as ``C: ...`` and ``S: ...``.

        ``addresses`` are in lower case and angle brackets. Recipients other
        than these are left out, with the replies to them: who gets a report
        is not told who else got the mail.
        """
        shown: list[str] = []
        for exchange in _exchanges(self.kept):
            command = exchange[0]
            if _verb(command) == b"RCPT" and not any(one in command.lower() for one in addresses):
                continue
            for line in exchange:
                side = "S" if line.endswith(CRLF) else "C"
                text = line.decode("utf-8", "replace")
                shown.extend(f"{side}: {part}" for part in text.rstrip("\r\n").split("\r\n"))
        if self._left < 0:
            shown.append("(the rest was not kept)")
        return tuple(shown)


def _introduction(lines: list[bytes]) -> list[bytes]:
    """Give what of the lines led to no mail: the greeting, and the client's introductions."""
    kept: list[bytes] = []
    for exchange in _exchanges(lines):
        verb = _verb(exchange[0])
        if verb == b"XCLIENT" and exchange[-1].startswith(b"220"):
            kept = exchange[1:]  # what came before was said by another client
        elif verb in _INTRODUCTIONS or exchange[0].endswith(CRLF):
            kept += exchange
    return kept


def _exchanges(lines: list[bytes]) -> list[list[bytes]]:
    """Put each command together with the replies to it."""
    exchanges: list[list[bytes]] = []
    for line in lines:
        if exchanges and line.endswith(CRLF):
            exchanges[-1].append(line)
        else:
            exchanges.append([line])
    return exchanges


def _verb(line: bytes) -> bytes:
    return line.partition(b" ")[0].upper()


class Stage(Enum):
    """How far a transaction has come. RSET, a new greeting or the final reply ends it."""

    ENVELOPE = "recipients are added; DATA or BDAT may follow"
    DATA = "everything up to the final dot is the message"
    CHUNKS = "a chunk has come, and only BDAT may follow"
    CHUNK_REFUSED = "the message is dropped, and further chunks are refused"


class Transaction:
    """Sender, accepted recipients, and the message as far as it has come.

    ``recipients`` has each once, in order, by its folded address. Except in the stage of the
    envelope, ``message`` is there; it must be complete at the ``deadline``.
    """

    __slots__ = (
        "deadline",
        "envelope_sender",
        "is_utf8",
        "message",
        "recipients",
        "session",
        "stage",
    )

    def __init__(self, session: Session, envelope_sender: str, *, is_utf8: bool) -> None:
        self.session = session
        self.envelope_sender = envelope_sender
        self.is_utf8 = is_utf8
        self.recipients: dict[tuple[str, str], Recipient] = {}
        self.message: MessageBuffer | None = None
        self.deadline = 0.0
        self.stage = Stage.ENVELOPE

    def envelope(self, transcript: Transcript) -> Envelope:
        """Freeze sender and recipients; with the transcript where it is for a test."""
        recipients = tuple(self.recipients.values())
        of_tests = [one.address.lower() for one in recipients if one.test_id is not None]
        if not of_tests:
            return Envelope(self.envelope_sender, recipients)
        lines = transcript.lines([f"<{address}>".encode() for address in of_tests])
        return Envelope(self.envelope_sender, recipients, lines)

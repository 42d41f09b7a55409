"""One mail transaction: its bytes, its envelope, and the transcript of its connection.

The bytes come by DATA or BDAT and are parsed here without I/O. A reader is fed pieces of any size
and returns where its part ends; the rest belongs to the next command.

Only CR LF . CR LF ends DATA (RFC 5321 4.1.1.4). Servers that also accept a bare CR or LF as the end
of a line can be tricked into seeing a second mail inside the first.
"""

import re
from collections.abc import Collection
from enum import Enum

from msgspec import Struct

from mailcheck.core.memory.client_limits import largest_holder
from mailcheck.core.messages import Envelope, Recipient, Session

CRLF = b"\r\n"
LINE_WITH_DOT = b"\r\n."
FINAL_DOT = b"\r\n.\r\n"
_OVERLAP = len(FINAL_DOT) - 1


class _ClientMessages:
    """The messages of one client, oldest first, and their size in octets."""

    __slots__ = ("messages", "size")

    def __init__(self) -> None:
        self.messages: dict[MessageBuffer, None] = {}
        self.size = 0


class MemoryBudget:
    """The memory that all incoming messages may use together, in octets.

    When it is exceeded, the newest message of the client that uses most is evicted. A client that
    sends many messages at once thus gets the first of them through.
    """

    __slots__ = ("_clients", "limit", "used")

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.used = 0
        self._clients: dict[str, _ClientMessages] = {}

    def charge(self, message: "MessageBuffer", octets: int) -> None:
        """Count new octets of a message. This may evict messages, including this one."""
        self.used += octets
        client = self._clients.get(message.client)
        if client is None:
            client = self._clients[message.client] = _ClientMessages()
        client.messages[message] = None
        client.size += octets
        while self.used > self.limit:
            next(reversed(largest_holder(self._clients.values()).messages)).evict()

    def release(self, message: "MessageBuffer", octets: int) -> None:
        """Release the octets of a message."""
        client = self._clients[message.client]
        self.used -= octets
        client.size -= octets
        del client.messages[message]
        if not client.messages:
            del self._clients[message.client]


class LineEnds(Enum):
    """The line endings of a message."""

    CRLF = "all lines end with CRLF"
    BARE_LF = "some lines end with a bare LF"
    INVALID = "the message contains a bare CR or a NUL"


class MessageBuffer:
    """Stores the bytes of one message as long as the message may be accepted.

    ``size`` counts all bytes, stored or not. ``client`` is the client that the budget charges.
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
        """Add the next bytes (at least one); discard everything if the message is too large."""
        self.size += len(block)
        if self.is_evicted:
            return
        if self.size > self._max_size:
            self.discard()
            return
        # Counted in pieces: at the end of 25 MiB it would block all other clients.
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
            # A bytearray grows in place. A list of pieces would take forty more bytes for each
            # one-byte packet of an attacker.
            self._kept = bytearray(self._kept)
            self._kept += block

    def hold(self) -> None:
        """Charge the stored bytes to the budget until more arrive.

        Most mails arrive whole, and are taken out before any other event.
        """
        more = len(self._kept) - self._counted
        if more:
            self._counted += more
            self._budget.charge(self, more)

    def evict(self) -> None:
        """Discard the message to make room for others."""
        self.is_evicted = True
        self.discard()

    def discard(self) -> None:
        """Discard the stored bytes."""
        self._kept = b""
        if self._counted:
            self._budget.release(self, self._counted)
            self._counted = 0

    @property
    def is_too_large(self) -> bool:
        """Whether the message exceeded the maximum size and was discarded."""
        return self.size > self._max_size

    @property
    def line_ends(self) -> LineEnds:
        """The line endings of the message (RFC 5321 2.3.8, 4.1.1.4); a CRLF has a CR and an LF."""
        if self._has_nul or self._returns != self._pairs:
            return LineEnds.INVALID
        return LineEnds.CRLF if self._line_feeds == self._pairs else LineEnds.BARE_LF

    def take(self) -> bytes:
        """Return the whole message byte for byte, and release it."""
        raw_message = bytes(self._kept)
        self.discard()
        return raw_message


_STUFFED_AFTER_LF = re.compile(rb"(?<!\r)\n\.\.")


def undo_dots_after_lf(raw_message: bytes) -> bytes:
    """Undo dot-stuffing in lines that end with a bare LF.

    Python's ``smtplib`` takes any LF for the end of a line there, and sends it unchanged.
    """
    if b"\n.." not in raw_message:
        return raw_message
    return _STUFFED_AFTER_LF.sub(b"\n.", raw_message)


class DataReader:
    """Finds the final dot of DATA and undoes the dot-stuffing (RFC 5321 4.5.2)."""

    __slots__ = ("_is_first", "_is_line_start", "_message", "_tail")

    def __init__(self, message: MessageBuffer) -> None:
        self._message = message
        # The CRLF of the DATA line comes before the first line, so a dot in the first line may
        # already be the final one.
        self._tail = CRLF
        self._is_first = True
        self._is_line_start = False

    def feed(self, data: bytes, start: int) -> int | None:
        """Read ``data`` from ``start``; return the position after the final dot, or `None`."""
        tail = self._tail
        window = tail + (data[start:] if start else data)
        # A dot at the start of a line is the final dot or a stuffed dot.
        dot = window.find(LINE_WITH_DOT)
        end = window.find(FINAL_DOT, dot) if dot >= 0 else -1
        if end >= 0:
            self._keep(window[: end + len(CRLF)], has_dots=dot != end)
            return start + end + len(FINAL_DOT) - len(tail)
        cut = max(len(window) - _OVERLAP, 0)
        if window[cut - 1 : cut] == b"\r":
            cut -= 1  # do not split a CRLF
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


class ChunkReader(Struct, eq=False):
    """Reads the octets of one BDAT chunk (RFC 3030 2) into ``message``, unless it is `None`.

    ``missing`` is the number of octets that have not arrived yet.
    """

    missing: int
    message: MessageBuffer | None

    def feed(self, data: bytes, start: int) -> int | None:
        """Read ``data`` from ``start``; return the position after the chunk, or `None`."""
        end = min(len(data), start + self.missing)
        self.missing -= end - start
        if self.message is not None and end > start:
            self.message.add(data[start:end])
            self.message.hold()
        return None if self.missing else end


MAX_SIZE = 16_384
"""Maximum number of octets stored for a connection. A mail with 100 recipients fits: a server must
accept at least that many. 5,000 connections without a mail take 80 MB."""

LINE_OVERHEAD = 50
"""Octets of memory that a line takes in addition to its text."""

CONCEALED = frozenset({b"AUTH", b"XCLIENT", b"XFORWARD"})
"""Commands whose arguments are secrets or come from a host that acts for the client."""

_INTRODUCTIONS = frozenset({b"EHLO", b"HELO", b"STARTTLS", b"AUTH"})
"""Commands that introduce the client, and so belong to the transcript of every mail."""

_SPECIAL = CONCEALED | _INTRODUCTIONS


class Transcript:
    """The lines of both sides: the introduction of the client, and the current mail.

    A report on the mail may need it. It is kept for every connection, because the recipients are
    not known beforehand. Recording a line costs an append; the text is formatted on demand.
    """

    __slots__ = ("_is_introduced", "_left", "_left_for_mail", "_mail_at", "kept")

    def __init__(self) -> None:
        self.kept: list[bytes] = []
        """The recorded lines. Replies end with CRLF, commands do not."""
        self._left = MAX_SIZE
        self._left_for_mail = MAX_SIZE
        self._mail_at = 0
        self._is_introduced = True

    def record_command(self, verb: bytes, line: bytes) -> None:
        """Record a command. ``verb`` is in upper case."""
        if verb in _SPECIAL:
            self._is_introduced = True
            if verb in CONCEALED:
                line = verb + b" ..."
        self._left -= len(line) + LINE_OVERHEAD
        if self._left >= 0:
            self.kept.append(line)

    def record_reply(self, line: bytes) -> None:
        """Record a reply, including its CRLF."""
        self._left -= len(line) + LINE_OVERHEAD
        if self._left >= 0:
            self.kept.append(line)

    def begin_mail(self) -> None:
        """Discard earlier mails; the command recorded last begins the new one.

        Earlier mails may belong to other accounts. The introduction of the client is kept.
        """
        lines = self.kept
        # The command is missing if the limit was reached before.
        mail = lines[-1] if self._left >= 0 else b"MAIL ..."
        if self._is_introduced:
            self._is_introduced = False
            lines[:] = _introduction(lines)  # without the command that begins the mail
            self._left_for_mail = MAX_SIZE - sum(len(line) + LINE_OVERHEAD for line in lines)
            while self._left_for_mail < MAX_SIZE // 2:
                self._left_for_mail += len(lines.pop(0)) + LINE_OVERHEAD
        else:
            del lines[self._mail_at :]
        self._mail_at = len(lines)
        lines.append(mail)
        self._left = self._left_for_mail - len(mail) - LINE_OVERHEAD

    def lines(self, addresses: Collection[bytes]) -> tuple[str, ...]:
        """Return the conversation as lines ``C: ...`` and ``S: ...``.

        ``addresses`` are in lower case and in angle brackets. Other recipients and the replies to
        them are left out, so that a report does not disclose who else received the mail.
        """
        shown: list[str] = []
        for exchange in _exchanges(self.kept):
            command = exchange[0]
            if _verb(command) == b"RCPT" and not any(
                address in command.lower() for address in addresses
            ):
                continue
            for line in exchange:
                side = "S" if line.endswith(CRLF) else "C"
                text = line.decode("utf-8", "replace")
                shown.extend(f"{side}: {part}" for part in text.rstrip("\r\n").split("\r\n"))
        if self._left < 0:
            shown.append("(the rest was not kept)")
        return tuple(shown)


def _introduction(lines: list[bytes]) -> list[bytes]:
    """Return the lines that belong to no mail: the greeting and the client's introductions."""
    kept: list[bytes] = []
    for exchange in _exchanges(lines):
        verb = _verb(exchange[0])
        if verb == b"XCLIENT" and exchange[-1].startswith(b"220"):
            kept = exchange[1:]  # earlier lines come from another client
        elif verb in _INTRODUCTIONS or exchange[0].endswith(CRLF):
            kept += exchange
    return kept


def _exchanges(lines: list[bytes]) -> list[list[bytes]]:
    """Group each command with its replies."""
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
    """The stage of a transaction. RSET, a new EHLO or the final reply ends the transaction."""

    ENVELOPE = "recipients are added; DATA or BDAT may follow"
    DATA = "everything up to the final dot is the message"
    CHUNKS = "a chunk has come, and only BDAT may follow"
    CHUNK_REFUSED = "the message is dropped, and further chunks are refused"


class Transaction:
    """The sender, the accepted recipients, and the message received so far.

    ``recipients`` are in order, by folded address. After the envelope stage, ``message`` is set and
    must be complete by the ``deadline``.
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
        """Return the envelope, with the transcript if a recipient is a test address."""
        recipients = tuple(self.recipients.values())
        of_tests = [
            recipient.address.lower() for recipient in recipients if recipient.test_id is not None
        ]
        if not of_tests:
            return Envelope(self.envelope_sender, recipients)
        lines = transcript.lines([f"<{address}>".encode() for address in of_tests])
        return Envelope(self.envelope_sender, recipients, lines)

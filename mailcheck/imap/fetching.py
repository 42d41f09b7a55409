"""FETCH: the attributes and sections of messages (RFC 9051 6.4.5 and 7.5.2)."""

import re
from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import Protocol

from msgspec import Struct

from mailcheck.checks.content.header.fields import split_header
from mailcheck.checks.content.mime_parts import Part, find_part, write_structure
from mailcheck.core.accounts import Caller
from mailcheck.core.cursors import Position
from mailcheck.core.errors import ExpectedFailure, MessageNotFound
from mailcheck.imap.commands import Fetch, Section
from mailcheck.imap.selected import Selected
from mailcheck.imap.writing import CRLF, literal, write_date_time, write_flags
from mailcheck.operations.inbox.mailboxes import SMALL, Mailboxes
from mailcheck.store.mailbox_store import SEEN, MailEntry, MailStructure, Marking

FACTS_AT_ONCE = 200
"""Messages of one read whose mails are not needed."""

MAILS_AT_ONCE = 25
"""Messages of one read whose mails are needed. Up to `SMALL` octets of each are read together."""

_DECODABLE = frozenset(
    {"", "7bit", "8bit", "binary", "base64", "quoted-printable", "x-uuencode", "uuencode"}
)


_BLANK_LINE = re.compile(rb"\n\r?\n")


class Client(Protocol):
    """The connection of a session."""

    client_ip: str

    def send(self, response: bytes) -> None:
        """Send a small response."""

    async def send_large(self, response: bytes) -> None:
        """Send a response of any size, no faster than the client reads."""

    def note_fetched(self) -> None:
        """Record that the client fetches a whole message."""


class BrokenResponse(Exception):
    """A response was sent in part, so the client cannot find the end of it."""


class UnknownEncoding(Exception):
    """A part cannot be decoded, since its transfer encoding is unknown (RFC 3516 4.3)."""


class _Message(Struct, frozen=True):
    """A message, as far as the command needs it; ``beginning`` are its first octets."""

    entry: MailEntry
    structure: MailStructure | None = None
    beginning: bytes = b""


class FetchMessages:
    """Runs one FETCH, a batch of messages at a time.

    One batch is in memory: the beginnings of a few mails, and one large mail.
    """

    def __init__(
        self,
        mailboxes: Mailboxes,
        caller: Caller,
        selected: Selected,
        fetch: Fetch,
        client: Client,
        *,
        with_mod_sequence: bool = False,
    ) -> None:
        """With ``with_mod_sequence``, a response about changed flags has the mod-sequence."""
        self._mailboxes = mailboxes
        self._caller = caller
        self._selected = selected
        self._fetch = fetch
        self._client = client
        self._send = client.send_large
        self._with_mod_sequence = with_mod_sequence
        self._unsent: list[bytes] = []
        self._unsent_size = 0
        self._flushed = 0
        names = fetch.attributes
        self._needs_structure = "ENVELOPE" in names or "BODYSTRUCTURE" in names
        self._needs_mail = "BODY" in names or not all(map(_is_slice, fetch.sections))
        self._marks_read = not selected.is_read_only and any(
            not section.is_peek and section.kind != "BINARY.SIZE" for section in fetch.sections
        )

    async def run(self, uids: Sequence[Position]) -> None:
        """Send the responses. Messages that were deleted are left out.

        :raises UnknownEncoding: a part cannot be decoded.
        """
        has_mails = self._needs_mail or self._fetch.sections
        size = MAILS_AT_ONCE if has_mails else FACTS_AT_ONCE
        has_whole = any(not section.part and not section.text for section in self._fetch.sections)
        for first in range(0, len(uids), size):
            messages = await self._read(uids[first : first + size])
            if has_mails:
                for message in messages:
                    await self._respond_whole(message)
                    if has_whole:
                        self._client.note_fetched()
                await self._flush()
            else:
                await self._send(b"".join(map(self._line, messages)))

    async def _respond_whole(self, message: _Message) -> None:
        """Respond about a message, or not at all if it was deleted or cannot be read.

        :raises BrokenResponse: a part of the response was sent before it failed.
        """
        complete, flushed = len(self._unsent), self._flushed
        try:
            await self._respond(message)
        except (ExpectedFailure, UnknownEncoding) as failure:
            if self._flushed != flushed:
                raise BrokenResponse from failure
            del self._unsent[complete:]
            if not isinstance(failure, MessageNotFound):
                await self._flush()
                raise

    def _line(self, message: _Message) -> bytes:
        """Return the whole response about a message, without sections."""
        number = self._selected.number_of(message.entry.position)
        if number is None:
            return b""
        return b"* %d FETCH (%s)\r\n" % (
            number,
            b" ".join(self._attributes(message, self._fetch.attributes)),
        )

    async def _add(self, piece: bytes) -> None:
        """Send a piece together with others, unless they are large."""
        self._unsent.append(piece)
        self._unsent_size += len(piece)
        if self._unsent_size >= SMALL:
            await self._flush()

    async def _flush(self) -> None:
        unsent, self._unsent, self._unsent_size = self._unsent, [], 0
        if unsent:
            self._flushed += 1
            await self._send(b"".join(unsent))

    async def _read(self, uids: Sequence[Position]) -> list[_Message]:
        messages: list[_Message] = []
        if self._needs_structure:
            found = await self._mailboxes.structured(self._caller, uids)
            messages = [_Message(entry, structure) for entry, structure in found]
        else:
            messages = [
                _Message(entry) for entry in await self._mailboxes.entries(self._caller, uids)
            ]
        since = self._fetch.changed_since
        if since is not None:
            messages = [message for message in messages if message.entry.marks.mod_sequence > since]
        if self._marks_read:
            messages = await self._mark_read(messages)
        if not self._needs_mail or not messages:
            return messages
        beginnings = await self._mailboxes.beginnings(
            [message.entry for message in messages], SMALL
        )
        return [
            _Message(message.entry, message.structure, beginnings[message.entry.delivery_id])
            for message in messages
            if message.entry.delivery_id in beginnings
        ]

    async def _mark_read(self, messages: list[_Message]) -> list[_Message]:
        unseen = [message.entry.position for message in messages if not message.entry.marks.is_read]
        if not unseen:
            return messages
        result = await self._mailboxes.mark(self._caller, unseen, Marking.ADD, frozenset({SEEN}))
        self._selected.note_own(result.marked)
        marked = {marks.position: marks for marks in result.marked}
        return [
            _Message(message.entry.with_marks(marked[message.entry.position]), message.structure)
            if message.entry.position in marked
            else message
            for message in messages
        ]

    async def _respond(self, message: _Message) -> None:
        entry = message.entry
        number = self._selected.number_of(entry.position)
        if number is None:
            return
        names = list(self._fetch.attributes)
        if self._marks_read:
            told = ("FLAGS", "MODSEQ") if self._with_mod_sequence else ("FLAGS",)
            names += [name for name in told if name not in names]  # RFC 7162 3.1.4
        attributes = list(self._attributes(message, names))
        response = _Response(self._add, number)
        if attributes:
            await response.add(b" ".join(attributes))
        await self._respond_sections(message, response)
        await response.end()

    def _attributes(self, message: _Message, names: Sequence[str]) -> Iterator[bytes]:
        entry, structure = message.entry, message.structure
        for name in names:
            if name == "FLAGS":
                yield b"FLAGS " + write_flags(entry.marks.all_flags)
            elif name == "UID":
                yield b"UID %d" % entry.position
            elif name == "INTERNALDATE":
                yield b"INTERNALDATE " + write_date_time(entry.received_at)
            elif name == "RFC822.SIZE":
                yield b"RFC822.SIZE %d" % entry.size
            elif name == "MODSEQ":
                yield b"MODSEQ (%d)" % entry.marks.mod_sequence
            elif structure is not None and name == "ENVELOPE":
                yield b"ENVELOPE " + structure.envelope
            elif structure is not None and name == "BODYSTRUCTURE":
                yield b"BODYSTRUCTURE " + structure.structure

    async def _respond_sections(self, message: _Message, response: "_Response") -> None:
        entry, beginning = message.entry, message.beginning
        rest: list[Section] = []
        for section in self._fetch.sections:
            if section.partial is not None and _is_slice(section):
                start, count = section.partial
                octets = b""
                if start < entry.size:
                    octets = await self._mailboxes.octets(entry, start, min(count, entry.size))
                await response.add(section.label + b" " + literal(octets))
            elif _is_header(section) and _has_header(beginning, entry):
                header = _header_of(beginning, section)
                await response.add(section.label + b" " + literal(header))
            else:
                rest.append(section)
        if not rest and "BODY" not in self._fetch.attributes:
            return
        if entry.size <= len(beginning):
            await self._respond_from(beginning, entry, rest, response)
        else:
            async with self._mailboxes.opened(entry) as raw_message:
                await self._respond_from(raw_message, entry, rest, response)
                await self._flush()

    async def _respond_from(
        self,
        raw_message: bytes,
        entry: MailEntry,
        sections: Sequence[Section],
        response: "_Response",
    ) -> None:
        if "BODY" in self._fetch.attributes:
            root = await self._mailboxes.parts(entry, raw_message)
            await response.add(b"BODY " + write_structure(raw_message, root, is_extended=False))
        for section in sections:
            value = await self._section(entry, raw_message, section)
            await response.add(section.label + b" ")
            await response.add_value(value)

    async def _section(self, entry: MailEntry, raw_message: bytes, section: Section) -> bytes:
        """Return the value of a section; NIL if the mail has no such part."""
        if section.kind.startswith("BINARY"):
            return await self._binary(entry, raw_message, section)
        if not section.part and section.text == "":
            return literal(_cut(raw_message, section))
        if not section.part and section.text.startswith("HEADER"):
            return literal(_header_of(raw_message, section))
        root = await self._mailboxes.parts(entry, raw_message)
        part = find_part(root, section.part)
        if part is None:
            return b"NIL"
        if section.text == "MIME":
            return literal(_cut(raw_message[slice(*part.header)], section))
        if section.text == "":
            return literal(_cut(raw_message[slice(*part.body)], section))
        # HEADER and TEXT belong to the whole mail, or to an attached one.
        mail = part.attached if section.part else root
        if mail is None:
            return b"NIL"
        if section.text == "TEXT":
            return literal(_cut(raw_message[slice(*mail.body)], section))
        return literal(_choose(raw_message[slice(*mail.header)], section))

    async def _binary(self, entry: MailEntry, raw_message: bytes, section: Section) -> bytes:
        """Return a part without its transfer encoding (RFC 9051 6.4.5.1), or its size."""
        body, encoding = raw_message, ""
        if section.part:
            part = find_part(await self._mailboxes.parts(entry, raw_message), section.part)
            if part is None:
                return b"NIL"
            body, encoding = raw_message[slice(*part.body)], _encoding_of(part)
        decoded = await self._mailboxes.decoded(entry, body, encoding)
        if section.kind == "BINARY.SIZE":
            return b"%d" % len(decoded)
        return literal(_cut(decoded, section), is_binary=b"\0" in decoded)


class _Response:
    """A FETCH response that is being sent, item by item."""

    def __init__(self, send: Callable[[bytes], Awaitable[None]], number: int) -> None:
        self._send = send
        self._start = b"* %d FETCH (" % number

    async def add(self, item: bytes) -> None:
        """Send an item, or its name if its value follows."""
        await self._send(self._start + item)
        self._start = b" "

    async def add_value(self, value: bytes) -> None:
        """Send the value of the last item."""
        await self._send(value)

    async def end(self) -> None:
        """End the response, if it has any item."""
        if self._start == b" ":
            await self._send(b")" + CRLF)


def _encoding_of(part: Part) -> str:
    if part.parts:
        return ""
    if part.encoding not in _DECODABLE:
        raise UnknownEncoding
    return part.encoding


def _is_slice(section: Section) -> bool:
    """Return whether a section is a range of octets of the whole mail."""
    is_whole = section.kind == "BODY" and not section.part and not section.text
    return is_whole and section.partial is not None


def _is_header(section: Section) -> bool:
    return not section.part and section.text.startswith("HEADER")


def _has_header(beginning: bytes, entry: MailEntry) -> bool:
    """Return whether the whole header is in the beginning of a mail."""
    if len(beginning) >= entry.size:
        return True
    return _BLANK_LINE.search(beginning) is not None


_LINE = re.compile(rb"[^\n]*\n|[^\n]+")


def _header_of(raw_message: bytes, section: Section) -> bytes:
    """Return the header of a mail, or some of its fields."""
    return _choose(
        raw_message[: split_header(raw_message, 0, len(raw_message)).body_start], section
    )


def _choose(header: bytes, section: Section) -> bytes:
    if section.text != "HEADER":
        is_negated = section.text == "HEADER.FIELDS.NOT"
        header = _choose_fields(header, section.fields, is_negated=is_negated)
    return _cut(header, section)


def _choose_fields(header: bytes, names: frozenset[str], *, is_negated: bool) -> bytes:
    """Return the fields with these names or the others, as they were received.

    A blank line follows them, even if there are none (RFC 9051 6.4.5.1).
    """
    chosen: list[bytes] = []
    is_chosen = False
    for match in _LINE.finditer(header):
        line = match[0]
        if line in (b"\r\n", b"\n"):
            break
        if line[:1] not in b" \t":
            name = line.partition(b":")[0].strip().decode("latin-1").lower()
            is_chosen = (name in names) != is_negated
        if is_chosen:
            chosen.append(line)
    return b"".join(chosen) + CRLF


def _cut(octets: bytes, section: Section) -> bytes:
    if section.partial is None:
        return octets
    start, count = section.partial
    return octets[start : start + count]

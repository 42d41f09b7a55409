"""What was said on a connection, for the reports on those mails that want it.

It is kept for every connection, since nobody knows beforehand where a mail
goes: a line costs an append, and only what is handed over is made readable.
"""

from collections.abc import Collection

CRLF = b"\r\n"

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
    """The lines of both sides: how the client introduced itself, and the mail it is sending."""

    __slots__ = ("_is_introduced", "_left", "_left_for_mail", "_lines", "_mail_at")

    def __init__(self) -> None:
        # Our replies end with CRLF, commands came without: that tells them apart.
        self._lines: list[bytes] = []
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
            self._lines.append(line)

    def say(self, line: bytes) -> None:
        """Keep a reply, with its CRLF."""
        self._left -= len(line) + LINE_OVERHEAD
        if self._left >= 0:
            self._lines.append(line)

    def begin_mail(self) -> None:
        """Forget the mails before the one that begins with the command just heard.

        They may be of other people; how the client has introduced itself stays.
        """
        lines = self._lines
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
        for exchange in _exchanges(self._lines):
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

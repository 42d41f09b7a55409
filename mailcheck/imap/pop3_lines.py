"""The lines of a mail in a multi-line response of POP3 (RFC 1939 3), without I/O."""

import re

_BARE_LF = re.compile(rb"(?<!\r)\n")


class MultiLine:
    """Turns the octets of a mail, in pieces, into a multi-line response.

    Lines end with CRLF, and a line that begins with a dot gets another one. A bare LF is the end of
    a line for most clients, so it is sent as CRLF; otherwise a dot after it would end the response.
    """

    def __init__(self) -> None:
        self._held = b""
        self._is_line_start = True

    def feed(self, piece: bytes) -> bytes:
        """Return the text for the next octets."""
        piece = self._held + piece
        self._held = b"\r" if piece.endswith(b"\r") else b""  # perhaps half of a CRLF
        piece = piece[: len(piece) - len(self._held)]
        if not piece:
            return b""
        text = _BARE_LF.sub(b"\r\n", piece).replace(b"\n.", b"\n..")
        if self._is_line_start and text.startswith(b"."):
            text = b"." + text
        self._is_line_start = text.endswith(b"\n")
        return text

    def end(self) -> bytes:
        """Return the rest of the last line and the end of the response."""
        is_at_start = self._is_line_start and not self._held
        return self._held + (b".\r\n" if is_at_start else b"\r\n.\r\n")


class TopLines:
    """Cuts a mail after its header and some lines of its body, for TOP (RFC 1939 7)."""

    def __init__(self, body_lines: int) -> None:
        self._left = body_lines
        self._is_in_header = True
        self._rest = b""
        self.is_complete = False

    def feed(self, piece: bytes) -> bytes:
        """Return the whole lines of the next octets that belong to the response."""
        *lines, self._rest = (self._rest + piece).split(b"\n")
        kept = []
        for line in lines:
            if self.is_complete:
                break
            kept.append(line + b"\n")
            if not self._is_in_header:
                self._left -= 1
            elif line in (b"", b"\r"):
                self._is_in_header = False
            self.is_complete = not self._is_in_header and self._left <= 0
        return b"".join(kept)

    def end(self) -> bytes:
        """Return the last line of a mail that does not end with a line ending."""
        return b"" if self.is_complete else self._rest

"""Content-Transfer-Encoding undone (RFC 2045 6)."""

import binascii

from mailcheck.checks.content.limits import MAX_BASE64_PIECES

_IDENTITY = frozenset(("", "7bit", "8bit", "binary"))
_TO_STANDARD = bytes.maketrans(b"-_", b"+/")
_ALPHABET = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/=-_")
_NOT_BASE64 = bytes(octet for octet in range(256) if octet not in _ALPHABET)


def decode_transfer(data: bytes, encoding: str) -> tuple[bytes, str | None]:
    """Decode a body; gives also a sentence about what was wrong, or nothing.

    An unknown encoding leaves the bytes as they are (RFC 2045 6.4).
    """
    if encoding in _IDENTITY:
        return data, None
    if encoding == "quoted-printable":
        return binascii.a2b_qp(data), None
    if encoding == "base64":
        return _decode_base64(data)
    return data, f"transfer encoding {encoding[:40]!r} is unknown"


def _decode_base64(data: bytes) -> tuple[bytes, str | None]:
    """Decode piece by piece: encoders that are run twice leave padding in the middle."""
    digits = data.translate(None, _NOT_BASE64).translate(_TO_STANDARD)
    body, _, rest = digits.partition(b"=")
    if rest.strip(b"="):
        return _decode_padded_pieces(digits)
    problem = None
    if len(body) % 4 == 1:
        body, problem = body[:-1], "a base64 body is cut off"
    return binascii.a2b_base64(body + b"=" * (-len(body) % 4)), problem


def _decode_padded_pieces(digits: bytes) -> tuple[bytes, str | None]:
    decoded = []
    for piece in digits.split(b"=", MAX_BASE64_PIECES):
        piece = piece.replace(b"=", b"")
        whole = piece[:-1] if len(piece) % 4 == 1 else piece
        decoded.append(binascii.a2b_base64(whole + b"=" * (-len(whole) % 4)))
    return b"".join(decoded), "a base64 body has padding in the middle"

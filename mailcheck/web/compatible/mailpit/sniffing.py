"""The media type of a file by its first bytes, as browsers and Mailpit find it.

https://mimesniff.spec.whatwg.org/ sections 6 and 7.1.
"""

import re
from collections.abc import Sequence
from typing import NamedTuple

MAX_READ = 512
"""Number of bytes that are looked at."""

UNKNOWN = "application/octet-stream"
HTML, TEXT, XML = "text/html", "text/plain", "text/xml"

_TAGS = (
    *("!DOCTYPE HTML", "HTML", "HEAD", "SCRIPT", "IFRAME", "H1", "DIV", "FONT", "TABLE", "A"),
    *("STYLE", "TITLE", "B", "BODY", "BR", "P"),
)
_HTML = re.compile(
    rb"[\t\n\f\r ]*<(?:(?:%s)[ >]|!--)" % b"|".join(tag.encode() for tag in _TAGS), re.I
)
_XML = re.compile(rb"[\t\n\f\r ]*<\?xml")
_BINARY = re.compile(rb"[\x00-\x08\x0b\x0e-\x1a\x1c-\x1f]")
"""Bytes that no text has (section 3)."""


class _Signature(NamedTuple):
    """The bytes at an offset by which a type is known."""

    data: bytes
    media_type: str
    offset: int = 0
    start: bytes = b""


_SIGNATURES: Sequence[_Signature] = (
    _Signature(b"%PDF-", "application/pdf"),
    _Signature(b"%!PS-Adobe-", "application/postscript"),
    _Signature(b"\xfe\xff", TEXT),
    _Signature(b"\xff\xfe", TEXT),
    _Signature(b"\xef\xbb\xbf", TEXT),
    _Signature(b"\0\0\1\0", "image/x-icon"),
    _Signature(b"\0\0\2\0", "image/x-icon"),
    _Signature(b"BM", "image/bmp"),
    _Signature(b"GIF87a", "image/gif"),
    _Signature(b"GIF89a", "image/gif"),
    _Signature(b"WEBPVP", "image/webp", 8, b"RIFF"),
    _Signature(b"\x89PNG\r\n\x1a\n", "image/png"),
    _Signature(b"\xff\xd8\xff", "image/jpeg"),
    _Signature(b"AIFF", "audio/aiff", 8, b"FORM"),
    _Signature(b"ID3", "audio/mpeg"),
    _Signature(b"OggS\0", "application/ogg"),
    _Signature(b"MThd\0\0\0\6", "audio/midi"),
    _Signature(b"AVI ", "video/avi", 8, b"RIFF"),
    _Signature(b"WAVE", "audio/wave", 8, b"RIFF"),
    _Signature(b"ftypmp4", "video/mp4", 4),
    _Signature(b"ftypisom", "video/mp4", 4),
    _Signature(b"\x1a\x45\xdf\xa3", "video/webm"),
    _Signature(b"\0\1\0\0", "font/ttf"),
    _Signature(b"OTTO", "font/otf"),
    _Signature(b"ttcf", "font/collection"),
    _Signature(b"wOFF", "font/woff"),
    _Signature(b"wOF2", "font/woff2"),
    _Signature(b"\x1f\x8b\x08", "application/x-gzip"),
    _Signature(b"PK\3\4", "application/zip"),
    _Signature(b"Rar!\x1a\7\0", "application/x-rar-compressed"),
    _Signature(b"Rar!\x1a\7\1\0", "application/x-rar-compressed"),
    _Signature(b"\0asm", "application/wasm"),
)


def sniff_type(data: bytes) -> str:
    """Return the media type of a file."""
    data = data[:MAX_READ]
    if _HTML.match(data):
        return HTML
    if _XML.match(data):
        return XML
    for signature in _SIGNATURES:
        if data.startswith(signature.data, signature.offset) and data.startswith(signature.start):
            return signature.media_type
    return UNKNOWN if _BINARY.search(data) else TEXT

"""Bodies of requests that are forms."""

import hashlib
from collections.abc import Sequence
from urllib.parse import urlencode

from msgspec import Struct

URLENCODED = "application/x-www-form-urlencoded"

Fields = Sequence[tuple[str, str | bytes]]
"""Names and values in their order. Texts are sent as UTF-8, and bytes as they are."""


class FormFile(Struct, frozen=True):
    """A file of a form. Its content type is complete, with parameters."""

    name: str
    filename: str
    content_type: str
    data: bytes


def write_urlencoded(fields: Fields) -> bytes:
    """Return a form of type ``application/x-www-form-urlencoded``."""
    return urlencode([(name, octets_of(value)) for name, value in fields]).encode()


def write_multipart(fields: Fields, files: Sequence[FormFile], boundary: str) -> tuple[str, bytes]:
    """Return the content type and the body of a form of type ``multipart/form-data``.

    The fields have no content type, as browsers and providers send them. If a value contains the
    boundary, it gets the digest of all values, which none of them can contain.
    """
    values = [octets_of(value) for _, value in fields] + [file.data for file in files]
    if any(boundary.encode() in value for value in values):
        boundary += hashlib.sha256(b"".join(values)).hexdigest()[:32]
    heads = [f'name="{_quoted(name)}"' for name, _ in fields] + [
        f'name="{_quoted(file.name)}"; filename="{_quoted(file.filename)}"\r\n'
        f"Content-Type: {file.content_type}"
        for file in files
    ]
    pieces: list[bytes] = []
    for head, value in zip(heads, values, strict=True):
        pieces.append(f"--{boundary}\r\nContent-Disposition: form-data; ".encode())
        pieces += [octets_of(head), b"\r\n\r\n", value, b"\r\n"]
    pieces.append(f"--{boundary}--\r\n".encode())
    return f"multipart/form-data; boundary={boundary}", b"".join(pieces)


def octets_of(value: str | bytes) -> bytes:
    """Return a value in UTF-8. A lone surrogate becomes a question mark."""
    return value if isinstance(value, bytes) else value.encode("utf-8", "replace")


def _quoted(text: str) -> str:
    """Return a name for a quoted parameter (HTML 4.10.21.8)."""
    return text.replace('"', "%22").replace("\r", "%0D").replace("\n", "%0A")

"""Forms with files (RFC 7578)."""

import io
from collections.abc import Sequence
from typing import NamedTuple

from werkzeug.exceptions import RequestEntityTooLarge
from werkzeug.formparser import FormDataParser
from werkzeug.http import parse_options_header

MULTIPART = "multipart/form-data"

MAX_PARTS = 2_000
"""Maximum number of fields of a form."""


class Upload(NamedTuple):
    """A file of a form."""

    name: str
    filename: str
    content_type: str
    data: bytes


def parse_form(body: bytes, content_type: str) -> tuple[list[tuple[str, str]], Sequence[Upload]]:
    """Return the fields and the files of a form, in order.

    :param content_type: the value of Content-Type of a form.
    :raises ValueError: the form is malformed, or has too many fields.
    """
    media_type, options = parse_options_header(content_type)
    size = len(body)
    if media_type != MULTIPART and body.count(b"&") >= MAX_PARTS:
        raise ValueError(f"it may have {MAX_PARTS:,} fields")
    parser = FormDataParser(
        stream_factory=_in_memory,
        max_form_memory_size=size,
        max_form_parts=MAX_PARTS,
        silent=False,
    )
    try:
        _, fields, files = parser.parse(io.BytesIO(body), media_type, size, options)
    except RequestEntityTooLarge as problem:
        raise ValueError(str(problem)) from None
    uploads = [
        Upload(name, file.filename or "", file.content_type or "", file.read())
        for name, file in files.items(multi=True)
    ]
    return list(fields.items(multi=True)), uploads


def _in_memory(*_: object, **__: object) -> io.BytesIO:
    """Return a file for werkzeug, which would use temporary files for a body that is here."""
    return io.BytesIO()

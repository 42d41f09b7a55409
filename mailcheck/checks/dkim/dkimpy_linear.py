"""What dkimpy does in quadratic time, or slowly, done in little time with the same outcome.

dkimpy takes a mail apart with regular expressions that read a run of blanks
again from each of its blanks: 200 KB of them hold the interpreter for half a
minute. `change_dkimpy` puts these functions in their place.
Elsewhere dkimpy parses a mail (`rfc822_parse`, `parse_tag_value`,
`validate_signature_fields`, the split of ``h=``): none of that is used here.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

Field = tuple[bytes, bytes]
"""Name and body of a header field; the body with its folding and the CRLF at its end."""

CRLF = b"\r\n"


class Hasher(Protocol):
    """A hash that is being made."""

    def update(self, data: bytes, /) -> None:
        """Take in more."""


class Canonicalization(Protocol):
    """What dkimpy knows of a ``c=`` tag."""

    def canonicalize_headers(self, headers: Sequence[Field]) -> Sequence[Field]:
        """Give the fields in the form that is hashed."""


_RUNS = (64, 8, 2)
"""Blanks that are replaced by one at a time; a run of any length is gone after a few rounds."""


def change_dkimpy() -> None:
    """Put the functions below in the place of dkimpy's, in this process.

    Once, at the start of each process that verifies: assembly sees to it.
    `tests/checks/test_dkim_changes.py` tells when one of them is not needed any more.
    """
    # Here: dkimpy loads several resolvers, which the process of the daemon has no use for.
    import dkim  # type: ignore[import-untyped]
    from dkim import canonicalization

    canonicalization.compress_whitespace = compress_whitespace
    canonicalization.strip_trailing_lines = strip_trailing_lines
    canonicalization.unfold_header_value = unfold_header_value
    canonicalization.Relaxed.canonicalize_body = staticmethod(canonicalize_relaxed_body)
    dkim.hash_headers = hash_headers


def compress_whitespace(content: bytes) -> bytes:
    """Make each run of blanks one space."""
    content = content.replace(b"\t", b" ")
    while b"  " in content:
        for length in _RUNS:
            content = content.replace(b" " * length, b" ")
    return content


def unfold_header_value(content: bytes) -> bytes:
    """Take the line ends out of a field's body."""
    return content.replace(CRLF, b"").replace(b"\n", b"")


def strip_trailing_lines(content: bytes) -> bytes:
    """Take the empty lines at the end away; the last line ends in CRLF."""
    if not content.endswith(CRLF):
        return content + CRLF
    ends = content[len(content.rstrip(CRLF)) :]
    # Only CR and LF are in there: the pairs go back to where one stands twice in a row.
    start = max(ends.rfind(b"\n\n"), ends.rfind(b"\r\r")) + 1
    if ends.startswith(b"\n", start):
        start += 1
    text_end = len(content) - len(ends) + start
    return content[: text_end + len(CRLF)] if text_end else CRLF


def canonicalize_relaxed_body(body: bytes) -> bytes:
    """Give the body in the relaxed form of RFC 6376 3.4.4."""
    # With runs made one space there is at most one before a CRLF.
    compressed = compress_whitespace(body).replace(b" \r\n", CRLF)
    stripped = strip_trailing_lines(compressed)
    return b"" if stripped == CRLF else stripped


def select_headers(headers: Sequence[Field], include_headers: Iterable[bytes]) -> list[Field]:
    """Select the signed fields, of each name the last one first (RFC 6376 5.4.2)."""
    by_name: dict[bytes, list[Field]] = {}
    for field in headers:
        by_name.setdefault(field[0].rstrip().lower(), []).append(field)
    found = (by_name.get(name) for name in include_headers)
    return [fields.pop() for fields in found if fields]


def hash_headers(
    hasher: Hasher,
    policy: Canonicalization,
    headers: Sequence[Field],
    include_headers: Iterable[bytes],
    signature_field: Field,
    _tags: Mapping[bytes, bytes],
) -> list[Field]:
    """Hash the signed fields, then the signature's own without its value (RFC 6376 3.7)."""
    signed = select_headers(headers, include_headers)
    name, body = signature_field
    ((name, body),) = policy.canonicalize_headers([(name, remove_signature(body))])
    for field in (*signed, (name, body.removesuffix(CRLF))):
        hasher.update(field[0])
        hasher.update(b":")
        hasher.update(field[1])
    return signed


def remove_signature(body: bytes) -> bytes:
    """Take the value of ``b=`` away, with all white space around it (RFC 6376 3.5)."""
    end = CRLF if body.endswith(CRLF) else b""
    tags = body.removesuffix(CRLF).split(b";")
    for position, tag in enumerate(tags):
        name, equals, _ = tag.partition(b"=")
        if equals and name.strip() == b"b":
            tags[position] = name + equals
    return b";".join(tags) + end

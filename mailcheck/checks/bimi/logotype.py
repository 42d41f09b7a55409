"""The logo in a certificate: the logotype extension (RFC 3709, RFC 9399).

The extension is read along one path, the direct logo of the subject. None of the libraries that
mailcheck uses can decode it: cryptography returns its octets, and its own decoder of ASN.1 has no
optional elements of any type. The reader looks at each octet once at most, and does not recurse.
"""

import base64
import binascii
import hashlib
from collections.abc import Iterator

from msgspec import Struct

from mailcheck.checks.bimi.svg import DamagedLogo, unpack

SEQUENCE, OCTETS, OBJECT_ID, IA5_STRING = 0x30, 0x04, 0x06, 0x16
SUBJECT_LOGO, DIRECT = 0xA2, 0xA0  # [2] and [0], constructed

MAX_HASHES = 10
"""Maximum number of hashes of one logo that are compared."""

_HASHES = {
    "2b0e03021a": "sha1",
    "608648016503040201": "sha256",
    "608648016503040202": "sha384",
    "608648016503040203": "sha512",
}
"""Object identifiers in hexadecimal digits."""

_PREFIX = "data:image/svg+xml;base64,"


class BadLogotype(Exception):
    """The extension has no usable logo; the text completes "The certificate ..."."""


class Logotype(Struct, frozen=True):
    """The logo of a certificate: the uncompressed SVG, and whether all hashes match it."""

    svg: bytes
    has_valid_hash: bool


def read_logotype(octets: bytes) -> Logotype:
    """Return the logo in the value of the extension.

    :raises BadLogotype: the value is malformed, or the logo is not in the certificate itself.
    """
    try:
        return _read(octets)
    except (IndexError, ValueError) as fault:
        raise BadLogotype("has a malformed logotype extension") from fault


def _read(octets: bytes) -> Logotype:
    subject = _find(_inside(octets, SEQUENCE), SUBJECT_LOGO)
    images = _inside(_inside(subject, DIRECT), SEQUENCE)
    details = _inside(_inside(images, SEQUENCE), SEQUENCE)
    media_type, hashes, uris = [value for _, value in _elements(details)][:3]
    if media_type.lower() != b"image/svg+xml":
        raise BadLogotype("has a logo that is not SVG")
    uri = _inside(uris, IA5_STRING).decode("ascii")
    if not uri.lower().startswith(_PREFIX):
        raise BadLogotype("names a logo elsewhere instead of containing it")
    try:
        svg = unpack(base64.b64decode(uri[len(_PREFIX) :], validate=True))
    except binascii.Error:
        raise BadLogotype("has a logo with damaged base64") from None
    except DamagedLogo as damage:
        raise BadLogotype(f"has a logo that cannot be used: {damage}") from None
    return Logotype(svg, _matches(svg, hashes))


def _matches(svg: bytes, hashes: bytes) -> bool:
    """Return whether there is a known hash, and all known ones match."""
    results = []
    for _, pair in list(_elements(hashes))[:MAX_HASHES]:
        (_, algorithm), (_, digest) = list(_elements(pair))[:2]
        name = _HASHES.get(_inside(algorithm, OBJECT_ID).hex())
        if name is not None:
            results.append(hashlib.new(name, svg, usedforsecurity=False).digest() == digest)
    return bool(results) and all(results)


def _inside(octets: bytes, expected: int) -> bytes:
    """Return the contents of the first element, which must have a tag.

    :raises ValueError: it has another one, or is malformed.
    """
    tag, value = next(_elements(octets), (0, b""))
    if tag != expected:
        raise ValueError(f"tag {tag:#x} instead of {expected:#x}")
    return value


def _find(octets: bytes, expected: int) -> bytes:
    for tag, value in _elements(octets):
        if tag == expected:
            return value
    raise BadLogotype("has no logo of its subject")


def _elements(octets: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield the tags and contents of DER elements (X.690 8.1).

    :raises ValueError: an element is longer than its container, or its length is not DER.
    """
    at = 0
    while at < len(octets):
        tag, length, at = octets[at], octets[at + 1], at + 2
        if length >= 0x80:
            count = length & 0x7F
            if not 1 <= count <= 4:
                raise ValueError("length")
            length, at = int.from_bytes(octets[at : at + count]), at + count
        if at + length > len(octets):
            raise ValueError("end")
        yield tag, octets[at : at + length]
        at += length

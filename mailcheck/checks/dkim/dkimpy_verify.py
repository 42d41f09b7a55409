"""dkimpy: canonical forms, hashes and signatures; the only module that imports it.

dkimpy gets what it needs, parsed: no header but the signed fields, no key record but the key.
How it parses mails, tags, keys and times is not relied on (`rfc822_parse`, `parse_tag_value`,
`validate_signature_fields`, the split of ``h=``).

`patch_dkimpy` replaces functions of dkimpy that take quadratic time or several times as long as
needed, with the same outcome: 200 KB of blanks keep dkimpy busy for half a minute. A process that
verifies calls it at its start. `tests/checks/test_dkim_changes.py` fails for each of them, and for
each workaround here, once dkimpy does not need it any more.
"""

import base64
import binascii
import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Protocol

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
from cryptography.hazmat.primitives.serialization import load_der_public_key

from mailcheck.checks.dkim.key_record import ED25519, KeyRecord
from mailcheck.checks.dkim.signature_headers import CRLF, Field, MailSource, SignatureHeader

MAX_EXPONENT_BITS = 64
"""Of an RSA key: a longer one makes verifying as slow as signing (OpenSSL has this limit too)."""

ED25519_SIGNATURE_OCTETS = 64  # RFC 8032 5.1.6


@cache
def _load_dkimpy() -> Any:
    """Give dkimpy: it loads several resolvers, which the process of the daemon has no use for."""
    import dkim.canonicalization  # type: ignore[import-untyped]

    return dkim


class UnusableKey(Exception):
    """A key that no signature can be verified with; the text says why, after "the key"."""


@dataclass
class BodyHashes:
    """The hashes of one body; each canonical form is made once."""

    body: bytes
    _canonical: dict[str, bytes] = field(default_factory=dict)

    def canonical(self, canonicalization: str) -> bytes:
        """Give the body in the form of a ``c=`` value."""
        form = canonicalization.rpartition("/")[2]
        if form not in self._canonical:
            policy = _load_dkimpy().canonicalization.CanonicalizationPolicy.from_c_value(
                f"simple/{form}".encode()
            )
            self._canonical[form] = policy.canonicalize_body(self.body)
        return self._canonical[form]

    def size(self, canonicalization: str) -> int:
        """Give the octets of a form."""
        return len(self.canonical(canonicalization))

    def digest(self, canonicalization: str, length: int | None) -> bytes:
        """Give the SHA-256 of a form, or of its first octets (``l=``)."""
        with memoryview(self.canonical(canonicalization)) as octets:
            return hashlib.sha256(octets[:length]).digest()


def is_header_intact(
    source: MailSource, signed: SignatureHeader, own_field: Field, key: KeyRecord
) -> bool:
    """Return whether a signature over the header verifies with the key: DKIM's and ARC's alike.

    :param own_field: the whole field that the signature stands in.
    :raises UnusableKey: no signature verifies with it.
    """
    names = [name.encode() for name in signed.signed_fields]
    dkim = _load_dkimpy()
    verifier = dkim.DKIM()
    # Of all other fields dkimpy would make the canonical form as well.
    verifier.headers = [
        one for name in dict.fromkeys(names) for one in source.by_name.get(name, ())
    ]
    verifier.seqtlsrpt = False
    verifier.minkey = 0
    if not _set_key(verifier, key, signed.signature):
        return False
    tags = {
        b"a": signed.algorithm.encode(),
        b"c": signed.canonicalization.encode(),
        b"b": base64.b64encode(signed.signature),
    }
    try:
        return bool(verifier.verify_sig_process(tags, names, own_field, None))
    except dkim.DKIMException:
        return False


def relax_fields(fields: Iterable[Field]) -> tuple[Field, ...]:
    """Give fields in the relaxed form (RFC 6376 3.4.2)."""
    return tuple(_load_dkimpy().canonicalization.Relaxed.canonicalize_headers(list(fields)))


def _set_key(verifier: Any, key: KeyRecord, signature: bytes) -> bool:
    """Hand the key over; tell whether the signature has the length that belongs to it.

    RFC 8017 8.2.2 and RFC 8032 5.1.7 refuse others, dkimpy does not.
    """
    try:
        octets = base64.b64decode(key.key_data, validate=True)
    except (binascii.Error, ValueError) as error:
        raise UnusableKey("is not Base64") from error
    if key.key_type == ED25519:
        import nacl.exceptions
        import nacl.signing

        try:
            verifier.pk = nacl.signing.VerifyKey(octets)
        except (nacl.exceptions.CryptoError, ValueError) as error:
            raise UnusableKey("can't be read") from error
        verifier.ktag, verifier.keysize = b"ed25519", 8 * len(octets)
        return len(signature) == ED25519_SIGNATURE_OCTETS
    try:
        loaded = load_der_public_key(octets)
    except (ValueError, TypeError, UnsupportedAlgorithm) as error:
        raise UnusableKey("can't be read") from error
    if not isinstance(loaded, RSAPublicKey):
        raise UnusableKey("is not an RSA key")
    numbers = loaded.public_numbers()
    if numbers.e.bit_length() > MAX_EXPONENT_BITS:
        raise UnusableKey("has an exponent that makes verifying too slow")
    verifier.pk = {"modulus": numbers.n, "publicExponent": numbers.e}
    verifier.ktag, verifier.keysize = b"rsa", loaded.key_size
    return len(signature) == (loaded.key_size + 7) // 8


class Hasher(Protocol):
    """A hash that is being made."""

    def update(self, data: bytes, /) -> None:
        """Add data to the hash."""


class Canonicalization(Protocol):
    """dkimpy's canonicalization for a ``c=`` tag."""

    def canonicalize_headers(self, headers: Sequence[Field]) -> Sequence[Field]:
        """Return the fields in the form that is hashed."""


_RUN_LENGTHS = (64, 8, 2)
"""Blanks that are replaced by one at a time; a run of any length is gone after a few rounds."""


def patch_dkimpy() -> None:
    """Put the functions below in the place of dkimpy's, in this process.

    Once, at the start of each process that verifies: assembly sees to it.
    """
    dkim = _load_dkimpy()
    canonicalization = dkim.canonicalization
    canonicalization.compress_whitespace = compress_whitespace
    canonicalization.strip_trailing_lines = strip_trailing_lines
    canonicalization.unfold_header_value = unfold_header_value
    canonicalization.Relaxed.canonicalize_body = staticmethod(canonicalize_relaxed_body)
    dkim.hash_headers = hash_headers


def compress_whitespace(content: bytes) -> bytes:
    """Make each run of blanks one space."""
    content = content.replace(b"\t", b" ")
    while b"  " in content:
        for length in _RUN_LENGTHS:
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
    for one in headers:
        by_name.setdefault(one[0].rstrip().lower(), []).append(one)
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
    for signed_name, signed_body in (*signed, (name, body.removesuffix(CRLF))):
        hasher.update(signed_name)
        hasher.update(b":")
        hasher.update(signed_body)
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

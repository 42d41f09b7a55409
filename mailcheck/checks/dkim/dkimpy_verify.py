"""The adapter for dkimpy: canonical forms, hashes and signatures.

This is the only module that imports dkimpy. dkimpy gets parsed input only: the signed fields and
the key. Its own parsers of mails, tags, keys and times are not used (`rfc822_parse`,
`parse_tag_value`, `validate_signature_fields`, the split of ``h=``).

`patch_dkimpy` replaces functions of dkimpy that take quadratic time, or several times as long as
needed, without changing their results. For example, dkimpy needs half a minute for 200 KB of
blanks. A process that verifies signatures calls it at its start.
`tests/checks/test_dkim_changes.py` fails for each patch and each workaround here that dkimpy no
longer needs.
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
"""Maximum length of the exponent of an RSA key, as in OpenSSL. A longer exponent makes verifying
as slow as signing."""

ED25519_SIGNATURE_OCTETS = 64  # RFC 8032 5.1.6


@cache
def _load_dkimpy() -> Any:
    """Import dkimpy late: it loads several resolvers, which the daemon's process does not need."""
    import dkim.canonicalization  # type: ignore[import-untyped]

    return dkim


class UnusableKey(Exception):
    """A key with which no signature can be verified; the text continues "the key"."""


@dataclass
class BodyHashes:
    """The hashes of one body; each canonical form is computed once."""

    body: bytes
    _canonical: dict[str, bytes] = field(default_factory=dict)

    def canonical(self, canonicalization: str) -> bytes:
        """Return the canonical form of the body for a ``c=`` value."""
        form = canonicalization.rpartition("/")[2]
        if form not in self._canonical:
            policy = _load_dkimpy().canonicalization.CanonicalizationPolicy.from_c_value(
                f"simple/{form}".encode()
            )
            self._canonical[form] = policy.canonicalize_body(self.body)
        return self._canonical[form]

    def size(self, canonicalization: str) -> int:
        """Return the number of octets of a canonical form."""
        return len(self.canonical(canonicalization))

    def digest(self, canonicalization: str, length: int | None) -> bytes:
        """Return the SHA-256 of a canonical form, or of its first octets (``l=``)."""
        with memoryview(self.canonical(canonicalization)) as octets:
            return hashlib.sha256(octets[:length]).digest()


def is_header_intact(
    source: MailSource, signed: SignatureHeader, own_field: Field, key: KeyRecord
) -> bool:
    """Return whether a DKIM or ARC signature of the header verifies with the key.

    :param own_field: the whole field with the signature.
    :raises UnusableKey: no signature can be verified with the key.
    """
    names = [name.encode() for name in signed.signed_fields]
    dkim = _load_dkimpy()
    verifier = dkim.DKIM()
    # dkimpy would canonicalize all other fields as well.
    verifier.headers = [
        header for name in dict.fromkeys(names) for header in source.by_name.get(name, ())
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
    """Return fields in the relaxed form (RFC 6376 3.4.2)."""
    return tuple(_load_dkimpy().canonicalization.Relaxed.canonicalize_headers(list(fields)))


def _set_key(verifier: Any, key: KeyRecord, signature: bytes) -> bool:
    """Set the key of the verifier; return whether the signature has the length for the key.

    RFC 8017 8.2.2 and RFC 8032 5.1.7 reject other lengths, but dkimpy does not.
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
            raise UnusableKey("cannot be parsed") from error
        verifier.ktag, verifier.keysize = b"ed25519", 8 * len(octets)
        return len(signature) == ED25519_SIGNATURE_OCTETS
    try:
        loaded = load_der_public_key(octets)
    except (ValueError, TypeError, UnsupportedAlgorithm) as error:
        raise UnusableKey("cannot be parsed") from error
    if not isinstance(loaded, RSAPublicKey):
        raise UnusableKey("is not an RSA key")
    numbers = loaded.public_numbers()
    if numbers.e.bit_length() > MAX_EXPONENT_BITS:
        raise UnusableKey("has an exponent that makes verifying too slow")
    verifier.pk = {"modulus": numbers.n, "publicExponent": numbers.e}
    verifier.ktag, verifier.keysize = b"rsa", loaded.key_size
    return len(signature) == (loaded.key_size + 7) // 8


class Hasher(Protocol):
    """A hash object."""

    def update(self, data: bytes, /) -> None:
        """Add data to the hash."""


class Canonicalization(Protocol):
    """dkimpy's canonicalization for a ``c=`` tag."""

    def canonicalize_headers(self, headers: Sequence[Field]) -> Sequence[Field]:
        """Return the fields in the form that is hashed."""


_RUN_LENGTHS = (64, 8, 2)
"""Lengths of runs of blanks that are replaced by one blank; few rounds handle any length."""


def patch_dkimpy() -> None:
    """Replace functions of dkimpy with the functions below, in this process.

    Called once at the start of each process that verifies signatures.
    """
    dkim = _load_dkimpy()
    canonicalization = dkim.canonicalization
    canonicalization.compress_whitespace = compress_whitespace
    canonicalization.strip_trailing_lines = strip_trailing_lines
    canonicalization.unfold_header_value = unfold_header_value
    canonicalization.Relaxed.canonicalize_body = staticmethod(canonicalize_relaxed_body)
    dkim.hash_headers = hash_headers


def compress_whitespace(content: bytes) -> bytes:
    """Replace each run of blanks by one space."""
    content = content.replace(b"\t", b" ")
    while b"  " in content:
        for length in _RUN_LENGTHS:
            content = content.replace(b" " * length, b" ")
    return content


def unfold_header_value(content: bytes) -> bytes:
    """Remove the line ends from the body of a field."""
    return content.replace(CRLF, b"").replace(b"\n", b"")


def strip_trailing_lines(content: bytes) -> bytes:
    """Remove empty lines at the end, and end the last line with CRLF."""
    if not content.endswith(CRLF):
        return content + CRLF
    ends = content[len(content.rstrip(CRLF)) :]
    # `ends` has only CR and LF. The CRLF pairs at its end begin after the last doubled octet.
    start = max(ends.rfind(b"\n\n"), ends.rfind(b"\r\r")) + 1
    if ends.startswith(b"\n", start):
        start += 1
    text_end = len(content) - len(ends) + start
    return content[: text_end + len(CRLF)] if text_end else CRLF


def canonicalize_relaxed_body(body: bytes) -> bytes:
    """Return the body in the relaxed form (RFC 6376 3.4.4)."""
    # After compression there is at most one space before a CRLF.
    compressed = compress_whitespace(body).replace(b" \r\n", CRLF)
    stripped = strip_trailing_lines(compressed)
    return b"" if stripped == CRLF else stripped


def select_headers(headers: Sequence[Field], include_headers: Iterable[bytes]) -> list[Field]:
    """Select the signed fields; of fields with one name, the last is first (RFC 6376 5.4.2)."""
    by_name: dict[bytes, list[Field]] = {}
    for header in headers:
        by_name.setdefault(header[0].rstrip().lower(), []).append(header)
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
    """Hash the signed fields, then the signature field without its value (RFC 6376 3.7)."""
    signed = select_headers(headers, include_headers)
    name, body = signature_field
    ((name, body),) = policy.canonicalize_headers([(name, remove_signature(body))])
    for signed_name, signed_body in (*signed, (name, body.removesuffix(CRLF))):
        hasher.update(signed_name)
        hasher.update(b":")
        hasher.update(signed_body)
    return signed


def remove_signature(body: bytes) -> bytes:
    """Remove the value of ``b=`` with all white space around it (RFC 6376 3.5)."""
    end = CRLF if body.endswith(CRLF) else b""
    tags = body.removesuffix(CRLF).split(b";")
    for position, tag in enumerate(tags):
        name, equals, _ = tag.partition(b"=")
        if equals and name.strip() == b"b":
            tags[position] = name + equals
    return b";".join(tags) + end

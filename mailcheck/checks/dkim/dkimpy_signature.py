"""Checking one signature with dkimpy: canonicalisation, hashes, RSA and Ed25519.

dkimpy gets what it needs, parsed: no header but the signed fields, no key
record but the key. How it parses mails, tags, keys and times is not relied on.
A process that verifies calls `change_dkimpy` at its start.
"""

import base64
import binascii
import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
from cryptography.hazmat.primitives.serialization import load_der_public_key

from mailcheck.checks.dkim.dkimpy_linear import Field
from mailcheck.checks.dkim.key_record import ED25519, KeyRecord
from mailcheck.checks.dkim.mail_source import MailSource

MAX_EXPONENT_BITS = 64
"""Of an RSA key: a longer one makes verifying as slow as signing (OpenSSL has this limit too)."""

ED25519_SIGNATURE_OCTETS = 64  # RFC 8032 5.1.6


@cache
def _dkimpy() -> Any:
    """Give dkimpy: it loads several resolvers, which the process of the daemon has no use for."""
    import dkim.canonicalization  # type: ignore[import-untyped]

    return dkim


class UnusableKey(Exception):
    """A key that no signature can be verified with; the text says why, after "the key"."""


@dataclass(frozen=True, slots=True)
class SignedHeader:
    """What a signature over the header says: DKIM's and ARC's alike.

    ``signature_field`` is the field that the signature stands in, whole.
    """

    algorithm: str
    canonicalization: str
    signed_fields: tuple[str, ...]
    signature: bytes
    signature_field: Field


@dataclass
class BodyHashes:
    """The hashes of one body; each canonical form is made once."""

    body: bytes
    _canonical: dict[str, bytes] = field(default_factory=dict)

    def canonical(self, canonicalization: str) -> bytes:
        """Give the body in the form of a ``c=`` value."""
        form = canonicalization.rpartition("/")[2]
        if form not in self._canonical:
            policy = _dkimpy().canonicalization.CanonicalizationPolicy.from_c_value(
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


def is_header_intact(source: MailSource, signed: SignedHeader, key: KeyRecord) -> bool:
    """Tell whether a signature over the header verifies with the key.

    :raises UnusableKey: no signature verifies with it.
    """
    names = [name.encode() for name in signed.signed_fields]
    dkim = _dkimpy()
    verifier = dkim.DKIM()
    # Of all other fields dkimpy would make the canonical form as well.
    verifier.headers = [
        one for name in dict.fromkeys(names) for one in source.by_name.get(name, ())
    ]
    verifier.seqtlsrpt = False
    verifier.minkey = 0
    if not _give_key(verifier, key, signed.signature):
        return False
    tags = {
        b"a": signed.algorithm.encode(),
        b"c": signed.canonicalization.encode(),
        b"b": base64.b64encode(signed.signature),
    }
    try:
        return bool(verifier.verify_sig_process(tags, names, signed.signature_field, None))
    except dkim.DKIMException:
        return False


def relax_fields(fields: Iterable[Field]) -> tuple[Field, ...]:
    """Give fields in the relaxed form (RFC 6376 3.4.2)."""
    return tuple(_dkimpy().canonicalization.Relaxed.canonicalize_headers(list(fields)))


def _give_key(verifier: Any, key: KeyRecord, signature: bytes) -> bool:
    """Hand the key over; tell whether the signature has the length that belongs to it.

    RFC 8017 8.2.2 and RFC 8032 5.1.7 refuse others, dkimpy does not.
    """
    octets = _key_octets(key)
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


def _key_octets(key: KeyRecord) -> bytes:
    text = key.key_data
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError) as error:
        raise UnusableKey("is not Base64") from error

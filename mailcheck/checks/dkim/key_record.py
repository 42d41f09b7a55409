"""A DKIM key record as a value (RFC 6376 3.6.1)."""

import base64
import binascii
import re

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
from cryptography.hazmat.primitives.serialization import load_der_public_key
from msgspec import Struct

from mailcheck.checks.tag_lists import TagList, has_version, parse_tag_list

VERSION = "DKIM1"
RSA, ED25519 = "rsa", "ed25519"

MIN_RSA_BITS = 1024  # RFC 8301 3.2: verifiers must not accept less
GOOD_RSA_BITS = 2048  # RFC 8301 3.2: signers should use at least this
ED25519_OCTETS = 32  # RFC 8463 4.2
ED25519_BITS = 256
MAX_KEY_OCTETS = 2112  # an RSA key of 16,384 bits; OpenSSL verifies with none that is larger


class KeyRecord(Struct, frozen=True):
    """A parsed key record. ``bits`` is nothing when the key can't be read, or is revoked.

    ``problem`` says in a few words why no signature can be verified with it. ``repaired`` is a
    record with the same key and without the problem, and empty where there is none. ``strays``
    are the other TXT records at the name.
    """

    text: str
    key_type: str
    bits: int | None
    is_revoked: bool
    is_testing: bool
    is_strict: bool
    """``t=s``: the signing identity must be of this very domain."""
    problem: str
    needs_new_key: bool = False
    """No correction of the record makes this key usable."""
    repaired: str = ""
    strays: tuple[str, ...] = ()

    @property
    def key_data(self) -> str:
        """Give the key itself as it is written, without blanks."""
        return "".join((parse_tag_list(self.text).get("p") or "").split())

    @property
    def is_usable(self) -> bool:
        """Tell whether receivers verify signatures with it."""
        return not self.is_revoked and not self.problem

    @property
    def is_strong(self) -> bool:
        """Tell whether it is as long as advised."""
        return self.is_usable and (
            self.key_type == ED25519 or (self.bits is not None and self.bits >= GOOD_RSA_BITS)
        )

    @property
    def is_too_short(self) -> bool:
        """Tell whether it is an RSA key below what receivers accept."""
        return self.key_type == RSA and self.bits is not None and self.bits < MIN_RSA_BITS


def is_key_record(text: str) -> bool:
    """Tell whether a TXT record is a key record: ``v=DKIM1`` first, or no version and a key."""
    if has_version(text.lstrip(), VERSION):
        return True
    tags = parse_tag_list(text)
    is_clear = not tags.violations or "k" in tags.tags
    return "p" in tags.tags and "v" not in tags.tags and is_clear


def parse_key_record(text: str) -> KeyRecord:
    """Read a record for which `is_key_record` holds."""
    tags = parse_tag_list(text)
    key_type = (tags.get("k") or RSA).lower()
    flags = _split(tags.get("t"))
    octets, problem = _decode(tags)
    bits = None
    if octets and not problem:
        bits, problem = _measure(key_type, octets)
    is_private = _PRIVATE in text[:MAX_ARMORED].upper() or _is_private(octets)
    if is_private:
        bits, problem = None, "has a private key in it, so everybody can sign with it now"
    return KeyRecord(
        text=text,
        key_type=key_type,
        bits=bits,
        is_revoked=octets == b"" and not problem,
        is_testing="y" in flags,
        is_strict="s" in flags,
        problem=problem or _find_restriction(tags, bits, key_type),
        needs_new_key=is_private
        or len(octets) > MAX_KEY_OCTETS
        or kind_of_key(octets) == _OTHER
        or (key_type == RSA and bits is not None and bits < MIN_RSA_BITS),
    )


def _split(value: str | None) -> list[str]:
    return [part.strip().lower() for part in (value or "").split(":")]


def _decode(tags: TagList) -> tuple[bytes, str]:
    if tags.violations:
        # RFC 6376 3.2 and 6.1.2: what is no tag list is no key.
        return b"", f"is no list of tags: {tags.violations[0]}"
    text = tags.get("p")
    if text is None:
        return b"", "has no key (no p=)"
    try:
        octets = base64.b64decode(re.sub("[ \t\r\n]", "", text), validate=True)
    except (binascii.Error, ValueError):
        return b"", "has a key that is not Base64: it was cut off or altered when it was pasted"
    if len(octets) > MAX_KEY_OCTETS:
        return octets, "has a key that is too large to be verified with"
    return octets, ""


def _measure(key_type: str, octets: bytes) -> tuple[int | None, str]:
    if key_type == ED25519:
        if len(octets) == ED25519_OCTETS:
            return ED25519_BITS, ""
        return None, f"has an Ed25519 key of {len(octets)} octets, not {ED25519_OCTETS}"
    if key_type != RSA:
        return None, f"has a key of the unknown type {key_type[:20]!r}"
    try:
        key = load_der_public_key(octets)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        return None, "has a key that can't be read: it was cut off or altered when it was pasted"
    if isinstance(key, RSAPublicKey):
        return key.key_size, ""
    kind = "an Ed25519" if isinstance(key, Ed25519PublicKey) else "another"
    return None, f"says that its key is RSA, but it is {kind} key"


_OTHER = "other"


def kind_of_key(octets: bytes) -> str:
    """Return `RSA` or `ED25519`, ``other`` for another kind of public key, or an empty string."""
    if len(octets) == ED25519_OCTETS:
        return ED25519
    try:
        key = load_der_public_key(octets)
    except UnsupportedAlgorithm:
        return _OTHER
    except (ValueError, TypeError):
        return ""
    if isinstance(key, RSAPublicKey):
        return RSA
    return ED25519 if isinstance(key, Ed25519PublicKey) else _OTHER


_PRIVATE = "PRIVATE KEY-"
MAX_ARMORED = 8_192


def _is_private(octets: bytes) -> bool:
    """Return whether DER begins as a private key does: a sequence with a version (RFC 8017 A.1.2).

    A public key begins with a sequence or with its modulus.
    """
    size = octets[1] & 0x7F if len(octets) > 1 and octets[1] & 0x80 else 0
    return octets[:1] == b"\x30" and octets[2 + size : 5 + size] == b"\x02\x01\x00"


def _find_restriction(tags: TagList, bits: int | None, key_type: str) -> str:
    services = _split(tags.get("s"))
    if "s" in tags.tags and not {"*", "email"} & set(services):
        return f"is not meant for mail (s={tags.get('s')})"
    if "h" in tags.tags and "sha256" not in _split(tags.get("h")):
        return "allows only hash algorithms that receivers no longer accept (RFC 8301)"
    if key_type == RSA and bits is not None and bits < MIN_RSA_BITS:
        return f"has a key of only {bits} bits, which receivers no longer accept (RFC 8301)"
    return ""

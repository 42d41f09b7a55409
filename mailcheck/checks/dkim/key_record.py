"""DKIM key records: parser (RFC 6376 3.6.1) and repair of texts that were intended as one.

A repaired record has the same key. It is proposed only if the published texts contain the whole
key: it must have the length that its DER encoding states.
"""

import base64
import binascii
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import permutations
from urllib.parse import unquote

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
from cryptography.hazmat.primitives.serialization import load_der_public_key
from msgspec import Struct
from msgspec.structs import replace

from mailcheck.checks.tags.tag_lists import TagList, has_version, parse_tag_list
from mailcheck.checks.tags.tag_repair import find_tags, name_mistake, start_of, without_look_alikes

VERSION = "DKIM1"
RSA, ED25519 = "rsa", "ed25519"

MIN_RSA_BITS = 1024  # RFC 8301 3.2: verifiers must not accept less
GOOD_RSA_BITS = 2048  # RFC 8301 3.2: signers should use at least this
ED25519_OCTETS = 32  # RFC 8463 4.2
ED25519_BITS = 256
MAX_KEY_OCTETS = 2112  # an RSA key of 16,384 bits, the maximum of OpenSSL


_OTHER = "other"

_PRIVATE = "PRIVATE KEY-"
MAX_ARMORED = 8_192

_URL_SAFE = str.maketrans("-_", "+/")


class KeyRecord(Struct, frozen=True):
    """A parsed key record.

    ``bits`` is `None` if the key is revoked or cannot be parsed. ``problem`` says in a few words
    why no signature can be verified with it. ``repaired`` is a record with the same key and
    without the problem, or empty. ``strays`` are the other TXT records at the name.
    """

    text: str
    key_type: str
    bits: int | None
    is_revoked: bool
    is_testing: bool
    is_strict: bool
    """``t=s``: the signing identity must be of exactly this domain."""
    problem: str
    needs_new_key: bool = False
    """No correction of the record can make this key usable."""
    repaired: str = ""
    strays: tuple[str, ...] = ()

    @property
    def key_data(self) -> str:
        """The key as it is written, without blanks."""
        return "".join((parse_tag_list(self.text).get("p") or "").split())

    @property
    def is_for_mail(self) -> bool:
        """Whether mail is one of the services that the key is for (``s=``, RFC 6376 3.6.1)."""
        return is_for_mail(parse_tag_list(self.text))

    @property
    def is_usable(self) -> bool:
        """Whether receivers can verify signatures with the key."""
        return not self.is_revoked and not self.problem

    @property
    def is_strong(self) -> bool:
        """Whether the key has at least the recommended length."""
        return self.is_usable and (
            self.key_type == ED25519 or (self.bits is not None and self.bits >= GOOD_RSA_BITS)
        )

    @property
    def is_too_short(self) -> bool:
        """Whether the key is an RSA key that is too short for receivers."""
        return self.key_type == RSA and self.bits is not None and self.bits < MIN_RSA_BITS


def is_key_record(text: str) -> bool:
    """Return whether a TXT record is a key record.

    A key record begins with ``v=DKIM1``, or has ``p=`` but no ``v=``.
    """
    if has_version(text.lstrip(), VERSION):
        return True
    tags = parse_tag_list(text)
    is_clear = not tags.violations or "k" in tags.tags
    return "p" in tags.tags and "v" not in tags.tags and is_clear


def parse_key_record(text: str) -> KeyRecord:
    """Parse a key record, or a text that was intended as one."""
    tags = parse_tag_list(text)
    key_type = (tags.get("k") or RSA).lower()
    flags = _split(tags.get("t"))
    octets, problem = _decode(tags)
    bits = None
    if octets and not problem:
        bits, problem = _measure(key_type, octets)
    is_private = _PRIVATE in text[:MAX_ARMORED].upper() or _is_private(octets)
    if is_private:
        bits, problem = None, "contains a private key, so everybody can sign with it now"
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
        or detect_key_type(octets) == _OTHER
        or (key_type == RSA and bits is not None and bits < MIN_RSA_BITS),
    )


def _split(value: str | None) -> list[str]:
    return [part.strip().lower() for part in (value or "").split(":")]


def _decode(tags: TagList) -> tuple[bytes, str]:
    if tags.violations:
        # RFC 6376 3.2 and 6.1.2: an invalid tag list is not a key.
        return b"", f"is not a list of tags: {tags.violations[0]}"
    text = tags.get("p")
    if text is None:
        return b"", "has no key (no p=)"
    try:
        octets = base64.b64decode(re.sub("[ \t\r\n]", "", text), validate=True)
    except (binascii.Error, ValueError):
        return b"", "has a key that is not Base64: it was truncated or changed when it was pasted"
    if len(octets) > MAX_KEY_OCTETS:
        return octets, "has a key that is too large for verification"
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
        return None, "has an unreadable key: it was truncated or changed when it was pasted"
    if isinstance(key, RSAPublicKey):
        return key.key_size, ""
    kind = "an Ed25519" if isinstance(key, Ed25519PublicKey) else "another"
    return None, f"says that its key is RSA, but it is {kind} key"


def detect_key_type(octets: bytes) -> str:
    """Return `RSA`, `ED25519`, ``other`` for another kind of public key, or an empty string."""
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


def _is_private(octets: bytes) -> bool:
    """Return whether DER starts like a private key: a sequence with a version (RFC 8017 A.1.2).

    A public key starts with a sequence or with its modulus.
    """
    size = octets[1] & 0x7F if len(octets) > 1 and octets[1] & 0x80 else 0
    return octets[:1] == b"\x30" and octets[2 + size : 5 + size] == b"\x02\x01\x00"


def is_for_mail(tags: TagList) -> bool:
    """Return whether a key record allows signatures of mail."""
    return "s" not in tags.tags or not {"*", "email"}.isdisjoint(_split(tags.get("s")))


def _find_restriction(tags: TagList, bits: int | None, key_type: str) -> str:
    if not is_for_mail(tags):
        return f"is not for mail (s={tags.get('s')})"
    if "h" in tags.tags and "sha256" not in _split(tags.get("h")):
        return "allows only hash algorithms that receivers no longer accept (RFC 8301)"
    if key_type == RSA and bits is not None and bits < MIN_RSA_BITS:
        return f"has a key of only {bits} bits, which receivers no longer accept (RFC 8301)"
    return ""


MAX_TEXT = 8_192
"""Maximum length of a repaired text, in characters: a key of 16,384 bits with PEM lines."""

MAX_PIECES = 4
"""Maximum number of TXT records from which a key is joined."""

_NAMES = ("v", "k", "p", "t", "h", "s", "n", "g")
_ENDS = ("(?<=dkim1)", "(?<==rsa)", "(?<==ed25519)")
_ARMOR = re.compile(r"-{2,}[ \t]*(?:BEGIN|END)[A-Z0-9 ]*-{2,}", re.ASCII | re.IGNORECASE)
_ESCAPED_BLANKS = re.compile(r"\\+[nrt]|<[bB][rR][ \t]*/?>", re.ASCII)
_BACKSLASHES = re.compile(r"\\+")
_KEY_TAG = re.compile(r"(?:^|[\s;,:|])[pP]\s*[=:]\s*[\"']?[A-Za-z0-9+/]{16}", re.ASCII)
_BASE64_RUN = re.compile(r"[A-Za-z0-9+/]{60}", re.ASCII)


def looks_like_key(text: str) -> bool:
    """Return whether a TXT record was intended as a key record or as a part of one."""
    start = text[:MAX_TEXT]
    return bool(
        re.match(r"v?[=:]?dkim", start_of(text))
        or _KEY_TAG.search(start)
        or _ARMOR.search(start)
        or _BASE64_RUN.search(start)
    )


def read_key_records(texts: Sequence[str]) -> list[KeyRecord]:
    """Return the key records among the texts at one name.

    If none is valid, all texts that were intended as key records become one record with a problem.
    """
    found = [parse_key_record(text) for text in texts if is_key_record(text)]
    if not found:
        near = [text for text in texts if looks_like_key(text)]
        if not near:
            return []
        near.sort(key=lambda text: not _KEY_TAG.search(text[:MAX_TEXT]))
        record = parse_key_record(near[0])
        problem = record.problem if record.needs_new_key else "is not a DKIM key record"
        return [_with_repair(replace(record, problem=problem, bits=None, is_revoked=False), near)]
    if len(found) > 1:
        return [
            replace(found_record, repaired=_choose_record_to_keep(found_record, found))
            for found_record in found
        ]
    (record,) = found
    others = tuple(text for text in texts if text != record.text)
    if record.problem:
        return [_with_repair(record, [record.text, *filter(looks_like_key, others)])]
    return [replace(record, strays=others)]


def _with_repair(record: KeyRecord, texts: Sequence[str]) -> KeyRecord:
    if record.needs_new_key:
        return record
    repaired = repair_key_record(texts)
    is_cut = len(texts) > 1 and repaired is not None and repair_key_record(texts[:1]) is None
    mistake = (
        f"its key is cut into {len(texts)} records" if is_cut else describe_key_mistake(texts[0])
    )
    problem = f"{record.problem} ({mistake})" if mistake else record.problem
    return replace(record, problem=problem, repaired=repaired or "")


def _choose_record_to_keep(record: KeyRecord, found: Sequence[KeyRecord]) -> str:
    """Return the record to keep if several have the same key, or an empty string."""
    usable = [found_record for found_record in found if found_record.is_usable]
    if usable and len({found_record.key_data for found_record in found}) == 1:
        return usable[0].text
    if not usable and repair_key_record([record.text]) is None:
        return repair_key_record([found_record.text for found_record in found]) or ""
    return ""


def describe_key_mistake(text: str) -> str:
    """Return in a few words why a text is not a key record, or an empty string."""
    if _ARMOR.search(text[:MAX_TEXT]):
        return "it contains lines of a PEM file"
    named = name_mistake(text.strip())
    if named or is_key_record(text):
        return named
    tags = dict(find_tags(text[:MAX_TEXT], _NAMES))
    if "p" not in tags:
        return "it has no p= before the key"
    if tags.get("v", VERSION) != VERSION:
        return f'its version is "{tags["v"][:20]}", not {VERSION}'
    return "v= is after another tag" if "v" in tags else ""


def repair_key_record(texts: Sequence[str]) -> str | None:
    """Return the intended key record of some texts, with the same key.

    :param texts: one record, or the records into which a key was split.
    """
    if len(texts) > MAX_PIECES or sum(map(len, texts)) > MAX_TEXT:
        return None
    # A letter after a backslash is an escaped blank or, if that gives no key, part of the key.
    for strays in (_ESCAPED_BLANKS, _BACKSLASHES):
        read = [_read_piece(strays.sub("\n", text)) for text in texts]
        tags = {name: value for known, _ in reversed(read) for name, value in known.items()}
        for order in permutations([piece for _, piece in read]):
            for key_type, octets in _find_keys("".join(order)):
                record = _write_record(tags, key_type, octets)
                if not parse_key_record(record).problem:
                    return record
    return None


def _read_piece(text: str) -> tuple[dict[str, str], str]:
    """Return the tags of a text without its key, and the key as it is written."""
    clean = without_look_alikes(text)
    found = find_tags(clean, _NAMES, _ENDS)
    tags = dict(reversed(found))
    if "p" in tags:
        return tags, tags.pop("p")
    return tags, "" if tags else clean


def _find_keys(written: str) -> Iterator[tuple[str, bytes]]:
    """Yield the possible whole keys with their types, most likely first."""
    plain = _ARMOR.sub(" ", written)
    for reading in (plain, unquote(plain), plain.strip().replace(" ", "+")):
        letters = re.sub(r"[^A-Za-z0-9+/]", "", reading.translate(_URL_SAFE))
        octets = _cut_to_length(_decode_unpadded(letters))
        kind = detect_key_type(octets)
        if kind == RSA:
            yield RSA, octets
        elif kind == ED25519:
            yield ED25519, octets[-ED25519_OCTETS:]


def _decode_unpadded(letters: str) -> bytes:
    """Decode Base64 without padding; an incomplete octet at the end is dropped."""
    whole = letters[: len(letters) - (len(letters) % 4 == 1)]
    try:
        return base64.b64decode(whole + "=" * (-len(whole) % 4))
    except (binascii.Error, ValueError):
        return b""


def _cut_to_length(octets: bytes) -> bytes:
    """Return the octets of the DER value at the start, or empty if it is incomplete."""
    if len(octets) == ED25519_OCTETS or octets[:1] != b"\x30":
        return octets
    first = octets[1] if len(octets) > 1 else 0
    size = first & 0x7F if first & 0x80 else 0
    length = int.from_bytes(octets[2 : 2 + size], "big") if size else first
    end = 2 + size + length
    return octets[:end] if end <= len(octets) else b""


def _write_record(tags: Mapping[str, str], key_type: str, octets: bytes) -> str:
    kept = {"v": VERSION}
    if "k" in tags or key_type != RSA:
        kept["k"] = key_type
    hashes = [part.strip().lower() for part in tags.get("h", "").split(":")]
    if "sha256" in hashes:
        kept["h"] = tags["h"].lower()
    if "tlsrpt" in tags.get("s", "").lower():
        kept["s"] = tags["s"]
    for name in ("t", "n"):
        if tags.get(name):
            kept[name] = tags[name]
    kept["p"] = base64.b64encode(octets).decode()
    return "; ".join(f"{name}={value}" for name, value in kept.items())

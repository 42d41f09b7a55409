"""Names that mailcheck makes up: unguessable, made from randomness given by the caller."""

import hashlib
import hmac
from base64 import b64encode
from collections.abc import Callable
from itertools import product
from typing import NewType

from mailcheck.core.instants import Instant

RandomBytes = Callable[[int], bytes]
"""``random_bytes(n)`` gives ``n`` bytes fit for secrets (``os.urandom`` in the daemon)."""

AccountId = NewType("AccountId", str)
KeyId = NewType("KeyId", str)
DeliveryId = NewType("DeliveryId", str)
MessageId = NewType("MessageId", str)
DeliverabilityTestId = NewType("DeliverabilityTestId", str)
WebhookId = NewType("WebhookId", str)

API_KEY_PREFIX = "mck_"

KEY_FILE = "api-key"

ADDRESS_FILE = "url"
"""Beside it: where the daemon answers."""
"""In the state directory: the key that the first start has made, for commands to find."""

SHORT_ID_LENGTH = 13  # 13 characters of a-z2-7 are 65 bits

MIN_PRESET_KEY = 16
"""Characters of a key that the operator chooses (for CI services)."""


_PAIRS = ["".join(pair) for pair in product("abcdefghijklmnopqrstuvwxyz234567", repeat=2)]
"""The two characters for each ten bits."""


def _base32(data: bytes) -> str:
    """Write ``data`` in base32 (RFC 4648 6), in lower case and without padding.

    Twice as fast as `base64.b32encode`, whose work is most of making a token.
    """
    bits = 8 * len(data)
    filled = -(-bits // 10) * 10
    number = int.from_bytes(data) << filled - bits
    pairs = [_PAIRS[number >> shift & 1023] for shift in range(filled - 10, -1, -10)]
    return "".join(pairs)[: -(-bits // 5)]


def new_short_id(random_bytes: RandomBytes) -> str:
    """Make 13 characters of ``a-z2-7``: 65 random bits that survive case folding."""
    return _base32(random_bytes(9))[:SHORT_ID_LENGTH]


def new_time_ordered_id(now: Instant, random_bytes: RandomBytes) -> str:
    """Make a UUID version 7 (RFC 9562 5.7): rows made together lie together in an index."""
    value = (now & (1 << 48) - 1) << 80 | int.from_bytes(random_bytes(10))
    value = value & ~(0xF << 76) | 0x7 << 76
    digits = f"{value & ~(0x3 << 62) | 0x2 << 62:032x}"
    return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"


def first_id_of(moment: Instant) -> str:
    """Give what all time-ordered ids of a moment and of later ones come after."""
    digits = f"{moment & (1 << 48) - 1:012x}"
    return f"{digits[:8]}-{digits[8:]}"


def is_possible_key(secret: str) -> bool:
    """Tell whether a secret that the operator chose can be a key: long enough, plain ASCII."""
    return len(secret) >= MIN_PRESET_KEY and secret.isascii()


def new_api_key(random_bytes: RandomBytes) -> str:
    """Make an API key: a recognisable prefix and 160 random bits."""
    return API_KEY_PREFIX + _base32(random_bytes(20))


def new_share_token(random_bytes: RandomBytes) -> str:
    """Make the secret part of a share link: 128 random bits."""
    return _base32(random_bytes(16))


def new_webhook_secret(random_bytes: RandomBytes) -> str:
    """Make a secret that signs deliveries: 256 random bits as Standard Webhooks writes them."""
    return "whsec_" + b64encode(random_bytes(32)).decode()


def new_session_secret(random_bytes: RandomBytes) -> str:
    """Make what a session's cookie or an invitation's link holds: 160 random bits."""
    return _base32(random_bytes(20))


def new_device_secret(kept: str, random_bytes: RandomBytes) -> str:
    """Make what a browser keeps that has signed in: 80 random bits, and the proof that we made it.

    ``kept`` is what is stored of the account's password: another password ends the proof.
    """
    name = _base32(random_bytes(10))
    return name + _device_proof(name, kept)


def is_device_secret(secret: str, kept: str) -> bool:
    """Tell whether a browser has got this when it signed in to the account."""
    name, proof = secret[:_DEVICE_NAME], secret[_DEVICE_NAME:]
    return hmac.compare_digest(proof.encode(), _device_proof(name, kept).encode())


_DEVICE_NAME = 16
"""Characters of 80 bits."""


def _device_proof(name: str, kept: str) -> str:
    return _base32(hmac.digest(kept.encode(), b"mailcheck device " + name.encode(), "sha256")[:20])


def new_password(random_bytes: RandomBytes) -> str:
    """Make a password for a person to type: four groups of four letters, 80 random bits."""
    letters = _base32(random_bytes(10))
    return "-".join(letters[start : start + 4] for start in range(0, len(letters), 4))


def digest_secret(secret: str) -> bytes:
    """Hash a secret of full entropy for storage; SHA-256 is enough since it can't be guessed."""
    return hashlib.sha256(secret.encode("utf-8", "surrogateescape")).digest()


DRAW = 4_096
"""Bytes asked of the system at a time."""


class RandomPool:
    """Hands out bytes of a source of secrets, each once. For one thread."""

    def __init__(self, source: RandomBytes) -> None:
        self._source = source
        self._bytes = b""
        self._used = 0

    def __call__(self, length: int) -> bytes:
        """Give ``length`` bytes that nobody has got before."""
        if length > len(self._bytes) - self._used:
            self._bytes, self._used = self._source(max(DRAW, length)), 0
        start, self._used = self._used, self._used + length
        return self._bytes[start : self._used]

"""Names that mailcheck makes up: unguessable, made from randomness given by the caller.

A share token says which message or test it is for, and holds the secret that proves the right
to see it. The id leads to the row by its key, the secret is compared in constant time;
revoking changes the secret, deleting takes the row away.
"""

import base64
import binascii
import hashlib
import hmac
import re
import uuid
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
"""In the state directory: the key that the first start has made, for commands to find."""

ADDRESS_FILE = "url"
"""Beside it: where the daemon answers."""

SHORT_ID_LENGTH = 13  # 13 characters of a-z2-7 are 65 bits

_TEST_ID = re.compile("[a-z2-7]{13}")

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


def is_test_id(text: str) -> bool:
    """Tell whether a text has the form of a test's id."""
    return _TEST_ID.fullmatch(text) is not None


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


_ID_BYTES = 16


def format_share_token(message_id: MessageId, secret: str) -> str:
    """Write the token that stands at the end of a share link: ``<message><secret>``, base32."""
    head = base64.b32encode(uuid.UUID(message_id).bytes).decode("ascii")
    return head.rstrip("=").lower() + secret


def parse_share_token(token: str) -> tuple[MessageId, str]:
    """Take a token apart into message id and secret.

    :raises ValueError: no share link of this service has this form.
    """
    head_length = -(-_ID_BYTES * 8 // 5)
    head, secret = token[:head_length].upper(), token[head_length:]
    try:
        data = base64.b32decode(head + "=" * (-len(head) % 8))
        return MessageId(str(uuid.UUID(bytes=data))), secret
    except (binascii.Error, ValueError) as error:
        raise ValueError("not a share token") from error


def format_test_share_token(test_id: DeliverabilityTestId, secret: str) -> str:
    """Write the token of a deliverability test: ``<test><secret>``.

    That of a message is longer, and each names what it leads to: none leads to both.
    """
    return test_id + secret


def parse_test_share_token(token: str) -> tuple[DeliverabilityTestId, str]:
    """Take a token apart into test id and secret.

    :raises ValueError: no share link of a test has this form.
    """
    test_id, secret = token[:SHORT_ID_LENGTH], token[SHORT_ID_LENGTH:]
    if not is_test_id(test_id):
        raise ValueError("not a share token of a test")
    return DeliverabilityTestId(test_id), secret


def is_secret(given: str, kept: str) -> bool:
    """Compare two secrets in a time that tells nothing about where they differ."""
    return hmac.compare_digest(given.encode("utf-8", "replace"), kept.encode("utf-8"))

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
from io import BytesIO
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

PASSWORD_FILE = "dashboard-password"  # noqa: S105
"""In the state directory: the password that the first start has made."""

ADDRESS_FILE = "url"
"""Beside it: where the daemon answers."""

SHORT_ID_LENGTH = 13

SHARE_SECRET_LENGTH = 26
"""Letters of the secret in a share token."""

_TEST_ID = re.compile("[a-z2-7]{13}")

MIN_PRESET_KEY = 16
"""Characters of a key that the operator chooses (for CI services)."""


_LETTER_OF_BYTE = b"abcdefghijklmnopqrstuvwxyz234567" * 8
"""A letter for each byte: five bits of it. They survive case folding."""


def _letters(count: int, random_bytes: RandomBytes) -> str:
    """Make random letters of ``a-z2-7``, five bits each."""
    return random_bytes(count).translate(_LETTER_OF_BYTE).decode("ascii")


def new_short_id(random_bytes: RandomBytes) -> str:
    """Make 13 letters: 65 random bits."""
    return _letters(SHORT_ID_LENGTH, random_bytes)


def is_test_id(text: str) -> bool:
    """Tell whether a text has the form of a test's id."""
    return _TEST_ID.fullmatch(text) is not None


def new_time_ordered_id(now: Instant, random_bytes: RandomBytes) -> str:
    """Make a UUID version 7 (RFC 9562 5.7): rows made together lie together in an index."""
    digits = random_bytes(10).hex()
    variant = _VARIANTS[digits[4]]
    return f"{first_id_of(now)}-7{digits[1:4]}-{variant}{digits[5:8]}-{digits[8:]}"


_VARIANTS = dict(zip("0123456789abcdef", 4 * "89ab", strict=True))
"""The digit that says whose UUID it is (RFC 9562 4.1), with its two random bits."""


def first_id_of(moment: Instant) -> str:
    """Give what all time-ordered ids of a moment and of later ones come after."""
    return f"{moment >> 16 & 0xFFFFFFFF:08x}-{moment & 0xFFFF:04x}"


def is_possible_key(secret: str) -> bool:
    """Tell whether a secret that the operator chose can be a key: long enough, plain ASCII."""
    return len(secret) >= MIN_PRESET_KEY and secret.isascii()


def new_api_key(random_bytes: RandomBytes) -> str:
    """Make an API key: a recognisable prefix and 160 random bits."""
    return API_KEY_PREFIX + _letters(32, random_bytes)


def new_share_token(random_bytes: RandomBytes) -> str:
    """Make the secret part of a share link: 130 random bits."""
    return _letters(SHARE_SECRET_LENGTH, random_bytes)


def new_webhook_secret(random_bytes: RandomBytes) -> str:
    """Make a secret that signs deliveries: 256 random bits as Standard Webhooks writes them."""
    return "whsec_" + b64encode(random_bytes(32)).decode()


def new_session_secret(random_bytes: RandomBytes) -> str:
    """Make what a session's cookie or an invitation's link holds: 160 random bits."""
    return _letters(32, random_bytes)


def new_device_secret(kept: str, random_bytes: RandomBytes) -> str:
    """Make what a browser keeps that has signed in: 80 random bits, and the proof that we made it.

    ``kept`` is what is stored of the account's password: another password ends the proof.
    """
    name = _letters(_DEVICE_NAME, random_bytes)
    return name + _device_proof(name, kept)


def is_device_secret(secret: str, kept: str) -> bool:
    """Tell whether a browser has got this when it signed in to the account."""
    name, proof = secret[:_DEVICE_NAME], secret[_DEVICE_NAME:]
    return hmac.compare_digest(proof.encode(), _device_proof(name, kept).encode())


_DEVICE_NAME = 16
"""Letters of 80 bits."""


def _device_proof(name: str, kept: str) -> str:
    proof = hmac.digest(kept.encode(), b"mailcheck device " + name.encode(), "sha256")
    return base64.b32encode(proof[:20]).decode("ascii").lower()


def new_password(random_bytes: RandomBytes) -> str:
    """Make a password for a person to type: four groups of four letters, 80 random bits."""
    letters = _letters(16, random_bytes)
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
        self._drawn = BytesIO()

    def __call__(self, length: int) -> bytes:
        """Give ``length`` bytes that nobody has got before."""
        given = self._drawn.read(length)
        if len(given) < length:
            self._drawn = BytesIO(self._source(max(DRAW, length)))
            given = self._drawn.read(length)
        return given


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

"""Random identifiers, keys and secrets, made from randomness that the caller passes.

A share token has the id of a message or test and the secret that grants access to it. The row
is found by the id, and the secret is compared in constant time. Revoking changes the secret;
deleting removes the row.
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
"""``random_bytes(n)`` returns ``n`` bytes suitable for secrets (``os.urandom`` in the daemon)."""

AccountId = NewType("AccountId", str)
KeyId = NewType("KeyId", str)
DeliveryId = NewType("DeliveryId", str)
MessageId = NewType("MessageId", str)
DeliverabilityTestId = NewType("DeliverabilityTestId", str)
WebhookId = NewType("WebhookId", str)

API_KEY_PREFIX = "mck_"

KEY_FILE = "api-key"
"""File in the state directory with the first API key, for commands to read."""

PASSWORD_FILE = "dashboard-password"  # noqa: S105
"""File in the state directory with the first password."""

ADDRESS_FILE = "url"
"""File in the state directory with the URL of the daemon."""

SHORT_ID_LENGTH = 13

SHARE_SECRET_LENGTH = 26
"""Number of letters of the secret in a share token."""

_TEST_ID = re.compile("[a-z2-7]{13}")

MIN_PRESET_KEY = 16
"""Minimum number of characters of a key that the operator chooses (for CI services)."""


_LETTER_OF_BYTE = b"abcdefghijklmnopqrstuvwxyz234567" * 8
"""The letter for each byte, made from five of its bits. The letters survive case folding."""


_VARIANTS = dict(zip("0123456789abcdef", 4 * "89ab", strict=True))
"""The digit with the variant of the UUID (RFC 9562 4.1) and two random bits."""

_DEVICE_NAME = 16
"""Number of letters of a device name: 80 bits."""


def _letters(count: int, random_bytes: RandomBytes) -> str:
    """Return random letters of ``a-z2-7``, five bits each."""
    return random_bytes(count).translate(_LETTER_OF_BYTE).decode("ascii")


def new_short_id(random_bytes: RandomBytes) -> str:
    """Return an id of 13 random letters (65 bits)."""
    return _letters(SHORT_ID_LENGTH, random_bytes)


def is_test_id(text: str) -> bool:
    """Return whether a text has the form of a test's id."""
    return _TEST_ID.fullmatch(text) is not None


def new_time_ordered_id(now: Instant, random_bytes: RandomBytes) -> str:
    """Return a UUID version 7 (RFC 9562 5.7). Rows created together are adjacent in an index."""
    digits = random_bytes(10).hex()
    variant = _VARIANTS[digits[4]]
    return f"{first_id_of(now)}-7{digits[1:4]}-{variant}{digits[5:8]}-{digits[8:]}"


def first_id_of(moment: Instant) -> str:
    """Return the prefix that sorts before all time-ordered ids of this moment and later."""
    return f"{moment >> 16 & 0xFFFFFFFF:08x}-{moment & 0xFFFF:04x}"


def is_possible_key(secret: str) -> bool:
    """Return whether a key that the operator chose is long enough and plain ASCII."""
    return len(secret) >= MIN_PRESET_KEY and secret.isascii()


def new_api_key(random_bytes: RandomBytes) -> str:
    """Return an API key: a recognisable prefix and 160 random bits."""
    return API_KEY_PREFIX + _letters(32, random_bytes)


ACCESS_TOKEN_PREFIX = "mca_"  # noqa: S105
REFRESH_TOKEN_PREFIX = "mcr_"  # noqa: S105
CODE_PREFIX = "mcc_"
CLIENT_SECRET_PREFIX = "mcs_"  # noqa: S105


def new_oauth_secret(prefix: str, random_bytes: RandomBytes) -> str:
    """Return a token, a code or the secret of a client: a prefix and 160 random bits."""
    return prefix + _letters(32, random_bytes)


def new_share_token(random_bytes: RandomBytes) -> str:
    """Return the secret part of a share link: 130 random bits."""
    return _letters(SHARE_SECRET_LENGTH, random_bytes)


def new_webhook_secret(random_bytes: RandomBytes) -> str:
    """Return a secret that signs deliveries: 256 random bits in the form of Standard Webhooks."""
    return "whsec_" + b64encode(random_bytes(32)).decode()


def new_session_secret(random_bytes: RandomBytes) -> str:
    """Return a secret for a session cookie or an invitation link: 160 random bits."""
    return _letters(32, random_bytes)


def new_device_secret(kept: str, random_bytes: RandomBytes) -> str:
    """Return a secret for a browser that has signed in: 80 random bits and a proof of origin.

    ``kept`` is the stored hash of the account's password. A new password invalidates the proof.
    """
    name = _letters(_DEVICE_NAME, random_bytes)
    return name + _device_proof(name, kept)


def is_device_secret(secret: str, kept: str) -> bool:
    """Return whether the secret was issued to a browser that signed in to the account."""
    name, proof = secret[:_DEVICE_NAME], secret[_DEVICE_NAME:]
    return hmac.compare_digest(proof.encode(), _device_proof(name, kept).encode())


def _device_proof(name: str, kept: str) -> str:
    proof = hmac.digest(kept.encode(), b"mailcheck device " + name.encode(), "sha256")
    return base64.b32encode(proof[:20]).decode("ascii").lower()


def new_password(random_bytes: RandomBytes) -> str:
    """Return a password for people to type: four groups of four letters, 80 random bits."""
    letters = _letters(16, random_bytes)
    return "-".join(letters[start : start + 4] for start in range(0, len(letters), 4))


def digest_secret(secret: str) -> bytes:
    """Return the SHA-256 of a random secret for storage. It cannot be guessed."""
    return hashlib.sha256(secret.encode("utf-8", "surrogateescape")).digest()


DRAW = 4_096
"""Number of bytes read from the system at a time."""


class RandomPool:
    """Buffers bytes of a random source and returns each byte once. Not thread-safe."""

    def __init__(self, source: RandomBytes) -> None:
        self._source = source
        self._drawn = BytesIO()

    def __call__(self, length: int) -> bytes:
        """Return ``length`` bytes that were not returned before."""
        given = self._drawn.read(length)
        if len(given) < length:
            self._drawn = BytesIO(self._source(max(DRAW, length)))
            given = self._drawn.read(length)
        return given


_ID_BYTES = 16


def format_share_token(message_id: MessageId, secret: str) -> str:
    """Return the token of a message's share link: ``<message><secret>`` in base32."""
    head = base64.b32encode(uuid.UUID(message_id).bytes).decode("ascii")
    return head.rstrip("=").lower() + secret


def parse_share_token(token: str) -> tuple[MessageId, str]:
    """Split a token into message id and secret.

    :raises ValueError: the text does not have the form of a token.
    """
    head_length = -(-_ID_BYTES * 8 // 5)
    head, secret = token[:head_length].upper(), token[head_length:]
    try:
        data = base64.b32decode(head + "=" * (-len(head) % 8))
        return MessageId(str(uuid.UUID(bytes=data))), secret
    except (binascii.Error, ValueError) as error:
        raise ValueError("not a share token") from error


def format_attachment_token(
    message_id: MessageId, attachment_id: str, share_secret: str, ends_at: Instant
) -> str:
    """Return the token of a link to one attachment, which is valid until an instant.

    It is derived from the secret of the message's share link, so revoking that revokes it too.
    """
    return format_share_token(message_id, attachment_secret(attachment_id, share_secret, ends_at))


def attachment_secret(attachment_id: str, share_secret: str, ends_at: Instant) -> str:
    """Return the secret part of an attachment token: its end, and the proof of both."""
    signed = f"mailcheck attachment {attachment_id} {ends_at}".encode()
    proof = hmac.digest(share_secret.encode(), signed, hashlib.sha256)
    return f"{ends_at:016x}" + base64.b32encode(proof[:20]).decode("ascii").lower()


def end_of_attachment_token(token: str) -> Instant:
    """Return the instant at which a link to an attachment ends, before its proof is checked.

    :raises ValueError: the text does not have the form of a token.
    """
    _, secret = parse_share_token(token)
    return Instant(int(secret[:16], 16))


def format_test_share_token(test_id: DeliverabilityTestId, secret: str) -> str:
    """Return the share token of a deliverability test: ``<test><secret>``.

    Tokens of messages are longer, so a token is never valid for both.
    """
    return test_id + secret


def parse_test_share_token(token: str) -> tuple[DeliverabilityTestId, str]:
    """Split a token into test id and secret.

    :raises ValueError: the text does not have the form of a token.
    """
    test_id, secret = token[:SHORT_ID_LENGTH], token[SHORT_ID_LENGTH:]
    if not is_test_id(test_id):
        raise ValueError("not a share token of a test")
    return DeliverabilityTestId(test_id), secret


def is_secret(given: str, kept: str) -> bool:
    """Return whether two secrets are equal, in constant time."""
    return hmac.compare_digest(given.encode("utf-8", "replace"), kept.encode("utf-8"))

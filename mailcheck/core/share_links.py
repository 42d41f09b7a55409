"""Share tokens: which message or test, and the secret that proves the right to see it.

The id leads to the row by its key, the secret is compared in
constant time; revoking changes the secret, deleting takes the row away.
"""

import base64
import binascii
import hmac
import uuid

from mailcheck.core.deliverability_tests import is_test_id
from mailcheck.core.identifiers import SHORT_ID_LENGTH, DeliverabilityTestId, MessageId

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

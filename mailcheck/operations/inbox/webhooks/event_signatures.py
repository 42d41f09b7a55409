"""The keys and signatures of events in the format of a provider."""

import hashlib
import hmac
from base64 import b64encode
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey

_ORDER = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551
"""The order of the curve P-256 (SP 800-186 3.2.1.3)."""


def sign_with_hmac(secret: str, timestamp: str, token: str) -> str:
    """Return the signature of an event of Mailgun, in hexadecimal digits."""
    return hmac.new(secret.encode(), f"{timestamp}{token}".encode(), hashlib.sha256).hexdigest()


def sign_body_with_hmac(secret: str, body: bytes) -> str:
    """Return the signature of an event of Mailtrap, in hexadecimal digits."""
    return hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()


def sign_with_ecdsa(secret: str, timestamp: str, body: bytes) -> str:
    """Return the signature of an event of SendGrid, in Base64."""
    from cryptography.hazmat.primitives.asymmetric.ec import ECDSA
    from cryptography.hazmat.primitives.hashes import SHA256

    signature = _private_key(secret).sign(timestamp.encode() + body, ECDSA(SHA256()))
    return b64encode(signature).decode()


def verification_key(secret: str) -> str:
    """Return the public key for `sign_with_ecdsa`, in Base64 as SendGrid shows it."""
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

    public = _private_key(secret).public_key()
    return b64encode(public.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)).decode()


def _private_key(secret: str) -> "EllipticCurvePrivateKey":
    """Return the key that follows from the secret of a webhook, so that only one is stored."""
    # Imported here, since most daemons never need it.
    from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, derive_private_key

    number = int.from_bytes(hashlib.sha512(secret.encode()).digest(), "big")
    return derive_private_key(number % (_ORDER - 1) + 1, SECP256R1())

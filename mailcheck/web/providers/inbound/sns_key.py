"""The key and the certificate that sign notifications of SNS.

Both follow from the secret of the route. So they are the same in all daemons and after a restart,
and nothing is stored.
"""

import hashlib
import math
from base64 import b64encode
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey

KEY_BITS = 2_048
PUBLIC_EXPONENT = 65_537

MOST_KEYS = 64
"""Number of keys that are kept in memory. Each takes about a quarter of a second to derive."""

VALID_FROM, VALID_FOR = datetime(2026, 1, 1, tzinfo=UTC), timedelta(days=3_650)

_ROUNDS = 8
"""Rounds of Miller and Rabin. FIPS 186-5 B.1 requires five for primes of this size."""

_SMALL_PRIMES = math.prod(
    number for number in range(3, 2_000) if all(number % other for other in range(2, number))
)


def sign(secret: str, text: str) -> str:
    """Return the signature of SignatureVersion 1 in Base64: RSA with SHA-1 and PKCS #1 1.5."""
    from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
    from cryptography.hazmat.primitives.hashes import SHA1

    # SHA-1 is what SNS uses unless a topic is set to version 2.
    signature = derive_key(secret).sign(text.encode("utf-8", "replace"), PKCS1v15(), SHA1())  # noqa: S303
    return b64encode(signature).decode()


@lru_cache(MOST_KEYS)
def write_certificate(secret: str) -> bytes:
    """Return the certificate of a key in PEM. It is signed by the key itself."""
    from cryptography import x509
    from cryptography.hazmat.primitives.hashes import SHA256
    from cryptography.hazmat.primitives.serialization import Encoding
    from cryptography.x509.oid import NameOID

    key = derive_key(secret)
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "sns.mailcheck.example")])
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(int.from_bytes(_draw(secret, "serial", 8), "big") | 1)
        .not_valid_before(VALID_FROM)
        .not_valid_after(VALID_FROM + VALID_FOR)
        .sign(key, SHA256())
    )
    return certificate.public_bytes(Encoding.PEM)


@lru_cache(MOST_KEYS)
def derive_key(secret: str) -> "RSAPrivateKey":
    """Return the RSA key that follows from a secret (FIPS 186-5 A.1.3)."""
    from cryptography.hazmat.primitives.asymmetric import rsa

    p, q = _prime(secret, "p"), _prime(secret, "q")
    d = pow(PUBLIC_EXPONENT, -1, math.lcm(p - 1, q - 1))
    numbers = rsa.RSAPrivateNumbers(
        p,
        q,
        d,
        rsa.rsa_crt_dmp1(d, p),
        rsa.rsa_crt_dmq1(d, q),
        rsa.rsa_crt_iqmp(p, q),
        rsa.RSAPublicNumbers(PUBLIC_EXPONENT, p * q),
    )
    return numbers.private_key()


def _prime(secret: str, name: str) -> int:
    """Return the first prime at or after a number that follows from the secret.

    Its two highest bits are set, so that the product of two has exactly `KEY_BITS` bits.
    """
    size = KEY_BITS // 2
    number = int.from_bytes(_draw(secret, name, size // 8), "big")
    number |= 3 << (size - 2) | 1
    while not _is_prime(number) or math.gcd(number - 1, PUBLIC_EXPONENT) != 1:
        number += 2
    return number


def _is_prime(number: int) -> bool:
    """Return whether a large odd number is prime (Miller and Rabin, FIPS 186-5 B.3.1)."""
    if math.gcd(number, _SMALL_PRIMES) != 1:
        return False
    exponent = (number - 1 & 1 - number).bit_length() - 1
    odd = number >> exponent
    return all(_passes(number, base, odd, exponent) for base in _bases(number))


def _bases(number: int) -> list[int]:
    size = number.bit_length() // 8
    return [
        2 + int.from_bytes(_draw(str(number), str(index), size), "big") % (number - 3)
        for index in range(_ROUNDS)
    ]


def _passes(number: int, base: int, odd: int, exponent: int) -> bool:
    value = pow(base, odd, number)
    if value in (1, number - 1):
        return True
    for _ in range(exponent - 1):
        value = value * value % number
        if value == number - 1:
            return True
    return False


def _draw(secret: str, name: str, size: int) -> bytes:
    """Return bytes that follow from a secret and a name."""
    return hashlib.shake_256(f"mailcheck SNS {name}\0{secret}".encode()).digest(size)

"""Logos and mark certificates for tests, with one fault each.

Keys are made once. A certificate is built from `Mark`, whose defaults make one without a fault.
"""

import base64
import gzip
import hashlib
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from functools import cache

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509 import oid
from msgspec import Struct

from mailcheck.checks.bimi.certificate import LOGOTYPE, MARK_TYPE, PURPOSE, KnownRoots, Root
from tests.fakes.clock_and_randomness import TEST_START

NOW = datetime.fromtimestamp(TEST_START, UTC).replace(microsecond=0)
DOMAIN = "d.example"
LOGO_URL, CERTIFICATE_URL = f"https://www.{DOMAIN}/logo.svg", f"https://www.{DOMAIN}/mark.pem"
RECORD = f"v=BIMI1; l={LOGO_URL}; a={CERTIFICATE_URL};"

SHA1, SHA_256 = "2b0e03021a", "608648016503040201"


def svg(
    inside: str = '<path fill="#06c" d="M0 0h64v64H0z"/>',
    *,
    root: str = 'xmlns="http://www.w3.org/2000/svg" version="1.2" baseProfile="tiny-ps"',
    box: str = ' viewBox="0 0 64 64"',
    title: str = "<title>Shop</title>",
    before: str = '<?xml version="1.0" encoding="UTF-8"?>',
) -> bytes:
    """Return a logo; the defaults have no fault."""
    return f"{before}<svg {root}{box}>{title}{inside}</svg>".encode()


GOOD_LOGO = svg()


def der(tag: int, *contents: bytes) -> bytes:
    """Return an element in DER."""
    value = b"".join(contents)
    length = len(value)
    if length < 0x80:
        return bytes((tag, length)) + value
    octets = length.to_bytes((length.bit_length() + 7) // 8)
    return bytes((tag, 0x80 | len(octets))) + octets + value


def logotype(
    logo: bytes,
    *,
    hashed: bytes | None = None,
    media_type: str = "image/svg+xml",
    uri: str | None = None,
    algorithms: Sequence[str] = (SHA1, SHA_256),
) -> bytes:
    """Return the value of a logotype extension.

    :param hashed: the octets whose hashes are in it; `None` for those of the logo.
    """
    hashes = {SHA1: hashlib.sha1, SHA_256: hashlib.sha256}
    packed = base64.b64encode(gzip.compress(logo, mtime=0)).decode()
    text = uri if uri is not None else f"data:image/svg+xml;base64,{packed}"
    pairs = [
        der(
            0x30,
            der(0x30, der(0x06, bytes.fromhex(name)), der(0x05)),
            der(
                0x04, hashes.get(name, hashlib.sha256)(logo if hashed is None else hashed).digest()
            ),
        )
        for name in algorithms
    ]
    details = der(
        0x30,
        der(0x16, media_type.encode()),
        der(0x30, *pairs),
        der(0x30, der(0x16, text.encode())),
    )
    return der(0x30, der(0xA2, der(0xA0, der(0x30, der(0x30, details)))))


Key = ec.EllipticCurvePrivateKey


@cache
def key(name: str) -> Key:
    """Return the key of an authority or a mark."""
    del name
    return ec.generate_private_key(ec.SECP256R1())


def _name(common_name: str, *more: x509.NameAttribute[str]) -> x509.Name:
    organization = x509.NameAttribute(oid.NameOID.ORGANIZATION_NAME, common_name)
    return x509.Name(
        [organization, x509.NameAttribute(oid.NameOID.COMMON_NAME, common_name), *more]
    )


def authority(
    name: str = "Mark Root",
    issuer: str = "",
    *,
    ends: datetime = NOW + timedelta(days=3650),
    may_sign: bool = True,
) -> x509.Certificate:
    """Return the certificate of an authority; without an issuer, it is a root."""
    builder = (
        x509.CertificateBuilder()
        .subject_name(_name(name))
        .issuer_name(_name(issuer or name))
        .public_key(key(name).public_key())
        .serial_number(1)
        .not_valid_before(NOW - timedelta(days=3650))
        .not_valid_after(ends)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
    )
    usage = dict.fromkeys(
        (
            *("digital_signature", "content_commitment", "key_encipherment", "data_encipherment"),
            *("key_agreement", "crl_sign", "encipher_only", "decipher_only"),
        ),
        False,
    )
    builder = builder.add_extension(x509.KeyUsage(key_cert_sign=may_sign, **usage), critical=True)
    return builder.sign(key(issuer or name), SHA256())


ROOT = authority()
ISSUER = authority("Mark Issuer", "Mark Root")


def roots(*, distrusted_after: str = "") -> KnownRoots:
    """Return the root of these tests as the only known one."""
    digest = ROOT.fingerprint(SHA256())
    root = Root(
        "Mark Root", digest.hex(), "made by a test", ("marks.example",), distrusted_after, "A"
    )
    return {digest: (root, ROOT)}


class Mark(Struct, frozen=True):
    """A mark certificate. ``begins`` and ``ends`` are in days from now."""

    domains: Sequence[str] = (DOMAIN,)
    mark_type: str = "Registered Mark"
    begins: float = -10
    ends: float = 300
    has_purpose: bool = True
    has_timestamps: bool = True
    extension: bytes | None = logotype(GOOD_LOGO)
    issuer: str = "Mark Issuer"
    signer: str = ""

    def build(self) -> x509.Certificate:
        """Return the certificate."""
        kind = [x509.NameAttribute(MARK_TYPE, self.mark_type)] if self.mark_type else []
        builder = (
            x509.CertificateBuilder()
            .subject_name(_name("Shop", *kind))
            .issuer_name(_name(self.issuer))
            .public_key(key("Shop").public_key())
            .serial_number(2)
            .not_valid_before(NOW + timedelta(days=self.begins))
            .not_valid_after(NOW + timedelta(days=self.ends))
        )
        if self.domains:
            names = x509.SubjectAlternativeName([x509.DNSName(one) for one in self.domains])
            builder = builder.add_extension(names, critical=False)
        purpose = PURPOSE if self.has_purpose else oid.ExtendedKeyUsageOID.SERVER_AUTH
        builder = builder.add_extension(x509.ExtendedKeyUsage([purpose]), critical=False)
        if self.extension is not None:
            unknown = x509.UnrecognizedExtension(LOGOTYPE, self.extension)
            builder = builder.add_extension(unknown, critical=False)
        if self.has_timestamps:
            sct = x509.UnrecognizedExtension(
                oid.ExtensionOID.PRECERT_SIGNED_CERTIFICATE_TIMESTAMPS, _timestamps()
            )
            builder = builder.add_extension(sct, critical=False)
        return builder.sign(key(self.signer or self.issuer), SHA256())


def _timestamps() -> bytes:
    """Return a list of one timestamp (RFC 6962 3.3); its signature is not valid."""
    signature = b"\x04\x03\x00\x02\x30\x00"
    sct = b"\0" + bytes(32) + int(TEST_START * 1000).to_bytes(8) + b"\0\0" + signature
    entry = len(sct).to_bytes(2) + sct
    return der(0x04, len(entry).to_bytes(2) + entry)


def pem(*certificates: x509.Certificate) -> bytes:
    """Return a file of certificates."""
    return b"".join(one.public_bytes(Encoding.PEM) for one in certificates)


def bundle(mark: Mark | None = None) -> bytes:
    """Return the file of a mark certificate with its issuer."""
    return pem((mark or Mark()).build(), ISSUER)

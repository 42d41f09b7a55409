"""Certificates for tests: an authority, and the certificates of hosts.

authority = Authority()
tls = server_options(authority.issue("mx.example"))
authority.write_to(tmp_path / "ca.pem")
"""

import datetime
from dataclasses import dataclass
from functools import cache
from ipaddress import ip_address
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from OpenSSL import SSL
from twisted.internet.interfaces import IOpenSSLContextFactory
from twisted.internet.ssl import CertificateOptions
from zope.interface import implementer

TODAY = datetime.datetime.now(datetime.UTC)
YEAR = datetime.timedelta(days=365)


@dataclass(frozen=True)
class Issued:
    """A certificate with its key."""

    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey

    def write_to(self, folder: Path, name: str = "server") -> tuple[Path, Path]:
        """Write both as PEM files; return their paths, the certificate first."""
        certificate_path, key_path = folder / f"{name}.pem", folder / f"{name}-key.pem"
        certificate_path.write_bytes(self.certificate.public_bytes(serialization.Encoding.PEM))
        key_path.write_bytes(
            self.key.private_bytes(
                serialization.Encoding.PEM,
                serialization.PrivateFormat.PKCS8,
                serialization.NoEncryption(),
            )
        )
        return certificate_path, key_path


@cache
def _key(purpose: str) -> ec.EllipticCurvePrivateKey:
    return ec.generate_private_key(ec.SECP256R1())


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def _builder(
    subject: str, issuer: str, key: ec.EllipticCurvePrivateKey, until: datetime.datetime
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(_name(subject))
        .issuer_name(_name(issuer))
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(TODAY - 2 * YEAR)
        .not_valid_after(until)
    )


class Authority:
    """A certificate authority."""

    def __init__(self, name: str = "Authority of the tests") -> None:
        self._name = name
        self._key = _key(name)
        self.certificate = (
            _builder(name, name, self._key, TODAY + YEAR)
            .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
            .sign(self._key, hashes.SHA256())
        )

    def issue(self, *names: str, is_expired: bool = False) -> Issued:
        """Issue a certificate for host names and IP addresses."""
        until = TODAY - YEAR if is_expired else TODAY + YEAR
        key = _key("server")
        builder = _builder(names[0] if names else "nobody", self._name, key, until)
        if names:
            alternatives = x509.SubjectAlternativeName([_general_name(name) for name in names])
            builder = builder.add_extension(alternatives, critical=False)
        return Issued(builder.sign(self._key, hashes.SHA256()), key)

    def write_to(self, path: Path) -> str:
        """Write the authority's certificate as a PEM file; return its path."""
        path.write_bytes(self.certificate.public_bytes(serialization.Encoding.PEM))
        return str(path)


def self_signed(*names: str) -> Issued:
    """Return a self-signed certificate."""
    key = _key("server")
    builder = _builder(names[0], names[0], key, TODAY + YEAR)
    alternatives = x509.SubjectAlternativeName([_general_name(name) for name in names])
    builder = builder.add_extension(alternatives, critical=False)
    return Issued(builder.sign(key, hashes.SHA256()), key)


def server_options(issued: Issued) -> CertificateOptions:
    """Return the options for a TLS server of Twisted."""
    certificate: Any = issued.certificate
    key: Any = issued.key
    return CertificateOptions(privateKey=key, certificate=certificate)


@implementer(IOpenSSLContextFactory)
class OldServer:
    """A TLS server that supports only one version, which may be old."""

    def __init__(self, issued: Issued, version: int) -> None:
        context = SSL.Context(SSL.TLS_METHOD)
        context.set_min_proto_version(version)
        context.set_max_proto_version(version)
        context.set_cipher_list(b"ALL:@SECLEVEL=0")
        context.use_certificate(issued.certificate)
        context.use_privatekey(issued.key)
        self._context = context

    def getContext(self) -> SSL.Context:
        """Return the context, as Twisted requires."""
        return self._context


def _general_name(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ip_address(name))
    except ValueError:
        return x509.DNSName(name)

"""The certificate authorities that probes trust."""

import re
from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from msgspec import Struct
from OpenSSL import SSL, crypto
from twisted.internet.interfaces import IOpenSSLClientConnectionCreator
from twisted.internet.ssl import Certificate, optionsForClientTLS, trustRootFromCertificates
from twisted.web.iweb import IPolicyForHTTPS
from zope.interface import implementer

CA_FILES = (
    "/etc/ssl/certs/ca-certificates.crt",  # Debian, Ubuntu, Arch
    "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",  # Fedora, RHEL
    "/etc/ssl/ca-bundle.pem",  # openSUSE
    "/etc/ssl/cert.pem",  # macOS, Alpine, the BSDs
)
"""Where systems store the authorities of the web. The OpenSSL in a wheel knows none of them."""

_CERTIFICATE = re.compile(rb"-----BEGIN CERTIFICATE-----[^-]*-----END CERTIFICATE-----")


class NoAuthorities(Exception):
    """No file with certificate authorities was found, or it contains none."""


class TrustRoots(Struct, frozen=True, dict=True):
    """Certificate authorities, loaded once."""

    certificates: tuple[crypto.X509, ...]

    def __bool__(self) -> bool:
        """Return whether certificates can be verified at all."""
        return bool(self.certificates)

    def add_to(self, context: SSL.Context) -> None:
        """Let an OpenSSL context trust the authorities."""
        store = context.get_cert_store()
        if store is None:  # pyOpenSSL: "a SSL_CTX without a store", which it never makes
            raise NoAuthorities("OpenSSL has no certificate store")
        for certificate in self.certificates:
            store.add_cert(certificate)

    def verify_as(self, host: str) -> IOpenSSLClientConnectionCreator:
        """Return the TLS options for a host that must prove its name or IP address."""
        return optionsForClientTLS(host, trustRoot=self._for_twisted)

    @cached_property
    def _for_twisted(self) -> Any:
        return trustRootFromCertificates(
            [Certificate(certificate) for certificate in self.certificates]
        )


FindTrust = Callable[[], TrustRoots]


@implementer(IPolicyForHTTPS)
class VerifiedHosts(Struct, frozen=True, eq=False):
    """The policy of an `Agent` whose hosts must prove their names.

    :param find_trust: loads the certificate authorities. It is called for each connection.
    """

    find_trust: FindTrust

    def creatorForNetloc(self, hostname: bytes, port: int) -> IOpenSSLClientConnectionCreator:  # noqa: N802
        """Return the options of TLS, as `IPolicyForHTTPS` requires."""
        return self.find_trust().verify_as(hostname.decode("ascii"))


def find_trust_roots(ca_file: str, system_files: Sequence[str] = CA_FILES) -> TrustRoots:
    """Load the authorities from a PEM file, or from the system's file if none is named.

    :raises NoAuthorities: the message says what to install or to configure.
    """
    for path in [ca_file] if ca_file else system_files:
        certificates = _read(Path(path))
        if certificates:
            return TrustRoots(tuple(certificates))
    if ca_file:
        raise NoAuthorities(f"{ca_file} cannot be read or contains no certificate")
    raise NoAuthorities(
        "no certificate authorities were found on this machine; install the package"
        " ca-certificates, or name a PEM file in [probes] ca_file"
    )


def _read(path: Path) -> Sequence[crypto.X509]:
    try:
        text = path.read_bytes()
        return [
            crypto.load_certificate(crypto.FILETYPE_PEM, block)
            for block in _CERTIFICATE.findall(text)
        ]
    except (OSError, crypto.Error):
        return []

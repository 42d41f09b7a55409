"""A TLS handshake that is completed with anybody, to learn what a mail host offers.

Mail servers encrypt without believing the certificate (RFC 7435), so a bad one
must not end the probe: what is wrong with it is noted instead. For the same
reason versions and ciphers are accepted that nobody should use any more;
nothing is ever sent over such a connection but the end of it.
"""

from cryptography import x509
from OpenSSL import SSL
from service_identity import CertificateError, VerificationError
from service_identity.cryptography import verify_certificate_hostname
from twisted.internet.interfaces import IOpenSSLClientConnectionCreator
from twisted.protocols.tls import TLSMemoryBIOProtocol
from zope.interface import implementer

from mailcheck.probes.trust import TrustRoots

CIPHERS = b"ALL:!aNULL:!eNULL:@SECLEVEL=0"
"""All that come with a certificate and encrypt; level 0 lets TLS 1.0 and short keys through."""

_LEGACY_SERVER_CONNECT = 0x4  # SSL_OP_LEGACY_SERVER_CONNECT: servers without RFC 5746

# What service-identity and cryptography raise about certificates that don't fit, or are broken.
_MISFITS = (
    CertificateError,
    VerificationError,
    ValueError,
    x509.DuplicateExtension,
    x509.UnsupportedGeneralNameType,
)


def make_observing_context(trust: TrustRoots) -> SSL.Context:
    """Make the context that all such handshakes share."""
    context = SSL.Context(SSL.TLS_METHOD)
    context.set_min_proto_version(SSL.TLS1_VERSION)
    context.set_cipher_list(CIPHERS)
    context.set_options(_LEGACY_SERVER_CONNECT)
    trust.add_to(context)
    return context


@implementer(IOpenSSLClientConnectionCreator)
class ObservedTls:
    """One handshake with a host; its facts are there once it is complete."""

    def __init__(self, context: SSL.Context, host: str) -> None:
        self._context = context
        self._host = host
        self._connection: SSL.Connection | None = None
        self.is_certificate_trusted = True

    def clientConnectionForTLS(self, _: TLSMemoryBIOProtocol) -> SSL.Connection:  # noqa: N802
        """Make the connection, as Twisted asks for it."""
        connection = SSL.Connection(self._context, None)
        connection.set_tlsext_host_name(self._host.encode("ascii"))
        connection.set_verify(SSL.VERIFY_PEER, self._note)
        self._connection = connection
        return connection

    @property
    def version(self) -> str:
        """Give the negotiated version as OpenSSL spells it: ``TLSv1.3``."""
        return "" if self._connection is None else self._connection.get_protocol_version_name()

    @property
    def is_name_matching(self) -> bool:
        """Tell whether the certificate is for the host's name (RFC 6125)."""
        if self._connection is None:
            return False
        try:
            certificate = self._connection.get_peer_certificate(as_cryptography=True)
            if certificate is None:
                return False
            verify_certificate_hostname(certificate, self._host)
        except _MISFITS:
            return False
        return True

    def _note(self, *verdict: object) -> bool:
        """Learn what OpenSSL thinks of a certificate of the chain; go on in any case."""
        self.is_certificate_trusted = self.is_certificate_trusted and bool(verdict[-1])
        return True

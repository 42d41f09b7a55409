"""The certificate for STARTTLS: the operator's, or a self-made one."""

import datetime
import os
from collections.abc import Sequence
from pathlib import Path

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID
from twisted.internet.ssl import CertificateOptions, TLSVersion

from mailcheck.core.instants import SECOND, Instant
from mailcheck.core.network_addresses import parse_ip_address

KEY_FILE = "smtp-key.pem"
CERTIFICATE_FILE = "smtp-certificate.pem"
AUTHORITY_FILE = "smtp-ca.pem"

_AUTHORITY_NAME = "mailcheck, for this receiver alone"
_CERTIFICATES_ONLY = x509.KeyUsage(
    digital_signature=False,
    content_commitment=False,
    key_encipherment=False,
    data_encipherment=False,
    key_agreement=False,
    key_cert_sign=True,
    crl_sign=True,
    encipher_only=False,
    decipher_only=False,
)

_LIFETIME = datetime.timedelta(days=3650)
"""No client verifies the certificate, and a change would break clients that have pinned it."""

_RENEWAL = datetime.timedelta(days=30)
_BACKDATED = datetime.timedelta(days=1)  # for clients whose clock is slow


def load_certificate(certificate_path: Path, key_path: Path) -> CertificateOptions:
    """Load a certificate, followed by its chain, and its key; both are PEM files.

    :raises OSError: a file cannot be read.
    :raises ValueError: a file is invalid, or the key does not belong to the certificate.
    """
    chain = x509.load_pem_x509_certificates(certificate_path.read_bytes())
    key = serialization.load_pem_private_key(key_path.read_bytes(), password=None)
    certificate, *others = chain
    if certificate.public_key() != key.public_key():
        raise ValueError(f"{key_path} is not the key of {certificate_path}")
    # Twisted's types require pyOpenSSL objects, which pyOpenSSL deprecates in favor of these.
    options = CertificateOptions(
        privateKey=key,  # type: ignore[arg-type]
        certificate=certificate,  # type: ignore[arg-type]
        extraCertChain=others,  # type: ignore[arg-type]
        raiseMinimumTo=TLSVersion.TLSv1_2,
    )
    options.getContext()  # raises what OpenSSL rejects now instead of for the first client
    return options


class ReloadableCertificate:
    """The operator's certificate, loaded again when its files change.

    Existing TLS connections keep the certificate that they began with. ``expires_at`` is the expiry
    of ``current`` in seconds since 1970.

    :raises OSError: a file cannot be read.
    :raises ValueError: as `load_certificate`.
    """

    def __init__(self, certificate_path: Path, key_path: Path) -> None:
        self._paths = (certificate_path, key_path)
        self._state = self._file_states()
        self._load()

    def policy(self, client_ip: str) -> CertificateOptions:
        """Offer it to all clients; implements `mailcheck.connections.policies.TlsPolicy`."""
        return self.current

    def renew(self) -> bool:
        """Load the files if they have changed; return whether there is a new certificate.

        If the files are invalid, the current certificate stays in use.

        :raises OSError: a file cannot be read.
        :raises ValueError: as `load_certificate`.
        """
        state = self._file_states()
        if state == self._state:
            return False
        self._load()
        self._state = state
        return True

    def is_same_as(self, other: "ReloadableCertificate | None") -> bool:
        """Return whether both were loaded from the same files, which have not changed between."""
        return other is not None and (self._paths, self._state) == (other._paths, other._state)

    def _load(self) -> None:
        self.current = load_certificate(*self._paths)
        certificate = x509.load_pem_x509_certificate(self._paths[0].read_bytes())
        self.expires_at = certificate.not_valid_after_utc.timestamp()

    def _file_states(self) -> tuple[tuple[int, int, int], ...]:
        """Return values that change when a file is rewritten or replaced."""
        found = [path.stat() for path in self._paths]
        return tuple((status.st_ino, status.st_mtime_ns, status.st_size) for status in found)


def find_self_signed(
    folder: Path, host_names: Sequence[str], now: Instant, *, for_local_clients: bool = False
) -> CertificateOptions | None:
    """Load our own certificate. Return `None` if there is none that fits.

    :param for_local_clients: the authority must have signed it, and it must contain all names.
        Otherwise a certificate of an earlier version with the first name is kept, since clients may
        have pinned it.
    :raises OSError: the folder cannot be read.
    :raises ValueError: the key is not one, or it belongs to another certificate.
    """
    today = _day(now)
    certificate = _read(folder / CERTIFICATE_FILE)
    is_good = (
        (folder / KEY_FILE).exists()
        and certificate is not None
        and certificate.subject == _name(host_names[0])
        and today < certificate.not_valid_after_utc - _RENEWAL
    )
    if is_good and for_local_clients:
        is_good = _is_issued_by(certificate, _read(folder / AUTHORITY_FILE), host_names)
    return load_certificate(folder / CERTIFICATE_FILE, folder / KEY_FILE) if is_good else None


def ensure_self_signed(
    folder: Path, host_names: Sequence[str], now: Instant, *, for_local_clients: bool = False
) -> CertificateOptions:
    """Load our own certificate; create one if there is none that fits (`find_self_signed`).

    The first name is the receiver's own. Each certificate is signed by a new authority: clients
    that trust `AUTHORITY_FILE` accept it. The authority's key is discarded, so that it never signs
    anything else. A new certificate is created a month before the old one expires.

    :raises OSError: the folder cannot be read or written.
    """
    found = find_self_signed(folder, host_names, now, for_local_clients=for_local_clients)
    if found is not None:
        return found
    folder.mkdir(parents=True, exist_ok=True)
    _sign(folder, host_names, _day(now))
    return load_certificate(folder / CERTIFICATE_FILE, folder / KEY_FILE)


def _day(now: Instant) -> datetime.datetime:
    return datetime.datetime.fromtimestamp(now / SECOND, datetime.UTC)


def _read(path: Path) -> x509.Certificate | None:
    try:
        return x509.load_pem_x509_certificate(path.read_bytes())
    except (OSError, ValueError):
        return None


def _is_issued_by(
    certificate: x509.Certificate | None,
    authority: x509.Certificate | None,
    host_names: Sequence[str],
) -> bool:
    """Return whether clients that trust the authority accept the certificate for all names."""
    if certificate is None or authority is None:
        return False
    try:
        certificate.verify_directly_issued_by(authority)
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName)
    except (InvalidSignature, TypeError, ValueError, x509.ExtensionNotFound):
        return False
    return names.value == _alternatives(host_names)


def _sign(folder: Path, host_names: Sequence[str], today: datetime.datetime) -> None:
    """Create an authority and a certificate with the extensions of RFC 5280 4.2.1.

    Python 3.13 and OpenSSL's strict mode reject a chain without key identifiers.
    """
    authority_key, key = (ec.generate_private_key(ec.SECP256R1()) for _ in range(2))
    issuer = _name(_AUTHORITY_NAME)
    identifier = x509.SubjectKeyIdentifier.from_public_key(authority_key.public_key())
    authority = (
        _builder(issuer, issuer, authority_key, today)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_CERTIFICATES_ONLY, critical=True)
        .add_extension(identifier, critical=False)
        .sign(authority_key, hashes.SHA256())
    )
    certificate = (
        _builder(_name(host_names[0]), issuer, key, today)
        .add_extension(_alternatives(host_names), critical=False)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(identifier),
            critical=False,
        )
        .sign(authority_key, hashes.SHA256())
    )
    _write_secret(
        folder / KEY_FILE,
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        ),
    )
    for path, pem in ((AUTHORITY_FILE, authority), (CERTIFICATE_FILE, certificate)):
        (folder / path).write_bytes(pem.public_bytes(serialization.Encoding.PEM))


def _builder(
    subject: x509.Name,
    issuer: x509.Name,
    key: ec.EllipticCurvePrivateKey,
    today: datetime.datetime,
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(today - _BACKDATED)
        .not_valid_after(today + _LIFETIME)
    )


def _alternatives(host_names: Sequence[str]) -> x509.SubjectAlternativeName:
    """Return names and addresses as clients compare them, without duplicates."""
    return x509.SubjectAlternativeName([_general_name(name) for name in dict.fromkeys(host_names)])


def _general_name(name: str) -> x509.GeneralName:
    address = parse_ip_address(name)
    return x509.DNSName(name) if address is None else x509.IPAddress(address)


def _name(host_name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, host_name[:64])])


def _write_secret(path: Path, content: bytes) -> None:
    """Write a file that other users can never read."""
    path.unlink(missing_ok=True)
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(content)

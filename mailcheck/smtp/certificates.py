"""The certificate that STARTTLS shows: the operator's, or one that we sign ourselves."""

import datetime
import os
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from twisted.internet.ssl import CertificateOptions, TLSVersion

from mailcheck.core.instants import SECOND, Instant

KEY_FILE = "smtp-key.pem"
CERTIFICATE_FILE = "smtp-certificate.pem"

_LIFETIME = datetime.timedelta(days=3650)
"""Nobody verifies it; a change would only trip those who have pinned it."""

_RENEWAL = datetime.timedelta(days=30)
_BACKDATED = datetime.timedelta(days=1)  # for clients whose clock is slow


def load_certificate(certificate_path: Path, key_path: Path) -> CertificateOptions:
    """Read a certificate, with its chain behind it, and its key; both PEM.

    :raises OSError: a file can't be read.
    :raises ValueError: a file is not what it should be, or they don't belong together.
    """
    chain = x509.load_pem_x509_certificates(certificate_path.read_bytes())
    key = serialization.load_pem_private_key(key_path.read_bytes(), password=None)
    certificate, *others = chain
    if certificate.public_key() != key.public_key():
        raise ValueError(f"{key_path} is not the key of {certificate_path}")
    # Twisted's types ask for pyOpenSSL's own objects, which pyOpenSSL deprecates
    # in favor of these.
    options = CertificateOptions(
        privateKey=key,  # type: ignore[arg-type]
        certificate=certificate,  # type: ignore[arg-type]
        extraCertChain=others,  # type: ignore[arg-type]
        raiseMinimumTo=TLSVersion.TLSv1_2,
    )
    options.getContext()  # whatever OpenSSL dislikes is found now, not by the first client
    return options


class WatchedCertificate:
    """The operator's certificate: read again when its files have changed.

    Connections that are encrypted already keep the one that they have begun with.
    ``expires_at`` is when ``current`` runs out, in seconds since 1970.

    :raises OSError: a file can't be read.
    :raises ValueError: as `load_certificate`.
    """

    def __init__(self, certificate_path: Path, key_path: Path) -> None:
        self._paths = (certificate_path, key_path)
        self._state = self._look_at_files()
        self._load()

    def policy(self, client_ip: str) -> CertificateOptions:
        """Offer it to everybody; fills the port `mailcheck.smtp.settings.TlsPolicy`."""
        return self.current

    def renew(self) -> bool:
        """Load the files where they have changed; tells whether there is a new certificate.

        The one at hand stays where the files can't be used.

        :raises OSError: a file can't be read.
        :raises ValueError: as `load_certificate`.
        """
        state = self._look_at_files()
        if state == self._state:
            return False
        self._load()
        self._state = state
        return True

    def _load(self) -> None:
        self.current = load_certificate(*self._paths)
        certificate = x509.load_pem_x509_certificate(self._paths[0].read_bytes())
        self.expires_at = certificate.not_valid_after_utc.timestamp()

    def _look_at_files(self) -> tuple[tuple[int, int, int], ...]:
        """Give what changes when a file is written anew, or another one takes its name."""
        found = [path.stat() for path in self._paths]
        return tuple((one.st_ino, one.st_mtime_ns, one.st_size) for one in found)


def ensure_self_signed(folder: Path, host_name: str, now: Instant) -> CertificateOptions:
    """Load the certificate that we have signed; sign one where there is none for this name.

    Signed anew a month before it runs out.

    :raises OSError: the folder can't be read or written.
    """
    certificate_path = folder / CERTIFICATE_FILE
    key_path = folder / KEY_FILE
    today = datetime.datetime.fromtimestamp(now / SECOND, datetime.UTC)
    if not (key_path.exists() and _is_good(certificate_path, host_name, today)):
        _sign(certificate_path, key_path, host_name, today)
    return load_certificate(certificate_path, key_path)


def _is_good(certificate_path: Path, host_name: str, today: datetime.datetime) -> bool:
    try:
        certificate = x509.load_pem_x509_certificate(certificate_path.read_bytes())
    except (OSError, ValueError):
        return False
    return (
        certificate.subject == _name(host_name)
        and today < certificate.not_valid_after_utc - _RENEWAL
    )


def _sign(certificate_path: Path, key_path: Path, host_name: str, today: datetime.datetime) -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    name = _name(host_name)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(today - _BACKDATED)
        .not_valid_after(today + _LIFETIME)
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(host_name)]), critical=False)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    _write_secret(
        key_path,
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        ),
    )
    certificate_path.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))


def _name(host_name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, host_name[:64])])


def _write_secret(path: Path, content: bytes) -> None:
    """Write a file that only its owner has ever been able to read."""
    path.unlink(missing_ok=True)
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(content)

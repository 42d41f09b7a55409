"""Mark certificates (VMC and CMC): who vouches for a logo, for which domain, and until when.

The rules are in "Minimum Security Requirements for Issuance of Mark Certificates" (AuthIndicators
group) and draft-fetch-validation-vmc-wchuang. A certificate is data of a stranger: the size of the
file and the number of its certificates are limited. URLs in it are not fetched, so revocation is
not checked.
"""

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from enum import Enum
from functools import cache
from importlib.resources import files

import msgspec
from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.x509.oid import NameOID
from msgspec import Struct

from mailcheck.checks.bimi.logotype import BadLogotype, Logotype, read_logotype
from mailcheck.core.instants import Instant, instant_of

MAX_FILE = 64 * 1024
"""Maximum number of octets of a file with certificates; real ones have up to 20,000."""

MAX_CERTIFICATES = 10
"""Maximum number of certificates of a file."""

PURPOSE = x509.ObjectIdentifier("1.3.6.1.5.5.7.3.31")
"""Extended key usage id-kp-BrandIndicatorforMessageIdentification."""

LOGOTYPE = x509.ObjectIdentifier("1.3.6.1.5.5.7.1.12")
MARK_TYPE = x509.ObjectIdentifier("1.3.6.1.4.1.53087.1.13")
TRADEMARK = x509.ObjectIdentifier("1.3.6.1.4.1.53087.1.4")

_BEGIN = b"-----BEGIN "
"""The begin of a block of PEM, whose name may also be X509 CERTIFICATE."""

# The negation, [^\x20-\x7e\xa0-\uffff], takes 3 ms to compile.
_NO_TEXT = re.compile(r"[\x00-\x1f\x7f-\x9f\U00010000-\U0010ffff]")


class MarkKind(Enum):
    """Kind of a mark certificate."""

    VERIFIED = "VMC"
    """The mark is registered as a trademark, or belongs to a government."""
    COMMON = "CMC"
    """The mark was in use before."""
    UNKNOWN = "unknown"


_KINDS = {
    "registered mark": MarkKind.VERIFIED,
    "government mark": MarkKind.VERIFIED,
    "prior use mark": MarkKind.COMMON,
    "modified registered mark": MarkKind.COMMON,
}


class ChainState(Enum):
    """How far the issuers of a certificate could be followed."""

    TRUSTED = "trusted"
    """It ends in a known root."""
    UNKNOWN_ROOT = "unknown-root"
    """It ends in a root that this service does not know."""
    INCOMPLETE = "incomplete"
    """The certificate of an issuer is missing."""
    BROKEN = "broken"
    """An issuer has not signed the certificate, or may not issue."""


class Root(Struct, frozen=True):
    """A known root. ``caa`` are the names of its owner in CAA records.

    ``by`` does not trust certificates that are issued from ``distrusted_after`` (ISO 8601) on.
    """

    name: str
    sha256: str
    source: str
    caa: tuple[str, ...] = ()
    distrusted_after: str = ""
    by: str = ""
    distrust_source: str = ""


class MarkCertificate(Struct, frozen=True):
    """A certificate and its chain; ``domains`` are in lower case.

    ``issuer`` is the organization that has issued it, and ``root`` the known root, or `None`.
    ``issuers_end_at`` is when the first certificate of the chain ends. ``is_first`` is whether the
    file begins with the certificate, and has no other one of a logo. ``problem`` completes the
    sentence "The certificate ..." if the logo in it cannot be used.
    """

    organization: str
    issuer: str
    kind: MarkKind
    mark_type: str
    domains: tuple[str, ...]
    begins_at: Instant
    ends_at: Instant
    chain: ChainState
    issuers_end_at: Instant
    root: Root | None
    has_purpose: bool
    has_timestamps: bool
    is_first: bool
    logotype: Logotype | None
    problem: str = ""


class UnreadableCertificate(Exception):
    """The file has no usable certificate; the text completes "The file ..."."""


@cache
def load_roots() -> Mapping[bytes, tuple[Root, x509.Certificate]]:
    """Return the known roots by their SHA-256 fingerprint."""
    here = files(__package__)
    certificates = x509.load_pem_x509_certificates(here.joinpath("roots.pem").read_bytes())
    table = tomllib.loads(here.joinpath("roots.toml").read_text("utf-8"))
    by_print = {root.sha256: root for root in msgspec.convert(table["roots"], list[Root])}
    found = {}
    for certificate in certificates:
        digest = certificate.fingerprint(SHA256())
        found[digest] = by_print[digest.hex()], certificate
    return found


KnownRoots = Mapping[bytes, tuple[Root, x509.Certificate]]


def read_certificate(octets: bytes, roots: KnownRoots | None = None) -> MarkCertificate:
    """Read a file of any octets.

    :param roots: the known roots; `None` for the roots of the package.
    :raises UnreadableCertificate: it has no mark certificate.
    """
    count = octets.count(_BEGIN)
    if not count:
        raise UnreadableCertificate("has no certificate in PEM form")
    if count > MAX_CERTIFICATES:
        raise UnreadableCertificate(f"has more than {MAX_CERTIFICATES} blocks of PEM")
    try:
        certificates = x509.load_pem_x509_certificates(octets)
        return _read(certificates, load_roots() if roots is None else roots)
    except (ValueError, x509.DuplicateExtension, x509.InvalidVersion, UnsupportedAlgorithm):
        raise UnreadableCertificate("has a malformed certificate") from None


def _read(certificates: Sequence[x509.Certificate], roots: KnownRoots) -> MarkCertificate:
    leaves = [certificate for certificate in certificates if not _may_issue(certificate)]
    if not leaves:
        raise UnreadableCertificate("has certificates of authorities only, and none of a logo")
    leaf = leaves[0]
    chain, root, ends_at = _follow(leaf, certificates, roots)
    logotype, problem = _logotype(leaf)
    mark_type = _attribute(leaf.subject, MARK_TYPE)
    kind = _KINDS.get(mark_type.lower(), MarkKind.UNKNOWN)
    if not mark_type and _attribute(leaf.subject, TRADEMARK):
        kind = MarkKind.VERIFIED  # before 2023, certificates had no type
    return MarkCertificate(
        organization=_attribute(leaf.subject, NameOID.ORGANIZATION_NAME),
        issuer=_attribute(leaf.issuer, NameOID.ORGANIZATION_NAME)
        or _attribute(leaf.issuer, NameOID.COMMON_NAME),
        kind=kind,
        mark_type=mark_type,
        domains=_domains(leaf),
        begins_at=_instant(leaf.not_valid_before_utc),
        ends_at=_instant(leaf.not_valid_after_utc),
        chain=chain,
        issuers_end_at=ends_at,
        root=root,
        has_purpose=PURPOSE in _purposes(leaf),
        has_timestamps=_has_timestamps(leaf),
        is_first=certificates[0] is leaf and len(leaves) == 1,
        logotype=logotype,
        problem=problem,
    )


def _follow(
    leaf: x509.Certificate, certificates: Sequence[x509.Certificate], roots: KnownRoots
) -> tuple[ChainState, Root | None, Instant]:
    """Follow the issuers, and return the state, the root, and when the first issuer ends."""
    known = [certificate for _, certificate in roots.values()]
    pool = [*known, *certificates]
    current, ends_at = leaf, _instant(leaf.not_valid_after_utc)
    for _ in range(MAX_CERTIFICATES + 1):
        found = roots.get(current.fingerprint(SHA256()))
        if found is not None:
            return ChainState.TRUSTED, found[0], ends_at
        if current is not leaf and current.subject == current.issuer:
            return ChainState.UNKNOWN_ROOT, None, ends_at
        named = [
            certificate
            for certificate in pool
            if certificate.subject == current.issuer and certificate is not current
        ]
        issuer = next(
            (certificate for certificate in named if _has_issued(certificate, current)), None
        )
        if issuer is None:
            state = ChainState.BROKEN if named else ChainState.INCOMPLETE
            return state, None, ends_at
        current, ends_at = issuer, min(ends_at, _instant(issuer.not_valid_after_utc))
    return ChainState.BROKEN, None, ends_at


def _has_issued(issuer: x509.Certificate, certificate: x509.Certificate) -> bool:
    """Return whether an authority has signed a certificate, and may do so."""
    try:
        certificate.verify_directly_issued_by(issuer)
    except (ValueError, TypeError, InvalidSignature, UnsupportedAlgorithm):
        return False
    return _may_issue(issuer)


def _may_issue(certificate: x509.Certificate) -> bool:
    try:
        if not certificate.extensions.get_extension_for_class(x509.BasicConstraints).value.ca:
            return False
        usage = certificate.extensions.get_extension_for_class(x509.KeyUsage).value
    except x509.ExtensionNotFound as missing:
        return missing.oid == x509.KeyUsage.oid
    return usage.key_cert_sign


def _logotype(leaf: x509.Certificate) -> tuple[Logotype | None, str]:
    try:
        extension = leaf.extensions.get_extension_for_oid(LOGOTYPE)
    except x509.ExtensionNotFound:
        return None, "has no logotype extension (RFC 9399), so it contains no logo"
    value = extension.value
    assert isinstance(value, x509.UnrecognizedExtension)
    try:
        return read_logotype(value.value), ""
    except BadLogotype as fault:
        return None, str(fault)


def _purposes(leaf: x509.Certificate) -> Iterator[x509.ObjectIdentifier]:
    try:
        yield from leaf.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    except x509.ExtensionNotFound:
        return


def _has_timestamps(leaf: x509.Certificate) -> bool:
    """Return whether it has timestamps of logs (RFC 6962 3.3), which are not verified."""
    kind = x509.PrecertificateSignedCertificateTimestamps
    try:
        return bool(list(leaf.extensions.get_extension_for_class(kind).value))
    except x509.ExtensionNotFound:
        return False


def _domains(leaf: x509.Certificate) -> tuple[str, ...]:
    kind = x509.SubjectAlternativeName
    try:
        names = leaf.extensions.get_extension_for_class(kind).value
    except x509.ExtensionNotFound:
        return ()
    found = names.get_values_for_type(x509.DNSName)
    return tuple(dict.fromkeys(_clean(name).lower().rstrip(".") for name in found))[:100]


def _attribute(name: x509.Name, kind: x509.ObjectIdentifier) -> str:
    for attribute in name.get_attributes_for_oid(kind):
        value = attribute.value
        return _clean(value if isinstance(value, str) else value.decode("utf-8", "replace"))
    return ""


def _clean(text: str) -> str:
    return _NO_TEXT.sub("?", text[:200])


def _instant(moment: datetime) -> Instant:
    return instant_of(moment.timestamp())

"""What DKIM says about one mail."""

from enum import Enum

from msgspec import Struct

from mailcheck.checks.auth_results import AuthResult
from mailcheck.checks.dkim.key_record import KeyRecord


class SignatureHeader(Struct, frozen=True):
    """A DKIM-Signature field as it was parsed (RFC 6376 3.5), the topmost first.

    ``problem`` says why it can't be verified at all (a missing or broken tag);
    then other fields may be empty. ``key_name`` is where its key stands:
    ``<selector>._domainkey.<signing domain>``. ``body_length`` is ``l=``;
    ``signed_at`` and ``expires_at`` are seconds since the epoch. Names are in
    lower-case A-labels, ``signed_fields`` in lower case.
    """

    index: int
    signing_domain: str
    selector: str
    agent_id: str
    algorithm: str
    signed_fields: tuple[str, ...]
    canonicalization: str
    body_length: int | None
    signed_at: int | None
    expires_at: int | None
    problem: str = ""
    body_hash: bytes = b""
    signature: bytes = b""

    @property
    def key_name(self) -> str:
        """Give the name of the key record."""
        return f"{self.selector}._domainkey.{self.signing_domain}"


class KeyState(Enum):
    """What was found where the key of a signature should stand."""

    FOUND = "found"
    ABSENT = "absent"
    OTHER = "other"
    """TXT records, but none that is a DKIM key."""
    SEVERAL = "several"
    UNDETERMINED = "undetermined"
    NOT_ASKED = "not asked"
    """The signature is too broken to say where its key stands."""


class KeyOfSignature(Struct, frozen=True):
    """The key of one signature; ``record`` is there when it is ``FOUND``.

    ``record_name`` is where it stands: where a CNAME led, if there is one.
    """

    state: KeyState
    record: KeyRecord | None = None
    record_name: str = ""


class SignatureFault(Enum):
    """Why a signature does not pass."""

    MALFORMED = "malformed"
    KEY_UNDETERMINED = "key-undetermined"
    NO_KEY = "no-key"
    NO_KEY_RECORD = "no-key-record"
    SEVERAL_KEYS = "several-keys"
    KEY_REVOKED = "key-revoked"
    KEY_BROKEN = "key-broken"
    KEY_TOO_SHORT = "key-too-short"
    KEY_OF_OTHER_TYPE = "key-of-other-type"
    OTHER_IDENTITY = "other-identity"
    """``t=s`` of the key forbids that ``i=`` is below ``d=``."""
    SHA1 = "sha1"
    EXPIRED = "expired"
    FROM_THE_FUTURE = "from-the-future"
    BODY_CUT = "body-cut"
    BODY_CHANGED = "body-changed"
    HEADER_CHANGED = "header-changed"


class SignatureOfMail(Struct, frozen=True):
    """One signature with its result.

    ``explanation`` is one sentence on how the result came about; ``key`` is
    nothing when no key was found or could not be looked up. ``fault`` is
    nothing when it passes. ``unsigned_octets`` are those at the end of the body
    that ``l=`` leaves unsigned, and ``seconds_ahead`` tells how long after the
    mail arrived it is dated, if it passes. ``key_record_name`` is where the key
    really stands: where a CNAME led, if there is one.
    """

    header: SignatureHeader
    result: AuthResult
    key: KeyRecord | None
    explanation: str
    fault: SignatureFault | None = None
    unsigned_octets: int = 0
    seconds_ahead: int = 0
    key_record_name: str = ""

    @property
    def is_weak(self) -> bool:
        """Tell whether it passes with an RSA key shorter than advised (RFC 8301 3.2)."""
        return self.result is AuthResult.PASS and self.key is not None and not self.key.is_strong


class DkimOfMail(Struct, frozen=True):
    """All signatures of one mail, the topmost first.

    ``unchecked`` counts those beyond the number that is verified.
    """

    signatures: tuple[SignatureOfMail, ...]
    unchecked: int = 0

    @property
    def passing(self) -> tuple[SignatureOfMail, ...]:
        """Give the signatures that verify."""
        return tuple(one for one in self.signatures if one.result is AuthResult.PASS)

    @property
    def is_determined(self) -> bool:
        """Tell whether no signature is undetermined, or one passes all the same."""
        return bool(self.passing) or all(one.result.is_determined for one in self.signatures)

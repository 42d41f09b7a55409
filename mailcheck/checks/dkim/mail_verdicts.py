"""What DKIM says about one mail."""

from dataclasses import dataclass

from mailcheck.checks.auth_results import AuthResult
from mailcheck.checks.dkim.key_record import KeyRecord


@dataclass(frozen=True, slots=True)
class SignatureHeader:
    """A DKIM-Signature field as it was parsed (RFC 6376 3.5), the topmost first.

    ``problem`` says why it can't be verified at all (a missing or broken tag);
    then other fields may be empty. ``key_name`` is where its key stands:
    ``<selector>._domainkey.<signing domain>``. ``body_length`` is ``l=``.
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

    @property
    def key_name(self) -> str:
        """Give the name of the key record."""
        return f"{self.selector}._domainkey.{self.signing_domain}"


@dataclass(frozen=True, slots=True)
class SignatureOfMail:
    """One signature with its result.

    ``explanation`` is one sentence on how the result came about; ``key`` is
    nothing when no key was found or could not be looked up.
    """

    header: SignatureHeader
    result: AuthResult
    key: KeyRecord | None
    explanation: str

    @property
    def is_weak(self) -> bool:
        """Tell whether it passes with an RSA key shorter than advised (RFC 8301 3.2)."""
        return self.result is AuthResult.PASS and self.key is not None and not self.key.is_strong


@dataclass(frozen=True, slots=True)
class DkimOfMail:
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

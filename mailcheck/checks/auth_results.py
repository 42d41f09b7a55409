"""Results of authentication methods (RFC 8601 2.7)."""

from enum import Enum


class AuthResult(Enum):
    """A result; the values are used in the Authentication-Results field."""

    NONE = "none"
    NEUTRAL = "neutral"
    PASS = "pass"  # noqa: S105
    FAIL = "fail"
    SOFTFAIL = "softfail"
    POLICY = "policy"
    """A valid signature that receivers do not accept, because of a short key or SHA-1."""
    TEMPERROR = "temperror"
    """The result could not be determined now; it is not a statement about the sender."""
    PERMERROR = "permerror"

    @property
    def is_determined(self) -> bool:
        """Whether the result is a statement about the mail."""
        return self is not AuthResult.TEMPERROR

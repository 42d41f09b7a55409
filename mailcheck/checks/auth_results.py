"""The words with which a receiver says what came of an authentication method (RFC 8601 2.7)."""

from enum import Enum


class AuthResult(Enum):
    """A result; the values are those of an Authentication-Results field."""

    NONE = "none"
    NEUTRAL = "neutral"
    PASS = "pass"  # noqa: S105
    FAIL = "fail"
    SOFTFAIL = "softfail"
    POLICY = "policy"
    """A signature that verifies, but that receivers don't accept: too short a key, SHA-1."""
    TEMPERROR = "temperror"
    """Could not be determined now; says nothing about the sender."""
    PERMERROR = "permerror"

    @property
    def is_determined(self) -> bool:
        """Tell whether it says something about the mail."""
        return self is not AuthResult.TEMPERROR

"""Form tokens: proof that a POST comes from a form that this visitor was given.

The token is derived from what the visitor's cookie holds, which no other site
can read; it is masked anew for each page, so that compression tells nothing
about it.
"""

import base64
import binascii
import hashlib
import hmac

from mailcheck.core.identifiers import RandomBytes, new_session_secret

_PURPOSE = b"mailcheck form token"


class FormSecret:
    """What the tokens of one visitor are derived from: their session, or a cookie of its own."""

    def __init__(self, secret: str, random_bytes: RandomBytes) -> None:
        self.secret = secret
        self.is_new = False
        self._random_bytes = random_bytes

    def token(self) -> str:
        """Make a token; a visitor who has no cookie yet is to get one."""
        if not self.secret:
            self.secret = new_session_secret(self._random_bytes)
            self.is_new = True
        mac = _mac(self.secret)
        mask = self._random_bytes(len(mac))
        return base64.urlsafe_b64encode(mask + _masked(mac, mask)).decode("ascii").rstrip("=")

    def accepts(self, token: str) -> bool:
        """Tell whether a token was made for this visitor."""
        try:
            data = base64.b64decode(token + "=" * (-len(token) % 4), b"-_", validate=True)
        except (binascii.Error, ValueError):
            return False
        mac = _mac(self.secret)
        if not self.secret or len(data) != 2 * len(mac):
            return False
        mask, masked = data[: len(mac)], data[len(mac) :]
        return hmac.compare_digest(_masked(masked, mask), mac)


def _mac(secret: str) -> bytes:
    return hmac.digest(secret.encode("utf-8", "replace"), _PURPOSE, hashlib.sha256)


def _masked(data: bytes, mask: bytes) -> bytes:
    return bytes(one ^ other for one, other in zip(data, mask, strict=True))

"""A browser's request to a page, with its session and form token."""

import base64
import binascii
import hashlib
import hmac
import re
from collections.abc import Awaitable, Callable, Mapping
from urllib.parse import urlsplit

from msgspec import Struct
from twisted.web.server import Request

from mailcheck.api.requests.parsing import Query
from mailcheck.api.urls import PublicUrls
from mailcheck.core.accounts import Account
from mailcheck.core.identifiers import RandomBytes, new_session_secret
from mailcheck.core.instants import Instant
from mailcheck.web.site.event_streams import Stream
from mailcheck.web.site.replies import Reply

_PURPOSE = b"mailcheck form token"


class FormSecret(Struct):
    """What the tokens of one visitor are derived from: their session, or a cookie of its own."""

    secret: str
    _random_bytes: RandomBytes
    is_new: bool = False

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


_OWN_PATH = re.compile(r"/(?![/\\])[\x21-\x5b\x5d-\x7e]{0,400}")
"""A path of this site: a browser reads ``//host`` and ``/\\host`` as another one."""


class Visit(Struct, frozen=True):
    """One request to a page.

    ``owner`` is who is signed in, ``session`` the secret of the session;
    ``client`` is the address that limits are counted for.
    """

    request: Request
    asked_at: Instant
    owner: Account | None
    session: str
    form_secret: FormSecret
    query: Query
    form: Query
    path: Mapping[str, str]
    urls: PublicUrls
    client: str

    @property
    def account(self) -> Account:
        """Give who is signed in, on a page that is for them only."""
        if self.owner is None:
            raise RuntimeError("an open page asked for the account")
        return self.owner

    @property
    def is_secure(self) -> bool:
        """Tell whether the visitor's browser speaks HTTPS."""
        return self.urls.public_url.startswith("https://")

    def link(self, path: str) -> str:
        """Give the address of a page, as this visitor reaches it."""
        return urlsplit(self.urls.public_url).path + path


class Page(Struct, frozen=True):
    """A method and a path, and what answers; for who is signed in, unless it is open to all.

    What is the same for everybody asks for no session at all.
    """

    method: str
    path: str
    handle: Callable[[Visit], Awaitable[Reply | Stream]]
    is_open: bool = False
    ignores_session: bool = False


def local_path(path: str | None) -> str:
    """Give a path that leads nowhere but to this site; the overview where it would not."""
    return path if path and _OWN_PATH.fullmatch(path) else "/"

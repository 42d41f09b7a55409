"""Requests of browsers to pages, with session and form token."""

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
from mailcheck.core.audit import Actor
from mailcheck.core.identifiers import RandomBytes, new_session_secret
from mailcheck.core.instants import Instant
from mailcheck.core.projects import Membership, Role
from mailcheck.web.site.costs import Cost
from mailcheck.web.site.event_streams import Stream
from mailcheck.web.site.replies import Reply
from mailcheck.web.site.requests import header_values

_PURPOSE = b"mailcheck form token"


class FormSecret(Struct):
    """Secret that form tokens are derived from: the session, or a cookie if there is none.

    A token belongs to the ``project`` that its page showed: a form of one project is not submitted
    to another that the session shows meanwhile.
    """

    secret: str
    _random_bytes: RandomBytes
    is_new: bool = False
    project: str = ""

    def token(self) -> str:
        """Return a new token. Create the secret first if the visitor has none."""
        if not self.secret:
            self.secret = new_session_secret(self._random_bytes)
            self.is_new = True
        mac = self._mac()
        mask = self._random_bytes(len(mac))
        return base64.urlsafe_b64encode(mask + _masked(mac, mask)).decode("ascii").rstrip("=")

    def accepts(self, token: str) -> bool:
        """Return whether a token was created for this visitor."""
        try:
            data = base64.b64decode(token + "=" * (-len(token) % 4), b"-_", validate=True)
        except (binascii.Error, ValueError):
            return False
        mac = self._mac()
        if not self.secret or len(data) != 2 * len(mac):
            return False
        mask, masked = data[: len(mac)], data[len(mac) :]
        return hmac.compare_digest(_masked(masked, mask), mac)

    def _mac(self) -> bytes:
        purpose = _PURPOSE + self.project.encode()
        return hmac.digest(self.secret.encode("utf-8", "replace"), purpose, hashlib.sha256)


def _masked(data: bytes, mask: bytes) -> bytes:
    return bytes(one ^ other for one, other in zip(data, mask, strict=True))


LONGEST_PATH = 4_000
"""Maximum number of characters of a path to come back to. OAuth requests are long."""

_LONGEST_NEXT = 2 * LONGEST_PATH
"""Maximum number of characters of a path that is sent, even if it is not used."""

_OWN_PATH = re.compile(rf"/(?![/\\])[\x21-\x5b\x5d-\x7e]{{0,{LONGEST_PATH}}}")
"""A path of this site. Browsers treat ``//host`` and ``/\\host`` as another site."""


class Visit(Struct, frozen=True):
    """A request to a page.

    ``person`` is the signed-in account and ``session`` the secret of its session. ``membership``
    is the project that the pages show, if it is not the person's own account.
    ``client`` is the address that rate limits are counted for. ``confirmed_at`` is when the person
    last confirmed who they are.
    """

    request: Request
    asked_at: Instant
    person: Account | None
    session: str
    form_secret: FormSecret
    query: Query
    form: Query
    path: Mapping[str, str]
    urls: PublicUrls
    client: str
    membership: Membership | None = None
    confirmed_at: Instant = Instant(0)

    @property
    def visitor(self) -> Account:
        """The signed-in account. Use it only on pages that require one."""
        if self.person is None:
            raise RuntimeError("an open page asked for the account")
        return self.person

    @property
    def account(self) -> Account:
        """The account whose data the pages show: a project, or the person's own."""
        return self.visitor if self.membership is None else self.membership.project

    @property
    def role(self) -> Role:
        """The role of the visitor in the account whose data the pages show."""
        return Role.OWNER if self.membership is None else self.membership.role

    @property
    def actor(self) -> Actor:
        """The visitor in the audit log. Use it only on pages that require an account."""
        return Actor(self.visitor.name, self.client)

    @property
    def is_secure(self) -> bool:
        """Whether the browser of the visitor uses HTTPS."""
        return self.urls.public_url.startswith("https://")

    def link(self, path: str) -> str:
        """Return the address of a page, with the path of the public URL."""
        return urlsplit(self.urls.public_url).path + path


class Page(Struct, frozen=True):
    """The handler of a method and a path. It requires a signed-in account unless it is open.

    ``cost`` is the maximum cost of one call.
    ``role`` is the role that a member of a project needs. Without it, a GET needs a reader and
    another method an editor. A page with ``is_personal`` is about the person and not about a
    project. A page with ``ignores_session`` is the same for all visitors, and no session is looked
    up. A page with ``needs_confirmation`` gives access that outlasts the session.
    """

    method: str
    path: str
    handle: Callable[[Visit], Awaitable[Reply | Stream]]
    cost: Cost
    is_open: bool = False
    ignores_session: bool = False
    is_personal: bool = False
    role: Role | None = None
    needs_confirmation: bool = False

    @property
    def needed_role(self) -> Role | None:
        """The role that the page needs; `None` if it is open or about the person."""
        if self.is_open or self.is_personal:
            return None
        return self.role or (Role.READER if self.method == "GET" else Role.EDITOR)


def next_path(parameters: Query) -> str:
    """Return the path in ``next``, if it is a path of this site, or ``"/"``.

    :raises InvalidParameter: it was sent twice, or is too long.
    """
    found = parameters.texts("next", 1, _LONGEST_NEXT)
    return local_path(found[0] if found else None)


def local_path(path: str | None) -> str:
    """Return the path if it is a path of this site, or ``"/"``."""
    return path if path and _OWN_PATH.fullmatch(path) else "/"


def prefers_html(request: Request) -> bool:
    """Return whether the client is a browser that shows the response to a person."""
    return any("text/html" in value.lower() for value in header_values(request, b"Accept"))

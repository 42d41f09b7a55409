"""Requests of browsers to pages, with session and form token."""

import base64
import binascii
import hashlib
import hmac
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from urllib.parse import urlsplit

from msgspec import Struct
from msgspec.structs import replace
from twisted.web.server import Request

from mailcheck.api.requests.parsing import Query
from mailcheck.api.urls import PublicUrls
from mailcheck.core.accounts import Account
from mailcheck.core.audit import Actor
from mailcheck.core.errors import ExpectedFailure
from mailcheck.core.identifiers import AccountId, RandomBytes, new_session_secret
from mailcheck.core.instants import Instant
from mailcheck.core.projects import Membership, Role
from mailcheck.web.dashboard.addresses import MINE, address_in, first_segment, split_address
from mailcheck.web.site.costs import Cost
from mailcheck.web.site.event_streams import Stream
from mailcheck.web.site.forms import Upload
from mailcheck.web.site.replies import Reply
from mailcheck.web.site.requests import header_values

_PURPOSE = b"mailcheck form token of a "

_PROOF = 16
"""Number of bytes of each of the two proofs in a token."""


class FormSecret(Struct):
    """Secret that form tokens are derived from: the session, or a cookie if there is none.

    A token proves two things: the session, and the ``project`` that the URL of its page names. A
    form of a page of a project needs both.
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
        proofs = self._proofs()
        mask = self._random_bytes(len(proofs))
        return base64.urlsafe_b64encode(mask + _masked(proofs, mask)).decode("ascii").rstrip("=")

    def accepts(self, token: str) -> bool:
        """Return whether a token was created for this visitor, and for the project of the URL."""
        try:
            data = base64.b64decode(token + "=" * (-len(token) % 4), b"-_", validate=True)
        except (binascii.Error, ValueError):
            return False
        proofs = self._proofs()
        if not self.secret or len(data) != 2 * len(proofs):
            return False
        mask, masked = data[: len(proofs)], data[len(proofs) :]
        needed = len(proofs) if self.project else _PROOF
        return hmac.compare_digest(_masked(masked, mask)[:needed], proofs[:needed])

    def _proofs(self) -> bytes:
        return self._prove(b"session") + self._prove(b"project " + self.project.encode())

    def _prove(self, what: bytes) -> bytes:
        secret = self.secret.encode("utf-8", "replace")
        return hmac.digest(secret, _PURPOSE + what, hashlib.sha256)[:_PROOF]


def _masked(data: bytes, mask: bytes) -> bytes:
    return bytes(octet ^ other for octet, other in zip(data, mask, strict=True))


LONGEST_PATH = 4_000
"""Maximum number of characters of a path to come back to. OAuth requests are long."""

_LONGEST_NEXT = 2 * LONGEST_PATH
"""Maximum number of characters of a path that is sent, even if it is not used."""

_OWN_PATH = re.compile(rf"/(?![/\\])[\x21-\x5b\x5d-\x7e]{{0,{LONGEST_PATH}}}")
"""A path of this site. Browsers treat ``//host`` and ``/\\host`` as another site."""


class Visit(Struct, frozen=True):
    """A request to a page.

    ``person`` is the signed-in account and ``session`` the secret of its session. ``project`` is
    the project that the URL names: `MINE`, the id of one of the person's ``projects``, or empty.
    ``nearest`` is the project that links of a page without a project lead to.
    ``project_segments`` are the first segments of the paths of pages of a project.
    ``client`` is the address that rate limits are counted for. ``confirmed_at`` is when the person
    last confirmed who they are. ``files`` are those of the form, as its page takes them.
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
    project_segments: frozenset[str]
    projects: Sequence[Membership] = ()
    project: str = ""
    nearest: str = MINE
    confirmed_at: Instant = Instant(0)
    files: Sequence[Upload] = ()

    @property
    def visitor(self) -> Account:
        """The signed-in account. Use it only on pages that require one."""
        if self.person is None:
            raise RuntimeError("an open page asked for the account")
        return self.person

    def own_project(self, name: str) -> str:
        """Return a project of the person by its id or name in URLs; empty if there is none such."""
        if name in (MINE, self.visitor.id):
            return MINE
        return name if any(project.project.id == name for project in self.projects) else ""

    @property
    def membership(self) -> Membership | None:
        """The project that the URL names, if it is not the person's own account."""
        return next(
            (project for project in self.projects if project.project.id == self.project), None
        )

    @property
    def account(self) -> Account:
        """The account whose data the page shows. Use it only on pages of a project."""
        if self.project == MINE:
            return self.visitor
        if self.membership is None:
            raise RuntimeError("a page without a project in its URL asked for the project")
        return self.membership.project

    @property
    def role(self) -> Role:
        """The role of the visitor in the project. Use it only on pages of a project."""
        return Role.OWNER if self.membership is None else self.membership.role

    @property
    def actor(self) -> Actor:
        """The visitor in the audit log. Use it only on pages that require an account."""
        return Actor(self.visitor.name, self.client)

    @property
    def is_secure(self) -> bool:
        """Whether the browser of the visitor uses HTTPS."""
        return self.urls.public_url.startswith("https://")

    @property
    def page_path(self) -> str:
        """The path of the request without the project."""
        return split_address(self.request.path.decode("ascii", "replace"))[1]

    def entered(self, names: Iterable[str]) -> dict[str, str]:
        """Return fields of the form, without blanks around them. A missing one is empty."""
        return {name: (self.form.text(name) or "").strip() for name in names}

    def own_address(self, account_id: AccountId, path: str) -> str:
        """Return the address of a page in a project of the visitor; empty if it is not theirs."""
        project = "" if self.person is None else self.own_project(account_id)
        return self.link(address_in(project, path)) if project else ""

    def link(self, path: str) -> str:
        """Return the address of a page, with the path of the public URL.

        A page of a project is linked in the project of this page.
        """
        if self.person is not None and first_segment(path) in self.project_segments:
            path = address_in(self.project or self.nearest, path)
        return urlsplit(self.urls.public_url).path + path


class Guard(Struct, frozen=True):
    """Who may use a page.

    Without ``is_open`` and ``is_personal``, these are the members of the project in its URL with a
    ``role``. Without a role, a GET needs a reader and another method an editor.
    ``ignores_session``: the page is the same for all visitors, and no session is looked up.
    ``is_personal``: the page is about the person and not about a project.
    ``needs_confirmation``: the page gives access that outlasts the session.
    """

    is_open: bool = False
    ignores_session: bool = False
    is_personal: bool = False
    role: Role | None = None
    needs_confirmation: bool = False


MEMBERS = Guard()
READERS, EDITORS, OWNERS = (Guard(role=role) for role in (Role.READER, Role.EDITOR, Role.OWNER))
CONFIRMED_EDITORS = Guard(role=Role.EDITOR, needs_confirmation=True)
CONFIRMED_OWNERS = Guard(role=Role.OWNER, needs_confirmation=True)
PERSON = Guard(is_personal=True)
CONFIRMED_PERSON = Guard(is_personal=True, needs_confirmation=True)
ANYONE = Guard(is_open=True)
SAME_FOR_ALL = Guard(is_open=True, ignores_session=True)


ShowFailure = Callable[[Visit, ExpectedFailure], Awaitable[Reply]]
"""Shows a failure of a form on the page that has the form."""


class Page(Struct, frozen=True):
    """The handler of a method and a path, with those who may use it.

    A page that is neither open nor personal is of a project: its ``path`` is that in the project.
    ``cost`` is the maximum cost of one call. A page that ``takes_files`` reads forms with files;
    its path is among `PAGES_WITH_FILES`. ``form`` shows an expected failure on the page with the
    form that was submitted; without it, the failure is a page of its own.
    """

    method: str
    path: str
    handle: Callable[[Visit], Awaitable[Reply | Stream]]
    cost: Cost
    guard: Guard = MEMBERS
    takes_files: bool = False
    form: ShowFailure | None = None

    @property
    def is_of_project(self) -> bool:
        """Whether the page shows data of the project that its URL names."""
        return not self.guard.is_open and not self.guard.is_personal

    @property
    def needed_role(self) -> Role | None:
        """The role that the page needs; `None` if it is open or about the person."""
        if not self.is_of_project:
            return None
        return self.guard.role or (Role.READER if self.method == "GET" else Role.EDITOR)


def with_form(form: ShowFailure, *pages: Page) -> list[Page]:
    """Return the pages to which the form of a page is submitted. It shows their failures."""
    return [replace(page, form=form) for page in pages]


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

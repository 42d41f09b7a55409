"""People whom an OpenID Connect provider has identified, and the projects of their groups."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

from msgspec import Struct

from mailcheck.core.accounts import Account
from mailcheck.core.identifiers import AccountId
from mailcheck.core.instants import Instant
from mailcheck.core.network_addresses import parse_ip_address
from mailcheck.core.projects import Role

DISCOVERY = "/.well-known/openid-configuration"
"""Path of the metadata of a provider, below its issuer (OpenID Connect Discovery 4)."""

CALLBACK = "/sign-in/company/callback"
"""Path of the redirect address, to which the provider sends browsers back."""

MAX_SUBJECT = 255
"""Maximum number of characters of a subject (OpenID Connect Core 2)."""


MAX_GROUPS = 1_000
"""Maximum number of groups of a person that are read."""


class Identity(Struct, frozen=True):
    """A verified person: the issuer and the subject together never change.

    ``name`` is a proposal for the name of an account. ``groups`` are those of this sign-in.
    ``external_id`` is the id of the person in the directory, or `None` if it is unknown.
    """

    issuer: str
    subject: str
    name: str = ""
    external_id: str | None = None
    groups: tuple[str, ...] = ()


class LinkedIdentity(Struct, frozen=True):
    """An identity that signs in to an account.

    ``external_id`` is the id of the person in the directory at the last sign-in.
    """

    issuer: str
    subject: str
    account_id: AccountId
    linked_at: Instant
    external_id: str | None = None


class KnownPerson(Struct, frozen=True):
    """The account of an identity. ``is_new`` is true if it was created for the identity."""

    account: Account
    is_new: bool


class ManagedPerson(Struct, frozen=True):
    """The account of a person in the directory, and whether the directory has created it."""

    account: Account
    is_created: bool


class GroupRole(Struct, frozen=True):
    """The role that the members of a group have in a project."""

    group: str
    project: str
    role: Role


def is_safe_url(url: str) -> bool:
    """Return whether a URL is HTTPS, or HTTP on this machine."""
    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
        is_plain = parts.username is None and not parts.fragment and url.isascii()
    except ValueError:
        return False
    if not host or not is_plain or any(not "!" <= character <= "~" for character in url):
        return False
    return parts.scheme == "https" or (parts.scheme == "http" and _is_loopback(host))


def _is_loopback(host: str) -> bool:
    address = parse_ip_address(host)
    return host == "localhost" or (address is not None and address.is_loopback)


def parse_group_role(text: str) -> GroupRole:
    """Parse ``group=project:role``. The group may contain ``=``.

    :raises ValueError: the text has another form.
    """
    group, _, target = text.rpartition("=")
    project, _, role = target.rpartition(":")
    roles = ", ".join(Role)
    if not group.strip() or not project.strip() or role.strip() not in list(Role):
        raise ValueError(f"must be of the form group=project:role, with one of the roles {roles}")
    return GroupRole(group.strip(), project.strip(), Role(role.strip()))


def find_claim(claims: Mapping[str, Any], path: str) -> Any:
    """Return a claim, or `None` if it is missing or null.

    A dot leads into an object, as in ``realm_access.roles``, unless the name itself has dots, as in
    ``https://mail.example/roles``.
    """
    found = claims.get(path)
    if found is not None:
        return found
    for name, value in claims.items():
        if isinstance(value, dict) and path.startswith(f"{name}."):
            found = find_claim(value, path[len(name) + 1 :])
            if found is not None:
                return found
    return None


def groups_in(claim: object) -> tuple[str, ...]:
    """Return the groups of a claim, which is a list or a single name."""
    listed = [claim] if isinstance(claim, str) else claim
    if not isinstance(listed, list | tuple):
        return ()
    return tuple(group for group in listed[:MAX_GROUPS] if isinstance(group, str))


def roles_of(groups: Iterable[str], mapping: Sequence[GroupRole]) -> dict[str, Role | None]:
    """Return the highest role of a person in each project of the mapping; `None` is none."""
    held = frozenset(groups)
    found: dict[str, Role | None] = {mapped.project: None for mapped in mapping}
    for role in mapping:
        known = found[role.project]
        if role.group in held and (known is None or role.role.includes(known)):
            found[role.project] = role.role
    return found

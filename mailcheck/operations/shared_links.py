"""Opening a share link: the same for messages and for reports."""

from collections.abc import Awaitable, Callable
from typing import TypeVar

from mailcheck.core.errors import ShareNotFound
from mailcheck.core.identifiers import is_secret

Id = TypeVar("Id")
Found = TypeVar("Found")


async def find_shared(
    token: str,
    parse: Callable[[str], tuple[Id, str]],
    find: Callable[[Id], Awaitable[Found | None]],
    token_of: Callable[[Found], str],
    what_has_gone: str,
) -> Found:
    """Give what a share link leads to.

    :param parse: takes a token apart: whose it is, and the secret.
    :param token_of: gives the token that it has now.
    :raises ShareNotFound: nothing has this link (any more).
    """
    try:
        identifier, secret = parse(token)
    except ValueError:
        raise share_not_found(what_has_gone) from None
    found = await find(identifier)
    if found is None or not is_secret(secret, token_of(found)):
        raise share_not_found(what_has_gone)
    return found


def share_not_found(what_has_gone: str) -> ShareNotFound:
    """Say of a share link that it leads nowhere."""
    return ShareNotFound(f"this share link leads nowhere: revoked, or {what_has_gone}")

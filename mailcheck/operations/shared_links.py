"""Opening share links of messages and of deliverability reports."""

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
    """Return the object of a share link.

    :param parse: splits a token into the id of the object and the secret.
    :param token_of: returns the current token of the object.
    :param what_has_gone: why the link may be invalid, such as "the mail has expired".
    :raises ShareNotFound: the share link is unknown, revoked or expired.
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
    """Return the error for an invalid share link."""
    return ShareNotFound(f"this share link is not valid: it was revoked, or {what_has_gone}")

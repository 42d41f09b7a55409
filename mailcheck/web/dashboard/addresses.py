"""The addresses of pages of a project: the URL alone says which project a page shows.

A page of a project is declared with its path in the project, such as ``/inbox``. Its address is
``/p/<project>/inbox``, with the id of the project, or `MINE` for the person's own account.
"""

from collections.abc import Iterable

from mailcheck.api.urls import PROJECT_PAGES_PATH

BEGINNING = f"{PROJECT_PAGES_PATH}/"

MINE = "me"
"""Names the person's own account. No id of an account has this form."""

ROUTE = f"{BEGINNING}<project>"
"""Beginning of the routes of pages of a project."""


def address_in(project: str, path: str) -> str:
    """Return the address of a page in a project."""
    return f"{BEGINNING}{project}{path}"


def split_address(address: str) -> tuple[str, str]:
    """Return the project that an address names, and the path in it.

    The project is empty if the address names none.
    """
    if not address.startswith(BEGINNING):
        return "", address
    project, slash, path = address.removeprefix(BEGINNING).partition("/")
    return project, slash + path


def first_segment(path: str) -> str:
    """Return the first segment of a path, which may have a query and a fragment."""
    return path.removeprefix("/").partition("?")[0].partition("#")[0].partition("/")[0]


def segments_of(paths: Iterable[str]) -> frozenset[str]:
    """Return the first segments of paths."""
    return frozenset(map(first_segment, paths))

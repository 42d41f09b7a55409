"""The menu of who is signed in: titles and paths, in order, and what lies below an entry."""

from typing import NamedTuple

Entry = tuple[str, str]

MENU: tuple[Entry, ...] = (
    ("Overview", "/"),
    ("Inbox", "/inbox"),
    ("Deliverability", "/tests"),
    ("Domains", "/domain"),
    ("Connect", "/connect"),
    ("Keys", "/keys"),
)

BELOW: dict[str, tuple[Entry, ...]] = {
    "/domain": (
        ("Domain check", "/domain"),
        ("Blocklists", "/blocklists"),
        ("Watches", "/watches"),
        ("Reports", "/reports"),
    )
}
"""Entry of the menu -> the pages that belong together with it, shown in a line below the menu."""


def is_current(entry: str, path: str) -> bool:
    """Tell whether a path lies at or below an entry of the menu, or of what lies below it."""
    return any(
        path == one or (one != "/" and path.startswith(f"{one}/"))
        for one in (entry, *(below for _, below in BELOW.get(entry, ())))
    )


class Below(NamedTuple):
    """A line below the menu: the title of its entry, and each page with whether it is shown.

    ``is_open``: the page that is shown is one of them. The others are there for who goes by keys.
    """

    title: str
    is_open: bool
    pages: tuple[tuple[str, str, bool], ...]


def lines_below(path: str) -> list[Below]:
    """Give the lines below the menu."""
    return [
        Below(
            title,
            is_current(entry, path),
            tuple((name, one, path == one or path.startswith(f"{one}/")) for name, one in pages),
        )
        for title, entry in MENU
        if (pages := BELOW.get(entry, ()))
    ]

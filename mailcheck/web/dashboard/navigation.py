"""The menu of who is signed in: titles and paths, in order, and what lies below an entry."""

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
        ("Check", "/domain"),
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


def entries_below(path: str) -> tuple[str, tuple[tuple[str, str, bool], ...]]:
    """Give the title of the entry that a page lies below, and the pages beside it.

    Each with its path, and whether it is the page itself; nothing where the page has none beside.
    """
    for title, entry in MENU:
        if entry in BELOW and is_current(entry, path):
            return title, tuple(
                (name, one, path == one or path.startswith(f"{one}/")) for name, one in BELOW[entry]
            )
    return "", ()

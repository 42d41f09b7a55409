"""The menu of who is signed in: titles and paths, in order."""

MENU: tuple[tuple[str, str], ...] = (
    ("Overview", "/"),
    ("Inbox", "/inbox"),
    ("Deliverability", "/tests"),
    ("Domain check", "/domain"),
    ("Blocklists", "/blocklists"),
    ("Watches", "/watches"),
    ("Connect", "/connect"),
    ("Keys", "/keys"),
)


def is_current(entry: str, path: str) -> bool:
    """Tell whether a path lies at or below an entry of the menu."""
    return path == entry or (entry != "/" and path.startswith(f"{entry}/"))

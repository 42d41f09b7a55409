"""In which colours the pages are shown: the system's, light or dark, as each browser was told."""

from mailcheck.web.dashboard.cookies import THEME, read_cookie
from mailcheck.web.dashboard.visits import Visit

SYSTEM = "system"
THEMES = {SYSTEM: "System", "light": "Light", "dark": "Dark"}
"""What can be chosen, and how it is called."""


def theme_of(visit: Visit) -> str:
    """Give what was chosen in this browser; the system's where nothing was."""
    chosen = read_cookie(visit.request, THEME, is_secure=visit.is_secure)
    return chosen if chosen in THEMES else SYSTEM

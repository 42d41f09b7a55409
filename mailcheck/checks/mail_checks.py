"""The checks of any mail, as values: what clients show of it, who can read it, where it leads.

What finds them out, in `mailcheck.checks.html_checks`, is loaded in child processes alone.
"""

from collections.abc import Sequence
from enum import Enum

from msgspec import Struct

from mailcheck.checks.findings import Finding


class Place(Struct, frozen=True):
    """A place: its line, counted from 1, and the beginning of what stands there."""

    line: int
    excerpt: str


class Support(Struct, frozen=True):
    """How many clients of a family support something; ``unknown``: not tested, or not clear."""

    family: str
    supported: int = 0
    partial: int = 0
    unsupported: int = 0
    unknown: int = 0


class ClientNote(Struct, frozen=True):
    """What is known of a feature in some clients, by their names."""

    text: str
    clients: tuple[str, ...]


class FeatureFinding(Struct, frozen=True):
    """A feature that not all support: where it stands, ``count`` times, and who supports it.

    ``unsupported`` and ``partial`` name the clients.
    """

    slug: str
    title: str
    tested: str
    support: tuple[Support, ...]
    unsupported: tuple[str, ...]
    partial: tuple[str, ...]
    notes: tuple[ClientNote, ...]
    places: tuple[Place, ...]
    count: int


class NotJudgedKind(Enum):
    """What of a mail can be out of sight."""

    STYLE_SHEET = "style-sheet"
    PICTURE = "picture"


class NotJudged(Struct, frozen=True):
    """What was not to be seen, so that nothing is known of it, and why; ``count`` places."""

    what: NotJudgedKind
    reason: str
    places: tuple[Place, ...]
    count: int


class Compatibility(Struct, frozen=True):
    """What clients make of a mail: the worst findings first, and each family's clients.

    In ``clients`` a client counts as ``supported`` where it supports all that the mail asks for,
    as ``unsupported`` where it lacks something, as ``partial`` where it does all at least in part.
    ``not_judged`` is in none of them.
    """

    source: str
    licence: str
    date: str
    clients: tuple[Support, ...]
    findings: tuple[FeatureFinding, ...]
    not_judged: tuple[NotJudged, ...] = ()


class AccessibilityFinding(Struct, frozen=True):
    """A finding with the criterion of WCAG 2.2 it is about, and the ``count`` places it is at."""

    finding: Finding
    criterion: str
    places: tuple[Place, ...]
    count: int


class Accessibility(Struct, frozen=True):
    """What keeps people from reading a mail.

    ``contrasts_not_judged`` counts pieces of text whose colours the HTML alone does not tell.
    """

    findings: tuple[AccessibilityFinding, ...]
    contrasts_not_judged: int


class MailLink(Struct, frozen=True):
    """A link of a mail. A request may use ``is_best`` and ``is_unsubscribe`` ones up."""

    url: str
    words: str
    is_best: bool = False
    is_unsubscribe: bool = False

    @property
    def is_harmless(self) -> bool:
        """Tell whether it may be asked for without its being chosen by itself."""
        return not (self.is_best or self.is_unsubscribe)


class MailChecks(Struct, frozen=True):
    """The checks; without HTML the first two are nothing. ``is_cut``: it was too long for all."""

    compatibility: Compatibility | None
    accessibility: Accessibility | None
    links: tuple[MailLink, ...]
    is_cut: bool


def list_unsubscribe(header_list: Sequence[tuple[str, str]]) -> tuple[str, ...]:
    """Give the values of List-Unsubscribe: a request for one of their links may leave the list."""
    return tuple(value for name, value in header_list if name.lower() == "list-unsubscribe")

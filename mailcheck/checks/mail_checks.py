"""Results of the checks of a message: client support, accessibility and links.

The code that computes them is in `mailcheck.checks.html_checks` and runs in child processes only.
"""

from enum import Enum

from msgspec import Struct

from mailcheck.checks.findings import Finding
from mailcheck.checks.quality.unsubscribe import OneClick, OneClickOffer


class Place(Struct, frozen=True):
    """A place in the HTML: its line, counted from 1, and the beginning of its text."""

    line: int
    excerpt: str


class Support(Struct, frozen=True):
    """Number of clients of a family that support a feature.

    ``unknown`` counts clients that were not tested, or whose result is not clear.
    """

    family: str
    supported: int = 0
    partial: int = 0
    unsupported: int = 0
    unknown: int = 0


class ClientNote(Struct, frozen=True):
    """A note about a feature in some clients, given by name."""

    text: str
    clients: tuple[str, ...]


class FeatureFinding(Struct, frozen=True):
    """A feature that some clients do not support.

    The mail uses it at ``count`` ``places``. ``unsupported`` and ``partial`` name the clients.
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
    """Kind of content that could not be checked."""

    STYLE_SHEET = "style-sheet"
    PICTURE = "picture"


class NotJudged(Struct, frozen=True):
    """Content that was not available for the check, with the reason; ``count`` places."""

    what: NotJudgedKind
    reason: str
    places: tuple[Place, ...]
    count: int


class Compatibility(Struct, frozen=True):
    """Support of clients for a mail: the worst findings first, and the clients of each family.

    In ``clients`` a client counts as ``supported`` if it supports all features of the mail, as
    ``unsupported`` if it lacks one, and otherwise as ``partial``. ``not_judged`` is not part of
    these counts. ``feature_count`` is the number of features that the mail uses and that were
    tested.
    """

    source: str
    licence: str
    date: str
    clients: tuple[Support, ...]
    findings: tuple[FeatureFinding, ...]
    not_judged: tuple[NotJudged, ...] = ()
    feature_count: int = 0


class AccessibilityFinding(Struct, frozen=True):
    """A finding with its WCAG 2.2 criterion, and the ``count`` places where it occurs."""

    finding: Finding
    criterion: str
    places: tuple[Place, ...]
    count: int


class Accessibility(Struct, frozen=True):
    """Problems that keep people from reading a mail.

    ``contrasts_not_judged`` counts texts whose colours cannot be determined from the HTML alone.
    """

    findings: tuple[AccessibilityFinding, ...]
    contrasts_not_judged: int


class MailLink(Struct, frozen=True):
    """A link of a mail. A request may use up the links ``is_best`` and ``is_unsubscribe``."""

    url: str
    words: str
    is_best: bool = False
    is_unsubscribe: bool = False

    @property
    def is_harmless(self) -> bool:
        """Whether the link may be requested without being selected explicitly."""
        return not (self.is_best or self.is_unsubscribe)


class MailChecks(Struct, frozen=True):
    """All results. The first two are `None` without HTML; ``is_cut`` if the mail was too long.

    ``one_click`` is not requested by any check: a request unsubscribes.
    """

    compatibility: Compatibility | None
    accessibility: Accessibility | None
    links: tuple[MailLink, ...]
    is_cut: bool
    one_click: OneClickOffer = OneClickOffer(lacks=OneClick.NO_FIELD)

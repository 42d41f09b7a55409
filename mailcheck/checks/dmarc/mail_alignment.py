"""Whether an identifier belongs to the author domain (RFC 9989 4.4, 4.10.2)."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from mailcheck.checks.dmarc.tree_walk import TreeWalk, WalkStep, walk_tree
from mailcheck.checks.dns_answers import Answers
from mailcheck.checks.lookups import Presence
from mailcheck.checks.mail_domains import read_mail_domain
from mailcheck.core.domain_names import is_within

MAX_FORESEEN = 10
"""Identifiers whose walks are begun before it is known that they are needed."""


@dataclass(frozen=True, slots=True)
class Alignment:
    """Whether an identifier aligns; nothing if ``silent_names`` did not answer."""

    is_aligned: bool | None
    silent_names: tuple[str, ...] = ()


def align(identifier: str, author_walk: TreeWalk, *, strict: bool, answers: Answers) -> Alignment:
    """Compare a domain with the author domain, whose walk is known.

    A walk from the identifier is made only where it can change the result: the
    organizational domain of a name is the name or stands above it.
    """
    if identifier == author_walk.start:
        return Alignment(is_aligned=True)
    if strict:
        return Alignment(is_aligned=False)
    home = author_walk.organizational_domain
    if home is None:
        is_possible = any(is_within(identifier, name) for name in _possible_homes(author_walk))
        return Alignment(None, author_walk.silent_names) if is_possible else Alignment(False)
    if not is_within(identifier, home):
        return Alignment(is_aligned=False)
    walk = walk_tree(identifier, answers)
    if walk.organizational_domain is None:
        return Alignment(None, walk.silent_names)
    return Alignment(walk.organizational_domain == home)


def foresee_walks(author_domain: str, identifiers: Iterable[str], answers: Answers) -> None:
    """Name the questions of walks that will be needed if these identifiers pass.

    Those that have no more in common with the author domain than its last
    label are left out: their walks are never needed, but for odd top-level domains.
    """
    end = author_domain.split(".")[-2:]
    names = (read_mail_domain(text) for text in identifiers)
    related = (n for n in names if n and n != author_domain and n.split(".")[-2:] == end)
    for name in list(dict.fromkeys(related))[:MAX_FORESEEN]:
        walk_tree(name, answers)


def _possible_homes(walk: TreeWalk) -> Iterator[str]:
    """Give the highest that the organizational domain may be, whatever the silent names hold."""
    known = tuple(_as_absent(step) for step in walk.steps)
    home = TreeWalk(walk.start, known).organizational_domain
    yield home or walk.start
    for step in walk.steps:
        if step.presence is Presence.UNDETERMINED:
            yield step.domain


def _as_absent(step: WalkStep) -> WalkStep:
    is_silent = step.presence is Presence.UNDETERMINED
    return replace(step, presence=Presence.ABSENT) if is_silent else step

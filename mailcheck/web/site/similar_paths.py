"""The path that an unknown path may have meant."""

from collections.abc import Iterable, Sequence

from mailcheck.core.errors import nearest_word

CLOSE_PATH = 0.83
"""The same for paths, which have most of their characters in common."""

MAX_SEGMENTS, MAX_PATH = 12, 200
"""Maximum numbers of segments and characters of a path that is compared: strangers send it."""

MAX_MISSING = 2
"""Maximum number of segments that a path may lack, such as the prefix of the API."""


def nearest_path(path: str, patterns: Iterable[str]) -> str | None:
    """Return the most similar path, or `None` if none is similar.

    :param patterns: paths with variables, such as ``/inbox/messages/<id>``. Their values come from
        the path.
    """
    from difflib import SequenceMatcher

    sent = path.split("/")
    if len(sent) > MAX_SEGMENTS or len(path) > MAX_PATH:
        return None
    best, closeness = None, CLOSE_PATH
    for pattern in sorted(patterns):
        filled, bare, emptied = _fill(pattern.split("/"), sent)
        if not filled or filled == path:
            continue
        if filled.endswith(path) and set(emptied) - {"", "*"}:  # only the beginning is missing
            return filled
        if len(bare) == len(emptied) and not _are_similar(bare, emptied):
            continue
        # The values of variables are equal in both. They would make all paths similar.
        matcher = SequenceMatcher(None, "/".join(bare), "/".join(emptied))
        if matcher.quick_ratio() <= closeness:  # an upper bound, which takes less time
            continue
        likeness = matcher.ratio()
        if likeness > closeness:
            best, closeness = filled, likeness
    return best


def _are_similar(segments: Iterable[str], others: Iterable[str]) -> bool:
    """Return whether each pair of segments is similar, since paths have most of them in common."""
    pairs = zip(segments, others, strict=True)
    return all(word == other or nearest_word(word, [other]) for word, other in pairs)


def _fill(pattern: Sequence[str], sent: Sequence[str]) -> tuple[str, Sequence[str], Sequence[str]]:
    """Return a pattern with the values of a path, and the segments of both without values.

    Segments are counted from the end. The text is empty if a value is missing.
    """
    missing = len(pattern) - len(sent)
    filled, bare, emptied = list(pattern), list(pattern), list(sent)
    if abs(missing) > MAX_MISSING:
        return "", (), ()
    for place, segment in enumerate(pattern):
        if segment.startswith("<"):
            if place < missing or not sent[place - missing]:
                return "", (), ()
            filled[place] = sent[place - missing]
            bare[place] = emptied[place - missing] = "*"
    return "/".join(filled), bare, emptied

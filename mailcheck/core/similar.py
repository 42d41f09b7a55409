"""The most similar of the words that could have been meant, for error messages."""

from collections.abc import Collection, Iterable, Sequence

CLOSE = 0.5
"""Similarity from which a word is named, between 0 and 1."""

CLOSE_PATH = 0.83
"""The same for paths, which have most of their characters in common."""

MAX_SEGMENTS, MAX_PATH = 12, 200
"""Maximum numbers of segments and characters of a path that is compared: strangers send it."""

MAX_MISSING = 2
"""Maximum number of segments that a path may lack, such as the prefix of the API."""


def nearest(word: str, words: Collection[str], close: float = CLOSE) -> str | None:
    """Return the most similar of some words, or `None` if none is similar."""
    from difflib import get_close_matches  # only loaded for errors

    return next(iter(get_close_matches(word, list(words), 1, close)), None)


def did_you_mean(word: str, words: Collection[str]) -> str:
    """Return the question that names the most similar word, or what there is if none is."""
    similar = nearest(word, words)
    return f"did you mean {similar}?" if similar else f"there are {', '.join(words)}"


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
        likeness = SequenceMatcher(None, "/".join(bare), "/".join(emptied)).ratio()
        if likeness > closeness:
            best, closeness = filled, likeness
    return best


def _are_similar(segments: Iterable[str], others: Iterable[str]) -> bool:
    """Return whether each pair of segments is similar, since paths have most of them in common."""
    pairs = zip(segments, others, strict=True)
    return all(one == other or nearest(one, [other]) for one, other in pairs)


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

"""Other kinds of codes: "date code 2604418", "code agence : 20418", "код подразделения 770-048".

There are too many to list, so the words that leave a code a one-time code are
listed instead (``[compounds]`` of ``code_words.toml``).
"""

from mailcheck.checks.content.code_marks import TIGHT, WORD_BEFORE, WORD_BEHIND, known_words
from mailcheck.checks.content.code_shapes import Shape
from mailcheck.checks.content.code_text import CodeText
from mailcheck.checks.content.folding import fold
from mailcheck.checks.content.phrases import Occurrence

_REACH = 40
_PLAIN_CODE = frozenset(("code", "codes"))
_HEADS = frozenset(("code", "codes", "codigo", "codigos", "codice", "codici", "kod", "код"))


def is_other_code(text: CodeText, shape: Shape) -> bool:
    """Tell whether the word "code" before a number is part of an unknown compound."""
    word = text.last_before("code", shape.start)
    if word is None or shape.start - word.end > _REACH:
        return False
    head = text.folded[word.start : word.end]
    return (head in _HEADS and _has_unknown_behind(text, word, shape.start)) or (
        head in _PLAIN_CODE and _has_unknown_before(text, word)
    )


def _has_unknown_behind(text: CodeText, word: Occurrence, end: int) -> bool:
    match = WORD_BEHIND.match(text.plain, word.end, end)
    if match is None or not TIGHT.fullmatch(text.plain, match.end(), end):
        return False
    return _is_unknown(match[1], "behind")


def _has_unknown_before(text: CodeText, word: Occurrence) -> bool:
    """A word with a capital is a name ("your Example code") and leaves the code what it is."""
    match = WORD_BEFORE.search(text.plain[max(0, word.start - _REACH) : word.start])
    return match is not None and _is_unknown(match[1], "before")


def _is_unknown(word: str, place: str) -> bool:
    return word.islower() and fold(word) not in known_words(place)

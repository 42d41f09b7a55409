"""Other kinds of codes: "date code 2604418", "code agence : 20418", "код подразделения 770-048".

There are too many to list, so the words that leave a code a one-time code are
listed instead (``[compounds]`` of ``code_words.toml``).
"""

import re
from functools import cache

from mailcheck.checks.content.code_evidence import TIGHT
from mailcheck.checks.content.code_shapes import Shape
from mailcheck.checks.content.code_text import CodeText
from mailcheck.checks.content.folding import fold
from mailcheck.checks.content.phrases import Occurrence
from mailcheck.checks.content.word_tables import load_table

_REACH = 40
_LETTER = r"(?:(?![\u2e80-\U0010ffff])[^\W\d_])"
_WORD_BEFORE = re.compile(rf"(?<!\w)({_LETTER}{{1,30}}) \Z")
_WORD_BEHIND = re.compile(rf" ({_LETTER}{{1,30}})(?!\w)")
_PLAIN_CODE = frozenset(("code", "codes"))
_HEADS = frozenset(
    ("code", "codes", "codigo", "codigos", "codice", "codici", "kod", "kodu", "код", "коду")
)


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
    match = _WORD_BEHIND.match(text.folded, word.end, end)
    if match is None or not TIGHT.fullmatch(text.plain, match.end(), end):
        return False
    return match[1] not in _known("behind")


def _has_unknown_before(text: CodeText, word: Occurrence) -> bool:
    """A word with a capital is a name ("your Example code") and leaves the code what it is."""
    match = _WORD_BEFORE.search(text.plain[max(0, word.start - _REACH) : word.start])
    return match is not None and match[1].islower() and fold(match[1]) not in _known("before")


@cache
def _known(place: str) -> frozenset[str]:
    return frozenset(map(fold, load_table("code_words.toml")["compounds"][place]))

"""What lies between a number and the words about it: marks, ends of sentences, known words."""

import re
from functools import cache

from mailcheck.checks.content.folding import fold
from mailcheck.checks.content.word_tables import load_table

# A full stop after one or two letters belongs to an abbreviation ("no. 4", "z dn. 3").
SENTENCE_END = re.compile(r"(?<!\b[^\W\d_])(?<!\b[^\W\d_]{2})[.!?](?:\s|\Z)|[。！？]")
TIGHT = re.compile(r"[\s\"'`*_()\[\]<>«»“”„‘’「」『』【】〔〕（）:：=→#-]*+")
_LETTER = r"(?:(?![\u2e80-\U0010ffff])[^\W\d_])"
WORD_BEHIND = re.compile(
    rf" (?:(?:de|di|do|da|du|del|della) |d['’])?({_LETTER}{{1,30}})(?!\w)", re.IGNORECASE
)
WORD_BEFORE = re.compile(rf"(?<!\w)({_LETTER}{{1,30}}) \Z")


@cache
def known_words(place: str) -> frozenset[str]:
    """List the words that may stand ``before`` or ``behind`` the word "code"."""
    return frozenset(map(fold, load_table("code_words.toml")["compounds"][place]))


def skip_known_word(gap: str) -> int:
    """Say where a gap behind the word "code" goes on after an adjective of it."""
    match = WORD_BEHIND.match(gap)
    return match.end() if match and fold(match[1]) in known_words("behind") else 0

"""Other kinds of codes: "date code 2604418", "code agence : 20418", "код подразделения 770-048".

There are too many to list, so the words that leave a code a one-time code are
listed instead (``[compounds]`` of ``code_words.toml``).
"""

from mailcheck.checks.content.code_marks import (
    TIGHT,
    WORD_BEFORE,
    WORD_BEHIND,
    known_words,
)
from mailcheck.checks.content.folding import fold
from mailcheck.checks.content.phrases import Occurrence

_REACH = 40
_PLAIN_CODE = frozenset(("code", "codes"))
_PLAIN_CODE_CJK = frozenset(("コード", "代码", "代碼", "코드"))
_HEADS = frozenset(("code", "codes", "codigo", "codigos", "codice", "codici", "kod", "код"))


def is_compound(plain: str, folded: str, word: Occurrence) -> bool:
    """Tell whether an unknown word before "code" makes it another kind of code.

    A word with a capital is a name ("your Example code") and leaves it what it is.
    """
    head = folded[word.start : word.end]
    if word.kind != "code" or head not in _PLAIN_CODE:
        return head in _PLAIN_CODE_CJK and _is_joined(plain[word.start - 1 : word.start])
    match = WORD_BEFORE.search(plain[max(0, word.start - _REACH) : word.start])
    return match is not None and _is_unknown(match[1], "before")


def _is_joined(character: str) -> bool:
    """Tell whether a CJK character makes one word with what follows: no particle does."""
    is_kana = "\u3040" <= character <= "\u309f"
    return (
        character >= "\u2e80"
        and character.isalpha()
        and not is_kana
        and character not in "的此该該为為是本"
    )


def has_unknown_behind(plain: str, folded: str, word: Occurrence, number: int) -> bool:
    """Tell whether just an unknown word lies between "code" and the number at an offset."""
    if number - word.end > _REACH or folded[word.start : word.end] not in _HEADS:
        return False
    match = WORD_BEHIND.match(plain, word.end, number)
    if match is None or not TIGHT.fullmatch(plain, match.end(), number):
        return False
    return _is_unknown(match[1], "behind")


def _is_unknown(word: str, place: str) -> bool:
    return word.islower() and fold(word) not in known_words(place)

"""What speaks for a number's being a one-time code. The findings are keys of ``codes.POINTS``."""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from functools import cache

from mailcheck.checks.content.code_marks import SENTENCE_END, TIGHT, skip_known_word
from mailcheck.checks.content.code_shapes import Shape
from mailcheck.checks.content.code_text import CodeText
from mailcheck.checks.content.folding import fold
from mailcheck.checks.content.word_tables import load_table

_NEAR = 60  # characters between a code and its keyword
_HEADING_REACH = 250  # the sentence above a code that has a line of its own
_REACH_BEFORE = 150  # "verification code for your account at Example is 123456"
_REACH_AFTER = 50  # "123456 is your Example Online Banking code"
_ROW_REACH = 300  # a row of a table
_LINK_REACH = 30  # "code for login 123456"
_LETTERS_PER_VOWEL = 5  # words have a vowel in two or three letters
_PROMINENT_LENGTH = 40  # a longer bold or large piece is a sentence or a headline

_OTHER_NUMBER = re.compile(r"(?<![0-9.,:/-])[0-9]{4,}+(?![0-9]|[.,:/-][0-9])")
_MARKS = " \t\r\"'`*_()[]{}<>«»“”„‘’「」『』【】〔〕（）|:.,;=~#。、，：-"
_WORDS_ONLY = re.compile(r" (?:[^\W\d_]+ ){0,4}")
_OPEN_BRACKET = re.compile(r"\s?[(（【\[][^)）】\]\n]{0,40}")


def find_evidence(text: CodeText, shape: Shape) -> Iterator[str]:
    """Name what speaks for a code in its surroundings."""
    is_alone = _is_alone(text, shape)
    if _is_explicit(text, shape):
        yield "explicit"
    elif _is_asked(text, shape, "purpose"):
        yield "asked"
    elif _is_linked(text, shape) or _is_asked_nearby(text, shape):
        yield "linked"
    elif _leads(text, shape):
        yield "leads"
    elif _is_under_heading(text, shape):
        yield "heading"
    if is_alone:
        yield "alone"
    elif _is_prominent(text, shape):
        yield "prominent"
    reach = _HEADING_REACH if is_alone else _NEAR
    for kind, finding in (("code", "keyword"), ("purpose", "purpose")):
        if text.is_near(kind, shape.start, shape.end, reach, _NEAR):
            yield finding
            return


def _is_alone(text: CodeText, shape: Shape) -> bool:
    start = text.plain.rfind("\n", 0, shape.start) + 1
    end = text.plain.find("\n", shape.end)
    end = len(text.plain) if end < 0 else end
    before = text.plain[max(start, shape.start - _NEAR) : shape.start]
    after = text.plain[shape.end : min(end, shape.end + _NEAR)]
    return not (before + after).strip(_MARKS)


def _is_prominent(text: CodeText, shape: Shape) -> bool:
    first = bisect_left(text.prominent, (shape.start - _PROMINENT_LENGTH, 0))
    last = bisect_right(text.prominent, (shape.start, shape.start + 2 * _PROMINENT_LENGTH))
    return any(
        shape.end <= end <= start + _PROMINENT_LENGTH for start, end in text.prominent[first:last]
    )


def _is_explicit(text: CodeText, shape: Shape) -> bool:
    """Tell whether the text says in so many words that this is the code."""
    return (
        _is_named_before(text, shape)
        or _is_named_after(text, shape)
        or _is_asked(text, shape, "code")
    )


def _is_named_before(text: CodeText, shape: Shape) -> bool:
    """``your code for Example is 123456``, ``code: 123456``, a code under its heading."""
    word = text.last_before("code", shape.start)
    if word is None or shape.start - word.end > _REACH_BEFORE:
        return False
    gap = text.plain[word.end : shape.start]
    if TIGHT.fullmatch(gap, skip_known_word(gap)):
        return True
    if SENTENCE_END.search(gap.rstrip()[:-1]):
        return False
    is_plain = not _OTHER_NUMBER.search(gap)
    return any(
        TIGHT.fullmatch(gap, connector.end()) and (is_plain or connector.group().isalpha())
        for connector in _connectors("before").finditer(text.folded[word.end : shape.start])
    )


def _is_named_after(text: CodeText, shape: Shape) -> bool:
    """``123456 is your code``, ``123456 (code)``."""
    word = text.first_after("code", shape.end)
    if word is None or word.start - shape.end > _REACH_AFTER:
        return False
    gap = text.plain[shape.end : word.start]
    if "\n" in gap.strip():
        return False
    if _OPEN_BRACKET.fullmatch(gap):
        return True
    if TIGHT.fullmatch(gap):
        return "\n" not in gap and ":" not in gap
    if _OTHER_NUMBER.search(gap) or SENTENCE_END.search(gap):
        return False
    connector = _connectors("after").search(text.folded, shape.end, word.start)
    return connector is not None and bool(TIGHT.fullmatch(text.plain, shape.end, connector.start()))


def _is_asked(text: CodeText, shape: Shape, kind: str) -> bool:
    """``use 123456 as your code``, ``enter 123456 to sign in``, in one sentence."""
    if not (_follows(text, shape, "verb") or _follows(text, shape, "use")):
        return False
    before = text.last_before(kind, shape.start)
    after = text.first_after(kind, shape.end)
    gaps = [(before.end, shape.start)] if before else []
    gaps += [(shape.end, after.start)] if after else []
    return any(
        end - start <= 2 * _NEAR and not SENTENCE_END.search(text.plain, start, end)
        for start, end in gaps
    )


def _is_under_heading(text: CodeText, shape: Shape) -> bool:
    """Tell whether a code is in a table, and the cell above speaks of codes."""
    plain = text.plain
    line = plain.rfind("\n", max(0, shape.start - _ROW_REACH), shape.start)
    above = plain.rfind("\n", max(0, line - _ROW_REACH), line) if line > 0 else -1
    row, heading = plain[line + 1 : shape.end + 1], plain[above + 1 : line]
    column = row[: shape.start - line - 1].count("\t")
    cells = heading.split("\t")
    if line <= 0 or "\t" not in row or "\t" not in heading or column >= len(cells):
        return False
    start = above + 1 + sum(len(cell) + 1 for cell in cells[:column])
    word = text.first_after("code", start)
    return word is not None and word.end <= start + len(cells[column])


def _is_asked_nearby(text: CodeText, shape: Shape) -> bool:
    """``enter 123456``, where codes or signing in are spoken of."""
    return _follows(text, shape, "verb") and any(
        text.is_near(kind, shape.start, shape.end, 2 * _NEAR, 2 * _NEAR)
        for kind in ("code", "purpose")
    )


def _leads(text: CodeText, shape: Shape) -> bool:
    """``123456 Acme doğrulama kodunuzdur``: it opens the sentence, and words up to the code's."""
    word = text.first_after("code", shape.end)
    if word is None or word.start - shape.end > _REACH_AFTER:
        return False
    is_first = not text.plain[max(0, shape.start - 1) : shape.start].strip("\n")
    return is_first and _WORDS_ONLY.fullmatch(text.plain, shape.end, word.start) is not None


def _follows(text: CodeText, shape: Shape, kind: str) -> bool:
    word = text.last_before(kind, shape.start)
    return word is not None and bool(TIGHT.fullmatch(text.plain, word.end, shape.start))


def _is_linked(text: CodeText, shape: Shape) -> bool:
    """``the code for login 123456``: a preposition and a word or two between."""
    word = text.last_before("code", shape.start)
    if word is None or shape.start - word.end > _LINK_REACH:
        return False
    gap = text.folded[word.end : shape.start]
    match = _connectors("link").match(gap.lstrip())
    return match is not None and re.fullmatch(r"[^0-9.!?:;,\n]*", gap.strip()) is not None


@cache
def _connectors(place: str) -> re.Pattern[str]:
    words = sorted(map(fold, load_table("code_words.toml")["connectors"][place]), key=len)
    spaced = [re.escape(word) for word in reversed(words) if word[0].isalpha() and word < "\u2e80"]
    others = [re.escape(word) for word in words if not (word[0].isalpha() and word < "\u2e80")]
    return re.compile("|".join([rf"\b(?:{'|'.join(spaced)})\b", *others]))


def judge_letters(value: str, *, is_alone: bool) -> Iterator[str]:
    """Tell a code of letters alone from a word in capitals: codes rarely have vowels."""
    if not is_alone:
        yield "inline letters"
    if len(value) > _LETTERS_PER_VOWEL * sum(letter in "AEIOUY" for letter in value):
        yield "random"

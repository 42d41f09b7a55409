"""Evidence for a number being a one-time code, in the terms of ``codes.POINTS``."""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence, Set
from functools import cache

from mailcheck.checks.content.code.code_text import (
    SENTENCE_END,
    TIGHT,
    CodeText,
    begins_with_connector,
    ends_with_connector,
    find_connector,
    is_specific,
    names_owner,
    skip_word,
    words_of,
)
from mailcheck.checks.content.code.shapes import (
    FEWEST_LETTERS,
    Shape,
    is_like_coupon,
    is_like_name,
    is_word,
)
from mailcheck.checks.content.phrases import LETTERS, Occurrence, is_unspaced, load_table

_NEAR = 60  # characters between a code and its keyword
_HEADING_REACH = 250  # for the sentence above a code on its own line
REACH_BEFORE = 150  # "verification code for your account at Example is 123456"
REACH_AFTER = 50  # "123456 is your Example Online Banking code"
_ROW_REACH = 300  # for a row of a table
_LINK_REACH = 30  # "code for login 123456"
_VERB_REACH = 10  # "123456 を画面に入力"
_PROMINENT_LENGTH = 40  # longer bold or large text is a sentence or a headline

_OTHER_NUMBER = re.compile(r"(?<![0-9.,:/*•●·…xX-])[0-9]{4,}+(?![0-9]|[.,:/-][0-9])")
_MARKS = " \t\r\"'`*_()[]{}<>«»“”„‘’「」『』【】〔〕（）|:.,;=~#。、，：-"
_WORDS_ONLY = re.compile(rf"[:,]? (?:[{LETTERS}]+ ){{0,4}}")
_OPEN_BRACKET = re.compile(r"\s?[(（【\[][^)）】\]\n]{0,40}")


_APART = re.compile(r"[\n\]]")  # "[8x8] Your code"

_SENTENCE = 12
"""Characters before the word for a code that show whether all of a sentence is in capitals."""

_CLAUSE_END = re.compile(
    r"[\"'`*_)\]>»”’」』】）]*+(?:[.,;!](?!\w)|\s*(?:\n|\Z)| ?[\u0e00-\u0eff\u2e80-\uffef])"
)

NEW_SENTENCE = re.compile(rf"{SENTENCE_END.pattern}|\n")
COLON = re.compile(r"[:：\n]")


def find_evidence(text: CodeText, shape: Shape, naming: Sequence[str]) -> Iterator[str]:
    """Yield the evidence for a code in its surroundings, ``naming`` included."""
    start = text.plain.rfind("\n", 0, shape.start) + 1
    end = text.plain.find("\n", shape.end)
    end = len(text.plain) if end < 0 else end
    before = text.plain[max(start, shape.start - _NEAR) : shape.start]
    after = text.plain[shape.end : min(end, shape.end + _NEAR)]
    is_alone = not (before + after).strip(_MARKS)
    if naming:
        yield from naming
    elif _is_asked(text, shape, "purpose"):
        yield "asked"
    elif _is_linked(text, shape) or _is_asked_nearby(text, shape, is_alone=is_alone):
        yield "linked"
    elif _leads(text, shape):
        yield "leads"
    elif _is_under_heading(text, shape):
        yield "heading"
    if is_alone:
        yield "alone"
    elif is_prominent(text, shape):
        yield "prominent"
    reach = _HEADING_REACH if is_alone else _NEAR
    for kind, finding in (("code", "keyword"), ("purpose", "purpose")):
        if text.is_near(kind, shape.start, shape.end, reach, _NEAR):
            yield finding
            return


def find_naming(text: CodeText, shape: Shape) -> tuple[str, ...]:
    """Return the evidence that a sentence calls this a code, and whether it says so outright.

    If it does, a token of any format is a code. It says so directly before the code ("Your login
    code is BEP2", "OTP: BEP2"), behind it ("BEP2 is your login code") or with a verb ("Use BEP2 as
    your login code"). A word that means any kind of code needs its owner ("Your code is BEP2") or a
    word for signing in in the sentence.
    """
    word = _find_name_before(text, shape)
    if word is None:
        is_asked = not is_named_after(text, shape)
        if is_asked and not _is_asked(text, shape, "code"):
            return ("explicit",) if _is_named_before(text, shape) else ()
        word = _find_name_behind(text, shape, is_asked=is_asked)
    if word is None:
        return ("explicit",)
    if is_specific(text.folded, word):
        return ("explicit", "named", "specific")
    is_named = names_owner(text.folded, word.end) or text.is_in_sentence(
        "purpose", shape.start, shape.end, 2 * _NEAR
    )
    return ("explicit", "named") if is_named else ("explicit",)


def outweighs_discount(text: CodeText, shape: Shape, evidence: Set[str]) -> bool:
    """Return whether a number is a code although the subject offers a discount.

    It is, if it is named as a code for signing in, or if the mail gives it for signing in: the
    sentence or the subject says so, or the mail warns about sharing it.
    """
    if is_like_coupon(shape.value):
        return False
    return "specific" in evidence or (
        not evidence.isdisjoint(("explicit", "asked"))
        and (
            bool(text.words.get("caution"))
            or text.is_in_sentence("purpose", shape.start, shape.end, 2 * _NEAR)
            or (shape.value.isdigit() and evidence >= {"named", "subject purpose"})
        )
    )


def _find_name_before(text: CodeText, shape: Shape) -> Occurrence | None:
    word = text.last_before("code", shape.start)
    if word is None or shape.start - word.end > REACH_BEFORE:
        return None
    connector = find_connector(text.plain, text.folded, word, shape.start)
    if connector is None or not _is_drawn(text, shape, word, connector):
        return None
    return word


def _find_name_behind(text: CodeText, shape: Shape, *, is_asked: bool) -> Occurrence | None:
    word = text.first_after("code", shape.end)
    if word is None or _APART.search(text.plain, shape.end, word.start):
        return None
    if not is_asked and not begins_with_connector(text.folded[shape.end : word.start]):
        return None
    return word if _is_drawn(text, shape, word, "verb") else None


def _is_drawn(text: CodeText, shape: Shape, word: Occurrence, connector: str) -> bool:
    """Return whether a token beside the word that names it is a code, not an ordinary word.

    Letters are a code if they spell no word. Four letters after "is" or a colon are also a code if
    they alone are capitals and end their clause: "is BAFE.", but not "is ONLY for you".
    """
    value = shape.value
    has_digit = any(map(str.isdigit, value))
    if connector == "blank" and not has_digit:
        return value.isupper() and not is_word(value) and _is_behind_request(text, word)
    if connector == "blank":
        return value.isupper() or value.isdigit()
    if connector == "verb":
        return not is_like_name(value) if has_digit else value.isupper() and not is_word(value)
    if has_digit or not is_word(value):
        return True
    if len(value) != FEWEST_LETTERS or not value.isupper():
        return False
    is_shouted = text.plain[max(0, word.start - _SENTENCE) : word.end].isupper()
    return not is_shouted and _CLAUSE_END.match(text.plain, shape.end) is not None


def _is_behind_request(text: CodeText, word: Occurrence) -> bool:
    """Return whether a sentence asks to type or use a code: "enter the code"."""
    return any(
        verb is not None
        and word.start - verb.end <= _LINK_REACH
        and not NEW_SENTENCE.search(text.plain, verb.end, word.start)
        for verb in (text.last_before(kind, word.start) for kind in ("verb", "use"))
    )


def is_prominent(text: CodeText, shape: Shape) -> bool:
    """Return whether a number is large or bold without a sentence around it."""
    first = bisect_left(text.prominent, (shape.start - _PROMINENT_LENGTH, 0))
    last = bisect_right(text.prominent, (shape.start, shape.start + 2 * _PROMINENT_LENGTH))
    return any(
        shape.end <= end <= start + _PROMINENT_LENGTH for start, end in text.prominent[first:last]
    )


def _is_named_before(text: CodeText, shape: Shape) -> bool:
    """Match ``your code for Example is 123456``, ``code: 123456`` and a code under a heading."""
    word = text.last_before("code", shape.start)
    if word is None or shape.start - word.end > REACH_BEFORE:
        return False
    gap = text.plain[word.end : shape.start]
    if TIGHT.fullmatch(gap) or TIGHT.fullmatch(gap, skip_word(gap, text.folded, word)):
        return True
    if _is_purpose(text, word.end, shape):
        return True
    if SENTENCE_END.search(gap.rstrip()[:-1]):
        return False
    connector = ends_with_connector(text.folded[word.end : shape.start])
    return connector == "word" or (connector == "sign" and not _OTHER_NUMBER.search(gap))


def _is_purpose(text: CodeText, start: int, shape: Shape) -> bool:
    """Return whether only a word for the purpose is between: "کد ورود 123456"."""
    purpose = text.last_before("purpose", shape.start)
    return (
        purpose is not None
        and purpose.start >= start
        and not text.plain[start : purpose.start].strip(" ")
        and TIGHT.fullmatch(text.plain, purpose.end, shape.start) is not None
    )


def is_named_after(text: CodeText, shape: Shape) -> bool:
    """Match ``123456 is your code`` and ``123456 (code)``."""
    word = text.first_after("code", shape.end)
    if word is None or word.start - shape.end > REACH_AFTER:
        return False
    gap = text.plain[shape.end : word.start]
    if "\n" in (gap if shape.value.isalpha() else gap.strip()):
        return False
    if _OPEN_BRACKET.fullmatch(gap):
        return True
    if TIGHT.fullmatch(gap):
        return "\n" not in gap and not COLON.search(gap)
    if _OTHER_NUMBER.search(gap) or SENTENCE_END.search(gap):
        return False
    names_purpose = _purposes().fullmatch(gap) is not None
    return names_purpose or begins_with_connector(text.folded[shape.end : word.start])


@cache
def _purposes() -> re.Pattern[str]:
    """Return a pattern for text with only the purpose before the word: ``482913短信登录验证码``."""
    words = sorted(words_of("between") | words_of("purpose"), key=len, reverse=True)
    known = "|".join(re.escape(word) for word in words if is_unspaced(word[0]))
    return re.compile(rf"[ （(【「]?(?:{known}){{1,4}}")


def _is_asked(text: CodeText, shape: Shape, kind: str) -> bool:
    """Match ``use 123456 as your code`` and ``enter 123456 to sign in`` in one sentence."""
    if not (
        _follows(text, shape, "verb") or _follows(text, shape, "use") or _leads_verb(text, shape)
    ):
        return False
    return text.is_in_sentence(kind, shape.start, shape.end, 2 * _NEAR)


def _is_under_heading(text: CodeText, shape: Shape) -> bool:
    """Return whether a code is in a table whose cell above has a word for a code."""
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


def _is_asked_nearby(text: CodeText, shape: Shape, *, is_alone: bool) -> bool:
    """Match ``enter 123456`` near a word for a code or for signing in."""
    is_asked = _follows(text, shape, "verb") or (is_alone and _is_asked_above(text, shape))
    return is_asked and any(
        text.is_near(kind, shape.start, shape.end, 2 * _NEAR, 2 * _NEAR)
        for kind in ("code", "purpose")
    )


def _is_asked_above(text: CodeText, shape: Shape) -> bool:
    """Match ``type these digits on the page:`` before a separate line."""
    verb = text.last_before("verb", shape.start)
    if verb is None or shape.start - verb.end > 2 * _NEAR:
        return False
    gap = text.plain[verb.end : shape.start].rstrip()
    return not SENTENCE_END.search(gap[:-1]) and not _OTHER_NUMBER.search(gap)


def _leads(text: CodeText, shape: Shape) -> bool:
    """Match ``123456 Acme doğrulama kodunuzdur``: the number begins the sentence."""
    word = text.first_after("code", shape.end)
    if word is None or word.start - shape.end > REACH_AFTER:
        return False
    is_first = not text.plain[max(0, shape.start - 1) : shape.start].strip("\n")
    return is_first and _WORDS_ONLY.fullmatch(text.plain, shape.end, word.start) is not None


def _follows(text: CodeText, shape: Shape, kind: str) -> bool:
    word = text.last_before(kind, shape.start)
    return word is not None and bool(TIGHT.fullmatch(text.plain, word.end, shape.start))


def _leads_verb(text: CodeText, shape: Shape) -> bool:
    """Return whether a verb follows directly, as in Japanese, Hindi or Turkish."""
    verb = text.first_after("verb", shape.end)
    if verb is None or verb.start - shape.end > _VERB_REACH:
        return False
    return re.search(r"[0-9.,!?\n。、]", text.plain[shape.end : verb.start]) is None


def _is_linked(text: CodeText, shape: Shape) -> bool:
    """Match ``the code for login 123456``, with a preposition and a word or two between."""
    word = text.last_before("code", shape.start)
    if word is None or shape.start - word.end > _LINK_REACH:
        return False
    gap = text.folded[word.end : shape.start].strip()
    is_plain = re.fullmatch(r"[^0-9.!?:;,\n]+", gap) is not None
    return is_plain and gap.split()[0] in words_of("link")


def find_letter_evidence(value: str, evidence: Set[str]) -> Iterator[str]:
    """Yield evidence whether letters are a code or a word in capitals, by their letter pairs."""
    is_short = len(value) == FEWEST_LETTERS
    if value.lower() in _capitals():
        yield "known word"
    elif not is_word(value):
        yield "random"
        is_called = "named" in evidence or ("explicit" in evidence and not is_short)
        if not is_called and "alone" not in evidence:
            yield "inline letters"
    elif (not is_short and "alone" not in evidence) or (is_short and "specific" not in evidence):
        yield "inline letters"


@cache
def _capitals() -> frozenset[str]:
    """Return words that mails write in capitals and words that occur near codes."""
    capitals = load_table("code_words.toml")["capitals"]
    words = frozenset([*capitals["words"], *capitals["four"].split()])
    kinds = ("purpose", "verb", "use", "label", "thing", "promotion", "footer", "code", "your")
    return words.union(*map(words_of, kinds))

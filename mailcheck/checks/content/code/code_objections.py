"""Evidence against a number being a one-time code, in the terms of ``codes.POINTS``."""

import re
from collections.abc import Iterator, Set
from itertools import pairwise

from mailcheck.checks.content.code.code_evidence import (
    COLON,
    NEW_SENTENCE,
    REACH_AFTER,
    REACH_BEFORE,
    is_named_after,
)
from mailcheck.checks.content.code.code_text import (
    SENTENCE_END,
    TIGHT,
    CodeText,
    has_unknown_behind,
    words_of,
)
from mailcheck.checks.content.code.shapes import Shape, is_like_coupon, is_like_name
from mailcheck.checks.content.phrases import Occurrence

_CONNECTED = re.compile(r"\s?:|\s(?:is|ist|est|es|e|jest|ar|lautet)\b")

_LABEL_REACH = 30  # "order number is 123456": a label is directly before its number
_LABEL_AFTER = 25  # "123456 is your order number"
_AROUND = 24  # characters in which signs, masks and neighbours of a number are searched
_LINE_REACH = 120
_PROMOTION_REACH = 60
_ELSEWHERE_REACH = 150  # lines of a meeting invitation or a payment slip

_AFTER_NUMBER = re.compile(r"[.,:/'-][0-9]|[@_/\\\ufffc]|[.-][A-Za-z]|[#$%&*+^~][0-9A-Za-z]")
_BEFORE_NUMBER = re.compile(
    r"(?:[0-9][.,:/'-]|[0-9A-Za-z][$%&^~./\\_-]|[@_/\\&+\ufffc]|\w\.|[+]\(?[0-9]{0,3}\)?[ -]?)\Z"
)
_MASKED = re.compile(r"(?:[•●∙·*＊×#xX]{2,}|\.{3,}|…)[ -]?\Z")
_MASKED_AS_BOLD = re.compile(r"(?<!\*)\*{1,3}\Z")
_CURRENCY_BEFORE = re.compile(r"(?:[$€£¥₽₴₺₩₹]|zł)\s?\Z")
_CURRENCY_AFTER = re.compile(r"\s?(?:[$€£¥₽₴₺₩₹%°‰]|,-)")
_NUMBER_SIGN = re.compile(r"(?:#|№|\b(?:n[°ºo]|nr|no)\.?)\s?\Z", re.IGNORECASE)
_PERCENTAGE = re.compile(r"[0-9]\s?%")
_LETTER_BEFORE = re.compile(r"(?<!\S)[A-Z]\s\Z")
_NEXT_TO = ("", " ", "-", ", ", " -")
_COLOR = re.compile(r"(?:[0-9A-Fa-f]{3}){1,2}")
_CITY_AFTER = re.compile(
    r" [A-ZÀ-ÖØ-Þ][a-zß-öø-ÿ]{2,}|\s[A-Z]{2}\b|,? (?:г\. ?|м\. ?)?[А-ЯІЇЄ][а-яіїє]{2,}"
)
_STATE_BEFORE = re.compile(r"(?:,\s|\b)[A-Z]{2}\s\Z|〒\s?\Z|\b[DAFLI]-\Z")
_YEAR_OR_DATE = re.compile(
    r"(?:19|20)[0-9]{2}|20[0-9]{2}(?:0[1-9]|1[0-2])(?:0[1-9]|[12][0-9]|3[01])"
)
_BEYOND_YEARS = frozenset(("alone", "asked", "linked"))
_NAMED_AFTER = re.compile(r"\s*(?:is|ist|est|es|e|jest|ar)\b")


def find_objections(text: CodeText, shape: Shape, evidence: Set[str]) -> Iterator[str]:
    """Yield the evidence against a code in its surroundings.

    Some properties are common to codes and other numbers, such as a year, a postcode or a place in
    the fine print. They count only if no ``evidence`` says that it is a code.
    """
    is_explicit = "explicit" in evidence
    before = text.plain[max(0, shape.start - _AROUND) : shape.start]
    after = text.plain[shape.end : shape.end + _AROUND]
    if shape.kind == "long" or _BEFORE_NUMBER.search(before) or _AFTER_NUMBER.match(after):
        yield "long"
    if _MASKED.search(before) and not (_MASKED_AS_BOLD.search(before) and after[:1] == "*"):
        yield "masked"
    has_sign = _CURRENCY_BEFORE.search(before) or _CURRENCY_AFTER.match(after)
    if has_sign or _touches(text, shape, "currency", "unit"):
        yield "amount"
    if _touches(text, shape, "month", "month"):
        yield "date"
    if _is_labelled_before(text, shape) or _is_labelled_after(text, shape):
        yield "label"
    elif _is_other_code(text, shape):
        yield "other code"
    elif _NUMBER_SIGN.search(before):
        is_color = before.endswith("#") and _COLOR.fullmatch(shape.value)
        yield "color" if is_color and not shape.value.isdigit() else "numbered"
    if not is_explicit:
        is_date = shape.kind == "digits" and _YEAR_OR_DATE.fullmatch(shape.value)
        if is_date and not evidence & _BEYOND_YEARS:
            yield "date"
        yield from _objections_of_looks(shape, before, after, evidence)
    yield from _objections_of_neighbourhood(text, shape, evidence)


def _objections_of_looks(
    shape: Shape, before: str, after: str, evidence: Set[str]
) -> Iterator[str]:
    if _LETTER_BEFORE.search(before):
        yield "row"
    if shape.kind == "spread":
        steps = {ord(behind) - ord(ahead) for ahead, behind in pairwise(shape.value)}
        if steps in ({1}, {-1}):
            yield "counting"
    if (
        shape.kind in ("digits", "groups")
        and "leads" not in evidence
        and (_STATE_BEFORE.search(before) or _CITY_AFTER.match(after))
    ):
        yield "postcode"


def _objections_of_neighbourhood(text: CodeText, shape: Shape, evidence: Set[str]) -> Iterator[str]:
    start = max(text.plain.rfind("\n", 0, shape.start) + 1, shape.start - _LINE_REACH)
    end = text.plain.find("\n", shape.end)
    end = min(len(text.plain) if end < 0 else end, shape.end + _LINE_REACH)
    if _is_name(text, shape, evidence):
        yield "name"
    if "explicit" not in evidence:
        word = text.first_after("footer", start)
        if word is not None and word.end <= end:
            yield "footer"
    if "specific" in evidence:
        pass  # a code for signing in, whatever it is a reward for
    elif text.is_in_sentence(
        "promotion", shape.start, shape.end, _PROMOTION_REACH
    ) or _is_beside_percentage(text, shape):
        yield "promotion"
    elif is_like_coupon(shape.value) and not (
        text.words.get("purpose") or text.words.get("caution")
    ):
        yield "coupon"
    if text.is_near("elsewhere", shape.start, shape.end, _ELSEWHERE_REACH, _PROMOTION_REACH):
        yield "elsewhere"


def _is_name(text: CodeText, shape: Shape, evidence: Set[str]) -> bool:
    """Return whether a token names the sender: "your 23andMe code", "the code for 123RF is"."""
    if shape.value.isdigit() or shape.value.isalpha():
        return False
    if "named" in evidence or evidence >= {"explicit", "alone"}:
        return False
    if is_like_name(shape.value):
        return True
    before = text.folded[max(0, shape.start - _AROUND) : shape.start].split()[-1:]
    after = text.folded[shape.end : shape.end + _AROUND]
    if before and before[0] in words_of("your"):
        return any(
            (word := text.first_after(kind, shape.end)) is not None
            and after[: word.start - shape.end] == " "
            for kind in ("code", "purpose", "thing")
        )
    return bool(before) and before[0] in words_of("link") and _CONNECTED.match(after) is not None


def _is_beside_percentage(text: CodeText, shape: Shape) -> bool:
    """Match ``-30 % with NOEL30``: the code of a shop, which is not a number."""
    if shape.value.isdigit():
        return False
    around = text.plain[max(0, shape.start - _PROMOTION_REACH) : shape.end + _PROMOTION_REACH]
    return _PERCENTAGE.search(around) is not None


def _touches(text: CodeText, shape: Shape, kind_before: str, kind_after: str) -> bool:
    before = text.last_before(kind_before, shape.start)
    if before is not None and text.plain[before.end : shape.start] in (" ", ". ", "."):
        return True
    after = text.first_after(kind_after, shape.end)
    if after is None or text.plain[after.end : after.end + 1].isdigit():
        return False
    gap = text.plain[shape.end : after.start]
    # The counted thing may be on the next line; in CJK text that is a new sentence.
    return gap in _NEXT_TO or (gap == "\n" and text.plain[after.start] < "\u2e80")


def _is_labelled_before(text: CodeText, shape: Shape) -> bool:
    """Match ``order 123456``, ``card 1234`` and ``your member number is 123456``."""
    code = text.last_before("code", shape.start)
    code_end = code.end if code is not None else -REACH_BEFORE
    for kind in ("label", "thing"):
        label = text.last_before(kind, shape.start)
        if label is None or label.start < code_end or shape.start - label.end > _LABEL_REACH:
            continue
        if _is_sender(text, label, shape) and is_named_after(text, shape):
            continue
        if _is_behind_verb(text, shape, label):
            continue
        gap = text.plain[label.end : shape.start]
        # After the word "code" in the same sentence, a label belongs to the code:
        # "use this code to confirm your order: 123456".
        is_apart = label.start - code_end > REACH_BEFORE or NEW_SENTENCE.search(
            text.plain, code_end, label.start
        )
        if TIGHT.fullmatch(gap):
            if is_apart or not COLON.search(gap):
                return True
        elif kind == "label" and is_apart and not NEW_SENTENCE.search(gap):
            return True
    return False


def _is_behind_verb(text: CodeText, shape: Shape, label: Occurrence) -> bool:
    """Return whether a request is between: "scan the QR code or enter 123456"."""
    verb = text.last_before("verb", shape.start)
    return (
        verb is not None
        and verb.start >= label.end
        and TIGHT.fullmatch(text.plain, verb.end, shape.start) is not None
    )


def _is_other_code(text: CodeText, shape: Shape) -> bool:
    word = text.last_before("code", shape.start)
    if word is None:
        return False
    verb = text.last_before("verb", word.start)
    # "enter the code below": the word means the code to type.
    is_asked_for = verb is not None and not text.plain[verb.end : word.start].strip()
    return not is_asked_for and has_unknown_behind(text.plain, text.folded, word, shape.start)


def _is_labelled_after(text: CodeText, shape: Shape) -> bool:
    """Match ``123456 is your order number``."""
    owner = text.first_after("owner", shape.end)
    if owner is not None and text.plain[shape.end : owner.start] in ("", " "):
        return True
    label = text.first_after("label", shape.end)
    if label is None or label.start - shape.end > _LABEL_AFTER:
        return False
    code = text.first_after("code", shape.end)
    if _NAMED_AFTER.match(text.folded, shape.end, label.start) is None:
        return False
    if code is None or code.start - shape.end > REACH_AFTER:
        return True
    if SENTENCE_END.search(text.plain, label.end, code.start):
        return True
    # A name may be between "is" and the code: "is your Orderly code" is not an "order code".
    return code.start > label.start and not text.plain[label.start].isupper()


def _is_sender(text: CodeText, label: Occurrence, shape: Shape) -> bool:
    """Return whether a word is the name before a sentence: "Ticketmaster: 123456 is your code"."""
    return (
        not text.plain[max(0, label.start - 1) : label.start].strip("[\n")
        and text.plain[label.start].isupper()
        and not {":", "]"}.isdisjoint(text.plain[label.end : shape.start])
    )

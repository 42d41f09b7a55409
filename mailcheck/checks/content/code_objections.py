"""What speaks against a number's being a one-time code, in words of ``codes.POINTS``."""

import re
from collections.abc import Iterator, Set
from itertools import pairwise

from mailcheck.checks.content.code_compounds import has_unknown_behind
from mailcheck.checks.content.code_marks import SENTENCE_END, TIGHT
from mailcheck.checks.content.code_shapes import Shape
from mailcheck.checks.content.code_text import CodeText

_LABEL_REACH = 30  # "order number is 123456": a label stands right before its number
_LABEL_AFTER = 25  # "123456 is your order number"
_AROUND = 24  # characters in which signs, masks and neighbours of a number are looked for
_LINE_REACH = 120
_PROMOTION_REACH = 60
_ELSEWHERE_REACH = 150  # lines of a meeting invitation or a payment slip

_AFTER_NUMBER = re.compile(r"[.,:/'-][0-9]|[@_/\\\ufffc]|[.-][A-Za-z]")
_BEFORE_NUMBER = re.compile(
    r"(?:[0-9][.,:/'-]|[0-9A-Za-z][./\\_-]|[@_/\\=&+\ufffc]|\w\.|[+]\(?[0-9]{0,3}\)?[ -]?)\Z"
)
_MASKED = re.compile(r"(?:[•●∙·*＊xX]{2,}|\.{3,}|…)[ -]?\Z")
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
_YEAR = re.compile(r"(?:19|20)[0-9]{2}")
_BEYOND_YEARS = frozenset(("alone", "asked", "linked"))
_DATE = re.compile(r"20[0-9]{2}(?:0[1-9]|1[0-2])(?:0[1-9]|[12][0-9]|3[01])")
_NEW_SENTENCE = re.compile(rf"{SENTENCE_END.pattern}|\n")
_COLON = re.compile(r"[:：\n]")
_NAMED_AFTER = re.compile(r"\s*(?:is|ist|est|es|e|jest|ar)\b")


def find_objections(text: CodeText, shape: Shape, evidence: Set[str]) -> Iterator[str]:
    """Name what speaks against a code in its surroundings.

    Looks that a code may share (a year, a postcode, a place in the fine
    print) count only where nothing of the ``evidence`` says that it is one.
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
    if _is_labelled_otherwise(text, shape):
        yield "label"
    elif _is_other_code(text, shape):
        yield "other code"
    elif _NUMBER_SIGN.search(before):
        is_color = before.endswith("#") and _COLOR.fullmatch(shape.value)
        yield "color" if is_color and not shape.value.isdigit() else "numbered"
    if not is_explicit:
        if _is_date(shape) and not evidence & _BEYOND_YEARS:
            yield "date"
        yield from _objections_of_looks(shape, before, after, evidence)
    yield from _objections_of_neighbourhood(text, shape, is_explicit=is_explicit)


def _objections_of_looks(
    shape: Shape, before: str, after: str, evidence: Set[str]
) -> Iterator[str]:
    if _LETTER_BEFORE.search(before):
        yield "row"
    if shape.kind == "spread" and _counts_up(shape.value):
        yield "counting"
    if (
        shape.kind in ("digits", "groups")
        and "leads" not in evidence
        and (_STATE_BEFORE.search(before) or _CITY_AFTER.match(after))
    ):
        yield "postcode"


def _is_date(shape: Shape) -> bool:
    return shape.kind == "digits" and bool(
        _YEAR.fullmatch(shape.value) or _DATE.fullmatch(shape.value)
    )


def _counts_up(value: str) -> bool:
    steps = {ord(after) - ord(before) for before, after in pairwise(value)}
    return steps in ({1}, {-1})


def _objections_of_neighbourhood(
    text: CodeText, shape: Shape, *, is_explicit: bool
) -> Iterator[str]:
    start = max(text.plain.rfind("\n", 0, shape.start) + 1, shape.start - _LINE_REACH)
    end = text.plain.find("\n", shape.end)
    end = min(len(text.plain) if end < 0 else end, shape.end + _LINE_REACH)
    if not is_explicit:
        word = text.first_after("footer", start)
        if word is not None and word.end <= end:
            yield "footer"
    if _is_in_promotion(text, shape) or _is_beside_percentage(text, shape):
        yield "promotion"
    if text.is_near("elsewhere", shape.start, shape.end, _ELSEWHERE_REACH, _PROMOTION_REACH):
        yield "elsewhere"


def _is_in_promotion(text: CodeText, shape: Shape) -> bool:
    """Tell whether the sentence around speaks of a discount; it may run over lines."""
    before = text.last_before("promotion", shape.start)
    after = text.first_after("promotion", shape.end)
    gaps = [(before.end, shape.start)] if before else []
    gaps += [(shape.end, after.start)] if after else []
    return any(
        end - start <= _PROMOTION_REACH and not SENTENCE_END.search(text.plain, start, end)
        for start, end in gaps
    )


def _is_beside_percentage(text: CodeText, shape: Shape) -> bool:
    """``-30 % with NOEL30``: a word of a shop, not a number."""
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
    # The counted thing may stand on the next line; in CJK text that is a new sentence.
    return gap in _NEXT_TO or (gap == "\n" and text.plain[after.start] < "\u2e80")


def _is_labelled_otherwise(text: CodeText, shape: Shape) -> bool:
    """Tell whether the nearest label names something else."""
    return _is_labelled_before(text, shape) or _is_labelled_after(text, shape)


def _is_labelled_before(text: CodeText, shape: Shape) -> bool:
    """``order 123456``, ``card 1234``, ``your member number is 123456``."""
    code = text.last_before("code", shape.start)
    code_end = code.end if code is not None else 0
    for kind in ("label", "thing"):
        label = text.last_before(kind, shape.start)
        if label is None or label.start < code_end or shape.start - label.end > _LABEL_REACH:
            continue
        gap = text.plain[label.end : shape.start]
        # Behind the word "code" in the same sentence it is the code's own:
        # "use this code to confirm your order: 123456".
        is_apart = code is None or _NEW_SENTENCE.search(text.plain, code_end, label.start)
        if TIGHT.fullmatch(gap):
            if is_apart or not _COLON.search(gap):
                return True
        elif kind == "label" and is_apart and not _NEW_SENTENCE.search(gap):
            return True
    return False


def _is_other_code(text: CodeText, shape: Shape) -> bool:
    word = text.last_before("code", shape.start)
    return word is not None and has_unknown_behind(text.plain, text.folded, word, shape.start)


def _is_labelled_after(text: CodeText, shape: Shape) -> bool:
    """``123456 is your order number``."""
    owner = text.first_after("owner", shape.end)
    if owner is not None and text.plain[shape.end : owner.start] in ("", " "):
        return True
    label = text.first_after("label", shape.end)
    if label is None or label.start - shape.end > _LABEL_AFTER:
        return False
    code = text.first_after("code", shape.end)
    is_named = _NAMED_AFTER.match(text.folded, shape.end, label.start) is not None
    return is_named and (code is None or code.start > label.start)

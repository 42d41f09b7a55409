"""What stands around a number: the findings for and against its being a one-time code."""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

from mailcheck.checks.content.code_shapes import Shape
from mailcheck.checks.content.folding import fold
from mailcheck.checks.content.phrases import Occurrence, Phrase, compile_phrases, find_phrases
from mailcheck.checks.content.word_tables import load_table

NEAR = 60  # characters between a code and its keyword
_EXPLICIT_BEFORE = 70  # "verification code for your account at Example is 123456"
_EXPLICIT_AFTER = 45
_LABEL_REACH = 30  # a label of another number stands right before it
_HEADING_REACH = 250  # the sentence above a code that has a line of its own
_PROMINENT_LENGTH = 40  # a longer bold or large piece is a sentence or a headline

_SENTENCE_END = re.compile(r"[.!?](?:\s|$)|[。！？]")
_DIGITS = re.compile(r"[0-9]{3}")
_WRAPPING = " \t\r\"'`*_()[]{}<>«»“”„‘’「」『』【】〔〕|:.,;=-–~#。、，：\ufe0f"
_TIGHT = re.compile(r"[\s\"'`*_()\[\]<>«»“”„‘’「」『』【】〔〕:=>»→#-]*")
_AFTER_NUMBER = re.compile(r"[.,:/'-][0-9]|[@_/\\]|\.[A-Za-z]|-[A-Za-z]")
_BEFORE_NUMBER = re.compile(
    r"[0-9][.,:/'-]$|[0-9A-Za-z][./\\_-]$|[@_/\\=&+.]$|[+]\(?[0-9]{0,3}\)?[ -]?$"
)
_MASKED = re.compile(r"(?:[•●∙·xX*＊]{2,}|[.…]{3,}|…)[ -]?$")
_CURRENCY_SIGN = re.compile(r"[$€£¥₽₴₺₩₹zł]\s?$")
_CURRENCY_AFTER = re.compile(r"\s?(?:[$€£¥₽₴₺₩₹%°‰]|,-)")
_HEX_COLOR = re.compile(r"#$")
_NUMBER_SIGN = re.compile(r"(?:#|№|n[°ºo]\.?|nr\.?|no\.?)\s?$", re.IGNORECASE)
_CITY_AFTER = re.compile(r"\s[A-ZÄÖÜÀ-ÖØ-Þ][a-zà-ÿ]{2,}|\s[A-Z]{2}\b|,?\s[А-ЯІЇЄ]")
_STATE_BEFORE = re.compile(r"\b[A-Z]{2}\s$|〒\s?$")
_YEAR = re.compile(r"(?:19|20)[0-9]{2}")


@cache
def _phrases() -> tuple[Phrase, ...]:
    return compile_phrases(load_table("code_words.toml")["phrases"])


@cache
def _connector() -> re.Pattern[str]:
    words = sorted({fold(word) for word in load_table("code_words.toml")["connectors"]["words"]})
    spaced = "|".join(re.escape(word) for word in words if word.isascii())
    unspaced = "|".join(re.escape(word) for word in words if not word.isascii())
    return re.compile(rf"(?:\b(?:{spaced})\b|{unspaced}|[:=>»→])", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class CodeText:
    """One text of a mail, prepared: plain, folded, its words found and sorted."""

    plain: str
    folded: str
    prominent: tuple[tuple[int, int], ...]
    words: dict[str, list[Occurrence]]

    def last_before(self, kind: str, position: int) -> Occurrence | None:
        """Find the last word of a kind that ends at or before a position."""
        found = self.words.get(kind, [])
        index = bisect_right(found, position, key=lambda word: word.end) - 1
        return found[index] if index >= 0 else None

    def first_after(self, kind: str, position: int) -> Occurrence | None:
        """Find the first word of a kind that starts at or after a position."""
        found = self.words.get(kind, [])
        index = bisect_left(found, position, key=lambda word: word.start)
        return found[index] if index < len(found) else None


def prepare_text(plain: str, prominent: tuple[tuple[int, int], ...] = ()) -> CodeText:
    """Find the words of ``code_words.toml`` in a text."""
    folded = fold(plain)
    words: dict[str, list[Occurrence]] = {}
    for occurrence in find_phrases(folded, _phrases()):
        words.setdefault(occurrence.kind, []).append(occurrence)
    return CodeText(plain, folded, prominent, words)


def find_evidence(text: CodeText, shape: Shape) -> Iterator[str]:
    """Name what speaks for a code; the words are keys of the score table."""
    alone = _is_alone(text, shape)
    if _is_explicit(text, shape):
        yield "explicit"
    if alone:
        yield "alone"
    elif any(
        start <= shape.start and shape.end <= end and end - start <= _PROMINENT_LENGTH
        for start, end in text.prominent
    ):
        yield "prominent"
    if _is_near(text, shape, "code", _HEADING_REACH if alone else NEAR):
        yield "keyword"
    elif _is_near(text, shape, "purpose", _HEADING_REACH if alone else NEAR):
        yield "purpose"


def _is_alone(text: CodeText, shape: Shape) -> bool:
    start = text.plain.rfind("\n", 0, shape.start) + 1
    end = text.plain.find("\n", shape.end)
    end = len(text.plain) if end < 0 else end
    around = text.plain[max(start, shape.start - NEAR) : shape.start]
    around += text.plain[shape.end : min(end, shape.end + NEAR)]
    return not around.strip(_WRAPPING)


def _is_near(text: CodeText, shape: Shape, kind: str, reach: int) -> bool:
    before = text.last_before(kind, shape.start)
    after = text.first_after(kind, shape.end)
    return (before is not None and shape.start - before.end <= reach) or (
        after is not None and after.start - shape.end <= NEAR
    )


def _is_explicit(text: CodeText, shape: Shape) -> bool:
    before = text.last_before("code", shape.start)
    if before is not None and shape.start - before.end <= _EXPLICIT_BEFORE:
        gap = text.plain[before.end : shape.start]
        if _links(text.folded[before.end : shape.start], gap, at_end=True):
            return True
    verb = text.last_before("verb", shape.start)
    if verb is not None and _TIGHT.fullmatch(text.plain, verb.end, shape.start):
        return _is_near(text, shape, "code", 2 * NEAR)
    after = text.first_after("code", shape.end)
    if after is not None and after.start - shape.end <= _EXPLICIT_AFTER:
        gap = text.plain[shape.end : after.start]
        return "\n" not in gap and _links(text.folded[shape.end : after.start], gap, at_end=False)
    return False


def _links(folded: str, gap: str, *, at_end: bool) -> bool:
    """Tell whether what lies between label and code says "is"."""
    if _TIGHT.fullmatch(gap):
        return True
    if _DIGITS.search(gap) or _SENTENCE_END.search(gap.rstrip()[:-1]):
        return False
    for match in _connector().finditer(folded):
        rest = gap[match.end() :] if at_end else gap[: match.start()]
        if _TIGHT.fullmatch(rest):
            return True
    return False


def find_objections(text: CodeText, shape: Shape) -> Iterator[str]:
    """Name what speaks against a code; the words are keys of the score table."""
    before = text.plain[max(0, shape.start - 24) : shape.start]
    after = text.plain[shape.end : shape.end + 24]
    if shape.kind == "long" or _BEFORE_NUMBER.search(before) or _AFTER_NUMBER.match(after):
        yield "long"
    if _MASKED.search(before) and not after.startswith("*"):
        yield "masked"
    has_sign = _CURRENCY_SIGN.search(before) or _CURRENCY_AFTER.match(after)
    if has_sign or _touches(text, shape, "currency", "unit"):
        yield "amount"
    if _touches(text, shape, "month", "month"):
        yield "date"
    if shape.kind == "digits" and _YEAR.fullmatch(shape.value):
        yield "year"
    if _is_labelled_otherwise(text, shape):
        yield "label"
    elif _NUMBER_SIGN.search(before):
        yield "numbered"
    if shape.kind in ("digits", "groups") and (
        _STATE_BEFORE.search(before)
        or (_CITY_AFTER.match(after) and not before.strip(" \t\n,").endswith(tuple(":=")))
    ):
        yield "postcode"
    yield from _objections_of_line(text, shape)


def _touches(text: CodeText, shape: Shape, kind_before: str, kind_after: str) -> bool:
    before = text.last_before(kind_before, shape.start)
    after = text.first_after(kind_after, shape.end)
    return (before is not None and text.plain[before.end : shape.start].strip(" .") == "") or (
        after is not None and text.plain[shape.end : after.start].strip(" ,-") == ""
    )


def _is_labelled_otherwise(text: CodeText, shape: Shape) -> bool:
    """Tell whether the nearest label names something else."""
    label = text.last_before("label", shape.start)
    if label is not None and shape.start - label.end <= _LABEL_REACH:
        code = text.last_before("code", shape.start)
        gap = text.plain[label.end : shape.start]
        if (code is None or code.end < label.end) and not _SENTENCE_END.search(gap):
            return True
    after = text.first_after("label", shape.end)
    if after is None or after.start - shape.end > NEAR // 3:
        return False
    gap = text.folded[shape.end : after.start]
    return bool(re.match(r"\s*(?:is|ist|est|es|e|jest|ar)\b", gap)) and not _is_near(
        text, shape, "code", NEAR
    )


def _objections_of_line(text: CodeText, shape: Shape) -> Iterator[str]:
    start = max(text.plain.rfind("\n", 0, shape.start) + 1, shape.start - 2 * NEAR)
    end = text.plain.find("\n", shape.end)
    end = min(len(text.plain) if end < 0 else end, shape.end + 2 * NEAR)
    for kind in ("promotion", "footer"):
        word = text.first_after(kind, start)
        if word is not None and word.end <= end:
            yield kind

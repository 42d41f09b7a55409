"""Folding and signatures of text for searches."""

import unicodedata
from itertools import chain

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mailcheck.core.content import (
    INVISIBLE,
    MOST_ASKED,
    fold_text,
    sign_text,
    signs_within,
)
from tests.table import rows


@rows(
    ("Welcome to  the\r\n\tShop ", "welcome to the shop "),
    ("Straße STRASSE", "strasse strasse"),
    ("café CAFE\u0301", "cafe cafe"),
    ("İstanbul", "istanbul"),
    ("Ё ё Й й Ά ά", "е е и и α α"),
    ("ＡＢＣ１２３\u3000ﬁ ℡ ²", "abc123 fi tel 2"),
    ("un\u00adsicht\u200b\ufeffbar\u00a0und\x00leer", "unsichtbar und leer"),
    ("が か", "か\u3099 か"),
    ("ไม่", "ไม่"),
)
def test_folding(text: str, folded: str) -> None:
    """Differences of case, accents, widths, invisible characters and blanks are removed."""
    assert fold_text(text) == folded


@given(st.text())
def test_a_folded_text_folds_to_itself(text: str) -> None:
    """Folding a folded text does not change it."""
    assert fold_text(fold_text(text)) == fold_text(text)


@given(st.text(), st.text(st.characters(exclude_categories=["M", "Cs"])), st.text())
def test_a_part_stays_a_part(before: str, part: str, after: str) -> None:
    """A part of a text is found, folded, in the folded text."""
    part = part.strip()
    after = after if not after or after[0].isalnum() else f" {after}"
    assert fold_text(part) in fold_text(before + part + after)


@given(st.text())
def test_case_and_accents_do_not_count(text: str) -> None:
    """A text is folded like its upper-case form with accents and soft hyphens."""
    letters = [character for character in text if character.isascii()]
    disguised = "".join(one + "\u0301\u00ad" * one.isalpha() for one in letters)
    assert fold_text(disguised.upper()) == fold_text("".join(letters))


def is_unchanged(character: str) -> bool:
    """Return whether a character is unassigned, or a sign with no other form in Unicode."""
    category = unicodedata.category(character)
    if category[0] in "CMZ":
        return category in ("Cn", "Co")
    return unicodedata.normalize("NFKD", character.casefold()) == character


@pytest.mark.untraced
def test_every_character_folds_alone() -> None:
    """Each character is folded independently of its neighbours."""
    planes = chain(range(1, 0xD800), range(0xE000, 0x40000), range(0xE0000, 0xF0000))
    same, wrong = [], []
    for character in map(chr, planes):  # the others are empty, or for private use
        if ord(character) not in INVISIBLE and is_unchanged(character):
            same.append(character)
        elif not character.isspace() and fold_text(f"a{character}b") != f"a{fold_text(character)}b":
            wrong.append(hex(ord(character)))
    assert wrong == []
    text = "a".join(same)
    assert fold_text(text) == text
    assert all(fold_text(chr(code)) == "" for code in INVISIBLE)


def may_contain(text: str, part: str) -> bool:
    """Return whether the signature of a text may contain a part."""
    signature = sign_text(text)
    return all(ord(signature[at - 1]) & bits == bits for at, bits in signs_within(part))


@given(st.text(), st.text(), st.text())
def test_a_signature_never_rules_out_what_is_there(before: str, part: str, after: str) -> None:
    """The signature of a text matches every part of the text."""
    assert may_contain(before + part + after, part)


def test_a_signature_rules_out_most_of_what_is_not_there() -> None:
    """A few comparisons with the signature exclude most words that the text lacks."""
    text = " ".join(f"line {number} of an ordinary newsletter" for number in range(100))
    words = [f"{first}{second}owhere" for first in "bcdfgh" for second in "bcdfgh"]
    assert sum(may_contain(text, word) for word in words) <= 3
    assert all(len(signs_within(word)) <= MOST_ASKED for word in words)


def test_a_signature_is_of_one_length_and_ascii() -> None:
    """All signatures have the same length, for the empty text too."""
    signatures = [sign_text(text) for text in ("", "ab", "ελληνικα", "words " * 10_000)]
    assert {len(one) for one in signatures} == {383}
    assert all(one.isascii() and one.isprintable() for one in signatures[:3])


def test_two_bytes_rule_nothing_out() -> None:
    """A part that is too short for a signature excludes no text."""
    assert signs_within("ab") == []

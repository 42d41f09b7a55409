"""Folding: what compares as the same, and that nothing is lost by it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mailcheck.core.folded_text import INVISIBLE, fold_text


@pytest.mark.parametrize(
    ("text", "folded"),
    [
        ("Welcome to  the\r\n\tShop ", "welcome to the shop "),
        ("Straße STRASSE", "strasse strasse"),
        ("café CAFE\u0301", "cafe cafe"),
        ("İstanbul", "istanbul"),
        ("Ё ё Й й Ά ά", "е е и и α α"),
        ("ＡＢＣ１２３\u3000ﬁ ℡ ²", "abc123 fi tel 2"),
        ("un\u00adsicht\u200b\ufeffbar\u00a0und\x00leer", "unsichtbar und leer"),
        ("が か", "か\u3099 か"),
        ("ไม่", "ไม่"),
    ],
)
def test_what_is_folded(text: str, folded: str) -> None:
    """Case, accents, widths, invisible characters and kinds of blanks go; letters stay."""
    assert fold_text(text) == folded


@given(st.text())
def test_a_folded_text_folds_to_itself(text: str) -> None:
    """Folding twice is folding once."""
    assert fold_text(fold_text(text)) == fold_text(text)


@given(st.text(), st.text(st.characters(exclude_categories=["M", "Cs"])), st.text())
def test_a_part_stays_a_part(before: str, part: str, after: str) -> None:
    """What stands in a text is found in the folded text by its own folded form."""
    part = part.strip()
    after = after if not after or after[0].isalnum() else f" {after}"
    assert fold_text(part) in fold_text(before + part + after)


@given(st.text())
def test_case_and_accents_do_not_count(text: str) -> None:
    """A text, its capitals with an accent on each and soft hyphens between them fold alike."""
    letters = [character for character in text if character.isascii()]
    disguised = "".join(one + "\u0301\u00ad" * one.isalpha() for one in letters)
    assert fold_text(disguised.upper()) == fold_text("".join(letters))


@pytest.mark.untraced
def test_every_character_folds_alone() -> None:
    """No character of Unicode folds in another way for what stands beside it."""
    wrong = []
    for code in range(0x110000):
        character = chr(code)
        if 0xD800 <= code < 0xE000 or character.isspace() or code == 0:
            continue
        if fold_text(f"a{character}b") != f"a{fold_text(character)}b":
            wrong.append(hex(code))
    assert wrong == []
    assert all(fold_text(chr(code)) == "" for code in INVISIBLE)

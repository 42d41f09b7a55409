"""Texts and pages that are built to make the search for links and codes slow.

Every piece is repeated to about the size that is searched. The tests do not measure time: a
quadratic step over 64 KiB of candidates or 512 KiB of markup runs for minutes, as it once did for
a digit on each line.
"""

import pytest

from mailcheck.checks.content.code.codes import find_codes
from mailcheck.checks.content.derive import derive_content
from mailcheck.checks.content.html_tree import read_tree
from mailcheck.checks.content.limits import (
    MAX_CODE_TEXT,
    MAX_CODES,
    MAX_KEPT_CANDIDATES,
    MAX_LINKS,
)
from mailcheck.checks.content.visible_text import render_visible_text
from mailcheck.core.content import MessageContent
from tests.linear import assert_linear, count_steps
from tests.table import rows

pytestmark = [pytest.mark.attack, pytest.mark.untraced]

NUMBERS = ["1 ", "1\n", "\t1", "12 ", "1234 ", "123456\n", "123 456 ", "1-", "12-34-", "A1B2-C3D4 "]
WORDS = [
    *("code 1234 ", "code\t1234\n", "Acode ", "codecode", "order code is ", " code of de ", "is "),
    *("your code is K7-9F-2Q ", "login code for ", "Use x1 as your otp "),
]
SIGNS = [
    *("#1", "+1 ", "(1)", "$1234 ", "•••• 1234 ", "G-123456 ", "1.", "1,", "-> ", "...", "&", "&#4")
]
URLS = [
    *("https://", "https://x/(", "https://x/)", "](", "<https://x\n", "www.", "a.b/"),
    *("a@", "@", "x@y "),
]
MORE_SCRIPTS = [
    *("رمز التحقق 1234 ", "קוד 1234 ", "รหัส1234 ", "कोड 1234 है। ", "mã: 1234\n", "ו", "ु", "٤٨٢٩ "),
    *("N your acme code ", "code: QGFDAE ", "code WDJB-MJHT ", "enter:\n1234\n", "password: "),
]
SCRIPTS = ["验证码1234", "コード", "https://例", "é", "１", "\u200b", "Ihr Code ist ", "код 1234 "]
LETTERS = ["a", "a.", ".a", "a-", "A", "[", "]", ")", "'", "* "]

MARKUP = [
    *("<", "<a", "<a ", "<a href='", '<a href="', "<a b=", "</", "<!", "<!--", "<!--a--", "<?"),
    *("<div>", "</div>", "<td>1", "<p>", "<b>1234</b>", "<script>", "</script", "<title>", "&#"),
    *("<a href=https://x/>", "<a href=https://x/>x</a>", "<li><li>", "<pre>\n", "<a =", "\0"),
    *("<a href=https://x/><img alt=verify></a>", "<div style=display:none>", "<font size=7>1"),
    "<i style='" + "font:" * 500 + "'>",
    "<i style='" + "background:" * 500 + "'>",
    "<i class='" + "btn " * 500 + "'>",
    "<table><tr><td>code</td><td>1234</td></tr></table>",
]


SHORT = 1_000
"""Characters of the shorter of two compared texts."""


def _derive(text: str, kind: str, subject: str = "Your code") -> MessageContent:
    head = f"Subject: {subject}\r\nContent-Type: text/{kind}; charset=utf-8\r\n\r\n"
    return derive_content((head + text).encode("utf-8"))


@rows(NUMBERS, WORDS, SIGNS, URLS, SCRIPTS, MORE_SCRIPTS, LETTERS)
def test_hostile_text_takes_linear_time(pieces: list[str]) -> None:
    """A text that repeats one piece is searched in linear time, and found within the limits."""

    def read(text: str) -> None:
        content = _derive(text, "plain")
        assert len(content.codes) <= MAX_CODES
        assert len(content.links) <= MAX_LINKS
        assert len(content.candidates) <= 3 * MAX_KEPT_CANDIDATES

    for piece in pieces:
        assert_linear(read, piece, "", SHORT)


CANDIDATES = {
    "digits": "482913 ",
    "digits on lines": "482913\n",
    "labels": "order number ",
    "codes and labels": "your order code: 482913 is your ticket code. ",
    "no end of a sentence": "your verification code for the account at is ",
    "candidates inside each other": "code (482913 [A1B2C3 (K7M-4QZ ",
    "requests": "enter the code below to sign in 4829 ",
    "masks": "*4829 +4829 #4829 $4829 ",
    "letters": "CODE QGFDAE WDJB-MJHT ",
    "scripts": "رمز ٤٨٢٩ קוד 4829 รหัส4829 कोड 4829 验证码4829 ",
}


def _count_steps(text: str) -> int:
    """Return the number of Python lines that the search for codes executes."""
    nothing = render_visible_text(read_tree(""))
    find_codes("Your code", "code 1234", nothing)  # loads the table of words
    return count_steps(lambda: find_codes("Your code", text, nothing))


@rows(*CANDIDATES)
def test_the_search_takes_steps_in_proportion_to_the_text(name: str) -> None:
    """Twice the text takes about twice the steps, and 1 MiB no more than 64 KiB."""
    piece = CANDIDATES[name]
    short, long = (_count_steps(piece * (size // len(piece))) for size in (1_500, 3_000))
    assert long < 2.3 * short + 500
    assert long < 100 * 3_000
    if name == "candidates inside each other":
        capped = _count_steps(piece * (MAX_CODE_TEXT // len(piece)))
        assert _count_steps(piece * (1024 * 1024 // len(piece))) < 1.1 * capped + 500


def test_hostile_markup_takes_linear_time() -> None:
    """Unclosed and nested markup of every kind is read in one pass."""

    def read(text: str) -> None:
        assert len(_derive(text, "html").candidates) <= 3 * MAX_KEPT_CANDIDATES

    for piece in MARKUP:
        assert_linear(read, piece, "", max(SHORT, 2 * len(piece)))


@rows("<!--", "<div>", "1 ")
def test_what_lies_beyond_the_caps_is_said(piece: str) -> None:
    """A page of 8 MiB is kept whole, searched at its beginning, and a problem says so."""
    content = _derive(piece * (8 * 1024 * 1024 // len(piece)), "html")
    assert len(content.html) > 8_000_000 - 100
    assert any("only the first 512 KiB" in problem for problem in content.problems)


def test_a_subject_of_many_numbers_takes_linear_time() -> None:
    """A subject is searched like any other text."""

    def read(subject: str) -> None:
        assert _derive("x", "plain", subject).codes

    assert_linear(read, "code 1234 ", "", SHORT)


def test_a_thousand_links_are_listed() -> None:
    """Links beyond the limit are cut, and the order is kept."""
    text = " ".join(f"https://x.example/{number}" for number in range(MAX_LINKS + 500))
    content = derive_content(b"Subject: s\r\n\r\n" + text.encode())
    assert len(content.links) == MAX_LINKS
    assert content.links[-1] == f"https://x.example/{MAX_LINKS - 1}"

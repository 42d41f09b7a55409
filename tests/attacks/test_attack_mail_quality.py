"""Mails that are built to make reports slow or to exhaust memory.

The tests do not measure time. They count calls: twice the mail may cause about twice as many.
"""

import pytest

from mailcheck.checks.content.limits import MAX_HEADER_FIELDS, MAX_LINKS, MAX_PARTS
from mailcheck.checks.quality.content import judge_content
from mailcheck.checks.quality.facts import MailFacts
from mailcheck.checks.quality.header import MAX_AUTHORS, MAX_URIS, judge_headers
from mailcheck.checks.quality.links import judge_links
from mailcheck.checks.quality.reading import read_mail
from mailcheck.checks.quality.unsubscribe import judge_unsubscribe
from mailcheck.core.instants import Instant
from tests.fakes.sample_mails import make_mail, make_parts
from tests.linear import count_calls, memory_below
from tests.table import rows

pytestmark = [pytest.mark.attack, pytest.mark.untraced]

MIB = 1024 * 1024
HTML = b"Content-Type: text/html; charset=utf-8\r\n\r\n"


def read_within(raw: bytes, budget: int) -> MailFacts:
    """Read and check a mail, and check the additional memory that this takes."""
    with memory_below(budget):
        facts = read_mail(raw)
    judge_all(facts)
    return facts


def judge_all(facts: MailFacts) -> None:
    """Check a mail; every sentence about it is short enough to be read."""
    findings = (
        *judge_headers(facts, Instant(0)),
        *judge_content(facts),
        *judge_links(facts),
        *judge_unsubscribe(facts, None),
    )
    assert len(findings) < 60 + MAX_AUTHORS
    assert all(len(one.finding.meaning) < 1_000 for one in findings)


def test_many_parts_stop_at_the_cap() -> None:
    """A thousand parts are listed, and a problem says that the rest is left out."""
    raw = b"Content-Type: multipart/mixed; boundary=b\r\n\r\n" + b"--b\r\n\r\nx\r\n" * 200_000
    facts = read_within(raw, 8 * MIB)
    assert len(facts.parts) == MAX_PARTS
    assert any(f"more than {MAX_PARTS} parts" in problem for problem in facts.problems)


def test_a_hundred_thousand_header_fields_stop_at_the_cap() -> None:
    """The first thousand fields are checked."""
    facts = read_within(b"From: a@b.example\r\n" * 100_000 + b"\r\nbody", 10 * MIB)
    assert facts.author_fields == MAX_HEADER_FIELDS
    assert len(facts.authors) == MAX_AUTHORS
    assert facts.author_domains == ("b.example",)


def test_five_megabytes_of_one_line_are_one_long_line() -> None:
    """Five megabytes in one line, in the body or in the header, are one finding."""
    facts = read_within(b"Subject: s\r\n\r\n" + b"a" * 5 * MIB, 40 * MIB)
    assert (facts.long_lines, facts.longest_line) == (1, 5 * MIB)
    facts = read_within(b"Subject: " + b"a" * 5 * MIB, 40 * MIB)
    assert facts.long_lines == 1
    assert len(facts.subject) < 1_000


def test_a_mail_of_line_breaks_is_jumped_over() -> None:
    """Lines are not read one by one: each step skips a kilobyte."""
    short = count_calls(lambda: read_mail(b"\r\n" * MIB))
    assert short < 2 * MIB / 1_000 * 10


@rows(
    b"From: " + b"a@b.example, " * 100_000,
    b"From: " + b'"' * 200_000,
    b"List-Unsubscribe: " + b"<https://a.example/>," * 10_000,
    b"List-Unsubscribe: " + b"<" * 200_000,
    b"Message-ID: <" + b"a" * 200_000 + b"@",
    b"Message-ID: <" + b"@" * 200_000,
    b"Date: " + b"1 Jan " * 30_000,
    b"Date: " + b"(" * 200_000,
    b"Subject: " + b"!? " * 60_000,
    b"Subject: " + b"{{ " * 60_000,
    b"Subject: " + "\U0001f389".encode() * 50_000,
    b"Precedence: " + b"bulk " * 40_000,
)
def test_endless_fields_are_cut(field: bytes) -> None:
    """The stored part of a field has a maximum length."""
    facts = read_within(field + b"\r\n\r\nbody", 30 * MIB)
    assert len(facts.authors) <= MAX_AUTHORS
    assert len(facts.unsubscribe.uris) <= MAX_URIS
    assert len(facts.subject) < 1_000
    if facts.message_id is not None:
        assert len(facts.message_id.text) < 1_000


@rows(
    b"<div style='color:red;background:red'>x",
    b"<a href='https://a%d.example/'>www.b.example</a> ",
    b"<a href='https://xn--a%d.example/'>",
    b"<img>",
    b"<!--",
    b"<a",
    b"</div>",
    b"<p>x</div><div>",
    b"{{a",
    b"%%",
    b"*|A",
    b"www.",
    b"a.",
    b"<a href='/'>a.a.a.a.</a>",
    b"&zwnj;&nbsp;",
    b"<span style='font-size:0'>a</span>",
    b"@import",
)
def test_twice_the_html_takes_about_twice_the_steps(piece: bytes) -> None:
    """No piece of HTML takes more time per repetition when it is repeated more often."""

    def html_of(count: int) -> bytes:
        pieces = (piece % number if b"%d" in piece else piece for number in range(count))
        return HTML + b"".join(pieces)

    count_calls(lambda: read_mail(html_of(10)))
    once = count_calls(lambda: read_mail(html_of(100)))
    twice = count_calls(lambda: read_mail(html_of(200)))
    assert twice <= 2.2 * once + 500
    judge_all(read_mail(html_of(200)))


def test_large_pages_are_read_up_to_the_cap() -> None:
    """Only the first 512 KiB of megabytes of tags are read."""
    link = b"<a href='https://a.example/'>%s</a>" % (b"x" * 200)
    short, long = (HTML + link * (size * MIB // len(link)) for size in (1, 5))
    facts = read_within(long, 20 * MIB)
    assert facts.html is not None
    assert facts.html.size > 4 * MIB
    assert count_calls(lambda: read_mail(long)) == count_calls(lambda: read_mail(short))


def test_many_links_stop_at_the_cap() -> None:
    """A thousand links are listed, and twenty examples of each kind are kept."""
    links = b"".join(
        b"<a href='http://%d.bit.ly/'>x</a>" % number for number in range(MAX_LINKS + 200)
    )
    facts = read_within(HTML + links, 60 * MIB)
    assert len(facts.links) == MAX_LINKS
    assert len(facts.link_facts.shortened) == 20


@rows("utf-7", "idna", "punycode", "klingon", "utf-16", "\x00")
def test_broken_charsets_cost_characters_only(charset: str) -> None:
    """A part with an unknown or broken charset loses characters but not the report."""
    body = make_parts(text="+2AA- \udcff\udcfe" * 1_000)
    raw = make_mail(body=body.replace("charset=utf-8", f"charset={charset}"))
    assert read_within(raw, 30 * MIB).has_text


@rows(b"", b"\r\n", b"\r\n\r\n", b":", b"From:", b"\x00" * 1_000, b"\xff" * 1_000, b"a: b")
def test_what_is_no_mail_is_judged_too(raw: bytes) -> None:
    """Input that is not a mail raises no error, and its missing parts are reported."""
    assert read_within(raw, MIB).author_address == ""

"""Facts that are read from a mail's bytes."""

import pickle
from itertools import product

from hypothesis import given
from hypothesis import strategies as st

from mailcheck.checks.content.header.mailboxes import parse_first_mailbox, parse_mailboxes
from mailcheck.checks.quality.facts import MailFacts
from mailcheck.checks.quality.header import read_date
from mailcheck.checks.quality.reading import MAX_LINE, measure_lines, read_mail
from mailcheck.core.instants import parse_instant
from tests.fakes.sample_mails import WORDS, make_html_mail, make_mail, make_parts
from tests.table import rows


def test_the_author_is_read_from_all_mailboxes_of_all_fields() -> None:
    """Domains are distinct A-labels in order; the author address is the first address."""
    facts = read_mail(
        make_mail(
            "From: c@Example.COM, =?utf-8?q?J=C3=BCrgen?= <d@b\u00fccher.example>",
            From='"Doe, Jane" <a@example.com>, b@example.org.',
        )
    )
    assert facts.author_fields == 2
    assert facts.author_address == "a@example.com"
    assert facts.author_domains == ("example.com", "example.org", "xn--bcher-kva.example")
    assert [author.display_name for author in facts.authors] == ["Doe, Jane", "", "", "Jürgen"]


@rows("localhost", "[192.0.2.1]", "192.0.2.1", "", "a..b", "x" * 300)
def test_invalid_author_domains_are_left_out(domain: str) -> None:
    """Literals, single labels and invalid names are left out."""
    facts = read_mail(make_mail(From=f"<a@{domain}>"))
    assert facts.author_domains == ()
    assert facts.author_fields == 1


@rows(
    ("a@b.c, c@d.e (C)", [("a@b.c", ""), ("c@d.e", "C")]),
    ("Group: a@b.c, D <d@e.f>;", [("a@b.c", ""), ("d@e.f", "D")]),
    ("Doe, J <a@b.c>, Roe, K <c@d.e>", [("a@b.c", "Doe, J"), ("c@d.e", "Roe, K")]),
    ("<a@b.c> junk, <c@d.e>", [("a@b.c", ""), ("c@d.e", "junk,")]),
    ('"x@y.z" <a@b.c>', [("a@b.c", "x@y.z")]),
    ("<a@b.c> (A), <d@e.f> (D)", [("a@b.c", "A"), ("d@e.f", "D")]),
    ("A <a@b.c>; D <d@e.f>", [("a@b.c", "A"), ("d@e.f", "D")]),
    ("a@[192.0.2.1], d@[IPv6:::1]", [("a@[192.0.2.1]", ""), ("d@[IPv6:::1]", "")]),
    ("=?utf-8?q?A_=3Ca=40b.c=3E?=", [("a@b.c", "A")]),
    ("undisclosed-recipients:;", []),
    ("", []),
)
def test_every_mailbox_of_a_field_is_read(body: str, mailboxes: list[tuple[str, str]]) -> None:
    """Names with commas, groups and comments do not hide a mailbox."""
    assert parse_mailboxes(body) == mailboxes


@given(st.text(alphabet='ab@.,;:<>()"\\ =?', max_size=60))
def test_the_first_of_the_mailboxes_is_the_first_mailbox(body: str) -> None:
    """Both parsers agree if the first one finds an address."""
    address, name = parse_first_mailbox(body)
    if "@" in address and "=?" not in body:
        assert parse_mailboxes(body)[0] == (address, name) or name.startswith((" ", ","))


@rows(
    ("Sat, 21 Nov 2026 10:00:00 +0100", "2026-11-21T09:00:00Z", False),
    ("21 Nov 2026 10:00 GMT (with a comment)", "2026-11-21T10:00:00Z", False),
    ("Sat, 21 Nov 2026 10:00:00 -0000", "2026-11-21T10:00:00Z", False),
    ("Sat, 21 Nov 2026 10:00:00 EST", "2026-11-21T15:00:00Z", True),
    ("Sat, 21 Nov 26 10:00:00 +0000", "2026-11-21T10:00:00Z", True),
    ("Sat, 31 Feb 2026 10:00:00 +0000", None, True),
    ("Sat, 21 Nov 2026 25:00:00 +0000", None, True),
    ("Sat, 21 Nov 2026 10:00:00 +9999", None, True),
    ("Sat, 21 Nov 99999 10:00:00 +0000", None, True),
    ("now", None, True),
    ("", None, True),
    ("1" * 5000, None, True),
)
def test_a_date_is_read_or_its_problem_named(
    text: str, instant: str | None, has_problem: bool
) -> None:
    """The format of RFC 5322 has no problem; other formats are parsed if possible."""
    date = read_date(text.encode())
    assert date.instant == (parse_instant(instant) if instant else None)
    assert bool(date.problem) is has_problem


@given(st.binary(max_size=120))
def test_any_bytes_are_a_date_or_none(body: bytes) -> None:
    """No Date field raises an exception, and an unreadable one has a problem."""
    date = read_date(body)
    assert date.instant is not None or date.problem


def test_links_and_their_hosts_are_listed_once_in_order() -> None:
    """Hosts are A-labels without IP addresses; only http and https URLs are links."""
    facts = read_mail(
        make_mail(
            body=make_parts(
                text="https://B\u00fccher.example/x http://192.0.2.1/ https://a.example.",
                html="<a href='https://A.example/y'>y</a><a href='mailto:a@b.example'>m</a>"
                "<a href='https://u:p@c.example:8443/'>c</a><a href='https://a.example'>z</a>",
            )
        )
    )
    assert facts.links == (
        "https://Bücher.example/x",
        "http://192.0.2.1/",
        "https://a.example",
        "https://A.example/y",
        "https://u:p@c.example:8443/",
    )
    assert facts.link_hosts == ("xn--bcher-kva.example", "a.example", "c.example")
    assert facts.link_facts.address_hosts == ("192.0.2.1",)


@rows("2130706433", "0x7f000001", "127.1", "0177.0.0.1")
def test_numbers_are_addresses_as_in_a_browser(host: str) -> None:
    """Unusual spellings of an IP address are not domain names."""
    facts = read_mail(make_html_mail(f"<a href='http://{host}/'>a</a>"))
    assert facts.link_facts.address_hosts == (host,)
    assert facts.link_hosts == ("example.com",)


def test_a_backslash_ends_a_host_as_in_a_browser() -> None:
    """The text after a backslash is a path, even if it contains an @."""
    facts = read_mail(make_html_mail("<a href='https://a.example\\@b.example/'>a</a>"))
    assert facts.link_hosts == ("example.com", "a.example")


def test_a_preheader_is_told_from_hidden_text() -> None:
    """Hidden text before visible text is the preheader; later it is hidden text."""
    preheader = "<div style='display:none'>Short and sweet&zwnj;&nbsp;&#847;</div>"
    facts = read_mail(make_mail(body=make_parts(html=f"{preheader}<p>{WORDS}</p>"))).html
    assert facts is not None
    assert facts.preheader.startswith("Short and sweet In November")
    assert facts.has_hidden_preheader
    assert facts.hidden_length == 0
    after = read_mail(make_mail(body=make_parts(html=f"<p>{WORDS}</p>{preheader}"))).html
    assert after is not None
    assert (after.hidden_length, after.hidden_sample) == (15, "Short and sweet")
    assert not after.has_hidden_preheader


@rows(
    "display:none",
    "visibility:hidden",
    "font-size:0",
    "font-size:1px",
    "opacity:0",
    "color:#FFF;background-color:white",
    "background:#000000;color:black",
)
def test_text_is_hidden_in_many_ways(style: str) -> None:
    """Text is hidden by display, by size, and by the colour of its background."""
    facts = read_mail(make_html_mail(f"<b>shown</b><span style='{style}'>not shown</span>")).html
    assert facts is not None
    assert facts.hidden_sample == "not shown"


@rows(
    ("<div>a</div></div></b>", ()),
    ("<p>a</p></p><li>b<li>c</li></li></ul>", ()),
    ("<div><b>a</div></b></div>", ("b",)),
    ("<table><tr><td><span>a</table></span>", ("span",)),
    ("<a href=x>a<div>", ("div", "a")),
    ("<br></br><img></img>", ()),
)
def test_elements_left_open_are_named_and_stray_ends_ignored(
    markup: str, unclosed: tuple[str, ...]
) -> None:
    """An end tag closes its element once, and all elements left open in it."""
    facts = read_mail(make_html_mail(markup)).html
    assert facts is not None
    assert facts.unclosed == unclosed


def test_parts_are_listed_with_their_properties() -> None:
    """Parts without subparts are listed with type, charset, encoding, name, size and depth."""
    body = (
        "--b\r\nContent-Type: multipart/related; boundary=c\r\n\r\n"
        "--c\r\nContent-Type: text/plain; charset=UTF-8\r\n"
        "Content-Transfer-Encoding: 8BIT\r\n\r\nabc\r\n--c--\r\n"
        "--b\r\nContent-Type: application/pdf\r\n"
        "Content-Disposition: attachment; filename=../a.pdf\r\n\r\n12345\r\n--b--\r\n"
    )
    facts = read_mail(make_mail(content_type="multipart/mixed; boundary=b", body=body))
    text, pdf = facts.parts
    assert (text.content_type, text.charset, text.encoding) == ("text/plain", "utf-8", "8bit")
    assert (text.depth, text.size) == (2, 3)
    assert (pdf.filename, pdf.disposition, pdf.size) == ("_a.pdf", "attachment", 5)
    assert facts.risky_attachments == ()


def test_broken_charsets_are_named() -> None:
    """An unknown charset, and text that is invalid in its charset, are problems of the mail."""
    raw = make_mail(content_type="text/plain; charset=klingon", body="a")
    assert any("klingon" in problem for problem in read_mail(raw).problems)
    raw = make_mail(content_type="text/plain; charset=utf-8", body="a\udcff")
    assert any("utf-8" in problem for problem in read_mail(raw).problems)


@rows(
    *product(
        [b"\n", b"\r\n"],
        [MAX_LINE - 1, MAX_LINE, MAX_LINE + 1, MAX_LINE + 2, 5000],
        [b"", b"a\n", b"\r\n", b"a" * 997 + b"\r\n", b"b\n" * 600],
    )
)
def test_long_lines_are_measured_without_their_break(
    end: bytes, length: int, before: bytes
) -> None:
    """998 octets are allowed and 999 are not, with any other lines around them."""
    expected = (1, length) if length > MAX_LINE else (0, 0)
    assert measure_lines(before + b"x" * length + end + b"end") == expected
    assert measure_lines(before + b"x" * length) == expected


@given(st.lists(st.integers(0, 2100), max_size=8), st.sampled_from([b"\n", b"\r\n"]))
def test_long_lines_are_counted_as_line_by_line(lengths: list[int], end: bytes) -> None:
    """Jumping over short lines finds the same lines as reading each line."""
    raw = end.join(b"x" * length for length in lengths)
    long = [length for length in lengths if length > MAX_LINE]
    assert measure_lines(raw) == (len(long), max(long, default=0))


@given(st.binary(max_size=2000))
def test_any_bytes_are_a_mail(raw: bytes) -> None:
    """Any bytes are accepted, and the facts can be pickled."""
    facts = read_mail(raw)
    assert facts.size == len(raw)
    assert pickle.loads(pickle.dumps(facts)) == facts


_PIECES = [
    "From: ", "a@b.example", "\r\n", "\r\n\r\n", "Content-Type: ", "multipart/alternative",
    "; boundary=b", "--b", "--b--", "text/html", "text/plain", "<a href=", "<div style='", ">",
    "https://x", "xn--a", ".example", "=?utf-8?q?", "\u0430", "\x00", "List-Unsubscribe: <",
    "Date: ", "1 Jan ", "9999999999", "<!--", "{{", "@", "[", "://", "javascript:", "&#0;",
]  # fmt: skip


@given(st.lists(st.sampled_from(_PIECES), max_size=60).map("".join))
def test_pieces_of_mails_in_any_order_are_a_mail(text: str) -> None:
    """Any text is accepted, and the same mail has the same facts."""
    raw = text.encode()
    facts = read_mail(raw)
    assert read_mail(raw) == facts
    assert isinstance(facts, MailFacts)

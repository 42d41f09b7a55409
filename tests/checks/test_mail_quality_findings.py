"""Findings about the format of a mail, each with a mail that has the fault and one without it."""

import ast
import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from msgspec.structs import replace

from mailcheck.checks import quality
from mailcheck.checks.deliverability import quality as quality_of_test
from mailcheck.checks.deliverability.quality import is_smtputf8, judge_transport
from mailcheck.checks.findings import ChargedFinding, Severity
from mailcheck.checks.findings_table import ROWS
from mailcheck.checks.quality.content import judge_content
from mailcheck.checks.quality.header import judge_headers
from mailcheck.checks.quality.links import judge_links
from mailcheck.checks.quality.reading import read_mail
from mailcheck.checks.quality.unsubscribe import (
    MUST_BE_SIGNED,
    ONE_CLICK,
    OneClick,
    find_one_click,
    judge_unsubscribe,
)
from mailcheck.checks.weights import QUALITY_AREAS, price_finding
from mailcheck.core.instants import DAY, HOUR, Instant, parse_instant
from mailcheck.core.messages import TlsFacts
from tests.fakes.sample_mails import HTML, TEXT, WORDS, make_html_mail, make_mail, make_parts
from tests.table import rows

NOW = parse_instant("2026-11-21T10:00:05Z")
TLS = TlsFacts("TLSv1.3", "TLS_AES_256_GCM_SHA384")
TRANSCRIPT = ("S: 220 mx", "C: EHLO a.example.com", "S: 250 mx", "C: MAIL FROM:<a@example.com>")


def judge(raw: bytes, signed: frozenset[str] | None = MUST_BE_SIGNED) -> list[ChargedFinding]:
    """Return all findings about the bytes of a mail, in order."""
    facts = read_mail(raw)
    return [
        *judge_headers(facts, NOW),
        *judge_content(facts),
        *judge_links(facts),
        *judge_unsubscribe(facts, signed),
    ]


def ids(findings: Sequence[ChargedFinding]) -> list[str]:
    """Return the ids of findings."""
    return [finding.finding.id for finding in findings]


def with_link(href: str, words: str = "More") -> bytes:
    """Return a mail with one more link."""
    return make_html_mail(f"<a href='{href}'>{words}</a>")


FAULTY: dict[str, bytes] = {
    "headers.from-missing": make_mail(without=("From",)),
    "headers.from-unreadable": make_mail(From="News"),
    "headers.from-repeated": make_mail("From: b@example.com"),
    "headers.from-several-domains": make_mail(From="a@example.com, b@example.org"),
    "headers.sender-missing": make_mail(From="a@example.com, b@example.com"),
    "headers.name-shows-address": make_mail(From='"service@bank.example" <a@example.com>'),
    "headers.reply-to-freemail": make_mail(Reply_To="someone@gmail.com"),
    "headers.no-reply": make_mail(From="no-reply@example.com"),
    "headers.date-missing": make_mail(without=("Date",)),
    "headers.date-unreadable": make_mail(Date="yesterday"),
    "headers.date-form": make_mail(Date="Sat Nov 21 10:00:00 2026"),
    "headers.date-future": make_mail(Date="Sat, 21 Nov 2026 15:00:00 +0000"),
    "headers.date-old": make_mail(Date="Thu, 19 Nov 2026 10:00:00 +0000"),
    "headers.message-id-missing": make_mail(without=("Message-ID",)),
    "headers.message-id-malformed": make_mail(Message_ID="1@example.com"),
    "headers.message-id-local": make_mail(Message_ID="<1@laptop.local>"),
    "headers.subject-missing": make_mail(without=("Subject",)),
    "headers.subject-capitals": make_mail(Subject="LAST CHANCE TODAY"),
    "headers.subject-emoji": make_mail(Subject="🎉🎉🎉 Party"),
    "headers.subject-punctuation": make_mail(Subject="Really?!!"),
    "headers.subject-long": make_mail(Subject="word " * 40),
    "headers.fake-reply": make_mail(Subject="Re: your order"),
    "headers.repeated": make_mail("Subject: another"),
    "headers.to-missing": make_mail(without=("To",)),
    "headers.mime-version-missing": make_mail(without=("MIME-Version",)),
    "headers.return-path": make_mail("Return-Path: <a@example.com>"),
    "headers.raw-8bit": make_mail(Subject="Grüße"),
    "headers.large": make_mail(*(f"X-A: {'a' * 900}" for _ in range(80))),
    "content.html-only": make_mail(content_type="text/html", body=HTML),
    "content.empty": make_mail(content_type="text/plain", body=" \r\n"),
    "content.empty-text": make_mail(body=make_parts(text=" ")),
    "content.text-differs": make_mail(body=make_parts(text="Please use a program with HTML.")),
    "content.html-first": make_mail(
        body=f"--b\r\nContent-Type: text/html\r\n\r\n{HTML}\r\n"
        f"--b\r\nContent-Type: text/plain\r\n\r\n{TEXT}\r\n--b--\r\n"
    ),
    "content.broken-structure": make_mail(body=make_parts().replace("--b--", "")),
    "content.risky-attachment": make_mail(
        content_type="multipart/mixed; boundary=b",
        body="--b\r\n\r\nSee the file.\r\n--b\r\nContent-Type: application/x-msdownload\r\n"
        "Content-Disposition: attachment; filename=Setup.EXE\r\n\r\nMZ\r\n--b--\r\n",
    ),
    "content.long-lines": make_mail(body=make_parts(text=TEXT + " a" * 500)),
    "content.large": make_mail(body=make_parts(text=TEXT + "\r\n" * 6 * 2**20)),
    "content.placeholder": make_mail(Subject="Hello {{ first_name }}"),
    "content.clipped": make_html_mail("<p class='abcdefgh'></p>" * 5000),
    "content.base64-html": make_mail(
        content_type="text/html", content_transfer_encoding="base64", body="PHA+aGk8L3A+"
    ),
    "content.images-without-alt": make_html_mail("<img src='https://example.com/b.png'>"),
    "content.mostly-images": make_mail(body=make_parts(html="<img src=cid:a alt=''>Sale")),
    "content.insecure-images": make_html_mail("<img alt='' src='http://example.com/b.png'>"),
    "content.data-images": make_html_mail("<img alt='' src='data:image/png;base64,AA=='>"),
    "content.active": make_html_mail("<script>alert(1)</script>"),
    "content.form": make_html_mail("<form action='https://example.com'></form>"),
    "content.external-styles": make_html_mail("<link rel=stylesheet href='https://a.example/b'>"),
    "content.hidden-text": make_html_mail(f"<p style='display:none'>{WORDS}</p>"),
    "content.unclosed-comment": make_html_mail("<!-- the end"),
    "content.unclosed-elements": make_html_mail("<div><table>"),
    "links.disguised": with_link("https://example.com/a", "https://www.bank.example/login"),
    "links.mixed-scripts": with_link("https://www.\u0440\u0430ypal.com/"),
    "links.punycode": with_link("https://xn--bcher-kva.example/"),
    "links.user-in-url": with_link("https://bank.example@example.com/"),
    "links.shortened": with_link("https://bit.ly/abc"),
    "links.ip-address": with_link("https://192.0.2.1/a"),
    "links.port": with_link("https://example.com:8443/"),
    "links.insecure": with_link("http://example.com/"),
    "links.script": with_link("javascript:alert(1)"),
    "links.relative": with_link("/page"),
    "unsubscribe.no-one-click": make_mail(without=("List-Unsubscribe-Post",)),
    "unsubscribe.no-address": make_mail(List_Unsubscribe="https://example.com/u/1"),
    "unsubscribe.no-link": make_mail(
        body=make_parts(text=WORDS, html=f"<p>{WORDS}</p>").replace("nsubscribe", "")
    ),
}
"""A mail for each finding that follows from its bytes alone."""

OTHERS: dict[str, Callable[[], Iterable[ChargedFinding]]] = {
    "unsubscribe.undetermined": lambda: judge_unsubscribe(read_mail(make_mail()), None),
    "transport.no-tls": lambda: judge_transport(None, is_extended=True, tls_was_offered=True),
    "transport.tls-not-offered": lambda: judge_transport(
        None, is_extended=True, tls_was_offered=False
    ),
    "transport.old-tls": lambda: judge_transport(
        replace(TLS, version="TLSv1.1"), is_extended=True, tls_was_offered=True
    ),
    "transport.weak-cipher": lambda: judge_transport(
        replace(TLS, cipher="DES-CBC3-SHA"), is_extended=True, tls_was_offered=True
    ),
    "transport.helo": lambda: judge_transport(TLS, is_extended=False, tls_was_offered=True),
    "transport.refused-commands": lambda: judge_transport(
        TLS, is_extended=True, transcript=("C: HELP", "S: 502 5.5.1 no"), tls_was_offered=True
    ),
}
"""The findings that need more than the bytes."""


def test_a_faultless_mail_has_no_findings() -> None:
    """A mail that meets all rules and was sent with TLS has no findings."""
    assert ids(judge(make_mail())) == []
    transport = judge_transport(TLS, is_extended=True, transcript=TRANSCRIPT, tls_was_offered=True)
    assert list(transport) == []


@rows(*FAULTY)
def test_each_fault_of_a_mail_is_named(identifier: str) -> None:
    """A mail with the fault has its finding, with a meaning and advice."""
    found = [one for one in judge(FAULTY[identifier]) if one.finding.id == identifier]
    assert len(found) == 1
    assert found[0].finding.meaning.endswith(".")
    assert found[0].finding.fix.endswith(".")
    assert found[0].area.value == identifier.partition(".")[0]
    assert found[0] == price_finding(found[0].finding)


@rows(*OTHERS)
def test_each_other_fault_is_named(identifier: str) -> None:
    """A fault of the session or the signatures has its finding and its price."""
    found = {one.finding.id: one for one in OTHERS[identifier]()}
    assert found[identifier] == price_finding(found[identifier].finding)
    assert found[identifier].finding.fix


def test_every_finding_is_tested() -> None:
    """Every finding of the package has a mail here that leads to it."""
    written: set[str] = set()
    pattern = re.compile(r"(?:headers|content|links|unsubscribe|transport)\.[a-z0-9-]+")
    paths = Path(quality.__path__[0]).glob("*.py")
    for path in (*paths, Path(quality_of_test.__file__)):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                written |= {node.value} if pattern.fullmatch(node.value) else set()
    assert written == FAULTY.keys() | OTHERS.keys()
    rows = {row.id for row in ROWS if row.area in QUALITY_AREAS}
    assert written == {one for one in rows if not one.startswith("bimi.")}  # see test_bimi.py


@rows(
        ("headers.date-future", make_mail(Date="Sat, 21 Nov 2026 21:59:00 +1100 (AEDT)")),
        ("headers.date-form", make_mail(Date="Sat, 21 Nov 2026 21:00 +1100 (AEDT)")),
        ("headers.date-old", make_mail(Date="Fri, 20 Nov 2026 12:00:00 GMT")),
        ("headers.name-shows-address", make_mail(From='"a@mail.example.com" <a@example.com>')),
        ("headers.fake-reply", make_mail("In-Reply-To: <a@b.example>", Subject="Re: a")),
        ("headers.fake-reply", make_mail(Subject="Regarding: a")),
        ("headers.to-missing", make_mail("Cc: a@example.com", without=("To",))),
        ("headers.no-reply", make_mail("Reply-To: a@example.com", From="noreply@example.com")),
        ("headers.reply-to-freemail", make_mail(From="a@gmail.com", Reply_To="b@gmail.com")),
        ("headers.message-id-local", make_mail(Message_ID="<1@[192.0.2.1]>")),
        ("headers.message-id-malformed", make_mail(Message_ID='<"a b"@example.com>')),
        ("headers.subject-capitals", make_mail(Subject="RE: FAQ")),
        ("headers.subject-capitals", make_mail(Subject="十一月发生的事情")),
        ("headers.raw-8bit", make_mail(Subject="=?utf-8?q?Gr=C3=BC=C3=9Fe?=")),
        ("content.long-lines", make_mail(body=make_parts(text="a" * 998))),
        ("content.hidden-text", make_mail(body=make_parts(html=f"<p hidden>{WORDS}</p>" + HTML))),
        ("content.images-without-alt", make_html_mail("<img alt='' src='https://a.example/b'>")),
        ("content.images-without-alt", make_html_mail("<img width=1 height=1 src='https://a'>")),
        ("content.unclosed-elements", make_html_mail("<ul><li>a<li>b</ul><p>c<br><table><tr><td>")
         .replace(b"<table>", b"")),
        ("content.unclosed-comment", make_html_mail("<!-- a --><!--[if mso]>x<![endif]-->")),
        ("links.disguised", with_link("https://click.example.com/a", "www.example.com/news")),
        ("links.disguised", with_link("https://example.com/a", "Node.js")),
        ("links.disguised", with_link("https://example.com/a", "mail a@bank.example")),
        ("links.mixed-scripts", with_link("https://\u043f\u043e\u0447\u0442\u0430.example/")),
        ("links.relative", with_link("#top")),
        ("links.relative", with_link("tel:+123")),
        ("links.port", with_link("https://example.com:443/")),
        ("links.ip-address", with_link("https://1.example/")),
        ("unsubscribe.no-one-click", make_mail(
            without=("List-Unsubscribe", "List-Unsubscribe-Post"))),
    )  # fmt: skip
def test_common_properties_are_not_reported(identifier: str, raw: bytes) -> None:
    """Common properties of good mail that look like a fault are not reported."""
    assert identifier not in ids(judge(raw))


@rows(
        (make_mail(), MUST_BE_SIGNED | {"from"}, OneClick.WORKS),
        (make_mail(), None, OneClick.UNDETERMINED),
        (make_mail(), frozenset(["list-unsubscribe"]), OneClick.NOT_SIGNED),
        (make_mail(without=("List-Unsubscribe",)), None, OneClick.NO_FIELD),
        (make_mail(List_Unsubscribe="<mailto:a@b.example>"), None, OneClick.NO_HTTPS),
        (make_mail(List_Unsubscribe="<http://b.example/>"), None, OneClick.NO_HTTPS),
        (make_mail(List_Unsubscribe="(a) <https://b.exa\r\n mple/>"), MUST_BE_SIGNED,
         OneClick.WORKS),
        (make_mail(without=("List-Unsubscribe-Post",)), MUST_BE_SIGNED, OneClick.NO_POST),
        (make_mail(List_Unsubscribe_Post="list-unsubscribe=one-click"), MUST_BE_SIGNED,
         OneClick.WRONG_POST),
        (make_mail("List-Unsubscribe: <https://c.example/>"), MUST_BE_SIGNED, OneClick.REPEATED),
        (make_mail("List-Unsubscribe: <https://c.example/>", List_Unsubscribe="<mailto:a@b.c>"),
         MUST_BE_SIGNED, OneClick.REPEATED),
        (make_mail(f"List-Unsubscribe-Post: {ONE_CLICK}"), MUST_BE_SIGNED, OneClick.REPEATED),
        (make_mail(List_Unsubscribe="=?utf-8?q?=3Chttps=3A//b.example/?=\r\n =?utf-8?q?u=3E?="),
         MUST_BE_SIGNED, OneClick.ENCODED),
        (make_mail(List_Unsubscribe="<=?utf-8?b?aHR0cHM6Ly9iLmV4YW1wbGUvdQ==?=>"), None,
         OneClick.ENCODED),
        (make_mail(List_Unsubscribe="=?iso-8859-1?q?=3Cmailto=3Aa=40b.example=3E?="), None,
         OneClick.ENCODED),
        (make_mail(List_Unsubscribe_Post="=?utf-8?q?List-Unsubscribe=3DOne-Click?="), None,
         OneClick.ENCODED),
    )  # fmt: skip
def test_one_click_works_by_rfc_8058_only(
    raw: bytes, signed: frozenset[str] | None, expected: OneClick
) -> None:
    """It needs an https URL, the exact text and a signature over both; the first fault is named."""
    facts = read_mail(raw)
    assert find_one_click(facts, signed) is expected
    charged = sum(one.tenths for one in judge_unsubscribe(facts, signed))
    assert charged == (0 if expected in (OneClick.WORKS, OneClick.UNDETERMINED) else 5)


@rows("List-Id: <a.example.com>", "Precedence: bulk", "Precedence: List")
def test_bulk_mail_needs_one_click(field: str) -> None:
    """A List-* field or Precedence is enough; mail to one person needs no way to unsubscribe."""
    without = ("List-Unsubscribe", "List-Unsubscribe-Post")
    assert "unsubscribe.no-one-click" in ids(judge(make_mail(field, without=without)))
    assert ids(judge(make_mail("Precedence: first-class", without=without))) == []


def test_undetermined_findings_are_marked() -> None:
    """Signatures that could not be checked do not count against the sender."""
    found = judge_unsubscribe(read_mail(make_mail()), None)
    assert [one.finding.severity for one in found] == [Severity.UNDETERMINED]


def test_utf8_in_the_header_is_right_with_smtputf8() -> None:
    """UTF-8 that RFC 6532 allows is valid in a mail sent with SMTPUTF8."""
    facts = read_mail(make_mail(Subject="Grüße"))
    assert list(judge_headers(facts, NOW, is_smtputf8=True)) == []
    assert is_smtputf8(("C: MAIL FROM:<a@b> SIZE=1", "C: mail from:<a@b> smtputf8 SIZE=1"))
    assert not is_smtputf8(("C: MAIL FROM:<SMTPUTF8@b> SIZE=1",))
    assert not is_smtputf8(())


@rows((NOW - 2 * HOUR - 6_000, True), (NOW - HOUR, False), (NOW + DAY, True), (NOW + HOUR, False))
def test_a_date_is_compared_with_the_time_of_receipt(received_at: int, is_found: bool) -> None:
    """The limits are two hours in the future and one day in the past."""
    found = judge_headers(read_mail(make_mail()), Instant(received_at))
    assert any(found) is is_found


def test_good_ciphers_are_not_called_weak() -> None:
    """Usual ciphers of TLS 1.2 and 1.3 pass."""
    for cipher in ("ECDHE-RSA-AES128-GCM-SHA256", "TLS_CHACHA20_POLY1305_SHA256", "AES256-SHA"):
        tls = TlsFacts("TLSv1.2", cipher)
        assert list(judge_transport(tls, is_extended=True, tls_was_offered=True)) == []

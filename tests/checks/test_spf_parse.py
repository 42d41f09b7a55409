"""Tests for the parser of SPF records."""

from hypothesis import given
from hypothesis import strategies as st

from mailcheck.checks.spf.record import (
    MechanismName,
    Qualifier,
    explain_bad_domain_spec,
    parse_spf_record,
)
from mailcheck.checks.spf_texts import is_spf_record, looks_like_spf
from tests.linear import assert_linear
from tests.table import rows


@rows(
    ("v=spf1", True, False),
    ("v=spf1 -all", True, False),
    ("V=SPF1 mx -all", True, False),
    ("v=spf10 -all", False, True),
    (" v=spf1 -all", False, True),
    ("v=spf1;-all", False, True),
    ("v=spf1\t-all", False, True),
    ('"v=spf1 -all"', False, True),
    ("v = spf1 -all", False, True),
    ("v=spf2.0/pra -all", False, True),
    ("spf1 include:x.example -all", False, True),
    ("google-site-verification=abc", False, False),
    ("", False, False),
)
def test_a_record_begins_exactly_with_its_version(
    text: str, is_record: bool, is_near_miss: bool
) -> None:
    """A record begins with ``v=spf1`` and a space or its end (RFC 7208 4.5)."""
    assert (is_spf_record(text), looks_like_spf(text)) == (is_record, is_near_miss)


def test_mechanisms_are_read_in_order() -> None:
    """Qualifier, name, target and network of every mechanism are parsed."""
    record = parse_spf_record(
        "v=spf1 +a a:Mail.Example.COM./24//64 ?mx/28 ip4:192.0.2.0/24 ip6:2001:DB8::/32"
        " ~include:%{i}._spf.example.net ptr:example.org exists:%{ir}.sbl.example.org -ALL"
    )
    shown = [
        (m.qualifier.value + m.name.value, m.target or str(m.network or ""))
        for m in record.mechanisms
    ]
    assert shown == [
        ("+a", ""),
        ("+a", "mail.example.com"),
        ("?mx", ""),
        ("+ip4", "192.0.2.0/24"),
        ("+ip6", "2001:db8::/32"),
        ("~include", "%{i}._spf.example.net"),
        ("+ptr", "example.org"),
        ("+exists", "%{ir}.sbl.example.org"),
        ("-all", ""),
    ]
    assert record.problems == ()
    assert record.all_qualifier is Qualifier.FAIL
    assert ["%" in m.target for m in record.mechanisms].count(True) == 2


def test_redirect_is_read_and_unknown_modifiers_are_ignored() -> None:
    """Modifiers may be anywhere; unknown ones have no meaning (RFC 7208 6)."""
    record = parse_spf_record("v=spf1 redirect=_SPF.example.com. mx future=%{d} exp=e.example.com")
    assert (record.redirect, record.problems) == ("_spf.example.com", ())
    assert record.all_qualifier is None


@rows(
    "term",
    "ipv4:192.0.2.1",
    "ip:192.0.2.1",
    "a:192.0.2.1",
    "ip4:2001:db8::1",
    "ip4:192.0.2.1,",
    "-all;",
    "-all.",
    "inlcude:x.example",
    "ip4:192.0.2.256",
    "ip4:192.0.2.0/33",
    "ip4:192.0.2.0/08",
    "ip4:",
    "ip4",
    "a/33",
    "mx//129",
    "include:",
    "include",
    "include:localhost",
    "include:a..example",
    "include:%{x}.example",
    "include:%{t}.example",
    "exists:%{i0}.example",
    "include:exämple.com",
    "all:example.com",
    "redirect=localhost",
    "hello",
    "\tmx",
    "--all",
)
def test_a_broken_term_breaks_the_record(term: str) -> None:
    """Any syntax error is a permerror."""
    record = parse_spf_record(f"v=spf1 {term} mx")
    assert record.is_broken
    assert len(record.problems) == 1


@rows(
    ("ip4=192.0.2.1 -all", "ip4=192.0.2.1"),
    ("include=_spf.example.com -all", "include=_spf.example.com"),
    ("inlude=_spf.example.com -all", "inlude=_spf.example.com"),
    ("redirct=_spf.example.com", "redirct=_spf.example.com"),
    ("-all mx", "mx"),
    ("-all redirect=x.example", "redirect=x.example"),
    ("mx v=spf1 -all", "v=spf1"),
)
def test_what_receivers_ignore_is_a_problem_but_no_error(terms: str, problem: str) -> None:
    """A valid record may still have problems."""
    record = parse_spf_record(f"v=spf1 {terms}")
    assert not record.is_broken
    assert [one.term for one in record.problems] == [problem]


def test_terms_after_all_are_not_part_of_the_record() -> None:
    """Terms after ``all`` need no lookups, and a redirect has no effect."""
    record = parse_spf_record("v=spf1 mx -all include:x.example redirect=y.example")
    assert [m.name for m in record.mechanisms] == [MechanismName.MX, MechanismName.ALL]
    assert record.redirect == ""


def test_a_repeated_modifier_is_an_error() -> None:
    """``redirect`` and ``exp`` may occur once (RFC 7208 6)."""
    assert parse_spf_record("v=spf1 redirect=a.example redirect=b.example").is_broken
    assert not parse_spf_record("v=spf1 x=1 x=2 -all").is_broken


@rows(
    ("example.com", True),
    ("%{d}", True),
    ("%{ir}.%{v}._spf.%{d2}", True),
    ("%{l1r-}.example.com", True),
    ("%%.example.com", True),
    ("example.com.", True),
    ("_spf.example.co-op", True),
    ("%{d", False),
    ("%{z}.example.com", False),
    ("100%.example.com", False),
    ("example.123", False),
    ("com", False),
    ("", False),
)
def test_domain_specs(text: str, is_good: bool) -> None:
    """The grammar of domain-spec is that of RFC 7208 7.1."""
    assert (explain_bad_domain_spec(text) is None) is is_good


@given(st.text(alphabet="ap4l:/-~?.% {}dinclue=xmr 0129é", max_size=120))
def test_any_text_can_be_read(text: str) -> None:
    """The parser never fails."""
    parse_spf_record("v=spf1 " + text)


def test_hostile_records_are_read_in_linear_time() -> None:
    """Long terms of every kind are parsed in linear time."""
    for piece in ("a", "/1", "%{d}", "%{d1", "1", ".", "+", "ip4:1", "-", "=", "/", "%{d.-+,/_="):
        assert_linear(parse_spf_record, piece, "v=spf1 a:")
        assert_linear(parse_spf_record, piece, "v=spf1 ")
        assert_linear(parse_spf_record, f"{piece} ", "v=spf1 ")

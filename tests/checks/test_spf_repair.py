"""Tests for the repair of SPF records."""

from itertools import product

from hypothesis import given
from hypothesis import strategies as st

from mailcheck.checks.spf.record import (
    parse_spf_record,
)
from mailcheck.checks.spf.repair import (
    compose_record,
    find_meaning,
    read_sender,
)
from mailcheck.checks.spf_texts import looks_like_spf
from tests.linear import assert_linear
from tests.table import rows


def mend(*strings: str, useless: tuple[str, ...] = ()) -> str:
    """Return the intended record, or an empty string if it is not certain."""
    return compose_record([find_meaning(strings, frozenset(useless))])


ONE_MEANING = [
    # Terms without a space between them.
    ("v=spf1 mx,ip4:192.0.2.9 -all", "mx ip4:192.0.2.9 -all"),
    ("v=spf1 mx, ip4:192.0.2.9; -all;", "mx ip4:192.0.2.9 -all"),
    ("v=spf1 mx|a:h.example -all", "mx a:h.example -all"),
    ("v=spf1 mx\tip4:192.0.2.9 -all", "mx ip4:192.0.2.9 -all"),
    ("v=spf1 mx\u00a0ip4:192.0.2.9 -all", "mx ip4:192.0.2.9 -all"),
    ("v=spf1 mx\r\nip4:192.0.2.9\n-all", "mx ip4:192.0.2.9 -all"),
    ("v=spf1 mx&nbsp;ip4:192.0.2.9 -all", "mx ip4:192.0.2.9 -all"),
    ("v=spf1 mx\\032ip4:192.0.2.9 -all", "mx ip4:192.0.2.9 -all"),
    ("v=spf1 mx-all", "mx -all"),
    ("v=spf1 ip4:192.0.2.9~all", "ip4:192.0.2.9 ~all"),
    ("v=spf1 include:p.example-all", "include:p.example -all"),
    ("v=spf1 mxip4:192.0.2.9 -all", "mx ip4:192.0.2.9 -all"),
    ("v=spf1 ip4:192.0.2.9ip4:192.0.2.8mx:h.example -all", None),
    ("v=spf1 ip4:192.0.2.9+mx+a -all", "ip4:192.0.2.9 +mx +a -all"),
    ("v=spf1 include:p.exampleinclude:q.example -all", "include:p.example include:q.example -all"),
    ("v=spf1mx -all", "mx -all"),
    # Terms with stray spaces.
    ("v=spf1 include: p.example -all", "include:p.example -all"),
    ("v=spf1 include :p.example -all", "include:p.example -all"),
    ("v=spf1 include p.example -all", "include:p.example -all"),
    ("v=spf1 ip4 192.0.2.9 ip6: ::1 -all", "ip4:192.0.2.9 ip6:::1 -all"),
    ("v=spf1 ip4:192.0.2.0 /24 a / 24 -all", "ip4:192.0.2.0/24 a/24 -all"),
    ("v=spf1 mx - all", "mx -all"),
    ("v=spf1 mx:include:p.example -all", "mx include:p.example -all"),
    ("v=spf1 redirect = p.example", "redirect=p.example"),
    # Misspelt names and signs.
    ("v=spf1 inlude:p.example -all", "include:p.example -all"),
    ("v=spf1 incldue:p.example exsits:q.example -all", "include:p.example exists:q.example -all"),
    ("v=spf1 include=p.example ip4=192.0.2.9 -all", "include:p.example ip4:192.0.2.9 -all"),
    ("v=spf1 inlude=p.example -all", "include:p.example -all"),
    ("v=spf1 redirect:p.example", "redirect=p.example"),
    ("v=spf1 redirct=p.example", "redirect=p.example"),
    ("v=spf1 ipv4:192.0.2.9 ip:192.0.2.8 ipv6:::1 -all", None),
    ("v=spf1 a:192.0.2.9 ip4:2001:db8::1 -all", "ip4:192.0.2.9 ip6:2001:db8::1 -all"),
    ("v=spf1 include:ip4:192.0.2.9 -all", "ip4:192.0.2.9 -all"),
    ("v=spf1 all mx -all", "mx ~all"),
    ("v=spf1 mx -al", "mx -all"),
    ("v=spf1 mx --all", "mx -all"),
    ("v=spf1 mx all-", "mx ~all"),
    # Addresses.
    ("v=spf1 192.0.2.9 192.0.3.0/24 2001:db8::/64 -all", None),
    ("v=spf1 ip4:192.000.002.009 -all", "ip4:192.0.2.9 -all"),
    ("v=spf1 ip4:192.0.2.9:25 ip6:[2001:db8::1] -all", "ip4:192.0.2.9 ip6:2001:db8::1 -all"),
    ("v=spf1 ip4:192.0.2.0/255.255.255.0 ip4:198.51.100.* -all", None),
    ("v=spf1 ip4:192.0.2.1-192.0.2.4 -all", "ip4:192.0.2.1 ip4:192.0.2.2/31 ip4:192.0.2.4 -all"),
    ("v=spf1 ip4:192.0.2.8-11 -all", "ip4:192.0.2.8/30 -all"),
    # URLs, ports and names of other scripts.
    ("v=spf1 include:https://p.example/spf a:h.example:25 -all", None),
    ("v=spf1 include:ex\u00e4mple.example -all", "include:xn--exmple-cua.example -all"),
    ("v=spf1 ip4::192.0.2.9 -all", "ip4:192.0.2.9 -all"),
    ("v=spf1 include::p.example -all", "include:p.example -all"),
    ("v=spf1 include:@p.example -all", "include:p.example -all"),
    # Look-alike and invisible characters.
    ("v=spf1 mx \u2013all", "mx -all"),
    ("v=spf1 \u201cmx\u201d ip4\uff1a192.0.2.9 \uff0dall", "mx ip4:192.0.2.9 -all"),
    ("\uff56\uff1d\uff53\uff50\uff46\uff11 mx \u02dcall", "mx ~all"),
    ("v=spf1 in\u200bclude:p.example\u200b-all", "include:p.example -all"),
    ("\ufeffv=spf1 mx -all", "mx -all"),
    ("v=spf1 include:\\_spf.p.example \\~all", "include:_spf.p.example ~all"),
    # Terms after "all".
    ("v=spf1 mx -all ip4:192.0.2.9", "mx ip4:192.0.2.9 -all"),
    ("v=spf1 mx ~all include:p.example -all", "mx include:p.example ~all"),
    ("v=spf1 mx -all redirect=p.example", "mx include:p.example -all"),
    # Versions.
    ("v=spf1;mx;-all", "mx -all"),
    ("v = spf1 mx -all", "mx -all"),
    ("spf1 mx -all", "mx -all"),
    ("v=spf mx -all", "mx -all"),
    ('"v=spf1 mx -all"', "mx -all"),
    ("v=spf1 v=spf1 mx -all", "mx -all"),
    ("v==spf1 mx -all", "mx -all"),
    ("SPF: v=spf1 mx -all", "mx -all"),
    ("txt=v=spf1 mx -all", "mx -all"),
    ("mx ip4:192.0.2.9 -all", "mx ip4:192.0.2.9 -all"),
]
"""Each text with its intended record; `None` for those of `WITH_TWO_WRITINGS`."""

WITH_TWO_WRITINGS = [
    (
        "v=spf1 ip4:192.0.2.9ip4:192.0.2.8mx:h.example -all",
        "ip4:192.0.2.9 ip4:192.0.2.8 mx:h.example -all",
    ),
    (
        "v=spf1 ipv4:192.0.2.9 ip:192.0.2.8 ipv6:::1 -all",
        "ip4:192.0.2.9 ip4:192.0.2.8 ip6:::1 -all",
    ),
    (
        "v=spf1 192.0.2.9 192.0.3.0/24 2001:db8::/64 -all",
        "ip4:192.0.2.9 ip4:192.0.3.0/24 ip6:2001:db8::/64 -all",
    ),
    (
        "v=spf1 ip4:192.0.2.0/255.255.255.0 ip4:198.51.100.* -all",
        "ip4:192.0.2.0/24 ip4:198.51.100.0/24 -all",
    ),
    (
        "v=spf1 include:https://p.example/spf a:h.example:25 -all",
        "include:p.example a:h.example -all",
    ),
]


@rows(*(one for one in ONE_MEANING if one[1]), *WITH_TWO_WRITINGS)
def test_unambiguous_records_are_repaired(text: str, meant: str) -> None:
    """The repaired record keeps every sender and has no problem itself."""
    useless = (
        "include:p.example-all",
        "include:https://p.example/spf",
        "include::p.example",
        "include:@p.example",
    )
    record = mend(text, useless=useless)
    assert record == f"v=spf1 {meant}"
    assert parse_spf_record(record).problems == ()


@rows(
    "v=spf1 hello mx -all",
    "v=spf1 mx01 mx02.d.example ~all",
    "v=spf1 ip4:192.0.2.7/33 -all",
    "v=spf1 ip4:192.0.2.256 -all",
    "v=spf1 ip4:010.1.1.1 -all",
    "v=spf1 ip4: -all",
    "v=spf1/mx -all",
    "v=spf1 ip4:192.0.2.1\\32 -all",
    "v=spf1 ip6:2001:db8::1%eth0 -all",
    "@ IN TXT v=spf1 mx -all",
    "spf=v1 mx -all",
    "v=spf1 mx - ip4:192.0.2.9 -all",
    "v=spf1 mx \u2013ip4:192.0.2.9 \u2013all",
    "v=spf1 mx-ip4:192.0.2.9 -all",
    "v=spf1 server:h.example -all",
    "v=spf1 redirect=p.example redirect=q.example",
    "v=spf1 include:%{x}.example -all",
    "v=spf1 mx \ufffdip4:192.0.2.9 -all",
    "v=spf1 " + "ip4:192.0.2.1 " * 501,
)
def test_ambiguous_records_are_not_repaired(text: str) -> None:
    """If a word has no meaning or two, no record is proposed."""
    assert mend(text) == ""


@rows(
    (
        ("v=spf1 mx ip4:192.0.2.7", "include:p.example -all"),
        "mx ip4:192.0.2.7 include:p.example -all",
    ),
    (("v=spf1 mx ", "ip4:192.0.2.7 a", "-all"), "mx ip4:192.0.2.7 a -all"),
    (("v=spf1", "mx", "-all"), "mx -all"),
    (
        ("v=spf1 include:p.exa", "mple ip4:192.0.2.", "9 -all"),
        "include:p.example ip4:192.0.2.9 -all",
    ),
    (("v=spf1 include:p.example", "mx -all"), "include:p.example mx -all"),
)
def test_strings_of_a_record_may_lack_a_space(strings: tuple[str, ...], meant: str) -> None:
    """Between two strings, a space is missing or a term is split; only one reading is valid."""
    assert mend(*strings, useless=("include:p.examplemx",)) == f"v=spf1 {meant}"


@rows(
    *product(
        ["a", "mx", "ptr", "?a", "-mx"],
        [
            "include:_spf.p.example",
            "include:%{d}.p.example",
            "exists:%{i}.q.example",
            "redirect=p.example",
            "exp=why.example",
            "ip4:192.0.2.7",
            "ip6:2001:db8::/32",
        ],
        ["", "\u200b", None],
    )
)
def test_a_short_term_glued_to_a_long_one_is_kept(
    first: str, second: str, glue: str | None
) -> None:
    """``aexists:`` is ``a`` and ``exists:`` without a space, not a misspelt ``exists:``."""
    end = "" if second.startswith("redirect") else " -all"
    before, after = f"v=spf1 {first}", f"{second}{end}"
    strings = (before, after) if glue is None else (before + glue + after,)
    assert mend(*strings) == f"v=spf1 {first} {second}{end}"


@rows(
    "v=spf1 a:a,b.example -all",
    "v=spf1 exists:%{l1r+}.%{d2,}.example include:%{i}._s.example -all",
    "v=spf1 a:x.co-op ra=postmaster exp=why.example ~all",
    "v=spf1 ?include:p.example -ip4:192.0.2.1 A/24//64 MX ~all",
)
def test_valid_terms_stay_unchanged(text: str) -> None:
    """Unusual but valid terms stay unchanged."""
    words = set(text.split())
    assert set(mend(text).split()) == words


TERMS = [
    "mx",
    "a",
    "a:h.example",
    "mx:h.example/28",
    "ip4:192.0.2.7",
    "ip4:192.0.3.0/24",
    "ip6:2001:db8::/32",
    "include:_spf.p.example",
    "exists:%{i}.q.example",
]


@given(
    st.lists(st.sampled_from(TERMS), min_size=1, max_size=5, unique=True),
    st.sampled_from(["-all", "~all"]),
    st.sampled_from(["\t", "\u00a0", ", ", ";", "\u3000", "&nbsp;", "  ", "\\032", " \u200b"]),
)
def test_any_separator_is_understood(terms: list[str], end: str, mark: str) -> None:
    """All terms are in the record in their order, with any separator."""
    assert mend(f"v=spf1 {mark.join([*terms, end])}") == " ".join(["v=spf1", *terms, end])


@given(st.text(alphabet='ap4l:/-~?.% {}dinclue=xmr 0129\u00e9\\,;\u2013\u200b"', max_size=80))
def test_any_text_can_be_read(text: str) -> None:
    """The repair accepts any text, and its result has no syntax error."""
    record = mend("v=spf1 " + text)
    assert not record or not parse_spf_record(record).is_broken
    looks_like_spf(text)


def test_hostile_texts_are_read_in_bounded_time() -> None:
    """Long texts of every kind are read in linear time."""
    for piece in (
        "mx,",
        "ip4:",
        "include:a+",
        "\u200b",
        "all-",
        "\\",
        "&nbsp",
        "1.",
        "a:",
        "- ",
        "=/ ",
    ):
        assert_linear(mend, piece, "v=spf1 ", 1_000)
        assert_linear(looks_like_spf, piece, "")


def test_senders_are_compared_by_their_addresses() -> None:
    """A network covers its addresses, and a name with a shorter prefix length the longer ones."""
    pairs = [
        ("ip4:192.0.2.0/24", "ip4:192.0.2.7", True),
        ("ip4:192.0.2.7", "ip4:192.0.2.0/24", False),
        ("a:h.example/24", "a:h.example", True),
        ("a:h.example", "a:h.example/24", False),
        ("redirect=p.example", "include:p.example", True),
        ("a:h.example", "mx:h.example", False),
        ("ip6:::/0", "ip4:192.0.2.7", False),
    ]
    for one, other, covers in pairs:
        first, second = read_sender(one), read_sender(other)
        assert first is not None
        assert second is not None
        assert first.covers(second) is covers, (one, other)


@rows(
    *product(
        ["a:h.d.example", "include:_spf.p.example", "redirect=r.example"],
        ["mx", "a", "ptr", "a/24", "~all"],
    )
)
def test_an_invisible_character_between_a_host_and_a_term(first: str, second: str) -> None:
    """It may stand for a space or for nothing, so no record that could lose a sender is offered."""
    meaning = find_meaning((f"v=spf1 ip4:192.0.2.1 {first}\u200b{second}",))
    assert meaning.unclear or {first, second} <= set(meaning.words)
    assert f"{first}{second}" not in meaning.words


def test_an_invisible_character_inside_of_a_name_is_removed() -> None:
    """A part of a name is no term, so the character can only stand for nothing."""
    meaning = find_meaning(("v=spf1 include:_spf.p\u200b.example.com -all",))
    assert meaning.words == ("include:_spf.p.example.com", "-all")

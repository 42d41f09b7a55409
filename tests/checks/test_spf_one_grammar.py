"""The check of a domain and the check of a mail agree which records are broken."""

from functools import partial
from ipaddress import ip_address

from hypothesis import example, given
from hypothesis import strategies as st

from mailcheck.checks.auth_results import AuthResult
from mailcheck.checks.dns_answers import Answers, DnsQuestion
from mailcheck.checks.spf.evaluate import evaluate_spf
from mailcheck.checks.spf.mail import evaluate_spf_of_mail
from mailcheck.checks.spf.record import (
    parse_spf_record,
)
from mailcheck.checks.spf.tree import MAX_VOIDS
from tests.checks.test_dkim_repair import quote
from tests.fakes.memory_zone import MemoryZone
from tests.fakes.settling import settle
from tests.table import rows

STRANGER = ip_address("203.0.113.9")  # matches no term below
HOSTS = {
    "h.example": {"A": ["192.0.2.1"], "AAAA": ["2001:db8::1"]},
    "m.example": {"MX": ["10 h.example."]},
    "crowd.example": {"MX": [f"10 h{number}.example." for number in range(11)]},
    "r.example": {"TXT": ["v=spf1 ip4:192.0.2.1 ?all"]},
    "back.example": {"TXT": ["v=spf1 include:d.example -all"]},
    "two.example": {"TXT": ["v=spf1 -all", "v=spf1 ~all"]},
    "bad.example": {"TXT": ["v=spf1 exp= -all"]},
    "deep.example": {"TXT": ["v=spf1 include:r.example a:h.example redirect=r.example"]},
}

# Valid terms, and similar invalid ones.
DOMAINS = st.one_of(
    st.sampled_from(
        [
            *("h.example", "H.Example.", "%{i}.example", "%{l1r-}.%{v}.example", "%{D2}.example"),
            *("a%%b.example", "a%_b.example", "%{s}", "%-", "a}", "a.b}", "1.2.3.4", "a.1", "x"),
            *("a..example", ".example", "-a.example", "a.-x", "a.x-", "a.x_y", "ä.example", "_a.b"),
            *(
                "%{c}.example",
                "%{d0}.example",
                "%{d1x}.example",
                "%{x}",
                "%{d",
                "%",
                "%%",
                "%d",
                "",
            ),
        ]
    ),
    st.text(st.sampled_from("ab.%{}dsS12r-_/+=:,~!\x7f"), max_size=12),
)
NETWORKS = st.one_of(
    st.sampled_from(
        [
            *(
                "192.0.2.1",
                "192.0.2.0/24",
                "192.0.2.1/0",
                "192.0.2.1/33",
                "192.0.2.1/08",
                "192.0.2",
            ),
            *("192.0.2.1/", "192.0.2.01", "192.0.2.1//64", "192.0.2.1/255.255.255.0", "192.0.2.1 "),
            *(
                "2001:db8::1",
                "2001:db8::/32",
                "::/0",
                "::1/129",
                "::ffff:192.0.2.1",
                "fe80::1%eth0",
            ),
            *("fe80::1%1/64", "2001:db8::g", ":::", "1:2:3:4:5:6:7::", "::2:3:4:5:6:7:8", ""),
        ]
    ),
    st.text(st.sampled_from("0123456789abf.:/"), max_size=14),
)
LENGTHS = st.sampled_from(
    ["", "", "/24", "//64", "/24//64", "/33", "//129", "/", "//", "/0", "/01"]
)
QUALIFIERS = st.sampled_from(["", "+", "-", "~", "?", "*", "--", "="])
CASES = st.sampled_from([str.lower, str.upper, str.title])
COLONS = st.sampled_from([":", ":", ":", "", "=", "::"])


@st.composite
def mechanisms(draw: st.DrawFn) -> str:
    """Return a mechanism."""
    name = draw(
        st.sampled_from(["a", "mx", "ptr", "exists", "include", "ip4", "ip6", "all", "ipv4"])
    )
    name = draw(CASES)(name)
    if draw(st.booleans()) and not name.lower().startswith(("ip", "ex", "inc")):
        return draw(QUALIFIERS) + name + draw(LENGTHS)
    value = draw(NETWORKS if name.lower().startswith("ip") else DOMAINS)
    return draw(QUALIFIERS) + name + draw(COLONS) + value + draw(LENGTHS)


@st.composite
def modifiers(draw: st.DrawFn) -> str:
    """Return a modifier."""
    names = ["redirect", "exp", "x", "X-9._y", "default", "op", "v", "ip4", "1x", "_", ""]
    return draw(CASES)(draw(st.sampled_from(names))) + "=" + draw(DOMAINS)


TERMS = st.one_of(
    mechanisms(), modifiers(), st.sampled_from(["", "all:x", "-all.", "moo", "-", "\t"])
)
RECORDS = st.lists(TERMS, max_size=6).map(lambda terms: " ".join(["v=spf1", *terms]))


def judge(text: str) -> tuple[AuthResult, str]:
    """Return result and explanation for a mail with no answer except the record itself."""
    zone = MemoryZone({"d.example": {"TXT": [quote(text)]}})
    answers = Answers()
    zone.lookup(DnsQuestion("d.example", "TXT")).addCallback(
        lambda answer: answers.known.update({answer.question: answer})
    )
    found = evaluate_spf_of_mail(STRANGER, "h", "joe@d.example", "r", answers).mail_from
    return found.result, found.explanation


@given(RECORDS)
@example("v=spf1 exp= -all")
@example("v=spf1 x=% -all")
@example("v=spf1 x=1 x=2 -all")
@example("v=spf1 Redirect=r.example exp=r.example")
@example("v=spf1 redirect=h.example redirect=h.example")
@example("v=spf1 exp=h.example EXP=h.example -all")
@example("v=spf1 a:a}")
@example("v=spf1 exists:%% -all")
@example("v=spf1 -all ip4=%")
@example("v=spf1 " + "ip4:192.0.2.1 " * 501)
@example("v=spf1 " + "x" * 8200 + "=y")
def test_a_record_is_read_once(text: str) -> None:
    """A record is broken in the check of a domain exactly when a mail gets permerror."""
    record = parse_spf_record(text)
    result, explanation = judge(text)
    assert (result is AuthResult.PERMERROR) == record.is_broken, explanation
    if record.is_broken:
        assert record.problems[0].reason in explanation


NAMES = ["h.example", "m.example", "crowd.example", "r.example", "back.example", "two.example"]
NAMES += ["bad.example", "deep.example", "gone.example", "d.example"]


def is_for_some(term: str) -> bool:
    """Return whether a term depends on the mail or matches every host."""
    bare = term.lstrip("+-~?").lower()
    return "%" in term or bare.startswith(("all", "ptr", "exists:h")) or bare.endswith("/0")


BACKSLASHED = [
    "h\\.example",
    "\\_s.r.example",
    "h.exa\\mple",
    "%{d}",
    "r.%{d}",
    "x.%{o}",
    "h.%{d3}",
]
PLACES = [*NAMES, *BACKSLASHED, "four.example", "six.example", "dead-mx.example", "null-mx.example"]
PLACES += [f"{'x' * 64}.example", "R.Example."]
OF_ALL_KINDS = st.one_of(
    st.tuples(
        st.sampled_from(
            ["a:", "mx:", "exists:", "include:", "?a:", "-mx:", "-include:", "redirect=", "exp="]
        ),
        st.sampled_from(PLACES),
    ).map("".join),
    st.sampled_from(
        [
            "a",
            "mx",
            "ptr",
            "exists:%{i}.q.example",
            "exists:%{l}.%{v}.q.example",
            "a:%{ir}.q.example",
        ]
    ),
    st.one_of(mechanisms(), modifiers()).filter(lambda term: not is_for_some(term)),
)
OF_ONE_PROTOCOL = {
    "four.example": {"A": ["192.0.2.4"]},
    "six.example": {"AAAA": ["2001:db8::6"]},
    "dead-mx.example": {"MX": ["10 gone.example.", "20 four.example."]},
    "null-mx.example": {"MX": ["0 ."]},
    "r.d.example": {"TXT": ["v=spf1 a:four.example include:%{d}.none.example -all"]},
    "x.d.example": {"TXT": ["v=spf1 a:six.example a:gone.example -all"]},
    "h\\\\.example": {"A": ["192.0.2.8"], "TXT": ["v=spf1 a:four.example -all"]},
}


@given(st.lists(OF_ALL_KINDS, max_size=6), st.sampled_from(["", "-all", "~all"]))
@example(["a:four.example"] * 3, "-all")
@example(["a:six.example"] * 3, "-all")
@example(["exists:%{i}.q.example"] * 3, "-all")
@example(["mx:null-mx.example", "mx:dead-mx.example", "mx:gone.example"], "-all")
@example(["a:h\\.example"] * 3, "-all")
@example([f"a:{'x' * 64}.example"] * 3, "-all")
@example(["include:r.%{d}"], "-all")
@example(["include:d.example"], "-all")
@example(["redirect=d.example"], "")
@example(["redirect=gone.example"], "")
@example(["a:h.example"] * 10 + ["redirect=r.example"], "")
@example(["a:h.example"] * 9 + ["redirect=r.example"], "")
@example(["a:gone.example"] * 3, "-all")
def test_domain_and_mail_agree_on_every_record(terms: list[str], end: str) -> None:
    """A mail without a match is permerror exactly when the check of the domain finds an error."""
    zone = MemoryZone(HOSTS | OF_ONE_PROTOCOL)
    text = " ".join(["v=spf1", *(one for one in terms if not one.startswith("exists:h")), end])
    zone.publish("d.example", "TXT", quote(text))
    domain = settle(zone, lambda answers: evaluate_spf("d.example", answers))
    assert domain.is_complete
    for client in (STRANGER, ip_address("2001:db8:9::9")):
        judge_mail = partial(evaluate_spf_of_mail, client, "h", "j@d.example", "r")
        mail = settle(zone, judge_mail).mail_from
        has_too_many = len(domain.void_terms_for(client.version, may=True)) > MAX_VOIDS
        expected = domain.is_broken or has_too_many
        if mail.result in (AuthResult.PASS, AuthResult.TEMPERROR):
            continue  # a term with "exists" matches every host
        assert (mail.result is AuthResult.PERMERROR) == expected, mail.explanation
        if mail.result is AuthResult.PERMERROR and not domain.is_broken:
            assert all(f'"{one}"' in mail.explanation for one in terms[:1] if "gone" in one)


@rows(
    # Terms after the match are not evaluated (RFC 7208 4.6.2).
    ("v=spf1 ip4:192.0.2.1 include:d.example -all", "pass"),
    ("v=spf1 include:d.example ip4:192.0.2.1 -all", "permerror"),
    ("v=spf1 -ip4:192.0.2.1 include:back.example -all", "fail"),
    ("v=spf1 " + "a:x.example " * 2 + "ip4:192.0.2.1 redirect=d.example", "pass"),
    # Nine terms and the redirect are ten lookups; the matching term is the tenth.
    ("v=spf1 " + "a:h2.example " * 9 + "a:h.example redirect=r.example", "pass"),
    # An unknown modifier may occur twice, but not these two (RFC 7208 6).
    ("v=spf1 x=1 ip4:192.0.2.1 x=2 -all", "pass"),
    ("v=spf1 exp=h.example ip4:192.0.2.1 exp=h.example -all", "permerror"),
    ("v=spf1 redirect=r.example Redirect=r.example", "permerror"),
    ("v=spf1 REDIRECT=pass.example", "pass"),
    # A capital macro letter escapes its own value only (RFC 7208 7.3).
    ("v=spf1 exists:%{S}.u.example -all", "pass"),
    ("v=spf1 redirect=%{L}.u.example", "pass"),
)
def test_evaluated_terms(text: str, result: str) -> None:
    """Terms count when they are evaluated, and modifiers as the standard says."""
    zone = MemoryZone(HOSTS)
    zone.publish("h2.example", "A", "192.0.2.2")
    zone.publish("d.example", "TXT", text)
    zone.publish("pass.example", "TXT", "v=spf1 ip4:192.0.2.1 -all")
    zone.publish("a%2bb%40d.example.u.example", "A", "127.0.0.2")
    zone.publish("a%2bb.u.example", "TXT", "v=spf1 ip4:192.0.2.1 -all")
    client = ip_address("192.0.2.1")
    verdict = settle(
        zone, lambda answers: evaluate_spf_of_mail(client, "h", "a+b@d.example", "r", answers)
    )
    assert verdict.mail_from.result.value == result

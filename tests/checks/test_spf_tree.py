"""Tests for the tree of SPF records and its problems."""

from hypothesis import given
from hypothesis import strategies as st

from mailcheck.checks.dns_answers import Answers, DnsStatus, Presence
from mailcheck.checks.findings import Severity
from mailcheck.checks.spf.evaluate import evaluate_spf
from mailcheck.checks.spf.tree import MAX_FOLLOWED, SpfVerdict
from tests.checks.verdicts import ids
from tests.fakes.memory_zone import MemoryZone
from tests.fakes.settling import settle
from tests.table import rows

HOSTS = {
    "d.example": {"A": ["8.8.8.8"], "MX": ["10 mx.d.example."]},
    "mx.d.example": {"A": ["8.8.8.9"]},
    "ok.example": {"TXT": ["v=spf1 ip4:192.0.2.0/24 -all"]},
    "two.example": {"TXT": ["v=spf1 include:ok.example a:d.example -all"]},
    "txt-only.example": {"TXT": ["hello"]},
    "several.example": {"TXT": ["v=spf1 -all", "v=spf1 mx -all"]},
    "broken.example": {"TXT": ["v=spf1 ipv4:192.0.2.1 -all"]},
    "open.example": {"TXT": ["v=spf1 +all"]},
    "loop.example": {"TXT": ["v=spf1 include:back.example -all"]},
    "back.example": {"TXT": ["v=spf1 include:loop.example -all"]},
    "mx11.example": {"MX": [f"10 m{number}.example." for number in range(11)]},
    "soft.example": {"TXT": ["v=spf1 mx:d.example ~all"]},
}


def judge(*texts: str, failing: dict[str | tuple[str, str], DnsStatus] | None = None) -> SpfVerdict:
    """Evaluate d.example with these TXT records."""
    zone = MemoryZone(HOSTS, failing=failing)
    zone.publish("d.example", "TXT", *texts)
    return settle(zone, lambda answers: evaluate_spf("d.example", answers))


@rows(
    ("v=spf1 -all", 0, 0),
    ("v=spf1 ip4:192.0.2.1 ip6:2001:db8::1 -all", 0, 0),
    ("v=spf1 a mx -all", 2, 0),
    ("v=spf1 include:ok.example -all", 1, 0),
    ("v=spf1 include:two.example -all", 3, 0),
    ("v=spf1 include:two.example include:two.example -all", 6, 0),
    ("v=spf1 redirect=two.example", 3, 0),
    ("v=spf1 ptr exists:%{i}.x.example -all", 2, 0),
    ("v=spf1 a:gone.example mx:txt-only.example -all", 2, 2),
    ("v=spf1 include:gone.example -all", 1, 1),
    ("v=spf1 include:txt-only.example -all", 1, 0),
    ("v=spf1 redirect=gone.example", 1, 1),
    ("v=spf1 exists:d.example exists:gone.example -all", 2, 1),
    ("v=spf1 mx -all include:two.example", 1, 0),
)
def test_lookups_and_voids_are_counted_as_receivers_do(text: str, lookups: int, voids: int) -> None:
    """Every term with a DNS query counts, also in includes; void lookups count separately."""
    verdict = judge(text)
    assert (verdict.lookup_count, verdict.void_count) == (lookups, voids)
    assert verdict.presence is Presence.FOUND


@rows(
    ("v=spf1 mx -all", []),
    ("v=spf1 include:ok.example ~all", []),
    ("v=spf1 redirect=soft.example", []),
    ("v=spf1 mx", ["spf.no-end"]),
    ("v=spf1 mx ?all", ["spf.neutral"]),
    ("v=spf1 mx +all", ["spf.open"]),
    ("v=spf1 mx all", ["spf.open"]),
    ("v=spf1 ip4:0.0.0.0/0 -all", ["spf.open"]),
    ("v=spf1 include:open.example -all", ["spf.open"]),
    ("v=spf1 ?include:open.example -all", []),
    ("v=spf1 redirect=open.example", ["spf.open"]),
    ("v=spf1 ipv4:192.0.2.1 -all", ["spf.syntax"]),
    ("v=spf1 ip4=192.0.2.1 -all", ["spf.ignored-term"]),
    ("v=spf1 include:gone.example -all", ["spf.include-absent"]),
    ("v=spf1 include:txt-only.example -all", ["spf.include-absent"]),
    ("v=spf1 include:several.example -all", ["spf.include-several"]),
    ("v=spf1 include:broken.example -all", ["spf.syntax"]),
    ("v=spf1 include:loop.example -all", ["spf.include-loop"]),
    ("v=spf1 include:d.example -all", ["spf.include-loop"]),
    ("v=spf1 mx:mx11.example -all", ["spf.too-many-mx"]),
    ("v=spf1 ptr -all", ["spf.ptr"]),
    ("v=spf1 include:%{i}.x.example -all", ["spf.macro"]),
    ("v=spf1 a:gone.example -all", ["spf.void"]),
    (
        "v=spf1 a:g1.example a:g2.example a:g3.example -all",
        ["spf.too-many-voids", "spf.void", "spf.void", "spf.void"],
    ),
    ("v=spf1 " + "a:d.example " * 11 + "-all", ["spf.too-many-lookups"]),
    ("v=spf1 " + "ip4:192.0.2.1 " * 40 + "-all", ["spf.long"]),
)
def test_what_is_wrong_is_named(text: str, expected: list[str]) -> None:
    """Each kind of problem has its own finding, and a good record has none."""
    assert ids(judge(text)) == expected


@rows(
    "v=spf1 include:gone.example -all",
    "v=spf1 include:several.example -all",
    "v=spf1 include:broken.example -all",
    "v=spf1 include:loop.example -all",
    "v=spf1 ipv4:192.0.2.1 -all",
    "v=spf1 mx:mx11.example -all",
    "v=spf1 a:g1.example a:g2.example a:g3.example -all",
    "v=spf1 " + "a:d.example " * 11 + "-all",
    "v=spf1 redirect=gone.example",
)
def test_permerror_breaks_the_record(text: str) -> None:
    """A permerror anywhere in the tree breaks the SPF of the domain."""
    verdict = judge(text)
    assert verdict.is_broken
    assert any(finding.severity is Severity.ERROR for finding in verdict.findings)


@rows(
    ("mx/0", "spf.open", "every IPv4 address in the world (4,294,967,296)"),
    ("a/0", "spf.open", "every IPv4 address in the world (4,294,967,296)"),
    ("a:mx.d.example/0//0", "spf.open", "every IPv4 address"),
    ("mx ip6:::/0", "spf.open", "every IPv6 address in the world"),
    ("ip6:2000::/3", "spf.open", "about 2^125 IPv6 addresses"),
    ("ip4:0.0.0.0/1 ip4:128.0.0.0/1", "spf.open", "every IPv4 address"),
    ("ip4:0.0.0.0/2 include:halves.example", "spf.open", "3,221,225,472 IPv4 addresses"),
    ("mx/4", "spf.open", "268,435,456 IPv4 addresses"),
    ("exists:mx.d.example", "spf.open", "every address in the world"),
    ("exists:mx.%{d}", "spf.open", "every address in the world"),
    ("include:open.example", "spf.open", "every address in the world"),
    ("mx +all", "spf.open", "every address in the world"),
    ("mx/8", "spf.wide", "16,777,216 IPv4 addresses"),
    ("ip6:2a00::/12", "spf.wide", "about 2^116 IPv6 addresses"),
    ("mx/10 ip6:2a00::/16", None, ""),
    ("?mx/0 -a/0 exists:gone.example exists:%{i}.d.example", None, ""),
)
def test_a_record_that_lets_too_many_send_is_named(terms: str, found: str | None, who: str) -> None:
    """All passing networks are counted together, including those of includes."""
    zone = MemoryZone(HOSTS)
    zone.publish("d.example", "TXT", f"v=spf1 {terms} -all")
    zone.publish("halves.example", "TXT", "v=spf1 ip4:128.0.0.0/1 -all")
    verdict = settle(zone, lambda answers: evaluate_spf("d.example", answers))
    wide = [one for one in verdict.findings if one.id in ("spf.open", "spf.wide")]
    assert [one.id for one in wide] == ([] if found is None else [found])
    assert all(who in one.meaning and verdict.wide_terms[0] in one.meaning for one in wide)


def test_void_lookups_are_counted_for_each_protocol() -> None:
    """A host without an IPv6 address is void for IPv6 clients, which can affect later senders."""
    zone = MemoryZone(HOSTS)
    hosts = " ".join(f"a:h{number}.example" for number in range(3))
    for number in range(3):
        zone.publish(f"h{number}.example", "A", f"8.8.9.{number}")
    zone.publish("d.example", "TXT", f"v=spf1 {hosts} ip6:2600::/64 -all")
    verdict = settle(zone, lambda answers: evaluate_spf("d.example", answers))
    assert (len(verdict.void_terms_for(4)), len(verdict.void_terms_for(6)), verdict.void_count) == (
        0,
        3,
        0,
    )
    (finding,) = verdict.findings
    assert finding.id == "spf.voids-before-senders"
    assert all(one in finding.meaning for one in (*hosts.split(), "ip6:2600::/64", "IPv6"))
    assert finding.proposed is not None
    assert finding.proposed.value == f"v=spf1 ip6:2600::/64 {hosts} -all"
    assert ids(judge(finding.proposed.value)) != ["spf.voids-before-senders"]


def test_macros_may_be_void_for_everybody() -> None:
    """Three terms with macros are void for most mails, so later terms have no effect."""
    macros = " ".join(f"exists:%{{i}}._{letter}.d.example" for letter in "abc")
    assert ids(judge(f"v=spf1 {macros} ip4:192.0.2.0/24 -all")) == ["spf.voids-before-senders"]
    assert ids(judge(f"v=spf1 ip4:192.0.2.0/24 {macros} -all")) == ["spf.voids-for-some"]


def test_limits_themselves_are_allowed() -> None:
    """Ten lookups and two void lookups are allowed (RFC 7208 4.6.4)."""
    verdict = judge("v=spf1 " + "a:d.example " * 8 + "a:g1.example a:g2.example -all")
    assert (verdict.lookup_count, verdict.void_count) == (10, 2)
    assert not verdict.is_broken


@rows(
    ("v=spf1 mx", "v=spf1 mx ~all"),
    ("v=spf1 mx +all", "v=spf1 mx ~all"),
    ("v=spf1 mx ?all", "v=spf1 mx ~all"),
    ("v=spf1 ipv4:192.0.2.1 -all", "v=spf1 ip4:192.0.2.1 -all"),
    ("v=spf1 mx -all;", "v=spf1 mx -all"),
    ("v=spf1 ip4=192.0.2.1 -all", "v=spf1 ip4:192.0.2.1 -all"),
    ("v=spf1 mx a:gone.example -all", "v=spf1 mx -all"),
    ("v=spf1 mx include:txt-only.example -all", "v=spf1 mx -all"),
    ("v=spf1 mx: exp=why.example ~all", "v=spf1 mx exp=why.example ~all"),
    ("v=spf1 mx, redirect=ok.example", "v=spf1 mx redirect=ok.example"),
    ("v=spf1 mx redirect=gone.example", "v=spf1 mx ~all"),
)
def test_the_proposed_record_fixes_its_finding(text: str, proposed: str) -> None:
    """The proposed record is complete and does not have the same problem."""
    verdict = judge(text)
    record = next(finding.proposed for finding in verdict.findings if finding.proposed is not None)
    assert (record.name, record.rdtype, record.value) == ("d.example", "TXT", proposed)
    assert judge(proposed).findings == ()


def test_several_records_are_merged_into_one() -> None:
    """Two records are an error, and the proposal has the terms of both once."""
    verdict = judge("v=spf1 mx include:ok.example -all", "other", "v=spf1 mx ip4:192.0.2.9 ~all")
    assert verdict.records == ("v=spf1 mx include:ok.example -all", "v=spf1 mx ip4:192.0.2.9 ~all")
    assert verdict.is_broken
    assert ids(verdict) == ["spf.several"]
    assert verdict.findings[0].proposed is not None
    assert verdict.findings[0].proposed.value == "v=spf1 mx include:ok.example ip4:192.0.2.9 -all"


@rows(
    (["hello"], "spf.absent", "v=spf1 mx ~all"),
    ([" v=spf1 mx -all"], "spf.unreadable", "v=spf1 mx -all"),
    (['"\\"v=spf1 mx -all\\""'], "spf.unreadable", "v=spf1 mx -all"),
    (["v=spf1;mx;-all"], "spf.unreadable", "v=spf1 mx -all"),
)
def test_no_record_differs_from_a_broken_one(texts: list[str], finding: str, value: str) -> None:
    """A broken record is shown corrected; without any record, a first one is proposed."""
    verdict = judge(*texts)
    assert (verdict.presence, verdict.record, ids(verdict)) == (Presence.ABSENT, None, [finding])
    assert verdict.findings[0].proposed is not None
    assert verdict.findings[0].proposed.value == value


@rows(
    ({"A": ["8.8.8.8"]}, "v=spf1 a ~all"),
    ({"A": ["8.8.8.8"], "MX": ["0 ."]}, None),
    ({"TXT": ["hello"]}, None),
)
def test_a_first_record_names_hosts_that_are_there(
    node: dict[str, list[str]], value: str | None
) -> None:
    """Without a mail host, no record with "mx" is proposed, which would permit no host."""
    zone = MemoryZone({"d.example": node})
    (finding,) = settle(zone, lambda answers: evaluate_spf("d.example", answers)).findings
    assert finding.id == "spf.absent"
    assert (finding.proposed and finding.proposed.value) == value
    assert ("v=spf1 -all" in finding.fix) == (value is None)


@rows("include:ok.example,x.example", "a:x.example,y.example")
def test_a_term_that_may_stand_for_senders_is_not_to_be_removed(term: str) -> None:
    """For an invalid host name, the advice is to correct it, since it may be a sender."""
    verdict = judge(f"v=spf1 {term} -all")
    assert ids(verdict)
    assert all(one.fix.startswith("Correct") for one in verdict.findings)
    assert not any(one.proposed for one in verdict.findings)


def test_private_networks_are_not_counted() -> None:
    """Private networks cannot send from outside, so they do not make a record wide."""
    assert ids(judge("v=spf1 mx ip4:10.0.0.0/8 ip6:fc00::/7 -all")) == []


def test_a_record_at_the_wrong_name_is_found() -> None:
    """A record at a doubled domain name is found."""
    zone = MemoryZone(HOSTS | {"d.example.d.example": {"TXT": ["v=spf1 mx -all"]}})
    verdict = settle(zone, lambda answers: evaluate_spf("d.example", answers))
    assert ids(verdict) == ["spf.misplaced"]
    assert "d.example.d.example" in verdict.findings[0].meaning


@rows(DnsStatus.TIMEOUT, DnsStatus.SERVFAIL, DnsStatus.REFUSED)
def test_no_answer_is_never_no_record(status: DnsStatus) -> None:
    """Any DNS failure makes the result undetermined."""
    verdict = judge("v=spf1 -all", failing={("d.example", "TXT"): status})
    assert (verdict.presence, verdict.is_complete) == (Presence.UNDETERMINED, False)
    assert ids(verdict) == ["spf.undetermined"]


@rows("v=spf1 include:two.example -all", "v=spf1 a:two.example -all")
def test_no_answer_below_is_never_a_fault(text: str) -> None:
    """An include or host without an answer is neither void nor a permerror."""
    verdict = judge(text, failing={"two.example": DnsStatus.TIMEOUT})
    assert (verdict.presence, verdict.is_complete) == (Presence.FOUND, False)
    assert (verdict.is_broken, verdict.void_count) == (False, 0)
    assert [f.severity for f in verdict.findings] == [Severity.UNDETERMINED]


def test_only_a_bare_refusal_says_that_no_mail_is_sent() -> None:
    """A domain without mail publishes exactly ``v=spf1 -all``."""
    assert judge("v=spf1 -all").sends_no_mail
    assert not judge("v=spf1 mx -all").sends_no_mail
    assert not judge("v=spf1 ~all").sends_no_mail
    assert not judge("v=spf1 -all", "v=spf1 -all").sends_no_mail


def test_an_amplifier_is_not_followed() -> None:
    """A tree of hundreds of includes causes a limited number of queries, and is still counted."""
    zone = MemoryZone({})
    zone.publish(
        "d.example", "TXT", "v=spf1 " + " ".join(f"include:i{n}.example" for n in range(20))
    )
    for number in range(20):
        below = " ".join(f"include:j{number}-{n}.example" for n in range(20))
        zone.publish(f"i{number}.example", "TXT", f"v=spf1 {below} -all")
    verdict = settle(zone, lambda answers: evaluate_spf("d.example", answers))
    assert verdict.is_truncated
    assert verdict.lookup_count > MAX_FOLLOWED
    assert len(zone.asked) < 3 * MAX_FOLLOWED
    assert "spf.too-many-lookups" in ids(verdict)


def test_independent_terms_are_asked_at_once() -> None:
    """The tree is read level by level, not term by term."""
    zone = MemoryZone(HOSTS)
    zone.publish("d.example", "TXT", "v=spf1 include:two.example include:soft.example mx -all")
    rounds: list[int] = []

    def evaluate(answers: Answers) -> SpfVerdict:
        rounds.append(len(zone.asked))
        return evaluate_spf("d.example", answers)

    settle(zone, evaluate)
    assert rounds == [0, 1, 4, 9]


def test_a_hundred_kilobytes_of_txt_records_are_no_problem() -> None:
    """The record is found among hundreds of others."""
    others = [f"verification-{number}=" + "x" * 200 for number in range(500)]
    verdict = judge(*others[:250], "v=spf1 mx -all", *others[250:])
    assert (verdict.record, verdict.findings) == ("v=spf1 mx -all", ())


TERMS = st.lists(
    st.sampled_from(
        [
            "a",
            "mx",
            "ptr",
            "ip4:192.0.2.1",
            "include:ok.example",
            "include:two.example",
            "a:gone.example",
            "exists:%{i}.x.example",
            "include:gone.example",
        ]
    ),
    max_size=8,
)


@given(terms=TERMS, more=TERMS)
def test_more_terms_never_need_fewer_lookups(terms: list[str], more: list[str]) -> None:
    """More terms never lower the counts and never fix a problem."""
    less = judge(" ".join(["v=spf1", *terms, "-all"]))
    full = judge(" ".join(["v=spf1", *terms, *more, "-all"]))
    assert full.lookup_count >= less.lookup_count
    assert full.void_count >= less.void_count
    assert full.is_broken >= less.is_broken

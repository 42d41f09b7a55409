"""Tests for SPF of one mail: both identities, every result, and the rounds of queries."""

from collections.abc import Iterator
from ipaddress import ip_address

from hypothesis import given
from hypothesis import strategies as st
from twisted.internet.defer import Deferred
from twisted.internet.task import Clock

from mailcheck.checks.auth_results import AuthResult
from mailcheck.checks.dns_answers import Answers, DnsAnswer, DnsQuestion, DnsStatus
from mailcheck.checks.spf.mail import SpfIdentity, SpfOfMail, evaluate_spf_of_mail
from mailcheck.operations.dns_evaluation import QuestionBudget, evaluate_with_dns
from tests.fakes.memory_zone import MemoryZone
from tests.fakes.settling import settle
from tests.table import rows

CLIENT = "192.0.2.1"
CLIENT_6 = "2001:db8::1"
Failing = dict[str | tuple[str, str], DnsStatus]

HOSTS = {
    "mx.d.example": {"A": [CLIENT], "AAAA": [CLIENT_6], "TXT": ["v=spf1 a -all"]},
    "strict.example": {"TXT": ["v=spf1 -all"], "A": ["192.0.2.80"]},
    "soft.example": {"TXT": ["v=spf1 ~all"]},
    "open.example": {"TXT": ["v=spf1 ?all"]},
    "silent.example": {"TXT": ["v=spf1"]},
    "broken.example": {"TXT": ["v=spf1 ipv4:192.0.2.1 -all"]},
    "two.example": {"TXT": ["v=spf1 -all", "v=spf1 +all"]},
    "text.example": {"TXT": ["nothing to see"]},
    "dead.example": {},
    "lets.example": {"TXT": ["v=spf1 ip4:192.0.2.0/24 ip6:2001:db8::/32 -all"]},
    "mail.d.example": {"A": ["192.0.2.7"]},
}
DEAD: Failing = {"dead.example": DnsStatus.SERVFAIL}


def evaluate(
    zone: MemoryZone,
    sender: str = "joe@d.example",
    helo_name: str = "mx.d.example",
    client: str = CLIENT,
) -> SpfOfMail:
    """Evaluate a mail with a zone."""
    return settle(
        zone,
        lambda answers: evaluate_spf_of_mail(
            ip_address(client), helo_name, sender, "mx.here.example", answers
        ),
    )


def zone_with(*texts: str, failing: Failing | None = None) -> MemoryZone:
    """Publish these TXT records at d.example."""
    zone = MemoryZone(HOSTS, failing=DEAD | (failing or {}))
    zone.publish("d.example", "TXT", *texts)
    zone.publish("d.example", "MX", "10 mx.d.example.", "20 mail.d.example.")
    return zone


def result_of(text: str, client: str = CLIENT, sender: str = "joe@d.example") -> str:
    """Return the result for MAIL FROM with this record at d.example."""
    return evaluate(zone_with(text), sender, client=client).mail_from.result.value


@rows(
    ("lets.example", "pass", '"ip4:192.0.2.0/24" in the SPF record of lets.example matches'),
    ("strict.example", "fail", '"-all" in the SPF record of strict.example matches 192.0.2.1'),
    ("soft.example", "softfail", '"~all"'),
    ("open.example", "neutral", '"?all"'),
    ("silent.example", "neutral", "No term in the SPF record of silent.example matches"),
    ("text.example", "none", "There is no SPF record at text.example."),
    ("gone.example", "none", "There is no SPF record at gone.example."),
    (
        "broken.example",
        "permerror",
        '"ipv4:192.0.2.1" in the SPF record of broken',
    ),
    ("two.example", "permerror", "is one of several SPF records"),
    ("dead.example", "temperror", "gave no usable answer about dead.example (TXT)"),
)
def test_every_result_for_both_identities(domain: str, result: str, words: str) -> None:
    """Each result occurs for MAIL FROM and for HELO, with an explanation."""
    zone = MemoryZone(HOSTS, failing=DEAD)
    verdict = evaluate(zone, f"joe@{domain}", domain)
    for identity in (verdict.mail_from, verdict.helo):
        assert (identity.result.value, identity.domain) == (result, domain)
        assert words in identity.explanation
        assert (identity.unanswered_names == (domain,)) == (result == "temperror")
    assert verdict.mail_from.identity is SpfIdentity.MAIL_FROM
    assert verdict.helo.identity is SpfIdentity.HELO
    assert verdict.has_pass == (result == "pass")


def test_the_identities_are_judged_apart() -> None:
    """HELO may pass while MAIL FROM fails; only MAIL FROM counts."""
    verdict = evaluate(MemoryZone(HOSTS), "joe@strict.example", "lets.example")
    assert (verdict.mail_from.result, verdict.helo.result) == (AuthResult.FAIL, AuthResult.PASS)
    assert not verdict.has_pass


def test_the_null_reverse_path_is_the_postmaster_of_helo() -> None:
    """With an empty MAIL FROM, both identities are about postmaster@<helo>."""
    zone = zone_with("v=spf1 exists:%{l}.%{o}.who.example -all")
    zone.publish("postmaster.d.example.who.example", "A", "127.0.0.2")
    verdict = evaluate(zone, "", "d.example")
    assert verdict.mail_from.result is verdict.helo.result is AuthResult.PASS
    assert verdict.mail_from.identity is SpfIdentity.MAIL_FROM


@rows("[192.0.2.1]", "[IPv6:2001:db8::1]", "localhost", "192.0.2.1", "a..b", "", "_")
def test_a_helo_name_that_is_no_domain_has_no_spf(helo_name: str) -> None:
    """A literal or a single word causes no query, and the result is none."""
    zone = MemoryZone(HOSTS)
    verdict = evaluate(zone, "", helo_name)
    assert verdict.helo.result is verdict.mail_from.result is AuthResult.NONE
    assert "not a full domain name" in verdict.helo.explanation
    assert zone.asked == []


@rows(
    ("v=spf1 ip6:2001:db8::/0 -all", CLIENT_6, "pass"),
    ("v=spf1 mx -all", CLIENT_6, "pass"),
    ("v=spf1 a:mx.d.example -all", CLIENT_6, "pass"),
    ("v=spf1 a:mx.d.example/24//64 -all", "2001:db8::99", "pass"),
    ("v=spf1 a:mx.d.example/24//128 -all", "2001:db8::99", "fail"),
    ("v=spf1 -include:lets.example ~all", CLIENT, "fail"),
    ("v=spf1 include:dead.example -all", CLIENT, "temperror"),
    ("v=spf1 redirect=dead.example", CLIENT, "temperror"),
    ("v=spf1 exists:%{ir}.%{v}.list.example -all", CLIENT, "pass"),
    ("v=spf1 exists:%{ir}.%{v}.list.example -all", "192.0.2.2", "fail"),
    ("v=spf1 include:d.example -all", CLIENT, "permerror"),
    (f"v=spf1 ip4:{CLIENT} include:d.example -all", CLIENT, "pass"),
    (f"v=spf1 x=1 x=2 ip4:{CLIENT} -all", CLIENT, "pass"),
    ("v=spf1 foo=%{z} ip4:192.0.2.1 -all", CLIENT, "permerror"),
    ("v=spf1 foo=%{d2}-%% ip4:192.0.2.1 -all", CLIENT, "pass"),
    ("v=spf1 ip4:192.0.2.1 exp=gone.example -all", CLIENT, "pass"),
    ("v=spf1 exp=dead.example -all", CLIENT, "fail"),
    ("v=spf1 -all ä", CLIENT, "permerror"),
    ("v=spf1 " + "ip6::: " * 498 + "ip4:192.0.2.1", CLIENT, "pass"),
    ("v=spf1 ip4:192.0.2.1 x=" + "y" * 8160, CLIENT, "pass"),
    # Ten lookups, two void terms and ten mail hosts are allowed; one more is a permerror.
    ("v=spf1 " + "a:mail.d.example " * 10 + "-all", CLIENT, "fail"),
    ("v=spf1 " + "a:mail.d.example " * 11 + "-all", CLIENT, "permerror"),
    ("v=spf1 " + "a:mail.d.example " * 9 + "a:mx.d.example a:x.example -all", CLIENT, "pass"),
    ("v=spf1 a:g1.example a:g2.example -all", CLIENT, "fail"),
    ("v=spf1 a:g1.example a:g2.example a:g3.example -all", CLIENT, "permerror"),
    ("v=spf1 a:g1.example a:g2.example ip4:192.0.2.1 a:g3.example -all", CLIENT, "pass"),
    ("v=spf1 mx:mx10.example -all", CLIENT, "fail"),
    ("v=spf1 mx:mx11.example -all", CLIENT, "permerror"),
    # Mail hosts without an address are one void term (RFC 7208 4.6.4 counts terms).
    ("v=spf1 mx:mx10.example a:g1.example -all", CLIENT, "fail"),
    ("v=spf1 mx:mx10.example a:g1.example a:g2.example -all", CLIENT, "permerror"),
)
def test_terms(text: str, client: str, result: str) -> None:
    """Terms match for both IP versions, beside those of the suite of RFC 7208."""
    zone = zone_with(text)
    zone.publish("1.2.0.192.in-addr.list.example", "A", "127.0.0.2")
    for count in (10, 11):
        hosts = [f"10 m{number}.mx{count}.example." for number in range(count)]
        zone.publish(f"mx{count}.example", "MX", *hosts)
    assert evaluate(zone, client=client).mail_from.result.value == result


def test_an_ipv4_mapped_client_is_an_ipv4_client() -> None:
    """A client ::ffff:192.0.2.1 is checked with ip4 terms."""
    assert result_of("v=spf1 ip4:192.0.2.1 -all", client="::ffff:192.0.2.1") == "pass"
    assert result_of("v=spf1 ip4:192.0.2.1 -all", client="::ffff:192.0.2.2") == "fail"


def test_ptr_does_not_fail_without_answers() -> None:
    """Without an answer, ptr does not match; ten names are checked (RFC 7208 5.5)."""
    reverse = "1.2.0.192.in-addr.arpa"
    zone = zone_with("v=spf1 ptr -all")
    zone.publish(reverse, "PTR", "mx.d.example.", "silent.d.example.")
    zone.failing["silent.d.example"] = DnsStatus.TIMEOUT
    assert evaluate(zone).mail_from.result is AuthResult.PASS
    zone.publish(reverse, "PTR", *(f"a{number}.d.example." for number in range(9)), "mx.d.example.")
    assert evaluate(zone).mail_from.result is AuthResult.PASS
    zone.publish(
        reverse, "PTR", *(f"a{number}.d.example." for number in range(10)), "mx.d.example."
    )
    assert evaluate(zone, helo_name="").mail_from.result is AuthResult.FAIL
    zone.publish(reverse, "PTR", "mx.d.example.", "silent.d.example.")
    zone.failing["mx.d.example"] = DnsStatus.TIMEOUT
    assert evaluate(zone, helo_name="").mail_from.result is AuthResult.FAIL
    zone.failing[reverse] = DnsStatus.SERVFAIL
    verdict = evaluate(zone, helo_name="")
    assert verdict.mail_from.result is AuthResult.FAIL
    assert verdict.mail_from.unanswered_names == ()


@rows(
    ("joe@d.example", "pass"),
    ('"joe"@d.example', "pass"),
    ("@d.example", "fail"),
    ("d.example", "fail"),
    ('"a@b"@d.example', "pass"),
    ('"back\\\\slash"@d.example', "pass"),
    ("jöe@d.example", "fail"),
    ("joe@D.Example.", "pass"),
    ("x" * 64 + "@d.example", "fail"),
)
def test_local_parts_reach_macros_as_they_are(sender: str, result: str) -> None:
    """Quotes are removed, unusual letters are queried as they are, and non-ASCII never matches."""
    zone = zone_with("v=spf1 exists:%{l}.u.d.example -all")
    for name in ("joe", "a@b", "back\\\\slash"):
        zone.publish(f"{name}.u.d.example", "A", "127.0.0.2")
    zone.publish("*.u.d.example", "TXT", "for names that are not asked")
    assert evaluate(zone, sender).mail_from.result.value == result


def test_non_ascii_local_parts_match_no_term() -> None:
    """A non-ASCII local part matches no term, and is not an error (RFC 8616 4)."""
    zone = zone_with("v=spf1 include:%{l}.d.example exists:%{s}.d.example ~all")
    assert evaluate(zone, "jöe@d.example").mail_from.result is AuthResult.SOFTFAIL


def test_international_domains_are_asked_in_a_labels() -> None:
    """U-labels in MAIL FROM and HELO are converted before any query."""
    zone = MemoryZone({"xn--mnchen-3ya.example": {"TXT": ["v=spf1 exists:%{h}.%{d}.x.example"]}})
    name = "xn--mnchen-3ya.example"
    zone.publish(f"{name}.{name}.x.example", "A", "127.0.0.2")
    verdict = evaluate(zone, "joe@München.example", "MÜNCHEN.example")
    assert verdict.mail_from.result is verdict.helo.result is AuthResult.PASS
    assert verdict.mail_from.domain == name


def test_long_expansions_are_cut_on_the_left() -> None:
    """A name of more than 253 letters loses labels on the left until it fits (RFC 7208 7.3)."""
    label = "y" * 50
    zone = zone_with("v=spf1 exists:" + f"%{{l}}.{label}." * 5 + "d.example -all")
    evaluate(zone, "x" * 40 + "@d.example")
    asked = [question.name for question in zone.asked if question.rdtype == "A"]
    names = [name for name in asked if label in name]
    assert len(names) == 1
    assert len(names[0]) <= 253
    assert ("." + "x" * 40 + "." + label) * 2 in names[0]


@rows(
    ("v=spf1 ip4:192.0.2.1 include:dead.example -all", "pass"),
    ("v=spf1 include:lets.example include:dead.example -all", "pass"),
    ("v=spf1 include:dead.example ip4:192.0.2.1 -all", "temperror"),
    ("v=spf1 include:dead.example broken -all", "permerror"),
    ("v=spf1 a:dead.example -all", "temperror"),
    ("v=spf1 mx:dead.example -all", "temperror"),
    ("v=spf1 exists:dead.example -all", "temperror"),
    ("v=spf1 include:nested.example -all", "temperror"),
    ("v=spf1 mx:half.example -all", "temperror"),
)
def test_missing_answers_count_only_if_evaluated(text: str, result: str) -> None:
    """A missing answer is a temperror, but not after the term that decides."""
    zone = zone_with(text)
    zone.publish("nested.example", "TXT", "v=spf1 include:open.example a:dead.example -all")
    zone.publish("half.example", "MX", "10 mail.d.example.", "20 dead.example.")
    verdict = evaluate(zone)
    assert verdict.mail_from.result.value == result
    assert verdict.mail_from.unanswered_names == (
        ("dead.example",) if result == "temperror" else ()
    )


def rounds_of(zone: MemoryZone, client: str = CLIENT, helo_name: str = "") -> int:
    """Count the rounds of queries until the verdict is final."""
    answers = Answers()
    for number in range(30):
        answers.missing.clear()
        evaluate_spf_of_mail(ip_address(client), helo_name, "joe@d.example", "r", answers)
        if not answers.missing:
            return number
        for question in list(answers.missing):
            zone.lookup(question).addCallback(lambda a: answers.known.update({a.question: a}))
    raise AssertionError("no end")


@rows(
    ("v=spf1 -all", 1),
    ("v=spf1 a:mx.d.example a:mail.d.example include:lets.example -all", 2),
    ("v=spf1 mx a:mail.d.example include:strict.example ~all", 3),
    ("v=spf1 include:one.example include:strict.example mx ~all", 4),
    ("v=spf1 redirect=one.example", 4),
    ("v=spf1 exists:%{i}.x.example exists:%{l}.x.example -all", 2),
    ("v=spf1 " + " ".join(f"mx:m{number}.example" for number in range(5)) + " -all", 3),
    ("v=spf1 ptr -all", 3),
    ("v=spf1 exists:%{p}.x.example -all", 4),
)
def test_rounds_are_the_longest_chain(text: str, rounds: int) -> None:
    """Independent queries are sent at once."""
    zone = zone_with(text)
    zone.publish("one.example", "TXT", "v=spf1 include:three.example a:mail.d.example ~all")
    zone.publish("three.example", "TXT", "v=spf1 a:far.d.example ?all")
    for number in range(5):
        zone.publish(f"m{number}.example", "MX", f"10 h{number}.example.")
        zone.publish(f"h{number}.example", "A", "192.0.2.200")
    zone.publish("9.2.0.192.in-addr.arpa", "PTR", "a.h.example.", "b.h.example.")
    zone.publish("a.h.example", "A", "192.0.2.9")
    assert rounds_of(zone, "192.0.2.9") == rounds
    assert rounds_of(zone, "192.0.2.9", "soft.example") == rounds


def test_no_more_is_asked_than_may_be_needed() -> None:
    """Terms after the deciding one cause no query, and each query is sent once."""
    zone = zone_with("v=spf1 a:mail.d.example ip4:192.0.2.1 include:gone.example mx -all")
    assert evaluate(zone, helo_name="").mail_from.result is AuthResult.PASS
    assert zone.asked_pairs == [("d.example", "TXT"), ("mail.d.example", "A")]
    zone = zone_with("v=spf1 exists:%{p}.x.example -all")
    zone.publish("1.2.0.192.in-addr.arpa", "PTR", "mx.d.example.")
    evaluate(zone, helo_name="")
    assert ("unknown.x.example", "A") not in zone.asked_pairs
    assert ("mx.d.example.x.example", "A") in zone.asked_pairs


def test_a_slow_name_that_is_not_needed_holds_nothing_up() -> None:
    """A verdict that does not need a name does not wait for it."""
    zone = zone_with("v=spf1 include:lets.example include:slow.example -all")
    zone.silent.add("slow.example")
    clock = Clock()
    verdicts: list[SpfOfMail] = []
    waiting = Deferred.fromCoroutine(
        evaluate_with_dns(
            zone,
            lambda a: evaluate_spf_of_mail(ip_address(CLIENT), "", "joe@d.example", "r", a),
            clock=clock,
            budget=QuestionBudget.starting_now(clock),
        )
    )
    waiting.addCallback(verdicts.append)
    clock.advance(0.1)
    assert [verdict.mail_from.result for verdict in verdicts] == [AuthResult.PASS]
    assert zone.unanswered == []


def test_evaluations_do_not_see_each_others_answers() -> None:
    """Two mails that are evaluated in turns do not affect each other."""

    def steps(zone: MemoryZone) -> Iterator[str]:
        answers = Answers()
        while True:
            answers.missing.clear()
            verdict = evaluate_spf_of_mail(ip_address(CLIENT), "", "joe@d.example", "r", answers)
            yield verdict.mail_from.result.value if not answers.missing else ""
            for question in list(answers.missing):
                zone.lookup(question).addCallback(lambda a: answers.known.update({a.question: a}))

    first = steps(zone_with("v=spf1 include:lets.example -all"))
    second = steps(zone_with("v=spf1 include:strict.example ~all"))
    turns = [(next(first), next(second)) for _ in range(3)]
    assert turns == [("", ""), ("", ""), ("pass", "softfail")]


def test_the_record_is_that_of_the_domain_itself() -> None:
    """Record and mechanism belong to the sender's domain, even with includes and redirects."""
    verdict = evaluate(zone_with("v=spf1 include:lets.example -all")).mail_from
    assert verdict.record == "v=spf1 include:lets.example -all"
    assert verdict.mechanism == "include:lets.example"
    verdict = evaluate(zone_with("v=spf1 redirect=lets.example")).mail_from
    assert verdict.record == "v=spf1 redirect=lets.example"
    assert verdict.mechanism == "ip4:192.0.2.0/24"
    assert evaluate(zone_with("v=spf1 broken")).mail_from.record == "v=spf1 broken"
    assert evaluate(zone_with("other")).mail_from.record is None


@rows(
    ("v=spf1 include:broken.example -all", "SPF record of broken.example, which the record of"),
    ("v=spf1 include:two.example -all", "SPF record of two.example"),
    ("v=spf1 include:d.example -all", "The SPF record of d.example leads back to itself."),
    ("v=spf1 include:gone.example -all", "record of d.example leads to a name that has no"),
    ("v=spf1 redirect=gone.example", "record of d.example leads to a name that has no"),
    ("v=spf1 " + "a:mail.d.example " * 11, "more than the 10 DNS lookups"),
    (
        "v=spf1 a:g1.example a:g2.example a:g3.example",
        'for 192.0.2.1: "a:g1.example", "a:g2.example", "a:g3.example"',
    ),
    ("v=spf1 a:nodot -all", '"a:nodot" in the SPF record of d.example has no full'),
    (
        "v=spf1 ip4:192.0.2.999 -all",
        '"ip4:192.0.2.999" in the SPF record of d.example has',
    ),
    ("v=spf1 a, -all", '"a," in the SPF record of d.example is not an SPF mechanism.'),
    ("v=spf1 ip4:192.0.2.1 -all ä", '"ä" in the SPF record of d.example is not an SPF term'),
    ("v=spf1 a/" + "1" * 5000, "no valid prefix length after the slash"),
    ("v=spf1 ip4:192.0.2.1 x=" + "y" * 8192, "too long to be checked"),
    ("v=spf1 " + "ip6:: " * 501, "too long to be checked"),
)
def test_errors_name_the_record_and_the_problem(text: str, words: str) -> None:
    """A permerror names the faulty record, the term and the problem."""
    verdict = evaluate(zone_with(text)).mail_from
    assert verdict.result is AuthResult.PERMERROR
    assert words in verdict.explanation


TERMS = st.lists(
    st.sampled_from(
        [
            "a",
            "mx",
            "ptr",
            "a:mail.d.example",
            "?include:lets.example",
            "include:strict.example",
            "-include:nested.example",
            "exists:%{l}.u.example",
            "ip4:192.0.2.64/26",
            "~a:gone.example",
            "mx:half.example",
            "redirect=soft.example",
        ]
    ),
    max_size=6,
)
NAMES = st.sets(
    st.sampled_from(["mail.d.example", "strict.example", "nested.example", "d.example"])
)


def with_tree(terms: list[str], silent: set[str]) -> MemoryZone:
    """Publish a record of these terms; some names have no answer."""
    zone = zone_with(" ".join(["v=spf1", *terms, "~all"]))
    zone.publish("nested.example", "TXT", "v=spf1 a:mail.d.example include:open.example ~all")
    zone.publish("half.example", "MX", "10 mail.d.example.", "20 mx.d.example.")
    zone.failing.update(dict.fromkeys(silent, DnsStatus.TIMEOUT))
    return zone


@given(TERMS, NAMES)
def test_missing_answers_never_change_a_result_into_another(
    terms: list[str], silent: set[str]
) -> None:
    """With missing answers, the result is the true one or temperror."""
    truth = evaluate(with_tree(terms, set()), client="192.0.2.9").mail_from.result
    seen = evaluate(with_tree(terms, silent), client="192.0.2.9").mail_from.result
    assert seen in (truth, AuthResult.TEMPERROR)


@given(TERMS, st.randoms(use_true_random=False))
def test_the_order_of_answers_does_not_matter(terms: list[str], random: object) -> None:
    """Answers in any order give the same verdict."""
    zone = with_tree(terms, set())
    answers = Answers()
    known: dict[DnsQuestion, DnsAnswer] = answers.known
    while True:
        answers.missing.clear()
        verdict = evaluate_spf_of_mail(
            ip_address("192.0.2.9"), "mx.d.example", "joe@d.example", "r", answers
        )
        if not answers.missing:
            break
        question = random.choice(list(answers.missing))  # type: ignore[attr-defined]
        zone.lookup(question).addCallback(lambda a: known.update({a.question: a}))
    assert verdict == evaluate(with_tree(terms, set()), client="192.0.2.9")

"""Tests for queries to blocklists and the meaning of their answers."""

from ipaddress import ip_address

from hypothesis import given
from hypothesis import strategies as st

from mailcheck.checks.dns_answers import Answers, DnsStatus
from mailcheck.checks.dnsbl.catalogue import (
    Blocklist,
    Catalogue,
    CodeClass,
    CodeRule,
    TargetKind,
    match_rules,
    packaged_catalogue_text,
    parse_catalogue,
    read_code_rule,
)
from mailcheck.checks.dnsbl.listings import (
    Listing,
    ListingStatus,
    Target,
    UnknownReason,
    describe_listings,
    evaluate_listing,
    has_usable_answer,
    query_name,
    target_address,
    target_domain,
)
from mailcheck.checks.findings import Severity
from tests.fakes.memory_zone import MemoryZone
from tests.fakes.settling import settle
from tests.table import rows

CATALOGUE = parse_catalogue(packaged_catalogue_text())
V4 = target_address(ip_address("192.0.2.99"))
V6 = target_address(ip_address("2001:db8::1"))
V6_REVERSED = "1.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.8.b.d.0.1.0.0.2"
NAME = target_domain("shop.example")


def find(zone: str, catalogue: Catalogue = CATALOGUE) -> Blocklist:
    """Return one list of the packaged catalogue."""
    return next(blocklist for blocklist in catalogue.blocklists if blocklist.zone == zone)


def ask(zone: str, target: Target, *codes: str, text: str = "") -> Listing:
    """Query one list that answers about the target with these codes."""
    blocklist = find(zone)
    dns = MemoryZone({})
    dns.publish(query_name(blocklist, target), "A", *codes)
    if text:
        dns.publish(query_name(blocklist, target), "TXT", text)
    return settle(dns, lambda answers: evaluate_listing(blocklist, [target], answers))


@rows(
    (V4, "zen.spamhaus.org", "99.2.0.192.zen.spamhaus.org"),
    (
        V6,
        "zen.spamhaus.org",
        f"{V6_REVERSED}.zen.spamhaus.org",
    ),
    (
        V6,
        "bl.spameatingmonkey.net",
        f"{V6_REVERSED}.bl.ipv6.spameatingmonkey.net",
    ),
    (NAME, "dbl.spamhaus.org", "shop.example.dbl.spamhaus.org"),
)
def test_questions_are_reversed_addresses_or_names(target: Target, zone: str, name: str) -> None:
    """A query name has reversed octets or nibbles, or a name, before the zone (RFC 5782 2)."""
    assert query_name(find(zone), target) == name


LISTED, CLEAN, UNKNOWN = ListingStatus.LISTED, ListingStatus.CLEAN, ListingStatus.UNKNOWN


@rows(
    ("zen.spamhaus.org", V4, [], CLEAN, 0),
    ("zen.spamhaus.org", V4, ["127.0.0.2"], LISTED, 10),
    ("zen.spamhaus.org", V4, ["127.0.0.3"], LISTED, 7),
    ("zen.spamhaus.org", V4, ["127.0.0.5"], LISTED, 9),
    ("zen.spamhaus.org", V4, ["127.0.0.10"], LISTED, 6),
    ("zen.spamhaus.org", V4, ["127.0.0.11", "127.0.0.4"], LISTED, 9),
    ("zen.spamhaus.org", V4, ["127.0.0.8"], UNKNOWN, 0),
    ("zen.spamhaus.org", V4, ["127.255.255.252"], UNKNOWN, 0),
    ("zen.spamhaus.org", V4, ["127.255.255.254"], UNKNOWN, 0),
    ("zen.spamhaus.org", V4, ["127.255.255.255", "127.0.0.2"], UNKNOWN, 0),
    ("zen.spamhaus.org", V4, ["127.0.0.1"], UNKNOWN, 0),
    ("zen.spamhaus.org", V4, ["198.51.100.1"], UNKNOWN, 0),
    ("psbl.surriel.com", V4, ["127.255.255.254"], UNKNOWN, 0),
    ("psbl.surriel.com", V4, ["203.0.113.1", "127.0.0.2"], UNKNOWN, 0),
    ("bl.mailspike.net", V4, ["127.0.0.12"], LISTED, 3),
    ("bl.mailspike.net", V4, ["127.0.0.18"], CLEAN, 0),
    ("hostkarma.junkemailfilter.com", V4, ["127.0.0.1"], CLEAN, 0),
    ("hostkarma.junkemailfilter.com", V4, ["127.0.0.3"], CLEAN, 0),
    ("hostkarma.junkemailfilter.com", V4, ["127.0.0.4"], LISTED, 1),
    ("hostkarma.junkemailfilter.com", V4, ["127.0.0.2", "127.0.2.1"], LISTED, 3),
    ("dnsbl.dronebl.org", V4, ["127.0.0.2"], CLEAN, 0),
    ("dnsbl.dronebl.org", V4, ["127.0.0.9"], LISTED, 2),
    ("bl.suomispam.net", V4, ["127.0.0.99"], CLEAN, 0),
    ("bl.blocklist.de", V4, ["127.0.0.14"], LISTED, 3),
    ("bl.blocklist.de", V4, ["127.0.0.12"], LISTED, 3),
    ("dnsbl-3.uceprotect.net", V4, ["127.0.0.2"], LISTED, 0),
    ("dbl.spamhaus.org", NAME, ["127.0.1.2"], LISTED, 10),
    ("dbl.spamhaus.org", NAME, ["127.0.1.104"], LISTED, 8),
    ("dbl.spamhaus.org", NAME, ["127.0.1.255"], UNKNOWN, 0),
    ("multi.surbl.org", NAME, ["127.0.0.8"], LISTED, 9),
    ("multi.surbl.org", NAME, ["127.0.0.80"], LISTED, 9),
    ("multi.surbl.org", NAME, ["127.0.0.64"], LISTED, 7),
    ("multi.surbl.org", NAME, ["127.0.0.4"], CLEAN, 0),
    ("multi.surbl.org", NAME, ["127.0.0.36"], CLEAN, 0),
    ("multi.surbl.org", NAME, ["127.0.0.1"], UNKNOWN, 0),
    ("multi.surbl.org", NAME, ["127.0.0.2"], UNKNOWN, 0),
    ("multi.uribl.com", NAME, ["127.0.0.2"], LISTED, 8),
    ("multi.uribl.com", NAME, ["127.0.0.4"], LISTED, 3),
    ("multi.uribl.com", NAME, ["127.0.0.8"], LISTED, 1),
    ("multi.uribl.com", NAME, ["127.0.0.14"], LISTED, 8),
    ("multi.uribl.com", NAME, ["127.0.0.1"], UNKNOWN, 0),
    ("multi.uribl.com", NAME, ["127.0.0.255"], UNKNOWN, 0),
    ("fresh15.spameatingmonkey.net", NAME, ["127.0.0.2"], LISTED, 1),
    ("uribl.abuse.ro", NAME, ["127.0.0.9"], LISTED, 1),
)
def test_answers_are_read_by_the_codes_of_each_list(
    zone: str, target: Target, codes: list[str], status: ListingStatus, weight: int
) -> None:
    """Listed, clean and unknown differ, and each list has its own codes."""
    listing = ask(zone, target, *codes)
    assert (listing.status, listing.weight) == (status, weight)
    assert set(listing.codes) == set(codes)
    assert (listing.unknown_reason is not None) is (status is UNKNOWN)


def rule(code: str, code_class: str) -> CodeRule:
    """Parse a code rule."""
    return read_code_rule("test", {"code": code, "is": code_class}, 1)


def test_a_refusal_goes_before_everything_and_a_range_before_bits() -> None:
    """A refusal comes first; the order in the catalogue matters among ranges only."""
    bits = [rule("bit:2", "listed"), rule("bit:4", "policy")]
    ranges = [rule("127.0.0.6", "ignored"), rule("127.0.0.2-127.0.0.9", "listed")]
    refusal = rule("127.0.0.7", "refused")
    rules = [*bits, *ranges, refusal]

    def matched(code: str) -> list[str]:
        return [one.code for one in match_rules(rules, int(ip_address(code)))]

    assert matched("127.0.0.6") == ["127.0.0.6"]
    assert matched("127.0.0.7") == ["127.0.0.7"]
    assert matched("127.0.0.8") == ["127.0.0.2-127.0.0.9"]
    assert matched("127.0.0.14") == ["bit:2", "bit:4"]
    assert matched("127.0.0.16") == []


@rows(
    (["127.255.255.254"], UnknownReason.REFUSED_BY_LIST),
    (["127.0.0.1"], UnknownReason.REFUSED_BY_LIST),
    (["93.184.216.34"], UnknownReason.REWRITTEN),
    (["127.0.0.77"], UnknownReason.STRANGE_CODE),
)
def test_why_an_answer_is_unknown_is_said(codes: list[str], reason: UnknownReason) -> None:
    """A refusal, a rewriting resolver and an undocumented code have different reasons."""
    assert ask("zen.spamhaus.org", V4, *codes).unknown_reason is reason


@rows(DnsStatus.TIMEOUT, DnsStatus.SERVFAIL, DnsStatus.REFUSED)
def test_no_answer_is_never_clean(status: DnsStatus) -> None:
    """A list without an answer is unknown, for any failure."""
    zen = find("zen.spamhaus.org")
    dns = MemoryZone({}, failing={query_name(zen, V4): status})
    listing = settle(dns, lambda answers: evaluate_listing(zen, [V4], answers))
    assert (listing.status, listing.unknown_reason) == (UNKNOWN, UnknownReason.NO_ANSWER)


def test_a_listing_says_what_the_list_says() -> None:
    """The meaning comes from the catalogue, and the reason from the list, made printable."""
    listing = ask(
        "zen.spamhaus.org", V4, "127.0.0.2", "127.0.0.4", text="see\x00http://x/\n" + "y" * 999
    )
    assert listing.matched == ("192.0.2.99",)
    assert "SBL" in listing.meaning
    assert "XBL" in listing.meaning
    assert listing.reason.startswith("see http://x/")
    assert len(listing.reason) <= 300


def test_the_text_is_asked_for_listings_only() -> None:
    """A clean answer needs one query."""
    zen = find("zen.spamhaus.org")
    dns = MemoryZone({})
    settle(dns, lambda answers: evaluate_listing(zen, [V4], answers))
    assert dns.asked_pairs == [("99.2.0.192.zen.spamhaus.org", "A")]


def test_policy_listings_are_marked() -> None:
    """Policy listings are marked: the target is listed for its kind, not for abuse."""
    assert ask("zen.spamhaus.org", V4, "127.0.0.10").is_policy
    assert not ask("zen.spamhaus.org", V4, "127.0.0.10", "127.0.0.2").is_policy


@rows(("b.barracudacentral.org", V6), ("bl.0spam.org", V6), ("dbl.spamhaus.org", V4))
def test_a_list_gets_no_query_for_unsupported_targets(zone: str, target: Target) -> None:
    """A list that does not support the target is unsupported and gets no query."""
    dns = MemoryZone({})
    blocklist = find(zone)
    listing = settle(dns, lambda answers: evaluate_listing(blocklist, [target], answers))
    assert (listing.status, dns.asked) == (ListingStatus.UNSUPPORTED, [])


def test_a_disabled_list_gets_no_query() -> None:
    """A disabled list gets no query."""
    catalogue = parse_catalogue(packaged_catalogue_text(), disabled=["zen.spamhaus.org"])
    zen = find("zen.spamhaus.org", catalogue)
    dns = MemoryZone({})
    listing = settle(dns, lambda answers: evaluate_listing(zen, [V4], answers))
    assert (listing.status, dns.asked) == (ListingStatus.DISABLED, [])


def test_an_unhealthy_list_is_not_queried() -> None:
    """A list that fails its self-test for a kind is unknown and not queried for it."""
    zen = find("zen.spamhaus.org")
    dns = MemoryZone({query_name(zen, V6): {"A": ["127.0.0.2"]}})

    def evaluate(target: Target) -> Listing:
        return settle(
            dns,
            lambda answers: evaluate_listing(
                zen, [target], answers, unhealthy_kinds=[TargetKind.IPV6]
            ),
        )

    assert (evaluate(V6).status, evaluate(V6).unknown_reason) == (
        UNKNOWN,
        UnknownReason.FAILED_SELF_TEST,
    )
    assert evaluate(V4).status is CLEAN


def test_one_listed_address_lists_the_domain() -> None:
    """Listed addresses are named; unknown results do not hide them."""
    zen = find("zen.spamhaus.org")
    own = target_address(ip_address("192.0.2.1"))
    shared = target_address(ip_address("192.0.2.2"), is_shared=True)
    dns = MemoryZone(
        {query_name(zen, shared): {"A": ["127.0.0.2"]}},
        failing={query_name(zen, own): DnsStatus.TIMEOUT},
    )
    listing = settle(dns, lambda answers: evaluate_listing(zen, [own, shared], answers))
    assert (listing.status, listing.matched, listing.is_shared) == (LISTED, ("192.0.2.2",), True)
    both = target_address(ip_address("192.0.2.3"))
    dns.publish(query_name(zen, both), "A", "127.0.0.2")
    mixed = settle(dns, lambda answers: evaluate_listing(zen, [shared, both], answers))
    assert (len(mixed.matched), mixed.is_shared) == (2, False)
    dns.publish(query_name(zen, shared), "A")
    again = settle(dns, lambda answers: evaluate_listing(zen, [own, shared], answers))
    assert again.status is UNKNOWN


def test_a_whole_profile_is_one_round_when_clean() -> None:
    """All 32 queries are sent at once."""
    dns = MemoryZone({})
    runs: list[int] = []

    def evaluate(answers: Answers) -> list[Listing]:
        runs.append(len(dns.asked))
        return [evaluate_listing(b, [V4], answers) for b in CATALOGUE.address_profile]

    assert all(row.status is CLEAN for row in settle(dns, evaluate))
    assert runs == [0, 32]


def test_nothing_is_known_without_a_usable_answer() -> None:
    """Silent, unhealthy, refusing and missing lists give no usable answer."""
    zen = find("zen.spamhaus.org")
    unusable = [
        *(Listing(zen, UNKNOWN, unknown_reason=reason) for reason in UnknownReason),
        Listing(zen, ListingStatus.UNSUPPORTED),
        Listing(zen, ListingStatus.DISABLED),
    ]
    assert not has_usable_answer(unusable)
    assert has_usable_answer([*unusable, Listing(zen, CLEAN)])
    assert has_usable_answer([*unusable, Listing(zen, ListingStatus.LISTED)])


def test_findings_name_what_to_do() -> None:
    """A finding names the page for removal, or the resolver to use after a refusal."""
    rows = [
        ask("psbl.surriel.com", V4, "127.0.0.2"),
        ask("dnsbl-3.uceprotect.net", V4, "127.0.0.2"),
        ask("zen.spamhaus.org", V4, "127.0.0.2"),
        ask("multi.uribl.com", NAME, "127.0.0.1"),
        ask("bl.spamcop.net", V4),
    ]
    findings = describe_listings(rows)
    assert [(f.id, f.severity) for f in findings] == [
        ("dnsbl.listed", Severity.ERROR),
        ("dnsbl.listed", Severity.WARNING),
        ("dnsbl.listed", Severity.NOTE),
        ("dnsbl.refused", Severity.UNDETERMINED),
    ]
    assert "https://check.spamhaus.org/" in findings[0].fix
    assert "URIBL multi" in findings[3].meaning
    assert "[blocklists] resolvers" in findings[3].fix


@given(st.sampled_from(CATALOGUE.blocklists), st.integers(0, 2**32 - 1))
def test_what_is_not_documented_is_never_listed(blocklist: Blocklist, number: int) -> None:
    """Only an answer that matches a listing rule of its list is a listing."""
    kind = next(iter(blocklist.query_zones))
    target = {TargetKind.IPV4: V4, TargetKind.IPV6: V6, TargetKind.DOMAIN: NAME}[kind]
    dns = MemoryZone({query_name(blocklist, target): {"A": [str(ip_address(number))]}})
    listing = settle(dns, lambda answers: evaluate_listing(blocklist, [target], answers))
    matches = any(
        rule.matches(number) and rule.code_class in (CodeClass.LISTED, CodeClass.POLICY)
        for rule in blocklist.rules
    )
    if listing.is_listed:
        assert matches
        assert number >> 24 == 127

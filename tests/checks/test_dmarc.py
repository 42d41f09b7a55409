"""Tests for the DMARC policy of a domain."""

from itertools import product

from mailcheck.checks.dmarc.evaluate import DmarcVerdict, evaluate_dmarc
from mailcheck.checks.dmarc.record import Policy, names_to_walk, walk_tree
from mailcheck.checks.dns_answers import DnsStatus, Presence
from mailcheck.checks.findings import Finding, Severity
from tests.checks.verdicts import ids
from tests.fakes.memory_zone import MemoryZone
from tests.fakes.settling import settle
from tests.table import rows

Failures = dict[str | tuple[str, str], DnsStatus]
SEVEN_AND_LESS = ["2.3.4.5.6.7.8", "3.4.5.6.7.8", "4.5.6.7.8", "5.6.7.8", "6.7.8", "7.8", "8"]
GOOD = "v=DMARC1; p=reject; rua=mailto:d@x.example"


def judge(
    records: dict[str, str | list[str]], domain: str = "x.example", failing: Failures | None = None
) -> DmarcVerdict:
    """Evaluate a domain with these TXT records only."""
    zone = MemoryZone(
        {
            name: {"TXT": [texts] if isinstance(texts, str) else texts}
            for name, texts in records.items()
        },
        failing=failing,
    )
    return settle(zone, lambda answers: evaluate_dmarc(domain, answers))


@rows(
    ("x.example", ["x.example", "example"]),
    ("a.mail.x.example", ["a.mail.x.example", "mail.x.example", "x.example", "example"]),
    ("2.3.4.5.6.7.8", SEVEN_AND_LESS),
    ("a.b.1.2.3.4.5.6.7.8", ["a.b.1.2.3.4.5.6.7.8", *SEVEN_AND_LESS]),
    ("1.2.3.4.5.6.7.8", ["1.2.3.4.5.6.7.8", *SEVEN_AND_LESS]),
)
def test_the_walk_asks_at_most_eight_names(domain: str, names: list[str]) -> None:
    """Long names are cut to seven labels after the first query (RFC 9989 4.10)."""
    assert list(names_to_walk(domain)) == names
    assert len(names) <= 8


@rows(
    ({}, "a.b.x.example"),
    ({"b.x.example": GOOD, "x.example": GOOD}, "x.example"),
    ({"a.b.x.example": GOOD}, "a.b.x.example"),
    ({"b.x.example": GOOD + "; psd=n", "x.example": GOOD}, "b.x.example"),
    ({"example": GOOD + "; psd=y"}, "x.example"),
    ({"x.example": GOOD + "; psd=y", "example": GOOD}, "b.x.example"),
    ({"a.b.x.example": GOOD + "; psd=y"}, "a.b.x.example"),
    ({"b.x.example": GOOD, "example": GOOD + "; psd=y"}, "x.example"),
    ({"example": GOOD}, "example"),
    ({"x.example": ["v=DMARC1; p=none", "v=DMARC1; p=reject"]}, "a.b.x.example"),
)
def test_the_organizational_domain(records: dict[str, str | list[str]], organization: str) -> None:
    """The topmost record decides, unless a psd tag says otherwise (RFC 9989 4.10.2)."""
    zone = MemoryZone(
        {
            f"_dmarc.{name}": {"TXT": [texts] if isinstance(texts, str) else texts}
            for name, texts in records.items()
        }
    )
    walk = settle(zone, lambda answers: walk_tree("a.b.x.example", answers))
    assert walk.organizational_domain == organization
    assert len(zone.asked) == 4


def test_the_organizational_domain_is_not_guessed() -> None:
    """The organizational domain is undetermined if a missing answer could decide it."""
    zone = MemoryZone(
        {"_dmarc.x.example": {"TXT": [GOOD]}}, failing={"_dmarc.example": DnsStatus.TIMEOUT}
    )
    walk = settle(zone, lambda answers: walk_tree("b.x.example", answers))
    assert walk.organizational_domain is None


def test_names_above_the_end_of_the_walk_do_not_matter() -> None:
    """If a psd tag ends the walk, missing answers above it do not matter."""
    zone = MemoryZone(
        {"_dmarc.x.example": {"TXT": [GOOD + "; psd=n"]}},
        failing={"_dmarc.example": DnsStatus.TIMEOUT},
    )
    walk = settle(zone, lambda answers: walk_tree("b.x.example", answers))
    assert walk.organizational_domain == "x.example"


SUB = "sub.x.example"
SUFFIX = "v=DMARC1; psd=y; p=none; sp=reject; rua=mailto:r@example"


@rows(
    ({"x": GOOD}, "x.example", Policy.REJECT, "p", "x.example"),
    ({"x": GOOD}, SUB, Policy.REJECT, "p", "x.example"),
    ({"x": GOOD + "; sp=none"}, SUB, Policy.NONE, "sp", "x.example"),
    ({"x": GOOD + "; sp=none"}, "x.example", Policy.REJECT, "p", "x.example"),
    ({"x": GOOD + "; sp=quarantine; np=none"}, SUB, Policy.NONE, "np", "x.example"),
    ({"x": "v=DMARC1; p=none", "sub.x": GOOD}, SUB, Policy.REJECT, "p", SUB),
    ({"": SUFFIX}, "x.example", Policy.REJECT, "sp", "example"),
    ({"x": "v=DMARC1; p=oops; rua=mailto:d@a"}, "x.example", Policy.NONE, "p", "x.example"),
)
def test_the_policy_that_applies(
    records: dict[str, str], domain: str, policy: Policy, tag: str, found_at: str
) -> None:
    """The record of the domain, its organization or the public suffix applies (RFC 9989 4.10.1)."""
    names = {f"_dmarc.{name}.example".replace("..", "."): text for name, text in records.items()}
    verdict = judge({**names}, domain)
    assert verdict.presence is Presence.FOUND
    assert (verdict.policy, verdict.policy_tag, verdict.found_at) == (policy, tag, found_at)


@rows({SUB: {"A": ["8.8.8.8"]}}, {SUB: {"TXT": ["hello"]}}, {f"a.{SUB}": {"A": ["8.8.8.8"]}})
def test_np_is_for_names_that_do_not_exist(name: dict[str, dict[str, list[str]]]) -> None:
    """A name with any record or with names below it exists, so ``sp`` applies (RFC 8020)."""
    zone = MemoryZone({"_dmarc.x.example": {"TXT": [GOOD + "; sp=quarantine; np=none"]}} | name)
    verdict = settle(zone, lambda answers: evaluate_dmarc(SUB, answers))
    assert (verdict.policy, verdict.policy_tag) == (Policy.QUARANTINE, "sp")


def test_whether_a_name_exists_may_be_unknown() -> None:
    """If ``np`` and ``sp`` differ, a name without an answer is reported as undetermined."""
    zone = MemoryZone(
        {"_dmarc.x.example": {"TXT": [GOOD + "; np=none"]}}, failing={SUB: DnsStatus.TIMEOUT}
    )
    verdict = settle(zone, lambda answers: evaluate_dmarc(SUB, answers))
    assert ids(verdict) == ["dmarc.undetermined"]
    assert SUB in verdict.findings[0].meaning


def test_a_bad_record_of_the_organization_is_not_passed_over() -> None:
    """The record of the public suffix applies only to organizations without a record."""
    suffix = "v=DMARC1; psd=y; p=reject; rua=mailto:r@example"
    records: dict[str, str | list[str]] = {
        "_dmarc.x.example": "v=DMARC1; p=bogus",
        "_dmarc.example": suffix,
    }
    verdict = judge(records, SUB)
    assert (verdict.presence, ids(verdict)) == (Presence.ABSENT, ["dmarc.no-policy"])
    assert "x.example" in verdict.findings[0].meaning
    assert judge({"_dmarc.example": suffix}, SUB).policy is Policy.REJECT


def test_a_bad_policy_is_none_where_any_reports_are_asked_for() -> None:
    """A valid URI of any scheme in ``rua`` is enough (RFC 9989 4.10.1)."""
    verdict = judge({"_dmarc.x.example": "v=DMARC1; p=bogus; rua=https://x.example/in"})
    assert (verdict.presence, verdict.policy) == (Presence.FOUND, Policy.NONE)
    assert "dmarc.bad-policy" in ids(verdict)


@rows(
    (GOOD, []),
    ("v=DMARC1; p=none; rua=mailto:d@x.example", ["dmarc.policy-none"]),
    ("v=DMARC1; p=reject", ["dmarc.no-reports"]),
    ("v=DMARC1; p=none", ["dmarc.no-reports", "dmarc.policy-none"]),
    (GOOD + "; t=y", ["dmarc.testing"]),
    (GOOD + "; sp=none", ["dmarc.weaker-subdomains"]),
    (GOOD + "; np=quarantine", ["dmarc.weaker-subdomains"]),
    (GOOD + "; sp=reject; np=reject", []),
    (GOOD + "; pct=50", ["dmarc.obsolete-tags"]),
    (GOOD + "; adkim=q", ["dmarc.syntax"]),
    ("v=DMARC1; rua=mailto:d@x.example", ["dmarc.bad-policy", "dmarc.policy-none"]),
)
def test_what_could_be_better_is_named(text: str, expected: list[str]) -> None:
    """Each weakness has its own finding, and a good record has none."""
    assert ids(judge({"_dmarc.x.example": text})) == expected


def test_sp_and_np_count_in_the_record_of_the_organization_alone() -> None:
    """In other records they are ignored (RFC 9989 4.7), which is a note."""
    records: dict[str, str | list[str]] = {
        "_dmarc.x.example": GOOD,
        "_dmarc." + SUB: GOOD + "; sp=none; np=none",
    }
    verdict = judge(records, SUB)
    assert ids(verdict) == ["dmarc.subdomains-ignored"]
    assert verdict.findings[0].severity is Severity.NOTE
    assert "the record of x.example applies" in verdict.findings[0].meaning
    below = judge(records, f"a.{SUB}")
    assert (below.policy, below.found_at) == (Policy.REJECT, "x.example")


def test_subdomains_of_an_unknown_organization_have_no_finding() -> None:
    """If the organization is undetermined, there is no finding about subdomains."""
    verdict = judge(
        {"_dmarc.x.example": GOOD + "; sp=none"}, failing={"_dmarc.example": DnsStatus.TIMEOUT}
    )
    assert (verdict.policy, ids(verdict)) == (Policy.REJECT, [])


@rows(("reject", "quarantine"), ("quarantine", "none"))
def test_a_record_in_test_is_one_step_weaker(policy: str, applied: str) -> None:
    """``t=y`` weakens a policy by one step (RFC 9989 4.7), and the finding names the result."""
    record = f"v=DMARC1; p={policy}; t=y; rua=mailto:d@x.example"
    (finding,) = judge({"_dmarc.x.example": record}).findings
    assert finding.id == "dmarc.testing"
    assert f"apply {applied} instead of {policy}" in finding.meaning


def test_pct_is_a_note_and_changes_nothing() -> None:
    """The obsolete ``pct`` (RFC 9989) has a note and no effect."""
    verdict = judge({"_dmarc.x.example": GOOD + "; pct=10"})
    assert [f.severity for f in verdict.findings] == [Severity.NOTE]
    assert verdict.policy is Policy.REJECT


@rows(
    ({}, "dmarc.absent", "v=DMARC1; p=none"),
    ({"_dmarc.x.example": [GOOD, GOOD + "; t=y"]}, "dmarc.several", None),
    ({"_dmarc.x.example": "v=DMARC1; adkim=s"}, "dmarc.no-policy", "v=DMARC1; p=none; adkim=s"),
    (
        {"_dmarc.x.example": "v=dmarc1; p=reject; rua=mailto:d@x.example"},
        "dmarc.unreadable",
        "v=DMARC1; p=reject; rua=mailto:d@x.example",
    ),
    ({"x.example": GOOD}, "dmarc.misplaced", GOOD),
    ({"_dmarc.x.example.x.example": GOOD}, "dmarc.misplaced", GOOD),
)
def test_no_record_differs_from_a_broken_one(
    records: dict[str, str | list[str]], finding: str, value: str | None
) -> None:
    """A broken record is detected, and a correction is proposed at the right name."""
    verdict = judge(records)
    assert (verdict.presence, verdict.policy, ids(verdict)) == (Presence.ABSENT, None, [finding])
    record = verdict.findings[0].proposed
    assert record is not None
    assert record.name == "_dmarc.x.example"
    assert value is None or record.value == value


ALIASED = [
    ("_dmarc.x.example", "policies.x.example", "policies.x.example", "v=DMARC1; p=none"),
    ("_dmarc.x.example", "x.dmarc.other.example", None, None),
]


@rows(*ALIASED)
def test_a_dangling_alias_is_named(
    name: str, target: str, place: str | None, value: str | None
) -> None:
    """The finding names the target of a CNAME. A record is proposed if the target is in the domain.

    Otherwise the operator of the target must change it.
    """
    zone = MemoryZone({name: {"CNAME": [f"{target}."]}})
    verdict = settle(zone, lambda answers: evaluate_dmarc("x.example", answers))
    dangling, absent = verdict.findings
    assert (dangling.id, absent.id) == ("dmarc.dangling", "dmarc.absent")
    assert target in dangling.meaning
    assert target in absent.fix
    record = absent.proposed
    assert (record and record.name, record and record.value) == (place, value)


def test_advice_about_an_aliased_record_is_for_its_target() -> None:
    """A policy behind a CNAME is changed at its target, and an intact CNAME has no finding."""
    zone = MemoryZone({"_dmarc.x.example": {"CNAME": ["policies.x.example."]}})
    zone.publish("policies.x.example", "TXT", "v=DMARC1; p=none; rua=mailto:d@x.example")
    verdict = settle(zone, lambda answers: evaluate_dmarc("x.example", answers))
    (finding,) = verdict.findings
    assert finding.id == "dmarc.policy-none"
    assert finding.proposed is not None
    assert finding.proposed.name == "policies.x.example"
    assert "no other record can exist beside it" in finding.fix


def test_of_several_records_no_address_is_lost() -> None:
    """The strictest of several records is kept, with the report addresses of all."""
    texts = ["v=DMARC1; p=none; rua=mailto:a@x.example", "v=DMARC1; p=reject; rua=b@x.example"]
    (finding,) = judge({"_dmarc.x.example": texts}).findings
    assert finding.proposed is not None
    expected = "v=DMARC1; p=reject; rua=mailto:b@x.example,mailto:a@x.example"
    assert finding.proposed.value == expected


def test_broken_records_of_a_subdomain_count_as_none() -> None:
    """Two records count as none, so the organization's record applies; one finding names both."""
    verdict = judge({"_dmarc.x.example": GOOD, "_dmarc." + SUB: [GOOD, GOOD + ";"]}, SUB)
    assert (verdict.presence, verdict.found_at) == (Presence.FOUND, "x.example")
    assert ids(verdict) == ["dmarc.several"]


AWAY = "v=DMARC1; p=reject; rua=mailto:r@reports.other.example"


def test_failure_reports_are_named() -> None:
    """A record with `ruf=` gets a note that such reports contain mail; it names their readers."""
    record = "v=DMARC1; p=reject; rua=mailto:a@x.example; ruf=mailto:a@x.example,mailto:b@x.example"
    (found,) = judge({"_dmarc.x.example": [record]}).findings
    assert (found.id, found.severity) == ("dmarc.failure-reports", Severity.NOTE)
    assert "(ruf=) to x.example. They contain addresses, subjects" in found.meaning
    assert judge({"_dmarc.x.example": [record.partition("; ruf")[0]]}).findings == ()


@rows(
    (["v=DMARC1;"], Presence.FOUND),
    (["v=DMARC1; rua=mailto:b@reports.other.example"], Presence.FOUND),
    (["v=spf1 -all"], Presence.ABSENT),
    ([], Presence.ABSENT),
)
def test_report_hosts_of_other_domains_need_authorization(
    texts: list[str], presence: Presence
) -> None:
    """Hosts outside the organization get reports only with their published consent (RFC 9990 4)."""
    name = "x.example._report._dmarc.reports.other.example"
    verdict = judge({"_dmarc.x.example": AWAY, name: texts})
    (authorization,) = verdict.authorizations
    assert (authorization.record_name, authorization.presence) == (name, presence)
    assert bool(verdict.report_uris) is (presence is Presence.FOUND)
    refused = [f for f in verdict.findings if f.id == "dmarc.report-refused"]
    assert bool(refused) is (presence is Presence.ABSENT)
    if refused:
        assert refused[0].proposed is not None
        assert (refused[0].proposed.name, refused[0].proposed.value) == (name, "v=DMARC1;")


OFFERED = "dmarc-abc@in.other.example"
CONSENT = "x.example._report._dmarc.in.other.example"


def offering(records: dict[str, str | list[str]], address: str = OFFERED) -> list[Finding]:
    """Return the findings with proposed records if an address for reports is suggested."""
    zone = MemoryZone(
        {
            name: {"TXT": [texts] if isinstance(texts, str) else texts}
            for name, texts in records.items()
        }
    )
    verdict = settle(zone, lambda answers: evaluate_dmarc("x.example", answers, address))
    return [one for one in verdict.findings if one.proposed is not None]


@rows(
    ("", {"dmarc.absent": f"v=DMARC1; p=none; rua=mailto:{OFFERED}"}),
    ("v=DMARC1; p=reject", {"dmarc.no-reports": f"v=DMARC1; p=reject; rua=mailto:{OFFERED}"}),
    (
        "v=DMARC1; p=none; rua=nonsense",
        {
            "dmarc.no-reports": f"v=DMARC1; p=none; rua=mailto:{OFFERED}",
            "dmarc.syntax": f"v=DMARC1; p=none; rua=mailto:{OFFERED}",
            "dmarc.policy-none": f"v=DMARC1; p=quarantine; rua=mailto:{OFFERED}",
        },
    ),
)
def test_a_suggested_address_needs_authorization_of_its_host(
    text: str, values: dict[str, str]
) -> None:
    """Each proposed record comes with the authorization record and the name of its operator."""
    records: dict[str, str | list[str]] = {"_dmarc.x.example": text} if text else {}
    found = offering(records)
    assert {one.id: one.proposed and one.proposed.value for one in found} == values
    for one in found:
        (consent,) = one.beside
        assert (consent.name, consent.value) == (CONSENT, "v=DMARC1;")
        assert "after the operator of in.other.example has published" in one.fix
    agreed = offering({**records, CONSENT: "v=DMARC1;"})
    at_home = offering(records, "dmarc-abc@in.x.example")
    assert [one.beside for one in (*agreed, *at_home)] == [()] * 2 * len(found)


def test_no_address_is_made_up_and_none_added_to_others() -> None:
    """No address is suggested if none is given, its host is undetermined, or the record has one."""
    away = "v=DMARC1; p=reject; rua=mailto:r@x.example"
    assert offering({"_dmarc.x.example": "v=DMARC1; p=reject"}, "") == []
    assert offering({"_dmarc.x.example": away}) == []
    zone = MemoryZone(
        {"_dmarc.x.example": {"TXT": ["v=DMARC1; p=reject"]}},
        failing={CONSENT: DnsStatus.TIMEOUT},
    )
    verdict = settle(zone, lambda answers: evaluate_dmarc("x.example", answers, OFFERED))
    assert [(one.id, one.proposed) for one in verdict.findings] == [("dmarc.no-reports", None)]


def test_a_wildcard_authorization_counts() -> None:
    """Report services authorize all customers with one wildcard record."""
    verdict = judge(
        {"_dmarc.x.example": AWAY, "*._report._dmarc.reports.other.example": "v=DMARC1"}
    )
    assert verdict.findings == ()


def test_report_hosts_of_the_organization_need_no_authorization() -> None:
    """Hosts below the organizational domain need no authorization."""
    zone = MemoryZone(
        {"_dmarc.x.example": {"TXT": ["v=DMARC1; p=reject; rua=mailto:a@in.x.example"]}}
    )
    verdict = settle(zone, lambda answers: evaluate_dmarc(SUB, answers))
    assert verdict.authorizations == ()
    assert not any("_report" in question.name for question in zone.asked)


def test_a_report_host_without_an_answer_is_undetermined() -> None:
    """Without an answer, the authorization of a report host is undetermined."""
    name = "x.example._report._dmarc.reports.other.example"
    verdict = judge({"_dmarc.x.example": AWAY}, failing={name: DnsStatus.TIMEOUT})
    assert verdict.report_uris
    assert [f.severity for f in verdict.findings] == [Severity.UNDETERMINED]


@rows(
    *product(
        [DnsStatus.TIMEOUT, DnsStatus.SERVFAIL, DnsStatus.REFUSED],
        ["_dmarc.sub.x.example", "_dmarc.x.example", "_dmarc.example"],
    )
)
def test_no_answer_is_never_no_record(status: DnsStatus, silent: str) -> None:
    """Without a record of its own, a missing answer leaves a domain undetermined."""
    verdict = judge({}, SUB, failing={silent: status})
    assert verdict.presence is Presence.UNDETERMINED
    assert ids(verdict) == ["dmarc.undetermined"]


def test_an_own_record_that_is_ignored_is_known_to_be_so() -> None:
    """A record without a policy ends the search (RFC 9989 4.10.1)."""
    records: dict[str, str | list[str]] = {"_dmarc.x.example": "v=DMARC1; adkim=s"}
    verdict = judge(records, failing={"_dmarc.example": DnsStatus.TIMEOUT})
    assert (verdict.presence, ids(verdict)) == (Presence.ABSENT, ["dmarc.no-policy"])


def test_an_own_record_does_not_depend_on_the_names_above() -> None:
    """The policy of the domain's own record does not depend on names above it."""
    verdict = judge({"_dmarc.x.example": GOOD}, failing={"_dmarc.example": DnsStatus.TIMEOUT})
    assert (verdict.presence, verdict.policy) == (Presence.FOUND, Policy.REJECT)
    assert verdict.organizational_domain is None


@rows(
    ({"b.x.example": GOOD}, "at _dmarc.b.x.example", "none"),
    (
        {"b.x.example": GOOD + "; psd=n", "x.example": GOOD},
        "at _dmarc.b.x.example",
        "at _dmarc.x.example",
    ),
    ({"b.x.example": "v=DMARC1; psd=y", "x.example": GOOD}, "none", "at _dmarc.x.example"),
    ({"x.example": GOOD}, None, None),
    ({"a.b.x.example": GOOD, "x.example": GOOD}, None, None),
    ({}, None, None),
)
def test_receivers_of_the_former_standard_may_find_another_record(
    records: dict[str, str], newer: str | None, older: str | None
) -> None:
    """A finding shows that the tree walk and the Public Suffix List lead to different records."""
    verdict = judge({f"_dmarc.{name}": text for name, text in records.items()}, "a.b.x.example")
    said = [one.meaning for one in verdict.findings if one.id == "dmarc.older-receivers"]
    assert len(said) == (newer is not None)
    assert all(f"here: {newer}." in text and f"7489: {older}." in text for text in said)

"""The next DMARC policy: its record, the policies it means, and the steps before it."""

from mailcheck.checks.dmarc.evaluate import DmarcVerdict, evaluate_dmarc
from mailcheck.checks.dmarc.record import Policy
from mailcheck.checks.dns_answers import DnsStatus
from mailcheck.checks.findings import RecordToPublish
from mailcheck.checks.receiver_reports.aggregate import (
    ReportedRow,
    Row,
    Signature,
    SpfCheck,
    pack_row,
    pack_rows,
)
from mailcheck.checks.receiver_reports.origins import SenderMail, count_mail
from mailcheck.checks.receiver_reports.plan import (
    PlanStep,
    Proposal,
    StepKind,
    effective_policy,
    find_doubts,
    find_steps,
    next_policy,
    propose_record,
    simulate_policy,
    simulate_record,
)
from mailcheck.core.domains.receiver_reports import Coverage, SenderDecision
from mailcheck.core.instants import DAY, Instant
from tests.fakes.memory_zone import MemoryZone
from tests.fakes.settling import settle
from tests.table import rows

DOMAIN = "example.org"
NONE, QUARANTINE, REJECT = Policy.NONE, Policy.QUARANTINE, Policy.REJECT
MINE, NOT_MINE = SenderDecision.MINE, SenderDecision.NOT_MINE
NOON = Instant(1_795_262_400_000)


def zone_with(record: str, **more: str) -> MemoryZone:
    """Return a zone with a DMARC record, an existing subdomain, and more DMARC records."""
    others = {f"_dmarc.{name}.{DOMAIN}": {"TXT": [text]} for name, text in more.items()}
    return MemoryZone(
        {
            f"_dmarc.{DOMAIN}": {"TXT": [record]},
            f"shop.{DOMAIN}": {"A": ["192.0.2.1"]},
            DOMAIN: {"A": ["192.0.2.1"]},
            **others,
        }
    )


def verdict_of(zone: MemoryZone, domain: str = DOMAIN) -> DmarcVerdict:
    """Evaluate the DMARC record of a domain."""
    return settle(zone, lambda answers: evaluate_dmarc(domain, answers))


@rows(
    ("v=DMARC1; p=none", NONE, QUARANTINE, "v=DMARC1; p=quarantine"),
    ("v=DMARC1; p=quarantine", QUARANTINE, REJECT, "v=DMARC1; p=reject"),
    ("v=DMARC1; p=quarantine; t=y", NONE, QUARANTINE, "v=DMARC1; p=quarantine"),
    ("v=DMARC1; p=reject; t=y", QUARANTINE, REJECT, "v=DMARC1; p=reject"),
    ("v=DMARC1; p=reject; sp=none", REJECT, REJECT, "v=DMARC1; p=reject"),
    ("v=DMARC1; p=none; sp=reject; np=none; pct=50", NONE, QUARANTINE, None),
    ("v=DMARC1; p=reject; sp=reject", REJECT, None, "v=DMARC1; p=reject; sp=reject"),
    ("v=DMARC1; p=reject", REJECT, None, "v=DMARC1; p=reject"),
    ("v=DMARC1; p=reject; pct=50", REJECT, REJECT, "v=DMARC1; p=reject"),
    ("v=DMARC1; p=reject; pct=100", REJECT, None, "v=DMARC1; p=reject"),
)
def test_the_next_policy(
    record: str, now: Policy, following: Policy | None, proposed: str | None
) -> None:
    """Policies become one step stricter, without a test mode and weaker policies below."""
    verdict = verdict_of(zone_with(record))
    assert effective_policy(verdict) is now
    assert next_policy(verdict) is following
    expected = proposed or "v=DMARC1; p=quarantine; sp=reject"
    found = propose_record(verdict, following or REJECT)
    assert found == RecordToPublish(f"_dmarc.{DOMAIN}", "TXT", expected)


def test_the_record_of_an_organization_stays() -> None:
    """A subdomain gets a record of its own, with the addresses of the organization's record."""
    rua = "rua=mailto:r@example.org"
    verdict = verdict_of(zone_with(f"v=DMARC1; p=reject; sp=none; {rua}"), f"shop.{DOMAIN}")
    assert effective_policy(verdict) is NONE
    assert propose_record(verdict, QUARANTINE) == RecordToPublish(
        f"_dmarc.shop.{DOMAIN}", "TXT", f"v=DMARC1; p=quarantine; {rua}"
    )


def test_the_record_behind_an_alias_is_changed_there() -> None:
    """If the name is an alias, the record belongs at its target."""
    zone = MemoryZone(
        {
            f"_dmarc.{DOMAIN}": {"CNAME": ["policies.example.net."]},
            "policies.example.net": {"TXT": ["v=DMARC1; p=none"]},
        }
    )
    assert propose_record(verdict_of(zone), REJECT).name == "policies.example.net"


def proposal_of(record: str, zone: MemoryZone, *authors: str) -> Proposal:
    """Simulate a record."""
    shown = RecordToPublish(f"_dmarc.{DOMAIN}", "TXT", record)
    return settle(zone, lambda answers: simulate_record(shown, DOMAIN, authors, answers))


@rows(
    ("v=DMARC1; p=reject", REJECT, REJECT, REJECT),
    ("v=DMARC1; p=reject; sp=none", REJECT, NONE, NONE),
    ("v=DMARC1; p=reject; sp=none; np=reject", REJECT, NONE, REJECT),
    ("v=DMARC1; p=none; sp=reject; np=none", NONE, REJECT, NONE),
    ("v=DMARC1; p=reject; sp=quarantine; t=y", QUARANTINE, NONE, NONE),
    ("v=DMARC1; p=quarantine; t=y", NONE, NONE, NONE),
)
def test_tags_for_subdomains_and_tests_have_their_effect(
    record: str, own: Policy, below: Policy, made_up: Policy
) -> None:
    """The simulation follows RFC 9989 for ``sp``, ``np`` and ``t``."""
    authors = (DOMAIN, f"shop.{DOMAIN}", f"made-up.{DOMAIN}")
    found = proposal_of(record, zone_with("v=DMARC1; p=none"), *authors)
    assert [found.policy_for(one) for one in authors] == [own, below, made_up]
    assert found.policy is own


def test_a_record_of_a_subdomain_has_its_effect() -> None:
    """The subdomain's own policy counts, and an undetermined one stops mail."""
    zone = zone_with("v=DMARC1; p=none", shop="v=DMARC1; p=none")
    authors = (f"shop.{DOMAIN}", f"dead.{DOMAIN}")
    zone.failing[f"_dmarc.dead.{DOMAIN}"] = DnsStatus.TIMEOUT
    found = proposal_of("v=DMARC1; p=reject", zone, *authors)
    assert found.policy_for(authors[0]) is NONE
    assert found.policy_for(authors[1]) is None
    assert found.policy_for(f"other.{DOMAIN}") is REJECT
    lost = mail_of((failing(author=authors[0]), 7), (failing(author=authors[1]), 5))
    assert simulate_policy(found, lost, {}, 1_000).stopped.unknown == 5


def failing(source: str = "203.0.113.1", author: str = DOMAIN, **changes: object) -> Row:
    """Return a row that fails; SPF passes for a host of others."""
    known = {"spf_checks": (SpfCheck("mailer.example", "mfrom", "pass"),), **changes}
    return Row(source, "none", "fail", "fail", author, **known)  # type: ignore[arg-type]


def passing(dkim: str, source: str = "192.0.2.1") -> Row:
    """Return a row that passes by SPF, and with or without DKIM."""
    signed = (Signature(DOMAIN, "s", "pass"),) if dkim == "pass" else ()
    checks = (SpfCheck(DOMAIN, "mfrom", "pass"),)
    return Row(source, "none", dkim, "pass", DOMAIN, signatures=signed, spf_checks=checks)


def mail_of(*rows: tuple[Row, int]) -> list[SenderMail]:
    """Count rows by sender."""
    seen = [ReportedRow(row, count, "google.com", NOON, NOON) for row, count in rows]
    return count_mail(pack_rows([pack_row(one) for one in seen]), {})


def steps_of(mail: list[SenderMail], decisions: dict[str, SenderDecision]) -> list[PlanStep]:
    """Return the steps before p=reject."""
    zone = zone_with("v=DMARC1; p=none")
    proposal = proposal_of("v=DMARC1; p=reject", zone, DOMAIN)
    return list(find_steps(proposal, mail, decisions, 1_000))


def test_each_step() -> None:
    """Decisions come first, then own senders that fail, then those that rely on SPF."""
    mail = mail_of(
        (passing("fail"), 500),
        (failing(), 60),
        (failing("203.0.113.9", spf_checks=()), 2),
        (failing("203.0.113.8", spf_checks=()), 1),
    )

    def shown(decisions: dict[str, SenderDecision]) -> list[tuple[StepKind, str, int]]:
        found = steps_of(mail, decisions)
        return [
            (one.kind, "" if one.sender is None else one.sender.key, one.messages) for one in found
        ]

    signing = (StepKind.SIGN, "192.0.2.1", 500)
    assert shown({}) == [
        (StepKind.DECIDE, "mailer.example", 60),
        (StepKind.DECIDE, "", 3),
        signing,
    ]
    assert shown({"mailer.example": MINE, "others": NOT_MINE}) == [
        (StepKind.SET_UP, "mailer.example", 60),
        signing,
    ]
    assert shown({"mailer.example": NOT_MINE, "203.0.113.9": MINE, "others": NOT_MINE}) == [
        (StepKind.SET_UP, "203.0.113.9", 2),
        signing,
    ]
    (others,) = [one for one in steps_of(mail, {}) if one.others]
    assert others.others == ("203.0.113.9", "203.0.113.8")


def test_mail_that_a_receiver_excepts_is_not_stopped() -> None:
    """Known forwarding is delivered in spite of the policy; a lookup without answer is repeated."""
    known = failing(reasons=("mailing_list: known",))
    silent = failing("203.0.113.2", spf_checks=(SpfCheck(DOMAIN, "mfrom", "temperror"),))
    mail = mail_of((passing("pass"), 500), (known, 40), (silent, 30))
    assert steps_of(mail, {}) == []
    assert {one.unanswered for one in mail} == {0, 30}


@rows(
    (Coverage(14, NOON, NOON), 100, ""),
    (Coverage(), 0, "There are no reports about the last 30 days."),
    (Coverage(13, NOON, NOON), 100, "reports about 13 of the last 30 days"),
    (Coverage(30, NOON, Instant(NOON - 6 * DAY)), 100, "a day 6 days ago"),
    (Coverage(30, NOON, NOON), 99, "count 99 messages"),
)
def test_doubts(coverage: Coverage, total: int, doubt: str) -> None:
    """Few days, old reports and little mail are named."""
    found = list(find_doubts(coverage, total, 30, NOON))
    assert found == [] if not doubt else doubt in found[0]

"""Whose the mail in reports is: all pages and interfaces show the same numbers."""

import re
from collections import Counter

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from mailcheck.checks.receiver_reports.aggregate import Row, Signature, SpfCheck
from mailcheck.config.options import LimitsOptions
from mailcheck.core.domains.receiver_reports import ReportKind, SenderDecision, day_of
from mailcheck.core.instants import DAY, Instant
from mailcheck.store.domains.report_store import CountedRow
from tests.fakes.memory_zone import MemoryZone
from tests.house import House, run
from tests.web.dashboard.browser import Browser
from tests.web.dashboard.tools_visit import visit_tools
from tests.web.mcp.agent import Agent
from tests.web.reporting import count_rows

SENDERS = tuple(f"sender-{number}.example" for number in range(4))

DrawnRow = tuple[str, str, int, int]
"""Kind, sender, messages, and how many days ago."""

KINDS = ("passes", "fails", "forwarded", "excepted", "strict", "no answer")

ROWS = st.lists(
    st.tuples(
        st.sampled_from(KINDS),
        st.sampled_from(SENDERS),
        st.integers(1, 500),
        st.integers(0, 29),
    ),
    min_size=1,
    max_size=12,
)
DECISIONS = st.dictionaries(st.sampled_from(SENDERS), st.sampled_from(SenderDecision))

CASES = st.lists(st.tuples(ROWS, DECISIONS, st.booleans()), min_size=4, max_size=4)
"""Domains: the rows about each, the decisions, and whether it declares that it uses no mail."""


def row_of(kind: str, sender: str, domain: str) -> Row:
    """Return a row of mail that a host of the sender sends."""
    source = f"203.0.113.{SENDERS.index(sender)}"
    mailed = SpfCheck(sender, "mfrom", "pass")
    own = "pass" if kind == "passes" else "fail"
    signatures = {
        "passes": (Signature(domain, "s", "pass"),),
        "strict": (Signature(f"mail.{domain}", "s", "pass"),),
        "no answer": (Signature(domain, "s", "temperror"),),
    }
    reasons = {"forwarded": ("forwarded",), "excepted": ("mailing_list: known",)}
    return Row(
        source,
        "none",
        own,
        "fail",
        domain,
        reasons=reasons.get(kind, ()),
        signatures=signatures.get(kind, ()),
        spf_checks=() if kind == "no answer" else (mailed,),
    )


def split_on(owner: Browser, path: str) -> dict[str, int]:
    """Return the numbers that a page shows."""
    body = owner.open(path).body.decode()
    shown = re.findall(r'<div data-origin="(\w+)"><dt>\w+</dt><dd>([\d,]+)</dd>', body)
    return {name: int(number.replace(",", "")) for name, number in shown}


@settings(max_examples=3)
@given(CASES)
def test_all_show_the_same_numbers(
    cases: list[tuple[list[DrawnRow], dict[str, SenderDecision], bool]],
) -> None:
    """The tab, the plan, REST and MCP split the same mail in the same way."""
    domains = [f"d{number}.example" for number, _ in enumerate(cases)]
    silent = {"TXT": ["v=spf1 -all"], "MX": ["0 ."]}
    zone = MemoryZone(
        {name: silent for name, (_, _, is_silent) in zip(domains, cases, strict=True) if is_silent}
    )
    owner = visit_tools(zone, limits=LimitsOptions(1_000, 1_000))
    for domain, (drawn, decisions, _) in zip(domains, cases, strict=True):
        store_cases(owner.house, domain, drawn, decisions)
        compare_numbers(owner, domain, sum(messages for _, _, messages, _ in drawn))
    owner.house.close()


def store_cases(
    house: House, domain: str, drawn: list[DrawnRow], decisions: dict[str, SenderDecision]
) -> None:
    """Store reports and decisions for the account of the pages and for the one of the API."""
    midnight = day_of(Instant(house.assembly.runtime.now()))
    ann = run(house.assembly.accounts.keep.find("ann"))
    for account_id in (ann.id, house.account.id):
        counted = [
            CountedRow(
                account_id,
                ReportKind.DMARC,
                domain,
                Instant(midnight - ago * DAY),
                f"{number}",
                "google.com",
                msgspec.json.encode(row_of(kind, sender, domain)).decode(),
                messages,
            )
            for number, (kind, sender, messages, ago) in enumerate(drawn)
        ]
        count_rows(house, counted)
        decide = house.assembly.reports.operations.decide
        for sender, decision in decisions.items():
            run(decide.decide(account_id, domain, sender, decision))


def compare_numbers(owner: Browser, domain: str, total: int) -> None:
    """Fail unless all show the same numbers, which count each message once."""
    house, agent = owner.house, Agent(owner.house)
    overview = house.get(f"/reports/dmarc?domain={domain}").json
    plan = house.get(f"/reports/dmarc/plan?domain={domain}").json
    found = [
        overview["mail"],
        plan["mail"],
        split_on(owner, f"/domains/{domain}/reports"),
        split_on(owner, f"/domains/{domain}/plan"),
        agent.use("get_reports", domain=domain)["mail"],
        agent.use("get_reports", domain=domain, plan=True)["mail"],
    ]
    assert all(one == found[0] for one in found), found
    assert sum(found[0].values()) == total
    days: Counter[str] = Counter()
    for one in overview["days"]:
        days.update(one["mail"])
    assert dict(days) == found[0]
    rejected = next(one for one in plan["simulations"] if one["policy"] == "reject")
    assert sum(rejected["stopped"].values()) == overview["stoppedByReject"]

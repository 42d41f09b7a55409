"""A year of reports leads from p=none to p=reject, and no own mail is lost."""

import json
from collections.abc import Mapping
from typing import Any

import pytest

from mailcheck.core.instants import DAY
from tests.fakes.dmarc_year import DOMAIN, KEY, Year, year_zone
from tests.house import House
from tests.web.checking import checking_house
from tests.web.mcp.agent import Agent
from tests.web.reporting import address, count_days

TRUTH = {
    "google": "mine",
    "sendgrid": "mine",
    "zendesk": "mine",
    "mailchimp": "mine",
    "hoster.example": "mine",
    "improvmx": "not-mine",
    "bad.example": "not-mine",
    "others": "not-mine",
}
"""What the owner knows about the senders."""


class Owner:
    """Follows the plan once a week, step by step, and notes what it asked for."""

    def __init__(self) -> None:
        self.zone = year_zone()
        self.year = Year(self.zone)
        self.house: House = checking_house(self.zone)
        rua = address(self.house)
        self.year.publish(f"_dmarc.{DOMAIN}", "TXT", f"v=DMARC1; p=none; sp=none; rua=mailto:{rua}")
        self.asked: list[tuple[str, str | None]] = []
        self.published: list[str] = []

    def live(self, days: int) -> None:
        """Let days pass, and count the report about each of them."""
        count_days(self.house, self.year, days)

    def plan(self, days: int = 30) -> Any:
        """Return the plan."""
        return self.house.get(f"/reports/dmarc/plan?domain={DOMAIN}&days={days}").json

    def follow(self, plan: Any) -> None:
        """Do what the plan says."""
        if plan["state"] == "safe":
            self.publish(plan["record"])
            self.published.append(plan["record"]["value"])
        for step in plan["steps"]:
            if (step["kind"], step["sender"]) not in self.asked:
                self.asked.append((step["kind"], step["sender"]))
            if step["kind"] == "decide":
                body = {"domain": DOMAIN, "sender": step["sender"]}
                data = json.dumps({**body, "decision": TRUTH[step["sender"]]}).encode()
                decided = self.house.ask("POST", "/reports/dmarc/senders", data=data)
                assert decided.answer().status == 200
            for record in step["records"]:
                self.publish(record)
            if step["kind"] == "sign" and step["sender"] == "hoster.example":
                self.year.publish(f"shop._domainkey.{DOMAIN}", "TXT", KEY)
                self.year.signs.add("shop")

    def publish(self, record: Mapping[str, str]) -> None:
        """Publish a record that a plan shows."""
        value = record["value"] + ("." if record["type"] == "CNAME" else "")
        self.year.publish(record["name"], record["type"], value)


@pytest.fixture
def owner() -> Owner:
    """Return the owner of a domain."""
    return Owner()


def test_a_year_of_reports_leads_to_reject_without_losing_own_mail(owner: Owner) -> None:
    """The steps set up both broken senders, decide about the others, and end in p=reject."""
    states = []
    while owner.year.day < 365:
        owner.live(7 if "enforced" not in states else 365 - owner.year.day)
        plan = owner.plan()
        states.append(plan["state"])
        owner.follow(plan)
    assert owner.year.lost == {}
    assert states[:2] == ["steps", "steps"]
    assert states[-1] == "enforced"
    assert [value.split("; ")[1] for value in owner.published] == ["p=quarantine", "p=reject"]
    (record,) = owner.zone.published(f"_dmarc.{DOMAIN}", "TXT")
    assert record == f"v=DMARC1; p=reject; rua=mailto:{address(owner.house)}"
    assert set(owner.asked) == {
        ("decide", "bad.example"),
        ("decide", "hoster.example"),
        ("decide", "mailchimp"),
        ("decide", "improvmx"),
        ("decide", "others"),
        ("set-up", "mailchimp"),
        ("set-up", "hoster.example"),
        ("sign", "hoster.example"),
    }
    assert owner.zone.published(f"k2._domainkey.{DOMAIN}", "CNAME") == ("dkim2.mcsv.net.",)
    (spf,) = owner.zone.published(DOMAIN, "TXT")
    assert spf == "v=spf1 mx include:_spf.google.com ip4:203.0.113.6 -all"
    assert owner.year.stopped["forger"] > 2_000


def test_publishing_early_loses_the_mail_that_the_plan_announces(owner: Owner) -> None:
    """What the simulation counts is what the receiver stops once the policy is published."""
    owner.live(20)
    owner.follow(owner.plan())
    plan = owner.plan()
    quarantine = plan["simulations"][0]
    # Each day 50 and 20 messages of the two broken senders.
    assert (quarantine["policy"], quarantine["stopped"]["yours"]) == ("quarantine", 20 * 70)
    # Of the forwarder only mail without an intact signature of the domain.
    assert {one["sender"]: one["messages"] for one in quarantine["senders"]} == {
        "mailchimp": 20 * 50,
        "hoster.example": 20 * 20,
        "improvmx": 20 * 7,
        "bad.example": 20 * 12,
        "203.0.113.99": 1,
    }
    owner.publish(quarantine["record"])
    before = Owner()
    before.publish(quarantine["record"])
    before.live(1)
    assert before.year.lost == {"mailchimp": 55, "shop": 22}


def test_an_agent_asks_whether_reject_is_safe(owner: Owner) -> None:
    """get_reports with plan has the state, the steps with their records, and the safe record."""
    owner.live(20)
    agent = Agent(owner.house)
    found = agent.use("get_reports", domain=DOMAIN, plan=True)
    assert found["plan"]["state"] == "steps"
    assert (found["plan"]["policy"], found["plan"]["nextPolicy"]) == ("none", "quarantine")
    assert found["plan"]["publish"] is None
    rows = {one["name"]: one for one in found["reported"]}
    assert {"mailchimp", "bad.example", "others"} <= set(rows)
    assert rows["mailchimp"]["kind"] == "decide"
    assert "--mine NAME" in found["hint"]
    owner.follow(owner.plan())
    found = agent.use("get_reports", domain=DOMAIN, plan=True)
    fixes = {one["kind"]: one["fix"] for one in found["reported"] if one["name"] == "mailchimp"}
    assert f"Publish at k2._domainkey.{DOMAIN} (CNAME): dkim2.mcsv.net" in fixes["set-up"]
    while (plan := owner.plan())["state"] != "safe":
        owner.follow(plan)
        owner.live(7)
    safe = agent.use("get_reports", domain=DOMAIN, plan=True)
    record = plan["record"]
    assert safe["plan"]["publish"] == f"{record['name']} (TXT): {record['value']}"
    assert "hint" not in safe
    assert safe["reported"] == []
    assert "needs the domain" in agent.fail("get_reports", plan=True)


def test_few_reports_are_not_called_safe(owner: Owner) -> None:
    """Without failing mail, two weeks of reports and a recent one are still needed."""
    none = owner.plan()
    assert (none["state"], none["doubts"]) == (
        "undetermined",
        ["There are no reports about the last 30 days."],
    )
    owner.year.publish(f"k2._domainkey.{DOMAIN}", "CNAME", "dkim2.mcsv.net.")
    for name in TRUTH:
        data = json.dumps({"domain": DOMAIN, "sender": name, "decision": "not-mine"}).encode()
        owner.house.ask("POST", "/reports/dmarc/senders", data=data).answer()
    owner.live(13)
    few = owner.plan()
    assert few["state"] == "undetermined"
    assert few["record"] is None
    assert few["doubts"] == [
        "There are reports about 13 of the last 30 days. At least 14 days with reports are needed."
    ]
    owner.live(1)
    assert owner.plan()["state"] == "safe"
    owner.house.pass_time(6 * DAY // 1_000)
    old = owner.plan()
    assert old["state"] == "undetermined"
    assert "The newest reports are about a day" in old["doubts"][0]


def test_a_domain_without_mail_needs_no_reports(owner: Owner) -> None:
    """A domain that declares that it uses no mail gets p=reject, unless some of its mail passes."""
    silent = "quiet.example"
    owner.year.publish(silent, "TXT", "v=spf1 -all")
    owner.year.publish(silent, "MX", "0 .")
    path = f"/reports/dmarc/plan?domain={silent}&days=30"
    plan = owner.house.get(path).json
    assert (plan["state"], plan["nextPolicy"], plan["steps"]) == ("safe", "reject", [])
    assert plan["record"]["value"] == "v=DMARC1; p=reject"
    owner.publish(plan["record"])
    owner.house.pass_time(400)  # cached answers expire
    assert owner.house.get(path).json["state"] == "enforced"
    # The domain with reports about mail that passes is not one without mail.
    owner.live(5)
    owner.year.publish(DOMAIN, "TXT", "v=spf1 -all")
    owner.year.publish(DOMAIN, "MX", "0 .")
    owner.house.pass_time(400)
    assert owner.plan()["state"] == "steps"


def test_a_watch_tells_when_a_sender_breaks(owner: Owner) -> None:
    """An alert begins when mail of an own sender fails, and ends a week after the last failure."""
    decided = json.dumps({"domain": DOMAIN, "sender": "zendesk", "decision": "mine"}).encode()
    owner.house.ask("POST", "/reports/dmarc/senders", data=decided).answer()
    watch = json.dumps({"target": DOMAIN}).encode()
    made = owner.house.ask("POST", "/watches", data=watch).answer().json

    def alerts() -> dict[str, str]:
        shown = owner.house.ask("POST", f"/watches/{made['id']}/run").answer().json
        sentences = {one["sentence"]: one["ending"] for one in shown["alerts"]}
        return {text: end for text, end in sentences.items() if "DMARC" in text}

    owner.live(7)
    alerts()
    owner.live(7)
    assert alerts() == {}
    owner.year.publish(f"zendesk1._domainkey.{DOMAIN}", "CNAME", "gone.zendesk.com.")
    owner.live(2)
    (sentence,) = alerts()
    assert sentence.startswith("Mail of Zendesk fails DMARC. 40 messages")
    owner.year.publish(f"zendesk1._domainkey.{DOMAIN}", "CNAME", "zendesk1._domainkey.zendesk.com.")
    owner.live(9)
    (ending,) = alerts().values()
    assert ending.startswith("Resolved: Mail of Zendesk fails DMARC.")


def test_a_name_that_is_only_claimed_is_no_service(owner: Owner) -> None:
    """A forger can write a service into the reverse DNS of an address, but not confirm it."""
    owner.zone.publish("66.113.0.203.in-addr.arpa", "PTR", "o9.sendgrid.net.")
    owner.live(3)
    found = owner.house.get(f"/reports/dmarc?domain={DOMAIN}").json["senders"]
    names = {one["key"]: one["messages"] for one in found}
    assert names["sendgrid"] == 3 * 60
    assert names["bad.example"] == 3 * 9 + 3 * 3

"""The tools that check domains and blocklists."""

from typing import Any

from twisted.internet.defer import Deferred, succeed

from mailcheck.checks.dns_answers import DnsAnswer, DnsQuestion, DnsStatus
from tests.fakes.memory_zone import MemoryZone, Records
from tests.house import config_in_memory, run
from tests.table import rows
from tests.web.checking import GOOD, checking_house, zone_with
from tests.web.mcp.agent import HANDSHAKE, STATELESS, Agent

LISTED = {
    "10.4.8.8.zen.spamhaus.org": {"A": ["127.0.0.2"], "TXT": ["https://example.org/why"]},
    "10.4.8.8.b.barracudacentral.org": {"A": ["127.255.255.254"]},
}


class DeadResolver(MemoryZone):
    """A resolver that fails every query in the same way."""

    def lookup(self, question: DnsQuestion) -> Deferred[DnsAnswer]:
        """Return the failure."""
        return succeed(DnsAnswer(question, DnsStatus.SERVFAIL))


def agent_over(zone: MemoryZone, version: str = HANDSHAKE) -> Agent:
    """Create an agent of a house with a zone."""
    house = checking_house(zone, config_in_memory())
    return Agent(house, version=version)


@rows(HANDSHAKE, STATELESS)
def test_check_domain_agrees_with_rest(version: str) -> None:
    """check_domain returns the score and grade of REST, and only what is not as it should be."""
    agent = agent_over(zone_with({}), version)
    found = agent.use("check_domain", domain="Good.Example.", selector="default")
    same = agent.house.get("/tools/reputation?domain=good.example&selector=default").json
    assert {name: found[name] for name in ("domain", "score", "grade")} == {
        name: same[name] for name in ("domain", "score", "grade")
    }
    assert found["problems"] == []
    assert found["summary"].startswith("good.example has the score 100 of 100, grade A+: 8 of 8")


def test_check_domain_says_what_to_publish() -> None:
    """For a domain without DMARC, the result contains the exact record to publish."""
    agent = agent_over(zone_with({"_dmarc.good.example": {}}))
    found = agent.use("check_domain", domain="good.example")
    (dmarc,) = [problem for problem in found["problems"] if problem["about"] == "DMARC"]
    assert (dmarc["status"], dmarc["gain"]) == ("fail", 9)
    record = dmarc["record"]
    assert (record["name"], record["type"]) == ("_dmarc.good.example", "TXT")
    assert record["value"].startswith("v=DMARC1;")


def test_no_grade_without_dns() -> None:
    """Without DNS the result is undetermined and has no score, and equal lines are one."""
    agent = agent_over(DeadResolver({}))
    found = agent.use("check_domain", domain="good.example")
    assert (found["score"], found["grade"]) == (None, None)
    assert found["summary"].startswith("undetermined: ")
    assert {problem["status"] for problem in found["problems"]} == {"undetermined"}
    texts = [problem["meaning"] for problem in found["problems"]]
    assert len(texts) == len(set(texts)) < 8


def test_check_mx_agrees_with_rest() -> None:
    """check_mx returns mail hosts, SPF and DMARC of REST. Undetermined results are null."""
    late = zone_with({}, failing={"_dmarc.good.example": DnsStatus.TIMEOUT})
    agent = agent_over(zone_with({}))
    found = agent.use("check_mx", domain="Good.Example.")
    same = agent.house.get("/tools/mx-check?domain=good.example").json
    for name in ("domain", "hasMx", "hasSpf", "hasDmarc", "records"):
        assert found[name] == same[name]
    for name in ("spfRecord", "dmarcRecord"):
        assert found[name].split("\n")[1:-1] == [same[name]]
    told = "good.example has 2 mail hosts, an SPF record and a DMARC record"
    assert found["summary"] == told
    agent = agent_over(late)
    found = agent.use("check_mx", domain="good.example")
    assert (found["hasMx"], found["hasDmarc"]) == (True, None)
    assert "dmarcRecord" not in found
    assert found["summary"].startswith("undetermined: ")
    assert "DMARC" in found["summary"]


def test_check_blocklists_shows_listings_and_what_is_unknown() -> None:
    """Listed results are rows, unknown ones are counted by reason, and clean ones counted."""
    agent = agent_over(zone_with(LISTED))
    found = agent.use("check_blocklists", query="8.8.4.10")
    assert (found["totalChecked"], found["totalListed"], found["totalUnknown"]) == (32, 1, 1)
    assert found["summary"] == "listed by 1 of 31 lists that answered; 1 of 32 did not answer"
    (unknown,) = found["unknown"]
    assert (unknown["count"], unknown["zones"]) == (1, ["b.barracudacentral.org"])
    (listed,) = found["listings"]
    assert listed["zone"] == "zen.spamhaus.org"
    assert listed["matched"] == ["8.8.4.10"]
    assert listed["reason"].split("\n")[1:-1] == ["https://example.org/why"]


def test_no_list_answers() -> None:
    """If no list answers, the first sentence says so in both forms, and equal lines are one."""
    told = "undetermined: none of 32 lists answered"
    agent = agent_over(DeadResolver({}))
    found = agent.use("check_blocklists", query="8.8.4.10")
    text = agent.call("check_blocklists", {"query": "8.8.4.10"}).result["content"][0]["text"]
    assert found["totalUnknown"] == 32
    assert found["summary"].startswith(told)
    assert text.startswith(told)
    (unknown,) = found["unknown"]
    assert (unknown["count"], len(unknown["zones"])) == (32, 3)
    assert len(text) < 800


@rows(
    ("check_domain", {}, "domain is missing"),
    ("check_domain", {"domain": "192.0.2.1"}, "is an IP address"),
    ("check_domain", {"domain": "good.example", "ip": "10.0.0.1"}, "private"),
    ("check_domain", {"domain": "good.example", "selector": "a b"}, "selector"),
    ("check_domain", {"domain": 5}, "domain must be a string"),
    ("check_blocklists", {"query": "a@b.example"}, "is a mail address"),
    ("check_blocklists", {"query": "8.8.8.8", "deadline": 3}, "unknown argument"),
)
def test_bad_arguments(tool: str, arguments: dict[str, Any], words: str) -> None:
    """An invalid argument is a failed call that says what to send; no query is sent."""
    zone = zone_with({})
    agent = agent_over(zone)
    assert words in agent.fail(tool, **arguments)
    assert not zone.asked


def test_watches_agree_with_rest() -> None:
    """Agents see the watches of the account, the state of one, and its alert."""
    zone = zone_with({})
    agent = agent_over(zone)
    made = agent.house.ask("POST", "/watches", data=b'{"target": "good.example"}').answer().json
    path = f"/watches/{made['id']}"
    agent.house.ask("POST", f"{path}/run").answer()
    zone.publish("_dmarc.good.example", "TXT")
    agent.house.pass_time(3_600)
    agent.house.ask("POST", f"{path}/run").answer()
    listed = agent.use("list_watches")
    rest = agent.house.get("/watches").json
    assert listed["summary"] == "1 watches, 1 with problems, 1 open alerts"
    for name in ("watches", "openAlerts"):
        for found, same in zip(listed[name], rest[name], strict=True):
            assert found == {key: same[key] for key in found}
    shown = agent.use("get_watch", watchId=made["id"])
    assert shown["openAlerts"] == listed["openAlerts"]
    assert "DMARC" in shown["openAlerts"][0]["sentence"]
    assert shown["problems"] == agent.house.get(path).json["problems"]
    assert "no such watch" in agent.fail("get_watch", watchId="nothing")


def test_heartbeats() -> None:
    """The list has states and open alerts as REST has them; a named one has its mails."""
    agent = agent_over(zone_with({}))
    house, runner = agent.house, agent.house.assembly.watches.beats
    body = b'{"name": "backup", "everyMinutes": 60}'
    made = house.ask("POST", "/heartbeats", data=body).answer().json
    run(runner.start())
    house.pass_time(3_600)
    house.receive(made["address"])
    run(runner.poll())
    house.pass_time(0)
    assert agent.use("get_heartbeats")["summary"] == "1 heartbeats, 0 with problems"
    for _ in range(70):
        house.pass_time(80)
        run(runner.poll())
    listed, rest = agent.use("get_heartbeats"), house.get("/heartbeats").json
    assert listed["summary"] == "1 heartbeats, 1 with problems"
    assert listed["heartbeats"][0]["state"] == rest["heartbeats"][0]["state"] == "late"
    assert listed["openAlerts"][0]["sentence"] == rest["openAlerts"][0]["sentence"]
    shown = agent.use("get_heartbeats", name="backup")
    assert (shown["address"], len(shown["beats"])) == (made["address"], 1)
    assert "no such heartbeat" in agent.fail("get_heartbeats", name="nothing")
    run(runner.stop())


def test_check_domain_has_the_problems_without_points() -> None:
    """A fault of CAA or of the logo is reported with its fix, and does not change the score."""
    records: Records = {
        "good.example": {**GOOD["good.example"], "CAA": ['128 isuemail "ca.example"']},
        "default._bimi.good.example": {"TXT": ["v=bimi1; l=https://good.example/logo.svg"]},
    }
    agent = agent_over(zone_with(records))
    found = agent.use("check_domain", domain="good.example")
    unscored = {problem["about"]: problem for problem in found["problems"]}
    assert {*unscored} == {"caa.unknown-critical", "bimi.unreadable"}
    record = unscored["caa.unknown-critical"]["record"]
    assert (record["type"], record["value"]) == ("CAA", '128 issuemail "ca.example"')
    assert found["score"] == 100

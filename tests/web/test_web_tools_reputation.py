"""Reputation and the domain report over HTTP."""

from collections.abc import Mapping, Sequence
from typing import Any

from mailcheck.checks.bimi.evaluate import FileFetch
from mailcheck.checks.bimi.svg import MEDIA_TYPE
from mailcheck.checks.dns_answers import DnsStatus
from mailcheck.checks.hosts.mta_sts import FetchOutcome, PolicyFetch
from mailcheck.checks.hosts.starttls import ProbeOutcome
from mailcheck.config.options import InboxOptions
from tests.fakes.fake_hosts import FakeHosts
from tests.fakes.marks import GOOD_LOGO, Mark, bundle
from tests.fakes.memory_zone import MemoryZone
from tests.house import Answer, House, config_in_memory
from tests.table import rows
from tests.web.checking import GOOD, KEY_RECORD, checking_house, zone_with

SCORE = "/tools/reputation?domain=good.example"


def house_of(zone: MemoryZone, hosts: FakeHosts | None = None) -> House:
    """Create a house with a zone and hosts."""
    return checking_house(zone, hosts=hosts)


def reputation(house: House, path: str = SCORE, **options: Any) -> Any:
    """Return a reputation with a grade."""
    answer = house.get(path, **options)
    assert answer.status == 200, answer
    return answer.json


def factors(found: Any) -> dict[str, Any]:
    """Return the factors by name."""
    return {factor["name"]: factor for factor in found["factors"]}


def test_a_good_domain() -> None:
    """A correctly configured domain has all points and no fixes."""
    house = house_of(zone_with({}))
    found = reputation(house)
    assert (found["score"], found["grade"], found["ip"]) == (100, "A+", "8.8.4.1")
    assert [(f["status"], f["fix"], f["gain"]) for f in found["factors"]] == [("pass", None, 0)] * 8
    assert not found["cached"]
    assert found["details"] == {
        "mx": {"valid": True, "count": 2, "primary": "mx1.good.example", "determined": True},
        "spf": {"valid": True, "record": "v=spf1 mx -all", "determined": True},
        "dkim": {"valid": True, "selectors": ["default"], "determined": True},
        "dmarc": {
            "valid": True,
            "policy": "reject",
            "rua": ["mailto:dmarc@good.example"],
            "determined": True,
        },
        "blacklists": {"checked": 32, "listed": 0, "clean": True},
        "tls": {"valid": True, "starttls": True, "determined": True},
        "domainAge": {
            "valid": True,
            "determined": True,
            "years": 10.0,
            "registrationDate": "2016-11-21",
        },
        "rdns": {
            "valid": True,
            "hostname": "mx1.good.example",
            "ip": "8.8.4.10",
            "determined": True,
        },
    }


def test_a_fix_contains_the_record() -> None:
    """A fix contains the exact record, and gain is the points that it adds."""
    broken = {"good.example": {"A": ["8.8.4.1"], "MX": ["10 mx1.good.example."]}}
    house = house_of(zone_with(broken))
    found = reputation(house)
    spf = factors(found)["SPF"]
    assert (spf["status"], spf["impact"], spf["gain"], spf["maximum"]) == ("fail", 0, 15, 15)
    assert spf["fix"]["record"]["name"] == "good.example"
    assert spf["fix"]["record"]["value"].startswith("v=spf1 ")


def test_too_much_undetermined() -> None:
    """Without DNS there is no grade: 500, with the known results."""
    names = [*GOOD, "good.example"]
    zone = zone_with({}, failing=dict.fromkeys(names, DnsStatus.SERVFAIL))
    house = house_of(zone)
    answer = house.get(SCORE)
    assert answer.status == 500
    assert "SPF" in answer.json["error"]
    assert "score" not in answer.json["partial"]
    zone.failing.clear()
    assert reputation(house)["score"] == 100


def test_cached_for_an_hour() -> None:
    """A result is cached for an hour, with the time of its check."""
    zone = zone_with({})
    house = house_of(zone)
    first = reputation(house)
    asked = len(zone.asked)
    house.pass_time(3599)
    again = reputation(house)
    assert (again["cached"], again["checkedAt"]) == (True, first["checkedAt"])
    assert len(zone.asked) == asked
    house.pass_time(1)
    late = reputation(house)
    assert not late["cached"]
    assert late["checkedAt"] > first["checkedAt"]


def test_undetermined_is_cached_for_a_minute() -> None:
    """A result with undetermined factors is cached for a minute only."""
    hosts = FakeHosts()
    hosts.outcomes = dict.fromkeys(
        ["mx1.good.example", "mx2.good.example"], ProbeOutcome.UNREACHABLE
    )
    house = house_of(zone_with({}), hosts)
    reputation(house)
    house.pass_time(59)
    assert reputation(house)["cached"]
    house.pass_time(1)
    assert not reputation(house)["cached"]


def test_refresh_checks_again() -> None:
    """``refresh`` ignores the cached result and replaces it."""
    house = house_of(zone_with({}))
    reputation(house)
    house.pass_time(10)
    fresh = reputation(house, SCORE + "&refresh=true")
    assert not fresh["cached"]
    assert reputation(house)["checkedAt"] == fresh["checkedAt"]


def test_many_requests_run_one_check() -> None:
    """Simultaneous requests for the same domain share one check."""
    hosts = FakeHosts()
    hosts.is_held = True
    house = house_of(zone_with({}), hosts)
    pending = [house.ask("GET", SCORE) for _ in range(10)]
    assert not any(one.is_answered for one in pending)
    pending.pop().hang_up()
    hosts.answer()
    answers: list[Answer] = [one.answer() for one in pending]
    assert hosts.registry_questions == 1
    assert {answer.status for answer in answers} == {200}


def test_selectors_and_addresses_of_the_caller() -> None:
    """A client may name selectors and sending hosts, and repeat both."""
    zone = zone_with(
        {
            "default._domainkey.good.example": {},
            "odd-name._domainkey.good.example": {"TXT": [KEY_RECORD]},
            "99.4.8.8.in-addr.arpa": {"PTR": ["out.good.example."]},
            "out.good.example": {"A": ["8.8.4.99"]},
            "99.4.8.8.bl.spamcop.net": {"A": ["127.0.0.2"]},
        }
    )
    house = house_of(zone)
    assert not reputation(house)["details"]["dkim"]["valid"]
    found = reputation(house, SCORE + "&selector=other&selector=odd-name&ip=8.8.4.99&ip=8.8.4.10")
    assert found["details"]["dkim"]["selectors"] == ["odd-name"]
    assert found["details"]["rdns"]["ip"] == "8.8.4.99"
    assert found["details"]["blacklists"]["listed"] == 1


@rows(
    ("", "domain is missing"),
    ("domain=good.example&ip=10.0.0.1", "is private"),
    ("domain=good.example&ip=nonsense", "is not an IP address"),
    ("domain=good.example&selector=a%20b", "is not a selector"),
    ("domain=good.example&refresh=maybe", "refresh must be true or false"),
    ("domain=good.example" + "&ip=8.8.8.8" * 5, "ip was sent 5 times; send it at most 4 times"),
)
def test_bad_parameters_of_reputation(query: str, words: str) -> None:
    """An invalid parameter is a 400 that names it."""
    house = house_of(zone_with({}))
    answer = house.get(f"/tools/reputation?{query}")
    assert answer.status == 400
    assert words in answer.json["error"]


def test_selectors_learned_from_mail() -> None:
    """A selector is known after a mail with a signature that uses it has arrived."""
    zone = zone_with(
        {
            "default._domainkey.good.example": {},
            "s20261121._domainkey.good.example": {"TXT": [KEY_RECORD]},
        }
    )
    signed = (
        b"DKIM-Signature: v=1; a=ed25519-sha256; d=Good.Example;\r\n\ts=s20261121; b=AA==\r\n"
        b"From: shop@good.example\r\nSubject: hello\r\n\r\nhi\r\n"
    )
    house = house_of(zone)
    house.receive(raw=signed)
    message = house.get("/inbox/messages").json["messages"][0]
    house.get(f"/inbox/messages/{message['id']}")
    found = reputation(house)
    assert found["details"]["dkim"]["selectors"] == ["s20261121"]


def test_domain_report() -> None:
    """The report contains every mechanism, with SPF's tree, keys, and the policy file."""
    records: dict[str, Mapping[str, Sequence[str]]] = {
        "good.example": {
            **GOOD["good.example"],
            "TXT": ["v=spf1 mx include:_spf.good.example -all"],
        },
        "_spf.good.example": {"TXT": ["v=spf1 ip4:8.8.4.0/24 -all"]},
        "_mta-sts.good.example": {"TXT": ["v=STSv1; id=1"]},
        "_smtp._tls.good.example": {"TXT": ["v=TLSRPTv1; rua=mailto:t@good.example"]},
        "_25._tcp.mx1.good.example": {"TLSA": ["3 1 1 " + "ab" * 32]},
    }
    hosts = FakeHosts()
    policy = "version: STSv1\nmode: enforce\nmx: *.good.example\nmax_age: 604800\n"
    hosts.policies["good.example"] = PolicyFetch(FetchOutcome.FETCHED, policy)
    house = house_of(zone_with(records), hosts)
    answer = house.get("/tools/domain?domain=good.example")
    assert answer.status == 200
    report = answer.json
    spf = report["spf"]
    assert (spf["lookups"], spf["voidLookups"], spf["all"]) == (2, 0, "-")
    assert [child["domain"] for child in spf["tree"]["children"]] == ["_spf.good.example"]
    [key] = report["dkim"]["keys"]
    assert (key["selector"], key["type"], key["bits"]) == ("default", "ed25519", 256)
    assert report["dmarc"]["policy"] == "reject"
    assert report["mtaSts"]["policy"]["mode"] == "enforce"
    assert report["tlsRpt"]["rua"] == ["mailto:t@good.example"]
    assert [host["presence"] for host in report["dane"]["hosts"]] == ["found", "absent"]
    assert report["dnssec"]["status"] == "undetermined"


def test_domain_report_with_dns_down() -> None:
    """Without DNS every mechanism is undetermined, never absent."""
    zone = MemoryZone({}, failing={})
    zone.silent = set()
    names = ["lost.example", "_dmarc.lost.example", "_mta-sts.lost.example"]
    names += ["_smtp._tls.lost.example", "_domainkey.lost.example", "_dmarc.example"]
    zone.failing.update(dict.fromkeys(names, DnsStatus.TIMEOUT))
    house = house_of(zone)
    report = house.get("/tools/domain?domain=lost.example").json
    for mechanism in ("mx", "spf", "dkim", "dmarc", "mtaSts", "tlsRpt"):
        assert report[mechanism]["presence"] == "undetermined", mechanism
        assert {one["severity"] for one in report[mechanism]["findings"]} == {"undetermined"}


def test_everything_ends_at_the_deadline() -> None:
    """All slow name servers and hosts together take at most ten seconds."""
    zone = zone_with({}, silent=["mx2.good.example"])
    hosts = FakeHosts()
    hosts.is_stalling = True
    house = house_of(zone, hosts)
    pending = house.ask("GET", SCORE)
    for _ in range(99):
        house.pass_time(0.1)
    assert not pending.is_answered
    house.pass_time(0.2)
    found = pending.answer().json
    assert "STARTTLS" in found["undetermined"]
    assert factors(found)["STARTTLS"]["status"] == "warn"


def test_advice_contains_the_addresses_of_the_caller() -> None:
    """The advice contains the caller's addresses for reports, and the operator's consent.

    The cached result for other callers does not contain them.
    """
    config = config_in_memory(inbox=InboxOptions(domain="in.other.example"))
    zone = zone_with({"_dmarc.good.example": {"TXT": ["v=DMARC1; p=reject"]}})
    house = checking_house(zone, config)
    own = house.get("/reports").json["addresses"]
    report = house.get("/tools/domain?domain=good.example").json
    found = reputation(house)
    (of_report,) = report["dmarc"]["findings"]
    of_score = factors(found)["DMARC"]["fix"]
    for fix in (of_report, of_score):
        assert fix["id"] == "dmarc.no-reports"
        assert fix["record"]["value"] == f"v=DMARC1; p=reject; rua=mailto:{own['dmarc']}"
        (consent,) = fix["beside"]
        assert consent["name"] == "good.example._report._dmarc.in.other.example"
        assert "the operator of in.other.example" in fix["fix"]
    assert of_score["gain"] > 0
    (tls,) = report["tlsRpt"]["findings"]
    assert tls["record"]["value"] == f"v=TLSRPTv1; rua=mailto:{own['tls']}"
    second = reputation(house, key=house.issue_key(house.add_account("second")))
    assert second["cached"]
    offered = factors(second)["DMARC"]["fix"]["record"]["value"]
    assert "rua=mailto:dmarc-" in offered
    assert own["dmarc"] not in offered


def test_the_example_domain_has_no_report_address() -> None:
    """At the example domain, which receives no mail from outside, the advice is only text."""
    house = house_of(zone_with({"_dmarc.good.example": {"TXT": ["v=DMARC1; p=reject"]}}))
    fix = factors(reputation(house))["DMARC"]["fix"]
    assert "record" not in fix
    assert "Add an address for reports" in fix["fix"]


def test_the_logo_of_a_domain() -> None:
    """The report has the logo, its certificate and what is missing; the selector can be chosen."""
    logo_url, mark_url = "https://good.example/logo.svg", "https://good.example/mark.pem"
    record = {"TXT": [f"v=BIMI1; l={logo_url}; a={mark_url}; avp=brand;"]}
    zone = zone_with({"shop._bimi.good.example": record})
    hosts = FakeHosts()
    hosts.logos[logo_url] = FileFetch(FetchOutcome.FETCHED, GOOD_LOGO, MEDIA_TYPE)
    mark = bundle(Mark(domains=("good.example",)))
    hosts.logos[mark_url] = FileFetch(FetchOutcome.FETCHED, mark)
    house = house_of(zone, hosts)
    plain = house.get("/tools/domain?domain=good.example").json["bimi"]
    bimi = house.get("/tools/domain?domain=good.example&bimiSelector=shop").json["bimi"]
    wrong = house.get("/tools/domain?domain=good.example&bimiSelector=a_b!")
    assert (plain["presence"], plain["name"]) == ("absent", "default._bimi.good.example")
    assert (plain["logo"], plain["certificate"], plain["ready"]) == (None, None, False)
    assert (bimi["presence"], bimi["preference"], bimi["ready"]) == ("found", "brand", False)
    assert bimi["logo"]["title"] == "Shop"
    assert bimi["logo"]["image"].startswith("data:image/svg+xml;base64,")
    certificate = bimi["certificate"]
    assert (certificate["kind"], certificate["domains"]) == ("VMC", ["good.example"])
    assert (certificate["daysLeft"], certificate["logoMatches"]) == (300, True)
    assert certificate["unchecked"] == ["revocation", "timestamps"]
    assert (certificate["chain"], certificate["root"]) == ("incomplete", None)
    assert [one["id"] for one in bimi["findings"]] == ["bimi.certificate-chain"]
    assert wrong.status == 400


def test_a_parked_domain() -> None:
    """A domain that declares in every way that it has no mail is configured perfectly."""
    zone = MemoryZone(
        {
            "parked.example": {"A": ["8.8.4.2"], "MX": ["0 ."], "TXT": ["v=spf1 -all"]},
            "_dmarc.parked.example": {
                "TXT": ["v=DMARC1; p=reject; rua=mailto:d@parked.example"],
            },
        }
    )
    hosts = FakeHosts()
    house = house_of(zone, hosts)
    found = reputation(house, "/tools/reputation?domain=parked.example")
    assert (found["score"], found["grade"]) == (100, "A+")
    assert hosts.probed == []

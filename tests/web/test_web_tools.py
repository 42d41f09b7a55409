"""The MX check, the blocklist check and the catalogue over HTTP."""

from typing import Any

from msgspec.structs import replace

from mailcheck.checks.dns_answers import DnsStatus
from mailcheck.config.options import BlocklistOptions, DnsOptions
from tests.fakes.blocklist_test_entries import publish_list_test_entries
from tests.fakes.memory_zone import MemoryZone
from tests.house import House, config_in_memory, run
from tests.table import rows
from tests.web.checking import GOOD, checking_house, zone_with


def house_of(zone: MemoryZone, **sections: Any) -> House:
    """Create a house with a zone."""
    return checking_house(zone, config_in_memory(**sections))


def mx_check(house: House, domain: str = "good.example") -> Any:
    """Return the result of the MX check."""
    answer = house.get(f"/tools/mx-check?domain={domain}")
    assert answer.status == 200, answer
    return answer.json


def blacklist_check(house: House, query: str) -> Any:
    """Return the result of the blocklist check."""
    answer = house.get(f"/tools/blacklist-check?query={query}")
    assert answer.status == 200, answer
    return answer.json


def test_mx_check_of_a_good_domain() -> None:
    """Records are sorted by priority, IPv4 before IPv6, and include SPF and DMARC."""
    house = house_of(zone_with({}))
    assert mx_check(house, "Good.Example.") == {
        "domain": "good.example",
        "hasMx": True,
        "records": [
            {
                "exchange": "mx1.good.example",
                "priority": 10,
                "ip": ["8.8.4.10", "2001:4860::10"],
            },
            {"exchange": "mx2.good.example", "priority": 20, "ip": ["8.8.4.11"]},
        ],
        "nullMx": False,
        "implicitMx": False,
        "exists": True,
        "hasSpf": True,
        "spfRecord": "v=spf1 mx -all",
        "hasDmarc": True,
        "dmarcRecord": "v=DMARC1; p=reject; rua=mailto:dmarc@good.example",
        "dmarcDomain": "good.example",
    }


TWO_SPF = {**GOOD["good.example"], "TXT": ["v=spf1 -all", "v=spf1 mx -all"]}
BAD_SPF, BAD_DMARC = "v=spf1;mx;-all", "v=DMARC1 p=reject rua=mailto:d@poor.example"
POOR = {"poor.example": {"TXT": [BAD_SPF]}, "_dmarc.poor.example": {"TXT": [BAD_DMARC]}}
NO_MX = {"hasMx": False, "hasSpf": False, "hasDmarc": False, "records": []}


@rows(
    ("bare.example", {"bare.example": {"A": ["8.8.4.9"]}}, {**NO_MX, "implicitMx": True}),
    ("quiet.example", {"quiet.example": {"MX": ["0 ."]}}, {**NO_MX, "nullMx": True}),
    ("good.example", {**GOOD, "good.example": TWO_SPF}, {"hasSpf": True}),
    ("poor.example", POOR, {"spfIgnored": [BAD_SPF], "dmarcIgnored": [BAD_DMARC]}),
    ("mail.good.example", GOOD, {"hasDmarc": True, "dmarcDomain": "good.example"}),
)
def test_mx_check_of_other_domains(domain: str, zone: Any, expected: dict[str, Any]) -> None:
    """Mail may go to the address or nowhere; broken records are shown; DMARC may be above."""
    house = house_of(MemoryZone(zone))
    found = mx_check(house, domain)
    assert {name: found[name] for name in expected} == expected
    if domain == "poor.example":
        assert "separated by spaces" in found["dmarcProblems"][0]
    assert domain != "good.example" or found["spfProblems"]


@rows(
    (DnsStatus.TIMEOUT, "good.example", "MX", "MX"),
    (DnsStatus.SERVFAIL, "good.example", "TXT", "SPF"),
    (DnsStatus.REFUSED, "_dmarc.good.example", "TXT", "DMARC"),
)
def test_mx_check_undetermined(status: DnsStatus, name: str, rdtype: str, what: str) -> None:
    """An undetermined result is a 500 that names it and contains the other results."""
    keys = {"MX": "hasMx", "SPF": "hasSpf", "DMARC": "hasDmarc"}
    house = house_of(zone_with({}, failing={(name, rdtype): status}))
    answer = house.get("/tools/mx-check?domain=good.example")
    assert answer.status == 500
    assert answer.json["error"].startswith(f"{what} of good.example could not be determined")
    partial = answer.json["partial"]
    assert {key for key in keys.values() if key in partial} == {*keys.values()} - {keys[what]}


@rows(
    ("mx-check", "domain is missing"),
    ("mx-check?domain=https://example.com/x", "send only the domain: example.com"),
    ("mx-check?domain=zone.test", "exists in private networks only"),
    ("mx-check?domain=a.example&domain=b.example", "domain was sent 2 times"),
    ("blacklist-check", "query is missing"),
    ("blacklist-check?query=10.0.0.1", "is private"),
)
def test_bad_parameters(path: str, words: str) -> None:
    """An invalid parameter is a 400 that says what to send, and no query is sent."""
    zone = zone_with({})
    house = house_of(zone)
    answer = house.get(f"/tools/{path}")
    assert answer.status == 400
    assert words in answer.json["error"]
    assert not zone.asked


def test_special_use_names_where_allowed() -> None:
    """Test zones below .test can be checked if the operator allows it."""
    zone = MemoryZone({"zone.test": {"A": ["8.8.4.9"]}})
    house = house_of(zone, dns=DnsOptions(allow_special_use=True))
    assert mx_check(house, "zone.test")["implicitMx"]


def test_blacklist_check_of_a_clean_address() -> None:
    """An address on no list has 32 clean rows."""
    house = house_of(zone_with({}))
    found = blacklist_check(house, "8.8.4.10")
    catalogue = house.assembly.checks.catalogue
    assert (found["query"], found["queryType"]) == ("8.8.4.10", "ip")
    assert (found["totalChecked"], found["totalListed"], found["totalUnknown"]) == (32, 0, 0)
    assert [row["zone"] for row in found["results"]] == [
        one.zone for one in catalogue.address_profile
    ]
    assert {row["status"] for row in found["results"]} == {"clean"}


def test_blacklist_check_of_a_listed_address() -> None:
    """A listing has a meaning, a reason, a weight, and a URL to request removal."""
    listed = {
        "10.4.8.8.zen.spamhaus.org": {"A": ["127.0.0.2"], "TXT": ["https://example.org/why"]},
        "10.4.8.8.bl.spamcop.net": {"A": ["127.0.0.2"]},
        "10.4.8.8.b.barracudacentral.org": {"A": ["127.255.255.254"]},
    }
    house = house_of(zone_with(listed))
    found = blacklist_check(house, "8.8.4.10")
    lists = {row["zone"]: row for row in found["results"]}
    assert (found["totalListed"], found["totalUnknown"]) == (2, 1)
    zen = lists["zen.spamhaus.org"]
    assert (zen["listed"], zen["status"], zen["codes"]) == (True, "listed", ["127.0.0.2"])
    assert (zen["reason"], zen["matched"]) == ("https://example.org/why", ["8.8.4.10"])
    assert zen["weight"] >= 8
    refused = lists["b.barracudacentral.org"]
    assert (refused["listed"], refused["status"]) == (False, "unknown")
    assert "refuses queries" in refused["meaning"]


def test_blacklist_check_of_a_domain() -> None:
    """For a domain, its name, its registered domain and the addresses of its hosts are queried."""
    zone = zone_with(
        {
            "mail.good.example": {"MX": ["10 mx1.good.example."]},
            "good.example.dbl.spamhaus.org": {"A": ["127.0.1.2"]},
            "10.4.8.8.zen.spamhaus.org": {"A": ["127.0.0.3"]},
        }
    )
    house = house_of(zone)
    found = blacklist_check(house, "mail.good.example")
    assert (found["queryType"], found["totalListed"]) == ("domain", 2)
    assert found["addresses"] == ["8.8.4.10", "2001:4860::10"]
    matched = {row["zone"]: row["matched"] for row in found["results"] if row["listed"]}
    assert matched == {"dbl.spamhaus.org": ["good.example"], "zen.spamhaus.org": ["8.8.4.10"]}


def test_blacklist_check_of_an_ipv6_address() -> None:
    """Lists without IPv6 support have rows, too; the hint says how many were not queried."""
    house = house_of(zone_with({}))
    found = blacklist_check(house, "2001:4860::10")
    statuses = [row["status"] for row in found["results"]]
    assert len(statuses) == 32
    assert found["totalChecked"] == statuses.count("clean") == 32 - statuses.count("unsupported")
    assert 0 < found["totalChecked"] < 32
    unsupported = statuses.count("unsupported")
    assert found["hint"] == (
        f"{found['totalChecked']} of 32 lists were queried: "
        f"{unsupported} lists contain no IPv6 addresses"
    )


def test_a_list_that_is_switched_off() -> None:
    """A list that the operator has switched off is shown and not queried."""
    zone = zone_with({})
    house = house_of(zone, blocklists=BlocklistOptions(disabled=("zen.spamhaus.org",)))
    found = blacklist_check(house, "8.8.4.10")
    assert found["results"][0]["status"] == "disabled"
    assert found["totalChecked"] == 31
    assert found["hint"] == ("31 of 32 lists were queried: the operator has switched off 1 list")
    assert not any("zen.spamhaus.org" in name for name, _ in zone.asked_pairs)


def test_unresponsive_lists_take_the_deadline() -> None:
    """A list that never answers is unknown at the deadline, with its response time."""
    zone = zone_with({}, silent=["10.4.8.8.bl.spamcop.net"])
    house = house_of(zone)
    pending = house.ask("GET", "/tools/blacklist-check?query=8.8.4.10")
    house.pass_time(2.999)
    assert not pending.is_answered
    house.pass_time(0.001)
    found = pending.answer().json
    lists = {row["zone"]: row for row in found["results"]}
    spamcop = lists["bl.spamcop.net"]
    assert (spamcop["status"], spamcop["responseTime"]) == ("unknown", 3000)
    assert lists["zen.spamhaus.org"]["responseTime"] == 0
    assert found["totalUnknown"] == 1
    assert not zone.unanswered


def test_a_name_that_does_not_exist() -> None:
    """A domain that does not exist has no MX, SPF and DMARC, with an explanation."""
    house = house_of(zone_with({}))
    mx = house.get("/tools/mx-check?domain=nowhere.example")
    reputation = house.get("/tools/reputation?domain=nowhere.example")
    known = house.get("/tools/domain?domain=nowhere.example")
    assert mx.status == reputation.status == known.status == 200
    assert [mx.json[name] for name in ("hasMx", "hasSpf", "hasDmarc", "exists")] == [False] * 4
    assert "does not exist" in mx.json["note"]
    assert "spfProblems" not in mx.json
    found = reputation.json
    assert (found["score"], found["grade"], found["exists"]) == (0, "F", False)
    assert {(one["impact"], one["gain"]) for one in found["factors"]} == {(0, 0)}
    assert '"record":{' not in reputation.body.decode() + known.body.decode()
    told = [
        one for topic in known.json.values() if isinstance(topic, dict) for one in topic["findings"]
    ]
    assert [one["id"] for one in told] == ["mx.no-such-domain"]


def test_a_null_mx_is_explained() -> None:
    """Without an MX host `hasMx` is false. A null MX is not a problem, and the note explains it."""
    house = house_of(zone_with({"quiet.example": {"MX": ["0 ."]}}))
    found = house.get("/tools/mx-check?domain=quiet.example").json
    assert (found["hasMx"], found["nullMx"], found["exists"]) == (False, True, True)
    assert "accepts no mail" in found["note"]


def test_no_list_answers() -> None:
    """If no list answers, the result is a 500."""
    house = house_of(MemoryZone({}))
    lists = house.assembly.checks.catalogue.address_profile
    names: dict[str | tuple[str, str], DnsStatus] = {
        f"10.4.8.8.{one.zone}": DnsStatus.TIMEOUT for one in lists
    }
    house = house_of(MemoryZone({}, failing=names))
    answer = house.get("/tools/blacklist-check?query=8.8.4.10")
    assert answer.status == 500
    assert "no blocklist answered" in answer.json["error"]
    assert len(answer.json["partial"]["results"]) == 32


def test_no_list_is_usable() -> None:
    """If every list rejects the query, the result is a 500 as well, not a clean 200."""
    house = house_of(MemoryZone({}))
    lists = house.assembly.checks.catalogue.address_profile
    refusals = {f"10.4.8.8.{one.zone}": {"A": ["127.255.255.254"]} for one in lists}
    house = house_of(MemoryZone(refusals))
    answer = house.get("/tools/blacklist-check?query=8.8.4.10")
    assert answer.status == 500
    assert "32 gave no usable answer" in answer.json["error"]


def test_the_registered_domain_is_asked_about_too() -> None:
    """For a host below a public suffix, the registered domain is queried as well."""
    zone = MemoryZone({})
    house = house_of(zone)
    blacklist_check(house, "b.example.uk.com")
    asked = {question.name for question in zone.asked}
    assert {"b.example.uk.com.dbl.spamhaus.org", "example.uk.com.dbl.spamhaus.org"} <= asked
    assert "uk.com.dbl.spamhaus.org" not in asked


def test_undetermined_addresses() -> None:
    """If the domain's addresses are undetermined, address lists are unknown, not clean."""
    zone = MemoryZone({"lost.example": {}}, failing={("lost.example", "MX"): DnsStatus.SERVFAIL})
    house = house_of(zone)
    found = blacklist_check(house, "lost.example")
    statuses = [row["status"] for row in found["results"]]
    assert (statuses.count("clean"), statuses.count("unknown")) == (12, 20)


def test_a_disconnect_cancels_the_check() -> None:
    """The check of a client that disconnects is cancelled."""
    zone = zone_with({}, silent=["10.4.8.8.bl.spamcop.net"])
    house = house_of(zone)
    pending = house.ask("GET", "/tools/blacklist-check?query=8.8.4.10")
    assert zone.unanswered
    pending.hang_up()
    house.pass_time(5)


def test_daily_budgets() -> None:
    """A list is queried no more often than its daily budget allows (UTC)."""
    options = BlocklistOptions(daily_budgets=("bl.spamcop.net=2",))
    house = house_of(zone_with({}), blocklists=options)
    found = [blacklist_check(house, f"8.8.4.{n}")["totalUnknown"] for n in (1, 2, 3)]
    assert found == [0, 0, 1]
    house.pass_time(12 * 3600)
    assert blacklist_check(house, "8.8.4.4")["totalUnknown"] == 0


def test_catalogue() -> None:
    """The catalogue shows both profiles, untested before the first self-test, and no keys."""
    keys = BlocklistOptions(keys=("zen.spamhaus.org=sesame",))
    house = house_of(zone_with({}), blocklists=replace(keys, disabled=("bl.spamcop.net",)))
    answer = house.get("/tools/blacklists")
    lists = answer.json["blocklists"]
    assert answer.status == 200
    assert sum("ip" in one["profiles"] for one in lists) == 32
    assert sum("domain" in one["profiles"] for one in lists) == 32
    assert {one["health"] for one in lists} == {"untested", "disabled"}
    assert answer.json["testedAt"] is None
    assert b"sesame" not in answer.body


def test_catalogue_waits_for_the_first_test() -> None:
    """A request directly after startup waits for the first self-test of the lists."""
    zone = zone_with({})
    publish_list_test_entries(zone)
    house = house_of(zone)
    health = house.assembly.checks.health
    health.expect()
    pending = house.ask("GET", "/tools/blacklists")
    assert not pending.is_answered
    run(health.test_all())
    found = pending.answer().json
    assert {one["health"] for one in found["blocklists"]} == {"healthy"}
    assert found["testedAt"] is not None

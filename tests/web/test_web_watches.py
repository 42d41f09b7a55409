"""Watches over REST: created, run, changed, with alerts, deleted."""

import csv
import io
import json
from collections.abc import Mapping
from typing import Any

import pytest

from mailcheck.checks.bimi.evaluate import FileFetch
from mailcheck.checks.dns_answers import DnsStatus
from mailcheck.checks.hosts.mta_sts import FetchOutcome
from mailcheck.checks.hosts.starttls import ProbeOutcome
from mailcheck.core.domains.watches import MOST_AT_ONCE, WatchId
from mailcheck.core.instants import DAY, SECOND, Instant
from tests.fakes.clock_and_randomness import TEST_START
from tests.fakes.fake_hosts import FakeHosts
from tests.fakes.marks import GOOD_LOGO, Mark, bundle
from tests.fakes.memory_zone import MemoryZone
from tests.house import House, result_of, run
from tests.table import rows
from tests.web.checking import checking_house, zone_with

HOUR = 3_600

MX1 = "mx1.good.example"

IN_A_YEAR = Instant(int(TEST_START * 1000) + 365 * DAY)
IN_A_WEEK = Instant(int(TEST_START * 1000) + 7 * DAY)


class Watching:
    """A house that watches the correct domain, in an environment that a test changes."""

    def __init__(self) -> None:
        self.zone: MemoryZone = zone_with({})
        self.hosts = FakeHosts()
        for host in (MX1, "mx2.good.example"):
            self.hosts.certificates[host] = ("first", IN_A_YEAR)
        self.house: House = checking_house(self.zone, hosts=self.hosts)

    def ask(self, method: str, path: str, body: Any = None, status: int = 200) -> Any:
        """Send a request that must have the given status, and return its body."""
        data = None if body is None else json.dumps(body).encode()
        answer = self.house.ask(method, path, data=data).answer()
        assert answer.status == status, answer.body
        return answer.json

    def watch(self, target: str = "good.example", **choice: Any) -> str:
        """Create a watch, and return its path."""
        made = self.ask("POST", "/watches", {"target": target, **choice})
        return f"/watches/{made['id']}"

    def alerts_after_run(self, path: str) -> Mapping[str, str]:
        """Run a watch after an hour. Return its open alerts, and how the ended ones ended."""
        self.house.pass_time(HOUR)
        shown = self.ask("POST", f"{path}/run")
        return {one["sentence"]: one["ending"] for one in shown["alerts"]}


@pytest.fixture
def watching() -> Watching:
    """A house without watches."""
    return Watching()


def test_the_first_check_raises_no_alert(watching: Watching) -> None:
    """The first check sets score, hosts and problems. It raises no alert."""
    one = watching.watch(selectors=["default", "gone"])
    assert watching.ask("GET", one)["lastRunAt"] is None
    shown = watching.ask("POST", f"{one}/run")
    assert (shown["grade"], shown["alerts"]) == ("A+", [])
    assert [problem["about"] for problem in shown["problems"]] == ["DKIM: missing gone"]
    (listed,) = watching.ask("GET", "/watches")["watches"]
    assert (shown["problemCount"], listed["problemCount"]) == (1, 1)
    assert shown["hosts"][0] == {
        "host": MX1,
        "answers": True,
        "certificateEndsOn": "2027-11-21",
        "certificateDays": 364,
    }
    assert watching.ask("GET", f"{one}/history")["changes"] == []


def test_several_problems_raise_alerts(watching: Watching) -> None:
    """A record is deleted, a list adds an address, a certificate changes, names do not resolve.

    Each raises one alert, which ends when it is fixed. A result that is undetermined for two
    checks raises none.
    """
    zone, hosts = watching.zone, watching.hosts
    one = watching.watch()
    assert watching.alerts_after_run(one) == {}
    dmarc = zone.published("_dmarc.good.example", "TXT")
    zone.publish("_dmarc.good.example", "TXT")
    (first,) = watching.alerts_after_run(one)
    assert "DMARC" in first
    zone.publish("10.4.8.8.zen.spamhaus.org", "A", "127.0.0.2")
    hosts.certificates[MX1] = ("second", IN_A_WEEK)
    hosts.outcomes["mx2.good.example"] = ProbeOutcome.UNREACHABLE
    found = watching.alerts_after_run(one)
    rest = sorted(set(found) - {first})
    assert rest[0].startswith("Spamhaus ZEN lists 8.8.4.10")
    assert rest[1:] == [
        f"The certificate of {MX1} expires on 2026-11-28, in less than 14 days.",
        "mx2.good.example accepts no connections on port 25, so mail to it waits or bounces.",
    ]
    zone.failing = dict.fromkeys(("good.example", "_dmarc.good.example"), DnsStatus.TIMEOUT)
    assert watching.alerts_after_run(one) == found
    assert watching.alerts_after_run(one) == found
    assert len(watching.alerts_after_run(one)) == len(found) + 1
    zone.failing = {}
    zone.publish("_dmarc.good.example", "TXT", *dmarc)
    zone.publish("10.4.8.8.zen.spamhaus.org", "A")
    hosts.certificates[MX1] = ("third", IN_A_YEAR)
    hosts.outcomes = {}
    over = watching.alerts_after_run(one)
    assert len(over) == 5
    assert all(over.values())
    assert watching.ask("GET", "/watches")["openAlerts"] == []
    history = watching.ask("GET", f"{one}/history")
    assert history["scores"][0]["score"] == history["scores"][-1]["score"] == 100
    assert {host["host"]: host["uptime"] for host in history["hosts"]}[MX1] == 1
    assert 0 < {host["host"]: host["uptime"] for host in history["hosts"]}["mx2.good.example"] < 1


def test_an_expiring_certificate(watching: Watching) -> None:
    """A warning about expiry becomes an error on that day. A new certificate ends both."""
    one = watching.watch()
    watching.hosts.certificates[MX1] = ("first", IN_A_WEEK)
    assert watching.alerts_after_run(one) == {}
    watching.house.pass_time(7 * DAY / SECOND)
    ((told, ending),) = watching.alerts_after_run(one).items()
    assert (told, ending) == (f"The certificate of {MX1} expired on 2026-11-28.", "")
    watching.hosts.certificates[MX1] = ("second", IN_A_YEAR)
    assert watching.alerts_after_run(one)[told]


def test_a_failed_tls_handshake(watching: Watching) -> None:
    """A host that fails the TLS handshake is not down; the alert is about missing encryption."""
    one = watching.watch()
    watching.alerts_after_run(one)
    watching.hosts.outcomes[MX1] = ProbeOutcome.HANDSHAKE_FAILED
    found = watching.alerts_after_run(one)
    assert any("STARTTLS" in sentence for sentence in found), found
    shown = watching.ask("GET", one)
    assert {host["host"]: host["answers"] for host in shown["hosts"]}[MX1]


def test_a_domain_that_does_not_exist_any_more(watching: Watching) -> None:
    """A domain that does not exist any more raises one alert, not one for each lost record."""
    one = watching.watch()
    watching.alerts_after_run(one)
    for name in ("good.example", "mx1.good.example", "mx2.good.example"):
        for rdtype in ("A", "AAAA", "MX", "TXT"):
            watching.zone.publish(name, rdtype)
    watching.zone.publish("_dmarc.good.example", "TXT")
    watching.zone.publish("default._domainkey.good.example", "TXT")
    (sentence,) = watching.alerts_after_run(one)
    assert sentence.startswith("The domain good.example does not exist in DNS")


def test_an_address(watching: Watching) -> None:
    """An address is watched by blocklists and reverse DNS; it has no score."""
    one = watching.watch("8.8.4.10")
    shown = watching.ask("POST", f"{one}/run")
    assert (shown["kind"], shown["score"], shown["hosts"]) == ("address", None, [])
    watching.zone.publish("10.4.8.8.in-addr.arpa", "PTR")
    (sentence,) = watching.alerts_after_run(one)
    assert sentence.startswith("The address 8.8.4.10 has no name")


def test_the_history_as_a_table(watching: Watching) -> None:
    """The CSV contains each change and each score. Formulas in records are escaped."""
    one = watching.watch()
    watching.alerts_after_run(one)
    watching.zone.publish("good.example", "MX", "10 mx1.good.example.")
    watching.zone.publish("default._domainkey.good.example", "TXT", "v=DKIM1; p=")
    watching.alerts_after_run(one)
    answer = watching.house.get(f"{one}/history.csv")
    rows = list(csv.DictReader(io.StringIO(answer.body.decode())))
    (moved,) = [row for row in rows if (row["topic"], row["name"]) == ("MX", "record")]
    assert (moved["target"], moved["after"]) == ("good.example", "10 mx1.good.example.")
    assert {row["topic"] for row in rows if row["kind"] == "score"} >= {"score", "SPF", "DKIM"}
    assert not any(cell.startswith(("=", "+", "-", "@")) for row in rows for cell in row.values())
    since = watching.house.get(f"{one}/history.csv?since=2027-01-01T00:00:00Z")
    assert len(since.body.splitlines()) == 1


def test_many_at_once(watching: Watching) -> None:
    """Targets that cannot be watched are listed, and the others are watched."""
    wanted = [{"target": "a.good.example"}, {"target": "no domain"}, {"target": "10.0.0.1"}]
    made = watching.ask("POST", "/watches/many", {"watches": [*wanted, wanted[0]]})
    assert [one["target"] for one in made["made"]] == ["a.good.example"]
    assert [one["target"] for one in made["refused"]] == [
        "no domain",
        "10.0.0.1",
        "a.good.example",
    ]
    too_many = {"watches": [{"target": f"d{n}.example"} for n in range(MOST_AT_ONCE + 1)]}
    watching.ask("POST", "/watches/many", too_many, 400)
    assert watching.ask("GET", "/watches?limit=1")["total"] == 1


@rows(
    ({"target": "good.example", "everyMinutes": 14}, "everyMinutes must be from 15 to 1440"),
    ({"target": "good.example", "quiet": "22-6"}, "quiet must be two times of day"),
    ({"target": "good.example", "selectors": ["a b"]}, "selectors"),
    ({"target": "good.example", "addresses": ["10.0.0.1"]}, "addresses"),
    ({"target": "8.8.8.8", "selectors": ["s1"]}, "selectors and addresses are for domains"),
    ({"target": "localhost"}, "target"),
)
def test_an_invalid_watch(watching: Watching, body: Any, problem: str) -> None:
    """An invalid watch is rejected with the problem."""
    assert problem in watching.ask("POST", "/watches", body, 400)["error"]


def test_a_watch_is_changed_and_deleted(watching: Watching) -> None:
    """Absent fields stay the same, a paused watch has no next check, a deleted one is gone."""
    one = watching.watch(selectors=["default"], quiet="22:00-06:30")
    changed = watching.ask("PATCH", one, {"everyMinutes": 15, "paused": True})
    assert (changed["everyMinutes"], changed["nextRunAt"]) == (15, None)
    # JSON Schema considers 60.0 an integer.
    assert watching.ask("PATCH", one, {"everyMinutes": 30.0})["everyMinutes"] == 30
    assert (changed["selectors"], changed["quiet"]) == (["default"], "22:00-06:30")
    assert watching.ask("PATCH", one, {"quiet": "", "paused": False})["quiet"] is None
    watching.ask("PATCH", one, {"target": "other.example"}, 400)
    watching.ask("DELETE", one)
    for method, path in (("GET", one), ("PATCH", one), ("DELETE", one), ("POST", f"{one}/run")):
        watching.ask(method, path, {} if method == "PATCH" else None, 404)


def test_due_watches_are_run(watching: Watching) -> None:
    """Due watches are run at once, then in their interval, and after a restart."""
    runner = watching.house.assembly.watches.runner
    one = watching.watch(everyMinutes=15)
    run(runner.start())
    first = watching.ask("GET", one)
    assert first["lastRunAt"] is not None
    watching.house.pass_time(900)
    run(runner.poll())
    second = watching.ask("GET", one)
    assert second["lastRunAt"] > first["lastRunAt"]
    assert second["nextRunAt"] > second["lastRunAt"]
    run(runner.poll())
    assert watching.ask("GET", one)["lastRunAt"] == second["lastRunAt"]
    watching.zone.silent.add("good.example")
    watching.house.pass_time(900)
    run(runner.poll())
    assert runner.count() == 1
    run(runner.stop())
    watching.zone.silent.clear()
    run(runner.start())
    watching.house.pass_time(30)  # queries from before the stop are completed
    assert watching.ask("GET", one)["lastRunAt"] > second["lastRunAt"]
    run(runner.stop())


def test_watches_use_half_of_the_budget(watching: Watching) -> None:
    """Watches use at most half of the daily budget of a list; the rest is undetermined."""
    checks = watching.house.assembly.checks
    (zen,) = [one for one in checks.catalogue.blocklists if one.zone == "zen.spamhaus.org"]
    limit = checks.budgets.limit_of(zen)
    assert limit is not None
    assert run(checks.budgets.take([(zen, limit // 2)])) == [True]
    budgets = checks.watched.blocklists.lists.budgets
    assert run(budgets.take([(zen, 1)])) == [False]
    assert run(checks.budgets.take([(zen, 1)])) == [True]


def test_a_requested_check_waits_for_a_running_one(watching: Watching) -> None:
    """A requested check waits for a running one, and sees what has changed since.

    It does not wait for a check of another daemon. A disconnect does not end a check.
    """
    house, one = watching.house, watching.watch()
    watching.ask("POST", f"{one}/run")
    watching.zone.silent.add("good.example")
    first = house.ask("POST", f"{one}/run")
    second = house.ask("POST", f"{one}/run")
    first.hang_up()
    house.pass_time(3)
    assert not second.is_answered
    watching.zone.silent.clear()
    watching.zone.publish("_dmarc.good.example", "TXT")
    house.pass_time(30)
    (alert,) = second.answer().json["alerts"]
    assert "DMARC" in alert["sentence"]
    store, path = house.assembly.watches.store, one.rpartition("/")[2]
    taken = store.claim_one(
        house.account.id, WatchId(path), "other", house.assembly.runtime.now(), 60_000
    )
    assert result_of(taken) is not None
    watching.ask("POST", f"{one}/run", status=409)


def test_an_expiring_certificate_of_a_logo(watching: Watching) -> None:
    """A watch tells a month before the certificate of a logo expires, once."""
    logo, mark = "https://good.example/logo.svg", "https://good.example/mark.pem"
    watching.zone.publish("default._bimi.good.example", "TXT", f"v=BIMI1; l={logo}; a={mark};")
    watching.hosts.logos[logo] = FileFetch(FetchOutcome.FETCHED, GOOD_LOGO, "image/svg+xml")
    watching.hosts.logos[mark] = FileFetch(FetchOutcome.FETCHED, bundle())
    one = watching.watch()
    assert watching.alerts_after_run(one) == {}
    watching.hosts.logos[mark] = FileFetch(FetchOutcome.FETCHED, bundle(Mark(ends=31)))
    assert watching.alerts_after_run(one) == {}
    watching.house.pass_time(2 * DAY / SECOND)
    (told,) = watching.alerts_after_run(one)
    assert "expires on 2026-12-22, in 28 days" in told
    watching.house.pass_time(DAY / SECOND)
    assert list(watching.alerts_after_run(one)) == [told]

"""Measure the cost of watches, and how long the page with a year of history takes.

Run it with ``.venv/bin/python -m benchmarks.watches``. A daemon watches a number of domains. A real
name server on loopback holds them beside clean blocklists. All of them have one mail host, the
daemon itself, which is probed once in ten minutes like every host. New watches are due at once, so
the CPU time of the daemon until all have run is the cost of so many runs. The page is that of a
watch with 2,000 changes and 800 scores in a year, from an application in memory. There is no peer,
because no other self-hosted tool keeps such histories.

Targets: 1,000 watched domains an hour take less than 15 % of one core; the page less than 200 ms.
"""

import argparse
import json
import statistics
import tempfile
import time
from pathlib import Path

from benchmarks.measuring import cpu_seconds
from mailcheck.core.domains.watches import WatchChange, WatchId, WatchScore
from mailcheck.core.instants import DAY, Instant
from mailcheck.store.domains.watch_store import RunRecord
from tests.fakes.blocklist_test_entries import publish_list_test_entries
from tests.fakes.memory_zone import MemoryZone
from tests.house import result_of
from tests.servers.daemon import Daemon
from tests.servers.mail_host import running_mail_host
from tests.servers.name_server import running_name_server
from tests.web.checking import zone_with
from tests.web.dashboard.tools_visit import visit_tools

WATCHED = 1_000
"""Number of domains of the target, in an hour."""

HOUR = 3_600  # seconds
CHANGES, SCORES = 2_000, 800
ROUNDS = 20
PATIENCE = 900.0  # seconds

KEY = "v=DKIM1; k=ed25519; p=11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo="  # RFC 8463 A.2


def zone_of(names: list[str]) -> MemoryZone:
    """Return a zone with these domains, all configured well, and with working blocklists."""
    zone = MemoryZone(
        {
            "mail.good.test": {"A": ["127.0.0.1"]},
            "1.0.0.127.in-addr.arpa": {"PTR": ["mail.good.test."]},
        }
    )
    for name in names:
        zone.publish(name, "A", "127.0.0.1")
        zone.publish(name, "MX", "10 mail.good.test.")
        zone.publish(name, "TXT", "v=spf1 mx -all")
        zone.publish(f"_dmarc.{name}", "TXT", f"v=DMARC1; p=reject; rua=mailto:dmarc@{name}")
        zone.publish(f"default._domainkey.{name}", "TXT", KEY)
    publish_list_test_entries(zone)
    return zone


def measure_runs(domains: int) -> None:
    """Watch domains, and print the cost of their runs."""
    names = [f"d{number}.test" for number in range(domains)]
    dates = dict.fromkeys(names, "2010-01-01T00:00:00Z")
    with (
        tempfile.TemporaryDirectory() as folder,
        running_name_server(zone_of(names)) as dns,
        running_mail_host(Path(folder), "mail.good.test", dns, dates) as daemon,
    ):
        time.sleep(5)  # for the self-test of the blocklists at startup
        pid = daemon.process.pid
        before, began = cpu_seconds(pid), time.monotonic()
        body = {"watches": [{"target": name} for name in names]}
        made = daemon.post("/watches/many", json.dumps(body).encode()).json
        assert len(made["made"]) == domains, made["refused"][:3]
        _wait_for_runs(daemon, domains)
        took, used = time.monotonic() - began, cpu_seconds(pid) - before
        one = daemon.get(f"/watches/{made['made'][0]['id']}").json
    each = used / domains
    print(f"{domains} runs in {took:.1f} s, {each * 1e3:.0f} ms of CPU each (score {one['score']})")
    print(f"{WATCHED} watched domains an hour: {each * WATCHED / HOUR:.1%} of one core")


def _wait_for_runs(daemon: Daemon, domains: int) -> None:
    deadline = time.monotonic() + PATIENCE
    page = -(-domains // 100)
    left = set(range(1, page + 1))
    while left:
        assert time.monotonic() < deadline, "the watches were not run in time"
        time.sleep(2)
        number = min(left)
        found = daemon.get("/watches", limit=100, page=number).json["watches"]
        if all(one["lastRunAt"] for one in found):
            left.remove(number)


def measure_page() -> None:
    """Fill a year of history, and print how long its page takes."""
    browser = visit_tools(zone_with({}))
    browser.open("/watches")
    answer = browser.submit("/watches", target="good.example", every="60")
    path = answer.headers["location"].partition("?")[0]
    browser.open(path)
    browser.submit(f"{path}/run")
    house = browser.house
    store, now = house.assembly.watches.store, house.assembly.runtime.now()
    watch_id = WatchId(path.rpartition("/")[2])
    rows = house.sqlite._connection.execute("SELECT account_id FROM watch").fetchone()
    for number in range(CHANGES):
        at = Instant(now - 365 * DAY + number * 365 * DAY // CHANGES)
        watch = result_of(store.claim_one(rows[0], watch_id, "fill", now, 60_000))
        change = WatchChange(at, "SPF", "record", "v=spf1 -all", "v=spf1 mx -all", "New.", "note")
        score = None
        if number * SCORES // CHANGES != (number + 1) * SCORES // CHANGES:
            score = WatchScore(at, 60 + number % 40, "B", {"SPF": number % 20, "DKIM": 15})
        recorded = RunRecord(watch, now, now, watch.state, (change,), score=score)
        assert result_of(store.record("fill", recorded))
    house.sqlite._connection.execute("UPDATE watch SET created_at = created_at - ?", (366 * DAY,))
    times = []
    for _ in range(ROUNDS):
        began = time.perf_counter()
        answer = browser.open(f"{path}?days=365")
        times.append(time.perf_counter() - began)
        assert answer.status == 200
    median, worst = statistics.median(times) * 1e3, max(times) * 1e3
    print(f"the page of a year ({len(answer.body):,} bytes): {median:.0f} ms, worst {worst:.0f} ms")
    house.close()


def main() -> None:
    """Measure both."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--domains", type=int, default=300, help="number of watched domains")
    options = parser.parse_args()
    measure_page()
    measure_runs(options.domains)


if __name__ == "__main__":
    main()

"""Domain checks over HTTP and on the command line, in a test zone on loopback.

One real name server has good, broken, listed and parked domains and the blocklists. The daemon
itself is the probed mail host, with a certificate of the tests' authority, and a small RDAP server
is the registry.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
import pytest_twisted

from tests.cli.command_line import Outcome, run_work
from tests.fakes.blocklist_test_entries import publish_list_test_entries
from tests.fakes.memory_zone import MemoryZone
from tests.servers.daemon import Daemon
from tests.servers.mail_host import running_mail_host
from tests.servers.name_server import running_name_server

KEY = "v=DKIM1; k=ed25519; p=11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo="  # RFC 8463 A.2

NAMES = ("good.test", "broken.test", "listed.test", "parked.test")

RECORDS = {
    "good.test": {"A": ["127.0.0.1"], "MX": ["10 mail.good.test."], "TXT": ["v=spf1 mx -all"]},
    "mail.good.test": {"A": ["127.0.0.1"]},
    "_dmarc.good.test": {"TXT": ["v=DMARC1; p=reject; rua=mailto:dmarc@good.test"]},
    "default._domainkey.good.test": {"TXT": [KEY]},
    "1.0.0.127.in-addr.arpa": {"PTR": ["mail.good.test."]},
    "broken.test": {"A": ["127.0.0.1"], "MX": ["10 gone.broken.test."], "TXT": ["v=spf1 +all"]},
    "listed.test": {
        "A": ["127.0.0.1"],
        "MX": ["10 mail.good.test."],
        "TXT": ["v=spf1 mx -all"],
    },
    "listed.test.dbl.spamhaus.org": {"A": ["127.0.1.2"], "TXT": ["https://lists.test/why"]},
    "7.0.0.127.zen.spamhaus.org": {"A": ["127.0.0.2"]},
    "parked.test": {"A": ["127.0.0.1"], "MX": ["0 ."], "TXT": ["v=spf1 -all"]},
    "_dmarc.parked.test": {"TXT": ["v=DMARC1; p=reject; rua=mailto:dmarc@parked.test"]},
}


def zone() -> MemoryZone:
    """Return the zone, with the test entries of every working list (RFC 5782 5)."""
    zone = MemoryZone(RECORDS)
    publish_list_test_entries(zone)
    return zone


@dataclass(frozen=True)
class World:
    """A daemon, and the command line beside it with the same settings."""

    daemon: Daemon

    def get(self, tool: str, **query: str) -> Any:
        """Send a request to the daemon."""
        answer = self.daemon.get(f"/tools/{tool}", **query)
        assert answer.status == 200, answer
        return answer.json

    async def mailcheck(self, *arguments: str, **changes: str) -> Outcome:
        """Run the command line."""
        return await run_work({**self.daemon.environment, **changes}, *arguments)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """Run the world once for all tests of this module."""
    folder = tmp_path_factory.mktemp("checks")
    dates = dict.fromkeys(NAMES, "2010-01-01T00:00:00Z")
    with (
        running_name_server(zone()) as dns,
        running_mail_host(folder, "mail.good.test", dns, dates) as daemon,
    ):
        yield World(daemon)


@pytest_twisted.ensureDeferred
async def test_a_good_domain_has_all_points(world: World) -> None:
    """A domain without faults gets 100 points over real sockets."""
    found = world.get("reputation", domain="good.test")
    assert (found["score"], found["grade"], found["undetermined"]) == (100, "A+", [])
    assert found["details"]["tls"] == {"valid": True, "starttls": True, "determined": True}
    assert found["details"]["domainAge"]["registrationDate"] == "2010-01-01"
    assert world.get("mx-check", domain="good.test")["records"] == [
        {"exchange": "mail.good.test", "priority": 10, "ip": ["127.0.0.1"]}
    ]
    shown = await world.mailcheck("reputation", "good.test")
    assert shown.status == 0, shown
    assert "good.test  100/100 A+" in shown.output
    assert shown.errors == ""


@pytest_twisted.ensureDeferred
async def test_a_listed_domain_and_address(world: World) -> None:
    """Listings are named with their reason, over HTTP and on the command line."""
    found = world.get("blacklist-check", query="listed.test")
    assert [row["zone"] for row in found["results"] if row["listed"]] == ["dbl.spamhaus.org"]
    assert world.get("blacklist-check", query="127.0.0.7")["totalListed"] == 1
    shown = await world.mailcheck("blacklist", "listed.test")
    assert shown.status == 1, shown
    assert "1 listed" in shown.output
    shape = json.loads((await world.mailcheck("blacklist", "127.0.0.7", "--json")).output)
    assert (shape["queryType"], shape["totalListed"], len(shape["results"])) == ("ip", 1, 32)


@pytest_twisted.ensureDeferred
async def test_dns_that_is_down(world: World) -> None:
    """Without a resolver no record is called missing: exit status 3 means undetermined."""
    down = {"MAILCHECK_DNS_RESOLVERS": "127.0.0.1:9"}
    for command in ("mx", "blacklist", "reputation", "domain"):
        shown = await world.mailcheck(command, "good.test", **down)
        assert shown.status == 3, shown
        assert not [line for line in shown.output.splitlines() if line.endswith(" none")]

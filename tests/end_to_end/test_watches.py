"""A watch while its zone changes: alerts are sent and end.

A real name server has the zone, the daemon is its mail host, and the command line runs the watch.
The daemon is restarted in between, and keeps its state.
"""

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cli.command_line import Outcome, run_command
from tests.fakes.blocklist_test_entries import publish_list_test_entries
from tests.fakes.memory_zone import MemoryZone
from tests.servers.certificates import self_signed
from tests.servers.clocks import accelerated
from tests.servers.daemon import HOST, Daemon
from tests.servers.mail_host import running_mail_host
from tests.servers.mail_relay import PATIENCE, MailRelay, running_relay
from tests.servers.name_server import publishing_name_server

DMARC = "v=DMARC1; p=reject; rua=mailto:dmarc@good.test"

LISTED = "7.0.0.127.zen.spamhaus.org"

RECORDS = {
    "good.test": {"A": ["127.0.0.1"], "MX": ["10 mail.good.test."], "TXT": ["v=spf1 mx -all"]},
    "mail.good.test": {"A": ["127.0.0.1"]},
    "out.good.test": {"A": ["127.0.0.7"]},
    "7.0.0.127.in-addr.arpa": {"PTR": ["out.good.test."]},
    "_dmarc.good.test": {"TXT": [DMARC]},
}

OPS = "ops@good.test"

DEAD = f"{HOST}:9"
"""The address of a resolver that does not exist."""


class World:
    """A watch over a zone that a test changes."""

    def __init__(
        self,
        daemon: Daemon,
        relay: MailRelay,
        zone: MemoryZone,
        publish: Callable[[], None],
        folder: Path,
    ) -> None:
        self.daemon = daemon
        self.relay = relay
        self.zone = zone
        self.publish = publish
        self._folder = folder
        self._given = dict(daemon.options)

    def watch(self, *arguments: str) -> Outcome:
        """Run ``mailcheck watch`` beside the daemon."""
        url = f"http://{HOST}:{self.daemon.http_port}"
        key = str(self.daemon.folder / "var" / "api-key")
        return run_command("watch", *arguments, "--url", url, "--key-file", key)

    def run(self, status: int) -> dict[str, Any]:
        """Run the watch, and return its alerts by subject."""
        shown = self.watch("show", "good.test", "--run", "--json")
        assert shown.status == status, shown
        return {one["sentence"]: one["ending"] for one in json.loads(shown.output)["alerts"]}

    def until_it_says(self, line: str) -> None:
        """Show the watch until a line appears."""
        deadline = time.monotonic() + PATIENCE
        while line not in self.watch("show", "good.test").output:
            assert time.monotonic() < deadline, f"never shown: {line}"
            time.sleep(0.02)

    def start_again(self, **options: object) -> None:
        """Stop the daemon, and start it with changed options."""
        self.daemon.stop()
        self.daemon.options = {**self._given, **options}
        self.daemon.start()

    def swapped(self) -> dict[str, object]:
        """Return the options of a daemon with another certificate of an unknown authority."""
        certificate, key = self_signed("mail.good.test").write_to(self._folder, "swapped")
        return {"smtp_certificate": str(certificate), "smtp_private_key": str(key)}


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    """A zone without faults, working blocklists, a daemon, and a relay for its mail."""
    zone = MemoryZone(RECORDS)
    publish_list_test_entries(zone)
    registered = {"good.test": "2010-01-01T00:00:00Z"}
    with (
        publishing_name_server(zone) as (server, publish),
        running_relay() as relay,
        running_mail_host(
            tmp_path,
            "mail.good.test",
            server,
            registered,
            environment=accelerated(),  # alerts are sent every ten seconds
            alerts_smtp_relay=f"127.0.0.1:{relay.port}",
            alerts_tls="never",
            alerts_allow_recipients=[f"developer={OPS}"],
        ) as daemon,
    ):
        yield World(daemon, relay, zone, publish, tmp_path)


def open_in(alerts: dict[str, Any]) -> list[str]:
    """Return the sentences of open alerts."""
    return [sentence for sentence, ending in alerts.items() if not ending]


def test_exactly_the_right_alerts_come_and_end(world: World) -> None:
    """A missing record, a listing, a changed certificate and a dead resolver each raise one alert.

    Recipients by mail get the first alerts too, although the relay rejects mail until a restart.
    """
    chosen = ("--ip", "127.0.0.7", "--every", "1440", "--alert-to")
    refused = world.watch("add", "good.test", *chosen, "boss@good.test")
    assert (refused.status, "does not allow" in refused.errors) == (1, True)
    world.relay.replies = {"MAIL": b"451 later"}
    added = world.watch("add", "good.test", *chosen, OPS)
    assert added.status == 0, added
    assert world.run(0) == {}
    world.zone.publish("_dmarc.good.test", "TXT")
    world.zone.publish(LISTED, "A", "127.0.0.2")
    world.publish()
    wrong = open_in(world.run(1))
    assert len(wrong) == 2
    assert any(one.startswith("Spamhaus ZEN lists 127.0.0.7") for one in wrong)
    assert any("DMARC" in one for one in wrong)
    told = world.daemon.get("/inbox/wait", tag="watch-alerts", after="c0", timeout=30).json
    assert told["subject"] == "2 alerts: good.test"
    world.until_it_says(f"alerts do not reach {OPS} (active): the relay answered 451 later")

    world.zone.publish("_dmarc.good.test", "TXT", DMARC)
    world.zone.publish(LISTED, "A")
    world.publish()
    world.relay.replies = {}
    world.start_again(**world.swapped())
    (taken,) = world.relay.wait_for(1)
    assert (taken.recipient, taken.mail["Subject"]) == (OPS, "2 alerts: good.test")
    after = world.run(1)
    (certificate,) = open_in(after)
    assert certificate.startswith("The certificate of mail.good.test is not from a known authority")
    assert len(after) == 3

    world.start_again(**world.swapped(), dns_resolvers=[DEAD])
    assert world.run(1) == world.run(1) == after
    (lost,) = [one for one in open_in(world.run(1)) if one != certificate]
    assert lost.startswith("Could not be determined in 3 runs in a row: ")
    assert "SPF" in lost

    world.start_again()
    assert open_in(world.run(0)) == []
    listed = world.watch("list")
    assert (listed.status, len(listed.lines)) == (0, 1)
    assert world.watch("remove", "good.test").status == 0
    assert world.daemon.get("/watches").json["total"] == 0

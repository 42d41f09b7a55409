"""Watches on several daemons: each run belongs to one daemon, each alert is sent once, and the runs
of a crashed daemon move to another one.
"""

import contextlib
import json
import re
import smtplib
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.blocklist_test_entries import publish_list_test_entries
from tests.fakes.memory_zone import MemoryZone
from tests.interop.test_cluster_analyses import Two, address_of, stopped
from tests.servers.clocks import accelerated
from tests.servers.daemon import HOST, Daemon
from tests.servers.holding_name_server import HoldingNameServer, running_holding_name_server
from tests.servers.name_server import publishing_name_server
from tests.servers.postgresql import PostgresqlServer
from tests.servers.redis import running_redis

TARGET, REVERSE, NAME = "127.0.0.7", "7.0.0.127.in-addr.arpa", "out.good.test."

RUNS = re.compile(r'mailcheck_watch_runs_total\{outcome="(?:un)?changed"\} (\d+)')

pytestmark = pytest.mark.end_to_end


class World(Two):
    """Two daemons that watch an address; DNS answers to the first one can be delayed."""

    def __init__(
        self,
        folder: Path,
        postgresql: PostgresqlServer,
        redis_url: str,
        held: HoldingNameServer,
        zone: MemoryZone,
        publish: Callable[[], None],
    ) -> None:
        super().__init__(folder, postgresql, redis_url, held.server)
        self.held = held
        self._zone = zone
        self._publish = publish
        self._began = time.time()

    def running(self, name: str, **options: Any) -> contextlib.AbstractContextManager[Daemon]:
        """Run one of them with the accelerated clock of both: it polls every few seconds."""
        environment = accelerated(since=self._began)
        return super().running(name, environment=environment, **options)

    def name_is(self, *names: str) -> None:
        """Change the reverse DNS of the address."""
        self._zone.publish(REVERSE, "PTR", *names)
        self._publish()

    def runs(self, *names: str) -> int:
        """Return the number of finished runs."""
        urls = [f"http://{HOST}:{self._metrics[name]}/metrics" for name in names]
        texts = [urllib.request.urlopen(url, timeout=60).read().decode() for url in urls]
        return sum(int(count) for text in texts for count in RUNS.findall(text))

    def let_it_be_due(self) -> None:
        """Let the interval end."""
        self._postgresql.run("UPDATE watch SET next_run_at = 1", self._database)

    def begin_long_ago(self) -> None:
        """Let the schedule of a heartbeat begin a day ago."""
        sql = (
            "UPDATE watch SET next_run_at = 1, settings = regexp_replace(settings, "
            "'\"since\": ?[0-9]+', '\"since\":' || (next_run_at - 86400000))"
        )
        self._postgresql.run(sql, self._database)

    def let_its_lease_end(self) -> None:
        """Let the lease of the watch expire."""
        self._postgresql.run("UPDATE watch SET held_until = 1", self._database)

    def is_taken(self) -> bool:
        """Return whether a daemon is running the watch."""
        sql = "SELECT holder IS NOT NULL FROM watch"
        return self._postgresql.run(sql, self._database) == [(True,)]


def told(daemon: Daemon) -> list[str]:
    """Return the subjects of alert mails, oldest first."""
    listed = daemon.get("/inbox/messages", tag="watch-alerts").json["messages"]
    return [message["subject"] for message in reversed(listed)]


@pytest.fixture
def world(tmp_path: Path, postgresql_server: PostgresqlServer) -> Iterator[World]:
    """An address with correct reverse DNS, and working blocklists."""
    zone = MemoryZone({NAME.rstrip("."): {"A": [TARGET]}, REVERSE: {"PTR": [NAME]}})
    publish_list_test_entries(zone)
    with (
        running_redis() as redis,
        publishing_name_server(zone) as (names, publish),
        running_holding_name_server(names, ["."]) as held,
    ):
        held.release()
        world = World(tmp_path, postgresql_server, redis.url, held, zone, publish)
        world.options["dns_resolvers"] = [address_of(names)]
        yield world


def test_a_watch_is_run_by_one_and_goes_on_when_that_dies(world: World) -> None:
    """Each interval has one run, and each alert one mail, whichever daemon is asked. Another daemon
    finishes the run of a killed one.
    """
    dns = [address_of(world.held.server)]
    with (
        world.running("one", dns_resolvers=dns) as dying,
        world.running("other", accounts_bootstrap_key=dying.key) as heir,
    ):
        made = dying.post("/watches", json.dumps({"target": TARGET}).encode()).json
        dying.wait_until(lambda: world.runs("one", "other") == 1)
        world.name_is()
        world.let_it_be_due()
        for daemon in (dying, heir):
            mail = daemon.get("/inbox/wait", tag="watch-alerts", after="c0", timeout=50).json
            assert mail["subject"].startswith(f"{TARGET}: ")
        assert world.runs("one", "other") == 2

        world.name_is(NAME)
        with stopped(heir):  # otherwise it could take the watch
            world.held.hold()  # the run waits for DNS answers from now on
            world.let_it_be_due()
            dying.wait_until(world.is_taken)
            before = world.runs("one")
            dying.kill()
        world.let_its_lease_end()
        path = f"/watches/{made['id']}"
        heir.wait_until(lambda: bool(heir.get(path).json["alerts"][0]["endedAt"]))
        assert before + world.runs("other") == 3
        (alert,) = heir.get(path).json["alerts"]
        assert alert["ending"]
        # The mail about the end of the problem may be delayed by the pause between two mails.
        assert told(heir).count(mail["subject"]) == 1


def test_a_heartbeat_is_judged_by_one(world: World) -> None:
    """A missed heartbeat has one alert and one mail, and its mail has one verdict, whichever daemon
    receives it and whichever is asked.
    """
    with (
        world.running("one") as one,
        world.running("other", accounts_bootstrap_key=one.key) as other,
    ):
        made = one.post("/heartbeats", b'{"name": "backup", "everyMinutes": 60}').json
        world.begin_long_ago()
        for daemon in (one, other):
            mail = daemon.get("/inbox/wait", tag="watch-alerts", after="c0", timeout=50).json
            assert mail["subject"].startswith("backup: The heartbeat is missing")
        with smtplib.SMTP(HOST, other.smtp_port, timeout=30) as smtp:
            smtp.sendmail("a@good.test", [made["address"]], b"Subject: here\r\n\r\nIt runs.\r\n")

        def is_back(daemon: Daemon) -> bool:
            return bool(daemon.get("/heartbeats/backup").json["state"] == "on-time")

        for daemon in (one, other):
            daemon.wait_until(lambda daemon=daemon: is_back(daemon))  # type: ignore[misc]
            shown = daemon.get("/heartbeats/backup").json
            assert [beat["verdict"] for beat in shown["beats"]] == ["on-time"]
            assert sum(day["onTime"] for day in shown["history"]) == 1
            (alert,) = shown["alerts"]
            assert alert["ending"]
        assert told(one).count(mail["subject"]) == 1

"""Webhooks of a real daemon: real connections, kills, and two daemons."""

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest
from standardwebhooks import Webhook

from mailcheck.operations.inbox.webhooks.deliver_webhooks import LEASE
from tests.docs.blocks import ROOT, read_blocks
from tests.end_to_end.load import send_subjects as send
from tests.fakes.memory_zone import MemoryZone
from tests.servers.certificates import Authority
from tests.servers.clocks import accelerated
from tests.servers.daemon import HOST, Daemon, free_ports, running_daemon
from tests.servers.name_server import publishing_name_server
from tests.servers.postgresql import TEMPLATE, PostgresqlServer
from tests.servers.redis import RedisServer
from tests.servers.webhook_receiver import Receiver, running_receiver

pytestmark = pytest.mark.end_to_end

PAGE = ROOT / "docs" / "how-to" / "receive-webhooks.md"
ALLOWED = ["developer=127.0.0.0/8", "developer=::1/128"]
PATIENCE = 60.0  # seconds, on a busy machine
NAME = "hooks.test"

BACKLOG, AT_ONCE = 1_000, 100
"""Number of messages that a receiver has missed, and of recipients of each mail.
``benchmarks/webhooks.py`` uses ten times as many."""


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    """A daemon that may deliver to this machine, with short pauses between attempts."""
    options = {"webhooks_allow": ALLOWED, "inbox_max_messages": 1_000_000}
    folder = tmp_path_factory.mktemp("webhooks")
    with running_daemon(folder, environment=accelerated(), **options) as daemon:
        yield daemon


@pytest.fixture
def receiver(daemon: Daemon) -> Iterator[Receiver]:
    """A receiver; its webhooks are deleted at the end."""
    with running_receiver() as receiver:
        yield receiver
        for one in daemon.get("/inbox/webhooks").json["webhooks"]:
            daemon.request("DELETE", f"/inbox/webhooks/{one['id']}")


def create(daemon: Daemon, receiver: Receiver, path: str, **filters: Any) -> str:
    """Create a webhook for a path, give its secret to the receiver, and return its id."""
    body = json.dumps({"url": receiver.url + path, **filters}).encode()
    made = daemon.post("/inbox/webhooks", body)
    assert made.status == 200, made
    receiver.secrets[path] = made.json["secret"]
    webhook: str = made.json["id"]
    return webhook


def shown(daemon: Daemon, webhook: str) -> Any:
    """Return a webhook with its last deliveries."""
    return daemon.get(f"/inbox/webhooks/{webhook}").json


def until_told(daemon: Daemon, webhook: str, cursor: str) -> None:
    """Wait until the deliveries up to a cursor are recorded."""
    daemon.wait_until(lambda: shown(daemon, webhook)["cursor"] == cursor)


def test_mail_comes_signed_and_in_order(daemon: Daemon, receiver: Receiver) -> None:
    """The library verifies each delivery, and its message is that of the list."""
    webhook = create(daemon, receiver, "/mail", tag="order")
    send(daemon, *map(str, range(20)), tag="order")
    send(daemon, "other")
    got = receiver.wait_for("/mail", 20)
    assert [one.message["subject"] for one in got] == [str(number) for number in range(20)]
    assert all(one.is_signed for one in got)
    listed = daemon.get("/inbox/messages", tag="order", limit=20).json["messages"]
    assert [one.message for one in got] == listed[::-1]
    until_told(daemon, webhook, listed[0]["cursor"])
    statuses = [one["status"] for one in shown(daemon, webhook)["deliveries"]]
    assert statuses == [204] * 20


def test_the_page_shows_a_receiver(daemon: Daemon, tmp_path: Path) -> None:
    """The receiver of the documentation verifies deliveries on two connections that stay open."""
    blocks = {one.language: one.text for one in read_blocks(PAGE) if one.runner}
    (port,) = free_ports(1)
    shell = blocks["sh"].replace("9000", str(port)).replace("8080", str(daemon.http_port))
    done = subprocess.run(
        ["bash", "-euc", shell], cwd=daemon.folder, capture_output=True, text=True, check=True
    )
    made = json.loads(done.stdout)
    program = tmp_path / "receiver.py"
    program.write_text(blocks["python"].replace("9000", str(port)))
    environment = {**os.environ, "SECRET": made["secret"]}
    running = subprocess.Popen(
        [sys.executable, str(program)], env=environment, stdout=subprocess.PIPE, text=True
    )
    with contextlib.closing(HTTPConnection(HOST, port, timeout=PATIENCE)) as held:
        try:
            daemon.wait_until(lambda: _is_connecting(held))
            assert running.stdout is not None
            assert deliver(held, made["secret"], "First") == 204
            assert running.stdout.readline() == "First []\n"
            send(daemon, "Welcome", tag="signup")
            assert running.stdout.readline() == "Welcome []\n"
            assert deliver(held, made["secret"], "Second") == 204
            assert running.stdout.readline() == "Second []\n"
            assert deliver(held, "whsec_d3Jvbmc=", "Forged") == 401
            # The program prints before it responds.
            until_told(daemon, made["id"], daemon.cursor())
            assert shown(daemon, made["id"])["deliveries"][0]["status"] == 204
        finally:
            running.kill()
            running.communicate()
            daemon.request("DELETE", f"/inbox/webhooks/{made['id']}")


def deliver(connection: HTTPConnection, secret: str, subject: str) -> int:
    """Deliver a message on a connection that stays open, and return the status."""
    body, now = (
        json.dumps({"subject": subject, "codes": []}),
        datetime.now(UTC).replace(microsecond=0),
    )
    headers = {
        "webhook-id": subject,
        "webhook-timestamp": f"{now.timestamp():.0f}",
        "webhook-signature": Webhook(secret).sign(subject, now, body),
    }
    connection.request("POST", "/mail", body, headers)
    response = connection.getresponse()
    response.read()
    return response.status


def _is_connecting(connection: HTTPConnection) -> bool:
    with contextlib.suppress(ConnectionRefusedError):
        connection.connect()
    return connection.sock is not None


def test_our_own_ports(daemon: Daemon, receiver: Receiver) -> None:
    """A webhook cannot deliver to the service itself, under any name."""
    body = json.dumps({"url": f"http://{HOST}:{daemon.http_port}/api/v1/inbox"}).encode()
    assert daemon.post("/inbox/webhooks", body).status == 400
    for port in (daemon.smtp_port, daemon.submission_port, daemon.http_port):
        made = daemon.post(
            "/inbox/webhooks", json.dumps({"url": f"http://127.0.0.2:{port}/"}).encode()
        ).json
        test = daemon.post(f"/inbox/webhooks/{made['id']}/test", b"").json
        assert test["problem"] == "its address is not allowed: a port of this service"


@pytest.mark.interop
def test_kill_9_between_a_post_and_its_record(daemon: Daemon, receiver: Receiver) -> None:
    """A delivery that was not recorded is repeated with its id, and none is missing."""
    webhook = create(daemon, receiver, "/mail", tag="killed")
    send(daemon, "one", tag="killed")
    receiver.wait_for("/mail", 1)
    receiver.secrets["/hang"] = receiver.secrets["/mail"]
    hanging = create(daemon, receiver, "/hang", tag="killed")
    send(daemon, "two", "three", tag="killed")
    receiver.wait_for("/hang", 1)
    receiver.wait_for("/mail", 3)
    daemon.kill()
    receiver.released.set()
    daemon.start()
    # /hang got only the first message, which is repeated.
    first, again = receiver.wait_for("/hang", 2)[:2]
    assert first.message["subject"] == again.message["subject"] == "two"
    assert first.event_id == again.event_id
    assert again.message == first.message
    send(daemon, "four", tag="killed")
    daemon.wait_until(lambda: "four" in receiver.subjects("/mail"))
    # In order, with deliveries repeated whose record was lost in the kill.
    subjects = receiver.subjects("/mail")
    assert subjects[:3] == ["one", "two", "three"]
    assert subjects[3:] == ["one", "two", "three", "four"][-len(subjects[3:]) :]
    assert len({one.event_id for one in receiver.of("/mail")}) == 4
    assert shown(daemon, webhook)["state"] == shown(daemon, hanging)["state"] == "active"


@pytest.mark.interop
def test_a_foreign_certificate_and_a_name_that_is_bound_anew(tmp_path: Path) -> None:
    """A receiver with a wrong certificate, or at a forbidden address, gets no delivery."""
    authority, zone = Authority(), MemoryZone({NAME: {"A": ["127.0.0.1"]}})
    with (
        publishing_name_server(zone) as (server, publish),
        running_receiver(issued=authority.issue("other.test"), folder=tmp_path) as foreign,
        running_receiver() as receiver,
        running_daemon(
            tmp_path / "daemon",
            webhooks_allow=["developer=127.0.0.1/32"],
            probes_ca_file=authority.write_to(tmp_path / "ca.pem"),
            dns_resolvers=[f"{server.host}:{server.port}"],
            dns_allow_special_use=True,
        ) as daemon,
    ):
        for one in (foreign, receiver):
            one.url = one.url.replace(HOST, NAME)
        posted = create(daemon, foreign, "/mail", tag="secret")
        send(daemon, "one", tag="secret")
        daemon.wait_until(lambda: shown(daemon, posted)["failures"] > 0)
        assert shown(daemon, posted)["problem"].startswith(
            "its certificate is not for its host name"
        )
        assert foreign.got == []
        moved = create(daemon, receiver, "/mail", tag="moved")
        send(daemon, "one", tag="moved")
        receiver.wait_for("/mail", 1)
        zone.publish(NAME, "A", "127.0.0.2")
        publish()
        tried = daemon.post(f"/inbox/webhooks/{moved}/test", b"").json
        assert tried["problem"].startswith("its address is not allowed: ")
        assert receiver.subjects("/mail") == ["one"]


@pytest.mark.interop
def test_another_daemon_takes_over(
    tmp_path: Path,
    postgresql_server: PostgresqlServer,
    redis_server: RedisServer,
) -> None:
    """One of two daemons delivers all mail. When it is killed, the other one continues as soon as
    the lease expires.
    """
    name = f"webhooks_{os.getpid()}"
    database = postgresql_server.make_database(name, TEMPLATE)
    options: dict[str, Any] = {
        "storage_url": database,
        "cluster_redis": redis_server.url,
        "webhooks_allow": ALLOWED,
        "spamassassin_spamd": "off",
    }
    with running_daemon(tmp_path / "one", **options) as first:
        options["accounts_bootstrap_key"] = first.key
        with running_daemon(tmp_path / "two", **options) as second, running_receiver() as receiver:
            webhook = create(second, receiver, "/mail")
            send(first, "one")
            send(second, "two")
            receiver.wait_for("/mail", 2)
            until_told(second, webhook, "c2")
            (holder,) = {one.client for one in receiver.of("/mail")}
            deliverer = next(one for one in (first, second) if _is_connected(one, holder[1]))
            other = second if deliverer is first else first
            deliverer.kill()
            # Leases use the clock of the database.
            postgresql_server.run(f"UPDATE lease SET ends_at = ends_at - {LEASE}", name)
            send(other, "three")
            receiver.wait_for("/mail", 3)
            assert receiver.subjects("/mail") == ["one", "two", "three"]
            assert all(one.is_signed for one in receiver.of("/mail"))


def _is_connected(daemon: Daemon, port: int) -> bool:
    """Return whether a connection from a local port belongs to a daemon (Linux)."""
    local = f"0100007F:{port:04X}"
    lines = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()]
    numbers = {f"socket:[{line[9]}]" for line in lines if line[1] == local}
    folder = Path(f"/proc/{daemon.process.pid}/fd")
    return any(str(one.readlink()) in numbers for one in folder.iterdir() if one.is_symlink())

"""``mailcheck doctor`` finds every planted fault, and none in a good installation."""

import json
import socket
import socketserver
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from http.server import HTTPServer
from pathlib import Path
from typing import Any

import dns.message
import dns.rcode
import pytest_twisted
from twisted.internet.defer import Deferred, succeed

from mailcheck.assembly.doctor import DoctorParts
from mailcheck.assembly.probes import Probes
from mailcheck.checks.findings import Finding, Severity
from mailcheck.checks.findings_of_machine import TOPICS
from mailcheck.cli.doctor_commands import describe
from mailcheck.cluster.local import LocalCluster
from mailcheck.config.options import ProbeOptions, SpamassassinOptions
from mailcheck.dns.servers import Server
from mailcheck.engines.sqlite import SqliteEngine
from mailcheck.operations.doctor import Examination
from mailcheck.ports.probes import OutboundPort
from mailcheck.workers.scheduling import DirectWorker
from tests.cli.command_line import run_work
from tests.fakes.blocklist_test_entries import publish_list_test_entries
from tests.fakes.memory_zone import MemoryZone
from tests.house import config_in_memory, run
from tests.servers.certificates import Authority
from tests.servers.http_stub import QuietHandler
from tests.servers.name_server import running_name_server
from tests.table import rows
from tests.web.checking import checking_house

DOMAIN, HOST = "mail.test", "mx.mail.test"

GOOD = {
    DOMAIN: {"MX": [f"10 {HOST}."], "TXT": ["v=spf1 -all"]},
    f"_dmarc.{DOMAIN}": {"TXT": ["v=DMARC1; p=reject"]},
    HOST: {"A": ["127.0.0.1"]},
    "1.0.0.127.in-addr.arpa": {"PTR": [f"{HOST}."]},
}
BAD = {
    DOMAIN: {"MX": ["10 old.mail.test."], "TXT": ["v=spf1 mx ~all"]},
    f"_dmarc.{DOMAIN}": {"TXT": ["v=DMARC1; p=none"]},
    HOST: {"A": ["127.0.0.1"]},
    "old.mail.test": {"A": ["127.0.0.1"]},
}


NOBODY = 9
"""A port without a listener."""


@contextmanager
def web_server_at(date: str) -> Iterator[str]:
    """Serve a response with a date, and yield the URL."""

    class Handler(QuietHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def date_time_string(self, timestamp: float | None = None) -> str:
            return date or super().date_time_string(timestamp)

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@contextmanager
def greeting(line: bytes) -> Iterator[int]:
    """Greet clients like a mail server, and yield the port."""
    with closing(socket.create_server(("127.0.0.1", 0))) as listening:

        def serve() -> None:
            while True:
                try:
                    connection, _ = listening.accept()
                except OSError:
                    return
                with connection:
                    connection.sendall(line)
                    connection.recv(100)

        threading.Thread(target=serve, daemon=True).start()
        yield listening.getsockname()[1]
        listening.shutdown(socket.SHUT_RDWR)


async def diagnose(folder: Path, settings: dict[str, Any], *options: str) -> tuple[int, str]:
    """Run the doctor, and return its exit status and its output."""
    lines = []
    for section, values in settings.items():
        lines.append(f"[{section}]")
        lines += [f"{name} = {json.dumps(value)}" for name, value in values.items()]
    path = folder / "mailcheck.toml"
    path.write_text("\n".join(lines))
    done = await run_work({}, "--config", str(path), "doctor", *options)
    assert not done.errors
    return done.status, done.output


def findings_of(printed: str) -> dict[str, dict[str, Any]]:
    """Return the findings of each topic by their ids."""
    return {
        one["topic"]: {finding["id"]: finding for finding in one["findings"]}
        for one in json.loads(printed)["examinations"]
    }


def settings_for(folder: Path, server: Any, web: str, smtp_port: int) -> dict[str, Any]:
    """Return a configuration for the servers of the test."""
    return {
        "inbox": {"domain": DOMAIN},
        "smtp": {"host_name": HOST},
        "dns": {"resolvers": [f"{server.host}:{server.port}"], "allow_special_use": True},
        "network": {"allow_private": True},
        "probes": {"smtp_port": smtp_port, "rdap_bootstrap": web},
        "storage": {"url": f"sqlite:{folder}/mail.db", "state_directory": str(folder)},
        "spamassassin": {"spamd": "off"},
    }


@pytest_twisted.ensureDeferred
async def test_a_good_set_up_has_no_problem(tmp_path: Path) -> None:
    """All topics are fine, except the outgoing port 25, which is undetermined."""
    zone = MemoryZone(GOOD)
    publish_list_test_entries(zone)
    (tmp_path / "var").mkdir()
    with (
        running_name_server(zone) as server,
        web_server_at("") as web,
        greeting(f"220 {HOST} ESMTP\r\n".encode()) as port,
    ):
        settings = settings_for(tmp_path, server, web, port)
        settings["storage"]["min_free"] = 0
        make_store(tmp_path)
        status, printed = await diagnose(tmp_path, settings, "--json")
        found = {one["topic"]: one["health"] for one in json.loads(printed)["examinations"]}
    assert found.pop("port-out") == "unknown"
    assert set(found.values()) == {"fine"}, printed
    assert status == 3


def make_store(folder: Path) -> None:
    """Create the database of a daemon."""
    engine = SqliteEngine(str(folder / "mail.db"), DirectWorker(), DirectWorker())
    engine.open()
    engine.close()
    (folder / "mail.db").chmod(0o600)


@pytest_twisted.ensureDeferred
async def test_planted_faults_are_found(tmp_path: Path) -> None:
    """Fourteen faults at once are each named with advice."""
    authority = Authority()
    certificate, key = authority.issue(HOST, is_expired=True).write_to(tmp_path)
    (tmp_path / "api-key").write_text("mc_secret\n")
    (tmp_path / "api-key").chmod(0o644)
    key.chmod(0o600)
    with (
        running_name_server(MemoryZone(BAD)) as server,
        web_server_at("Sun, 22 Nov 2020 10:00:00 GMT") as web,
        greeting(b"220 somebody.else ESMTP\r\n") as port,
    ):
        settings = settings_for(tmp_path, server, web, port)
        settings["storage"]["min_free"] = 2**50
        settings["smtp"] |= {"certificate": str(certificate), "private_key": str(key)}
        settings["spamassassin"]["spamd"] = "127.0.0.1:1"
        settings["backup"] = {"every": 24}
        status, printed = await diagnose(tmp_path, settings, "--json")
        _, text = await diagnose(tmp_path, settings)
    found = {name: one for topic in findings_of(printed).values() for name, one in topic.items()}
    assert {
        "doctor.mx.elsewhere",
        "doctor.spf.open",
        "doctor.dmarc.open",
        "rdns.absent",
        "doctor.port-in.other",
        "doctor.blocklists.refused",
        "doctor.spamd.silent",
        "doctor.clock.wrong",
        "doctor.disk.full",
        "doctor.backup.missing",
        "doctor.rights.open-file",
        "doctor.database.away",
        "doctor.certificate.ending",
    } <= set(found)
    assert [name for name, finding in found.items() if not finding["fix"]] == []
    # All topics of the table except those of services that this daemon does not use.
    unused = {"redis", "milter", "rspamd", "company", "mailboxes"}
    assert {*findings_of(printed), *unused} == set(TOPICS)
    assert found["doctor.mx.elsewhere"]["record"]["value"] == f"10 {HOST}."
    assert status == 1
    assert text.count("PROBLEM") >= 8


class DeniesAll(socketserver.BaseRequestHandler):
    """A name server of a closed network, which answers that no name exists."""

    def handle(self) -> None:
        """Answer a query over UDP."""
        question, port = self.request
        reply = dns.message.make_response(dns.message.from_wire(question), True)
        reply.set_rcode(dns.rcode.NXDOMAIN)
        port.sendto(reply.to_wire(), self.client_address)


@pytest_twisted.ensureDeferred
async def test_a_resolver_of_a_closed_network(tmp_path: Path) -> None:
    """A resolver that denies even the root is named, since it would make every name missing."""
    with (
        socketserver.ThreadingUDPServer(("127.0.0.1", 0), DeniesAll) as resolver,
        web_server_at("") as web,
    ):
        threading.Thread(target=resolver.serve_forever, daemon=True).start()
        server = Server("127.0.0.1", resolver.server_address[1])
        _, printed = await diagnose(tmp_path, settings_for(tmp_path, server, web, 1), "--json")
        resolver.shutdown()
    assert list(findings_of(printed)["resolver"]) == ["doctor.resolver.closed"]


@pytest_twisted.ensureDeferred
async def test_the_zone_lines_mend_the_zone(tmp_path: Path) -> None:
    """The zone has no findings after the records of ``--dns`` are published."""
    with running_name_server(MemoryZone(BAD)) as server, web_server_at("") as web:
        _, lines = await diagnose(tmp_path, settings_for(tmp_path, server, web, 1), "--dns")
    assert f"{DOMAIN}.  3600  IN  MX  10 {HOST}." in lines.splitlines()
    zone = MemoryZone.from_text(
        "\n".join(line for line in lines.splitlines() if not line.startswith(";"))
    )
    zone.publish(HOST, "A", "127.0.0.1")
    zone.publish("1.0.0.127.in-addr.arpa", "PTR", f"{HOST}.")
    publish_list_test_entries(zone)
    with running_name_server(zone) as server, web_server_at("") as web:
        _, printed = await diagnose(tmp_path, settings_for(tmp_path, server, web, 1), "--json")
    assert findings_of(printed)["dns"] == {}


@pytest_twisted.ensureDeferred
async def test_a_machine_of_its_own(tmp_path: Path) -> None:
    """Without a domain, mail from outside is not expected, and resolvers may be unreachable."""
    with web_server_at("") as web:
        settings = settings_for(tmp_path, Server("127.0.0.1", NOBODY), web, 1)
        del settings["inbox"], settings["smtp"]
        status, printed = await diagnose(tmp_path, settings, "--json")
    found = findings_of(printed)
    assert found["dns"]["doctor.dns.example"]["severity"] == "note"
    assert found["port-in"] == {}
    assert found["resolver"]["doctor.resolver.undetermined"]["meaning"] == "No resolver answers."
    (lists,) = found["blocklists"].values()
    assert lists["meaning"] == "No blocklist answers the resolver."
    assert status == 1  # the database is missing too


@pytest_twisted.ensureDeferred
async def test_what_a_cluster_shares_is_away(tmp_path: Path) -> None:
    """If neither PostgreSQL nor Redis answers, each is named with advice."""
    with running_name_server(MemoryZone(GOOD)) as server, web_server_at("") as web:
        settings = settings_for(tmp_path, server, web, 1)
        settings["storage"]["url"] = f"postgresql://mailcheck@127.0.0.1:{NOBODY}/mailcheck"
        settings["cluster"] = {"redis": f"redis://127.0.0.1:{NOBODY}"}
        _, printed = await diagnose(tmp_path, settings, "--json")
    found = findings_of(printed)
    assert "correct [storage] url" in found["database"]["doctor.database.away"]["fix"]
    assert f"127.0.0.1:{NOBODY}" in found["redis"]["doctor.redis.away"]["meaning"]
    assert found["disk"] == {}  # the disk of the database is on another machine


@rows(
    (OutboundPort.OPEN, None),
    (OutboundPort.BLOCKED, "doctor.port-out.blocked"),
    (OutboundPort.UNKNOWN, "doctor.port-out.undetermined"),
)
def test_connections_to_port_25(port: OutboundPort, expected: str | None) -> None:
    """A blocked port 25 is a warning, and an undetermined one is not."""

    class Network(Probes):
        def outbound_port(self) -> Deferred[OutboundPort]:
            return succeed(port)

    config = config_in_memory(
        probes=ProbeOptions(rdap_bootstrap="registries.json"),
        spamassassin=SpamassassinOptions(spamd="off"),
    )
    house = checking_house(MemoryZone(GOOD), config)
    checks, clock = house.assembly.checks, house.clock
    clock_and_randomness = house.assembly.runtime.clocks
    network = Network(config, clock, clock_and_randomness, house.zone, LocalCluster(clock))
    find_mailboxes = house.assembly.reports.fetching.store.states
    parts = DoctorParts(house.assembly.runtime, clock, checks, network, find_mailboxes)
    found = run(parts.build().examine())
    (findings,) = [one.findings for one in found if one.topic == "port-out"]
    assert [finding.id for finding in findings] == ([expected] if expected else [])


def test_each_remedy_is_named_once() -> None:
    """A problem or a remedy that several findings share is printed once."""
    warning = Severity.WARNING
    shared = Finding("doctor.dns", warning, "One thing is wrong.", "Mend the resolver.")
    other = Finding("doctor.dns", warning, "Another thing is wrong.", "Mend the resolver.")
    alone = Finding("doctor.dns", warning, "A third thing is wrong.", "Mend the disk.")
    found = (Examination("dns", (shared, other, shared, alone)), Examination("clock", (other,)))
    lines = list(describe(found))
    assert [line.strip() for line in lines if not line.startswith(("dns", "clock"))] == [
        "One thing is wrong.",
        "Another thing is wrong.",
        "-> Mend the resolver.",
        "A third thing is wrong.",
        "-> Mend the disk.",
        "Another thing is wrong.",
        "-> as for dns",
    ]

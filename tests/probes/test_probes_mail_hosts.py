"""Probes of mail hosts: shared between callers, polite, and with a deadline."""

from typing import Any

import pytest
from twisted.internet.defer import CancelledError

from mailcheck.checks.dns_answers import DnsStatus
from mailcheck.checks.hosts.starttls import ProbeOutcome, StarttlsProbe
from mailcheck.cluster.local import LocalMemory, LocalRateCounters
from mailcheck.core.instants import instant_of
from mailcheck.ports.probes import OutboundPort
from mailcheck.probes.mail_host_prober import (
    MAX_PER_ADDRESS,
    MailHostProber,
    OutboundPortCheck,
    ProbeSettings,
)
from mailcheck.probes.trust import TrustRoots, find_trust_roots
from tests.fakes.memory_zone import MemoryZone
from tests.probes.scripted_hosts import ScriptedHosts, collect, dialer_to
from tests.servers.certificates import Authority
from tests.table import rows

REFERENCES = ("one.reference.example", "two.reference.example")
ZONE = {
    "mx.example": {"A": ["8.8.8.8"]},
    "inside.example": {"A": ["192.168.1.1"]},
    REFERENCES[0]: {"A": ["9.9.9.1"]},
    REFERENCES[1]: {"A": ["9.9.9.2"]},
    **{f"mx{number}.many.example": {"A": ["8.8.4.4"]} for number in range(200)},
}


class Probing:
    """A prober, and hosts that the test scripts."""

    def __init__(
        self, trust: TrustRoots, *, references: tuple[str, ...] = REFERENCES, **zone: Any
    ) -> None:
        self.hosts = ScriptedHosts()
        self.zone = MemoryZone(ZONE, **zone)
        self.dialer = dialer_to(self.hosts, self.zone)
        self.outbound = OutboundPortCheck(self.dialer, self.hosts, 25, references)
        self.prober = MailHostProber(
            self.hosts,
            self.dialer,
            trust,
            self.outbound,
            ProbeSettings("check.example"),
            LocalMemory(self.hosts),
            LocalRateCounters(),
            lambda: instant_of(self.hosts.seconds()),
        )

    def probe(self, exchange: str = "mx.example") -> list[Any]:
        """Return a list that will contain the probe."""
        return collect(self.prober.probe(exchange))

    def turn_away(self) -> None:
        """Accept the newest connection, and refuse to talk."""
        connection = self.hosts.accept()
        connection.send(b"554 no\r\n")
        connection.hang_up()


@pytest.fixture(scope="module")
def trust(tmp_path_factory: pytest.TempPathFactory) -> TrustRoots:
    """The authority of the tests."""
    path = tmp_path_factory.mktemp("trust") / "ca.pem"
    return find_trust_roots(Authority().write_to(path))


@pytest.fixture
def probing(trust: TrustRoots) -> Probing:
    """A prober."""
    return Probing(trust)


REJECTED = StarttlsProbe("mx.example", ProbeOutcome.REJECTED)


def test_all_who_ask_at_once_share_a_probe(probing: Probing) -> None:
    """One connection serves all callers at the same time and within ten minutes."""
    first, second = probing.probe(), probing.probe()
    assert probing.hosts.dialled == [("8.8.8.8", 25)]
    probing.turn_away()
    assert first == second == [REJECTED]
    probing.hosts.advance(599)
    assert probing.probe() == [REJECTED]
    assert len(probing.hosts.dialled) == 1
    probing.hosts.advance(2)
    assert probing.probe() == []
    assert len(probing.hosts.dialled) == 2
    probing.prober.stop()


def test_a_client_that_goes_away_stops_nothing(probing: Probing) -> None:
    """A probe continues for its other callers and for the cache."""
    waiting = probing.prober.probe("mx.example")
    gone = collect(waiting)
    waiting.cancel()
    assert gone[0].check(CancelledError)
    probing.turn_away()
    assert probing.probe() == [REJECTED]
    assert len(probing.hosts.dialled) == 1


def test_a_host_that_stalls_costs_the_deadline(probing: Probing) -> None:
    """A silent host is not an SMTP server, after nine seconds in all."""
    probe = probing.probe()
    probing.hosts.advance(4)
    connection = probing.hosts.accept()
    connection.send(b"220 mx.example\r\n")
    probing.hosts.advance(4.9)
    assert probe == []
    probing.hosts.advance(0.2)
    assert probe == [StarttlsProbe("mx.example", ProbeOutcome.NO_SMTP)]
    assert connection.transport.aborted
    connection.hang_up()
    assert probing.hosts.getDelayedCalls() == []


@rows("inside.example", "nowhere.example", "silent.example", "8.8.8.8", "::1", "")
def test_what_can_not_be_probed_is_not(trust: TrustRoots, exchange: str) -> None:
    """A host without a public address, or an address instead of a name, gets no packet."""
    probing = Probing(trust, failing={"silent.example": DnsStatus.SERVFAIL})
    assert probing.probe(exchange) == [StarttlsProbe(exchange, ProbeOutcome.NOT_PROBED)]
    assert probing.hosts.dialled == []


def test_what_was_not_probed_is_not_remembered(trust: TrustRoots) -> None:
    """A DNS failure is not cached, since no host was contacted."""
    probing = Probing(trust, failing={"mx.example": DnsStatus.TIMEOUT})
    assert probing.probe()[0].outcome is ProbeOutcome.NOT_PROBED
    probing.zone.failing.clear()
    probing.probe()
    probing.turn_away()
    assert probing.probe() == [REJECTED]


def test_without_authorities_nobody_is_judged() -> None:
    """Without trusted authorities no certificate is called invalid."""
    probing = Probing(TrustRoots(()))
    assert probing.probe()[0].outcome is ProbeOutcome.NOT_PROBED
    assert probing.hosts.dialled == []


def test_many_names_for_one_host_do_not_flood_it(probing: Probing) -> None:
    """An address gets a limited number of connections in ten minutes, for all its names."""
    for number in range(MAX_PER_ADDRESS):
        probing.probe(f"mx{number}.many.example")
        probing.turn_away()
    late = probing.probe("mx199.many.example")
    assert late == [StarttlsProbe("mx199.many.example", ProbeOutcome.NOT_PROBED)]
    assert len(probing.hosts.dialled) == MAX_PER_ADDRESS
    probing.hosts.advance(600)
    assert probing.probe("mx199.many.example") == []
    assert len(probing.hosts.dialled) == MAX_PER_ADDRESS + 1
    probing.prober.stop()


def test_a_network_of_addresses_is_one_host(trust: TrustRoots) -> None:
    """An IPv6 host owns a whole /64, which counts as one address."""
    names = [f"mx{number}.six.example" for number in range(MAX_PER_ADDRESS + 1)]
    probing = Probing(trust)
    for number, name in enumerate(names):
        probing.zone.publish(name, "AAAA", f"2606:4700::{number + 1:x}")
        probing.probe(name)
        if number < MAX_PER_ADDRESS:
            probing.turn_away()
    assert len(probing.hosts.dialled) == MAX_PER_ADDRESS
    probing.zone.publish("mx.elsewhere.example", "AAAA", "2606:4700:0:1::1")
    assert probing.probe("mx.elsewhere.example") == []
    probing.prober.stop()


def test_a_bound_on_probes_at_once(probing: Probing) -> None:
    """Probes beyond the limit are rejected, not queued."""
    for number in range(100):
        probing.zone.silent.add(f"mx{number}.many.example")
        assert probing.probe(f"mx{number}.many.example") == []
    assert probing.probe()[0].outcome is ProbeOutcome.NOT_PROBED
    probing.prober.stop()
    assert probing.zone.unanswered == []
    assert probing.hosts.getDelayedCalls() == []


def test_an_unreachable_host_alone_proves_nothing(probing: Probing) -> None:
    """If a reference host answers, port 25 is open, and the host is unreachable."""
    probe = probing.probe()
    probing.hosts.refuse()
    assert probe == [StarttlsProbe("mx.example", ProbeOutcome.UNREACHABLE)]
    assert probing.hosts.dialled_hosts == ["8.8.8.8", "9.9.9.1", "9.9.9.2"]
    said = collect(probing.prober.outbound_port())
    probing.hosts.refuse(1)
    connection = probing.hosts.accept(2)
    assert connection.take() == b"QUIT\r\n"
    assert connection.transport.disconnecting
    assert said == [OutboundPort.OPEN]
    probing.probe("mx1.many.example")
    assert probing.hosts.dialled_hosts[3:] == ["8.8.4.4"]
    probing.prober.stop()


def test_a_blocked_port_is_found_out(probing: Probing) -> None:
    """If no reference host answers either, no host is probed for ten minutes."""
    probing.probe()
    probing.hosts.refuse()
    said = collect(probing.prober.outbound_port())
    probing.hosts.advance(5)
    assert said == [OutboundPort.BLOCKED]
    other = probing.probe("mx1.many.example")
    assert other == [StarttlsProbe("mx1.many.example", ProbeOutcome.UNREACHABLE)]
    assert len(probing.hosts.dialled) == 3
    probing.hosts.advance(600)
    assert probing.probe("mx1.many.example") == []
    assert len(probing.hosts.dialled) == 4
    probing.prober.stop()


def test_what_is_known_of_a_host_outlives_a_blocked_port(probing: Probing) -> None:
    """The cached result of a host stays when the port is blocked later."""
    probing.probe()
    probing.turn_away()
    probing.outbound._note(OutboundPort.BLOCKED)
    assert probing.probe() == [REJECTED]
    assert probing.probe("mx1.many.example")[0].outcome is ProbeOutcome.UNREACHABLE


def test_a_connection_shows_that_the_port_is_open(probing: Probing) -> None:
    """After a successful connection no reference host is contacted."""
    probing.probe()
    probing.turn_away()
    probing.probe("mx1.many.example")
    probing.hosts.refuse()
    assert collect(probing.prober.outbound_port()) == [OutboundPort.OPEN]
    assert probing.hosts.dialled_hosts == ["8.8.8.8", "8.8.4.4"]


@pytest.mark.parametrize("references", [(), ("nowhere.example",)])
def test_without_a_reference_it_is_unknown(trust: TrustRoots, references: tuple[str, ...]) -> None:
    """Without reference hosts an unreachable host proves no blocked port."""
    probing = Probing(trust, references=references)
    probing.probe()
    probing.hosts.refuse()
    assert collect(probing.prober.outbound_port()) == [OutboundPort.UNKNOWN]
    assert probing.probe("mx1.many.example") == []
    probing.prober.stop()


def test_another_port_has_no_reference(probing: Probing) -> None:
    """The reference hosts listen on port 25 only, so other ports are undetermined."""
    outbound = OutboundPortCheck(probing.dialer, probing.hosts, 2525, REFERENCES)
    assert collect(outbound.determine()) == [OutboundPort.UNKNOWN]
    assert probing.hosts.dialled == []


def test_stopping_hangs_up_on_everybody(probing: Probing) -> None:
    """Stopping closes all connections, and the callers get a failure."""
    probe = probing.probe()
    connection = probing.hosts.accept()
    unreachable = probing.probe("mx1.many.example")
    probing.hosts.refuse()
    probing.prober.stop()
    assert connection.transport.aborted
    connection.hang_up()
    assert probe[0].check(CancelledError)
    assert [each.outcome for each in unreachable] == [ProbeOutcome.UNREACHABLE]
    assert probing.hosts.getDelayedCalls() == []

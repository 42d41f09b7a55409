"""The STARTTLS probe against real servers on this machine: mailcheck's own, and broken ones."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from OpenSSL import SSL
from twisted.internet.protocol import Factory, Protocol

from mailcheck.checks.hosts.starttls import ProbeOutcome, StarttlsProbe
from mailcheck.cluster.local import LocalMemory, LocalRateCounters
from mailcheck.connections.policies import TlsPolicy, offer_no_tls, offer_to_all
from mailcheck.daemon.wall_clock import time_of_day
from mailcheck.probes.guarded_dialer import GuardedDialer, is_own_address
from mailcheck.probes.mail_host_prober import MailHostProber, OutboundPortCheck, ProbeSettings
from mailcheck.probes.trust import find_trust_roots
from mailcheck.smtp.protocol import MailFactory
from mailcheck.smtp.settings import SmtpSettings
from mailcheck.smtp.verbs import VERBS
from tests.fakes.mail_receiver import JOURNAL, FakeMailReceiver
from tests.fakes.memory_zone import MemoryZone
from tests.servers.certificates import Authority, OldServer, self_signed, server_options
from tests.smtp.loopback import served
from tests.table import rows

AUTHORITY = Authority()


@pytest.fixture
def reactor() -> Any:
    """The reactor that runs the tests."""
    from twisted.internet import reactor

    return reactor


class Probes:
    """A prober that may connect to this machine."""

    def __init__(self, reactor: Any, folder: Path) -> None:
        self._reactor = reactor
        self._trust = find_trust_roots(AUTHORITY.write_to(folder / "ca.pem"))
        self._zone = MemoryZone({"mx.d.example": {"A": ["127.0.0.1"]}})

    async def probe(self, port: int, seconds: float = 9.0) -> StarttlsProbe:
        """Probe ``mx.d.example``, which is this machine."""
        dialer = GuardedDialer(
            self._reactor, self._zone, is_own_address=is_own_address, allow_private=True
        )
        outbound = OutboundPortCheck(dialer, self._reactor, port, ())
        settings = ProbeSettings("check.example", port=port, seconds=seconds)
        prober = MailHostProber(
            self._reactor,
            dialer,
            self._trust,
            outbound,
            settings,
            LocalMemory(self._reactor),
            LocalRateCounters(),
            time_of_day,
        )
        try:
            return await prober.probe("mx.d.example")
        finally:
            prober.stop()
            await _until_calm(self._reactor, prober)


async def _until_calm(reactor: Any, prober: MailHostProber) -> None:
    """Wait until the prober's connections are closed."""
    from twisted.internet.task import deferLater

    for _ in range(1000):
        if not prober._conversations:
            return
        await deferLater(reactor, 0.001)
    pytest.fail("the prober keeps a connection open")


@pytest.fixture
def probes(reactor: Any, tmp_path: Path) -> Probes:
    """A prober that trusts the authority of the tests."""
    return Probes(reactor, tmp_path)


async def probe_receiver(probes: Probes, reactor: Any, tls_for: TlsPolicy) -> StarttlsProbe:
    """Probe mailcheck's own server, which must see only the expected commands."""
    receiver = FakeMailReceiver()
    factory = MailFactory(
        VERBS,
        receiver,
        SmtpSettings("mx.d.example", tls_for=tls_for),
        reactor,
        JOURNAL,
    )
    async with served(factory, reactor) as port:
        result = await probes.probe(port.number)
    assert receiver.asked == []
    assert receiver.delivered == []
    return result


async def test_a_good_host_is_verified(probes: Probes, reactor: Any) -> None:
    """A modern handshake with a certificate for the MX name is verified."""
    offer = offer_to_all(server_options(AUTHORITY.issue("mx.d.example")))
    found = await probe_receiver(probes, reactor, offer)
    assert len(found.certificate_digest) == 64
    assert found == StarttlsProbe(
        "mx.d.example",
        ProbeOutcome.ENCRYPTED,
        tls_version="TLSv1.3",
        is_certificate_trusted=True,
        is_name_matching=True,
        certificate_digest=found.certificate_digest,
        certificate_ends_at=found.certificate_ends_at,
    )


@rows(
    (AUTHORITY.issue("*.d.example"), True, True),
    (AUTHORITY.issue("other.d.example", "mx.d.example"), True, True),
    (AUTHORITY.issue("mail.mx.d.example"), True, False),
    (AUTHORITY.issue("127.0.0.1"), True, False),
    (AUTHORITY.issue(), True, False),
    (AUTHORITY.issue("mx.d.example", is_expired=True), False, True),
    (self_signed("mx.d.example"), False, True),
    (self_signed("other.d.example"), False, False),
    (Authority("Somebody else").issue("mx.d.example"), False, True),
)
async def test_a_bad_certificate_does_not_end_the_probe(
    probes: Probes, reactor: Any, issued: Any, is_trusted: bool, is_matching: bool
) -> None:
    """The handshake completes in any case, and trust and name are separate results."""
    probe = await probe_receiver(probes, reactor, offer_to_all(server_options(issued)))
    assert probe.outcome is ProbeOutcome.ENCRYPTED
    assert probe.tls_version == "TLSv1.3"
    assert (probe.is_certificate_trusted, probe.is_name_matching) == (is_trusted, is_matching)


@rows(
    (SSL.TLS1_VERSION, "TLSv1"),
    (SSL.TLS1_1_VERSION, "TLSv1.1"),
    (SSL.TLS1_2_VERSION, "TLSv1.2"),
)
async def test_old_versions_are_told_apart(
    probes: Probes, reactor: Any, version: int, name: str
) -> None:
    """Old TLS versions of a host are recognised, and its certificate is checked too."""
    old: Any = OldServer(AUTHORITY.issue("mx.d.example"), version)
    probe = await probe_receiver(probes, reactor, offer_to_all(old))
    assert (probe.tls_version, probe.is_verified) == (name, True)


async def test_a_host_without_encryption(probes: Probes, reactor: Any) -> None:
    """The mail server of mailcheck without a certificate offers no STARTTLS."""
    probe = await probe_receiver(probes, reactor, offer_no_tls)
    assert probe == StarttlsProbe("mx.d.example", ProbeOutcome.NOT_OFFERED)


class Parrot(Protocol):
    """Sends the next of its lines for each line that it receives."""

    def connectionMade(self) -> None:
        """Send the first line."""
        self._lines: list[bytes] = list(self.factory.lines)
        self._say()

    def dataReceived(self, data: bytes) -> None:
        """Send the next line."""
        self._say()

    def _say(self) -> None:
        transport: Any = self.transport
        if not self._lines:
            return
        line = self._lines.pop(0)
        if line:
            transport.write(line)
        else:
            transport.loseConnection()


@asynccontextmanager
async def parrot(reactor: Any, *lines: bytes) -> AsyncIterator[int]:
    """Run such a server, and yield its port; an empty line closes the connection."""
    factory: Any = Factory.forProtocol(Parrot)
    factory.noisy = False
    factory.lines = lines
    listening = reactor.listenTCP(0, factory, interface="127.0.0.1")
    try:
        yield listening.getHost().port
    finally:
        await listening.stopListening()


UP_TO_TLS = (b"220 mx\r\n", b"250-mx\r\n250 STARTTLS\r\n", b"220 go\r\n")


@rows(
    ((*UP_TO_TLS, b"what is this?\r\n"), ProbeOutcome.HANDSHAKE_FAILED),
    ((*UP_TO_TLS, b"\x15\x03\x03\x00\x02\x02\x28"), ProbeOutcome.HANDSHAKE_FAILED),
    ((*UP_TO_TLS, b""), ProbeOutcome.HANDSHAKE_FAILED),
    (UP_TO_TLS, ProbeOutcome.NO_SMTP),
    ((), ProbeOutcome.NO_SMTP),
    ((b"",), ProbeOutcome.NO_SMTP),
    ((b"220 mx\r\n", b""), ProbeOutcome.NO_SMTP),
)
async def test_broken_handshakes(
    probes: Probes, reactor: Any, lines: tuple[bytes, ...], outcome: ProbeOutcome
) -> None:
    """A failed handshake is a result about the host, and a stalled one is undetermined."""
    # A busy machine must not turn a failed handshake into a stalled one.
    seconds = 0.5 if outcome is ProbeOutcome.NO_SMTP else 60.0
    async with parrot(reactor, *lines) as port:
        assert await probes.probe(port, seconds) == StarttlsProbe("mx.d.example", outcome)


async def test_nobody_there(probes: Probes, reactor: Any) -> None:
    """A port without a listener is unreachable."""
    async with parrot(reactor) as port:
        pass
    assert (await probes.probe(port)).outcome is ProbeOutcome.UNREACHABLE

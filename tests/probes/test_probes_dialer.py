"""The guarded dialer: its targets, the order of its attempts, and its failures."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.error import NoRouteError
from twisted.internet.protocol import Factory, Protocol
from twisted.internet.task import deferLater
from twisted.logger import LogLevel, capturedLogs

from mailcheck.checks.dns_answers import DnsStatus
from mailcheck.core.network_addresses import IpAddress
from mailcheck.probes.guarded_dialer import (
    AddressRefused,
    Choice,
    ConnectionsRefused,
    GuardedDialer,
    HostNotFound,
    HostUndetermined,
    NotConnected,
    any_address,
)
from tests.fakes.memory_zone import MemoryZone
from tests.probes.scripted_hosts import ScriptedHosts, collect, no_own_address
from tests.table import rows

ZONE = {
    "both.example": {"A": ["8.8.8.8", "8.8.4.4"], "AAAA": ["2606:4700::1", "2606:4700::2"]},
    "six.example": {"AAAA": ["2606:4700::1"]},
    "alias.example": {"CNAME": ["six.example."]},
    "many.example": {"A": [f"8.8.8.{number}" for number in range(1, 20)]},
    "mixed.example": {"A": ["10.0.0.1", "8.8.8.8", "127.0.0.1"], "AAAA": ["::1"]},
    "inside.example": {"A": ["10.0.0.1"], "AAAA": ["fd00::1"]},
    "text.example": {"TXT": ["no address"]},
}


@pytest.fixture
def hosts() -> ScriptedHosts:
    """Hosts that the test answers for."""
    return ScriptedHosts()


class Caller:
    """Dials, and records the result."""

    def __init__(
        self,
        hosts: ScriptedHosts,
        zone: MemoryZone | None = None,
        *,
        is_own_address: Callable[[IpAddress], bool] = no_own_address,
        allow_private: bool = False,
    ) -> None:
        self.zone = zone or MemoryZone(ZONE)
        self._dialer = GuardedDialer(
            hosts, self.zone, is_own_address=is_own_address, allow_private=allow_private
        )
        self.results: list[Any] = []

    def dial(self, host: str, may_use: Choice = any_address) -> Deferred[Any]:
        """Dial port 25 of a host."""
        dialling = self._dialer.dial(
            host, 25, Factory.forProtocol(Protocol), seconds=5.0, may_use=may_use
        )
        dialled = Deferred.fromCoroutine(dialling)
        self.results = collect(dialled)
        return dialled

    @property
    def failure(self) -> type[Exception] | None:
        """The kind of the failure, or ``None``."""
        return self.results[0].type if self.results else None


@pytest.fixture
def caller(hosts: ScriptedHosts) -> Caller:
    """Return a caller of the hosts."""
    return Caller(hosts)


def test_the_first_address_is_dialled_first(hosts: ScriptedHosts, caller: Caller) -> None:
    """The first established connection is the result, and the only one."""
    caller.dial("Both.Example.")
    assert hosts.dialled == [("8.8.4.4", 25)]
    connection = hosts.accept()
    assert [result.transport for result in caller.results] == [connection.transport]
    assert hosts.getDelayedCalls() == []


def test_who_is_silent_is_not_waited_for(hosts: ScriptedHosts, caller: Caller) -> None:
    """After a quarter of a second the next address is tried too, alternating the families."""
    caller.dial("both.example")
    for _ in range(5):
        hosts.advance(0.25)
    assert hosts.dialled_hosts == ["8.8.4.4", "2606:4700::1", "8.8.8.8", "2606:4700::2"]
    hosts.accept(1)
    assert len(caller.results) == 1
    assert [hosts.is_given_up(index) for index in (0, 2, 3)] == [True, True, True]
    assert hosts.getDelayedCalls() == []


def test_who_refuses_is_followed_at_once(hosts: ScriptedHosts, caller: Caller) -> None:
    """A refusal causes no delay; when all addresses refuse, the result is a refusal."""
    caller.dial("both.example")
    for _ in range(4):
        assert not caller.results
        hosts.refuse()
    assert len(hosts.dialled) == 4
    assert caller.failure is ConnectionsRefused
    assert hosts.getDelayedCalls() == []


def test_no_way_is_no_refusal(hosts: ScriptedHosts, caller: Caller) -> None:
    """A missing route of our own network does not count as a refusal of the host."""
    caller.dial("both.example")
    for reason in (None, NoRouteError(), None, None):
        hosts.refuse(reason=reason)
    assert caller.failure is NotConnected


def test_nobody_waits_for_ever(hosts: ScriptedHosts, caller: Caller) -> None:
    """At the deadline all attempts are aborted."""
    caller.dial("both.example")
    hosts.pump([0.25] * 19)
    assert not caller.results
    hosts.advance(0.3)
    assert caller.failure is NotConnected
    assert all(hosts.is_given_up(index) for index in range(4))
    assert hosts.getDelayedCalls() == []


def test_giving_up_leaves_nothing(hosts: ScriptedHosts, caller: Caller) -> None:
    """Cancelling aborts all attempts, and starts no more."""
    dialled = caller.dial("both.example")
    hosts.advance(0.25)
    dialled.cancel()
    assert caller.failure is CancelledError
    assert hosts.is_given_up(0)
    assert hosts.is_given_up(1)
    hosts.advance(1)
    assert len(hosts.dialled) == 2
    assert hosts.getDelayedCalls() == []


def test_no_more_than_four_addresses_are_tried(hosts: ScriptedHosts, caller: Caller) -> None:
    """At most four addresses are tried, so that a name cannot be used to scan a network."""
    caller.dial("many.example")
    hosts.pump([0.25] * 19)
    assert len(hosts.dialled) == 4
    hosts.advance(1)
    assert caller.failure is NotConnected


def test_private_addresses_are_left_out(hosts: ScriptedHosts, caller: Caller) -> None:
    """Only the public addresses of a host are dialled."""
    caller.dial("mixed.example")
    hosts.refuse()
    assert hosts.dialled_hosts == ["8.8.8.8"]
    assert caller.failure is ConnectionsRefused


def test_a_private_host_is_refused(hosts: ScriptedHosts, caller: Caller) -> None:
    """A host without a public address gets no packet."""
    caller.dial("inside.example")
    assert caller.failure is AddressRefused
    assert hosts.dialled == []


def test_our_own_addresses_are_refused(hosts: ScriptedHosts) -> None:
    """A public address of this machine is not dialled, so the firewall cannot be bypassed."""
    caller = Caller(hosts, is_own_address=lambda address: str(address) == "2606:4700::1")
    caller.dial("six.example")
    assert caller.failure is AddressRefused
    assert hosts.dialled == []


def test_a_caller_may_refuse_addresses(hosts: ScriptedHosts, caller: Caller) -> None:
    """The caller can exclude further addresses."""

    async def of_version_6(addresses: Sequence[IpAddress]) -> list[IpAddress]:
        return [address for address in addresses if address.version == 6]

    async def none(_: Sequence[IpAddress]) -> list[IpAddress]:
        return []

    caller.dial("both.example", of_version_6)
    assert hosts.dialled_hosts == ["2606:4700::1"]
    hosts.accept()
    caller.dial("both.example", none)
    assert caller.failure is AddressRefused


def test_private_addresses_can_be_allowed(hosts: ScriptedHosts) -> None:
    """With ``allow_private`` all addresses are dialled, and the log says so."""
    with capturedLogs() as events:
        caller = Caller(hosts, allow_private=True, is_own_address=lambda address: True)
    assert [event["log_level"] for event in events] == [LogLevel.warn]
    assert "allow_private" in events[0]["log_format"]
    caller.dial("127.0.0.1")
    hosts.accept()
    caller.dial("inside.example")
    hosts.accept()
    assert hosts.dialled_hosts == ["127.0.0.1", "10.0.0.1"]
    caller.dial("many.example")
    hosts.pump([0.25] * 19)
    assert len(hosts.dialled) == 6
    hosts.advance(1)


def test_an_alias_is_followed(hosts: ScriptedHosts, caller: Caller) -> None:
    """The target of a CNAME is dialled."""
    caller.dial("alias.example")
    hosts.accept()
    assert hosts.dialled_hosts == ["2606:4700::1"]


@rows("nowhere.example", "text.example", "", "a..b", "x" * 300, "ü.de")
def test_a_name_without_address_is_not_found(hosts: ScriptedHosts, host: str) -> None:
    """A name that DNS does not know, or cannot represent, does not exist."""
    caller = Caller(hosts)
    caller.dial(host)
    assert caller.failure is HostNotFound
    assert hosts.dialled == []


@rows(DnsStatus.SERVFAIL, DnsStatus.TIMEOUT, DnsStatus.REFUSED)
def test_no_answer_is_not_no_address(hosts: ScriptedHosts, status: DnsStatus) -> None:
    """A DNS failure makes the host undetermined, even if one family is known to be absent."""
    zone = MemoryZone({"a.example": {"TXT": ["x"]}}, failing={("a.example", "A"): status})
    caller = Caller(hosts, zone)
    caller.dial("a.example")
    assert caller.failure is HostUndetermined


def test_silent_name_servers_cost_the_deadline_only(hosts: ScriptedHosts) -> None:
    """Name servers that never answer delay a connection to the deadline at most."""
    zone = MemoryZone({}, silent=["a.example"])
    caller = Caller(hosts, zone)
    caller.dial("a.example")
    hosts.advance(4.9)
    assert not caller.results
    hosts.advance(0.2)
    assert caller.failure is HostUndetermined
    assert zone.unanswered == []
    assert hosts.getDelayedCalls() == []


class HalfSilentZone(MemoryZone):
    """A zone that never answers queries for IPv6 addresses."""

    def lookup(self, question: Any) -> Any:
        """Answer all queries except AAAA."""
        self.silent = {question.name} if question.rdtype == "AAAA" else set()
        return super().lookup(question)


def test_a_slow_family_is_not_waited_for(hosts: ScriptedHosts) -> None:
    """Name servers that never answer for IPv6 delay a connection by 50 ms only."""
    zone = HalfSilentZone({"a.example": {"A": ["8.8.8.8"]}})
    caller = Caller(hosts, zone)
    caller.dial("a.example")
    hosts.advance(0.06)
    hosts.accept()
    assert hosts.dialled_hosts == ["8.8.8.8"]
    assert zone.unanswered == []
    assert hosts.getDelayedCalls() == []


def test_slow_name_servers_leave_less_time_to_connect(hosts: ScriptedHosts) -> None:
    """DNS queries and connecting share one deadline."""
    zone = LateZone(hosts, {"a.example": {"A": ["8.8.8.8"]}})
    caller = Caller(hosts, zone)
    caller.dial("a.example")
    hosts.pump([1.0] * 4)
    assert len(hosts.dialled) == 1
    assert not caller.results
    hosts.advance(1)
    assert caller.failure is NotConnected


class LateZone(MemoryZone):
    """A zone that answers after three seconds."""

    def __init__(self, hosts: ScriptedHosts, records: Any) -> None:
        super().__init__(records)
        self._hosts = hosts

    def lookup(self, question: Any) -> Any:
        """Answer after three seconds."""
        return deferLater(self._hosts, 3.0, super().lookup, question)

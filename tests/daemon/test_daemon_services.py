"""Services of the daemon: order of start and stop, listening, and periodic work."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from twisted.application.service import MultiService, Service
from twisted.internet.defer import Deferred, fail, succeed
from twisted.internet.protocol import Factory, Protocol
from twisted.internet.task import Clock
from twisted.internet.testing import MemoryReactorClock
from twisted.logger import LogEvent, capturedLogs, formatEvent

from mailcheck.core.errors import StoreUnavailable
from mailcheck.core.network_addresses import parse_listen_address
from mailcheck.daemon.listening import CannotStart, ListeningService, raise_file_limit
from mailcheck.daemon.periodic import PeriodicService
from mailcheck.daemon.services import OrderedServices, ParkedWaits, StoreService
from mailcheck.engines.sqlite import SqliteEngine
from mailcheck.workers.scheduling import DirectWorker
from tests.house import House, result_of
from tests.table import rows


class Recorder(Service):
    """Records its start and stop; the test ends it."""

    def __init__(self, name: str, events: list[str]) -> None:
        self.setName(name)
        self.events = events
        self.stopped: Deferred[None] = Deferred()

    def startService(self) -> None:
        """Record the start."""
        super().startService()
        self.events.append(f"start {self.name}")

    def stopService(self) -> "Deferred[None]":
        """Record the stop."""
        super().stopService()
        self.events.append(f"stop {self.name}")
        return self.stopped


class TestOrderedServices:
    """A tree that stops in reverse order."""

    def test_order(self) -> None:
        """Services start in order and stop one by one in reverse."""
        events: list[str] = []
        tree = OrderedServices()
        services = [Recorder(name, events) for name in "abc"]
        for service in services:
            service.setServiceParent(tree)
        tree.startService()
        assert events == ["start a", "start b", "start c"]
        del events[:]
        stopped = tree.stopService()
        assert events == ["stop c"]
        services[2].stopped.callback(None)
        assert events == ["stop c", "stop b"]
        services[1].stopped.callback(None)
        assert not stopped.called
        services[0].stopped.callback(None)
        assert events == ["stop c", "stop b", "stop a"]
        assert stopped.called
        assert not tree.running

    def test_one_that_fails(self, logged_failures: list[LogEvent]) -> None:
        """A failure to stop is logged, and the other services stop."""
        events: list[str] = []

        class Raising(Service):
            def stopService(self) -> None:
                raise ZeroDivisionError

        tree = OrderedServices()
        last = Recorder("last", events)
        failing = Recorder("failing", events)
        for service in (last, failing, Raising()):
            service.setServiceParent(tree)
        tree.startService()
        stopped = tree.stopService()
        failing.stopped.errback(OSError("no"))
        last.stopped.callback(None)
        assert stopped.called
        assert events[-1] == "stop last"
        kinds = [event["log_failure"].type for event in logged_failures]
        assert kinds == [ZeroDivisionError, OSError]

    def test_within_another_tree(self) -> None:
        """Twisted's application waits for the stop."""
        events: list[str] = []
        application, tree, service = MultiService(), OrderedServices(), Recorder("a", events)
        service.setServiceParent(tree)
        tree.setServiceParent(application)
        application.startService()
        stopped: Any = application.stopService()
        assert not stopped.called
        service.stopped.callback(None)
        assert stopped.called


class TestListening:
    """Listening ports."""

    def test_all_addresses(self) -> None:
        """A service listens on each of its addresses, before privileges are dropped."""
        reactor = MemoryReactorClock()
        addresses = [parse_listen_address(text) for text in ("127.0.0.1:25", "[::1]:26")]
        service = ListeningService(reactor, "mail", addresses, Factory())
        assert reactor.tcpServers == []
        service.privilegedStartService()
        service.startService()
        assert [(port, host) for port, _, _, host in reactor.tcpServers] == [
            (25, "127.0.0.1"),
            (26, "::1"),
        ]

    def test_nothing_to_listen_on(self) -> None:
        """A service without addresses starts and stops."""
        service = ListeningService(MemoryReactorClock(), "mail", [], Factory())
        service.privilegedStartService()
        assert service.stopService().called

    @rows((True, ""), (False, "; the daemon runs without it"))
    async def test_a_busy_port_is_named(self, is_needed: bool, more: str) -> None:
        """A port in use is named with its purpose, the system's message and the option.

        The daemon does not start, or, if the port is optional, this is logged and it starts.
        """
        from twisted.internet import reactor

        real: Any = reactor
        taken = real.listenTCP(0, Factory(), interface="127.0.0.1")
        where = f"127.0.0.1:{taken.getHost().port}"
        address = replace(parse_listen_address(where), setting="[smtp] listen")
        service = ListeningService(real, "mail", [address], Factory(), is_needed=is_needed)
        with capturedLogs() as events:
            try:
                service.privilegedStartService()
            except CannotStart as refused:
                said = [str(refused)]
            else:
                said = [formatEvent(event) for event in events]
        problem = f"mailcheck: cannot listen for mail on {where}: Address already in use"
        assert said == [f"{problem}; choose another address with [smtp] listen{more}"]
        await service.stopService()
        await taken.stopListening()

    @rows("tcp:abc", "tcp:25:what=this", "tcp:", "systemd:domain=INET:name=none", "fd:x")
    def test_an_endpoint_that_is_none(self, text: str) -> None:
        """An unknown or missing endpoint is reported with its name."""
        address = parse_listen_address(text)
        with pytest.raises(CannotStart, match="cannot listen for HTTP on ") as caught:
            ListeningService(MemoryReactorClock(), "HTTP", [address], Factory())
        assert text in str(caught.value)

    @rows("192.0.2.1", "nowhere.invalid")
    async def test_an_address_that_is_not_ours(self, host: str) -> None:
        """An address that this machine does not have is reported."""
        from twisted.internet import reactor

        service = ListeningService(reactor, "HTTP", [parse_listen_address(f"{host}:0")], Factory())
        with pytest.raises(CannotStart, match=f"for HTTP on {host}:0: "):
            service.privilegedStartService()

    async def test_stopping(self) -> None:
        """A service that stops closes its ports, then its connections."""
        from twisted.internet import reactor

        real: Any = reactor
        drained: Deferred[None] = Deferred()
        began: list[bool] = []

        def drain() -> Deferred[None]:
            began.append(bool(service.ports))
            return drained

        factory = Factory.forProtocol(Protocol)
        service = ListeningService(
            real, "mail", [parse_listen_address("127.0.0.1:0")], factory, drain
        )
        service.privilegedStartService()
        host: Any = service.ports[0].getHost()
        stopped = service.stopService()
        stopping: Deferred[None] = Deferred()
        real.callLater(0.01, stopping.callback, None)
        await stopping
        assert began == [False]
        assert not stopped.called
        drained.callback(None)
        await stopped
        again = real.listenTCP(host.port, Factory(), interface="127.0.0.1")
        await again.stopListening()

    def test_a_port_that_does_not_close(self) -> None:
        """Connections are closed in order even if a port fails to close."""
        began: list[str] = []

        def drain() -> Deferred[None]:
            began.append("drain")
            return succeed(None)

        class Stuck:
            def stopListening(self) -> Deferred[None]:
                return fail(OSError("stuck"))

        service = ListeningService(MemoryReactorClock(), "mail", [], Factory(), drain)
        stuck: Any = Stuck()
        service.ports = [stuck, stuck]
        with pytest.raises(Exception, match="stuck"):
            result_of(service.stopService())
        assert began == ["drain"]


class Rounds:
    """Periodic work whose rounds the test ends."""

    def __init__(self) -> None:
        self.rounds: list[Deferred[None]] = []

    async def __call__(self) -> None:
        """Start a round."""
        self.rounds.append(Deferred())
        await self.rounds[-1]

    def end(self, failure: Exception | None = None) -> None:
        """End the current round."""
        if failure is None:
            self.rounds[-1].callback(None)
        else:
            self.rounds[-1].errback(failure)


def begin_rounds(clock: Clock, **options: Any) -> tuple[PeriodicService, Rounds]:
    """Start periodic work."""
    rounds = Rounds()
    service = PeriodicService("work", 10, rounds, clock, **options)
    service.startService()
    return service, rounds


class TestPeriodic:
    """Periodic work."""

    @pytest.fixture
    def clock(self) -> Iterator[Clock]:
        """A clock without delayed calls at the end."""
        clock = Clock()
        yield clock
        assert clock.getDelayedCalls() == []

    def test_rounds(self, clock: Clock) -> None:
        """Rounds start at once and after each interval, and never overlap."""
        service, rounds = begin_rounds(clock)
        assert len(rounds.rounds) == 1
        clock.advance(25)
        assert len(rounds.rounds) == 1
        rounds.end()
        clock.advance(5)
        assert len(rounds.rounds) == 2
        rounds.end()
        clock.advance(10)
        assert len(rounds.rounds) == 3
        rounds.end()
        assert service.stopService().called
        clock.advance(100)
        assert len(rounds.rounds) == 3

    def test_a_first_round_that_nobody_waits_for(self, clock: Clock) -> None:
        """The first round can be delayed, and is cancelled by a stop."""
        service, rounds = begin_rounds(clock, begins_after=2)
        clock.advance(1.9)
        assert rounds.rounds == []
        assert service.stopService().called
        clock.advance(1)
        assert rounds.rounds == []
        service.startService()
        clock.advance(2)
        assert len(rounds.rounds) == 1
        rounds.end()
        clock.advance(10)
        assert len(rounds.rounds) == 2
        rounds.end()
        assert service.stopService().called

    def test_a_round_that_a_stop_cancels(
        self, clock: Clock, logged_failures: list[LogEvent]
    ) -> None:
        """Work with which the next start goes on does not delay a stop, and did not fail."""
        service, rounds = begin_rounds(clock, is_cancelled=True)
        assert service.stopService().called
        assert logged_failures == []
        clock.advance(100)
        assert len(rounds.rounds) == 1

    @pytest.mark.parametrize("failure", [StoreUnavailable("locked"), ZeroDivisionError()])
    def test_a_round_that_fails(
        self, clock: Clock, logged_failures: list[LogEvent], failure: Exception
    ) -> None:
        """A failed round is logged, a bug with its traceback, and the next one runs."""
        service, rounds = begin_rounds(clock)
        rounds.end(failure)
        clock.advance(10)
        assert len(rounds.rounds) == 2
        rounds.end()
        service.stopService()
        traced = [event["log_failure"].value for event in logged_failures]
        assert traced == ([] if isinstance(failure, StoreUnavailable) else [failure])

    def test_stopping_in_the_middle(self, clock: Clock) -> None:
        """A stop waits for the current round."""
        service, rounds = begin_rounds(clock)
        stopped = service.stopService()
        assert not stopped.called
        rounds.end()
        assert stopped.called
        clock.advance(100)
        assert len(rounds.rounds) == 1

    def test_the_last_round(self, clock: Clock) -> None:
        """If requested, the work runs once more after the last round."""
        service, rounds = begin_rounds(clock, ends_with_round=True)
        stopped = service.stopService()
        rounds.end()
        assert len(rounds.rounds) == 2
        assert not stopped.called
        rounds.end()
        assert stopped.called

    def test_stopping_what_never_started(self, clock: Clock) -> None:
        """A service that was never started can be stopped."""
        assert PeriodicService("work", 10, Rounds(), clock).stopService().called

    def test_starting_again(self, clock: Clock) -> None:
        """A stopped service can be started again."""
        rounds = Rounds()
        service = PeriodicService("work", 10, rounds, clock)
        for number in (1, 2):
            service.startService()
            assert len(rounds.rounds) == number
            rounds.end()
            assert service.stopService().called


class Worker(DirectWorker):
    """Records its start and stop."""

    def __init__(self, name: str, events: list[str]) -> None:
        self.name, self.events = name, events

    def start(self) -> None:
        """Record the start."""
        self.events.append(f"start {self.name}")

    def stop(self) -> None:
        """Record the stop."""
        self.events.append(f"stop {self.name}")


class TestStore:
    """The store's service."""

    def test_opened_and_closed(self, tmp_path: Path) -> None:
        """The store is open, and its workers run, while the service runs."""
        events: list[str] = []
        engine = SqliteEngine(
            str(tmp_path / "mail.db"), Worker("writer", events), Worker("reader", events)
        )
        service = StoreService(engine, [Worker("content", events)])
        service.startService()
        assert result_of(engine.read(lambda t: t.rows("SELECT 1"))) == [(1,)]
        assert sorted(events) == ["start content", "start reader", "start writer"]
        del events[:]
        result_of(service.stopService())
        assert sorted(events) == ["stop content", "stop reader", "stop writer"]
        with pytest.raises(StoreUnavailable):
            result_of(engine.read(lambda t: t.rows("SELECT 1")))

    def test_not_opened(self, tmp_path: Path) -> None:
        """No worker of a store that cannot be opened is started."""
        events: list[str] = []
        (tmp_path / "mail.db").write_text("no database" * 100)
        engine = SqliteEngine(str(tmp_path / "mail.db"), DirectWorker(), DirectWorker())
        with pytest.raises(CannotStart, match="not a database"):
            StoreService(engine, [Worker("content", events)]).startService()
        assert events == []
        result_of(engine.close())


def test_waits_end_with_their_service(house: House) -> None:
    """Stopping the service answers all waits with a cursor to continue from."""
    waiting = [house.ask("GET", "/inbox/wait?timeout=60") for _ in range(3)]
    service = ParkedWaits(house.assembly.mail.feeds)
    service.startService()
    assert not any(one.is_answered for one in waiting)
    service.stopService()
    answers = [one.answer() for one in waiting]
    assert {(answer.status, answer.json["cursor"]) for answer in answers} == {(503, "c0")}


def test_open_files() -> None:
    """The limit of open files is raised to its maximum, also repeatedly."""
    import resource

    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(512, before[0]), before[1]))
    for _ in range(2):
        raise_file_limit()
        assert resource.getrlimit(resource.RLIMIT_NOFILE) == (before[1], before[1])

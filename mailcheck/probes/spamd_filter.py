"""Content filters: mails wait for a permit, then a spamd or rspamd judges them."""

from collections.abc import Sequence
from functools import partial
from typing import Protocol

from msgspec import Struct
from msgspec.structs import replace
from twisted.internet.defer import CancelledError, Deferred, succeed
from twisted.internet.interfaces import IReactorTime
from twisted.internet.task import deferLater
from twisted.logger import Logger
from twisted.python.failure import Failure

from mailcheck.checks.deliverability.content_filter import (
    SPAMASSASSIN,
    FilterOutcome,
    FilterProblem,
    FilterUnavailable,
    FilterVerdict,
    unavailable,
)
from mailcheck.checks.deliverability.filtered_mail import (
    MAX_FILTERED,
    FilteredMail,
    shrink_for_filter,
)
from mailcheck.core.errors import ExpectedFailure
from mailcheck.core.memory.instruments import Tally
from mailcheck.operations.semaphores import FairSemaphore, NoPermit
from mailcheck.ports.probes import FilterFailed, PrivateSpamd
from mailcheck.ports.workers import Worker
from mailcheck.probes.spamd_address import SpamdAddress
from mailcheck.probes.spamd_client import SpamdClient, SpamdReactor

DEFAULT_ADDRESSES = (
    SpamdAddress("127.0.0.1", 783),  # Debian, Ubuntu, FreeBSD, Homebrew
    SpamdAddress(path="/run/spamd.sock"),
    SpamdAddress(path="/run/spamassassin/spamd.sock"),
    SpamdAddress(path="/var/run/spamassassin/spamd.sock"),
)
"""Where ``auto`` looks for a spamd. Only root can create these, so they belong to the operator of
this machine. Mails are sent to no other spamd."""


class FilterClient(Protocol):
    """A client of a filter that runs."""

    async def report(self, mail: bytes) -> FilterVerdict:
        """Return the verdict about a mail.

        :raises FilterFailed: the filter did not judge the mail.
        """


class FilterFinder(Protocol):
    """Finds the filter to use."""

    async def find(self) -> tuple[FilterClient, str]:
        """Return a client for the filter, and the name of its engine.

        :raises FilterFailed: this machine does not have the filter.
        """

    def forget(self) -> None:
        """Search again next time, since the filter does not answer."""


class ConfiguredFilter(Struct, frozen=True, eq=False):
    """A filter at a configured address."""

    client: FilterClient
    engine: str = SPAMASSASSIN

    async def find(self) -> tuple[FilterClient, str]:
        """Return the client, whether the filter answers or not."""
        return self.client, self.engine

    def forget(self) -> None:
        """Do nothing, since the address is fixed."""


class NoSpamd:
    """The disabled content filter."""

    async def find(self) -> tuple[FilterClient, str]:
        """Raise `FilterFailed`."""
        raise FilterFailed(FilterProblem.OFF)

    def forget(self) -> None:
        """Do nothing."""


class AutomaticSpamd:
    """A spamd that runs on this machine, or a private one started by the daemon.

    A running one is used until it does not answer. It is searched for each time before the
    private one is started.
    """

    def __init__(
        self,
        reactor: SpamdReactor,
        private: PrivateSpamd,
        places: Sequence[SpamdAddress] = DEFAULT_ADDRESSES,
    ) -> None:
        self._reactor = reactor
        self._private = private
        self._semaphore = places
        self._running: SpamdClient | None = None

    async def find(self) -> tuple[FilterClient, str]:
        """Return the running spamd, or start the private one."""
        if self._running is None and not self._private.is_running:
            self._running = await self._find_running()
        if self._running is not None:
            return self._running, SPAMASSASSIN
        path = await self._private.socket_path()
        client = SpamdClient(self._reactor, SpamdAddress(path=path))
        return client, self._private.engine

    def forget(self) -> None:
        """Search for a running spamd again."""
        self._running = None

    async def _find_running(self) -> SpamdClient | None:
        for place in self._semaphore:
            client = SpamdClient(self._reactor, place)
            if await client.answers():
                return client
        return None


ATTEMPTS = 2
"""Attempts per mail, in case the spamd is killed or restarted meanwhile."""

_NO_FAULTS = (
    FilterProblem.OFF,
    FilterProblem.NOT_INSTALLED,
    FilterProblem.TOO_LARGE,
    FilterProblem.SKIPPED,
)
"""Problems that need no attention of the operator."""

PAUSE_SECONDS = 1.0
"""Seconds between the attempts, until the end of a private spamd has been noticed."""


class FilterLimits(Struct, frozen=True):
    """Limits of the content filter; times are in seconds.

    Two children of spamd judge about six mails per second, so a hundred waiting mails take 17 s.
    """

    at_a_time: int = 2
    waiting: int = 200
    wait_seconds: float = 60.0
    judge_seconds: float = 45.0
    """For finding or starting a spamd and both attempts together."""


class QueuedFilter:
    """Implements `ContentFilter` with a spamd or rspamd.

    :param worker: parses large mails, which can take seconds.
    :param name: the name of the filter in messages.

    ``outcomes`` counts verdicts ("judged") and the reasons why there was none.
    """

    _log = Logger()

    def __init__(
        self,
        finder: FilterFinder,
        clock: IReactorTime,
        worker: Worker,
        limits: FilterLimits | None = None,
        name: str = SPAMASSASSIN,
    ) -> None:
        self.outcomes = Tally()
        self._name = name
        self._worker = worker
        self._finder = finder
        self._clock = clock
        self._limits = limits or FilterLimits()
        self._semaphore: FairSemaphore[None] = FairSemaphore(
            clock,
            limit=self._limits.at_a_time,
            per_owner=self._limits.at_a_time,
            max_waiting=self._limits.waiting,
        )
        self._under_way: set[Deferred[FilterOutcome]] = set()
        self._is_closed = False

    def judge(self, raw_message: bytes) -> Deferred[FilterOutcome]:
        """Judge a mail as `ContentFilter` specifies."""
        if self._is_closed:
            return succeed(self._unavailable(FilterProblem.UNREACHABLE))
        judging = Deferred.fromCoroutine(self._counted(raw_message))
        if not judging.called:
            self._under_way.add(judging)
            judging.addBoth(self._forget, judging)
        return judging

    def close(self) -> Deferred[None]:
        """End running judgements as undetermined, and judge no more mails."""
        self._is_closed = True
        for judging in list(self._under_way):
            judging.cancel()
        return succeed(None)

    async def _counted(self, raw_message: bytes) -> FilterOutcome:
        outcome = await self._judge(raw_message)
        problem = outcome.problem.value if isinstance(outcome, FilterUnavailable) else "judged"
        self.outcomes.add(problem)
        return outcome

    def _unavailable(self, problem: FilterProblem) -> FilterUnavailable:
        return unavailable(problem, self._name)

    async def _judge(self, raw_message: bytes) -> FilterOutcome:
        try:
            async with self._semaphore.held(None, self._limits.wait_seconds):
                judging = Deferred.fromCoroutine(self._ask(raw_message))
                return await judging.addTimeout(self._limits.judge_seconds, self._clock, _give_up)
        except NoPermit:
            self._log.warn("{filter} did not judge: too many mails are waiting", filter=self._name)
            return self._unavailable(FilterProblem.BUSY)
        except FilterFailed as failure:
            if failure.problem not in _NO_FAULTS:
                self._warn(failure)
            return self._unavailable(failure.problem)
        except ExpectedFailure as failure:
            self._warn(failure)
            return self._unavailable(FilterProblem.UNREACHABLE)
        except CancelledError:
            if not self._is_closed:
                raise
            return self._unavailable(FilterProblem.UNREACHABLE)
        except Exception:
            # An internal failure must not affect the sender's score.
            self._log.failure("{filter} failed", filter=self._name)
            return self._unavailable(FilterProblem.BROKEN_ANSWER)

    def _warn(self, failure: Exception) -> None:
        self._log.warn("{filter} did not judge: {failure}", filter=self._name, failure=failure)

    async def _ask(self, raw_message: bytes) -> FilterVerdict:
        mail = await self._fit(raw_message)
        if mail is None:
            raise FilterFailed(FilterProblem.TOO_LARGE)
        for attempts_left in reversed(range(ATTEMPTS)):
            client, engine = await self._finder.find()
            try:
                verdict = await client.report(mail.raw_message)
                return replace(verdict, engine=engine, left_out=mail.left_out)
            except FilterFailed as failure:
                if failure.problem is not FilterProblem.UNREACHABLE:
                    raise
                self._finder.forget()
                if not attempts_left:
                    raise
                await deferLater(self._clock, PAUSE_SECONDS)
        raise AssertionError("there is at least one attempt")

    async def _fit(self, raw_message: bytes) -> FilteredMail | None:
        if len(raw_message) <= MAX_FILTERED:
            return shrink_for_filter(raw_message)
        return await self._worker.run(partial(shrink_for_filter, raw_message))

    def _forget(
        self, outcome: FilterOutcome | Failure, judging: Deferred[FilterOutcome]
    ) -> FilterOutcome | Failure:
        self._under_way.discard(judging)
        return outcome


def _give_up(_: object, seconds: float) -> FilterVerdict:
    raise FilterFailed(FilterProblem.TIMEOUT, f"no verdict in {seconds:.0f} s")

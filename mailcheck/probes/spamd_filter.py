"""The content filter: mails wait for a free place, then a spamd judges them."""

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
    FilterOutcome,
    FilterProblem,
    FilterVerdict,
    unavailable,
)
from mailcheck.checks.deliverability.filtered_mail import (
    MAX_FILTERED,
    FilteredMail,
    shrink_for_filter,
)
from mailcheck.core.errors import ExpectedFailure
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
"""Where ``auto`` looks. What listens there was put there by root, so it is a filter of this
machine's operator; a mail is shown to nobody else."""

ENGINE = "SpamAssassin"


class SpamdFinder(Protocol):
    """Says whom to ask."""

    async def find(self) -> tuple[SpamdClient, str]:
        """Give a client for the spamd to use, and the name of its engine.

        :raises FilterFailed: there is none.
        """

    def forget(self) -> None:
        """Look again the next time: what was found does not answer."""


class ConfiguredSpamd:
    """The one at an address that the operator named."""

    def __init__(self, reactor: SpamdReactor, address: SpamdAddress) -> None:
        self._client = SpamdClient(reactor, address)

    async def find(self) -> tuple[SpamdClient, str]:
        """Give it, whether it answers or not."""
        return self._client, ENGINE

    def forget(self) -> None:
        """Have no other."""


class NoSpamd:
    """The content filter is switched off."""

    async def find(self) -> tuple[SpamdClient, str]:
        """Refuse."""
        raise FilterFailed(FilterProblem.OFF)

    def forget(self) -> None:
        """Have nothing to forget."""


class AutomaticSpamd:
    """One that runs on this machine already, else one of our own.

    A running one is remembered until it does not answer, and looked for each
    time before our own is started.
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

    async def find(self) -> tuple[SpamdClient, str]:
        """Give the running one, else start our own."""
        if self._running is None and not self._private.is_running:
            self._running = await self._find_running()
        if self._running is not None:
            return self._running, ENGINE
        path = await self._private.socket_path()
        client = SpamdClient(self._reactor, SpamdAddress(path=path))
        return client, self._private.engine

    def forget(self) -> None:
        """Look for a running one again."""
        self._running = None

    async def _find_running(self) -> SpamdClient | None:
        for place in self._semaphore:
            client = SpamdClient(self._reactor, place)
            if await client.answers():
                return client
        return None


ATTEMPTS = 2
"""A spamd that was killed or restarted under a mail gets it once more."""

_NO_FAULTS = (FilterProblem.OFF, FilterProblem.NOT_INSTALLED, FilterProblem.TOO_LARGE)
"""What nobody has to look after."""

PAUSE_SECONDS = 1.0
"""Between the attempts: until it is noticed that a private spamd is gone."""


class FilterLimits(Struct, frozen=True):
    """How much is asked at a time; seconds.

    Two children of spamd judge about six mails a second: a hundred that wait
    are through in 17 s.
    """

    at_a_time: int = 2
    waiting: int = 200
    wait_seconds: float = 60.0
    judge_seconds: float = 45.0
    """For all of it: finding or starting a spamd, and both attempts."""


class SpamdFilter:
    """Judges mails by a spamd; keeps the promises of `ContentFilter`."""

    _log = Logger()

    def __init__(
        self,
        finder: SpamdFinder,
        clock: IReactorTime,
        worker: Worker,
        limits: FilterLimits | None = None,
    ) -> None:
        """``worker`` takes large mails apart, which can take seconds."""
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
        """Judge a mail as `ContentFilter` promises."""
        if self._is_closed:
            return succeed(unavailable(FilterProblem.UNREACHABLE))
        judging = Deferred.fromCoroutine(self._judge(raw_message))
        if not judging.called:
            self._under_way.add(judging)
            judging.addBoth(self._forget, judging)
        return judging

    def close(self) -> Deferred[None]:
        """End what is under way as undetermined, and judge nothing from now on."""
        self._is_closed = True
        for judging in list(self._under_way):
            judging.cancel()
        return succeed(None)

    async def _judge(self, raw_message: bytes) -> FilterOutcome:
        try:
            async with self._semaphore.held(None, self._limits.wait_seconds):
                judging = Deferred.fromCoroutine(self._ask(raw_message))
                return await judging.addTimeout(self._limits.judge_seconds, self._clock, _give_up)
        except NoPermit:
            self._log.warn("The content filter did not judge: too many mails are waiting")
            return unavailable(FilterProblem.BUSY)
        except FilterFailed as failure:
            if failure.problem not in _NO_FAULTS:
                self._log.warn("The content filter did not judge: {failure}", failure=failure)
            return unavailable(failure.problem)
        except ExpectedFailure as failure:
            self._log.warn("The content filter did not judge: {failure}", failure=failure)
            return unavailable(FilterProblem.UNREACHABLE)
        except CancelledError:
            if not self._is_closed:
                raise
            return unavailable(FilterProblem.UNREACHABLE)
        except Exception:
            # A fault of ours is none of the sender's: the report says "could not be determined".
            self._log.failure("The content filter failed")
            return unavailable(FilterProblem.BROKEN_ANSWER)

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

"""A private spamd for machines without one, started for the first mail and ended when idle.

A laptop on which no mail is tested does not spend the 240 MB that it uses. The
first mail after a pause waits 1-2 s for the start.
"""

from collections.abc import Callable

from twisted.application.service import Service
from twisted.internet.defer import Deferred, DeferredList, fail, succeed
from twisted.internet.interfaces import IDelayedCall
from twisted.logger import Logger

from mailcheck.checks.deliverability.content_filter import FilterProblem
from mailcheck.daemon.spamd_folder import (
    SpamdSettings,
    make_folder,
    user_to_become,
)
from mailcheck.daemon.spamd_process import SpamdProcess, SpamdReactor, spawn
from mailcheck.operations.concurrency import stop_timer
from mailcheck.ports.probes import FilterFailed

START_SECONDS = 20.0
"""Timeout in seconds for its start, which takes 0.4-1.6 s and longer on a busy machine."""

IDLE_SECONDS = 600.0
"""Seconds until it is ended after the last mail. Longer than a check of a mail takes."""

STABLE_SECONDS = 60.0
"""Seconds after which its start counts as successful."""

MAX_BACK_OFF = 60.0
"""Maximum seconds between restarts if it keeps dying."""


class SpamdService(Service):
    """Implements `PrivateSpamd` while the service runs. Stopping it ends spamd."""

    _log = Logger()

    def __init__(
        self,
        reactor: SpamdReactor,
        settings: SpamdSettings,
        find_program: Callable[[], str | None],
    ) -> None:
        """``find_program`` returns the path of spamd, which may be installed at any time."""
        self._reactor = reactor
        self._settings = settings
        self._find_program = find_program
        self._current: SpamdProcess | None = None
        self._all: set[SpamdProcess] = set()
        self._waiting: list[Deferred[str]] = []
        self._timer: IDelayedCall | None = None
        self._short_lives = 0
        self._not_before = 0.0
        self.engine = "SpamAssassin"

    @property
    def is_running(self) -> bool:
        """Whether it accepts connections or is starting."""
        return self._current is not None

    def socket_path(self) -> Deferred[str]:
        """Return the path of the socket, as defined by `PrivateSpamd`."""
        if not self.running:
            return fail(FilterFailed(FilterProblem.UNREACHABLE, "the daemon is stopping"))
        if self._current is None:
            try:
                self._start()
            except FilterFailed as failure:
                return fail(failure)
        assert self._current is not None
        if self._current.listens:
            self._set_timer(IDLE_SECONDS, self._end_idle)
            return succeed(self._current.folder.socket)
        waiting: Deferred[str] = Deferred(self._waiting.remove)
        self._waiting.append(waiting)
        return waiting

    def stopService(self) -> Deferred[None]:
        """Stop. Fires when all processes of spamd have ended."""
        super().stopService()
        self._let_go("the daemon is stopping")
        endings = [process.when_ended for process in self._all]
        for process in list(self._all):
            process.end()
        ended: Deferred[None] = DeferredList(endings).addCallback(lambda _: None)
        return ended

    def spamd_listens(self, process: SpamdProcess) -> None:
        """Pass the path of the socket to the waiting callers."""
        if process is not self._current:
            return
        self.engine = f"SpamAssassin {process.version}"
        self._log.info("A private {engine} was started", engine=self.engine)
        self._set_timer(IDLE_SECONDS, self._end_idle)
        waiting, self._waiting = self._waiting, []
        for each in waiting:
            each.callback(process.folder.socket)

    def spamd_ended(self, process: SpamdProcess) -> None:
        """Record the end. Delay the next start if spamd keeps ending unexpectedly."""
        self._all.discard(process)
        if process is not self._current:
            return
        now = self._reactor.seconds()
        is_stable = process.listens and now - process.started_at >= STABLE_SECONDS
        self._short_lives = 0 if is_stable else self._short_lives + 1
        if self._short_lives > 1:
            self._not_before = now + min(MAX_BACK_OFF, 2.0 ** (self._short_lives - 2))
        self._log.warn("The private spamd has ended by itself")
        self._let_go("it has ended by itself")

    def _start(self) -> None:
        """Start a process.

        :raises FilterFailed: it cannot be started, or not yet.
        """
        program = self._find_program()
        if program is None:
            raise FilterFailed(FilterProblem.NOT_INSTALLED)
        if not self._settings.children:
            raise FilterFailed(FilterProblem.NO_MEMORY)
        if self._reactor.seconds() < self._not_before:
            raise FilterFailed(FilterProblem.UNREACHABLE, "it keeps ending by itself")
        try:
            user = user_to_become(self._settings)
            folder = make_folder(user)
            command = folder.command(program, self._settings)
            self._current = spawn(self._reactor, folder, user, command, self)
        except (OSError, KeyError) as error:
            raise FilterFailed(FilterProblem.UNREACHABLE, f"cannot be started: {error}") from error
        self._all.add(self._current)
        self._set_timer(START_SECONDS, self._give_up_start)

    def _end_idle(self) -> None:
        self._log.info("The private spamd is idle and ends")
        self._end_current("it was idle")

    def _give_up_start(self) -> None:
        self._log.warn("The private spamd does not start")
        self._not_before = self._reactor.seconds() + MAX_BACK_OFF
        self._end_current("it does not start")

    def _end_current(self, why: str) -> None:
        process = self._current
        self._let_go(why)
        if process is not None:
            process.end()

    def _let_go(self, why: str) -> None:
        """Forget the current process, and fail the waiting callers."""
        self._current = None
        stop_timer(self._timer)
        waiting, self._waiting = self._waiting, []
        for each in waiting:
            each.errback(FilterFailed(FilterProblem.UNREACHABLE, why))

    def _set_timer(self, seconds: float, call: Callable[[], None]) -> None:
        stop_timer(self._timer)
        self._timer = self._reactor.callLater(seconds, call)

"""Backups on a schedule. Each is made and checked by a process of its own."""

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from msgspec import Struct
from twisted.application.service import Service
from twisted.internet.defer import Deferred, maybeDeferred, succeed
from twisted.internet.interfaces import IDelayedCall
from twisted.internet.protocol import ProcessProtocol
from twisted.logger import Logger
from twisted.python.failure import Failure

from mailcheck.core.memory.instruments import Conditions, Tally
from mailcheck.operations.backups import (
    HOUR,
    Backup,
    find_backups,
    find_newest_backup,
    is_overdue,
    name_of_backup,
)
from mailcheck.operations.concurrency import stop_timer

INTERVAL = 10.0
"""Seconds between two checks whether a backup is due."""

RETRY = 600.0
"""Seconds until another try after a failure."""

PATIENCE = 5.0
"""Seconds for a process to end when the daemon stops. Afterwards it is killed."""

BUSY = 75
"""Exit status of a process while another one makes a backup in the same folder."""

PROGRAM = "mailcheck.engines.backup_process"

BACKUP = "backup"
"""The subject of the condition."""


class BackupPlan(Struct, frozen=True):
    """When and where backups are made.

    :param every: hours between backups; 0 for no backups.
    :param keep: number of backups that are kept.
    :param least_free: bytes that a backup leaves free on the disk of the database.
    """

    every: float
    keep: int
    folder: Path
    url: str
    least_free: int


class Backups(Service):
    """Makes a backup when the newest one in the folder is old enough, also after a restart.

    Daemons that share a folder make one backup together. ``outcomes`` counts those of this daemon.
    """

    _log = Logger()

    def __init__(
        self,
        plan: Callable[[], BackupPlan],
        conditions: Conditions,
        now: Callable[[], float],
        reactor: Any,
    ) -> None:
        """Prepare.

        :param plan: returns the current plan, which a reload may change.
        :param now: returns the time of day in seconds since 1970.
        """
        self._plan = plan
        self._conditions = conditions
        self._now = now
        self._reactor = reactor
        self._not_before = 0.0
        self._process: _BackupProcess | None = None
        self.outcomes = Tally()

    @property
    def newest(self) -> Backup | None:
        """The newest backup, of any daemon that shares the folder; `None` if there is none."""
        plan = self._plan()
        try:
            return find_newest_backup(plan.folder) if plan.every else None
        except OSError:
            return None

    @property
    def every(self) -> float:
        """Seconds between backups; 0 for no backups."""
        return self._plan().every * HOUR

    async def look(self) -> None:
        """Make a backup if one is due, and delete those that are not kept."""
        plan, now = self._plan(), self._now()
        if not plan.every:
            self._conditions.set(BACKUP, "")
            return
        try:
            newest = find_newest_backup(plan.folder)
        except OSError as error:
            self._note(f"{plan.folder}: {error.strerror}")
            return
        if not is_overdue(newest, plan.every, now):
            self._conditions.set(BACKUP, "")
        is_due = newest is None or not 0 <= now - newest.made_at < plan.every * HOUR
        if is_due and self._reactor.seconds() >= self._not_before:
            await self._make(plan, now)

    async def _make(self, plan: BackupPlan, now: float) -> None:
        path = plan.folder / name_of_backup(plan.url, now)
        began = self._reactor.seconds()
        self._process = process = _BackupProcess(plan.url)
        command = [sys.executable, "-m", PROGRAM, str(path), str(plan.least_free)]
        self._reactor.spawnProcess(process, sys.executable, command, env=dict(os.environ))
        status, said = await process.when_ended
        self._process = None
        if not self.running or status == BUSY:
            return
        if status:
            self._note(said or f"the process ended with status {status}")
            return
        seconds = self._reactor.seconds() - began
        self.outcomes.add("made")
        self._log.info(
            "backup made and checked: {path}, {size} bytes, {seconds} s",
            path=path,
            size=path.stat().st_size,
            seconds=round(seconds, 1),
        )
        self._conditions.set(BACKUP, "")
        for backup in find_backups(plan.folder)[plan.keep :]:
            backup.path.unlink(missing_ok=True)

    def _note(self, problem: str) -> None:
        self._not_before = self._reactor.seconds() + RETRY
        self.outcomes.add("failed")
        self._conditions.explain(BACKUP, problem)
        self._conditions.set(BACKUP, "the last one failed, and is tried again")

    def stopService(self) -> Deferred[Any]:
        """End the process. An unfinished copy is deleted by it or by the next one."""
        super().stopService()
        return maybeDeferred(self._end)

    def _end(self) -> Deferred[Any]:
        process = self._process
        if process is None:
            return succeed(None)
        process.transport.signalProcess("TERM")
        too_late: IDelayedCall = self._reactor.callLater(
            PATIENCE, process.transport.signalProcess, "KILL"
        )

        def ended(result: object) -> object:
            stop_timer(too_late)
            return result

        return process.when_gone.addBoth(ended)


class _BackupProcess(ProcessProtocol):
    """Sends the URL, and reads the problem. ``when_ended`` has the exit status and the problem."""

    transport: Any

    def __init__(self, url: str) -> None:
        self._url = url
        self._said = b""
        self.when_ended: Deferred[tuple[int, str]] = Deferred()
        self.when_gone: Deferred[None] = Deferred()

    def connectionMade(self) -> None:
        """Send the URL."""
        self.transport.write(self._url.encode())
        self.transport.closeStdin()

    def errReceived(self, data: bytes) -> None:  # noqa: N802
        """Read the problem."""
        self._said += data

    def processEnded(self, reason: Failure) -> None:
        """Report the end."""
        status = getattr(reason.value, "exitCode", None)
        said = self._said.decode("utf-8", "replace").strip()
        last = said.splitlines()[-1] if said else ""
        self.when_ended.callback((-1 if status is None else status, last))
        self.when_gone.callback(None)

"""The protocol of one private spamd: its start, its log and its end."""

import re
import sys
from typing import Protocol

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import (
    IDelayedCall,
    IProcessTransport,
    IReactorProcess,
    IReactorTime,
)
from twisted.internet.protocol import ProcessProtocol
from twisted.logger import Logger
from twisted.python.failure import Failure

from mailcheck.daemon.spamd_folder import SpamdFolder
from mailcheck.operations.concurrency import stop_timer

KEEPER = "mailcheck.daemon.spamd_keeper"

INPUT, OUTPUT, ERRORS = 0, 1, 2
"""File descriptors of the keeper."""

KILL_SECONDS = 10.0
"""Seconds until the keeper is killed. It ends spamd within 5 s unless it hangs."""

LAST_WORDS_SECONDS = 1.0
"""Seconds between the end of the keeper and the closing of its pipes. spamd ends before it."""

MAX_LINE = 2_000

_STARTED = re.compile(r"server started on UNIX domain socket .*\(running version ([\w.]{1,20})\)")
_HEAD = re.compile(r".*?\[\d+\] (info|warn|error|dbg): (.*)")
# Messages of spamd about itself. All other lines may quote a mail.
_OF_ITSELF = re.compile(
    r"prefork: |spamd: (timeout: |server (pid|killed|hit|successfully) |handled cleanup of child )"
)


class SpamdReactor(IReactorTime, IReactorProcess):
    """The interfaces of a reactor that a private spamd needs: time and processes."""


class Owner(Protocol):
    """Receives events of the process."""

    def spamd_listens(self, process: "SpamdProcess") -> None:
        """Handle that it accepts connections."""

    def spamd_ended(self, process: "SpamdProcess") -> None:
        """Handle that it has ended."""


class SpamdProcess(ProcessProtocol):
    """The protocol of a keeper with its spamd."""

    _log = Logger()
    transport: IProcessTransport

    def __init__(self, folder: SpamdFolder, owner: Owner, clock: IReactorTime) -> None:
        self.folder = folder
        self.version = ""
        self.started_at = clock.seconds()
        self.listens = False
        self.when_ended: Deferred[None] = Deferred()
        self._owner = owner
        self._clock = clock
        self._line = ""
        self._is_ending = False
        self._timer: IDelayedCall | None = None

    def end(self) -> None:
        """Let the keeper end spamd. ``when_ended`` fires afterwards."""
        if not self._is_ending:
            self._is_ending = True
            self.transport.closeChildFD(INPUT)
            self._timer = self._clock.callLater(KILL_SECONDS, self._kill)

    def childDataReceived(self, childFD: int, data: bytes) -> None:
        """Read lines. Only the beginning of an overlong line is kept."""
        *lines, rest = (self._line + data.decode("utf-8", "replace")).split("\n")
        self._line = rest[:MAX_LINE]
        for line in lines:
            self._read(line[:MAX_LINE])

    def processExited(self, reason: Failure) -> None:
        """Read the rest of the pipes, but do not wait for other processes that have them open."""
        stop_timer(self._timer)
        self._is_ending = True
        self._timer = self._clock.callLater(LAST_WORDS_SECONDS, self.transport.loseConnection)

    def processEnded(self, reason: Failure) -> None:
        """Report the end to the owner."""
        stop_timer(self._timer)
        self._is_ending = True
        self._owner.spamd_ended(self)
        self.when_ended.callback(None)

    def _kill(self) -> None:
        self.transport.signalProcess("KILL")

    def _read(self, line: str) -> None:
        started = _STARTED.search(line)
        if started is not None and not self.listens:
            self.listens = True
            self.version = started[1]
            self._owner.spamd_listens(self)
            return
        head = _HEAD.fullmatch(line)
        level, text = head.groups() if head else ("warn", line)
        if not self.listens or _OF_ITSELF.match(text):
            if level in ("warn", "error"):
                self._log.warn("spamd: {text}", text=text)
            else:
                self._log.debug("spamd: {text}", text=text)
        elif level in ("warn", "error"):
            self._log.debug("spamd complains about a mail")


def spawn(
    reactor: SpamdReactor, folder: SpamdFolder, user: str, command: list[str], owner: Owner
) -> SpamdProcess:
    """Start spamd with its keeper, which deletes the directory at the end.

    :raises OSError: the process cannot be created. The directory was deleted.
    """
    process = SpamdProcess(folder, owner, reactor)
    arguments = [sys.executable, "-m", KEEPER, str(folder.path), user, *command]
    pipes = {INPUT: "w", OUTPUT: "r", ERRORS: "r"}
    try:
        reactor.spawnProcess(process, sys.executable, arguments, env=None, childFDs=pipes)
    except OSError:
        folder.remove()
        raise
    return process

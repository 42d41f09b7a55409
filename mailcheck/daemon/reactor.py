"""What is changed of the reactor before it runs: its clock, and how it calls who is ready."""

import errno
import time
from functools import partial
from typing import Any

from twisted.logger import Logger

_log = Logger()


def prepare_reactor(reactor: Any) -> None:
    """Change a reactor that does not run yet."""
    run_on_monotonic_clock(reactor)
    dispatch_bare(reactor)


def run_on_monotonic_clock(reactor: Any) -> None:
    """Have a reactor that does not run yet measure all delays by the monotonic clock.

    Twisted measures them by the time of day: when that is set back, nothing is due for so long.
    """
    assert not reactor.getDelayedCalls(), "calls were delayed by another clock"
    reactor.seconds = time.monotonic


def dispatch_bare(reactor: Any) -> None:
    """Spare an epoll reactor the log context that it puts around each call.

    Five of them go with a mail, and what they cost is a fifteenth of taking it in. The
    context names a connection in messages of Twisted's old log functions; nothing of ours
    uses those. Any other reactor stays as it is.
    """
    if type(reactor).__name__ == "EPollReactor":
        reactor.doIteration = partial(_poll, reactor)


def _poll(reactor: Any, timeout: float | None) -> None:
    """Do what `EPollReactor.doPoll` does, which also says what the errors mean."""
    selectables, do = reactor._selectables, reactor._doReadOrWrite
    try:
        ready = reactor._poller.poll(-1 if timeout is None else timeout, len(selectables))
    except OSError as error:
        if error.errno == errno.EINTR:
            return
        raise
    for descriptor, event in ready:
        # One that was called before may have closed it.
        selectable = selectables.get(descriptor)
        if selectable is None:
            continue
        try:
            do(selectable, descriptor, event)
        except KeyboardInterrupt:
            raise
        except BaseException:
            _log.failure("a connection could not be served")

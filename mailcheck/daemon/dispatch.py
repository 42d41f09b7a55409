"""How the reactor calls those whose sockets are ready: without a log context for each of them."""

import errno
from functools import partial
from typing import Any

from twisted.logger import Logger

_log = Logger()


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

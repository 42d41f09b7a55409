"""Where blocking work runs: in processes and threads of the daemon, at once for a command.

And which sockets leave the reactor to mail, and to the answers of those processes.
"""

import os
import select
from functools import partial
from typing import Any

from msgspec import Struct, field
from twisted.internet.interfaces import IReactorFDSet
from twisted.logger import Logger

from mailcheck.engines.database import call_immediately
from mailcheck.operations.lazy_functions import (
    derive_content,
    patch_dkimpy,
    read_mail_for_score,
)
from mailcheck.ports.clocks import CallSoon
from mailcheck.ports.workers import Worker
from mailcheck.workers.child import load, lower_priority, may_lower_priority
from mailcheck.workers.process import ProcessWorker
from mailcheck.workers.scheduling import DirectWorker, MeasuredWorker, SerialWorker, WarmedWorker
from mailcheck.workers.threads import ThreadWorker, nice_threads

_log = Logger()

READER_THREADS = 4
"""Reads at a time; each is short, and the disk cache serves most."""

MOST_PASSWORD_THREADS = 2
"""Hashes at a time: they compute outside the interpreter's lock, 32 MiB each."""

LONGEST_READING = 20.0
"""Seconds for one step of reading a mail: the worst that 25 MiB were made to take is two of them,
on a machine that has nothing else to do."""

LONGEST_COMMIT = 6.0
"""Seconds for a commit: more than another process may hold the database up, and little enough for
a sender to hear within ten seconds that he should try again."""

NICENESS = 10
"""Of all that may take long, against what takes in mail and answers: those who guess passwords, or
have large mails read, use the processor that nobody else wants."""

WRITTEN_BY = {
    False: ("mailcheck.store.mail_delivery", "mailcheck.engines.sqlite_writer"),
    True: ("mailcheck.store.mail_delivery", "mailcheck.engines.postgresql_connection"),
}
"""What the process that writes needs for a mail, by whether the database is shared."""

CONTENT_AFTER, ANALYSIS_AFTER = 0.2, 2.0
"""Seconds after which a process begins that was not started ahead of the daemon (`Workers.ahead`).
What analyses mails learns that only after the first one: it takes as much memory as the others."""

FIRST_MAIL = b"\r\nYour code is 482913: https://example.com/\r\n"
"""A mail that is taken apart before there is any: the first real one would wait for 0.4 s."""


class Workers(Struct, frozen=True):
    """Where blocking work runs; ``call_soon`` is after all that the reactor has found to do.

    ``needed`` are the processes and threads behind it without which the daemon is not ready. What
    reads large mails is ``patient``: it may take as long as it is given, and is replaced after
    that. Those ``ahead`` may be started before the daemon: they learn their work while it does,
    on another processor. Somebody may send a first mail, and wait for its codes, the moment that
    it is ready.
    """

    writer: Worker
    reader: Worker
    content: Worker
    passwords: Worker = field(default_factory=DirectWorker)
    analysis: Worker = field(default_factory=DirectWorker)
    large: Worker = field(default_factory=DirectWorker)
    call_soon: CallSoon = call_immediately
    needed: tuple[ProcessWorker | ThreadWorker, ...] = ()
    patient: tuple[ProcessWorker, ...] = ()
    ahead: tuple[ProcessWorker, ...] = ()

    @property
    def measured(self) -> dict[str, MeasuredWorker]:
        """Give the workers that are measured, by name."""
        named = {
            "writer": self.writer,
            "reader": self.reader,
            "content": self.content,
            "passwords": self.passwords,
            "analysis": self.analysis,
            "large": self.large,
        }
        return {
            name: worker for name, worker in named.items() if isinstance(worker, MeasuredWorker)
        }

    @property
    def beside_store(self) -> tuple[Worker, ...]:
        """Give the workers that no engine starts and stops itself."""
        return self.content, self.passwords, self.analysis, self.large


def daemon_workers(reactor: Any, *, is_shared: bool) -> Workers:
    """Give the workers of a daemon, whose database is a file, or is shared with other daemons.

    Writing, taking mails apart and analysing them have processes of their own:
    in a thread each of their steps would take the interpreter's lock from the
    receiver. No mail holds up the next ones for long, and no small one waits
    behind a large one: the process of these starts with the first of them.
    """

    def measured(worker: Worker) -> Worker:
        return MeasuredWorker(worker, reactor)

    be_nice = partial(lower_priority, NICENESS)
    writer = ProcessWorker(reactor, "writer", LONGEST_COMMIT, partial(load, *WRITTEN_BY[is_shared]))
    learn_to_read = partial(derive_content, FIRST_MAIL)
    content = ProcessWorker(reactor, "content", LONGEST_READING, learn_to_read)
    analysis = ProcessWorker(reactor, "analysis", LONGEST_READING, be_nice, patch_dkimpy)
    large = ProcessWorker(reactor, "large", LONGEST_READING, be_nice)
    reads = WarmedWorker(SerialWorker(content), load, reactor, CONTENT_AFTER)
    analyses = WarmedWorker(
        SerialWorker(analysis),
        partial(read_mail_for_score, FIRST_MAIL),
        reactor,
        ANALYSIS_AFTER,
        reads,
    )
    reader = ThreadWorker(reactor, "reader", READER_THREADS)
    hashes = password_threads(os.cpu_count() or 1)
    passwords = ThreadWorker(reactor, "passwords", hashes, nice_threads(NICENESS))
    return Workers(
        measured(writer),
        measured(reader),
        measured(reads),
        measured(passwords),
        measured(analyses),
        measured(WarmedWorker(SerialWorker(large), None, reactor, 0.0)),
        partial(reactor.callLater, 0),
        (writer, content, analysis, reader, passwords),
        (large,),
        (writer, content),
    )


def log_refused_priority() -> None:
    """Log once that long work runs at the priority of all other work."""
    if not may_lower_priority():
        _log.info(
            "the system refuses a lower priority (setpriority), so guessed passwords and large "
            "mails can slow down the receipt of mail"
        )


def password_threads(processors: int) -> int:
    """Say how many passwords are hashed at a time: who guesses gets half of the processors."""
    return max(1, min(MOST_PASSWORD_THREADS, processors // 2))


def direct_analysis_worker() -> Worker:
    """Give the worker of a command that analyses mails: it does so in the command's process."""
    patch_dkimpy()
    return DirectWorker()


def in_short_turns(reactor: Any) -> Any:
    """Give a reactor for sockets of one kind, which have a short time in each turn.

    It is the one given where that has no sockets (a command's clock), or the system no epoll.
    """
    if not IReactorFDSet.providedBy(reactor) or not hasattr(select, "epoll"):
        return reactor
    # Here, since it can be imported only where there is epoll.
    from mailcheck.daemon.short_turns import ShortTurns

    return ShortTurns(reactor)

"""Where blocking work runs: in processes and threads of a daemon, or directly in a command.

Also chooses the sockets that get a reactor of their own.
"""

import os
import select
from functools import partial
from typing import Any

from msgspec import Struct, field, structs
from twisted.internet.interfaces import IReactorFDSet
from twisted.logger import Logger

from mailcheck.core.memory.client_limits import MemoryPlan
from mailcheck.engines.database import call_immediately
from mailcheck.operations.worker_calls import (
    derive_content,
    patch_dkimpy,
    read_mail_for_score,
)
from mailcheck.ports.clocks import CallSoon
from mailcheck.ports.workers import Worker
from mailcheck.workers.child import (
    end_first,
    limit_memory,
    load,
    lower_priority,
    may_lower_priority,
)
from mailcheck.workers.process import ProcessWorker
from mailcheck.workers.scheduling import DirectWorker, MeasuredWorker, SerialWorker, WarmedWorker
from mailcheck.workers.threads import ThreadWorker, nice_threads

_log = Logger()

READER_THREADS = 4
"""Maximum number of concurrent reads. Each is short, and mostly served from the disk cache."""

MOST_PASSWORD_THREADS = 2
"""Maximum number of concurrent password hashes, which release the interpreter lock. 32 MiB each."""

LONGEST_READING = 20.0
"""Timeout in seconds for one step of parsing a mail. The worst known mail of 25 MiB takes two such
steps on an idle machine."""

LONGEST_CONVERSION = 10.0
"""Timeout in seconds for turning one request of a send API into mails."""

LONGEST_COMMIT = 6.0
"""Timeout in seconds for a commit: longer than another process may lock the database, and short
enough that a sender gets a temporary error within ten seconds."""

NICENESS = 10
"""Niceness of slow work relative to receiving mail and answering requests. Password hashing and
large mails thus use only otherwise idle processor time."""

WRITTEN_BY = {
    False: ("mailcheck.store.mail_delivery", "mailcheck.engines.sqlite_writer"),
    True: ("mailcheck.store.mail_delivery", "mailcheck.engines.postgresql_connection"),
}
"""Modules that the writing process needs for a mail, by whether the database is shared."""

CONTENT_AFTER, ANALYSIS_AFTER = 0.2, 2.0
"""Seconds until a process is started that was not started before the daemon (`Workers.ahead`).
The process that analyses mails loads its code with its first one, which takes much memory."""

FIRST_MAIL = b"\r\nYour code is 482913: https://example.com/\r\n"
"""A mail that is parsed at startup. Otherwise the first real one would take 0.4 s longer."""


class Workers(Struct, frozen=True):
    """The workers for blocking work. ``call_soon`` calls after all events of a reactor iteration.

    ``needed`` are the processes and threads without which the daemon is not ready. ``patient``
    workers parse large mails: they may take until their timeout and are then replaced.
    Workers in ``ahead`` may be started before the daemon, so that they load their code on another
    processor meanwhile. A client may send a first mail, and wait for its codes, as soon as the
    daemon is ready.
    """

    writer: Worker
    reader: Worker
    content: Worker
    passwords: Worker = field(default_factory=DirectWorker)
    analysis: Worker = field(default_factory=DirectWorker)
    large: Worker = field(default_factory=DirectWorker)
    requests: Worker = field(default_factory=DirectWorker)
    imports: Worker = field(default_factory=DirectWorker)
    call_soon: CallSoon = call_immediately
    needed: tuple[ProcessWorker | ThreadWorker, ...] = ()
    patient: tuple[ProcessWorker, ...] = ()
    ahead: tuple[ProcessWorker, ...] = ()

    @property
    def measured(self) -> dict[str, MeasuredWorker]:
        """The measured workers, by name."""
        return {
            name: worker
            for name, worker in structs.asdict(self).items()
            if isinstance(worker, MeasuredWorker)
        }

    @property
    def beside_store(self) -> tuple[Worker, ...]:
        """The workers that are not started and stopped by an engine."""
        return (
            *(self.content, self.passwords, self.analysis, self.large, self.requests),
            self.imports,
        )


def daemon_workers(reactor: Any, memory: MemoryPlan, *, is_shared: bool) -> Workers:
    """Return the workers of a daemon, whose database is a file or is shared with other daemons.

    Writing, parsing and analysing mails have their own processes, since in a
    thread each step would take the interpreter lock from the SMTP server. No mail delays
    the next ones for long, and small mails do not wait for large ones, which have
    their own process. It is started with the first large mail. Requests of send APIs are turned
    into mails in a process of their own, since they may take long and come from any client. Imports
    of reports have one, too: it holds their files, within the same bounded memory.
    """

    def measured(worker: Worker) -> Worker:
        return MeasuredWorker(worker, reactor)

    be_nice = partial(lower_priority, NICENESS)
    writer = ProcessWorker(reactor, "writer", LONGEST_COMMIT, partial(load, *WRITTEN_BY[is_shared]))
    learn_to_read = partial(derive_content, FIRST_MAIL)
    content = ProcessWorker(reactor, "content", LONGEST_READING, end_first, learn_to_read)
    analysis = ProcessWorker(reactor, "analysis", LONGEST_READING, end_first, be_nice, patch_dkimpy)
    large = ProcessWorker(reactor, "large", LONGEST_READING, end_first, be_nice)
    be_small = partial(limit_memory, memory.requests)
    requests = ProcessWorker(reactor, "requests", LONGEST_CONVERSION, end_first, be_nice, be_small)
    imports = ProcessWorker(reactor, "imports", LONGEST_READING, end_first, be_nice, be_small)
    reads = WarmedWorker(SerialWorker(content), load, reactor, CONTENT_AFTER)
    analyses = WarmedWorker(
        SerialWorker(analysis),
        partial(read_mail_for_score, FIRST_MAIL),
        reactor,
        ANALYSIS_AFTER,
        reads,
    )
    reader = ThreadWorker(reactor, "reader", READER_THREADS)
    hashes = 1 if memory.is_small else password_threads(os.cpu_count() or 1)
    passwords = ThreadWorker(reactor, "passwords", hashes, nice_threads(NICENESS))
    return Workers(
        writer=measured(writer),
        reader=measured(reader),
        content=measured(reads),
        passwords=measured(passwords),
        analysis=measured(analyses),
        large=measured(SerialWorker(large)),
        requests=measured(SerialWorker(requests)),
        imports=measured(SerialWorker(imports)),
        call_soon=partial(reactor.callLater, 0),
        needed=(writer, content, analysis, reader, passwords),
        patient=(large, requests, imports),
        ahead=(writer, content),
    )


def log_refused_priority() -> None:
    """Log once if slow work cannot run at a lower priority."""
    if not may_lower_priority():
        _log.info(
            "the system refuses a lower priority (setpriority), so guessed passwords and large "
            "mails can slow down the receipt of mail"
        )


def password_threads(processors: int) -> int:
    """Return how many passwords may be hashed at a time: at most half of the processors."""
    return max(1, min(MOST_PASSWORD_THREADS, processors // 2))


def direct_analysis_worker() -> Worker:
    """Return the worker of a command, which analyses mails in its own process."""
    patch_dkimpy()
    return DirectWorker()


def in_short_turns(reactor: Any) -> Any:
    """Return a reactor for sockets of one kind, with a bounded time for each iteration.

    Return the given reactor if it has no sockets (the clock of a test) or the system has no epoll.
    """
    if not IReactorFDSet.providedBy(reactor) or not hasattr(select, "epoll"):
        return reactor
    # Imported here, since it exists only on systems with epoll.
    from mailcheck.daemon.short_turns import ShortTurns

    return ShortTurns(reactor)

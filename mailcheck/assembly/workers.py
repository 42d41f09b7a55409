"""Where blocking work runs: in processes and threads of the daemon, at once for a command."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from mailcheck.checks.content.derive import derive_content
from mailcheck.checks.deliverability.reading import read_mail_for_score
from mailcheck.checks.dkim.dkimpy_linear import change_dkimpy
from mailcheck.operations.ports import Worker
from mailcheck.storage.group_commit import Soon, at_once
from mailcheck.workers.direct import DirectWorker
from mailcheck.workers.measured import MeasuredWorker
from mailcheck.workers.process import ProcessWorker
from mailcheck.workers.threads import ThreadWorker
from mailcheck.workers.warmed import WarmedWorker
from mailcheck.workers.watched import WatchedWorker

READER_THREADS = 4
"""Reads at a time; each is short, and the disk cache serves most."""

PASSWORD_THREADS = 2
"""Hashes at a time: they compute outside the interpreter's lock, 32 MiB each."""

LONGEST_READING = 20.0
"""Seconds for one step of reading a mail: the worst that 25 MiB were made to take is two of them,
on a machine that has nothing else to do."""

WARM_UP_AFTER = 2.0
"""Seconds after the start: until then the processor belongs to the daemon, which is to be ready."""

FIRST_MAIL = b"\r\nYour code is 482913: https://example.com/\r\n"
"""A mail that is taken apart before there is any: the first real one would wait for 0.4 s."""


@dataclass(frozen=True, slots=True)
class Workers:
    """Where blocking work runs; ``soon`` is after all that the reactor has found to do."""

    writer: Worker
    reader: Worker
    content: Worker
    passwords: Worker = field(default_factory=DirectWorker)
    analysis: Worker = field(default_factory=DirectWorker)
    soon: Soon = at_once

    @property
    def measured(self) -> dict[str, MeasuredWorker]:
        """Give the workers that are measured, by name."""
        named = {
            "writer": self.writer,
            "reader": self.reader,
            "content": self.content,
            "passwords": self.passwords,
            "analysis": self.analysis,
        }
        return {
            name: worker for name, worker in named.items() if isinstance(worker, MeasuredWorker)
        }

    @property
    def beside_store(self) -> tuple[Worker, ...]:
        """Give the workers that no engine starts and stops itself."""
        return self.content, self.passwords, self.analysis


def daemon_workers(reactor: Any) -> Workers:
    """Give the workers of a daemon.

    Writing, taking mails apart and analysing them have processes of their own:
    in a thread each of their steps would take the interpreter's lock from the
    receiver. No mail holds up the next ones for long.
    """

    def measured(worker: Worker) -> Worker:
        return MeasuredWorker(worker, reactor)

    return Workers(
        measured(ProcessWorker(reactor, "writer")),
        measured(ThreadWorker(reactor, "reader", READER_THREADS)),
        measured(
            _reading_worker(
                reactor, ProcessWorker(reactor, "content"), partial(derive_content, FIRST_MAIL)
            )
        ),
        measured(ThreadWorker(reactor, "passwords", PASSWORD_THREADS)),
        measured(_analysis_worker(reactor)),
        partial(reactor.callLater, 0),
    )


def direct_analysis_worker() -> Worker:
    """Give the worker of a command that analyses mails: it does so in the command's process."""
    change_dkimpy()
    return DirectWorker()


def _analysis_worker(reactor: Any) -> Worker:
    process = ProcessWorker(reactor, "analysis", prepare=change_dkimpy)
    return _reading_worker(reactor, process, partial(read_mail_for_score, FIRST_MAIL))


def _reading_worker(
    reactor: Any, process: ProcessWorker, first_call: Callable[[], object]
) -> Worker:
    watched = WatchedWorker(process, reactor, LONGEST_READING)
    return WarmedWorker(watched, first_call, reactor, WARM_UP_AFTER)

"""Where blocking work runs: in processes and threads of the daemon, at once for a command."""

from dataclasses import dataclass, field
from typing import Any

from mailcheck.lanes.direct import DirectLane
from mailcheck.lanes.process import ProcessLane
from mailcheck.lanes.threads import ThreadLane
from mailcheck.operations.ports import Lane

READER_THREADS = 4
"""Reads at a time; each is short, and the disk cache serves most."""

PASSWORD_THREADS = 2
"""Hashes at a time: they compute outside the interpreter's lock, 32 MiB each."""


@dataclass(frozen=True, slots=True)
class Lanes:
    """Where blocking work runs."""

    writer: Lane
    reader: Lane
    content: Lane
    passwords: Lane = field(default_factory=DirectLane)
    analysis: Lane = field(default_factory=DirectLane)

    @property
    def beside_store(self) -> tuple[Lane, ...]:
        """Give the lanes that no engine starts and stops itself."""
        return self.content, self.passwords, self.analysis


def daemon_lanes(reactor: Any) -> Lanes:
    """Give the lanes of a daemon.

    Writing, taking mails apart and analysing them have processes of their own:
    in a thread each of their steps would take the interpreter's lock from the
    receiver.
    """
    return Lanes(
        ProcessLane(reactor, "writer"),
        ThreadLane(reactor, "reader", READER_THREADS),
        ProcessLane(reactor, "content"),
        ThreadLane(reactor, "passwords", PASSWORD_THREADS),
        ProcessLane(reactor, "analysis"),
    )

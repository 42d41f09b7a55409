"""Where blocking work runs: in processes and threads of the daemon, at once for a command."""

from dataclasses import dataclass, field
from functools import partial
from typing import Any

from mailcheck.checks.content.derive import derive_content
from mailcheck.lanes.direct import DirectLane
from mailcheck.lanes.process import ProcessLane
from mailcheck.lanes.threads import ThreadLane
from mailcheck.lanes.warmed import WarmedLane
from mailcheck.lanes.watched import WatchedLane
from mailcheck.operations.ports import Lane

READER_THREADS = 4
"""Reads at a time; each is short, and the disk cache serves most."""

PASSWORD_THREADS = 2
"""Hashes at a time: they compute outside the interpreter's lock, 32 MiB each."""

LONGEST_READING = 20.0
"""Seconds for one step of reading a mail: the worst that 25 MiB were made to take is two of them,
on a machine that has nothing else to do."""


FIRST_MAIL = b"\r\nYour code is 482913: https://example.com/\r\n"
"""A mail that is taken apart before there is any: the first real one would wait for 0.4 s."""


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
    receiver. No mail holds up the next ones for long.
    """
    return Lanes(
        ProcessLane(reactor, "writer"),
        ThreadLane(reactor, "reader", READER_THREADS),
        WarmedLane(
            WatchedLane(ProcessLane(reactor, "content"), reactor, LONGEST_READING),
            partial(derive_content, FIRST_MAIL),
        ),
        ThreadLane(reactor, "passwords", PASSWORD_THREADS),
        WatchedLane(ProcessLane(reactor, "analysis"), reactor, LONGEST_READING),
    )

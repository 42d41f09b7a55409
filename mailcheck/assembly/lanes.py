"""Where blocking work runs: in processes and threads of the daemon, at once for a command."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from mailcheck.checks.content.derive import derive_content
from mailcheck.checks.deliverability.reading import read_mail_for_score
from mailcheck.lanes.direct import DirectLane
from mailcheck.lanes.process import ProcessLane
from mailcheck.lanes.threads import ThreadLane
from mailcheck.lanes.warmed import WarmedLane
from mailcheck.lanes.watched import WatchedLane
from mailcheck.operations.ports import Lane
from mailcheck.storage.group_commit import Soon, at_once

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
class Lanes:
    """Where blocking work runs; ``soon`` is after all that the reactor has found to do."""

    writer: Lane
    reader: Lane
    content: Lane
    passwords: Lane = field(default_factory=DirectLane)
    analysis: Lane = field(default_factory=DirectLane)
    soon: Soon = at_once

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
        _reading_lane(reactor, "content", partial(derive_content, FIRST_MAIL)),
        ThreadLane(reactor, "passwords", PASSWORD_THREADS),
        _reading_lane(reactor, "analysis", partial(read_mail_for_score, FIRST_MAIL)),
        partial(reactor.callLater, 0),
    )


def _reading_lane(reactor: Any, name: str, first_call: Callable[[], object]) -> Lane:
    watched = WatchedLane(ProcessLane(reactor, name), reactor, LONGEST_READING)
    return WarmedLane(watched, first_call, reactor, WARM_UP_AFTER)

"""What a reload of the configuration did, and the socket on which a daemon answers for one."""

from pathlib import Path

import msgspec
from msgspec import Struct

RELOAD = b"reload"
"""The request to a daemon, on a line of its own. The answer is a `ReloadReport` in JSON."""

RELOADED = b"RELOADED="
"""Begins the line with the report that one of several processes sends to its parent."""

_PREFIX, _SUFFIX = "control-", ".socket"


class ReloadReport(Struct, frozen=True):
    """The result of a reload. Options are written as ``[section] name``.

    :param applied: changed options that are in use now.
    :param waiting: changed options that need a restart.
    :param problem: why no option was changed; empty after a success.
    """

    applied: tuple[str, ...] = ()
    waiting: tuple[str, ...] = ()
    problem: str = ""

    def lines(self) -> list[str]:
        """Return the report for people."""
        if self.problem:
            return [f"the configuration stays as it was: {self.problem}"]
        lines = [f"reloaded: {', '.join(self.applied) or 'no option has changed'}"]
        if self.waiting:
            lines.append(f"needs a restart: {', '.join(self.waiting)}")
        return lines


def dump_report(report: ReloadReport) -> bytes:
    """Return a report as JSON, without a line feed."""
    return msgspec.json.encode(report)


def parse_report(written: bytes) -> ReloadReport:
    """Parse a report.

    :raises ValueError: it is incomplete, such as after the end of the daemon.
    """
    return msgspec.json.decode(written, type=ReloadReport)


def control_socket(folder: Path, process: int) -> Path:
    """Return the socket on which a daemon answers; ``folder`` is its state directory."""
    return folder / f"{_PREFIX}{process}{_SUFFIX}"


def control_sockets(folder: Path) -> list[Path]:
    """Return the sockets of all daemons with a state directory, also of killed ones."""
    return sorted(folder.glob(f"{_PREFIX}*{_SUFFIX}"))

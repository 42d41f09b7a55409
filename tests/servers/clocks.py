"""Clocks of a single daemon that a test sets or accelerates with libfaketime.

Start a daemon with the environment of `accelerated` to make its clocks run faster. With the
environment of `faketime`, write an offset in seconds such as ``+15`` to the file to set the clock.
"""

import os
from pathlib import Path

import pytest

LIBRARIES = sorted(Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1"))

needs_faketime = pytest.mark.skipif(not LIBRARIES, reason="libfaketime is not installed")

ACCELERATION = 5
"""How many times as fast clocks go where a test waits for a daemon's own periods: what it gives
another five seconds for still has one, on a busy machine too."""


def faketime(clock: Path) -> dict[str, str]:
    """Give the environment of a process whose clock of the day goes by a file."""
    return {
        **os.environ,
        "LD_PRELOAD": str(LIBRARIES[0]),
        "FAKETIME_TIMESTAMP_FILE": str(clock),
        "FAKETIME_NO_CACHE": "1",
        "FAKETIME_DONT_FAKE_MONOTONIC": "1",
        "DONT_FAKE_MONOTONIC": "1",
    }


def accelerated(times: int = ACCELERATION) -> dict[str, str]:
    """Give the environment of a process all of whose clocks go so many times as fast as ours.

    Where there is no libfaketime they go as ours do.
    """
    if not LIBRARIES:
        return dict(os.environ)
    return {
        **os.environ,
        "LD_PRELOAD": str(LIBRARIES[0]),
        "FAKETIME": f"+0 x{times}",
        "FAKETIME_NO_CACHE": "1",
    }

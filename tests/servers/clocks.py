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
"""Acceleration of the clocks of a daemon whose periods a test waits for. A timeout of five seconds
then takes one, also on a busy machine."""


def faketime(clock: Path) -> dict[str, str]:
    """Return the environment of a process whose time of day comes from a file."""
    return {
        **os.environ,
        "LD_PRELOAD": str(LIBRARIES[0]),
        "FAKETIME_TIMESTAMP_FILE": str(clock),
        "FAKETIME_NO_CACHE": "1",
        "FAKETIME_DONT_FAKE_MONOTONIC": "1",
        "DONT_FAKE_MONOTONIC": "1",
    }


def accelerated(times: int = ACCELERATION) -> dict[str, str]:
    """Return the environment of a process whose clocks are accelerated.

    Without libfaketime they have normal speed.
    """
    if not LIBRARIES:
        return dict(os.environ)
    return {
        **os.environ,
        "LD_PRELOAD": str(LIBRARIES[0]),
        "FAKETIME": f"+0 x{times}",
        "FAKETIME_NO_CACHE": "1",
    }

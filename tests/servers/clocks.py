"""Clocks of daemons that a test sets or accelerates with libfaketime.

Start a daemon with the environment of `accelerated` to make its clocks run faster. With the
environment of `faketime`, write an offset in seconds such as ``+15`` to the file to set the clock.
"""

import os
import time
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


def accelerated(times: int = ACCELERATION, since: float | None = None) -> dict[str, str]:
    """Return the environment of a process whose clocks are accelerated.

    Without libfaketime they have normal speed.

    :param since: the second since 1970 at which the clocks of a cluster began to be faster, so that
        a daemon that starts later has the time of the others. By default they begin now.
    """
    if not LIBRARIES:
        return dict(os.environ)
    ahead = 0.0 if since is None else (time.time() - since) * (times - 1)
    return {
        **os.environ,
        "LD_PRELOAD": str(LIBRARIES[0]),
        "FAKETIME": f"+{ahead:.1f} x{times}",
        "FAKETIME_NO_CACHE": "1",
    }

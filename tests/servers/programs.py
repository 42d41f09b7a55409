"""Programs that tests run. Where one is missing the test is left out, which fails it in CI.

    nsd = find_program("nsd")
    node = find_program("node", package="nodejs")

`tests/conftest.py` counts a skipped test as failed where CI is set.
"""

import os
import shutil

import pytest

PLACES = "/usr/local/bin:/usr/bin:/usr/sbin:/opt/homebrew/bin"
"""Where programs are installed that a user's own PATH may lack."""


def find_program(*names: str, package: str = "") -> str:
    """Give the path of the first of these programs that is there.

    :param package: what brings it, where that has another name.
    """
    places = os.pathsep.join([os.environ.get("PATH", ""), PLACES])
    for name in names:
        path = shutil.which(name, path=places)
        if path is not None:
            return path
    pytest.skip(f"{names[0]} is missing: apt-get install {package or names[0]}")

"""Programs for tests. A test with a missing program is skipped, which counts as a failure in CI.

    nsd = find_program("nsd")
    node = find_program("node", package="nodejs")

`tests/conftest.py` turns skipped tests into failures if CI is set.
"""

import os
import shutil

import pytest

PLACES = "/usr/local/bin:/usr/bin:/usr/sbin:/opt/homebrew/bin"
"""Folders of programs that the PATH of a user may lack."""


def find_program(*names: str, package: str = "") -> str:
    """Return the path of the first of these programs that is installed.

    :param package: the package that contains it, if it has another name.
    """
    places = os.pathsep.join([os.environ.get("PATH", ""), PLACES])
    for name in names:
        path = shutil.which(name, path=places)
        if path is not None:
            return path
    pytest.skip(f"{names[0]} is missing: apt-get install {package or names[0]}")

"""The installed version."""

from collections.abc import Sequence
from importlib.metadata import distributions, version

DISTRIBUTION = "mailcheck-daemon"
"""Name of the distribution. On PyPI the name ``mailcheck`` belongs to another project."""


def installed_version() -> str:
    """Return the version of the installed distribution."""
    return version(DISTRIBUTION)


def has_older_distribution(folders: Sequence[str]) -> bool:
    """Return whether a wheel from before the distribution was renamed is installed as well.

    Both contain the same files, so uninstalling either one deletes files of the other.

    :param folders: where packages are installed.
    """
    found = distributions(name="mailcheck", path=list(folders))
    return any(
        str(file).startswith("mailcheck/")
        for distribution in found
        for file in distribution.files or ()
    )

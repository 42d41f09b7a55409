"""The installed version."""

from importlib.metadata import version

DISTRIBUTION = "mailcheck-daemon"
"""Name of the distribution. On PyPI the name ``mailcheck`` belongs to another project."""


def installed_version() -> str:
    """Return the version of the installed distribution."""
    return version(DISTRIBUTION)

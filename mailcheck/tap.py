"""``twistd mailcheck``: options, and the service that they ask for."""

import os
import sys
from pathlib import Path

from twisted.application.service import IService
from twisted.python import usage

from mailcheck.assembly.daemon import Assembly, daemon_lanes
from mailcheck.config import ConfigError, load_config
from mailcheck.core.random_pool import RandomPool
from mailcheck.daemon.file_limit import raise_file_limit
from mailcheck.daemon.listening import CannotStart

PRIVATE_FILES = 0o077
"""The umask: what is kept is mail, and it is nobody else's."""


class Options(usage.Options):
    """The options of the daemon; all else is in the configuration file."""

    synopsis = "[--config FILE]"
    optParameters = (("config", "c", None, "The configuration file (TOML)."),)


def makeService(options: Options) -> IService:
    """Build the daemon.

    :raises CannotStart: the configuration can't be used; the message says why.
    """
    from twisted.internet import reactor

    os.umask(PRIVATE_FILES)
    raise_file_limit()
    path = options["config"]
    try:
        config = load_config(Path(path) if path else None, os.environ)
        assembly = Assembly(config, reactor, daemon_lanes(reactor), RandomPool(os.urandom))
        return assembly.services(sys.stdout)
    except ConfigError as error:
        raise CannotStart(f"mailcheck: {error}") from error

"""``twistd mailcheck``: options, and the service that they ask for."""

import gc
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from twisted.application.service import IService
from twisted.python import usage

PRIVATE_FILES = 0o077
"""The umask: what is kept is mail, and it is nobody else's."""


class Options(usage.Options):
    """The options of the daemon; all else is in the configuration file."""

    synopsis = "[--config FILE]"
    optParameters = (
        ("config", "c", None, "The configuration file (TOML)."),
        ("inherited", None, "", "Descriptors of open ports: what [daemon] processes sets."),
    )


def makeService(options: Options) -> IService:
    """Build the daemon.

    :raises CannotStart: the configuration can't be used; the message says why.
    """
    with _no_garbage():
        return _build(options)


def _build(options: Options) -> IService:
    # Imported here: that takes a second, and whoever asks for --help need not wait for it.
    from twisted.internet import reactor

    from mailcheck.assembly.daemon import Assembly, daemon_workers
    from mailcheck.assembly.ops import Surroundings, log_writer
    from mailcheck.assembly.processes import inherited_ports, parent_of_processes
    from mailcheck.config.reading import ConfigError, load_config
    from mailcheck.core.identifiers import RandomPool
    from mailcheck.daemon.file_limit import raise_file_limit
    from mailcheck.daemon.listening import CannotStart

    path = Path(options["config"]) if options["config"] else None
    read_config = partial(load_config, path, os.environ)
    try:
        config = read_config()
        os.umask(PRIVATE_FILES)
        raise_file_limit()
        log = log_writer(config, options.parent or {"nodaemon": True})
        if config.daemon.processes > 1:
            arguments = ["--config", str(path)] if path else []
            return parent_of_processes(config, arguments, log, os.environ, reactor)
        assembly = Assembly(config, reactor, daemon_workers(reactor), RandomPool(os.urandom))
        surroundings = Surroundings(
            sys.stdout, os.environ, log, read_config, inherited_ports(config, options["inherited"])
        )
        return assembly.services(surroundings)
    except ConfigError as error:
        raise CannotStart(f"mailcheck: {error}") from error


@contextmanager
def _no_garbage() -> Iterator[None]:
    """Keep the garbage collector from what is made here: it lives as long as the daemon.

    Looking through it again and again would cost a tenth of the start.
    """
    gc.disable()
    try:
        yield
    finally:
        gc.enable()

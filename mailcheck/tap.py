"""``twistd mailcheck``: options, and the service that they ask for."""

import gc
import os
import signal
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from twisted.application.service import IService
from twisted.python import usage

if TYPE_CHECKING:
    from mailcheck.workers.process import ProcessWorker

PARTS = "mailcheck.assembly.checks", "mailcheck.assembly.services"
"""Modules that take long to load, for each process that is started ahead."""

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
    # Until the daemon can read its configuration again: SIGHUP would end the process.
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    with _no_garbage():
        return _build(options)


def _build(options: Options) -> IService:
    # Imported here: that takes a second, and whoever asks for --help need not wait for it.
    from twisted.internet import reactor

    from mailcheck.assembly.workers import daemon_workers, log_refused_priority
    from mailcheck.config.reading import ConfigError, load_config
    from mailcheck.core.identifiers import RandomPool
    from mailcheck.daemon.listening import CannotStart, raise_file_limit
    from mailcheck.daemon.wall_clock import run_on_monotonic_clock, time_of_day

    run_on_monotonic_clock(reactor)
    path = Path(options["config"]) if options["config"] else None
    read_config = partial(load_config, path, os.environ)
    try:
        config = read_config()
        os.umask(PRIVATE_FILES)
        raise_file_limit()
        twistd = options.parent or {"nodaemon": True}
        workers = daemon_workers(reactor, is_shared=config.storage.is_shared)
        if config.daemon.processes == 1 and twistd["nodaemon"]:
            # A twistd that is going to leave this process behind would leave its children, too.
            _load_beside(workers.ahead)
        from mailcheck.assembly.daemon import build_daemon
        from mailcheck.assembly.ops import Environment, log_writer
        from mailcheck.assembly.processes import inherited_ports, parent_of_processes
        from mailcheck.assembly.runtime import open_runtime, time_and_chance_of
        from mailcheck.assembly.services import build_services

        log = log_writer(config, twistd, os.environ)
        if config.daemon.processes > 1:
            arguments = ["--config", str(path)] if path else []
            return parent_of_processes(config, arguments, log, os.environ, reactor, time_of_day())
        log_refused_priority()
        clock_and_randomness = time_and_chance_of(
            config, time.time, reactor, RandomPool(os.urandom)
        )
        runtime = open_runtime(config, reactor, clock_and_randomness, workers)
        environment = Environment(
            sys.stdout, os.environ, log, read_config, inherited_ports(config, options["inherited"])
        )
        return build_services(build_daemon(runtime), environment)
    except ConfigError as error:
        raise CannotStart(_for_journal(f"mailcheck: {error}")) from error


def _for_journal(problem: str) -> str:
    """Mark Python's own output as an error in systemd's journal; the log has not begun yet."""
    from mailcheck.ops.log import is_journal, with_priority

    return with_priority("error", problem) if is_journal(sys.stderr, os.environ) else problem


def _load_beside(workers: "Iterable[ProcessWorker]") -> None:
    """Load parts of the daemon, each while a process learns its work.

    Two processors are for two: begun together the processes would take this one's from it.
    """
    for worker, part in zip(workers, PARTS, strict=True):
        worker.start()
        import_module(part)


@contextmanager
def _no_garbage() -> Iterator[None]:
    """Keep the garbage collector from what is made here: it lives as long as the daemon.

    Looking through it again and again would cost a tenth of the start, and as much when the
    collector finds all of it new: it is set aside until the daemon has settled.
    """
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()

"""``twistd mailcheck``: its options, and the service that it runs."""

import gc
import os
import signal
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from twisted.application.service import IService
from twisted.python import usage

if TYPE_CHECKING:
    from mailcheck.workers.process import ProcessWorker

PRIVATE_FILES = 0o077
"""The umask. Stored mail must not be readable for other users."""


class Options(usage.Options):
    """Command line options of the daemon. All others are in the configuration file."""

    synopsis = "[--config FILE]"
    optParameters = (
        ("config", "c", None, "The configuration file (TOML)."),
        ("inherited", None, "", "Descriptors of open ports: what [daemon] processes sets."),
    )


def makeService(options: Options) -> IService:
    """Build the service of the daemon.

    :raises SystemExit: the configuration is invalid, as the error output says. The status tells
        systemd that another start would end in the same way.
    """
    # Without a handler, SIGHUP would end the process until the daemon can reload.
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    with _no_garbage():
        return _build(options)


def _build(options: Options) -> IService:
    # Imported here, since it takes a second and --help does not need it.
    from twisted.internet import reactor

    from mailcheck.assembly.deployment import memory_plan
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
        workers = daemon_workers(reactor, memory_plan(config), is_shared=config.storage.is_shared)
        if config.daemon.processes == 1 and twistd["nodaemon"]:
            # If twistd is going to fork into the background, it would leave the children behind.
            _load_beside(workers.ahead)
        from mailcheck.assembly.ops import Environment, log_writer
        from mailcheck.assembly.running.processes import inherited_ports, parent_of_processes
        from mailcheck.assembly.running.starting import build_process, try_start

        inherited = inherited_ports(config, options["inherited"])
        log = log_writer(config, twistd, os.environ)
        environment = Environment(sys.stdout, os.environ, log, read_config, inherited)
        if config.daemon.processes > 1:
            try_start(config, reactor)
            arguments = ["--config", str(path)] if path else []
            return parent_of_processes(config, arguments, environment, reactor, time_of_day())
        log_refused_priority()
        _, services = build_process(config, reactor, workers, environment, RandomPool(os.urandom))
        return services
    except ConfigError as error:
        problem = f"mailcheck: {error}"
    except CannotStart as error:  # an endpoint that Twisted does not understand
        problem = str(error)
    print(_for_journal(problem), file=sys.stderr)
    raise SystemExit(os.EX_CONFIG)


def _for_journal(problem: str) -> str:
    """Mark output as an error for systemd's journal, before the log is set up."""
    from mailcheck.ops.log import is_journal, with_priority

    return with_priority("error", problem) if is_journal(sys.stderr, os.environ) else problem


def _load_beside(workers: "Iterable[ProcessWorker]") -> None:
    """Import parts of the daemon, each while a child process imports its modules.

    Started together, the children would take the processor from this process on two cores.
    """
    writer, content = workers
    writer.start()
    import mailcheck.assembly.checks

    content.start()
    import mailcheck.assembly.running.services  # noqa: F401


@contextmanager
def _no_garbage() -> Iterator[None]:
    """Disable garbage collection for objects that live as long as the daemon.

    Collections would cost a tenth of the startup time, and as much again when the collector
    traverses all new objects. They stay excluded until the daemon has settled.
    """
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()

"""A whole daemon in the test process: built as ``twistd`` builds it, on real ports.

    async with in_process_daemon(folder, ops_listen=f"{HOST}:{port}") as daemon:
        answer = await deferToThread(daemon.get, "/inbox")

Clients must wait for answers in a thread, since the daemon uses the same reactor.
"""

import gc
import os
import resource
import signal
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import pytest
from twisted.application.service import Application, IService
from twisted.internet.defer import maybeDeferred
from twisted.internet.threads import deferToThread
from twisted.logger import ILogObserver, globalLogPublisher

from mailcheck.tap import Options, makeService
from tests.servers.daemon import PREFIX, Daemon
from tests.servers.redis import until


@asynccontextmanager
async def in_process_daemon(folder: Path, **options: Any) -> AsyncIterator[Daemon]:
    """Run a daemon with these options in a separate folder, and stop it afterwards."""
    from twisted.internet import reactor

    clock: Any = reactor
    daemon = Daemon(folder, **options)
    folder.mkdir(parents=True, exist_ok=True)
    with _process_as_it_was(daemon):
        application = Application("mailcheck")
        chosen: Any = Options()
        chosen.parseOptions([])
        chosen.parent = {"nodaemon": True}
        makeService(chosen).setServiceParent(application)
        log = application.getComponent(ILogObserver)
        globalLogPublisher.addObserver(log)
        services = IService(application)
        try:
            services.privilegedStartService()
            services.startService()
            await deferToThread(daemon.wait_until, (folder / "var" / "api-key").exists)
            yield daemon
        finally:
            await maybeDeferred(services.stopService)
            # Clients have disconnected, which the daemon may not have seen yet.
            await until(lambda: not clock.getDelayedCalls())
            globalLogPublisher.removeObserver(log)


@contextmanager
def _process_as_it_was(daemon: Daemon) -> Iterator[None]:
    """Set the environment of the daemon, and restore what it changes in the process.

    Frozen objects stay frozen. A daemon freezes its objects when it is ready, and so does each
    test. If a daemon unfroze everything at its start, a test would be blamed for objects of other
    tests.
    """
    from twisted.internet import reactor

    clocked: Any = reactor
    umask = os.umask(0)
    os.umask(umask)
    files = resource.getrlimit(resource.RLIMIT_NOFILE)
    thresholds, hang_up = gc.get_threshold(), signal.getsignal(signal.SIGHUP)
    with pytest.MonkeyPatch.context() as process:
        process.setattr(clocked, "seconds", clocked.seconds)
        process.setattr(clocked, "doIteration", clocked.doIteration)
        process.setattr(gc, "unfreeze", lambda: None)
        process.chdir(daemon.folder)
        for name in [name for name in os.environ if name.startswith(PREFIX)]:
            process.delenv(name)
        for name, value in daemon.environment.items():
            process.setenv(name, value)
        try:
            yield
        finally:
            signal.signal(signal.SIGHUP, hang_up)
            gc.set_threshold(*thresholds)
            resource.setrlimit(resource.RLIMIT_NOFILE, files)
            os.umask(umask)

"""Builds the services of a daemon process, to run them or to find out whether they would start."""

import io
import os
import time
from typing import Any

from twisted.application.service import MultiService
from twisted.internet.defer import maybeDeferred

from mailcheck.assembly.daemon import build_daemon
from mailcheck.assembly.ops import Environment, Trial
from mailcheck.assembly.running.services import build_services
from mailcheck.assembly.runtime import Runtime, daemon_presence, open_runtime, time_and_chance_of
from mailcheck.assembly.workers import Workers
from mailcheck.config.options import Config
from mailcheck.core.errors import ExpectedFailure
from mailcheck.core.identifiers import RandomBytes
from mailcheck.daemon.listening import CannotStart, ListeningService
from mailcheck.workers.scheduling import DirectWorker


def build_process(
    config: Config,
    reactor: Any,
    workers: Workers,
    environment: Environment,
    random_bytes: RandomBytes,
) -> tuple[Runtime, MultiService]:
    """Build the services of one daemon process.

    :raises ConfigError: a file, an address or a package that the configuration needs is not usable.
    :raises CannotStart: the same, for an endpoint.
    """
    clocks = time_and_chance_of(config, time.time, reactor, random_bytes)
    runtime = open_runtime(config, reactor, clocks, workers)
    return runtime, build_services(build_daemon(runtime), environment)


def try_start(config: Config, reactor: Any) -> None:
    """Raise what a start would raise, except for ports and the database. Nothing is written.

    :raises ConfigError: as `build_process`.
    :raises CannotStart: as `build_process`.
    """
    _build_trial(config, reactor)


async def try_connecting(config: Config, reactor: Any) -> None:
    """Raise what a start would raise because of its ports or its database. Nothing is changed.

    :raises CannotStart: a port cannot be bound, or the database cannot be used.
    """
    runtime, services = _build_trial(config, reactor, has_sockets=True)
    presence = daemon_presence(config, runtime.cluster.own_name)
    try:
        if presence is not None:
            presence.require_free()
        runtime.engine.require_usable()
    except ExpectedFailure as failure:
        raise CannotStart(f"mailcheck: {failure}") from failure
    for service in services:
        if isinstance(service, ListeningService):
            try:
                service.privilegedStartService()
            finally:
                await maybeDeferred(service.stopService)


def _build_trial(
    config: Config, reactor: Any, *, has_sockets: bool = False
) -> tuple[Runtime, MultiService]:
    """Build a daemon that is not started.

    :param has_sockets: sockets of systemd, which only the unit has, must be there.
    """
    worker = DirectWorker()
    trial = Trial(has_sockets=has_sockets)
    environment = Environment(io.StringIO(), {}, None, lambda: config, {}, trial=trial)
    return build_process(config, reactor, Workers(worker, worker, worker), environment, os.urandom)

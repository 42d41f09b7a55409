"""Builds several processes on one machine: what they share, and how each differs."""

from collections.abc import Mapping, Sequence
from typing import Any

from twisted.internet.defer import Deferred

from mailcheck.assembly.deployment import listen_addresses, memory_plan
from mailcheck.assembly.ops import Certificates, Environment, control_services
from mailcheck.assembly.running.reloading import change_log, tell
from mailcheck.config.options import Config
from mailcheck.config.reading import ConfigError, variable_name
from mailcheck.config.reloading import merge_config
from mailcheck.core.instants import Instant
from mailcheck.core.memory.instruments import Conditions
from mailcheck.core.network_addresses import ListenAddress, parse_listen_address
from mailcheck.daemon.processes import Processes
from mailcheck.daemon.services import DaemonServices
from mailcheck.operations.reloads import ReloadReport
from mailcheck.ops.supervision import (
    READY_FD,
    SOCKET,
    WATCHDOG_MICROSECONDS,
    WATCHDOG_PID,
    SupervisedService,
    Supervisor,
)

WORDS = frozenset({SOCKET, WATCHDOG_MICROSECONDS, WATCHDOG_PID})


def shared_addresses(config: Config) -> list[ListenAddress]:
    """Return the ports that all processes of a machine share."""
    return [
        *listen_addresses(config, "smtp", "listen"),
        *listen_addresses(config, "smtp", "submission_listen"),
        *listen_addresses(config, "smtp", "broken_tls_listen"),
        *listen_addresses(config, "imap", "listen"),
        *listen_addresses(config, "imap", "tls_listen"),
        *listen_addresses(config, "pop3", "listen"),
        *listen_addresses(config, "pop3", "tls_listen"),
        *listen_addresses(config, "milter", "listen"),
        *listen_addresses(config, "web", "listen"),
        *listen_addresses(config, "providers", "listen"),
        *listen_addresses(config, "mailpit", "listen"),
        *listen_addresses(config, "mailpit", "smtp_listen"),
    ]


def inherited_ports(config: Config, descriptors: str) -> dict[str, int]:
    """Return the descriptors of ports that a parent process has opened, by endpoint."""
    numbers = map(int, filter(None, descriptors.split(",")))
    return dict(
        zip((address.endpoint for address in shared_addresses(config)), numbers, strict=False)
    )


def parent_of_processes(
    config: Config,
    options: Sequence[str],
    environment: Environment,
    reactor: Any,
    now: Instant,
) -> DaemonServices:
    """Build the service that opens the ports and runs the processes.

    :raises ConfigError: the certificate is not usable.
    """
    # Created before the processes, which would otherwise all create it.
    Certificates(config, Conditions(), now)
    count = config.daemon.processes
    # Only the parent process notifies the supervisor.
    variables = environment.variables
    inherited = {name: text for name, text in variables.items() if name not in WORDS}
    environments = [{**inherited, **_own_environment(config, number)} for number in range(count)]
    tree = DaemonServices(environment.log)
    processes = Processes(
        reactor,
        shared_addresses(config),
        options,
        environments,
        READY_FD,
        first_alone=config.accounts.bootstrap,
    )
    processes.setServiceParent(tree)
    current = config

    async def reload() -> ReloadReport:
        nonlocal current
        try:
            merged = merge_config(current, environment.read_config())
        except ConfigError as error:
            return tell(ReloadReport(problem=str(error)))
        problem = await processes.reload()
        if problem:
            return tell(ReloadReport(problem=problem))
        current = merged.config
        change_log(environment, current)
        return tell(ReloadReport(merged.changed, merged.waiting))

    supervised = SupervisedService(
        Supervisor(variables),
        lambda: Deferred.fromCoroutine(reload()),
        lambda: f"{count} processes",
        processes.when_ready,
        reactor,
    )
    for service in (*control_services(config, environment, supervised), supervised):
        service.setServiceParent(tree)
    return tree


def _own_environment(config: Config, number: int) -> Mapping[str, str]:
    environment = {
        variable_name("daemon", "processes"): "1",
        variable_name("daemon", "memory"): str(memory_of_process(config)),
        variable_name("ops", "listen"): ",".join(metrics_addresses(config, number)),
    }
    if number:  # only the first process creates the first account and prints the next steps
        environment[variable_name("accounts", "bootstrap")] = "false"
    return environment


def memory_of_process(config: Config) -> int:
    """Return the memory that one of the processes may use, in octets."""
    lowest = 134_217_728
    return max(lowest, memory_plan(config).usable // config.daemon.processes)


def metrics_addresses(config: Config, number: int) -> list[str]:
    """Return where a process serves its metrics. Each process has its own ports."""
    addresses = [(text, parse_listen_address(text)) for text in config.ops.listen]
    return [
        text if address.port is None else f"{text.rpartition(':')[0]}:{address.port + number}"
        for text, address in addresses
        if address.port is not None or not number
    ]

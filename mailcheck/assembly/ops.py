"""Builds the parts for operators: log, health, certificates, supervision and shell."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TextIO

from twisted.application.service import Service
from twisted.internet.defer import succeed
from twisted.internet.interfaces import IOpenSSLContextFactory, IProtocolFactory
from twisted.logger import Logger

from mailcheck.assembly.checks import Checks
from mailcheck.assembly.daemon import Daemon
from mailcheck.assembly.deployment import (
    naming,
    own_certificate,
    require_writable,
    self_signed_certificate,
)
from mailcheck.assembly.runtime import Runtime
from mailcheck.config.options import SELF_SIGNED, Config
from mailcheck.config.reading import ConfigError
from mailcheck.connections.certificates import ReloadableCertificate
from mailcheck.connections.policies import TlsPolicy, offer_to_all, offer_to_public
from mailcheck.core.instants import Instant
from mailcheck.core.memory.instruments import Conditions
from mailcheck.core.version import installed_version
from mailcheck.daemon.listening import ListeningService
from mailcheck.daemon.periodic import PeriodicService
from mailcheck.operations.reloads import ReloadReport
from mailcheck.ops.control import ControlService
from mailcheck.ops.heartbeat import INTERVAL as BEAT
from mailcheck.ops.journal import log_changes
from mailcheck.ops.log import (
    JOURNAL_RENDERINGS,
    RENDERINGS,
    LogWriter,
    Output,
    Render,
    is_journal,
    twistd_output,
)
from mailcheck.ops.start_report import Doors, StartReport
from mailcheck.ops.store_figures import INTERVAL as FIGURES
from mailcheck.ops.supervision import READY_FD, SupervisedService, Supervisor
from mailcheck.ops.watch import (
    INTERVAL,
    Look,
    State,
    Watch,
    look_at_damage,
    look_at_disk,
    look_at_lists,
    look_at_resolvers,
)

MINUTE = 60.0
"""Seconds."""

CERTIFICATE = "certificate"

_log = Logger()


class Trial(NamedTuple):
    """A daemon that is built to find out whether it would start.

    ``has_sockets`` is false where the sockets of systemd are not expected.
    """

    has_sockets: bool


class Environment(NamedTuple):
    """The process environment of a daemon.

    ``output`` gets the instructions of the first start. ``log`` is `None` if the log is written
    elsewhere. ``read_config`` reads the configuration again, or raises `ConfigError`.
    ``inherited`` has descriptors by endpoint, of ports that a parent process has opened.
    With ``trial``, nothing is written: what would be created is only checked.
    """

    output: TextIO
    variables: Mapping[str, str]
    log: LogWriter | None
    read_config: Callable[[], Config]
    inherited: Mapping[str, int]
    trial: Trial | None = None


def log_writer(
    config: Config, twistd: Mapping[str, Any], environment: Mapping[str, str]
) -> LogWriter | None:
    """Return the log writer, or `None` if an option of twistd has chosen another log."""
    output = twistd_output(twistd)
    if output is None:
        return None
    return LogWriter(output, log_renderer(config, output, environment), config.ops.log_level)


def log_renderer(config: Config, output: Output, environment: Mapping[str, str]) -> Render:
    """Return the function that renders a line."""
    renderings = JOURNAL_RENDERINGS if is_journal(output, environment) else RENDERINGS
    return renderings[config.ops.log]


class Offered(NamedTuple):
    """A certificate, to whom it is offered, and the operator's files if they are watched."""

    policy: TlsPolicy
    for_all: TlsPolicy
    watched: ReloadableCertificate | None


def load_offered(config: Config, now: Instant, *, is_trial: bool = False) -> Offered:
    """Load the certificate of a configuration.

    :param is_trial: a missing one is not created, and nothing is offered instead.

    :raises ConfigError: it is not usable.
    """
    watched = own_certificate(config)
    if watched is not None:
        return Offered(watched.policy, watched.policy, watched)
    ours = self_signed_certificate(config, now, is_trial=is_trial)
    for_all = offer_to_all(ours)
    is_for_all = config.smtp.certificate == SELF_SIGNED
    return Offered(for_all if is_for_all else offer_to_public(ours), for_all, None)


class Certificates:
    """The certificate of STARTTLS: the operator's, reloaded when it changes, or self-signed.

    With ``is_trial``, a missing one is not created, and nothing is offered instead.

    :raises ConfigError: it is not usable.
    """

    def __init__(
        self, config: Config, conditions: Conditions, now: Instant, *, is_trial: bool = False
    ) -> None:
        self._conditions = conditions
        self._offered = load_offered(config, now, is_trial=is_trial)

    def policy(self, client_ip: str) -> IOpenSSLContextFactory | None:
        """Return what STARTTLS offers to a client."""
        return self._offered.policy(client_ip)

    def for_all(self, client_ip: str) -> IOpenSSLContextFactory | None:
        """Return the certificate of ports on which connections begin with TLS."""
        return self._offered.for_all(client_ip)

    @property
    def watched(self) -> ReloadableCertificate | None:
        """The operator's certificate, or `None` if it is self-signed."""
        return self._offered.watched

    def use(self, offered: Offered) -> bool:
        """Offer another certificate. Return whether the files of the operator's one are new."""
        before, self._offered = self.watched, offered
        self._conditions.set(CERTIFICATE, "")
        return offered.watched is not None and not offered.watched.is_same_as(before)

    def look(self) -> list[State]:
        """Reload a changed certificate. An invalid one is ignored and the old one stays in use."""
        if self.watched is None:
            return []
        try:
            if self.watched.renew():
                _log.info("a new certificate is in use")
        except (OSError, ValueError) as error:
            self._conditions.explain(CERTIFICATE, str(error))
            return [(CERTIFICATE, "the new one cannot be used, the old one stays")]
        return [(CERTIFICATE, "")]

    def expiry(self) -> float | None:
        """Return when it expires, in seconds since 1970; `None` for the self-signed one."""
        return None if self.watched is None else self.watched.expires_at


def ops_services(
    daemon: Daemon,
    watch: Watch,
    doors: Doors,
    reload: Callable[[], ReloadReport],
    environment: Environment,
) -> list[Service]:
    """Return the operational services, in the order in which they start."""
    runtime, heartbeat = daemon.runtime, daemon.heartbeat
    config, reactor = runtime.config, runtime.reactor
    log_changes(runtime.conditions)

    async def has_account() -> bool:
        # On the first start, the account is being created at this moment.
        return config.accounts.bootstrap or bool(await daemon.accounts.keep.accounts())

    supervised = SupervisedService(
        Supervisor(environment.variables),
        lambda: succeed(reload()),
        lambda: f"mail on {', '.join(doors.mail())}",
        heartbeat.when_ready,
        reactor,
    )
    return [
        PeriodicService("counting refusals", MINUTE, runtime.pace.begin_minute, reactor),
        PeriodicService("looking after the daemon", INTERVAL, watch.look, reactor),
        PeriodicService("figures of the store", FIGURES, daemon.figures.look, reactor),
        PeriodicService("writing to the store", BEAT, heartbeat.look, reactor),
        StartReport(
            doors, installed_version(), has_account, lambda begin: reactor.callWhenRunning(begin)
        ),
        *control_services(config, environment, supervised),
        supervised,
    ]


def control_services(
    config: Config, environment: Environment, supervised: SupervisedService
) -> list[Service]:
    """Return the service that answers ``mailcheck reload``; one of several processes has none."""
    if READY_FD in environment.variables:
        return []
    folder = Path(config.storage.state_directory)
    return [ControlService(folder, supervised.reload, supervised.reactor)]


def daemon_watch(
    runtime: Runtime,
    min_free: Callable[[], int],
    checks: Checks,
    certificates: Certificates,
) -> Watch:
    """Build the periodic health checks of the daemon."""
    stubs, engine = runtime.resolvers.stubs, runtime.engine
    servers = [_shown(server) for stub in stubs for server in stub.servers]

    def silent() -> list[str]:
        return [_shown(server) for stub in stubs for server in stub.unresponsive_servers]

    looks: Sequence[Look] = (
        look_at_disk(engine.free_bytes, min_free),
        look_at_damage(lambda: engine.damage),
        look_at_lists(checks.catalogue, checks.health),
        look_at_resolvers(servers, silent),
        certificates.look,
    )
    return Watch(runtime.conditions, looks)


def manhole(
    config: Config, inside: Mapping[str, Any], *, is_trial: bool = False
) -> IProtocolFactory:
    """Build the shell. ``inside`` is its namespace, with functions in place of lists.

    :param is_trial: a missing host key is not created; another one is used.

    :raises ConfigError: the keys are not usable, or a package for it is not installed.
    """
    # Imported only if needed, since an SSH server is large.
    try:
        from mailcheck.ops.manhole import (
            Help,
            Manhole,
            OperatorKeys,
            Shown,
            find_host_key,
            make_host_key,
        )
    except ImportError as error:
        problem = "[ops] manhole needs more packages: pip install '.[manhole]' in a checkout"
        raise ConfigError(problem) from error
    namespace = {
        name: Shown(name, what) if callable(what) else what for name, what in inside.items()
    }
    with naming("[ops] manhole_keys"):
        keys = OperatorKeys(Path(config.ops.manhole_keys))
    with naming("[storage] state_directory"):
        folder = Path(config.storage.state_directory)
        host_key = find_host_key(folder)
        if host_key is None:
            require_writable(folder)
            host_key = make_host_key(None if is_trial else folder)
    return Manhole(keys, host_key, {**namespace, "help": Help()})


def where(service: ListeningService) -> Callable[[], Sequence[str]]:
    """Return a function that returns the addresses on which a service listens."""
    return lambda: service.addresses


def _shown(server: Any) -> str:
    return f"[{server.host}]:{server.port}" if server.is_ipv6 else f"{server.host}:{server.port}"

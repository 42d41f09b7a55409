"""Applies a changed configuration to a running daemon.

Each part has what may change as an attribute or a method ``change``. First, everything that can
fail is done: the file is read and checked, and the files that it names are opened. Then all parts
change at once. Parts that are built later, such as the doors of the HTTP server, use the new
configuration anyway.
"""

from collections.abc import Sequence
from ipaddress import ip_network
from typing import TYPE_CHECKING, NamedTuple

from twisted.logger import Logger

from mailcheck.assembly.accounts import registration_rules, request_limits
from mailcheck.assembly.checks import configured_catalogue, daily_budgets
from mailcheck.assembly.daemon import Daemon
from mailcheck.assembly.deployment import (
    LINES,
    connection_limits,
    limit_connections,
    receive_settings,
    release_settings,
    reserved_names,
    smtp_settings,
    trusted_proxies,
)
from mailcheck.assembly.inbox import default_quota
from mailcheck.assembly.ops import Certificates, Environment, load_offered, log_renderer
from mailcheck.assembly.reports import report_mailboxes
from mailcheck.config.options import Config
from mailcheck.config.reading import ConfigError
from mailcheck.config.reloading import Merged, merge_config, named
from mailcheck.connections.server import PortSettings, ServerFactory
from mailcheck.core.memory.client_limits import ConnectionLimits
from mailcheck.core.network_addresses import IpNetwork
from mailcheck.daemon.reserved_names import MissingAccounts
from mailcheck.operations.reloads import ReloadReport
from mailcheck.smtp.protocol import MailFactory
from mailcheck.web.site.server import BoundedSite

if TYPE_CHECKING:
    from mailcheck.milter.connection import MilterFactory

_log = Logger()


class Servers(NamedTuple):
    """The servers of a daemon whose settings may change."""

    sites: Sequence[BoundedSite]
    mail: Sequence[MailFactory]
    imap: Sequence[ServerFactory[PortSettings]]
    pop3: Sequence[ServerFactory[PortSettings]]
    milter: "Sequence[MilterFactory]"


def milter_access(config: Config) -> tuple[tuple[IpNetwork, ...], ConnectionLimits]:
    """Return which mail servers may use the milter endpoint, and how many connections."""
    options = config.milter
    allowed = tuple(ip_network(text) for text in options.allow_from)
    return allowed, limit_connections(
        config, LINES, options.max_connections, options.max_connections
    )


def change_log(environment: Environment, config: Config) -> None:
    """Use the level and the format of a configuration."""
    log = environment.log
    if log is not None:
        log.set_level(config.ops.log_level)
        log.render = log_renderer(config, log.output, environment.variables)


def tell(report: ReloadReport) -> ReloadReport:
    """Log a report, and return it."""
    for line in report.lines():
        if report.problem:
            _log.error("{line}", line=line)
        else:
            _log.info("{line}", line=line)
    return report


class Reloading(NamedTuple):
    """The objects that a reload changes."""

    daemon: Daemon
    servers: Servers
    certificates: Certificates
    missing: MissingAccounts
    environment: Environment

    def reload(self) -> ReloadReport:
        """Read the configuration again, and apply what may change while the daemon runs.

        The result is logged. After an error, all settings are as before.
        """
        runtime, certificates = self.daemon.runtime, self.certificates
        try:
            merged = merge_config(runtime.config, self.environment.read_config())
            catalogue = configured_catalogue(merged.config)
            offered = load_offered(merged.config, runtime.now())
        except ConfigError as error:
            for subject, problem in certificates.look():
                runtime.conditions.set(subject, problem)
            return tell(ReloadReport(problem=str(error)))
        changed = list(merged.changed)
        if catalogue != self.daemon.checks.catalogue:
            changed.append(named("blocklists", "catalogue"))
        if certificates.use(offered):
            changed.append(named("smtp", "certificate"))
        runtime.config = merged.config
        self.daemon.checks.catalogue.become(catalogue)
        self._change_checks(merged.config)
        self._change_accounts(merged)
        self._change_receivers(merged)
        self._change_mailboxes(merged)
        self._change_servers(merged.config)
        change_log(self.environment, merged.config)
        return tell(ReloadReport(tuple(dict.fromkeys(changed)), merged.waiting))

    def _change_checks(self, config: Config) -> None:
        checks = self.daemon.checks
        checks.health.change(checks.catalogue.blocklists)
        for query in checks.queries:
            query.deadline = config.blocklists.deadline
            query.budgets.overrides = daily_budgets(config)

    def _change_accounts(self, merged: Merged) -> None:
        accounts, config = self.daemon.accounts, merged.config
        accounts.authenticator.default_limits = request_limits(config)
        accounts.checks.limits = request_limits(config)
        accounts.stranger_checks.per_day = config.limits.stranger_checks_per_day
        self.daemon.slots.waits.per_owner = config.limits.waits_per_key
        accounts.names.reserved = reserved_names(config)
        rules = registration_rules(config, accounts.names)
        accounts.register.rules = accounts.projects.rules = rules
        self.daemon.mail.store.change_quota(default_quota(config))
        self.daemon.receiver.settings = receive_settings(config, self.daemon.runtime.retention)

    def _change_receivers(self, merged: Merged) -> None:
        if any(name.startswith("[release]") for name in merged.changed):
            self.daemon.runtime.receivers.change(merged.config)
            self.daemon.inbox.release.settings = release_settings(merged.config)
            self.missing.look()
        if any(name.startswith(("[webhooks]", "[alerts]")) for name in merged.changed):
            self.daemon.runtime.receivers.change(merged.config)
            self.daemon.webhooks.deliver.reconnect()
            self.missing.look()

    def _change_mailboxes(self, merged: Merged) -> None:
        self.daemon.reports.fetching.change(report_mailboxes(merged.config))
        if named("reports", "mailboxes") in merged.changed:
            self.missing.look()

    def _change_servers(self, config: Config) -> None:
        for site in self.servers.sites:
            site.connections.limits = connection_limits(config)
            site.addresses.trusted_proxies = trusted_proxies(config)
        for mail in self.servers.mail:
            before = mail.settings
            changed = smtp_settings(
                config,
                before.tls_for,
                is_submission=before.is_submission,
                is_auth_optional=before.is_auth_optional,
                is_private=before.is_private,
            )
            mail.change(changed)
        for options, factories in (
            (config.imap, self.servers.imap),
            (config.pop3, self.servers.pop3),
        ):
            for factory in factories:
                # Imported only if needed: a daemon without such servers has none of their modules.
                from mailcheck.assembly.mail_programs import port_settings

                port = factory.settings
                size = port.lines.command_line
                factory.change(
                    port_settings(config, options, size, port.tls_for, is_tls=port.is_tls)
                )
        for milter in self.servers.milter:
            milter.allowed, milter.open.limits = milter_access(config)

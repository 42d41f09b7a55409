"""Builds the servers for mail programs: IMAP and POP3."""

from ipaddress import ip_network

from mailcheck.assembly.daemon import Daemon
from mailcheck.assembly.deployment import LINES, limit_connections
from mailcheck.config.options import Config, ImapOptions, Pop3Options
from mailcheck.connections.policies import AuthWithoutTls, TlsPolicy
from mailcheck.connections.receive_path import LineLimits
from mailcheck.connections.server import PortSettings
from mailcheck.imap.connection import COMMAND_LINE as IMAP_COMMAND_LINE
from mailcheck.imap.connection import ImapFactory
from mailcheck.imap.pop3 import Pop3Factory
from mailcheck.smtp.settings import Limits

COMMAND_LINE = 1_024
"""Octets of a POP3 command. RFC 2449 4 has 255; a long password may take more."""


def pop3_factory(daemon: Daemon, tls_for: TlsPolicy, *, is_tls: bool) -> Pop3Factory:
    """Build the factory for POP3 connections.

    :param is_tls: connections begin with TLS.
    """
    config = daemon.runtime.config
    return Pop3Factory(
        port_settings(config, config.pop3, COMMAND_LINE, tls_for, is_tls=is_tls),
        daemon.runtime.reactor,
        daemon.accounts.log_in,
        daemon.mailboxes,
        daemon.logins["POP3"],
    )


def imap_factory(daemon: Daemon, tls_for: TlsPolicy, *, is_tls: bool) -> ImapFactory:
    """Build the factory for IMAP connections.

    :param is_tls: connections begin with TLS.
    """
    config = daemon.runtime.config
    return ImapFactory(
        port_settings(config, config.imap, IMAP_COMMAND_LINE, tls_for, is_tls=is_tls),
        daemon.runtime.reactor,
        daemon.accounts.log_in,
        daemon.mailboxes,
        daemon.logins["IMAP"],
        appended=daemon.runtime.memory.appended,
    )


def port_settings(
    config: Config,
    options: ImapOptions | Pop3Options,
    command_line: int,
    tls_for: TlsPolicy,
    *,
    is_tls: bool,
) -> PortSettings:
    """Return the settings of a port for mail programs."""
    smtp, limits = config.smtp, Limits()
    return PortSettings(
        host_name=smtp.host_name or config.inbox.domain,
        lines=LineLimits(command_line, limits.first_command, options.idle_timeout, limits.closing),
        connections=limit_connections(
            config, LINES, options.max_connections, options.max_connections_per_address
        ),
        tls_for=tls_for,
        is_tls=is_tls,
        auth_without_tls=AuthWithoutTls(smtp.auth_without_tls),
        proxy_protocol_from=tuple(map(ip_network, smtp.proxy_protocol_from)),
    )

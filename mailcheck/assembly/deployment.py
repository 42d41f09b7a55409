"""Derives the settings of this daemon from the configuration: URL, certificate, mail."""

import errno
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from ipaddress import ip_network
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from msgspec.structs import replace
from twisted.internet.ssl import CertificateOptions

from mailcheck.config.access import daemon_url
from mailcheck.config.options import AUTO, GIBIBYTE, SELF_SIGNED, Config
from mailcheck.config.reading import ConfigError, variable_name
from mailcheck.config.rules import parse_allowed, parse_recipients
from mailcheck.connections.certificates import (
    ReloadableCertificate,
    ensure_self_signed,
    find_self_signed,
)
from mailcheck.connections.policies import AuthWithoutTls, TlsPolicy
from mailcheck.core.accounts import EVERY_ACCOUNT, AllowedRecipients
from mailcheck.core.addresses import is_domain_name
from mailcheck.core.instants import Instant
from mailcheck.core.memory.client_limits import MAX_REJECTED_AT_ONCE, ConnectionLimits, MemoryPlan
from mailcheck.core.network_addresses import (
    IpNetwork,
    ListenAddress,
    parse_ip_address,
    parse_listen_address,
)
from mailcheck.core.signing_in.company import parse_group_role
from mailcheck.daemon.backups import BackupPlan
from mailcheck.daemon.first_start import ACCOUNT_NAME
from mailcheck.daemon.listening import files_for_connections, real_address
from mailcheck.daemon.usable_memory import usable_memory
from mailcheck.engines.sqlite import IN_MEMORY
from mailcheck.operations.domains.watches.send_alerts import SENDER
from mailcheck.operations.inbox.receive_mail import ReceiveSettings
from mailcheck.operations.inbox.release_mail import ReleaseSettings
from mailcheck.smtp.settings import Limits, SmtpSettings

if TYPE_CHECKING:
    from mailcheck.web.site.requests import BodyLimits


LOCAL_NAMES = ("localhost", "127.0.0.1", "::1")


def listen_addresses(config: Config, section: str, option: str) -> list[ListenAddress]:
    """Return the addresses of an option. Each knows the option and its variable."""
    value = getattr(getattr(config, section), option)
    setting = f"[{section}] {option} or {variable_name(section, option)}"
    texts = (value,) if isinstance(value, str) else value
    return [replace(parse_listen_address(text), setting=setting) for text in texts]


def public_url(config: Config) -> str:
    """Return the public URL of the daemon."""
    return daemon_url(config, real_address(parse_listen_address(config.web.listen[0])))


def has_oauth(config: Config) -> bool:
    """Return whether people can connect agents by OAuth."""
    is_https = config.web.public_url.startswith("https://")
    return config.web.oauth == "on" or (config.web.oauth == AUTO and is_https)


def named_accounts(config: Config) -> tuple[tuple[str, str], ...]:
    """Return the options that mean accounts, each with the name of the account."""
    named = {
        "[webhooks] allow": parse_allowed(config.webhooks.allow),
        "[milter] project": [config.milter.project],
        "[mailpit] project": [config.mailpit.project],
        "[oidc] roles": [parse_group_role(role).project for role in config.oidc.roles],
        "[scim] roles": [parse_group_role(role).project for role in config.scim.roles],
        "[alerts] allow_recipients": parse_recipients(config.alerts.allow_recipients),
        "[release] allow_recipients": parse_recipients(config.release.allow_recipients),
        "[reports] mailboxes": [mailbox.account for mailbox in config.reports.mailboxes],
        "[accounts] bootstrap": [ACCOUNT_NAME] if config.accounts.bootstrap else [],
    }
    return tuple(
        (option, name)
        for option, names in named.items()
        for name in dict.fromkeys(names)
        if name not in ("", EVERY_ACCOUNT)
    )


def accounts_to_find(config: Config) -> tuple[tuple[str, str], ...]:
    """Return the named accounts that must exist at the start: all that it does not create."""
    made = ACCOUNT_NAME if config.accounts.bootstrap else ""
    return tuple((option, name) for option, name in named_accounts(config) if name != made)


def reserved_names(config: Config) -> tuple[str, ...]:
    """Return the names that only the operator may give to an account, since options mean them."""
    names = (name for _, name in named_accounts(config))
    return tuple(dict.fromkeys((EVERY_ACCOUNT, *names)))


def alerts_from(config: Config) -> str:
    """Return the sender address of alerts by mail."""
    return config.alerts.from_address or f"{SENDER}@{config.inbox.domain}"


def own_ports(config: Config) -> frozenset[int]:
    """Return the ports on which the daemon listens."""
    smtp, imap, pop3, ops = config.smtp, config.imap, config.pop3, config.ops
    texts = (*imap.listen, *imap.tls_listen, *pop3.listen, *pop3.tls_listen)
    texts += (*smtp.listen, *smtp.submission_listen, *smtp.broken_tls_listen, *config.web.listen)
    texts += (*config.milter.listen, *config.mailpit.listen, *config.mailpit.smtp_listen)
    texts += (*config.providers.listen, *ops.listen, *((ops.manhole,) if ops.manhole else ()))
    addresses = map(real_address, map(parse_listen_address, texts))
    return frozenset(address.port for address in addresses if address.port)


def mail_server(config: Config) -> str:
    """Return host and port at which programs submit mail for the inboxes."""
    return _reachable(config, config.smtp.listen) or config.inbox.domain


def submission_server(config: Config) -> str:
    """Return host and port of submission with an API key as password; `None` if unknown."""
    return _reachable(config, config.smtp.submission_listen)


def _submission_port(config: Config) -> int | None:
    return urlsplit(f"//{submission_server(config)}").port


def _reachable(config: Config, addresses: Sequence[str]) -> str:
    listen = real_address(parse_listen_address(addresses[0])) if addresses else None
    if listen is None or listen.url is None:
        return ""
    own, public = urlsplit(listen.url), urlsplit(public_url(config))
    is_everywhere = listen.host in ("0.0.0.0", "::")  # noqa: S104
    return f"{public.hostname if is_everywhere else own.hostname}:{own.port}"


def has_public_programs(config: Config) -> bool:
    """Return whether mail programs on other machines can connect."""
    imap, pop3 = config.imap, config.pop3
    texts = (*imap.listen, *imap.tls_listen, *pop3.listen, *pop3.tls_listen)
    hosts = [real_address(parse_listen_address(text)).host for text in texts]
    addresses = map(parse_ip_address, filter(None, hosts))
    return any(address is not None and not address.is_loopback for address in addresses)


def trusted_proxies(config: Config) -> list[IpNetwork]:
    """Return the networks of proxies whose headers are trusted."""
    return [ip_network(text) for text in config.web.trusted_proxies]


SITES = (("web", "listen"), ("providers", "listen"), ("mailpit", "listen"))
LINES = (
    ("smtp", "listen"),
    ("smtp", "submission_listen"),
    ("smtp", "broken_tls_listen"),
    ("mailpit", "smtp_listen"),
    ("imap", "listen"),
    ("imap", "tls_listen"),
    ("pop3", "listen"),
    ("pop3", "tls_listen"),
    ("milter", "listen"),
)
"""The options with ports for HTTP, and for protocols of lines. Each kind may use half of the open
files for connections, and the ports of a kind share it."""


def used_ports(config: Config, ports: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    """Return the options that have addresses."""
    return [port for port in ports if getattr(getattr(config, port[0]), port[1])]


def limit_connections(
    config: Config, ports: Sequence[tuple[str, str]], in_all: int, of_address: int
) -> ConnectionLimits:
    """Return the limits of one of several ports: the configured ones, or fewer if files are few."""
    share = files_for_connections() / (2 * max(1, len(used_ports(config, ports))))
    surplus = int(min(MAX_REJECTED_AT_ONCE, share / 6))
    return ConnectionLimits(int(min(in_all, share - 2 * surplus)), of_address, surplus)


def connection_limits(config: Config) -> ConnectionLimits:
    """Return the limits of HTTP connections at one site."""
    web = config.web
    return limit_connections(config, SITES, web.max_connections, web.max_connections_per_address)


def smtp_settings(
    config: Config,
    tls_for: TlsPolicy,
    *,
    is_submission: bool,
    is_auth_optional: bool = False,
    is_private: bool = False,
) -> SmtpSettings:
    """Return the settings of the SMTP server on one port."""
    smtp = config.smtp
    limits = limit_connections(
        config, LINES, smtp.max_connections, smtp.max_connections_per_address
    )
    return SmtpSettings(
        host_name=smtp.host_name or config.inbox.domain,
        limits=Limits(
            message_size=smtp.max_message_size,
            recipients=smtp.max_recipients,
            connections=limits.in_all,
            connections_per_address=limits.of_address,
            surplus=limits.surplus,
            idle=smtp.idle_timeout,
        ),
        is_submission=is_submission,
        is_auth_optional=is_auth_optional,
        is_private=is_private,
        tls_for=tls_for,
        auth_without_tls=AuthWithoutTls(smtp.auth_without_tls),
        proxy_protocol_from=tuple(ip_network(text) for text in smtp.proxy_protocol_from),
        xclient_from=tuple(ip_network(text) for text in smtp.xclient_from),
        submission_port=_submission_port(config),
    )


def own_certificate(config: Config) -> ReloadableCertificate | None:
    """Load the operator's certificate, if there is one.

    :raises ConfigError: a file cannot be read, or has no certificate or key.
    """
    smtp = config.smtp
    if smtp.certificate in ("", SELF_SIGNED):
        return None
    with naming("[smtp] certificate"):
        return ReloadableCertificate(Path(smtp.certificate), Path(smtp.private_key))


def self_signed_certificate(
    config: Config, now: Instant, *, is_trial: bool = False
) -> CertificateOptions | None:
    """Return the self-signed certificate; it is for daemons whose operator has none.

    :param is_trial: return `None` instead of creating it.

    :raises ConfigError: its directory cannot be read or written.
    """
    smtp = config.smtp
    folder = Path(config.storage.state_directory)
    # The names to which programs on this machine, and in neighbouring containers, connect.
    names = [smtp.host_name or config.inbox.domain, *LOCAL_NAMES]
    host = urlsplit(config.web.public_url).hostname
    if host is not None and (is_domain_name(host) or parse_ip_address(host) is not None):
        names.append(host)
    is_for_all = smtp.certificate == SELF_SIGNED
    with naming("[storage] state_directory"):
        found = find_self_signed(folder, names, now, for_local_clients=is_for_all)
        if found is None:
            require_writable(folder)
            if not is_trial:
                return ensure_self_signed(folder, names, now, for_local_clients=is_for_all)
        return found


def require_writable(folder: Path) -> None:
    """Require that files can be created in a folder, or that the folder can be created.

    :raises OSError: they cannot.
    """
    nearest = next(path for path in (folder, *folder.absolute().parents) if path.exists())
    if not nearest.is_dir():
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(nearest))
    if not os.access(nearest, os.W_OK | os.X_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(nearest))


def own_domains(config: Config) -> frozenset[str]:
    """Return the domains of accepted mail, in lower case."""
    return frozenset(domain.lower() for domain in (config.inbox.domain, *config.inbox.aliases))


def least_free(config: Config) -> int:
    """Return the minimum free bytes on the disk of a SQLite file; zero for a server."""
    wanted = config.storage.min_free
    if isinstance(wanted, int):
        return wanted
    if config.storage.is_shared or config.storage.file == IN_MEMORY:
        return 0
    folder = next(
        parent for parent in Path(config.storage.file).absolute().parents if parent.is_dir()
    )
    disk = os.statvfs(folder)
    return min(GIBIBYTE, disk.f_blocks * disk.f_frsize // 20)


def memory_plan(config: Config) -> MemoryPlan:
    """Return the limits of memory of one daemon process, with its children."""
    wanted = config.daemon.memory
    return MemoryPlan(wanted if isinstance(wanted, int) else usable_memory())


def body_limits(larger: Mapping[bytes, int], memory: MemoryPlan) -> "BodyLimits":
    """Return the limits of bodies of a door. ``larger`` has maxima by the beginnings of paths."""
    from mailcheck.web.site.requests import BodyLimits  # commands without a server load none

    return BodyLimits(larger, memory.bodies, memory.bodies_of_client)


def backup_folder(config: Config) -> Path:
    """Return the folder of scheduled backups."""
    return Path(config.backup.folder or Path(config.storage.state_directory) / "backup")


def backup_plan(config: Config) -> BackupPlan:
    """Return when and where backups are made."""
    return BackupPlan(
        every=config.backup.every,
        keep=config.backup.keep,
        folder=backup_folder(config),
        url=config.storage.url,
        least_free=least_free(config),
    )


def receive_settings(config: Config, retention: int) -> ReceiveSettings:
    """Return the settings for receiving mail. ``retention`` is in milliseconds."""
    return ReceiveSettings(
        domains=own_domains(config),
        retention=retention,
        min_free=least_free(config),
        submission_port=_submission_port(config),
    )


def release_settings(config: Config) -> ReleaseSettings:
    """Return what the operator allows about the release of mail."""
    options = config.release
    return ReleaseSettings(
        bool(options.relay),
        options.sender,
        AllowedRecipients(parse_recipients(options.allow_recipients)),
        options.per_hour,
        own_domains(config),
        host_name=config.smtp.host_name or config.inbox.domain,
    )


@contextmanager
def naming(option: str) -> Iterator[None]:
    """Convert errors of an option's file or value to a `ConfigError` that names the option."""
    try:
        yield
    except OSError as error:
        raise ConfigError(f"{option}: {_explain(error)}") from error
    except ValueError as error:
        raise ConfigError(f"{option}: {error}") from error


_ADVICE = (
    (NotADirectoryError, "a file has the name of the folder: name another folder, or move it"),
    (FileExistsError, "a file has the name of the folder: name another folder, or move it"),
    (PermissionError, "run as the user that owns the folder, or give it to this user with chown"),
    (FileNotFoundError, "create it, or name another one"),
)
"""What to do about an error of a file or a folder."""


def _explain(error: OSError) -> str:
    """Return what is wrong with a file or a folder, and what to do."""
    advice = next((text for kind, text in _ADVICE if isinstance(error, kind)), "")
    what = f"{error.filename}: {error.strerror}" if error.filename else str(error)
    return f"{what}; {advice}" if advice else what

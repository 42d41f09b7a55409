"""Orders the services of a daemon. They start in this order and stop in reverse."""

import gc
from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from ipaddress import ip_network
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TextIO

from twisted.application.service import IService, MultiService, Service
from twisted.internet.protocol import Factory
from twisted.internet.ssl import CertificateOptions

from mailcheck.api.urls import PublicUrls
from mailcheck.assembly.accounts import account_services
from mailcheck.assembly.checks import check_services
from mailcheck.assembly.daemon import Daemon
from mailcheck.assembly.deliverability import deliverability_services
from mailcheck.assembly.deployment import (
    accounts_to_find,
    listen_addresses,
    smtp_settings,
)
from mailcheck.assembly.doors.web import build_web
from mailcheck.assembly.metrics import list_metrics
from mailcheck.assembly.ops import (
    Certificates,
    Environment,
    daemon_watch,
    manhole,
    ops_services,
    where,
)
from mailcheck.assembly.reports import report_services
from mailcheck.assembly.running.reloading import Reloading, Servers, milter_access
from mailcheck.assembly.runtime import daemon_presence
from mailcheck.assembly.traffic import traffic_services
from mailcheck.assembly.watches import digest_services, watch_services
from mailcheck.assembly.webhooks import inbound_services, webhook_services
from mailcheck.assembly.workers import in_short_turns
from mailcheck.config.access import daemon_url
from mailcheck.connections.policies import TlsPolicy, offer_to_all
from mailcheck.core.identifiers import ADDRESS_FILE
from mailcheck.core.network_addresses import ListenAddress, parse_listen_address
from mailcheck.daemon.backups import INTERVAL as BACKUP_INTERVAL
from mailcheck.daemon.first_start import FirstStart, Shown
from mailcheck.daemon.first_steps import FirstSteps
from mailcheck.daemon.listening import SYSTEMD, AddressFile, ListeningService
from mailcheck.daemon.periodic import PeriodicService
from mailcheck.daemon.presence import INTERVAL as PRESENCE_INTERVAL
from mailcheck.daemon.presence import PresenceService
from mailcheck.daemon.reserved_names import MissingAccounts
from mailcheck.daemon.retention import INTERVAL, retention_service
from mailcheck.daemon.services import DaemonServices, ParkedWaits, StoreService
from mailcheck.daemon.settled_heap import SettledHeap
from mailcheck.ops.metrics_site import MetricsSite
from mailcheck.ops.start_report import Doors
from mailcheck.ops.supervision import Supervisor
from mailcheck.smtp.protocol import MailFactory
from mailcheck.smtp.verbs import VERBS
from mailcheck.web.site.server import BoundedSite, ProxyProtocolFactory

if TYPE_CHECKING:
    from mailcheck.assembly.doors.compatible import OpenListeners

DRAIN_GRACE = 20.0
"""Seconds for mails being received to finish when the daemon stops."""


class Ports(NamedTuple):
    """The listening services, in the order in which they start."""

    web: ListeningService
    providers: ListeningService
    mailpit: ListeningService
    mailpit_mail: ListeningService
    mail: ListeningService
    submission: ListeningService
    broken_tls: ListeningService
    imap: ListeningService
    imap_tls: ListeningService
    pop3: ListeningService
    pop3_tls: ListeningService
    milter: ListeningService
    metrics: ListeningService


def build_services(daemon: Daemon, environment: Environment) -> MultiService:
    """Build the services of a daemon, in the order in which they start."""
    runtime, accounts = daemon.runtime, daemon.accounts
    config, reactor = runtime.config, runtime.reactor
    tree = DaemonServices(environment.log)
    runtime.probes.open()
    is_trial = environment.trial is not None
    certificates = Certificates(config, runtime.conditions, runtime.now(), is_trial=is_trial)
    site = build_web(daemon)
    ports = _build_ports(daemon, site, certificates, environment)
    missing = MissingAccounts(accounts.keep, lambda: accounts_to_find(runtime.config), reactor)
    reloading = Reloading(daemon, _servers(site, ports), certificates, missing, environment)
    for service in (
        *_store_services(daemon, Supervisor(environment.variables)),
        PeriodicService("making backups", BACKUP_INTERVAL, daemon.backups.look, reactor),
        daemon.backups,
        *runtime.cluster_services,
        daemon.mail.derivation,
        *check_services(runtime, daemon.checks),
        retention_service("retention", INTERVAL, daemon.mail.retention.sweep, reactor),
        *account_services(runtime, accounts),
        runtime.filters.service,
        *deliverability_services(runtime, daemon.tests),
        *webhook_services(runtime, daemon.webhooks),
        *inbound_services(runtime, daemon.inbound),
        *watch_services(runtime, daemon.watches),
        *digest_services(runtime, daemon.digests),
        *report_services(runtime, daemon.reports),
        *traffic_services(runtime, daemon.traffic),
        *ports,
        AddressFile(
            Path(config.storage.state_directory) / ADDRESS_FILE, lambda: _url(daemon, ports)
        ),
        missing,
        ParkedWaits(daemon.mail.feeds, daemon.tests.feeds, daemon.follow),
        SettledHeap(reactor, gc),
        *_ops(daemon, ports, certificates, reloading, environment),
    ):
        service.setServiceParent(tree)
    if config.ops.manhole:
        _manhole(daemon, tree, ports, environment).setServiceParent(tree)
    if config.accounts.bootstrap:
        _first_start(daemon, ports, environment.output).setServiceParent(tree)
    return tree


def mail_factory(daemon: Daemon, tls_for: TlsPolicy, *, is_submission: bool) -> MailFactory:
    """Build the factory for SMTP connections of one port."""
    runtime = daemon.runtime
    settings = smtp_settings(runtime.config, tls_for, is_submission=is_submission)
    journal = daemon.journals["submission" if is_submission else "mail"]
    return MailFactory(
        VERBS, daemon.receiver, settings, runtime.reactor, journal, memory=daemon.incoming
    )


def _milter_factory(daemon: Daemon) -> Factory:
    """Build the factory for connections of mail servers to the milter endpoint."""
    from mailcheck.milter.connection import MilterFactory

    allowed, limits = milter_access(daemon.runtime.config)
    return MilterFactory(daemon.traffic.score, allowed, limits, daemon.runtime.reactor)


def _imap_factory(daemon: Daemon, tls_for: TlsPolicy, *, is_tls: bool) -> Factory:
    from mailcheck.assembly.mail_programs import imap_factory

    return imap_factory(daemon, tls_for, is_tls=is_tls)


def _pop3_factory(daemon: Daemon, tls_for: TlsPolicy, *, is_tls: bool) -> Factory:
    from mailcheck.assembly.mail_programs import pop3_factory

    return pop3_factory(daemon, tls_for, is_tls=is_tls)


def _build_open(daemon: Daemon, tls_for: TlsPolicy) -> "OpenListeners":
    from mailcheck.assembly.doors.compatible import build_open

    return build_open(daemon, tls_for)


def _build_provider_site(daemon: Daemon) -> BoundedSite:
    from mailcheck.assembly.doors.providers import build_provider_site

    return build_provider_site(daemon)


def _store_services(daemon: Daemon, supervisor: Supervisor) -> list[IService]:
    """Return the services of the store and of the daemon's registration in it."""
    runtime = daemon.runtime
    store = StoreService(runtime.engine, runtime.workers.beside_store)
    presence = daemon_presence(runtime.config, runtime.cluster.own_name)
    if presence is None:
        return [store]
    if not runtime.config.storage.is_shared:
        return [PresenceService(presence, supervisor.pause), store]

    async def keep() -> None:
        names = await runtime.workers.reader.run(presence.keep)
        if names is not None:
            runtime.cluster.note_present(names)
        await daemon.mail.derivation.look_after_others()

    keeping = PeriodicService(
        "looking after other daemons", PRESENCE_INTERVAL, keep, runtime.reactor
    )
    return [PresenceService(presence, supervisor.pause), store, keeping]


def _build_ports(
    daemon: Daemon, site: BoundedSite, certificates: Certificates, environment: Environment
) -> Ports:
    """Build the listening services. They accept connections only when everything has started.

    A server that has no address is not built, and its modules are not imported.
    """
    config, reactor, tls_for = daemon.runtime.config, daemon.runtime.reactor, certificates.policy
    listening, at = partial(_listening, environment), partial(listen_addresses, config)
    turns = in_short_turns(reactor)
    proxies = [ip_network(text) for text in config.web.proxy_protocol_from]
    mail = partial(mail_factory, daemon, tls_for, is_submission=False)
    submission = partial(mail_factory, daemon, tls_for, is_submission=True)
    imap, pop3 = partial(_imap_factory, daemon), partial(_pop3_factory, daemon)
    opened = cache(partial(_build_open, daemon, tls_for))
    without_tls = {"tls_for": tls_for, "is_tls": False}
    with_tls = {"tls_for": certificates.for_all, "is_tls": True}

    def broken() -> MailFactory:
        # Without a certificate, every handshake ends in an alert (RFC 8446 6.2).
        return mail_factory(daemon, offer_to_all(CertificateOptions()), is_submission=True)

    def metrics() -> MetricsSite:
        log, expiry = environment.log, certificates.expiry
        return MetricsSite(
            list_metrics(daemon, site, lambda: _connections(ports, site), expiry, log)
        )

    ports = Ports(
        web=listening(
            turns,
            "HTTP",
            at("web", "listen"),
            lambda: ProxyProtocolFactory(site, proxies) if proxies else site,
        ),
        providers=listening(
            turns,
            "the APIs of providers",
            at("providers", "listen"),
            lambda: _build_provider_site(daemon),
        ),
        mailpit=listening(
            turns, "Mailpit's clients", at("mailpit", "listen"), lambda: opened().site
        ),
        mailpit_mail=listening(
            reactor,
            "mail of Mailpit's clients",
            at("mailpit", "smtp_listen"),
            lambda: opened().mail,
        ),
        mail=listening(reactor, "mail", at("smtp", "listen"), mail),
        submission=listening(reactor, "submission", at("smtp", "submission_listen"), submission),
        broken_tls=listening(reactor, "broken TLS", at("smtp", "broken_tls_listen"), broken),
        imap=listening(reactor, "IMAP", at("imap", "listen"), partial(imap, **without_tls)),
        imap_tls=listening(
            reactor, "IMAP over TLS", at("imap", "tls_listen"), partial(imap, **with_tls)
        ),
        pop3=listening(reactor, "POP3", at("pop3", "listen"), partial(pop3, **without_tls)),
        pop3_tls=listening(
            reactor, "POP3 over TLS", at("pop3", "tls_listen"), partial(pop3, **with_tls)
        ),
        milter=listening(
            reactor, "milter", at("milter", "listen"), partial(_milter_factory, daemon)
        ),
        metrics=listening(reactor, "metrics", at("ops", "listen"), metrics, is_needed=False),
    )
    return ports


def _listening(
    environment: Environment,
    reactor: Any,
    purpose: str,
    addresses: Sequence[ListenAddress],
    build: Callable[[], Any],
    *,
    is_needed: bool = True,
) -> ListeningService:
    factory = build() if addresses else None
    if environment.trial is not None and not environment.trial.has_sockets:
        addresses = [address for address in addresses if not address.endpoint.startswith(SYSTEMD)]
    drain = getattr(factory, "drain", None)  # sites have none
    return ListeningService(
        reactor,
        purpose,
        addresses,
        factory,
        None if drain is None else lambda: drain(DRAIN_GRACE),
        inherited=environment.inherited,
        is_needed=is_needed,
    )


def _connections(ports: Ports, site: BoundedSite) -> Mapping[tuple[str, ...], float]:
    """Return the number of open connections, by the names of ports."""

    def count(*services: ListeningService) -> int:
        return sum(
            service.factory.connection_count for service in services if service.factory is not None
        )

    return {
        ("mail",): count(ports.mail),
        ("submission",): count(ports.submission),
        ("IMAP",): count(ports.imap, ports.imap_tls),
        ("POP3",): count(ports.pop3, ports.pop3_tls),
        ("milter",): count(ports.milter),
        ("HTTP",): len(site.connections),
    }


def _servers(site: BoundedSite, ports: Ports) -> Servers:
    """Return the servers whose settings may change."""

    def built(*services: ListeningService) -> list[Any]:
        return [service.factory for service in services if service.factory is not None]

    return Servers(
        sites=[site, *built(ports.providers, ports.mailpit)],
        mail=built(ports.mail, ports.submission, ports.broken_tls, ports.mailpit_mail),
        imap=built(ports.imap, ports.imap_tls),
        pop3=built(ports.pop3, ports.pop3_tls),
        milter=built(ports.milter),
    )


def _ops(
    daemon: Daemon,
    ports: Ports,
    certificates: Certificates,
    reloading: Reloading,
    environment: Environment,
) -> list[Service]:
    """Return the operational services."""
    config = daemon.runtime.config
    doors = Doors(
        mail=where(ports.mail),
        submission=where(ports.submission),
        imap=lambda: [*ports.imap.addresses, *ports.imap_tls.addresses],
        pop3=lambda: [*ports.pop3.addresses, *ports.pop3_tls.addresses],
        web=where(ports.web),
        mailpit=lambda: [
            f"{address}{config.mailpit.web_root}" for address in ports.mailpit.addresses
        ],
        mailpit_mail=where(ports.mailpit_mail),
        milter=where(ports.milter),
        metrics=where(ports.metrics),
        domains=(config.inbox.domain, *config.inbox.aliases),
        url=daemon.runtime.urls.public_url,
        auth_without_tls=config.smtp.auth_without_tls,
        has_certificate=certificates.watched is not None,
        can_register=config.accounts.registration == "open",
    )
    watch = daemon_watch(
        daemon.runtime, lambda: daemon.receiver.settings.min_free, daemon.checks, certificates
    )
    return ops_services(daemon, watch, doors, reloading.reload, environment)


def _manhole(
    daemon: Daemon, tree: DaemonServices, ports: Ports, environment: Environment
) -> ListeningService:
    config = daemon.runtime.config
    programs = [
        service.factory
        for service in (ports.imap, ports.imap_tls, ports.pop3, ports.pop3_tls)
        if service.factory is not None
    ]
    inside = {
        "services": lambda: list(tree),
        "sessions": lambda: [session for factory in programs for session in factory.open],
        "waiters": daemon.mail.feeds.waiters,
        "store": daemon.mail.store,
        "conditions": daemon.runtime.conditions,
    }
    return _listening(
        environment,
        daemon.runtime.reactor,
        "the manhole",
        listen_addresses(config, "ops", "manhole"),
        lambda: manhole(config, inside, is_trial=environment.trial is not None),
        is_needed=False,
    )


def _url(daemon: Daemon, ports: Ports) -> str:
    """Return the URL of pages and API, with the address on which the daemon listens."""
    listens = [parse_listen_address(text) for text in ports.web.addresses]
    return daemon_url(daemon.runtime.config, *listens[:1])


def _first_start(daemon: Daemon, ports: Ports, output: TextIO) -> FirstStart:
    runtime, config = daemon.runtime, daemon.runtime.config

    def first_steps(address: str, key: Shown, name: str, password: Shown) -> str:
        write = FirstSteps(
            mail=ports.mail.addresses,
            submission=ports.submission.addresses,
            imap=ports.imap.addresses,
            urls=PublicUrls(_url(daemon, ports)),
            per_minute=config.limits.requests_per_minute,
            per_day=config.limits.requests_per_day,
            retention_hours=config.inbox.retention_hours,
        )
        return write(address, key, name, password)

    return FirstStart(
        accounts=daemon.accounts.keep,
        sign_in=daemon.accounts.sign_in,
        random_bytes=runtime.clocks.random_bytes,
        preset_key=config.accounts.bootstrap_key,
        state_directory=Path(config.storage.state_directory),
        domain=config.inbox.domain,
        first_steps=first_steps,
        note=daemon.heartbeat.wait_for("first account"),
        reactor=runtime.reactor,
        output=output,
    )

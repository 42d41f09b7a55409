"""Orders the services of a daemon. They start in this order and stop in reverse."""

import gc
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from ipaddress import ip_network
from pathlib import Path
from typing import Any, NamedTuple, TextIO

from twisted.application.service import IService, MultiService, Service
from twisted.internet.ssl import CertificateOptions

from mailcheck.api.urls import PublicUrls
from mailcheck.assembly.accounts import account_services
from mailcheck.assembly.checks import check_services
from mailcheck.assembly.daemon import Daemon
from mailcheck.assembly.deliverability import deliverability_services
from mailcheck.assembly.deployment import (
    listen_addresses,
    named_accounts,
    receive_settings,
    smtp_settings,
)
from mailcheck.assembly.mail_programs import imap_factory, pop3_factory
from mailcheck.assembly.metrics import list_metrics
from mailcheck.assembly.ops import (
    Certificates,
    Environment,
    daemon_watch,
    manhole,
    ops_services,
    where,
)
from mailcheck.assembly.reports import report_services, traffic_services
from mailcheck.assembly.runtime import daemon_presence
from mailcheck.assembly.watches import watch_services
from mailcheck.assembly.web import build_open, build_provider_site, build_web
from mailcheck.assembly.webhooks import webhook_services
from mailcheck.assembly.workers import in_short_turns
from mailcheck.config.access import daemon_url
from mailcheck.connections.policies import TlsPolicy, offer_to_all
from mailcheck.core.client_limits import ConnectionLimits
from mailcheck.core.identifiers import ADDRESS_FILE
from mailcheck.core.network_addresses import ListenAddress, parse_listen_address
from mailcheck.daemon.first_start import FirstStart, Shown
from mailcheck.daemon.first_steps import FirstSteps
from mailcheck.daemon.listening import AddressFile, ListeningService
from mailcheck.daemon.periodic import PeriodicService
from mailcheck.daemon.presence import INTERVAL as PRESENCE_INTERVAL
from mailcheck.daemon.presence import PresenceService
from mailcheck.daemon.reserved_names import MissingAccounts
from mailcheck.daemon.retention import INTERVAL, retention_service
from mailcheck.daemon.services import DaemonServices, ParkedWaits, StoreService
from mailcheck.daemon.settled_heap import SettledHeap
from mailcheck.milter.connection import MilterFactory
from mailcheck.ops.metrics_site import MetricsSite
from mailcheck.ops.start_report import Doors
from mailcheck.ops.supervision import Supervisor
from mailcheck.smtp.protocol import MailFactory
from mailcheck.smtp.verbs import VERBS
from mailcheck.web.site.server import ProxyProtocolFactory

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
    certificates = Certificates(config, runtime.conditions, runtime.now())
    ports = _build_ports(daemon, certificates, environment)
    for service in (
        *_store_services(daemon, Supervisor(environment.variables)),
        *runtime.cluster_services,
        daemon.mail.derivation,
        *check_services(runtime, daemon.checks),
        retention_service("retention", INTERVAL, daemon.mail.retention.sweep, reactor),
        *account_services(runtime, accounts),
        runtime.filters.service,
        *deliverability_services(runtime, daemon.tests),
        *webhook_services(runtime, daemon.webhooks),
        *watch_services(runtime, daemon.watches),
        *report_services(runtime, daemon.reports),
        *traffic_services(runtime, daemon.traffic),
        *ports,
        AddressFile(
            Path(config.storage.state_directory) / ADDRESS_FILE, lambda: _url(daemon, ports)
        ),
        MissingAccounts(accounts.keep, named_accounts(config), reactor),
        ParkedWaits(daemon.mail.feeds, daemon.tests.feeds, daemon.follow),
        SettledHeap(reactor, gc),
        *_ops(daemon, ports, certificates, environment),
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
    return MailFactory(VERBS, daemon.receiver, settings, runtime.reactor, journal)


def milter_factory(daemon: Daemon) -> MilterFactory:
    """Build the factory for connections of mail servers to the milter endpoint."""
    options = daemon.runtime.config.milter
    allowed = tuple(ip_network(text) for text in options.allow_from)
    limits = ConnectionLimits(options.max_connections, options.max_connections)
    return MilterFactory(daemon.traffic.score, allowed, limits, daemon.runtime.reactor)


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


def _build_ports(daemon: Daemon, certificates: Certificates, environment: Environment) -> Ports:
    """Build the listening services. They accept connections only when everything has started."""
    config, reactor, tls_for = daemon.runtime.config, daemon.runtime.reactor, certificates.policy
    mail = mail_factory(daemon, tls_for, is_submission=False)
    submission = mail_factory(daemon, tls_for, is_submission=True)
    # Without a certificate, every handshake ends in an alert (RFC 8446 6.2).
    broken = mail_factory(daemon, offer_to_all(CertificateOptions()), is_submission=True)
    opened = build_open(daemon, tls_for)
    site = build_web(daemon)
    imap = imap_factory(daemon, tls_for, is_tls=False)
    imap_tls = imap_factory(daemon, certificates.for_all, is_tls=True)
    pop3 = pop3_factory(daemon, tls_for, is_tls=False)
    pop3_tls = pop3_factory(daemon, certificates.for_all, is_tls=True)

    milter = milter_factory(daemon)

    def connections() -> Mapping[tuple[str, ...], float]:
        return {
            ("mail",): mail.connection_count,
            ("submission",): submission.connection_count,
            ("IMAP",): imap.connection_count + imap_tls.connection_count,
            ("POP3",): pop3.connection_count + pop3_tls.connection_count,
            ("milter",): milter.connection_count,
            ("HTTP",): len(site.connections),
        }

    measured = list_metrics(daemon, site, connections, certificates.expiry, environment.log)
    proxies = [ip_network(text) for text in config.web.proxy_protocol_from]
    listening, at = partial(_listening, environment), partial(listen_addresses, config)
    to_submission = at("smtp", "submission_listen")
    return Ports(
        listening(
            in_short_turns(reactor),
            "HTTP",
            at("web", "listen"),
            ProxyProtocolFactory(site, proxies) if proxies else site,
        ),
        listening(
            in_short_turns(reactor),
            "the APIs of providers",
            at("providers", "listen"),
            build_provider_site(daemon),
        ),
        listening(
            in_short_turns(reactor), "Mailpit's clients", at("mailpit", "listen"), opened.site
        ),
        listening(
            reactor,
            "mail of Mailpit's clients",
            at("mailpit", "smtp_listen"),
            opened.mail,
            opened.mail.drain,
        ),
        listening(reactor, "mail", at("smtp", "listen"), mail, mail.drain),
        listening(reactor, "submission", to_submission, submission, submission.drain),
        listening(reactor, "broken TLS", at("smtp", "broken_tls_listen"), broken, broken.drain),
        listening(reactor, "IMAP", at("imap", "listen"), imap, imap.drain),
        listening(reactor, "IMAP over TLS", at("imap", "tls_listen"), imap_tls, imap_tls.drain),
        listening(reactor, "POP3", at("pop3", "listen"), pop3, pop3.drain),
        listening(reactor, "POP3 over TLS", at("pop3", "tls_listen"), pop3_tls, pop3_tls.drain),
        listening(reactor, "milter", at("milter", "listen"), milter, milter.drain),
        listening(reactor, "metrics", at("ops", "listen"), MetricsSite(measured), is_needed=False),
    )


def _listening(
    environment: Environment,
    reactor: Any,
    purpose: str,
    addresses: Sequence[ListenAddress],
    factory: Any,
    drain: Callable[[float], Any] | None = None,
    *,
    is_needed: bool = True,
) -> ListeningService:
    return ListeningService(
        reactor,
        purpose,
        addresses,
        factory,
        None if drain is None else lambda: drain(DRAIN_GRACE),
        inherited=environment.inherited,
        is_needed=is_needed,
    )


def _ops(
    daemon: Daemon, ports: Ports, certificates: Certificates, environment: Environment
) -> list[Service]:
    """Return the operational services."""
    config = daemon.runtime.config
    doors = Doors(
        mail=where(ports.mail),
        submission=where(ports.submission),
        imap=lambda: [*ports.imap.addresses, *ports.imap_tls.addresses],
        pop3=lambda: [*ports.pop3.addresses, *ports.pop3_tls.addresses],
        web=where(ports.web),
        mailpit=lambda: [f"{one}{config.mailpit.web_root}" for one in ports.mailpit.addresses],
        mailpit_mail=where(ports.mailpit_mail),
        milter=where(ports.milter),
        metrics=where(ports.metrics),
        domains=(config.inbox.domain, *config.inbox.aliases),
        url=daemon.runtime.urls.public_url,
        auth_without_tls=config.smtp.auth_without_tls,
        has_certificate=certificates.watched is not None,
        can_register=config.accounts.registration == "open",
    )
    min_free = receive_settings(config, daemon.runtime.retention).min_free
    watch = daemon_watch(daemon.runtime, min_free, daemon.checks, certificates)
    return ops_services(daemon, watch, doors, certificates, environment)


def _manhole(
    daemon: Daemon, tree: DaemonServices, ports: Ports, environment: Environment
) -> ListeningService:
    config = daemon.runtime.config
    programs: list[Any] = [
        one.factory for one in (ports.imap, ports.imap_tls, ports.pop3, ports.pop3_tls)
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
        manhole(config, inside),
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
        daemon.accounts.keep,
        daemon.accounts.sign_in,
        runtime.clock_and_randomness.random_bytes,
        config.accounts.bootstrap_key,
        Path(config.storage.state_directory),
        config.inbox.domain,
        first_steps,
        daemon.heartbeat.wait_for("first account"),
        runtime.reactor,
        output,
    )

"""Builds the daemon from a configuration: the only file that knows every class."""

import gc
from collections.abc import Callable, Iterator
from ipaddress import ip_network
from pathlib import Path
from typing import Any, NamedTuple, TextIO

from twisted.application.service import IService, MultiService, Service

from mailcheck.assembly.checks import ChecksAssembly, open_resolvers
from mailcheck.assembly.cluster import open_cluster
from mailcheck.assembly.dashboard import DashboardAssembly
from mailcheck.assembly.deliverability import DeliverabilityAssembly
from mailcheck.assembly.deployment import (
    connection_limits,
    public_url,
    receive_settings,
    smtp_settings,
)
from mailcheck.assembly.inbox_pages import inbox_pages
from mailcheck.assembly.metrics import (
    Values,
    check_metrics,
    daemon_metrics,
    mail_metrics,
    store_metrics,
    wait_metrics,
    web_metrics,
)
from mailcheck.assembly.ops import (
    Certificates,
    OpsAssembly,
    Surroundings,
    daemon_watch,
    manhole,
    where,
)
from mailcheck.assembly.probes import Probes
from mailcheck.assembly.rest_and_mcp import BuiltOperations, RestAndMcp
from mailcheck.assembly.scoring import ScoringAssembly, scoring_settings
from mailcheck.assembly.storage import daemon_presence, database_engine, is_shared, lease_holder
from mailcheck.assembly.tool_pages import tool_pages
from mailcheck.assembly.workers import Workers as Workers
from mailcheck.assembly.workers import daemon_workers as daemon_workers
from mailcheck.config.access import daemon_url
from mailcheck.config.options import Config
from mailcheck.core.accounts import Quota, RequestLimits
from mailcheck.core.conditions import Conditions
from mailcheck.core.errors import ExpectedFailure
from mailcheck.core.identifiers import RandomBytes
from mailcheck.core.instants import HOUR, instant_of
from mailcheck.core.instruments import Metric
from mailcheck.core.network_addresses import parse_listen_address
from mailcheck.daemon.checks_service import ChecksService
from mailcheck.daemon.derivation import Derivation
from mailcheck.daemon.first_start import FirstStart, Shown
from mailcheck.daemon.first_steps import FirstSteps
from mailcheck.daemon.listening import ListeningService
from mailcheck.daemon.ordered_services import DaemonServices
from mailcheck.daemon.parked_waits import ParkedWaits
from mailcheck.daemon.periodic import PeriodicService
from mailcheck.daemon.presence import INTERVAL as PRESENCE_INTERVAL
from mailcheck.daemon.presence import PresenceService
from mailcheck.daemon.retention import INTERVAL, Retention
from mailcheck.daemon.settled_heap import SettledHeap
from mailcheck.daemon.store_service import StoreService
from mailcheck.operations.accounts.authenticate import Authenticator, RequestMeter
from mailcheck.operations.accounts.keep_accounts import KeepAccounts
from mailcheck.operations.inbox.authenticate_message import AuthenticateMessage
from mailcheck.operations.inbox.contents import Contents, MessageLoader
from mailcheck.operations.inbox.delete_messages import DeleteMessages
from mailcheck.operations.inbox.feeds import InboxFeeds
from mailcheck.operations.inbox.hand_over import HandOver
from mailcheck.operations.inbox.mail_bytes import MailBytes
from mailcheck.operations.inbox.offered import InboxOperations
from mailcheck.operations.inbox.read_inbox import ReadInbox
from mailcheck.operations.inbox.receive_mail import ReceiveMail
from mailcheck.operations.inbox.share_message import ShareMessage
from mailcheck.operations.inbox.wait_for_message import WaitForMessage
from mailcheck.operations.mail_traffic import MailTraffic
from mailcheck.operations.places import WaitSlots
from mailcheck.operations.ports import Now
from mailcheck.ops.journal import ClientJournal, MailJournal, Pace
from mailcheck.ops.log import LogWriter
from mailcheck.ops.metrics_site import MetricsSite
from mailcheck.ops.start_report import Doors
from mailcheck.smtp.factory import MailFactory
from mailcheck.smtp.settings import TlsPolicy
from mailcheck.storage.accounts.account_store import SqlAccountStore
from mailcheck.storage.content_store import SqlContentStore
from mailcheck.storage.mail_store import SqlMailStore
from mailcheck.storage.removing import SqlExpiryStore
from mailcheck.web.api.admission import Gate
from mailcheck.web.mcp.dispatch import Dispatcher
from mailcheck.web.mcp.endpoint import McpEndpoint
from mailcheck.web.site.client_addresses import ClientAddresses
from mailcheck.web.site.open_pages import OpenPages
from mailcheck.web.site.proxy_protocol import BehindProxies
from mailcheck.web.site.request_urls import RequestUrls
from mailcheck.web.site.server import BoundedSite, build_site
from mailcheck.wire.urls import PublicUrls

KEY_USE_INTERVAL = 30.0
"""Seconds between writes of when keys were last used."""

DRAIN_GRACE = 20.0
"""Seconds that mails on their way get when the daemon stops."""


class Ports(NamedTuple):
    """What listens, in the order in which it starts."""

    web: ListeningService
    mail: ListeningService
    submission: ListeningService
    metrics: ListeningService


class Assembly:
    """Everything that one process needs, built once and put together."""

    def __init__(
        self, config: Config, reactor: Any, workers: Workers, random_bytes: RandomBytes
    ) -> None:
        self.config = config
        self._reactor = reactor
        self._workers = workers
        self._random_bytes = random_bytes
        self.conditions = Conditions()
        self.pace = Pace()
        self.clients = ClientJournal(self.pace)
        self.now: Now = lambda: instant_of(reactor.seconds())
        self.retention = int(config.inbox.retention_hours * HOUR)
        self.urls = PublicUrls(public_url(config))
        self.cluster, self._cluster_services = open_cluster(config, reactor)
        self._build_storage()
        self._build_accounts()
        self.scoring = ScoringAssembly(
            config, scoring_settings(config), reactor, workers.analysis, lambda: self.checks
        )
        self._build_operations()
        self._build_receiver()
        resolvers = open_resolvers(config, reactor, random_bytes)
        outside = Probes(config, reactor, resolvers.plain)
        self.checks = ChecksAssembly(
            config, reactor, random_bytes, resolvers, outside, self.cluster.counters
        )

    def _build_storage(self) -> None:
        inbox = self.config.inbox
        self.engine = database_engine(self.config, self._workers)
        self._mail_store = SqlMailStore(self.engine, Quota(inbox.max_messages, inbox.max_bytes))
        self._content_store = SqlContentStore(self.engine)
        self._mail_bytes = MailBytes(self._content_store, self._workers.content, self._reactor)
        self._expiry_store = SqlExpiryStore(self.engine, self.engine.give_back_space)
        self._retention = Retention(self._expiry_store, self.now)
        self._account_store = SqlAccountStore(self.engine)

    def _build_accounts(self) -> None:
        config, now, random_bytes = self.config, self.now, self._random_bytes
        self.accounts = KeepAccounts(self._account_store, now, random_bytes)
        self._meter = RequestMeter(self.cluster.counters, now)
        worker, accounts, meter = self._workers.passwords, self.accounts, self._meter
        self.dashboard = DashboardAssembly(
            config, self.engine, worker, accounts, meter, now, random_bytes, self.clients
        )
        self.authenticator = Authenticator(
            self._account_store,
            RequestLimits(config.limits.requests_per_minute, config.limits.requests_per_day),
            now,
        )

    def _build_operations(self) -> None:
        config, store = self.config, self._mail_store
        now, random_bytes, reactor = self.now, self._random_bytes, self._reactor
        self.wake_ups = self.cluster.wake_ups("inboxes")
        self.feeds = InboxFeeds(store, now)
        self.wake_ups.listen(self.feeds.hear)
        self.cluster.when_hints_are_lost(self.feeds.look_everywhere)
        contents = Contents(
            self._content_store,
            self._mail_bytes,
            self._workers.content,
            lambda content: self.checks.selectors.learn(content.header_list),
            reactor,
        )
        traffic = self._traffic = MailTraffic(reactor)
        self.derivation = Derivation(
            contents, self._content_store, traffic, reactor, is_alone=not is_shared(config)
        )
        self._hand_over = HandOver(self.feeds, contents, self.derivation.want)
        loader = MessageLoader(store, contents, now)
        slots = self._build_tests()
        self.inbox = InboxOperations(
            read=ReadInbox(store, contents, loader, self._mail_bytes, now),
            wait=WaitForMessage(store, self.feeds, loader, slots, self._reactor),
            delete=DeleteMessages(store, now),
            share=ShareMessage(store, loader, now, random_bytes),
            authenticate=AuthenticateMessage(
                self.scoring.known,
                self._content_store,
                lambda: self.checks.resolvers.plain,
                self._workers.analysis,
                scoring_settings(config),
                self._reactor,
            ),
        )

    def _build_tests(self) -> WaitSlots:
        config, per_key = self.config, self.config.limits.waits_per_key
        slots = WaitSlots(per_key, self.cluster.places("waits", per_key))
        self.tests = DeliverabilityAssembly(
            config,
            self.engine,
            self.cluster,
            slots,
            self.scoring.analyse,
            self._traffic,
            lease_holder(config, self._random_bytes),
            self._reactor,
            self._random_bytes,
        )
        return slots

    def _build_receiver(self) -> None:
        self.journals = {name: MailJournal(name, self.pace) for name in ("mail", "submission")}
        self.receiver = ReceiveMail(
            self._mail_store,
            self.authenticator,
            self.wake_ups,
            self._traffic,
            self._hand_over,
            self.tests.mail,
            receive_settings(self.config, self.retention),
            self.now,
            self._random_bytes,
        )

    def metrics(
        self,
        mail: MailFactory,
        submission: MailFactory,
        site: BoundedSite,
        certificate_expiry: Callable[[], float | None],
        log: LogWriter | None,
    ) -> list[Metric]:
        """List all that is measured; other daemons on the same store have their own."""

        def connections() -> Values:
            return {
                ("mail",): mail.connection_count,
                ("submission",): submission.connection_count,
                ("HTTP",): len(site.connections),
            }

        return [
            *mail_metrics(self.journals, connections),
            *wait_metrics(self.inbox.wait, self.feeds, self.tests.feeds),
            *check_metrics(self.checks, self.tests.runner),
            *store_metrics(self.engine, self._workers),
            *web_metrics(site.answers, self.clients.failed_access),
            *daemon_metrics(self.conditions, certificate_expiry, log),
        ]

    def site(self) -> BoundedSite:
        """Build the HTTP site."""
        web = self.config.web
        addresses = ClientAddresses([ip_network(text) for text in web.trusted_proxies])
        urls = RequestUrls(self.urls, addresses, is_configured=bool(web.public_url))
        per_day = self.config.limits.requests_per_day
        gate = Gate(self.authenticator, self._meter, addresses, per_day, self.clients)
        built = BuiltOperations(
            self.inbox, self.checks, self.tests, self.scoring, self._workers, self._reactor
        )
        served = RestAndMcp(self.config, built, self.retention, self.now, self._random_bytes)
        api = served.api(gate, urls)
        pages = OpenPages(self.is_ready)
        dispatcher = Dispatcher(served.agent_tools(), self._random_bytes, self.urls.public_url)
        cancelled = self.cluster.wake_ups("cancelled calls")
        mcp = McpEndpoint(gate, dispatcher, urls, cancelled, self._reactor, self._random_bytes)
        shown = inbox_pages(
            self.config,
            self.inbox,
            self.receiver,
            self._mail_bytes,
            self._workers.content,
            self.now,
            self._random_bytes,
        )
        tools = tool_pages(self.config, built, self._meter, self.now, self._reactor)
        dashboard = self.dashboard.resource(
            urls, self.authenticator, self.inbox, tools, shown, served.pages
        )
        return build_site(
            api.resource(),
            mcp,
            pages.resource(),
            dashboard,
            connection_limits(self.config),
            addresses,
            self._reactor,
            self.clients,
        )

    async def is_ready(self) -> bool:
        """Tell whether the store answers."""
        try:
            await self._mail_store.find_operator_inbox()
        except ExpectedFailure:
            return False
        return True

    def mail_factory(self, tls_for: TlsPolicy, *, is_submission: bool) -> MailFactory:
        """Build the factory for SMTP connections of one port."""
        settings = smtp_settings(self.config, tls_for, is_submission=is_submission)
        journal = self.journals["submission" if is_submission else "mail"]
        return MailFactory(self.receiver, settings, self._reactor, journal)

    def services(self, surroundings: Surroundings) -> MultiService:
        """Put the services of the daemon into the order in which they start."""
        tree = DaemonServices(surroundings.log)
        self._inherited = surroundings.inherited
        self.checks.outside.open()
        certificates = Certificates(self.config, self.conditions, self.now())
        ports = self._ports(certificates, surroundings.log)
        for service in (
            *self._store_services(),
            *self._cluster_services,
            self.derivation,
            self.checks.self_tests(),
            # Stopped before the self-tests: a round under way ends at once.
            ChecksService(self.checks.close),
            PeriodicService("retention", INTERVAL, self._retention.sweep, self._reactor),
            self._noting_key_uses(),
            self.scoring.filter.service,
            *self.tests.services(),
            *ports,
            ParkedWaits(self.feeds, self.tests.feeds),
            SettledHeap(self._reactor, gc),
            *self._ops(ports, certificates, surroundings),
        ):
            service.setServiceParent(tree)
        if self.config.ops.manhole:
            self._manhole(tree).setServiceParent(tree)
        if self.config.accounts.bootstrap:
            self._first_start(ports, surroundings.output).setServiceParent(tree)
        return tree

    def _store_services(self) -> list[IService]:
        """Give the store; where several daemons can work on it, also what tells them apart."""
        store = StoreService(self.engine, self._workers.beside_store)
        presence = daemon_presence(self.config)
        if presence is None:
            return [store]

        async def keep() -> None:
            await self._workers.reader.run(presence.keep)
            await self.derivation.look_after_others()

        keeping = PeriodicService(
            "looking after other daemons", PRESENCE_INTERVAL, keep, self._reactor
        )
        return [PresenceService(presence), store, keeping]

    def _behind_proxies(self, site: Any) -> Any:
        networks = [ip_network(text) for text in self.config.web.proxy_protocol_from]
        return BehindProxies(site, networks) if networks else site

    def _noting_key_uses(self) -> PeriodicService:
        save = self.authenticator.save_key_uses
        return PeriodicService(
            "noting key uses", KEY_USE_INTERVAL, save, self._reactor, ends_with_round=True
        )

    def _ports(self, certificates: Certificates, log: LogWriter | None) -> Ports:
        """Give what listens; all of it takes connections only when everything has started."""
        config, tls_for = self.config, certificates.policy
        mail = self.mail_factory(tls_for, is_submission=False)
        submission = self.mail_factory(tls_for, is_submission=True)
        site = self.site()
        metrics = MetricsSite(self.metrics(mail, submission, site, certificates.expiry, log))
        return Ports(
            self._listening("HTTP", config.web.listen, self._behind_proxies(site)),
            self._listening("mail", config.smtp.listen, mail, mail.drain),
            self._listening(
                "submission", config.smtp.submission_listen, submission, submission.drain
            ),
            self._listening("metrics", config.ops.listen, metrics, is_needed=False),
        )

    def _ops(
        self, ports: Ports, certificates: Certificates, surroundings: Surroundings
    ) -> Iterator[Service]:
        """Give what the operator has of the daemon."""
        config = self.config
        doors = Doors(
            mail=where(ports.mail),
            submission=where(ports.submission),
            web=where(ports.web),
            metrics=where(ports.metrics),
            domains=(config.inbox.domain, *config.inbox.aliases),
            url=self.urls.public_url,
            auth_without_tls=config.smtp.auth_without_tls,
            has_certificate=certificates.watched is not None,
            can_register=config.accounts.registration == "open",
        )
        watch = daemon_watch(
            self.conditions,
            self.engine,
            receive_settings(config, self.retention).min_free,
            self.checks,
            certificates,
            self.is_ready,
        )
        ops = OpsAssembly(config, self.conditions, certificates, surroundings, self._reactor)
        yield from ops.services(self.pace, watch, doors, self.accounts)

    def _manhole(self, tree: DaemonServices) -> ListeningService:
        inside = {
            "services": lambda: list(tree),
            "waiters": self.feeds.waiters,
            "store": self._mail_store,
            "conditions": self.conditions,
        }
        return self._listening(
            "the manhole", (self.config.ops.manhole,), manhole(self.config, inside), is_needed=False
        )

    def _first_start(self, ports: Ports, output: TextIO) -> FirstStart:
        config = self.config

        def first_steps(address: str, key: Shown, name: str, password: Shown) -> str:
            listens = [parse_listen_address(text) for text in ports.web.addresses]
            write = FirstSteps(
                mail=ports.mail.addresses,
                submission=ports.submission.addresses,
                urls=PublicUrls(daemon_url(config, *listens[:1])),
                per_minute=config.limits.requests_per_minute,
                per_day=config.limits.requests_per_day,
                retention_hours=config.inbox.retention_hours,
            )
            return write(address, key, name, password)

        return FirstStart(
            self.accounts,
            self.dashboard.sign_in,
            self._random_bytes,
            config.accounts.bootstrap_key,
            Path(config.storage.state_directory),
            config.inbox.domain,
            first_steps,
            self._reactor,
            output,
        )

    def _listening(
        self,
        purpose: str,
        addresses: tuple[str, ...],
        factory: Any,
        drain: Callable[[float], Any] | None = None,
        *,
        is_needed: bool = True,
    ) -> ListeningService:
        return ListeningService(
            self._reactor,
            purpose,
            [parse_listen_address(address) for address in addresses],
            factory,
            None if drain is None else lambda: drain(DRAIN_GRACE),
            inherited=self._inherited,
            is_needed=is_needed,
        )

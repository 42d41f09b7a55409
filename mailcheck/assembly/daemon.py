"""Builds the daemon from a configuration: the only file that knows every class."""

import gc
from collections.abc import Callable, Iterator
from ipaddress import ip_network
from pathlib import Path
from typing import Any, NamedTuple, TextIO

from twisted.application.service import IService, MultiService, Service
from twisted.internet.ssl import CertificateOptions

from mailcheck.api.urls import PublicUrls
from mailcheck.assembly.checks import ChecksAssembly
from mailcheck.assembly.cluster import Lasting, open_cluster
from mailcheck.assembly.dashboard import DashboardAssembly
from mailcheck.assembly.deliverability import DeliverabilityAssembly
from mailcheck.assembly.deployment import (
    alerts_from,
    connection_limits,
    named_accounts,
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
    redis_metrics,
    store_metrics,
    wait_metrics,
    watch_metrics,
    web_metrics,
    webhook_metrics,
)
from mailcheck.assembly.ops import (
    Certificates,
    OpsAssembly,
    Surroundings,
    daemon_watch,
    manhole,
    where,
)
from mailcheck.assembly.outside import Outside, open_outside
from mailcheck.assembly.reports import ReportsAssembly
from mailcheck.assembly.rest_and_mcp import BuiltOperations, RestAndMcp
from mailcheck.assembly.scoring import ScoringAssembly, scoring_settings
from mailcheck.assembly.storage import (
    daemon_presence,
    database_engine,
    lease_holder,
    stored_state,
)
from mailcheck.assembly.tool_pages import tool_pages
from mailcheck.assembly.watches import WatchAssembly
from mailcheck.assembly.webhooks import WebhookAssembly
from mailcheck.assembly.workers import Workers as Workers
from mailcheck.assembly.workers import in_short_turns
from mailcheck.cluster.redis import RedisFigures
from mailcheck.config.access import daemon_url
from mailcheck.config.options import Config
from mailcheck.core.accounts import Quota, RequestLimits
from mailcheck.core.identifiers import ADDRESS_FILE, RandomBytes
from mailcheck.core.instants import DAY, HOUR, SECOND
from mailcheck.core.instruments import Conditions, Metric
from mailcheck.core.network_addresses import parse_listen_address
from mailcheck.daemon.derivation import Derivation
from mailcheck.daemon.first_start import FirstStart, Shown
from mailcheck.daemon.first_steps import FirstSteps
from mailcheck.daemon.listening import AddressFile, ListeningService
from mailcheck.daemon.periodic import PeriodicService
from mailcheck.daemon.presence import INTERVAL as PRESENCE_INTERVAL
from mailcheck.daemon.presence import PresenceService
from mailcheck.daemon.reserved_names import MissingAccounts
from mailcheck.daemon.retention import INTERVAL, Retention, retention_service
from mailcheck.daemon.services import ChecksService, DaemonServices, ParkedWaits, StoreService
from mailcheck.daemon.settled_heap import SettledHeap
from mailcheck.daemon.wall_clock import WallClock
from mailcheck.operations.accounts.authenticate import (
    REVOKED_KEYS_INTERVAL,
    Authenticator,
    RequestMeter,
    RevokedKeys,
)
from mailcheck.operations.accounts.keep_accounts import KeepAccounts
from mailcheck.operations.concurrency import MailTraffic, Turns
from mailcheck.operations.deliverability.check_progress import CheckProgress
from mailcheck.operations.deliverability.manage_tests import MailOfTest
from mailcheck.operations.deliverability.run_test_checks import Analyse
from mailcheck.operations.inbox.check_message import AuthenticateMessage, CheckLinks, CheckMail
from mailcheck.operations.inbox.contents import Contents, MailBytes, MessageLoader
from mailcheck.operations.inbox.feeds import HandOver, InboxFeeds
from mailcheck.operations.inbox.follow_inbox import FollowInbox
from mailcheck.operations.inbox.messages import DeleteMessages, ReadInbox, ShareMessage, ShowMessage
from mailcheck.operations.inbox.offered import InboxOperations
from mailcheck.operations.inbox.receive_mail import ReceiveMail, RequestedFaults
from mailcheck.operations.inbox.wait_for_message import WaitForMessage
from mailcheck.operations.incidents import Incidents
from mailcheck.operations.places import WaitSlots
from mailcheck.ops.heartbeat import Heartbeat
from mailcheck.ops.journal import ClientJournal, MailJournal, Pace
from mailcheck.ops.log import LogWriter
from mailcheck.ops.metrics_site import MetricsSite
from mailcheck.ops.start_report import Doors
from mailcheck.ops.supervision import Supervisor
from mailcheck.ops.watch import DISK
from mailcheck.ports.clocks import TimeAndChance
from mailcheck.smtp.protocol import MailFactory
from mailcheck.smtp.settings import TlsPolicy, offer_to_all
from mailcheck.smtp.verbs import VERBS
from mailcheck.store.accounts.account_store import AccountStore
from mailcheck.store.content_store import ContentStore
from mailcheck.store.mail_store import MailStore
from mailcheck.store.messages import ExpiryStore
from mailcheck.web.api.admission import Gate
from mailcheck.web.dashboard.deliverability.mail_of_report import MailOfReport
from mailcheck.web.dashboard.rendering import Renderer
from mailcheck.web.dashboard.visits import Page
from mailcheck.web.mcp.dispatch import Dispatcher
from mailcheck.web.mcp.endpoint import McpEndpoint
from mailcheck.web.site.open_pages import OpenPages
from mailcheck.web.site.requests import ClientAddresses, RequestUrls
from mailcheck.web.site.server import BehindProxies, BoundedSite, Root

KEY_USE_INTERVAL = 30.0
"""Seconds between writes of when keys were last used."""

DRAIN_GRACE = 20.0
"""Seconds that mails on their way get when the daemon stops."""


class Ports(NamedTuple):
    """What listens, in the order in which it starts."""

    web: ListeningService
    mail: ListeningService
    submission: ListeningService
    broken_tls: ListeningService
    metrics: ListeningService


def time_and_chance_of(
    config: Config, seconds: Callable[[], float], clock: Any, random_bytes: RandomBytes
) -> TimeAndChance:
    """Give a daemon's: ``seconds`` reads the time of day, ``clock`` is one that nobody sets."""
    longest = max(config.inbox.retention_hours * HOUR, config.tests.retention_days * DAY)
    wall_clock = WallClock(seconds, clock, longest / SECOND)
    return TimeAndChance(wall_clock.now, wall_clock.expiry_now, clock, random_bytes)


class Assembly:
    """Everything that one process needs, built once and put together."""

    def __init__(
        self,
        config: Config,
        reactor: Any,
        time_and_chance: TimeAndChance,
        workers: Workers,
        outside: Outside | None = None,
        analyse: Analyse | None = None,
    ) -> None:
        """Build all of it; nothing begins yet.

        :param reactor: runs on the clock of ``time_and_chance``.
        :param outside: whom the daemon asks and tells, if not those that are configured.
        :param analyse: judges the mails of tests, if not our own checks do.
        """
        self.config = config
        self._reactor = reactor
        self._workers = workers
        self.time_and_chance = time_and_chance
        self._turns = Turns(reactor)
        self._traffic = MailTraffic(reactor, workers.soon)
        self.conditions = Conditions()
        self.pace = Pace()
        self.clients = ClientJournal(self.pace)
        self.now = time_and_chance.now
        self.retention = int(config.inbox.retention_hours * HOUR)
        self.urls = PublicUrls(public_url(config))
        self._redis_figures = RedisFigures()
        self.cluster, self._cluster_services = open_cluster(
            config, reactor, self.conditions, self._redis_figures
        )
        self._holder = lease_holder(config, time_and_chance.random_bytes)
        self._build_storage()
        self._build_checks(outside)
        self._build_accounts()
        self._build_tests(analyse)
        self._build_operations()
        self._build_receiver()
        self._build_watches()

    def _build_checks(self, outside: Outside | None) -> None:
        config, time_and_chance = self.config, self.time_and_chance
        # What a restart must not forget.
        self._lasting: Lasting = (
            self.cluster if config.cluster.redis else stored_state(self.engine, self.now)
        )
        self._outside = outside or open_outside(
            config, self._reactor, time_and_chance, self._workers.analysis, self.cluster
        )
        self.checks = ChecksAssembly(
            config,
            time_and_chance,
            self._outside.resolvers,
            self._outside.probes,
            self.cluster,
            self._lasting,
        )

    def _build_storage(self) -> None:
        inbox = self.config.inbox
        self.engine = database_engine(self.config, self._workers, self._traffic.gather)
        self.engine.incidents = Incidents(self._reactor.seconds, self.time_and_chance.random_bytes)
        self._mail_store = MailStore(self.engine, Quota(inbox.max_messages, inbox.max_bytes))
        self._content_store = ContentStore(self.engine)
        self._mail_bytes = MailBytes(
            self._content_store, self._workers.content, self._workers.large, self._reactor
        )
        self._expiry_store = ExpiryStore(self.engine)
        self._retention = Retention(self._expiry_store, self.time_and_chance.expiry_now)
        self._account_store = AccountStore(self.engine)
        self._keys_in_use = RevokedKeys(self._account_store)
        self.heartbeat = Heartbeat(
            self.conditions,
            self.engine,
            self._workers.needed,
            self._reactor,
            self._workers.patient,
        )

    def _build_accounts(self) -> None:
        config, now, time_and_chance = self.config, self.now, self.time_and_chance
        self.accounts = KeepAccounts(self._account_store, time_and_chance)
        self._meter = RequestMeter(self.cluster.counters, now)
        worker, accounts, meter = self._workers.passwords, self.accounts, self._meter
        self.dashboard = DashboardAssembly(
            config,
            self.engine,
            worker,
            accounts,
            meter,
            self.clients,
            lambda: bool(self.conditions.problems.get(DISK)),
            time_and_chance,
        )
        self.authenticator = Authenticator(
            self._account_store,
            RequestLimits(config.limits.requests_per_minute, config.limits.requests_per_day),
            now,
        )

    def _build_tests(self, analyse: Analyse | None) -> None:
        config, per_key = self.config, self.config.limits.waits_per_key
        self._slots = WaitSlots(per_key, self.cluster.places("waits", per_key))
        self.scoring = ScoringAssembly(
            scoring_settings(config),
            self._reactor,
            self._workers.analysis,
            self._outside.spamd.content_filter,
            CheckProgress(self.cluster.wake_ups("checks of tests")),
            self.checks,
        )
        self.tests = DeliverabilityAssembly(
            config,
            self.engine,
            self.cluster,
            self._slots,
            analyse or self.scoring.analyse,
            self._traffic,
            self._holder,
            self.time_and_chance,
        )

    def _build_operations(self) -> None:
        config, store = self.config, self._mail_store
        time_and_chance = self.time_and_chance
        clock, expiry_now = time_and_chance.clock, time_and_chance.expiry_now
        self.wake_ups = self.cluster.wake_ups("inboxes")
        self.feeds = InboxFeeds(store, expiry_now)
        self.wake_ups.listen(self.feeds.hear)
        self.cluster.when_hints_are_lost(self.feeds.look_everywhere)
        removals = self.cluster.wake_ups("removals")
        removals.listen(self.feeds.hear_removal)
        learn = self.checks.selectors.learn
        contents = Contents(self._content_store, self._mail_bytes, learn, clock)
        is_alone = not config.storage.is_shared
        self.derivation = Derivation(
            contents, self._content_store, self._traffic, time_and_chance, is_alone=is_alone
        )
        self._hand_over = HandOver(self.feeds, contents, self.derivation.want, self._traffic.gather)
        loader = self._loader = MessageLoader(store, contents, expiry_now)
        slots = self._slots
        self.inbox = InboxOperations(
            read=ReadInbox(store, contents, loader, self._mail_bytes, expiry_now),
            wait=WaitForMessage(store, self.feeds, loader, slots, time_and_chance),
            follow=FollowInbox(
                store, self.feeds, loader, slots, self._keys_in_use, time_and_chance
            ),
            delete=DeleteMessages(store, expiry_now, removals.publish),
            share=ShareMessage(store, loader, time_and_chance),
            authenticate=self._authenticating_messages(),
            check=CheckMail(self._mail_bytes),
            check_links=CheckLinks(self._outside.probes, self._meter, clock),
            webhooks=self._build_webhooks(loader).keep,
        )

    def _build_webhooks(self, loader: MessageLoader) -> WebhookAssembly:
        self.webhooks = WebhookAssembly(
            self.engine,
            self._mail_store,
            self.feeds,
            loader,
            self._outside.receivers,
            self.cluster,
            self.urls,
            alerts_from(self.config),
            self._holder,
            self.time_and_chance,
        )
        return self.webhooks

    def _authenticating_messages(self) -> AuthenticateMessage:
        return AuthenticateMessage(
            self.scoring.known,
            self._content_store,
            self._outside.resolvers.plain,
            self._workers.analysis,
            scoring_settings(self.config),
            self._reactor,
        )

    def _build_receiver(self) -> None:
        is_on, counters = self.config.inbox.faults, self.cluster.counters
        self.faults = RequestedFaults(self._lasting.memory, counters, self.now, is_on=is_on)
        self.journals = {name: MailJournal(name, self.pace) for name in ("mail", "submission")}
        self.reports = ReportsAssembly(
            self.config,
            self.engine,
            self._mail_store,
            self.cluster,
            self._meter,
            self._workers,
            self.checks,
            self._holder,
            self.time_and_chance,
        )
        self.receiver = self.receiver_for(self._hand_over)

    def receiver_for(self, hand_over: HandOver) -> ReceiveMail:
        """Build what takes mail in; ``hand_over`` gives it to those here who wait for it."""
        return ReceiveMail(
            self._mail_store,
            self.authenticator,
            self.wake_ups,
            self._traffic,
            hand_over,
            self.tests.mail,
            self.reports.mail,
            self.faults,
            receive_settings(self.config, self.retention),
            self.time_and_chance,
        )

    def _build_watches(self) -> None:
        self.watches = WatchAssembly(
            self.config,
            self.engine,
            self.cluster,
            self.checks.watched,
            self.checks.turns,
            self.receiver,
            self.webhooks.receivers,
            self._lasting.memory,
            self._holder,
            self.time_and_chance,
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
            *webhook_metrics(self.webhooks.deliver),
            *watch_metrics(self.watches.runner, self.watches.tell),
            *check_metrics(self.checks, self.tests.runner),
            *store_metrics(self.engine, self._workers),
            *redis_metrics(self._redis_figures),
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
            self.accounts,
            self.inbox,
            self.checks,
            self.tests,
            self.watches,
            self.scoring,
            self._workers,
            self.time_and_chance,
            self._turns,
            self.reports.operations,
        )
        served = RestAndMcp(self.config, built, self.retention)
        api = served.api(gate, urls)
        random_bytes = self.time_and_chance.random_bytes
        dispatcher = Dispatcher(served.agent_tools(), random_bytes, self.urls.public_url)
        cancelled = self.cluster.wake_ups("cancelled calls")
        mcp = McpEndpoint(gate, dispatcher, urls, cancelled, self.time_and_chance)
        pages_of_mail = self._mail_pages(built)
        dashboard = self.dashboard.resource(
            urls, self.authenticator, self.inbox, *pages_of_mail, served.pages
        )
        return BoundedSite(
            Root(
                api.resource(),
                mcp,
                OpenPages(lambda: self.heartbeat.state, built.reports.post, addresses).resource(),
                dashboard,
            ),
            connection_limits(self.config),
            addresses,
            self._reactor,
            self.clients,
        )

    def _mail_pages(self, built: BuiltOperations) -> list[Callable[[Renderer], list[Page]]]:
        """Build the pages of tools and inbox: both show mails, in the same way."""
        show = ShowMessage(self._mail_bytes, self._workers.content)
        mail = MailOfReport(MailOfTest(self.tests.store, self._loader.complete), show)
        tools = tool_pages(self.config, built, mail, self._meter, self._reactor)
        return [tools, self._inbox_pages(show)]

    def _inbox_pages(self, show: ShowMessage) -> Callable[[Renderer], list[Page]]:
        return inbox_pages(
            self.config,
            self.inbox,
            self.receiver,
            show,
            self._turns,
            self.time_and_chance,
        )

    def mail_factory(self, tls_for: TlsPolicy, *, is_submission: bool) -> MailFactory:
        """Build the factory for SMTP connections of one port."""
        settings = smtp_settings(self.config, tls_for, is_submission=is_submission)
        journal = self.journals["submission" if is_submission else "mail"]
        return MailFactory(VERBS, self.receiver, settings, self._reactor, journal)

    def services(self, surroundings: Surroundings) -> MultiService:
        """Put the services of the daemon into the order in which they start."""
        tree = DaemonServices(surroundings.log)
        self._inherited = surroundings.inherited
        self._outside.probes.open()
        certificates = Certificates(self.config, self.conditions, self.now())
        ports = self._ports(certificates, surroundings.log)
        for service in (
            *self._store_services(Supervisor(surroundings.environment)),
            *self._cluster_services,
            self.derivation,
            *self.checks.services(),
            # Stopped before the self-tests: a round under way ends at once.
            ChecksService(self.checks.close),
            retention_service("retention", INTERVAL, self._retention.sweep, self._reactor),
            self._noting_key_uses(),
            self._looking_for_revoked_keys(),
            self._outside.spamd.service,
            *self.tests.services(),
            *self.webhooks.services(),
            *self.watches.services(),
            *self.reports.services(),
            *ports,
            AddressFile(
                Path(self.config.storage.state_directory) / ADDRESS_FILE,
                lambda: self._url(ports),
            ),
            MissingAccounts(self.accounts, named_accounts(self.config), self._reactor),
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

    def _store_services(self, supervisor: Supervisor) -> list[IService]:
        """Give the store, and what keeps other daemons from it."""
        store = StoreService(self.engine, self._workers.beside_store)
        presence = daemon_presence(self.config, self.cluster.own_name)
        if presence is None:
            return [store]
        if not self.config.storage.is_shared:
            return [PresenceService(presence, supervisor.pause), store]

        async def keep() -> None:
            names = await self._workers.reader.run(presence.keep)
            if names is not None:
                self.cluster.note_present(names)
            await self.derivation.look_after_others()

        keeping = PeriodicService(
            "looking after other daemons", PRESENCE_INTERVAL, keep, self._reactor
        )
        return [PresenceService(presence, supervisor.pause), store, keeping]

    def _behind_proxies(self, site: Any) -> Any:
        networks = [ip_network(text) for text in self.config.web.proxy_protocol_from]
        return BehindProxies(site, networks) if networks else site

    def _noting_key_uses(self) -> PeriodicService:
        save = self.authenticator.save_key_uses
        return PeriodicService(
            "noting key uses", KEY_USE_INTERVAL, save, self._reactor, ends_with_round=True
        )

    def _looking_for_revoked_keys(self) -> PeriodicService:
        look = self._keys_in_use.look
        return PeriodicService("revoked keys", REVOKED_KEYS_INTERVAL, look, self._reactor)

    def _ports(self, certificates: Certificates, log: LogWriter | None) -> Ports:
        """Give what listens; all of it takes connections only when everything has started."""
        config, tls_for = self.config, certificates.policy
        mail = self.mail_factory(tls_for, is_submission=False)
        submission = self.mail_factory(tls_for, is_submission=True)
        # Without a certificate every handshake ends in an alert (RFC 8446 6.2).
        broken = self.mail_factory(offer_to_all(CertificateOptions()), is_submission=True)
        site = self.site()
        metrics = MetricsSite(self.metrics(mail, submission, site, certificates.expiry, log))
        return Ports(
            self._listening(
                "HTTP",
                config.web.listen,
                self._behind_proxies(site),
                reactor=in_short_turns(self._reactor),
            ),
            self._listening("mail", config.smtp.listen, mail, mail.drain),
            self._listening(
                "submission", config.smtp.submission_listen, submission, submission.drain
            ),
            self._listening("broken TLS", config.smtp.broken_tls_listen, broken, broken.drain),
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
        )
        ops = OpsAssembly(config, self.conditions, certificates, surroundings, self._reactor)
        yield from ops.services(self.pace, watch, self.heartbeat, doors, self.accounts)

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

    def _url(self, ports: Ports) -> str:
        """Give the address of pages and API, where the daemon listens by now."""
        listens = [parse_listen_address(text) for text in ports.web.addresses]
        return daemon_url(self.config, *listens[:1])

    def _first_start(self, ports: Ports, output: TextIO) -> FirstStart:
        config = self.config

        def first_steps(address: str, key: Shown, name: str, password: Shown) -> str:
            write = FirstSteps(
                mail=ports.mail.addresses,
                submission=ports.submission.addresses,
                urls=PublicUrls(self._url(ports)),
                per_minute=config.limits.requests_per_minute,
                per_day=config.limits.requests_per_day,
                retention_hours=config.inbox.retention_hours,
            )
            return write(address, key, name, password)

        return FirstStart(
            self.accounts,
            self.dashboard.sign_in,
            self.time_and_chance.random_bytes,
            config.accounts.bootstrap_key,
            Path(config.storage.state_directory),
            config.inbox.domain,
            first_steps,
            self.heartbeat.wait_for("first account"),
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
        reactor: Any = None,
    ) -> ListeningService:
        return ListeningService(
            reactor or self._reactor,
            purpose,
            [parse_listen_address(address) for address in addresses],
            factory,
            None if drain is None else lambda: drain(DRAIN_GRACE),
            inherited=self._inherited,
            is_needed=is_needed,
        )

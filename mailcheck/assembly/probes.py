"""Builds the probes of a configuration when they are first needed."""

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol, cast

from twisted.internet.defer import Deferred, succeed
from twisted.logger import Logger

from mailcheck.assembly.checks import CheckRuntime, open_resolvers
from mailcheck.assembly.cluster import PersistentState
from mailcheck.assembly.deployment import alerts_from, own_ports, public_url
from mailcheck.checks.bimi.evaluate import FileFetch
from mailcheck.checks.findings import Finding
from mailcheck.checks.hosts.mta_sts import FetchOutcome, PolicyFetch
from mailcheck.checks.hosts.registration import RegistrationVerdict, undetermined_registration
from mailcheck.checks.hosts.starttls import ProbeOutcome, StarttlsProbe
from mailcheck.checks.link_checks import LinkAnswer
from mailcheck.checks.press_unsubscribe import PressAnswer
from mailcheck.cluster.local import LocalCluster
from mailcheck.config.options import AlertOptions, Config, ReleaseOptions
from mailcheck.config.reading import ConfigError
from mailcheck.config.rules import parse_allowed, parse_recipients, parse_relay
from mailcheck.core.accounts import AllowedRecipients
from mailcheck.core.inbound import InboundMail, InboundRequest, InboundRoute
from mailcheck.core.oauth.clients import ClientDocument
from mailcheck.daemon.wall_clock import of_the_system
from mailcheck.operations.doctor import undetermined_finding
from mailcheck.ports.clocks import ClockAndRandomness
from mailcheck.ports.probes import (
    ClientDocuments,
    DomainFiles,
    InboundAnswer,
    InboundSender,
    MailRelay,
    OutboundPort,
    ReceiverRules,
    RegistrationFinder,
    Relayed,
    StarttlsProber,
    WebhookDialer,
    WebhookLine,
)
from mailcheck.ports.resolver import Resolver
from mailcheck.probes.fetching import GuardedFetcher
from mailcheck.probes.guarded_dialer import GuardedDialer, ProbeReactor, is_own_address
from mailcheck.probes.machine_checks import examine_clock
from mailcheck.probes.mail_host_prober import (
    REFERENCE_HOSTS,
    MailHostProber,
    OutboundPortCheck,
    ProbeSettings,
)
from mailcheck.probes.published_files import BimiFetcher, ClientDocumentFetcher, MtaStsFetcher
from mailcheck.probes.rdap import RdapFinder, RegistryList
from mailcheck.probes.trust import NoAuthorities, TrustRoots, find_trust_roots

if TYPE_CHECKING:
    from mailcheck.probes.alert_mail import AlertMail, WebhookAndMailDialer
    from mailcheck.probes.inbound_sender import ApplicationSender
    from mailcheck.probes.link_prober import GuardedLinkProber
    from mailcheck.probes.webhook_sender import HttpWebhookDialer

NO_AUTHORITIES = "there are no certificate authorities to check the registry's certificate against"

NO_AUTHORITIES_FOR_CLIENTS = "this service has no certificate authorities to verify its host"


class EventDialer(WebhookDialer, ReceiverRules, InboundSender, Protocol):
    """Sends webhooks and mails for applications, and knows the allowed receivers of alerts."""

    def change(self, config: Config) -> None:
        """Use the receivers and the relay of a changed configuration for new connections."""


class HostProbes(StarttlsProber, RegistrationFinder, DomainFiles, ClientDocuments, Protocol):
    """Probes that verify certificates of other hosts."""

    async def examine_clock(self) -> list[Finding]:
        """Compare the clock with that of the server of the list of registries."""

    def stop(self) -> None:
        """Stop the probes under way."""


class NoHostProbes:
    """Answers "could not be determined" if there are no certificate authorities."""

    def probe(self, exchange: str) -> Deferred[StarttlsProbe]:
        """Answer as defined by `StarttlsProber`."""
        return succeed(StarttlsProbe(exchange, ProbeOutcome.NOT_PROBED))

    def outbound_port(self) -> Deferred[OutboundPort]:
        """Answer as defined by `StarttlsProber`."""
        return succeed(OutboundPort.UNKNOWN)

    def find_registration(self, domain: str) -> Deferred[RegistrationVerdict]:
        """Answer as defined by `RegistrationFinder`."""
        return succeed(undetermined_registration(domain, NO_AUTHORITIES))

    def fetch_policy(self, domain: str) -> Deferred[PolicyFetch]:
        """Answer as defined by `PolicyFetcher`."""
        return succeed(PolicyFetch(FetchOutcome.NO_ANSWER))

    def fetch_logo(self, _: str) -> Deferred[FileFetch]:
        """Answer as defined by `LogoFetcher`."""
        return succeed(FileFetch(FetchOutcome.NO_ANSWER))

    def fetch_certificate(self, _: str) -> Deferred[FileFetch]:
        """Answer as defined by `LogoFetcher`."""
        return succeed(FileFetch(FetchOutcome.NO_ANSWER))

    def fetch_client(self, url: str) -> Deferred[ClientDocument]:
        """Answer as defined by `ClientDocuments`."""
        return succeed(ClientDocument(problem=NO_AUTHORITIES_FOR_CLIENTS))

    async def examine_clock(self) -> list[Finding]:
        """Report that the clock could not be compared."""
        return [undetermined_finding("clock", "no-authorities")]

    def stop(self) -> None:
        """Has no effect, since no connection was opened."""


class VerifyingProbes:
    """Probes of hosts, registries and policy files. ``trust`` verifies their certificates."""

    def __init__(
        self,
        config: Config,
        dialer: GuardedDialer,
        trust: TrustRoots,
        shared: PersistentState,
        reactor: ProbeReactor,
        clocks: ClockAndRandomness,
    ) -> None:
        options, self._now = config.probes, clocks.now
        outbound = OutboundPortCheck(dialer, reactor, options.smtp_port, REFERENCE_HOSTS)
        prober = MailHostProber(
            reactor,
            dialer,
            trust,
            outbound,
            ProbeSettings(
                helo_name=config.smtp.host_name or config.inbox.domain, port=options.smtp_port
            ),
            memory=shared.memory,
            counters=shared.counters,
            now=self._now,
        )
        self._source = options.rdap_bootstrap
        self._fetcher = GuardedFetcher(reactor, dialer, trust)
        registries = RegistryList(self._fetcher, reactor, self._source)
        finder = RdapFinder(self._fetcher, registries, shared.memory, clocks)
        policies = MtaStsFetcher(self._fetcher, reactor, shared.memory)
        logos = BimiFetcher(self._fetcher, reactor, shared.memory)
        documents = ClientDocumentFetcher(self._fetcher, reactor, shared.memory)
        self.probe, self.outbound_port = prober.probe, prober.outbound_port
        self.find_registration = finder.find_registration
        self.fetch_policy = policies.fetch_policy
        self.fetch_logo, self.fetch_certificate = logos.fetch_logo, logos.fetch_certificate
        self.fetch_client = documents.fetch_client
        self._stopped = prober, outbound, finder, policies, logos, documents

    async def examine_clock(self) -> list[Finding]:
        """Compare the clock with that of the server of the list of registries."""
        return await examine_clock(self._fetcher, self._source, self._now)

    def stop(self) -> None:
        """Stop the probes under way."""
        for made in self._stopped:
            made.stop()


class Probes:
    """All probes of hosts, registries, policy files and links, and the sender of webhooks.

    Nothing is read or opened before its first use, since a command that only issues a
    key needs none of it.
    """

    _log = Logger()

    def __init__(
        self,
        config: Config,
        reactor: Any,
        clocks: ClockAndRandomness,
        resolver: Resolver,
        shared: PersistentState,
    ) -> None:
        """``shared`` caches results and counts connections for all daemons."""
        self._shared = shared
        self._config = config
        self._reactor = cast(ProbeReactor, reactor)
        self._time_and_chance = clocks
        self._now = clocks.now
        self._resolver = resolver

    def open(self) -> None:
        """Build all probes now.

        :raises ConfigError: the file with certificate authorities is not usable.
        """
        _ = self._hosts

    def probe(self, exchange: str) -> Deferred[StarttlsProbe]:
        """Answer as defined by `StarttlsProber`."""
        return self._hosts.probe(exchange)

    def outbound_port(self) -> Deferred[OutboundPort]:
        """Answer as defined by `StarttlsProber`."""
        return self._hosts.outbound_port()

    def find_registration(self, domain: str) -> Deferred[RegistrationVerdict]:
        """Answer as defined by `RegistrationFinder`."""
        return self._hosts.find_registration(domain)

    async def examine_clock(self) -> list[Finding]:
        """Compare the clock with that of the server of the list of registries."""
        return await self._hosts.examine_clock()

    def fetch_policy(self, domain: str) -> Deferred[PolicyFetch]:
        """Answer as defined by `PolicyFetcher`."""
        return self._hosts.fetch_policy(domain)

    def fetch_logo(self, url: str) -> Deferred[FileFetch]:
        """Answer as defined by `LogoFetcher`."""
        return self._hosts.fetch_logo(url)

    def fetch_certificate(self, url: str) -> Deferred[FileFetch]:
        """Answer as defined by `LogoFetcher`."""
        return self._hosts.fetch_certificate(url)

    def fetch_client(self, url: str) -> Deferred[ClientDocument]:
        """Answer as defined by `ClientDocuments`."""
        return self._hosts.fetch_client(url)

    def probe_link(self, url: str, method: str) -> Deferred[LinkAnswer]:
        """Answer as defined by `LinkProber`."""
        return self._links.probe_link(url, method)

    def press_unsubscribe(self, url: str) -> Deferred[PressAnswer]:
        """Answer as defined by `LinkProber`."""
        return self._links.press_unsubscribe(url)

    def require_allowed(self, url: str, account_name: str) -> None:
        """Answer as defined by `WebhookDialer`."""
        self._receivers.require_allowed(url, account_name)

    def require_mailable(self, address: str, account_name: str) -> None:
        """Answer as defined by `ReceiverRules`."""
        self._receivers.require_mailable(address, account_name)

    def change(self, config: Config) -> None:
        """Answer as defined by `EventDialer`."""
        self._config = config
        for made in ("_posts", "_receivers", "_applications"):
            vars(self).pop(made, None)

    def line(self, account_name: str) -> WebhookLine:
        """Answer as defined by `WebhookDialer`."""
        return self._receivers.line(account_name)

    async def post_inbound(
        self, account_name: str, request: InboundRequest, seconds: float, *, is_cut_off: bool
    ) -> InboundAnswer:
        """Answer as defined by `InboundSender`."""
        return await self._applications.post_inbound(
            account_name, request, seconds, is_cut_off=is_cut_off
        )

    async def mail_inbound(
        self, route: InboundRoute, mail: InboundMail, seconds: float, *, is_cut_off: bool
    ) -> InboundAnswer:
        """Answer as defined by `InboundSender`."""
        return await self._applications.mail_inbound(route, mail, seconds, is_cut_off=is_cut_off)

    @cached_property
    def _receivers(self) -> "WebhookAndMailDialer":
        """Return the sender of webhooks, and of alerts by mail if there is a relay."""
        # Imported here, since most daemons and commands have no webhooks.
        from mailcheck.probes.alert_mail import WebhookAndMailDialer

        has_relay = bool(self._config.alerts.smtp_relay)
        return WebhookAndMailDialer(self._posts, self._alert_mail() if has_relay else None)

    @cached_property
    def _applications(self) -> "ApplicationSender":
        # Imported here, since most daemons and commands have no inbound routes.
        from mailcheck.probes.inbound_sender import ApplicationSender

        trust = self._trust or TrustRoots(())
        return ApplicationSender(self._reactor, self._posts, trust, self._own_name)

    @cached_property
    def _posts(self) -> "HttpWebhookDialer":
        """Return the sender to URLs that accounts chose. It ignores `[network] allow_private`."""
        from mailcheck.probes.webhook_sender import SECONDS, HttpWebhookDialer

        config = self._config
        dialer = GuardedDialer(
            self._reactor,
            self._resolver,
            is_own_address=is_own_address,
            allow_private=False,
            own_ports=own_ports(config),
        )
        return HttpWebhookDialer(
            self._reactor,
            dialer,
            self._trust or TrustRoots(()),
            self._shared.counters,
            parse_allowed(config.webhooks.allow),
            public_url(config),
            self._now,
            SECONDS,
        )

    @property
    def _own_name(self) -> str:
        """The name that this server says in EHLO."""
        return self._config.smtp.host_name or self._config.inbox.domain

    def _alert_mail(self) -> "AlertMail":
        from mailcheck.probes.alert_mail import AlertMail

        options = self._config.alerts
        return AlertMail(
            self._mail_relay("alerts", options.smtp_relay, options),
            alerts_from(self._config),
            AllowedRecipients(parse_recipients(options.allow_recipients)),
            self._shared.counters,
            self._now,
        )

    async def send_mail(self, sender: str, recipients: Sequence[str], mail: bytes) -> Relayed:
        """Send released mail as defined by `MailRelay`, over the relay of `[release]`."""
        options = self._config.release
        relay = self._mail_relay("release", options.relay, options)
        return await relay.send_mail(sender, recipients, mail)

    def _mail_relay(
        self, section: str, address: str, options: AlertOptions | ReleaseOptions
    ) -> MailRelay:
        # Imported here, since most daemons send no mail.
        from mailcheck.probes.smtp_relay import Relay, SmtpRelay

        host, port = parse_relay(address)
        relay = Relay(
            host=host,
            port=port,
            tls=options.tls,
            user=options.user,
            password=options.password,
            own_name=self._own_name,
            owner=f"of [{section}]",
        )
        return SmtpRelay(self._reactor, relay, self._trust or TrustRoots(()))

    def stop(self) -> None:
        """Stop the probes under way."""
        for made in ("_hosts", "_links"):
            if made in vars(self):
                vars(self)[made].stop()

    @cached_property
    def _trust(self) -> TrustRoots | None:
        try:
            return find_trust_roots(self._config.probes.ca_file)
        except NoAuthorities as problem:
            if self._config.probes.ca_file:
                raise ConfigError(f"[probes] ca_file: {problem}") from None
            # An inbox in a slim container works without; checks then report what is undetermined.
            self._log.warn("Certificates cannot be checked: {problem}", problem=problem)
            return None

    @cached_property
    def _dialer(self) -> GuardedDialer:
        allow_private = self._config.network.allow_private
        return GuardedDialer(
            self._reactor,
            self._resolver,
            is_own_address=is_own_address,
            allow_private=allow_private,
        )

    @cached_property
    def _hosts(self) -> HostProbes:
        if self._trust is None:
            return NoHostProbes()
        return VerifyingProbes(
            self._config,
            self._dialer,
            self._trust,
            self._shared,
            self._reactor,
            clocks=self._time_and_chance,
        )

    @cached_property
    def _links(self) -> "GuardedLinkProber":
        # Imported here, since it is rarely used and not at startup.
        from mailcheck.probes.link_prober import GuardedLinkProber

        return GuardedLinkProber(self._reactor, self._dialer, self._trust, self._shared.memory)


def open_command(
    config: Config, reactor: Any, watch: Callable[[Resolver], Resolver]
) -> CheckRuntime:
    """Open the resources for the checks of a command, without sharing them with a daemon.

    :param watch: wraps the resolvers, for example for a progress display.
    """
    clocks, alone = of_the_system(reactor), LocalCluster(reactor)
    resolvers = open_resolvers(config, reactor, clocks.random_bytes, watch)
    probes = Probes(config, reactor, clocks, resolvers.plain, alone)
    return CheckRuntime(config, clocks, resolvers, probes, alone, persistent_state=alone)

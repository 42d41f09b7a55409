"""Builds the probes from a configuration, when they are first needed."""

from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol, cast

from twisted.internet.defer import Deferred, succeed
from twisted.logger import Logger

from mailcheck.assembly.cluster import Lasting
from mailcheck.assembly.deployment import alerts_from, own_ports, public_url
from mailcheck.checks.findings import Finding
from mailcheck.checks.hosts.mta_sts import FetchOutcome, PolicyFetch
from mailcheck.checks.hosts.registration import RegistrationVerdict, undetermined_registration
from mailcheck.checks.hosts.starttls import ProbeOutcome, StarttlsProbe
from mailcheck.checks.link_checks import LinkAnswer
from mailcheck.config.options import Config
from mailcheck.config.reading import ConfigError
from mailcheck.config.rules import parse_allowed, parse_recipients, parse_relay
from mailcheck.operations.doctor import not_found_out
from mailcheck.ports.clocks import TimeAndChance
from mailcheck.ports.probes import OutboundPort, ReceiverRules, WebhookDialer, WebhookLine
from mailcheck.ports.resolver import Resolver
from mailcheck.probes.fetching import GuardedFetcher, MtaStsFetcher
from mailcheck.probes.guarded_dialer import GuardedDialer, ProbeReactor, is_own_address
from mailcheck.probes.mail_host_prober import (
    REFERENCE_HOSTS,
    MailHostProber,
    OutboundPortCheck,
    ProbeSettings,
)
from mailcheck.probes.own_machine import examine_clock
from mailcheck.probes.rdap import RdapFinder, RegistryList
from mailcheck.probes.trust import NoAuthorities, TrustRoots, find_trust_roots

if TYPE_CHECKING:
    from mailcheck.probes.alert_mail import AlertMail, PostsAndMail
    from mailcheck.probes.link_prober import GuardedLinkProber

NO_AUTHORITIES = "there are no certificate authorities to check the registry's certificate against"


class EventDialer(WebhookDialer, ReceiverRules, Protocol):
    """Tells webhooks, and knows who may be told of alerts."""


class Probes:
    """All that looks at hosts, registries, policy files and links, and that tells webhooks.

    Nothing is read or opened before it is used: a command that only issues a
    key needs none of it.
    """

    _log = Logger()

    def __init__(
        self,
        config: Config,
        reactor: Any,
        time_and_chance: TimeAndChance,
        resolver: Resolver,
        shared: Lasting,
    ) -> None:
        """``shared`` keeps what was found out, and counts connections, for all daemons."""
        self._shared = shared
        self._config = config
        self._reactor = cast(ProbeReactor, reactor)
        self._time_and_chance = time_and_chance
        self._now = time_and_chance.now
        self._resolver = resolver

    def open(self) -> None:
        """Make everything now.

        :raises ConfigError: the file with authorities can't be used.
        """
        if self._trust is not None:
            _ = self._prober, self._registrations, self._policies

    def probe(self, exchange: str) -> Deferred[StarttlsProbe]:
        """Answer as `StarttlsProber` promises."""
        if self._trust is None:
            return succeed(StarttlsProbe(exchange, ProbeOutcome.NOT_PROBED))
        return self._prober.probe(exchange)

    def outbound_port(self) -> Deferred[OutboundPort]:
        """Answer as `StarttlsProber` promises."""
        return succeed(OutboundPort.UNKNOWN) if not self._trust else self._prober.outbound_port()

    def find_registration(self, domain: str) -> Deferred[RegistrationVerdict]:
        """Answer as `RegistrationFinder` promises."""
        if self._trust is None:
            return succeed(undetermined_registration(domain, NO_AUTHORITIES))
        return self._registrations.find_registration(domain)

    async def examine_clock(self) -> list[Finding]:
        """Compare the clock with that of the server which has the list of registries."""
        if self._trust is None:
            return [not_found_out("clock", NO_AUTHORITIES)]
        source = self._config.probes.rdap_bootstrap
        return await examine_clock(self._fetcher, source, self._now)

    def fetch_policy(self, domain: str) -> Deferred[PolicyFetch]:
        """Answer as `PolicyFetcher` promises."""
        if self._trust is None:
            return succeed(PolicyFetch(FetchOutcome.SILENT))
        return self._policies.fetch_policy(domain)

    def look_at_link(self, url: str, method: str) -> Deferred[LinkAnswer]:
        """Answer as `LinkProber` promises."""
        return self._links.look_at_link(url, method)

    def require_foreign(self, url: str) -> None:
        """Answer as `WebhookDialer` promises."""
        self._receivers.require_foreign(url)

    def require_mailable(self, address: str, account_name: str) -> None:
        """Answer as `ReceiverRules` promises."""
        self._receivers.require_mailable(address, account_name)

    def line(self, account_name: str) -> WebhookLine:
        """Answer as `WebhookDialer` promises."""
        return self._receivers.line(account_name)

    @cached_property
    def _receivers(self) -> "PostsAndMail":
        """Post to the receivers of webhooks, and mail alerts where there is a relay.

        `[network] allow_private` is not for it.
        """
        # Imported here: most daemons and commands have no webhook.
        from mailcheck.probes.alert_mail import PostsAndMail
        from mailcheck.probes.webhook_posts import SECONDS, WebhookPosts

        config = self._config
        dialer = GuardedDialer(
            self._reactor,
            self._resolver,
            is_own_address=is_own_address,
            allow_private=False,
            own_ports=own_ports(config),
        )
        posts = WebhookPosts(
            self._reactor,
            dialer,
            self._trust or TrustRoots(()),
            self._shared.counters,
            parse_allowed(config.webhooks.allow),
            public_url(config),
            self._now,
            SECONDS,
        )
        return PostsAndMail(posts, self._alert_mail() if config.alerts.smtp_relay else None)

    def _alert_mail(self) -> "AlertMail":
        from mailcheck.probes.alert_mail import AlertMail, Relay

        options, domain = self._config.alerts, self._config.inbox.domain
        host, port = parse_relay(options.smtp_relay)
        relay = Relay(
            host,
            port,
            options.tls,
            options.user,
            options.password,
            alerts_from(self._config),
            self._config.smtp.host_name or domain,
        )
        return AlertMail(
            self._reactor,
            relay,
            parse_recipients(options.allow_recipients),
            self._trust or TrustRoots(()),
            self._shared.counters,
            self._now,
        )

    def stop(self) -> None:
        """End what is under way."""
        for made in ("_prober", "_outbound", "_registrations", "_policies", "_links"):
            if made in vars(self):
                vars(self)[made].stop()

    @property
    def _authorities(self) -> TrustRoots:
        assert self._trust is not None, "nothing is probed without authorities"
        return self._trust

    @cached_property
    def _trust(self) -> TrustRoots | None:
        try:
            return find_trust_roots(self._config.probes.ca_file)
        except NoAuthorities as problem:
            if self._config.probes.ca_file:
                raise ConfigError(f"[probes] ca_file: {problem}") from None
            # An inbox on a slim container needs none: checks then say what is not known.
            self._log.warn("Certificates can't be checked: {problem}", problem=problem)
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
    def _outbound(self) -> OutboundPortCheck:
        port = self._config.probes.smtp_port
        return OutboundPortCheck(self._dialer, self._reactor, port, REFERENCE_HOSTS)

    @cached_property
    def _prober(self) -> MailHostProber:
        settings = ProbeSettings(
            helo_name=self._config.smtp.host_name or self._config.inbox.domain,
            port=self._config.probes.smtp_port,
        )
        return MailHostProber(
            self._reactor,
            self._dialer,
            self._authorities,
            self._outbound,
            settings,
            self._shared.memory,
            self._shared.counters,
            self._now,
        )

    @cached_property
    def _fetcher(self) -> GuardedFetcher:
        return GuardedFetcher(self._reactor, self._dialer, self._authorities)

    @cached_property
    def _registrations(self) -> RdapFinder:
        source = self._config.probes.rdap_bootstrap
        registries = RegistryList(self._fetcher, self._reactor, source)
        return RdapFinder(self._fetcher, registries, self._shared.memory, self._time_and_chance)

    @cached_property
    def _links(self) -> "GuardedLinkProber":
        # Imported here: it is no part of the start, and seldom asked for.
        from mailcheck.probes.link_prober import GuardedLinkProber

        return GuardedLinkProber(self._reactor, self._dialer, self._trust, self._shared.memory)

    @cached_property
    def _policies(self) -> MtaStsFetcher:
        return MtaStsFetcher(self._fetcher, self._reactor, self._shared.memory)

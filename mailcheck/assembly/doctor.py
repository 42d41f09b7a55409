"""Builds the doctor: the topics it examines, and the checks it uses."""

import sys
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from twisted.internet.task import deferLater
from twisted.internet.threads import deferToThreadPool

from mailcheck.assembly.checks import CheckRuntime, Checks
from mailcheck.assembly.deployment import (
    backup_folder,
    has_public_programs,
    least_free,
    own_domains,
)
from mailcheck.assembly.probes import Probes
from mailcheck.assembly.scoring import rspamd_client
from mailcheck.checks.dns_answers import look_up, look_up_addresses
from mailcheck.checks.findings import Finding
from mailcheck.checks.findings_table import make_finding
from mailcheck.checks.hosts.own_zone import OwnZone
from mailcheck.config.options import SELF_SIGNED, Config, InboxOptions
from mailcheck.core.domains.report_mailboxes import MailboxState
from mailcheck.core.errors import StoreUnavailable
from mailcheck.core.identifiers import KEY_FILE, PASSWORD_FILE
from mailcheck.core.memory.instruments import RedisFigures
from mailcheck.core.network_addresses import IpAddress, parse_listen_address, why_not_public
from mailcheck.core.signing_in.company import CALLBACK
from mailcheck.core.version import has_older_distribution
from mailcheck.daemon.spamd_folder import find_spamd
from mailcheck.dns.internet import ROOT
from mailcheck.engines.backup import require_database
from mailcheck.milter.probe import answers
from mailcheck.operations.backups import find_newest_backup
from mailcheck.operations.dns_evaluation import DnsEvaluator
from mailcheck.operations.doctor import (
    Advice,
    Doctor,
    Examine,
    examine_own_zone,
    judge_backup,
    judge_blocklists,
    judge_mailboxes,
    judge_outbound_port,
    judge_root,
    judge_silent_spamd,
    undetermined_finding,
)
from mailcheck.ports.probes import FilterFailed
from mailcheck.probes.guarded_dialer import is_own_address
from mailcheck.probes.machine_checks import (
    examine_certificate,
    examine_disk,
    examine_inbound_port,
    examine_rights,
    outgoing_addresses,
)
from mailcheck.probes.spamd_address import SpamdAddress, parse_spamd_address
from mailcheck.probes.spamd_client import SpamdClient, spamd_endpoint
from mailcheck.probes.spamd_filter import DEFAULT_ADDRESSES

REDIS_SECONDS = 3.0
REDIS_LOOKS = 0.1

EXAMPLE_DOMAIN = InboxOptions().domain
EXAMPLE_MAIL = b"From: doctor@example.com\r\nSubject: test\r\n\r\nThis is a test.\r\n"
"""The mail that rspamd is asked about, to see whether it accepts the password."""


COMPANY = "company"
"""The topic of the company's sign-in service."""


async def examine_company(config: Config, reactor: Any) -> list[Finding]:
    """Examine the company's sign-in service, which is configured."""
    # Imported here, since few daemons have one.
    from mailcheck.assembly.accounts import company_rules
    from mailcheck.assembly.runtime import open_identity_provider
    from mailcheck.operations.accounts.examine_company import examine_company

    provider, options = open_identity_provider(config, reactor), config.oidc
    rules = company_rules(options, config.scim.id_claim)
    assert provider is not None, "the issuer is configured"
    redirect = config.web.public_url + CALLBACK
    return await examine_company(rules, options.issuer, provider, redirect)


FindMailboxes = Callable[[Sequence[str]], Awaitable[Mapping[str, MailboxState]]]
"""Returns what daemons have recorded about mailboxes, by their ids."""


class DoctorParts(NamedTuple):
    """The parts that the doctor examines. Nothing is queried before it examines."""

    runtime: CheckRuntime
    reactor: Any
    checks: Checks
    probes: Probes
    find_mailboxes: FindMailboxes

    @property
    def _config(self) -> Config:
        return self.runtime.config

    @property
    def _folder(self) -> Path:
        return Path(self._config.storage.state_directory)

    def expected_zone(self) -> OwnZone:
        """Return the expected contents of the DNS records, with this machine's addresses."""
        inbox, smtp = self._config.inbox, self._config.smtp
        allow_private = self._config.network.allow_private
        return OwnZone(
            domains=(inbox.domain.lower(), *sorted(own_domains(self._config) - {inbox.domain})),
            host_name=(smtp.host_name or inbox.domain).lower(),
            addresses=tuple(
                address
                for address in outgoing_addresses()
                if allow_private or why_not_public(address) is None
            ),
            is_own=is_own_address,
        )

    def build(self) -> Doctor:
        """Return the doctor. Nothing is queried before it examines."""
        examiners: dict[str, Examine] = {
            "resolver": self._resolver,
            "dns": self._dns,
            "port-in": self._way_in,
            "port-out": self._way_out,
            "blocklists": self._blocklists,
            "spamd": self._spamd,
            "clock": self.probes.examine_clock,
            "disk": self._disk,
            "rights": self._rights,
            "database": self._database,
            "installation": self._installation,
        }
        if self._config.smtp.certificate not in ("", SELF_SIGNED):
            examiners["certificate"] = self._certificate
        elif has_public_programs(self._config):
            examiners["certificate"] = self._self_signed
        if self._config.backup.every:
            examiners["backup"] = self._backup
        if self._config.oidc.issuer:
            examiners[COMPANY] = partial(examine_company, self._config, self.reactor)
        if self._config.milter.listen:
            examiners["milter"] = self._milter
        if self._config.reports.mailboxes:
            examiners["mailboxes"] = self._mailboxes
        if self._config.rspamd.url:
            examiners["rspamd"] = self._rspamd
        if self._config.cluster.redis:
            examiners["redis"] = self._redis
        return Doctor(examiners, self.reactor)

    @property
    def _is_for_this_machine(self) -> bool:
        """Whether this daemon is not meant to receive mail from outside."""
        return self._config.inbox.domain == EXAMPLE_DOMAIN

    @property
    def _evaluator(self) -> DnsEvaluator:
        return DnsEvaluator.starting_now(self.runtime.resolvers.plain, self.reactor)

    async def _resolver(self) -> Iterable[Finding]:
        return judge_root(await self._evaluator.evaluate(lambda answers: look_up(answers, *ROOT)))

    async def _dns(self) -> Iterable[Finding] | Advice:
        if self._is_for_this_machine:
            return [make_finding("doctor.dns.example", example_domain=EXAMPLE_DOMAIN)]
        return await examine_own_zone(self.expected_zone(), self._evaluator)

    async def _way_in(self) -> Iterable[Finding]:
        if self._is_for_this_machine:
            return []
        zone = self.expected_zone()
        host = await self._evaluator.evaluate(
            lambda answers: look_up_addresses(answers, zone.host_name)
        )
        addresses: list[IpAddress] = list(host.addresses)
        port = self._config.probes.smtp_port
        return await examine_inbound_port(self.reactor, addresses, port, zone.host_name)

    async def _way_out(self) -> Iterable[Finding]:
        return judge_outbound_port(await self.probes.outbound_port())

    async def _blocklists(self) -> Iterable[Finding]:
        health = self.checks.health
        await health.test_all()
        tested = {
            blocklist.name: health.of(blocklist) for blocklist in self.checks.catalogue.blocklists
        }
        return judge_blocklists({name: found for name, found in tested.items() if found})

    async def _spamd(self) -> Iterable[Finding]:
        option = self._config.spamassassin.spamd
        places: Iterable[SpamdAddress] = DEFAULT_ADDRESSES if option == "auto" else ()
        if option not in ("auto", "off"):
            places = (parse_spamd_address(option),)
        for place in places:
            if await SpamdClient(self.reactor, place).answers():
                return []
        has_rspamd = bool(self._config.rspamd.url)
        return judge_silent_spamd(option, is_installed=bool(find_spamd()), has_rspamd=has_rspamd)

    async def _rspamd(self) -> Iterable[Finding]:
        try:
            await rspamd_client(self._config, self.reactor).report(EXAMPLE_MAIL)
        except FilterFailed as failure:
            return [
                make_finding("doctor.rspamd.silent", url=self._config.rspamd.url, failure=failure)
            ]
        return []

    async def _mailboxes(self) -> Iterable[Finding]:
        # Imported here, since few daemons fetch reports.
        from mailcheck.assembly.reports import report_mailboxes

        mailboxes = report_mailboxes(self._config)
        try:
            states = await self.find_mailboxes([mailbox.id for mailbox in mailboxes])
        except StoreUnavailable as failure:
            return [undetermined_finding("mailboxes", "no-database", failure=failure)]
        return judge_mailboxes(mailboxes, states)

    async def _milter(self) -> Iterable[Finding]:
        found = []
        for text in self._config.milter.listen:
            address = parse_listen_address(text)
            path = text.removeprefix("unix:").partition(":")[0] if text.startswith("unix:") else ""
            if not path and not address.port:
                continue  # a socket of systemd, or a free port
            host, port = address.local_host or "", address.port or 0
            place = SpamdAddress(path=path) if path else SpamdAddress(host, port)
            if not await answers(spamd_endpoint(place, self.reactor), self.reactor):
                found.append(make_finding("doctor.milter.silent", text=text))
        return found

    async def _disk(self) -> Iterable[Finding]:
        if self._config.storage.is_shared or not self._folder.is_dir():
            return []
        return examine_disk(self._folder, least_free(self._config))

    async def _backup(self) -> Iterable[Finding]:
        folder, every = backup_folder(self._config), self._config.backup.every
        try:
            newest = find_newest_backup(folder)
        except OSError as error:
            return [
                undetermined_finding("backup", "not-listed", folder=folder, error=error.strerror)
            ]
        return judge_backup(newest, folder, every, time.time())

    async def _rights(self) -> Iterable[Finding]:
        files = [self._folder / name for name in (KEY_FILE, PASSWORD_FILE)]
        if not self._config.storage.is_shared:
            files.append(Path(self._config.storage.file))
        if self._config.smtp.private_key:
            files.append(Path(self._config.smtp.private_key))
        return examine_rights(self._folder, files)

    async def _certificate(self) -> Iterable[Finding]:
        return examine_certificate(Path(self._config.smtp.certificate), time.time())

    async def _installation(self) -> Iterable[Finding]:
        if not has_older_distribution(sys.path):
            return []
        return [make_finding("doctor.installation.twice")]

    async def _self_signed(self) -> Iterable[Finding]:
        return [make_finding("doctor.certificate.self-signed")]

    async def _database(self) -> Iterable[Finding]:
        url = self._config.storage.url
        try:
            if self._config.storage.is_shared:
                pool = self.reactor.getThreadPool()
                await deferToThreadPool(self.reactor, pool, require_database, url)
            else:
                require_database(url)
        except StoreUnavailable as failure:
            return [
                make_finding(
                    "doctor.database.away",
                    failure=f"{str(failure)[:1].upper()}{str(failure)[1:]}",
                )
            ]
        return []

    async def _redis(self) -> Iterable[Finding]:
        from mailcheck.assembly.cluster import redis_endpoint
        from mailcheck.cluster.redis import Redis
        from mailcheck.cluster.redis_address import parse_redis_address

        options = self._config.cluster
        address = parse_redis_address(options.redis)
        endpoint = redis_endpoint(address, options.ca_file, self.reactor)
        redis = Redis(address, endpoint, self.reactor, lambda *_: None, RedisFigures())
        redis.startService()
        try:
            for _ in range(round(REDIS_SECONDS / REDIS_LOOKS)):
                if redis.is_there:
                    return []
                await deferLater(self.reactor, REDIS_LOOKS)
        finally:
            await redis.stopService()
        return [make_finding("doctor.redis.away", address=address)]

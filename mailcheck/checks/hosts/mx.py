"""Evaluation of the MX records of a domain and its mail hosts (RFC 5321 5.1)."""

from collections.abc import Iterator, Sequence
from enum import Enum

from msgspec import Struct
from msgspec.structs import replace

from mailcheck.checks.dns_answers import (
    Answers,
    DnsStatus,
    HostAddresses,
    Presence,
    look_up,
    look_up_addresses,
    mx_records,
    presence_of,
)
from mailcheck.checks.findings import Finding, RecordToPublish, Severity
from mailcheck.checks.findings_table import make_finding, undetermined
from mailcheck.checks.mail_domains import registrable_domain
from mailcheck.core.network_addresses import IpAddress, parse_ip_address, why_not_public


class HostProblem(Enum):
    """Why mail does not reach a mail host, or only some of its addresses."""

    NO_ADDRESS = "dead"
    """The name has no address."""
    NOT_PUBLIC = "not-public"
    """All its addresses are private or otherwise not reachable from the Internet."""
    PARTLY_PUBLIC = "partly-public"
    """Some of its addresses are not reachable."""
    ADDRESS_LITERAL = "address-literal"
    """The MX record has an IP address instead of a host name (RFC 5321 5.1)."""
    ALIAS = "alias"
    """The name is a CNAME, to which an MX record must not point (RFC 2181 10.3)."""
    UNDETERMINED = "undetermined"
    """Its addresses could not be determined."""


class MailHost(Struct, frozen=True):
    """One MX record with the addresses of its host."""

    exchange: str
    preference: int
    host: HostAddresses
    problem: HostProblem | None
    intended: str = ""
    """The name without the name of the zone, which an editor has appended; empty unless only that
    name has addresses."""

    @property
    def addresses(self) -> tuple[IpAddress, ...]:
        """All addresses of the host, IPv4 before IPv6."""
        return self.host.addresses

    @property
    def is_usable(self) -> bool:
        """Whether it has an address to which mail can be sent."""
        return self.problem in (None, HostProblem.ALIAS, HostProblem.PARTLY_PUBLIC)


class MxVerdict(Struct, frozen=True):
    """The mail hosts of a domain, best first.

    ``presence`` is about the MX records. ``implicit_host`` has the addresses of the domain itself
    if it has no MX record, since mail is then sent there (RFC 5321 5.1).
    """

    domain: str
    presence: Presence
    hosts: tuple[MailHost, ...]
    has_null_record: bool
    implicit_host: HostAddresses | None
    findings: tuple[Finding, ...]
    exists: bool = True
    """False only if DNS says that the name does not exist (NXDOMAIN, RFC 8020)."""

    @property
    def is_null_mx(self) -> bool:
        """Whether the domain declares that it receives no mail (RFC 7505)."""
        return self.has_null_record and not self.hosts

    @property
    def best(self) -> MailHost | None:
        """The host that senders reach first, or `None`; preferably a usable one."""
        return next((host for host in self.hosts if host.is_usable), next(iter(self.hosts), None))

    @property
    def has_unknown_hosts(self) -> bool:
        """Whether there may be hosts or addresses that could not be determined."""
        of_hosts = (host.problem is HostProblem.UNDETERMINED for host in self.hosts)
        return self.presence is Presence.UNDETERMINED or any(of_hosts)

    @property
    def is_implicit_mx(self) -> bool:
        """Whether mail goes to the domain's own address because it has no MX record."""
        return self.implicit_host is not None and bool(self.implicit_host.addresses)


def _record(domain: str, host: MailHost) -> RecordToPublish:
    return RecordToPublish(domain, "MX", _value(host))


def _value(host: MailHost) -> str:
    """Return the value of the MX record."""
    return f"{host.preference} {host.exchange}."


def _describe_host(domain: str, host: MailHost, hosts: Sequence[MailHost]) -> Finding:
    """Return a finding about one host, which is more severe if no other host is usable."""
    other = next((candidate for candidate in hosts if candidate.is_usable), None)
    severity = Severity.ERROR if other is None else Severity.WARNING
    if host.intended:
        return _describe_appended_zone(domain, host, severity)
    match host.problem:
        case HostProblem.NO_ADDRESS:
            dead = make_finding("mx.dead-host", severity=severity, exchange=host.exchange)
            return _propose_other_host(host, dead, domain, other)
        case HostProblem.NOT_PUBLIC:
            private = make_finding(
                "mx.not-public", severity=severity, exchange=host.exchange, host=_join(host)
            )
            return _propose_other_host(host, private, domain, other)
        case HostProblem.ADDRESS_LITERAL:
            return _describe_address_literal(domain, host, severity)
        case HostProblem.PARTLY_PUBLIC:
            return make_finding("mx.partly-public", exchange=host.exchange, host=_join(host))
        case HostProblem.ALIAS:
            return _describe_alias(domain, host)
        case _:
            return undetermined("mx.undetermined", [host.exchange])


def _propose_other_host(
    host: MailHost, finding: Finding, domain: str, other: MailHost | None
) -> Finding:
    """Propose the MX records without this host, if another one is usable."""
    if other is None:
        return finding
    return replace(finding, proposed=_record(domain, other), replaced=(_value(host),))


def _describe_appended_zone(domain: str, host: MailHost, severity: Severity) -> Finding:
    return make_finding(
        "mx.dead-host",
        case="zone-appended",
        proposed=RecordToPublish(domain, "MX", f"{host.preference} {host.intended}."),
        replaced=(_value(host),),
        severity=severity,
        exchange=host.exchange,
        intended=host.intended,
    )


def _describe_address_literal(domain: str, host: MailHost, severity: Severity) -> Finding:
    return make_finding(
        "mx.address-literal",
        proposed=RecordToPublish(domain, "MX", f"{host.preference} mail.{domain}."),
        replaced=(_value(host),),
        severity=severity,
        exchange=host.exchange,
        domain=domain,
    )


def _describe_alias(domain: str, host: MailHost) -> Finding:
    target = host.host.canonical_name
    return make_finding(
        "mx.alias",
        proposed=RecordToPublish(domain, "MX", f"{host.preference} {target}."),
        replaced=(_value(host),),
        exchange=host.exchange,
        target=target,
    )


def _join(host: MailHost) -> str:
    return ", ".join(str(address) for address in host.addresses)


NULL_EXCHANGE = ""  # the root as exchange means "accepts no mail", RFC 7505 3

MAX_HOSTS = 16
"""Maximum number of hosts whose addresses are queried. Large providers have 5; each costs two
queries."""


def evaluate_mx(domain: str, answers: Answers, *, allow_private: bool = False) -> MxVerdict:
    """Evaluate where mail for ``domain`` goes.

    :param allow_private: treat private addresses as reachable, for test zones.
    """
    answer = look_up(answers, domain, "MX")
    own = look_up_addresses(answers, domain)
    records = mx_records(answer)
    hosts = tuple(
        _evaluate_host(
            domain, exchange, preference, answers, allow_private, is_asked=number < MAX_HOSTS
        )
        for number, (preference, exchange) in enumerate(records)
        if exchange != NULL_EXCHANGE
    )
    nulls = [f"{preference} ." for preference, exchange in records if exchange == NULL_EXCHANGE]
    presence = presence_of(answer)
    return MxVerdict(
        domain=domain,
        presence=presence,
        hosts=hosts,
        has_null_record=bool(nulls),
        implicit_host=own if presence is Presence.ABSENT else None,
        findings=tuple(_find_findings(domain, answer.status, hosts, own, nulls)),
        exists=answer.status is not DnsStatus.NXDOMAIN or own.presence is not Presence.ABSENT,
    )


def _evaluate_host(
    domain: str,
    exchange: str,
    preference: int,
    answers: Answers,
    allow_private: bool,
    *,
    is_asked: bool,
) -> MailHost:
    if parse_ip_address(exchange) is not None or exchange.rpartition(".")[2].isdigit():
        nothing = HostAddresses(exchange, (), Presence.ABSENT, True, exchange)
        return MailHost(exchange, preference, nothing, HostProblem.ADDRESS_LITERAL)
    if not is_asked:
        unknown = HostAddresses(exchange, (), Presence.UNDETERMINED, False, exchange)
        return MailHost(exchange, preference, unknown, HostProblem.UNDETERMINED)
    host = look_up_addresses(answers, exchange)
    problem, intended = _find_problem(host, allow_private), ""
    if problem is HostProblem.NO_ADDRESS:
        found = (look_up_addresses(answers, name) for name in _without_zone(exchange, domain))
        good = (
            addresses.name for addresses in found if _find_problem(addresses, allow_private) is None
        )
        intended = next(good, "")
    return MailHost(exchange, preference, host, problem, intended)


def _without_zone(exchange: str, domain: str) -> Iterator[str]:
    """Yield the names to which a zone editor may have appended the name of the zone."""
    for zone in dict.fromkeys((domain, registrable_domain(domain))):
        name = exchange.removesuffix(f".{zone}")
        if name != exchange and "." in name:
            yield name


def _find_problem(host: HostAddresses, allow_private: bool) -> HostProblem | None:
    if host.presence is Presence.UNDETERMINED:
        return HostProblem.UNDETERMINED
    if host.presence is Presence.ABSENT:
        return HostProblem.NO_ADDRESS
    special = [address for address in host.addresses if why_not_public(address)]
    if special and not allow_private:
        if len(special) < len(host.addresses):
            return HostProblem.PARTLY_PUBLIC
        return HostProblem.NOT_PUBLIC if host.is_complete else HostProblem.UNDETERMINED
    return HostProblem.ALIAS if host.is_alias else None


def _find_findings(
    domain: str,
    status: DnsStatus,
    hosts: tuple[MailHost, ...],
    own: HostAddresses,
    nulls: Sequence[str],
) -> list[Finding]:
    if status is DnsStatus.NO_INTERNET:
        return [make_finding("mx.undetermined", case="resolver")]
    if not status.is_determined:
        return [undetermined("mx.undetermined", [domain])]
    if nulls and hosts:
        record, replaced = _record(domain, hosts[0]), tuple(nulls)
        return [
            make_finding("mx.null-among-others", proposed=record, replaced=replaced, domain=domain)
        ]
    if nulls:
        return [make_finding("mx.null", domain=domain)]
    if not hosts:
        return [_describe_absence(domain, status, own)]
    found = [_describe_host(domain, host, hosts) for host in hosts if host.problem is not None]
    if len(hosts) > MAX_HOSTS:
        found.append(make_finding("mx.too-many", domain=domain, count=len(hosts), limit=MAX_HOSTS))
    return found


def _describe_absence(domain: str, status: DnsStatus, own: HostAddresses) -> Finding:
    if own.presence is Presence.FOUND:
        record = RecordToPublish(domain, "MX", f"10 {domain}.")
        return make_finding("mx.implicit", proposed=record, domain=domain)
    if own.presence is Presence.UNDETERMINED:
        return undetermined("mx.undetermined", [domain])
    if status is DnsStatus.NXDOMAIN:
        return make_finding("mx.no-such-domain", domain=domain)
    record = RecordToPublish(domain, "MX", f"10 mail.{domain}.")
    return make_finding("mx.absent", proposed=record, domain=domain)

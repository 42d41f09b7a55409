"""Judging the MX records of a domain."""

from mailcheck.checks.dns_answers import Answers, DnsStatus
from mailcheck.checks.dns_records import mx_records
from mailcheck.checks.findings import Finding, undetermined
from mailcheck.checks.lookups import (
    HostAddresses,
    Presence,
    look_up,
    look_up_addresses,
    presence_of,
)
from mailcheck.checks.mx import findings as say
from mailcheck.checks.mx.verdicts import HostProblem, MailHost, MxVerdict
from mailcheck.core.network_addresses import parse_ip_address, why_not_public

NULL_EXCHANGE = ""  # the root as exchange: "accepts no mail", RFC 7505 3

MAX_HOSTS = 16
"""Hosts whose addresses are asked for; large providers have 5, and each costs two questions."""


def evaluate_mx(domain: str, answers: Answers, *, allow_private: bool = False) -> MxVerdict:
    """Judge where mail for ``domain`` goes.

    :param allow_private: take private addresses for reachable (test zones).
    """
    answer = look_up(answers, domain, "MX")
    own = look_up_addresses(answers, domain)
    records = mx_records(answer)
    hosts = tuple(
        _judge_host(exchange, preference, answers, allow_private, is_asked=number < MAX_HOSTS)
        for number, (preference, exchange) in enumerate(records)
        if exchange != NULL_EXCHANGE
    )
    has_null = len(hosts) < len(records)
    presence = presence_of(answer)
    return MxVerdict(
        domain=domain,
        presence=presence,
        hosts=hosts,
        has_null_record=has_null,
        implicit_host=own if presence is Presence.ABSENT else None,
        findings=tuple(_find(domain, answer.status, hosts, own, has_null=has_null)),
    )


def _judge_host(
    exchange: str, preference: int, answers: Answers, allow_private: bool, *, is_asked: bool
) -> MailHost:
    if parse_ip_address(exchange) is not None or exchange.rpartition(".")[2].isdigit():
        nothing = HostAddresses(exchange, (), Presence.ABSENT, True, exchange)
        return MailHost(exchange, preference, nothing, HostProblem.ADDRESS_LITERAL)
    if not is_asked:
        unknown = HostAddresses(exchange, (), Presence.UNDETERMINED, False, exchange)
        return MailHost(exchange, preference, unknown, HostProblem.UNDETERMINED)
    host = look_up_addresses(answers, exchange)
    return MailHost(exchange, preference, host, _find_problem(host, allow_private))


def _find_problem(host: HostAddresses, allow_private: bool) -> HostProblem | None:
    if host.presence is Presence.UNDETERMINED:
        return HostProblem.UNDETERMINED
    if host.presence is Presence.ABSENT:
        return HostProblem.DEAD
    special = [address for address in host.addresses if why_not_public(address)]
    if special and not allow_private:
        if len(special) < len(host.addresses):
            return HostProblem.PARTLY_PUBLIC
        return HostProblem.NOT_PUBLIC if host.is_complete else HostProblem.UNDETERMINED
    return HostProblem.ALIAS if host.is_alias else None


def _find(
    domain: str,
    status: DnsStatus,
    hosts: tuple[MailHost, ...],
    own: HostAddresses,
    *,
    has_null: bool,
) -> list[Finding]:
    if not status.is_determined:
        return [undetermined("mx", [domain])]
    if has_null:
        return [say.null_mx_among_others(domain, hosts[0]) if hosts else say.null_mx(domain)]
    if not hosts:
        return [_judge_absence(domain, status, own)]
    found = [say.describe(domain, host, hosts) for host in hosts if host.problem is not None]
    if len(hosts) > MAX_HOSTS:
        found.append(say.too_many_hosts(domain, len(hosts), MAX_HOSTS))
    return found


def _judge_absence(domain: str, status: DnsStatus, own: HostAddresses) -> Finding:
    if own.presence is Presence.FOUND:
        return say.implicit_mx(domain)
    if own.presence is Presence.UNDETERMINED:
        return undetermined("mx", [domain])
    if status is DnsStatus.NXDOMAIN:
        return say.no_such_domain(domain)
    return say.no_mx(domain)

"""The DNS records of the inbox domain: they direct mail to this server and permit no sender.

No mail is sent from an inbox domain, so forged mail must fail SPF and DMARC.
"""

from collections.abc import Callable, Iterator, Sequence

from msgspec import Struct

from mailcheck.checks.dmarc.evaluate import evaluate_dmarc
from mailcheck.checks.dmarc.record import Policy
from mailcheck.checks.dns_answers import (
    Answers,
    Presence,
    look_up,
    look_up_addresses,
    mx_records,
    presence_of,
    txt_values,
)
from mailcheck.checks.findings import Finding, RecordToPublish
from mailcheck.checks.findings_table import make_finding, undetermined
from mailcheck.checks.hosts.reverse_dns import evaluate_reverse_dns, reverse_name
from mailcheck.core.network_addresses import IpAddress

NO_SENDERS = "v=spf1 -all"
REJECT_FORGED = "v=DMARC1; p=reject"


class OwnZone(Struct, frozen=True):
    """The expected zone: ``domains`` receive mail, and ``host_name`` is this server.

    ``addresses`` are the known addresses of this server. ``is_own`` returns whether an address
    belongs to it.
    """

    domains: tuple[str, ...]
    host_name: str
    addresses: tuple[IpAddress, ...]
    is_own: Callable[[IpAddress], bool]


def list_zone_records(zone: OwnZone) -> tuple[RecordToPublish, ...]:
    """List the records to publish. The provider of the addresses publishes the PTR records."""
    return tuple(_lines(zone))


def _lines(zone: OwnZone) -> Iterator[RecordToPublish]:
    for domain in zone.domains:
        yield RecordToPublish(domain, "MX", f"10 {zone.host_name}.")
        yield RecordToPublish(domain, "TXT", NO_SENDERS)
        yield RecordToPublish(f"_dmarc.{domain}", "TXT", REJECT_FORGED)
    for address in zone.addresses:
        yield _address_record(zone.host_name, address)
    for address in zone.addresses:
        yield RecordToPublish(reverse_name(address), "PTR", f"{zone.host_name}.")


def _address_record(name: str, address: IpAddress) -> RecordToPublish:
    return RecordToPublish(name, "A" if address.version == 4 else "AAAA", str(address))


def evaluate_own_zone(zone: OwnZone, answers: Answers) -> tuple[Finding, ...]:
    """Evaluate the records of every inbox domain and of the name of this server."""
    found = [*_check_host(zone, answers)]
    for domain in zone.domains:
        found += _check_domain(domain, zone.host_name, answers)
    return tuple(found)


def _check_domain(domain: str, host_name: str, answers: Answers) -> Iterator[Finding]:
    yield from _check_mx(domain, host_name, answers)
    yield from _check_spf(domain, answers)
    yield from _check_dmarc(domain, answers)


def _check_mx(domain: str, host_name: str, answers: Answers) -> Iterator[Finding]:
    answer = look_up(answers, domain, "MX")
    presence = presence_of(answer)
    if presence is Presence.UNDETERMINED:
        yield undetermined("doctor.mx", [domain])
        return
    exchanges = [exchange for _, exchange in mx_records(answer)]
    if host_name in exchanges:
        return
    record = RecordToPublish(domain, "MX", f"10 {host_name}.")
    if not exchanges:
        yield make_finding("doctor.mx.absent", proposed=record, domain=domain, host_name=host_name)
    else:
        yield make_finding(
            "doctor.mx.elsewhere",
            proposed=record,
            domain=domain,
            exchanges=", ".join(exchanges) or "no host",
            host_name=host_name,
        )


def _check_spf(domain: str, answers: Answers) -> Iterator[Finding]:
    answer = look_up(answers, domain, "TXT")
    if presence_of(answer) is Presence.UNDETERMINED:
        yield undetermined("doctor.spf", [domain])
        return
    records = [text for text in txt_values(answer) if text.lower().split(" ")[0] == "v=spf1"]
    if [" ".join(text.lower().split()) for text in records] != [NO_SENDERS]:
        yield make_finding(
            "doctor.spf.open", proposed=RecordToPublish(domain, "TXT", NO_SENDERS), domain=domain
        )


def _check_dmarc(domain: str, answers: Answers) -> Iterator[Finding]:
    verdict = evaluate_dmarc(domain, answers)
    if verdict.presence is Presence.UNDETERMINED:
        yield undetermined("doctor.dmarc", [domain])
    elif verdict.policy is not Policy.REJECT:
        yield make_finding(
            "doctor.dmarc.open",
            proposed=RecordToPublish(f"_dmarc.{domain}", "TXT", REJECT_FORGED),
            domain=domain,
        )


def _check_host(zone: OwnZone, answers: Answers) -> Iterator[Finding]:
    name = zone.host_name
    host = look_up_addresses(answers, name)
    if host.presence is Presence.UNDETERMINED:
        yield undetermined("doctor.host", [name])
    elif host.presence is Presence.ABSENT:
        yield make_finding(
            "doctor.host.absent",
            proposed=_address_record(name, zone.addresses[0]) if zone.addresses else None,
            name=name,
        )
    else:
        yield from _check_addresses(zone, host.addresses, answers)


def _check_addresses(
    zone: OwnZone, published: Sequence[IpAddress], answers: Answers
) -> Iterator[Finding]:
    if zone.addresses and not any(map(zone.is_own, published)):
        yield make_finding(
            "doctor.host.elsewhere",
            proposed=_address_record(zone.host_name, zone.addresses[0]),
            host_name=zone.host_name,
            published=", ".join(map(str, published)),
            addresses=", ".join(map(str, zone.addresses)),
        )
    for address in published:
        yield from evaluate_reverse_dns(address, answers, host_name=zone.host_name).findings

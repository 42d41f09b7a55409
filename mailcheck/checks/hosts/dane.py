"""DANE of the mail hosts of a domain, and DNSSEC (RFC 7672)."""

from collections.abc import Iterator
from enum import Enum

from dns.rdata import Rdata
from dns.rdtypes.ANY.TLSA import TLSA
from msgspec import Struct

from mailcheck.checks.dns_answers import Answers, Presence, look_up, presence_of
from mailcheck.checks.findings import Finding
from mailcheck.checks.findings_table import make_finding, undetermined
from mailcheck.checks.hosts.mx import MxVerdict


class DnssecStatus(Enum):
    """DNSSEC status; a domain with invalid signatures gets no answer from DNS at all."""

    SIGNED = "signed"
    UNSIGNED = "unsigned"
    UNDETERMINED = "undetermined"


class DnssecVerdict(Struct, frozen=True):
    """Whether answers about the domain are authenticated."""

    domain: str
    status: DnssecStatus
    findings: tuple[Finding, ...]


def evaluate_dnssec(domain: str, answers: Answers, *, is_validating: bool) -> DnssecVerdict:
    """Evaluate the AD bit of an answer about the domain.

    :param is_validating: whether the operator says that the resolver validates and that the
        connection to it is secure. Otherwise the bit has no meaning.
    """
    answer = look_up(answers, domain, "SOA")
    if not is_validating:
        return DnssecVerdict(domain, DnssecStatus.UNDETERMINED, (_no_validator(),))
    if not answer.status.is_determined:
        silence = undetermined("dnssec.undetermined", [domain])
        return DnssecVerdict(domain, DnssecStatus.UNDETERMINED, (silence,))
    if answer.is_authenticated:
        return DnssecVerdict(domain, DnssecStatus.SIGNED, ())
    unsigned = make_finding("dnssec.unsigned", domain=domain)
    return DnssecVerdict(domain, DnssecStatus.UNSIGNED, (unsigned,))


def _no_validator() -> Finding:
    return make_finding("dnssec.undetermined", case="no_validator")


MAX_HOSTS = 4  # the same number of hosts is probed for STARTTLS

USABLE_USAGES = (2, 3)  # DANE-TA, DANE-EE; RFC 7672 3.1.3 rules out 0 and 1
USABLE_SELECTORS = (0, 1)  # certificate, public key; RFC 6698 2.1.2
USABLE_MATCHING_TYPES = (0, 1, 2)  # whole, SHA-256, SHA-512; RFC 6698 2.1.3


class HostTlsa(Struct, frozen=True):
    """The TLSA records of one mail host, as in a zone file.

    ``is_secure`` says whether DNSSEC protects them; `None` if that is unknown.
    """

    exchange: str
    record_name: str
    presence: Presence
    records: tuple[str, ...]
    usable_count: int
    is_secure: bool | None


class DaneVerdict(Struct, frozen=True):
    """DANE of a domain, which is protected only if every host has usable records."""

    hosts: tuple[HostTlsa, ...]
    findings: tuple[Finding, ...]

    @property
    def is_protecting(self) -> bool:
        """Whether every host has usable records that DNSSEC protects."""
        return bool(self.hosts) and all(h.usable_count and h.is_secure for h in self.hosts)


def evaluate_dane(mx: MxVerdict, answers: Answers, *, is_validating: bool) -> DaneVerdict:
    """Evaluate the TLSA records of the best mail hosts.

    :param is_validating: whether the AD bit of the resolver's answers can be trusted.
    """
    hosts = tuple(_read(h.exchange, answers, is_validating) for h in mx.hosts[:MAX_HOSTS])
    return DaneVerdict(hosts, tuple(_find(mx, hosts)))


def _read(exchange: str, answers: Answers, is_validating: bool) -> HostTlsa:
    name = f"_25._tcp.{exchange}"
    answer = look_up(answers, name, "TLSA")
    presence = presence_of(answer)
    is_known = is_validating and presence is Presence.FOUND
    return HostTlsa(
        exchange=exchange,
        record_name=name,
        presence=presence,
        records=tuple(record.to_text() for record in answer.records),
        usable_count=sum(map(_is_usable, answer.records)),
        is_secure=answer.is_authenticated if is_known else None,
    )


def _is_usable(record: Rdata) -> bool:
    return (
        isinstance(record, TLSA)
        and record.usage in USABLE_USAGES
        and record.selector in USABLE_SELECTORS
        and record.mtype in USABLE_MATCHING_TYPES
    )


def _find(mx: MxVerdict, hosts: tuple[HostTlsa, ...]) -> Iterator[Finding]:
    silent = [host.record_name for host in hosts if host.presence is Presence.UNDETERMINED]
    having = [host for host in hosts if host.presence is Presence.FOUND]
    if silent:
        yield undetermined("dane.undetermined", silent)
    if hosts and not having and not silent:
        yield make_finding("dane.absent", domain=mx.domain)
    lacking = [host for host in hosts if host.presence is Presence.ABSENT]
    if having and lacking:
        yield make_finding(
            "dane.partial", exchange=lacking[0].exchange, record_name=lacking[0].record_name
        )
    for host in having:
        yield from _check_records(host)


def _check_records(host: HostTlsa) -> Iterator[Finding]:
    if not host.usable_count:
        yield make_finding("dane.unusable", record_name=host.record_name)
    if host.is_secure is False:
        yield make_finding("dane.insecure", record_name=host.record_name, exchange=host.exchange)

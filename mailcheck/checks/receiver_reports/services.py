"""The catalogue of services that send or forward mail for others: ``sending_services.toml``.

A service is recognized by the reverse DNS names of its hosts, by its own envelope senders and
signatures, or by its networks. The catalogue also has the records with which a domain authorizes
the service.
"""

import tomllib
from collections.abc import Iterable, Mapping
from datetime import date
from enum import Enum
from functools import cache
from importlib.resources import files
from ipaddress import ip_network

import msgspec
from msgspec import Struct

from mailcheck.checks.mail_domains import registrable_domain
from mailcheck.core.network_addresses import parse_ip_address


class ServiceRole(Enum):
    """Whether a service sends mail for its customers, or forwards mail."""

    SENDS = "sends"
    FORWARDS = "forwards"
    BOTH = "both"


class RecordUse(Enum):
    """Purpose of a customer's record. The values are part of the API."""

    DKIM = "dkim"
    """A DKIM key of the customer's domain."""
    RETURN_PATH = "return-path"
    """An envelope sender in the customer's domain."""
    SPF = "spf"
    """A term of the SPF record of the customer's domain."""


class ServiceRecord(Struct, frozen=True, forbid_unknown_fields=True):
    """A record with which a customer authorizes a service.

    ``name`` is relative to the domain and may be empty. Parts in angle brackets are shown in the
    customer's account. The ``value`` with the use ``spf`` is a term.
    """

    use: RecordUse
    name: str
    type: str
    value: str

    @property
    def is_exact(self) -> bool:
        """Whether the record is the same for all customers, apart from their domain."""
        return "<" not in self.name + self.value

    def name_at(self, domain: str) -> str:
        """Return the owner name for a domain."""
        return f"{self.name}.{domain}" if self.name else domain

    def value_for(self, domain: str) -> str:
        """Return the value for a domain."""
        return self.value.replace("{domain}", domain).replace("{dashed}", domain.replace(".", "-"))


class SendingService(Struct, frozen=True, forbid_unknown_fields=True):
    """A service; the header of the catalogue explains the fields."""

    id: str
    name: str
    role: ServiceRole
    hosts: tuple[str, ...]
    envelopes: tuple[str, ...]
    signers: tuple[str, ...]
    records: tuple[ServiceRecord, ...]
    guide: str
    sources: tuple[str, ...]
    read: date
    networks: tuple[str, ...] = ()
    signs_all: bool = False

    @property
    def forwards_unsigned(self) -> bool:
        """Whether it forwards mail, and signs all mail that its own customers send."""
        return self.forwards and self.signs_all

    @property
    def forwards(self) -> bool:
        """Whether it forwards mail of others."""
        return self.role is not ServiceRole.SENDS


@cache
def load_services() -> tuple[SendingService, ...]:
    """Load the catalogue from the package."""
    folder = files("mailcheck.checks.receiver_reports")
    text = folder.joinpath("sending_services.toml").read_text("utf-8")
    return msgspec.convert(tomllib.loads(text)["service"], tuple[SendingService, ...])


def find_service_by_id(service_id: str) -> SendingService | None:
    """Return the service with an id, or `None`."""
    found = (service for service in load_services() if service.id == service_id)
    return next(found, None)


def find_service_of_host(host: str) -> SendingService | None:
    """Return the service of a forward-confirmed host name, or `None`."""
    return _by_host().get(registrable_domain(host))


def find_service_of_domain(domain: str) -> SendingService | None:
    """Return the service that authenticates mail with a domain of its own, or `None`."""
    return _by_domain().get(registrable_domain(domain))


def find_service_of_address(text: str) -> SendingService | None:
    """Return the service in whose published networks an address is, or `None`."""
    address = parse_ip_address(text)
    if address is None:
        return None
    return next(
        (
            service
            for service in load_services()
            if any(address in ip_network(network) for network in service.networks)
        ),
        None,
    )


@cache
def _by_host() -> Mapping[str, SendingService]:
    return {host: service for service in load_services() for host in service.hosts}


@cache
def _by_domain() -> Mapping[str, SendingService]:
    def domains(one: SendingService) -> Iterable[str]:
        return (*one.envelopes, *one.signers)

    return {domain: service for service in load_services() for domain in domains(service)}

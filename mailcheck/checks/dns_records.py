"""Reading record data: from dnspython's objects to plain values."""

from ipaddress import ip_address

from dns.name import Name
from dns.rdtypes.ANY.MX import MX
from dns.rdtypes.ANY.PTR import PTR
from dns.rdtypes.ANY.TXT import TXT
from dns.rdtypes.IN.A import A
from dns.rdtypes.IN.AAAA import AAAA

from mailcheck.checks.dns_answers import DnsAnswer
from mailcheck.core.network_addresses import IpAddress


def host_name(name: Name) -> str:
    """Write a name as everywhere here: lower case, no trailing dot, the root as ``""``."""
    return name.to_text(omit_final_dot=True).lower().rstrip(".")


def txt_values(answer: DnsAnswer) -> tuple[str, ...]:
    """Give each TXT record as one text: its strings joined without a space (RFC 7208 3.3).

    What isn't UTF-8 is written as U+FFFD, which is no syntax in any record.
    """
    return tuple(
        b"".join(record.strings).decode("utf-8", "replace")
        for record in answer.records
        if isinstance(record, TXT)
    )


def ip_addresses(answer: DnsAnswer) -> tuple[IpAddress, ...]:
    """Give the addresses of A or AAAA records, sorted, so that every run shows the same."""
    found = (
        ip_address(record.address) for record in answer.records if isinstance(record, A | AAAA)
    )
    return tuple(sorted(found, key=int))


def mx_records(answer: DnsAnswer) -> tuple[tuple[int, str], ...]:
    """Give ``(preference, exchange)``, best first, then by name; a null MX has ``""``."""
    return tuple(
        sorted(
            (record.preference, host_name(record.exchange))
            for record in answer.records
            if isinstance(record, MX)
        )
    )


def ptr_names(answer: DnsAnswer) -> tuple[str, ...]:
    """Give the names of PTR records, sorted."""
    return tuple(
        sorted({host_name(record.target) for record in answer.records if isinstance(record, PTR)})
    )

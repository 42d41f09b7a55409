"""A house with a scripted outside world: DNS, mail hosts and registries."""

from collections.abc import Mapping, Sequence
from typing import Any

from mailcheck.config.options import Config
from tests.fakes.fake_hosts import FakeHosts
from tests.fakes.memory_zone import MemoryZone
from tests.house import House, config_in_memory

KEY_RECORD = "v=DKIM1; k=ed25519; p=11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo="  # RFC 8463 A.2

GOOD: Mapping[str, Mapping[str, Sequence[str]]] = {
    "good.example": {
        "A": ["8.8.4.1"],
        "MX": ["20 mx2.good.example.", "10 mx1.good.example."],
        "TXT": ["v=spf1 mx -all"],
    },
    "mx1.good.example": {"A": ["8.8.4.10"], "AAAA": ["2001:4860::10"]},
    "mx2.good.example": {"A": ["8.8.4.11"]},
    "_dmarc.good.example": {"TXT": ["v=DMARC1; p=reject; rua=mailto:dmarc@good.example"]},
    "default._domainkey.good.example": {"TXT": [KEY_RECORD]},
    "10.4.8.8.in-addr.arpa": {"PTR": ["mx1.good.example."]},
}
"""A correctly configured domain."""


def checking_house(
    zone: MemoryZone, config: Config | None = None, hosts: FakeHosts | None = None
) -> House:
    """Create a house whose checks and blocklists use this zone and these hosts."""
    return House(config or config_in_memory(), zone=zone, hosts=hosts)


def zone_with(records: Mapping[str, Mapping[str, Sequence[str]]], **options: Any) -> MemoryZone:
    """Return the zone of the correct domain with additional or different records."""
    return MemoryZone({**GOOD, **records}, **options)

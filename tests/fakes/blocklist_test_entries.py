"""The test entries of blocklists (RFC 5782 5), with which lists pass their self-tests."""

from ipaddress import IPv4Address

from mailcheck.checks.dnsbl.catalogue import (
    Blocklist,
    CodeClass,
    TargetKind,
    packaged_catalogue_text,
    parse_catalogue,
)
from tests.fakes.memory_zone import MemoryZone


def publish_list_test_entries(zone: MemoryZone) -> None:
    """Publish the test entries of all lists of the catalogue in a zone."""
    for blocklist in parse_catalogue(packaged_catalogue_text()).blocklists:
        for kind, apex in blocklist.query_zones.items():
            if blocklist.test_listed:
                point = _label(kind, blocklist.test_listed)
                zone.publish(f"{point}.{apex}", "A", _code(blocklist))


def _label(kind: TargetKind, point: str) -> str:
    if kind is TargetKind.DOMAIN:
        return point
    number = int(IPv4Address(point))
    if kind is TargetKind.IPV6:
        return ".".join(reversed(f"{0xFFFF << 32 | number:032x}"))
    return ".".join(reversed(point.split(".")))


def _code(blocklist: Blocklist) -> str:
    listing = (CodeClass.LISTED, CodeClass.POLICY)
    rule = next(rule for rule in blocklist.rules if rule.code_class in listing)
    return f"127.0.0.{rule.bit}" if rule.bit else str(IPv4Address(rule.first))

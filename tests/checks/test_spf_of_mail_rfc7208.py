"""The complete test suite of openspf.org for RFC 7208 (tests/corpus/rfc7208)."""

from collections.abc import Iterator
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import yaml

from mailcheck.checks.auth_results import AuthResult
from mailcheck.checks.dns_answers import DnsStatus
from mailcheck.checks.spf.mail import evaluate_spf_of_mail
from tests.fakes.memory_zone import MemoryZone
from tests.fakes.settling import settle
from tests.table import rows

SUITE = Path(__file__).parent.parent / "corpus" / "rfc7208" / "rfc7208-tests.yml"
RDTYPES = ("A", "AAAA", "MX", "PTR", "TXT", "SPF")


@dataclass(frozen=True)
class Case:
    """One test of the suite; any of ``results`` is correct."""

    name: str
    client_ip: str
    helo_name: str
    envelope_sender: str
    results: tuple[str, ...]
    zone: dict[str, list[Any]]


def read_cases() -> Iterator[Case]:
    """Return all tests with the zone of their section."""
    for section in yaml.safe_load_all(SUITE.read_text("utf-8")):
        for name, test in section["tests"].items():
            expected = test["result"]
            yield Case(
                name=name,
                client_ip=test["host"],
                helo_name=test["helo"],
                envelope_sender=test["mailfrom"],
                results=(expected,) if isinstance(expected, str) else tuple(expected),
                zone=section["zonedata"],
            )


def build_zone(data: dict[str, list[Any]]) -> MemoryZone:
    """Publish the zone of the suite; ``SPF`` stands for TXT too if no TXT is given."""
    zone = MemoryZone({})
    for name, entries in data.items():
        records = [item for entry in entries if isinstance(entry, dict) for item in entry.items()]
        by_type: dict[str, list[str]] = {}
        for rdtype, value in records:
            if value == "TIMEOUT":
                zone.failing[(name.lower(), rdtype)] = DnsStatus.TIMEOUT
            elif value != "NONE":
                by_type.setdefault(rdtype, []).append(write_record(rdtype, value))
        if "TXT" not in dict(records) and "SPF" in by_type:
            by_type["TXT"] = by_type["SPF"]
        for rdtype, texts in by_type.items():
            zone.publish(name, rdtype, *texts)
        if "TIMEOUT" in entries:
            silent = (rdtype for rdtype in RDTYPES if rdtype not in by_type)
            zone.failing.update({(name.lower(), t): DnsStatus.TIMEOUT for t in silent})
    return zone


def write_record(rdtype: str, value: Any) -> str:
    """Write a record as in a zone file."""
    if rdtype in ("TXT", "SPF"):
        strings = [value] if isinstance(value, str) else value
        octets = [string.encode("utf-8") for string in strings]
        return " ".join('"' + "".join(f"\\{octet:03d}" for octet in o) + '"' for o in octets)
    if rdtype == "MX":
        return f"{value[0]} {value[1].removesuffix('.')}."
    return f"{value.removesuffix('.')}." if rdtype in ("PTR", "CNAME") else str(value)


@rows(*read_cases())
def test_suite_of_rfc_7208(case: Case) -> None:
    """Every mail of the suite gets the expected result."""
    verdict = settle(
        build_zone(case.zone),
        lambda answers: evaluate_spf_of_mail(
            ip_address(case.client_ip), case.helo_name, case.envelope_sender, "here", answers
        ),
    )
    assert verdict.mail_from.result.value in case.results, verdict.mail_from.explanation
    assert verdict.mail_from.explanation
    if verdict.mail_from.result is AuthResult.TEMPERROR:
        assert verdict.mail_from.unanswered_names

"""Output and exit statuses of the check commands."""

import io
from collections.abc import Callable
from typing import Any

import pytest

from mailcheck.checks.bimi.evaluate import FileFetch
from mailcheck.checks.dns_answers import DnsQuestion, DnsStatus
from mailcheck.checks.hosts.mta_sts import FetchOutcome
from mailcheck.cli.access.reactor_commands import CountedLookups
from mailcheck.cli.check_commands import judge_blocklists, judge_mx, judge_reputation
from mailcheck.cli.commands import GREEN, Console, Painted
from mailcheck.cli.texts.check_texts import (
    describe_blocklists,
    describe_domain,
    describe_mx,
    describe_reputation,
)
from mailcheck.config.options import Config
from mailcheck.core.network_addresses import parse_ip_address
from mailcheck.operations.domains.compute_reputation import ReputationQuery
from tests.cli.command_line import Screen, plain, run_command
from tests.fakes.fake_hosts import FakeHosts
from tests.fakes.marks import CERTIFICATE_URL, GOOD_LOGO, LOGO_URL, RECORD, bundle
from tests.fakes.memory_zone import MemoryZone
from tests.house import House, run
from tests.table import rows
from tests.web.checking import GOOD, checking_house, zone_with


def with_checks(
    zone: MemoryZone, work: Callable[[Any], Any], hosts: FakeHosts | None = None
) -> Any:
    """Run a function with the checks over a zone."""
    house: House = checking_house(zone, hosts=hosts)
    try:
        return run(work(house.assembly.checks))
    finally:
        house.close()


def mx(zone: MemoryZone, domain: str = "good.example") -> Any:
    """Check a domain."""
    return with_checks(zone, lambda checks: checks.mx.check(domain))


def listings(zone: MemoryZone, address_text: str = "8.8.4.10") -> Any:
    """Check an address on the blocklists."""
    address = parse_ip_address(address_text)
    return with_checks(zone, lambda checks: checks.blocklists.check(address))


def reputation(zone: MemoryZone) -> Any:
    """Compute the reputation of the good domain."""
    query = ReputationQuery("good.example")
    return with_checks(zone, lambda checks: checks.reputation.compute(query))


def test_exit_statuses_of_mx() -> None:
    """0 fine, 1 a problem, 3 undetermined; a problem takes precedence."""
    good = mx(zone_with({}))
    assert [judge_mx(good, fail_on) for fail_on in ("error", "warning", "never")] == [0, 0, 0]
    bare = mx(MemoryZone({"bare.example": {"A": ["8.8.4.4"]}}), "bare.example")
    assert [judge_mx(bare, fail_on) for fail_on in ("error", "warning", "never")] == [1, 1, 0]
    lost = mx(zone_with({}, failing={("good.example", "MX"): DnsStatus.TIMEOUT}))
    assert judge_mx(lost, "error") == 3


def test_what_is_said_of_mail_hosts() -> None:
    """A null MX is described differently from missing records."""
    zones = {
        "none": {"good.example": {"A": ["8.8.4.4"], "TXT": ["v=spf1 -all"]}},
        "null MX: the domain accepts no mail": {"good.example": {"MX": ["0 ."]}},
        " 10 mx.good.example (8.8.4.4)": {
            "good.example": {"MX": ["10 mx.good.example."]},
            "mx.good.example": {"A": ["8.8.4.4"]},
        },
    }
    for said, zone in zones.items():
        assert f"  MX     {said}" in plain(describe_mx(mx(MemoryZone(zone))))


@rows(
    ([], "none"),
    (["v=BIMI1; l=; a=;"], "declined: the domain has no logo"),
    ([f"v=BIMI1; l={LOGO_URL};"], f"{LOGO_URL}, no certificate"),
    (
        [f"v=BIMI1; l={LOGO_URL}; a=https://www.d.example/gone.pem;"],
        f"{LOGO_URL}, a certificate that could not be read",
    ),
    ([RECORD], f"{LOGO_URL}, VMC of Mark Issuer until 2027-09-17 (revocation is not checked)"),
)
def test_what_is_said_of_logos_and_authorities(texts: list[str], said: str) -> None:
    """The report names the logo with its certificate, and the CAA records."""
    records = {"good.example": {**GOOD["good.example"], "CAA": ['0 issue "ca.example"']}}
    zone = zone_with(records)
    zone.publish("default._bimi.good.example", "TXT", *texts)
    hosts = FakeHosts()
    hosts.logos[LOGO_URL] = FileFetch(FetchOutcome.FETCHED, GOOD_LOGO, "image/svg+xml")
    hosts.logos[CERTIFICATE_URL] = FileFetch(FetchOutcome.FETCHED, bundle())
    report = with_checks(zone, lambda checks: checks.domain.describe("good.example"), hosts)
    lines = plain(describe_domain(report))
    assert f"  BIMI     {said}" in lines
    assert '  CAA      0 issue "ca.example"' in lines


def test_exit_statuses_of_lists() -> None:
    """A listing that stops delivery is an error, and a lesser one a warning."""
    assert judge_blocklists(listings(zone_with({})), "warning") == 0
    listed = listings(zone_with({"10.4.8.8.zen.spamhaus.org": {"A": ["127.0.0.2"]}}))
    assert judge_blocklists(listed, "error") == 1
    lesser = listings(zone_with({"10.4.8.8.bl.blocklist.de": {"A": ["127.0.0.2"]}}))
    assert judge_blocklists(lesser, "error") == 0
    assert judge_blocklists(lesser, "warning") == 1


def test_exit_statuses_of_a_score() -> None:
    """A failed factor is an error, and too many undetermined factors result in no grade."""
    assert judge_reputation(reputation(zone_with({})), "warning") == 0
    no_dmarc = reputation(zone_with({"_dmarc.good.example": {}}))
    assert judge_reputation(no_dmarc, "error") == 1
    assert judge_reputation(no_dmarc, "never") == 0


def test_lists_that_refuse_are_explained() -> None:
    """If lists refuse the resolver, the text says so and which option to change."""
    refused = {"10.4.8.8.zen.spamhaus.org": {"A": ["127.255.255.254"]}}
    text = "\n".join(plain(describe_blocklists(listings(zone_with(refused)))))
    assert "refuse to answer the resolver" in text
    assert "[blocklists] resolvers" in text
    assert "unknown" in text


def test_why_lists_were_not_queried() -> None:
    """For an IPv6 address, a line says how many lists have no such addresses."""
    lines = plain(describe_blocklists(listings(zone_with({}), "2001:4860::10")))
    (line,) = [line for line in lines if "were queried" in line]
    assert line.endswith(" lists contain no IPv6 addresses")
    assert "were queried" not in "".join(plain(describe_blocklists(listings(zone_with({})))))


def test_fixes_are_shown_with_their_record() -> None:
    """A factor below its maximum shows the record to publish, and its gain."""
    found = reputation(zone_with({"_dmarc.good.example": {}}))
    text = "\n".join(plain(describe_reputation(found)))
    assert "80/100 A" in text
    assert "fix (+9 of 100 points)" in text
    assert "_dmarc.good.example  TXT  v=DMARC1" in text


def test_colours(monkeypatch: pytest.MonkeyPatch) -> None:
    """Output is coloured on a terminal unless the user disabled colours, and never in a file."""
    line = ("  ", Painted("good", GREEN), " to see")
    screen, calm, file = Screen(), Screen(), io.StringIO()
    screen.console().print_line(line)
    Console(Config(), file, file).print_line(line)
    monkeypatch.setenv("NO_COLOR", "1")
    calm.console().print_line(line)
    assert screen.read() == "  \x1b[32mgood\x1b[0m to see\n"
    assert file.getvalue() == calm.read() == "  good to see\n"


def test_lookups_are_counted() -> None:
    """The progress of a check is the number of DNS answers, failed ones included."""
    lookups = CountedLookups()
    resolver = lookups.watch(MemoryZone({}, silent=["slow.example"]))
    resolver.lookup(DnsQuestion("fast.example", "A"))
    slow = resolver.lookup(DnsQuestion("slow.example", "A"))
    assert lookups.describe() == "1 of 2 DNS answers"
    slow.addErrback(lambda _: None)
    slow.cancel()
    assert lookups.describe() == "2 of 2 DNS answers"


@rows("mx", "blacklist", "reputation", "domain")
def test_usage(command: str) -> None:
    """A missing name and an unknown option are usage errors."""
    assert run_command(command).status == 2
    assert run_command(command, "example.com", "--fail-on", "maybe").status == 2

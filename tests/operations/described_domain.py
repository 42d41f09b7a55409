"""The report of a domain, for tests of the advice in it."""

from twisted.internet.defer import Deferred, succeed
from twisted.internet.task import Clock

from mailcheck.checks.hosts.mta_sts import PolicyFetch
from mailcheck.core.domains.receiver_reports import NOWHERE, ReportPlaces
from mailcheck.operations.domains.describe_domain import DescribeDomain, DomainReport
from tests.fakes.clock_and_randomness import clock_and_randomness_of
from tests.fakes.fake_hosts import FakeHosts
from tests.fakes.memory_zone import MemoryZone
from tests.house import run


class NoPolicies(FakeHosts):
    """Fails every request: the zone announces no MTA-STS policy."""

    def fetch_policy(self, domain: str) -> Deferred[PolicyFetch]:
        """Fail."""
        raise AssertionError(domain)


def describe(
    zone: MemoryZone,
    offered: ReportPlaces = NOWHERE,
    hosts: FakeHosts | None = None,
    domain: str = "d.example",
    selectors: tuple[str, ...] = ("s1",),
) -> DomainReport:
    """Return the report of a domain. ``selectors`` are those of observed signatures."""
    describing = DescribeDomain(
        zone,
        hosts or NoPolicies(),
        lambda _: succeed(selectors),
        clock_and_randomness_of(Clock()),
        is_validating=False,
        allow_private=False,
    )
    report: DomainReport = run(describing.describe(domain, offered=offered))
    return report

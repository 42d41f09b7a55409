"""Fetching from real servers on this machine: over TLS, by name, and along redirects."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import pytest_twisted
from twisted.internet.task import deferLater
from zope.interface import implementer

from mailcheck.checks.dns_answers import Presence
from mailcheck.checks.hosts.mta_sts import FetchOutcome
from mailcheck.cluster.local import LocalMemory
from mailcheck.core.network_addresses import IpAddress
from mailcheck.daemon.wall_clock import of_the_system
from mailcheck.probes.fetching import FetchRequest, GuardedFetcher
from mailcheck.probes.guarded_dialer import FetchFailed, FetchProblem, GuardedDialer, ProbeReactor
from mailcheck.probes.published_files import MtaStsFetcher
from mailcheck.probes.rdap import RdapFinder, RegistryList
from mailcheck.probes.trust import find_trust_roots
from tests.fakes.memory_zone import MemoryZone
from tests.servers.certificates import Authority, Issued, self_signed
from tests.servers.rdap_server import RdapServer, Reply, domain_object, running_rdap_server
from tests.table import rows

AUTHORITY = Authority()
HOST = "rdap.registry.example"
GOOD = AUTHORITY.issue(HOST)
ZONE = {
    HOST: {"A": ["127.0.0.1"]},
    "other.registry.example": {"A": ["127.0.0.1"]},
    "mta-sts.example.com": {"A": ["127.0.0.1"]},
}


@implementer(ProbeReactor)
class Diverting:
    """The reactor, with connections to port 443 redirected to another port."""

    def __init__(self, reactor: Any, port: int) -> None:
        self._reactor = reactor
        self._port = port

    def connectTCP(self, host: str, port: int, *rest: Any, **options: Any) -> Any:
        """Connect to the test's server instead of the web server."""
        port = self._port if port == 443 else port
        return self._reactor.connectTCP(host, port, *rest, **options)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._reactor, name)


def is_address_of_others(_: IpAddress) -> bool:
    """Return false: every address belongs to another host."""
    return False


@pytest.fixture
def reactor() -> Iterator[Any]:
    """The reactor. One iteration after the test, aborted connections are closed."""
    from twisted.internet import reactor

    yield reactor
    pytest_twisted.blockon(deferLater(reactor, 0))


@pytest.fixture
def fetcher(reactor: Any, tmp_path: Path) -> GuardedFetcher:
    """A fetcher that may connect to this machine."""
    return make_fetcher(reactor, tmp_path)


def make_fetcher(reactor: Any, folder: Path) -> GuardedFetcher:
    """Return a fetcher that trusts the authority of the tests."""
    trust = find_trust_roots(AUTHORITY.write_to(folder / "ca.pem"))
    dialer = GuardedDialer(
        reactor, MemoryZone(ZONE), is_own_address=is_address_of_others, allow_private=True
    )
    return GuardedFetcher(reactor, dialer, trust)


@contextmanager
def serving(reply: Reply, issued: Issued | None = GOOD) -> Iterator[RdapServer]:
    """Serve one reply about ``a.com``."""
    with running_rdap_server({"a.com": reply}, host=HOST, issued=issued) as server:
        yield server


def request_to(server: RdapServer, redirects: int = 0) -> FetchRequest:
    """Return a request for ``a.com``."""
    url = server.base_url + "domain/a.com"
    return FetchRequest(url, "text/plain", 1_000_000, max_redirects=redirects)


async def problem_of(fetcher: GuardedFetcher, request: FetchRequest) -> FetchProblem:
    """Return the problem of a fetch."""
    with pytest.raises(FetchFailed) as caught:
        await fetcher.fetch(request)
    return caught.value.problem


async def test_a_host_with_a_valid_certificate_is_trusted(fetcher: GuardedFetcher) -> None:
    """Over TLS a body of many packets is read completely."""
    body = bytes(range(256)) * 2_000
    with serving(Reply(200, body)) as server:
        fetched = await fetcher.fetch(request_to(server))
        assert (fetched.status, fetched.body) == (200, body)
        assert server.requests[0]["host"] == f"{HOST}:{server.port}"


@rows(
    AUTHORITY.issue("other.registry.example"),
    AUTHORITY.issue("127.0.0.1"),
    AUTHORITY.issue(HOST, is_expired=True),
    self_signed(HOST),
    Authority("Somebody else").issue(HOST),
)
async def test_a_host_with_another_certificate_gets_no_request(
    fetcher: GuardedFetcher, issued: Issued
) -> None:
    """The connection goes to an address, but the certificate must be for the name."""
    with serving(Reply(), issued) as server:
        problem = await problem_of(fetcher, request_to(server))
        assert problem is FetchProblem.BAD_CERTIFICATE
        assert server.requests == []


async def test_a_server_without_tls(fetcher: GuardedFetcher) -> None:
    """An https request to a server without TLS fails."""
    with serving(Reply(), None) as server:
        url = f"https://{HOST}:{server.port}/"
        problem = await problem_of(fetcher, FetchRequest(url, "text/plain", 1_000))
        assert problem is FetchProblem.NO_CONNECTION


async def test_nobody_there(fetcher: GuardedFetcher) -> None:
    """A port without a listener refuses the connection."""
    with serving(Reply()) as server:
        request = request_to(server)
    assert await problem_of(fetcher, request) is FetchProblem.NO_CONNECTION


async def test_a_redirect_over_tls_is_checked_again(fetcher: GuardedFetcher) -> None:
    """The next host needs a separate certificate, and a redirect to http is not followed."""
    with serving(Reply(200, b"here")) as target:
        for location, problem in (
            (target.base_url + "domain/a.com", None),
            (f"https://other.registry.example:{target.port}/", FetchProblem.BAD_CERTIFICATE),
            (f"http://{HOST}:{target.port}/", FetchProblem.BAD_REDIRECT),
        ):
            with serving(Reply(302, b"", {"Location": location})) as server:
                request = request_to(server, redirects=3)
                if problem is None:
                    assert (await fetcher.fetch(request)).body == b"here"
                else:
                    assert await problem_of(fetcher, request) is problem


async def test_a_date_of_registration_over_the_net(fetcher: GuardedFetcher, reactor: Any) -> None:
    """A registration date is found from the list of registries, through a redirect."""
    answer = json.dumps(domain_object("a.com", "2001-02-03T04:05:06Z")).encode()
    with serving(Reply(200, answer)) as registrar:
        target = registrar.base_url + "domain/a.com"
        with serving(Reply(307, b"", {"Location": target})) as registry:
            registries = RegistryList(fetcher, reactor, registry.bootstrap_url)
            clock_and_randomness = of_the_system(reactor)
            finder = RdapFinder(fetcher, registries, LocalMemory(reactor), clock_and_randomness)
            verdict = await finder.find_registration("mail.a.com")
            absent = await finder.find_registration("b.com")
    assert (verdict.name, str(verdict.registration_date)) == ("a.com", "2001-02-03")
    assert absent.presence is Presence.ABSENT
    assert registry.asked == ["/domain/mail.a.com", "/domain/a.com", "/domain/b.com"]


async def test_a_policy_over_the_net(reactor: Any, tmp_path: Path) -> None:
    """A policy is fetched from the host of its name, whose certificate is checked."""
    path = "/.well-known/mta-sts.txt"
    policy = Reply(200, b"version: STSv1\n")
    for names, outcome in (
        (("mta-sts.example.com",), FetchOutcome.FETCHED),
        (("example.com",), FetchOutcome.BAD_CERTIFICATE),
    ):
        issued = AUTHORITY.issue(*names)
        with running_rdap_server({path: policy}, issued=issued) as server:
            diverting: Any = Diverting(reactor, server.port)
            fetcher = make_fetcher(diverting, tmp_path)
            fetch = await MtaStsFetcher(fetcher, reactor, LocalMemory(reactor)).fetch_policy(
                "example.com"
            )
        assert fetch.outcome is outcome
        assert server.asked == ([path] if outcome is FetchOutcome.FETCHED else [])

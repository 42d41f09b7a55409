"""BIMI records that try to lead the daemon inside, to fill its memory, or to reach a reader."""

import time
from typing import Any

import pytest
from twisted.internet.defer import Deferred

from mailcheck.checks.bimi.certificate import (
    MAX_CERTIFICATES,
    UnreadableCertificate,
    read_certificate,
)
from mailcheck.checks.bimi.evaluate import FileFetch
from mailcheck.checks.bimi.svg import MAX_READ, check_logo
from mailcheck.checks.hosts.mta_sts import FetchOutcome
from mailcheck.cluster.local import LocalMemory
from mailcheck.probes.fetching import GuardedFetcher
from mailcheck.probes.guarded_dialer import GuardedDialer
from mailcheck.probes.published_files import BimiFetcher
from mailcheck.probes.trust import TrustRoots, find_trust_roots
from tests.fakes.fake_hosts import FakeHosts
from tests.fakes.marks import GOOD_LOGO, ISSUER, Mark, logotype, pem, svg
from tests.fakes.memory_zone import MemoryZone
from tests.probes.scripted_hosts import ScriptedHosts, collect, no_own_address
from tests.servers.certificates import Authority
from tests.table import rows
from tests.web.checking import zone_with
from tests.web.dashboard.tools_visit import visit_tools

pytestmark = pytest.mark.attack

INSIDE = ["127.0.0.1", "10.0.0.1", "169.254.169.254", "::1", "fd00::1", "::ffff:10.0.0.1"]


@pytest.fixture(scope="module")
def trust(tmp_path_factory: pytest.TempPathFactory) -> TrustRoots:
    """The certificate authority of the tests."""
    return find_trust_roots(Authority().write_to(tmp_path_factory.mktemp("trust") / "ca.pem"))


@rows(*INSIDE)
def test_a_logo_inside_is_not_fetched(trust: TrustRoots, address: str) -> None:
    """A host with an address that is not public gets no packet."""
    hosts = ScriptedHosts()
    rdtype = "AAAA" if ":" in address else "A"
    zone = MemoryZone({"evil.example": {rdtype: [address]}})
    dialer = GuardedDialer(hosts, zone, is_own_address=no_own_address, allow_private=False)
    fetcher = BimiFetcher(GuardedFetcher(hosts, dialer, trust), hosts, LocalMemory(hosts))
    for fetch in (fetcher.fetch_logo, fetcher.fetch_certificate):
        asked: Deferred[Any] = fetch("https://evil.example/logo.svg")
        assert collect(asked) == [FileFetch(FetchOutcome.MISSING)]
    assert hosts.tcpClients == []


@rows(
    svg("<g/>" * 15_000),
    svg("<path " + " ".join(f"a{n}='u'" for n in range(6_000)) + "/>"),
    svg('<path fill="' + "url(" * 15_000 + '"/>'),
    svg('<path fill="url( ' + " " * 60_000 + '"/>'),
    svg(box=' viewBox="' + "1" * 60_000 + '"'),
    svg(title="<title>" + "&#65;" * 10_000 + "</title>"),
    svg("<g>" * 199 + "x" * 60_000 + "</g>" * 199),
    b"<" * MAX_READ,
    b"<!--" + b"-" * MAX_READ,
)
def test_the_worst_logo_costs_little(octets: bytes) -> None:
    """Any file up to the limit is checked in a fraction of a second."""
    began = time.process_time()
    check_logo(octets, "https://d.example/logo.svg")
    assert time.process_time() - began < 0.5


def test_the_worst_certificates_cost_little() -> None:
    """A file of many certificates with one name is followed in a fraction of a second."""
    marks = [Mark(signer="Shop", extension=logotype(b" " * 100_000)).build()]
    issuers = [ISSUER] * (MAX_CERTIFICATES - 1)
    began = time.process_time()
    read_certificate(pem(*marks, *issuers))
    with pytest.raises(UnreadableCertificate):
        read_certificate(b"-----BEGIN CERTIFICATE-----" * 4_000)
    assert time.process_time() - began < 0.5


def page_with(logo: bytes) -> str:
    """Return the page of a domain that publishes a logo."""
    url = "https://good.example/logo.svg"
    zone = zone_with({"default._bimi.good.example": {"TXT": [f"v=BIMI1; l={url};"]}})
    hosts = FakeHosts()
    hosts.logos[url] = FileFetch(FetchOutcome.FETCHED, logo, "image/svg+xml")
    browser = visit_tools(zone, hosts=hosts)
    reply = browser.open("/domains/good.example/checks?whole=true")
    assert "img-src 'self' data:" in reply.headers["content-security-policy"]
    return reply.body.decode()


def test_a_logo_is_shown_as_a_picture_only() -> None:
    """A good logo is an img with a data: URL, and its markup is not part of the page."""
    body = page_with(GOOD_LOGO)
    assert '<img class="logo" src="data:image/svg+xml;base64,' in body
    assert GOOD_LOGO.decode() not in body


@rows(
    svg("<script>alert(1)</script>"),
    svg('<image href="https://spy.example/pixel.png"/>'),
    svg("<style>*{fill:url(https://spy.example/)}</style>"),
    svg('<a href="https://phish.example/"><path/></a>'),
    b"<html><script>alert(1)</script></html>",
)
def test_a_harmful_logo_is_not_shown(logo: bytes) -> None:
    """A file that does not pass is described, and never sent to the reader."""
    body = page_with(logo)
    assert "The logo is not shown" in body
    assert "data:image/svg" not in body


def test_titles_and_names_of_strangers_are_text() -> None:
    """The title of a logo cannot contain markup of the page."""
    body = page_with(svg(title="<title>&lt;b onload=&quot;x&quot;>\"'</title>"))
    assert "<b onload" not in body
    assert "&lt;b onload" in body

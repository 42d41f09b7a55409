"""Domain registrations (RDAP): registries, queried names, and the meaning of responses."""

import json
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from twisted.internet.defer import CancelledError
from twisted.internet.task import Clock
from twisted.logger import capturedLogs

from mailcheck.checks.dns_answers import Presence
from mailcheck.checks.hosts.registration import RegistrationVerdict
from mailcheck.cluster.local import LocalMemory
from mailcheck.probes.fetching import Fetched
from mailcheck.probes.guarded_dialer import FetchProblem
from mailcheck.probes.rdap import (
    IANA_URL,
    RdapFinder,
    Registry,
    RegistryList,
    bundled_bootstrap,
    read_bootstrap,
)
from tests.fakes.clock_and_randomness import clock_and_randomness_of
from tests.fakes.scripted_fetcher import Page, ScriptedFetcher
from tests.probes.scripted_hosts import collect
from tests.servers.rdap_server import domain_object
from tests.table import rows

LIST_URL = "https://list.example/dns.json"
BASE = "https://rdap.example/"
LIST = {
    "version": "1.0",
    "services": [
        [["com", "net"], ["http://old.example/", BASE]],
        [["uk"], ["https://uk.example/rdap"]],
        [["co.uk"], ["http://co.uk.example/"]],
    ],
}
DAY = 86_400


def registered(name: str, when: str = "2001-02-03T04:05:06Z") -> bytes:
    """Return the response for a registered name."""
    return json.dumps(domain_object(name, when)).encode()


class Finding:
    """A finder of registrations, and the web server it queries."""

    def __init__(self, pages: dict[str, Page], source: str = LIST_URL) -> None:
        self.clock = Clock()
        self.clock.advance(1_795_262_400)  # 2026-11-21T12:00:00Z
        self.web = ScriptedFetcher({LIST_URL: json.dumps(LIST).encode(), **pages})
        web: Any = self.web
        self.registries = RegistryList(web, self.clock, source)
        memory, clock_and_randomness = LocalMemory(self.clock), clock_and_randomness_of(self.clock)
        self.finder = RdapFinder(web, self.registries, memory, clock_and_randomness)

    def begin(self, domain: str) -> list[Any]:
        """Return a list that will contain the verdict."""
        return collect(self.finder.find_registration(domain))

    def find(self, domain: str) -> RegistrationVerdict:
        """Return the verdict."""
        (verdict,) = self.begin(domain)
        assert isinstance(verdict, RegistrationVerdict), verdict
        return verdict

    @property
    def names_asked(self) -> list[str]:
        """Names that registries were asked for, in order."""
        return [url for url in self.web.asked if url != self.web.requests[0].url]


def said(verdict: RegistrationVerdict) -> str:
    """Return the reason of a verdict without a date."""
    assert verdict.presence is Presence.UNDETERMINED
    assert verdict.age_days is None
    return verdict.findings[0].meaning.removeprefix("Could not be determined: ")


def test_a_registered_domain_has_a_date() -> None:
    """The registry of the suffix is queried over https, and its date is the verdict."""
    finding = Finding({BASE + "domain/example.com": registered("example.com")})
    verdict = finding.find("example.com")
    assert (verdict.name, verdict.presence) == ("example.com", Presence.FOUND)
    assert str(verdict.registration_date) == "2001-02-03"
    assert finding.names_asked == [BASE + "domain/example.com"]
    (_, request) = finding.web.requests
    assert request.accept.startswith("application/rdap+json")
    assert request.max_redirects == 3


def test_a_name_below_a_registered_one_is_walked_up() -> None:
    """The name itself is queried first, then its parents, until one is registered."""
    finding = Finding({BASE + "domain/example.com": registered("example.com")})
    assert finding.find("a.mail.example.com").name == "example.com"
    assert finding.names_asked == [
        BASE + "domain/a.mail.example.com",
        BASE + "domain/mail.example.com",
        BASE + "domain/example.com",
    ]


def test_the_longest_suffix_has_the_registry() -> None:
    """The registry of the longest matching suffix is queried."""
    finding = Finding({"http://co.uk.example/domain/a.co.uk": registered("a.co.uk")})
    assert finding.find("www.a.co.uk").name == "a.co.uk"
    assert finding.names_asked == [
        "http://co.uk.example/domain/www.a.co.uk",
        "http://co.uk.example/domain/a.co.uk",
    ]


def test_a_deep_name_costs_four_questions() -> None:
    """A registry is queried for at most the four highest names of a deep one."""
    finding = Finding({})
    finding.find("h.g.f.e.d.c.b.a.org.uk")
    assert finding.names_asked == [
        f"https://uk.example/rdap/domain/{name}"
        for name in ("c.b.a.org.uk", "b.a.org.uk", "a.org.uk", "org.uk")
    ]


@rows(404, 400, 422)
def test_an_unknown_name_is_not_registered(status: int) -> None:
    """Status 404 means not registered; a rejected query is undetermined."""
    finding = Finding({BASE + "domain/www.example.com": Fetched(status)})
    verdict = finding.find("www.example.com")
    assert (verdict.name, verdict.presence) == ("www.example.com", Presence.ABSENT)
    only = Finding({BASE + "domain/example.com": Fetched(status)}).find("example.com")
    assert (only.presence is Presence.ABSENT) == (status == 404)


@rows(
    *(Fetched(status) for status in (201, 301, 401, 403, 500, 503)),
    *FetchProblem,
)
def test_no_answer_is_not_no_registration(page: Page) -> None:
    """Each failure on the way to the registry makes the age undetermined."""
    finding = Finding({BASE + "domain/example.com": page})
    reason = "the registry did not answer."
    if isinstance(page, Fetched):
        reason = f"the registry answered with status {page.status}."
    assert said(finding.find("example.com")) == reason


def test_a_failure_on_the_way_up_is_not_hidden() -> None:
    """If one name is unknown and the query for its parent fails, the result is undetermined."""
    finding = Finding({BASE + "domain/example.com": FetchProblem.SILENT})
    assert said(finding.find("www.example.com")) == "the registry did not answer."


@rows(
    b"",
    b"<html>",
    b"\xff\xfe\xfa",
    b"[" * 200_000,
    b'{"a":' * 200_000,
    b"[" + b"1" * 100_000 + b"]",
    b'{"events": 5}',
    b"null",
    b"NaN",
    b"[]",
    b'{"events": [{"eventAction": "registration", "eventDate": "soon"}]}',
)
def test_nonsense_has_no_date(body: bytes) -> None:
    """Any invalid document makes the result undetermined."""
    said(Finding({BASE + "domain/example.com": body}).find("example.com"))


@given(
    st.recursive(
        st.none() | st.booleans() | st.floats() | st.text(max_size=5),
        lambda inner: (
            st.lists(inner, max_size=4)
            | st.dictionaries(
                st.sampled_from(["services", "events", "eventDate", "eventAction"]), inner
            )
        ),
        max_leaves=12,
    )
)
def test_any_json_can_be_read(document: Any) -> None:
    """Any JSON as a response, or as the list of registries, results in a verdict."""
    body = json.dumps(document).encode()
    finding = Finding({BASE + "domain/example.com": body})
    assert finding.find("example.com").presence is Presence.UNDETERMINED
    with capturedLogs():
        assert Finding({LIST_URL: body}).find("example.com").presence is not Presence.FOUND


def test_who_is_asked_to_wait_waits() -> None:
    """After a 429 the registry is not queried for as long as it asks, for all of its names."""
    pages: dict[str, Page] = {BASE + "domain/a.com": Fetched(429, retry_after=120)}
    finding = Finding(pages)
    assert "limits the rate" in said(finding.find("a.com"))
    assert "limits the rate" in said(finding.find("b.net"))
    assert len(finding.names_asked) == 1
    finding.clock.advance(119)
    finding.find("c.com")
    assert len(finding.names_asked) == 1
    finding.clock.advance(1)
    assert finding.find("c.com").presence is Presence.ABSENT


@rows((None, 60), (0, 60), (10**9, 3_600))
def test_a_wait_is_neither_nothing_nor_endless(wait: int | None, seconds: int) -> None:
    """The pause is a minute by default, and an hour at most."""
    finding = Finding({BASE + "domain/a.com": Fetched(429, retry_after=wait)})
    finding.find("a.com")
    finding.clock.advance(seconds - 1)
    said(finding.find("b.com"))
    finding.clock.advance(1)
    assert finding.find("b.com").presence is Presence.ABSENT


def test_facts_are_remembered_for_an_hour() -> None:
    """A fact is cached for an hour; an undetermined result is retried."""
    finding = Finding({BASE + "domain/a.com": registered("a.com")})
    for _ in range(2):
        finding.find("a.com")
        finding.find("b.com")
    assert len(finding.names_asked) == 2
    finding.web.pages[BASE + "domain/c.com"] = FetchProblem.SILENT
    said(finding.find("c.com"))
    finding.web.pages[BASE + "domain/c.com"] = registered("c.com")
    assert finding.find("c.com").presence is Presence.FOUND
    finding.clock.advance(3_601)
    finding.find("a.com")
    assert finding.names_asked.count(BASE + "domain/a.com") == 2


def test_simultaneous_searches_are_one() -> None:
    """Callers at the same time share the queries, and one that leaves does not stop them."""
    finding = Finding({BASE + "domain/a.com": registered("a.com")})
    finding.web.slow.add(BASE + "domain/a.com")
    leaving = finding.finder.find_registration("a.com")
    left = collect(leaving)
    staying = finding.begin("a.com")
    leaving.cancel()
    assert left[0].check(CancelledError)
    finding.web.answer()
    assert staying[0].presence is Presence.FOUND
    assert len(finding.names_asked) == 1


def test_all_questions_share_one_deadline() -> None:
    """All queries of a search share one deadline."""
    finding = Finding({})
    finding.web.slow.add(BASE + "domain/www.a.com")
    finding.begin("www.a.com")
    finding.clock.advance(6)
    finding.web.answer()
    assert [request.seconds for request in finding.web.requests[1:]] == [9.0, 3.0]


@rows("example.de", "example.unknown", "uk", "co.uk")
def test_without_a_registry_nothing_is_known(domain: str) -> None:
    """A suffix without RDAP, and a suffix itself, are undetermined without a query."""
    finding = Finding({})
    assert domain.rpartition(".")[2] in said(finding.find(domain))
    assert finding.names_asked == []


def test_the_list_is_loaded_once_a_day() -> None:
    """It is loaded when it is first needed, and again after a day; the old one serves meanwhile."""
    finding = Finding({})
    finding.find("a.com")
    finding.clock.advance(DAY - 1)
    finding.find("b.com")
    assert finding.web.asked.count(LIST_URL) == 1
    finding.clock.advance(1)
    finding.web.slow.add(LIST_URL)
    assert finding.find("c.com").presence is Presence.ABSENT
    assert finding.web.asked.count(LIST_URL) == 2
    finding.web.pages[LIST_URL] = json.dumps({"services": [[["org"], [BASE]]]}).encode()
    finding.web.answer()
    said(finding.find("d.com"))
    assert finding.find("d.org").presence is Presence.ABSENT
    assert finding.web.asked.count(LIST_URL) == 2


@rows(FetchProblem.SILENT, Fetched(500), b"<html>", b"{}", b"[" * 9999)
def test_a_list_that_can_not_be_loaded(page: Page) -> None:
    """A failure to load is reported, logged, and retried after ten minutes."""
    finding = Finding({LIST_URL: page})
    with capturedLogs() as events:
        assert said(finding.find("a.com")) == "the list of registries cannot be loaded."
        said(finding.find("b.com"))
    assert len(events) == 1
    assert (page == Fetched(500)) == ("500" in str(events[0]["failure"]))
    assert len(finding.web.asked) == 1
    finding.web.pages[LIST_URL] = json.dumps(LIST).encode()
    finding.clock.advance(601)
    assert finding.find("a.com").presence is Presence.ABSENT


def test_a_list_that_fails_once_keeps_serving() -> None:
    """A failed refresh keeps the old list."""
    finding = Finding({})
    finding.find("a.com")
    finding.clock.advance(DAY)
    finding.web.pages[LIST_URL] = Fetched(500)
    with capturedLogs():
        assert finding.find("b.com").presence is Presence.ABSENT


def test_the_shipped_list_bridges_the_start() -> None:
    """IANA's list is loaded in the background; only suffixes missing in the package wait for it."""
    verisign = "https://rdap.verisign.com/com/v1/domain/a.com"
    finding = Finding({verisign: registered("a.com")}, IANA_URL)
    finding.web.slow.add(IANA_URL)
    assert finding.find("a.com").presence is Presence.FOUND
    waiting = finding.begin("a.example")
    assert waiting == []
    finding.web.pages[IANA_URL] = json.dumps({"services": [[["example"], [BASE]]]}).encode()
    finding.web.answer()
    assert waiting[0].presence is Presence.ABSENT
    assert finding.web.asked.count(IANA_URL) == 1


def test_stopping_ends_the_searches() -> None:
    """Callers get a failure, and no connection stays open."""
    finding = Finding({}, IANA_URL)
    finding.web.slow |= {IANA_URL, "https://rdap.verisign.com/com/v1/domain/a.com"}
    waiting = finding.begin("a.com")
    finding.finder.stop()
    assert waiting[0].check(CancelledError)


def test_the_list_may_be_a_file(tmp_path: Path) -> None:
    """A path instead of a URL is read as a file."""
    path = tmp_path / "dns.json"
    finding = Finding({}, str(path))
    with capturedLogs():
        assert said(finding.find("a.com")) == "the list of registries cannot be loaded."
    path.write_text(json.dumps(LIST))
    finding.clock.advance(601)
    assert finding.find("a.com").presence is Presence.ABSENT


def test_the_shipped_list_is_a_true_part_of_ianas() -> None:
    """It has each suffix once, only https, and the largest registries."""
    shipped = bundled_bootstrap()
    assert shipped.find("mail.example.com") == Registry("com", "https://rdap.verisign.com/com/v1/")
    assert shipped.find("example.co.uk") == Registry("uk", "https://rdap.nominet.uk/uk/")
    assert shipped.find("example.de") is None
    assert all(url.startswith("https://") for url in shipped.base_urls.values())
    path = Path(__file__).parents[2] / "mailcheck" / "probes" / "rdap_bootstrap.json"
    document = json.loads(path.read_text())
    suffixes = [suffix for service in document["services"] for suffix in service[0]]
    assert len(suffixes) == len(set(suffixes)) == len(shipped.base_urls)


@rows(
    [[["com"], ["ftp://a.example/"]], [["net"], [BASE]]],
    [[["com"], []], [["net"], [BASE]]],
    [[[], [BASE]], [["net"], [BASE]]],
    [["com", BASE], [["net", 5, None], [None, BASE]]],
    [None, {}, [["net"]], [["net"], [BASE], "more"]],
    [[["NET."], [BASE.removesuffix("/")]]],
)
def test_odd_entries_of_the_list_do_no_harm(services: Any) -> None:
    """Invalid entries are ignored, and the others are used."""
    bootstrap = read_bootstrap(json.dumps({"services": services}).encode())
    assert bootstrap.find("a.net") == Registry("net", BASE)
    assert bootstrap.find("a.com") is None

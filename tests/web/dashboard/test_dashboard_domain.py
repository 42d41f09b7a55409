"""The page of domain checks: score, factors, fixes and all results."""

import re
from html import unescape
from urllib.parse import urlencode

import pytest
from markupsafe import escape

from mailcheck.checks.dns_answers import DnsStatus
from mailcheck.checks.quality.topics import topic_of
from mailcheck.checks.scoring.outcomes import FactorName
from mailcheck.config.options import InboxOptions, LimitsOptions
from mailcheck.web.dashboard.domains.view import MECHANISMS
from tests.fakes.memory_zone import MemoryZone
from tests.web.checking import GOOD, zone_with
from tests.web.dashboard.browser import Browser
from tests.web.dashboard.tools_visit import MARKUP, visit_tools

CHECK = "/domain?domain=good.example"
WHOLE = f"{CHECK}&whole=true"

POOR = {
    "poor.example": {"MX": ["10 mx1.good.example."], "TXT": ["v=spf1 include:a.poor.example ?all"]},
    "a.poor.example": {"TXT": ["v=spf1 ip4:192.0.2.0/24 -all"]},
    "_dmarc.poor.example": {"TXT": ["v=DMARC1; p=none"]},
}


def words(browser: Browser) -> str:
    """Return the text of the page in one line."""
    return " ".join(browser.page.text.split())


def copied(body: bytes) -> set[str]:
    """Return all texts of a page that have a button to copy them."""
    text = body.decode()
    ids = re.findall(r'data-copy="([^"]+)"', text)
    found = [re.search(rf'id="{re.escape(one)}"[^>]*>(.*?)</', text, re.DOTALL) for one in ids]
    assert None not in found, "a button without a text to copy"
    return {unescape(one[1]) for one in found if one is not None}


def test_the_page_alone_starts_no_check() -> None:
    """The page alone starts no check; a script or a refresh loads the result."""
    zone = zone_with({})
    browser = visit_tools(zone)
    body = browser.open(CHECK).body.decode()
    assert zone.asked == []
    whole = WHOLE.replace("&", "&amp;")
    assert f'data-fill="{whole}"' in body
    assert f'<noscript><meta http-equiv="refresh" content="0;url={whole}"></noscript>' in body


def test_a_good_domain() -> None:
    """A good domain has all points, and no record to publish."""
    browser = visit_tools(zone_with({}))
    body = browser.open(WHOLE).body.decode()
    assert 'aria-label="Score 100 of 100, grade A+"' in body
    assert "All factors have full points." in words(browser)
    assert "20 of 20" in words(browser)
    assert "On none of the 32 lists that answered." in words(browser)
    assert "10mx1.good.example8.8.4.10, 2001:4860::10" in words(browser)
    assert "Verified: the fix" not in words(browser)


def test_issues_without_points_are_mentioned() -> None:
    """If all factors have full points, the page still mentions other issues.

    MTA-STS has no points, and its record is invalid here.
    """
    zone = zone_with({"_mta-sts.good.example": {"TXT": ["v=STSv1; nonsense"]}})
    browser = visit_tools(zone)
    browser.open(WHOLE)
    assert "All factors have full points. 1 issue below takes no points off." in words(browser)


def test_what_to_publish_can_be_copied() -> None:
    """Each record to publish can be copied, and its verified gain is shown."""
    browser = visit_tools(zone_with(POOR), inbox=InboxOptions(domain="in.example.net"))
    answer = browser.open("/domain?domain=Poor.Example.&whole=true")
    found = copied(answer.body)
    assert {"_dmarc.poor.example", "TXT"} <= found
    (value,) = {one for one in found if one.startswith("v=DMARC1; p=none")}
    assert value.startswith("v=DMARC1; p=none; rua=mailto:dmarc-")
    assert "poor.example._report._dmarc.in.example.net TXT v=DMARC1;" in words(browser)
    assert "Verified: the fix changes the score from 68 → 71" in words(browser)
    assert "9 of 20" in words(browser)


def test_the_gain_above_the_issues_is_their_sum() -> None:
    """The total gain is the sum of the gains in the rows."""
    browser = visit_tools(zone_with(POOR))
    answer = browser.open("/domain?domain=poor.example&whole=true")
    rows = re.findall(r'class="points plus">\+(\d+)<', answer.body.decode())
    assert len(rows) > 2
    assert f"You can gain {sum(map(int, rows))} points" in words(browser)


def test_all_results() -> None:
    """The page shows the SPF tree with its lookups, the keys, and mechanisms without points."""
    browser = visit_tools(zone_with(POOR))
    browser.open("/domain?domain=poor.example&whole=true")
    for text in (
        "a.poor.example by include:a.poor.example",
        "v=spf1 ip4:192.0.2.0/24 -all",
        "1 of 10 DNS lookups, 0 of 2 void lookups.",
        "MTA-STS: mandatory encryption absent",
        "DNSSEC: signed DNS answers could not be determined",
        "Tried selectors (",
    ):
        assert text in words(browser)


def test_what_could_not_be_determined() -> None:
    """A name server that does not answer makes a factor unknown, neither missing nor failed."""
    failing = {"_dmarc.good.example": DnsStatus.TIMEOUT}
    browser = visit_tools(zone_with({}, failing=failing))
    body = browser.open(WHOLE).body.decode()
    dmarc = body[body.index("<h3>DMARC</h3>") : body.index("<h3>MX</h3>")]
    assert '<span class="badge unknown">unknown</span>' in dmarc
    for level in ("good", "warn", "bad"):
        assert f'"badge {level}"' not in dmarc
    assert "Could not be determined and counts half: DMARC." in words(browser)
    assert "DMARC: policy for forged mail could not be determined" in words(browser)
    assert "Everything that could be checked passes." in words(browser)


def test_too_few_results_for_a_grade() -> None:
    """Without DNS the score is missing."""
    failing: dict[str | tuple[str, str], DnsStatus] = dict.fromkeys(GOOD, DnsStatus.SERVFAIL)
    browser = visit_tools(MemoryZone(GOOD, failing=failing))
    body = browser.open(WHOLE).body.decode()
    assert 'aria-label="No score"' in body
    assert "Too many results could not be determined for a grade" in words(browser)
    assert 'class="letter' not in body


@pytest.mark.parametrize(
    ("query", "problem"),
    [
        ("domain=https://8.8.8.8/", "is an IP address; send a domain name"),
        (f"domain={MARKUP.replace('&', '%26')}", "Domain"),
        ("domain=good.example&selectors=a._domainkey.x", "is the name of a DNS record"),
        ("domain=good.example&ips=10.0.0.1", "is private: blocklists know public addresses"),
        (
            "domain=good.example&ips=8.8.8.1,8.8.8.2,8.8.8.3,8.8.8.4,8.8.8.5",
            "4 sending addresses are allowed",
        ),
    ],
)
def test_what_can_not_be_checked(query: str, problem: str) -> None:
    """Invalid input is explained beside the form, which keeps what was entered."""
    zone = zone_with({})
    browser = visit_tools(zone)
    answer = browser.open(f"/domain?{query}")
    assert answer.status == 400
    assert 'id="problem"' in answer.body.decode()
    assert problem in answer.body.decode()
    assert "<script>alert" not in answer.body.decode()
    assert zone.asked == []


def test_selectors_and_addresses() -> None:
    """Selectors and sending addresses may be separated by any separator."""
    zone = zone_with({"own._domainkey.good.example": GOOD["default._domainkey.good.example"]})
    browser = visit_tools(zone)
    browser.open(f"{WHOLE}&selectors=own,+Other&ips=8.8.8.8")
    assert "found 2 keys Selectorown" in words(browser)
    asked = {question.name for question in zone.asked}
    assert {"other._domainkey.good.example", "8.8.8.8.in-addr.arpa"} <= asked


@pytest.mark.parametrize(
    ("typed", "kind"),
    [
        ("http://good.example/x?y=1", "a URL"),
        ("https://ann:secret@Good.Example:8443/x", "a URL"),
        ("good.example/x", "a URL"),
        ("ann@good.example", "a mail address"),
        ("Ann <ann@good.example>", "a mail address"),
        ("mailto:ann@good.example?subject=x", "a mail address"),
    ],
)
def test_a_url_or_a_mail_address_names_its_domain(typed: str, kind: str) -> None:
    """A URL or a mail address is checked by its domain, and the page says so."""
    browser = visit_tools(zone_with({}))
    answer = browser.open(f"/domain?{urlencode({'domain': typed})}&whole=true")
    assert f"{typed} is {kind}. Its domain good.example is checked." in words(browser)
    assert 'aria-label="Score 100 of 100' in answer.body.decode()
    assert 'id="check-link" href="/domain?domain=good.example"' in answer.body.decode().replace(
        "Good.Example", "good.example"
    )


def test_score_and_sections_are_of_the_same_records() -> None:
    """A cached score is computed again if DNS has changed, so that score and records agree."""
    zone = zone_with({})
    browser = visit_tools(zone)
    browser.open(WHOLE)
    zone.publish("good.example", "TXT")
    browser.house.pass_time(400)  # cached answers expire
    browser.open(WHOLE)
    assert "Cached result of" not in words(browser)
    assert "No record found." in words(browser)
    assert "0 of 15" in words(browser)


def test_the_mail_route() -> None:
    """Mail hosts are listed in the order in which senders try them, with their results."""
    hosts = {
        "good.example": {**GOOD["good.example"], "MX": ["10 mx1.good.example.", "20 no.example."]}
    }
    browser = visit_tools(zone_with(hosts))
    body = browser.open(WHOLE).body.decode()
    drawn = body[body.index('id="way-title"') : body.index('id="spf-title"')]
    assert drawn.index("mx1.good.example") < drawn.index("no.example")
    assert 'class="good"' in drawn
    assert '<li class="bad">' in drawn
    assert "has no address" in drawn


def test_a_result_is_cached() -> None:
    """A second check says that its result is cached, with a link that checks again."""
    browser = visit_tools(zone_with({}))
    browser.open(WHOLE)
    body = browser.open(WHOLE).body.decode()
    assert "Cached result of" in body
    assert 'href="/domain?domain=good.example&amp;refresh=true"' in body
    assert "refresh=true" in browser.open(f"{CHECK}&refresh=true").body.decode()
    assert "Cached result of" not in browser.open(f"{WHOLE}&refresh=true").body.decode()


def test_markup_in_records_is_escaped() -> None:
    """Markup in DNS records is escaped."""
    hostile: dict[str, dict[str, list[str]]] = {
        "good.example": {
            "TXT": [f"v=spf1 include:{MARKUP} -all"],
            "MX": ["10 mx1.good.example."],
        },
        "_dmarc.good.example": {"TXT": [f"v=DMARC1; p=none; rua=mailto:{MARKUP}"]},
        "default._domainkey.good.example": {"TXT": [f"v=DKIM1; k={MARKUP}; p=AAAA"]},
        "_mta-sts.good.example": {"TXT": [f"v=STSv1; id={MARKUP}"]},
        "_smtp._tls.good.example": {"TXT": [f"v=TLSRPTv1; rua=mailto:{MARKUP}"]},
    }
    browser = visit_tools(zone_with(hostile))
    answer = browser.open(WHOLE)
    assert answer.status == 200
    assert "<script>alert" not in answer.body.decode()
    assert "<script>alert(1)" in words(browser)


def test_checks_are_limited() -> None:
    """An account has as many checks as a key has requests; the page alone is free."""
    limits = LimitsOptions(requests_per_minute=2)
    browser = visit_tools(zone_with({}), limits=limits)
    for _ in range(5):
        assert browser.open(CHECK).status == 200
    for _ in range(2):
        assert browser.open(WHOLE).status == 200
    refused = browser.open(WHOLE)
    assert (refused.status, refused.headers["retry-after"]) == (429, "60")
    assert "limit of 2 checks per minute on the pages" in words(browser)
    assert "Try again in 60 seconds" in words(browser)
    other = Browser(browser.house, "192.0.2.77")
    other.sign_up("bob")
    assert other.open(WHOLE).status == 200


def test_the_usage_of_checks() -> None:
    """The checks of this minute and day are shown with both limits, separately from API keys."""
    browser = visit_tools(zone_with({}), limits=LimitsOptions(requests_per_day=2_000))
    browser.open("/keys")
    assert "0 of 2,000 checks today" in words(browser)
    browser.submit("/keys", name="CI")
    for _ in range(3):
        browser.open(WHOLE)
    for _ in range(2):
        body = browser.open("/keys").body.decode()
        assert "3 of 2,000 checks today" in words(browser)
        assert "3 of 60 checks this minute" in words(browser)
        assert "0 of 2,000 today" in words(browser)
    assert '<progress max="60" value="3" aria-label="Checks this minute">' in body
    assert '<progress max="60" value="0" aria-label="Requests this minute">' in body
    other = Browser(browser.house, "192.0.2.77")
    other.sign_up("bob")
    other.open("/keys")
    assert "0 of 2,000 checks today" in words(other)
    browser.house.pass_time(60)
    browser.open("/keys")
    assert "3 of 2,000 checks today" in words(browser)
    assert "0 of 60 checks this minute" in words(browser)


@pytest.mark.parametrize("path", ["/domain", "/blocklists", "/tests", "/tests/aaaaaaaaaaaaa"])
def test_checks_require_an_account(path: str) -> None:
    """Visitors without a session are redirected to sign in, and back afterwards."""
    browser = visit_tools(zone_with({}))
    stranger = Browser(browser.house, "192.0.2.99")
    answer = stranger.open(path)
    assert answer.status == 303
    assert answer.headers["location"].startswith("/sign-in?next=%2F")


def test_each_topic_says_why_it_matters_and_where_to_read_on() -> None:
    """Each factor and mechanism explains why it matters, with links."""
    browser = visit_tools(zone_with({}))
    body = browser.open(WHOLE).body.decode()
    for name in (*MECHANISMS, *(one.value for one in FactorName)):
        topic = topic_of(name)
        assert str(escape(topic.why)) in body
        assert all(f'href="{escape(link.url)}"' in body for link in topic.links)
    assert "Blacklist" not in body

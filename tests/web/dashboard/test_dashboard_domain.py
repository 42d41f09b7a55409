"""The table of domains, and the page of one: score, factors, fixes and all results."""

import re
from html import unescape
from urllib.parse import urlencode

from markupsafe import escape

from mailcheck.checks.dns_answers import DnsStatus
from mailcheck.checks.quality.topics import topic_of
from mailcheck.checks.scoring.outcomes import FactorName
from mailcheck.config.options import InboxOptions, LimitsOptions
from mailcheck.core.domains.watches import WatchSettings
from mailcheck.web.dashboard.domains.pages import PER_PAGE
from mailcheck.web.dashboard.domains.view import MECHANISMS
from tests.fakes.memory_zone import MemoryZone
from tests.house import run
from tests.table import rows
from tests.web.checking import GOOD, zone_with
from tests.web.dashboard.browser import Browser
from tests.web.dashboard.tools_visit import MARKUP, visit_tools

CHECK = "/p/me/domains/good.example"
WHOLE = f"{CHECK}?whole=true"
RESULTS = f"{CHECK}/checks?whole=true"
LIVE = f"{CHECK}/live"

MAX_PAGE = 80_000
"""Bytes of a page before compression."""

POOR = {
    "poor.example": {"MX": ["10 mx1.good.example."], "TXT": ["v=spf1 include:a.poor.example ?all"]},
    "a.poor.example": {"TXT": ["v=spf1 ip4:192.0.2.0/24 -all"]},
    "_dmarc.poor.example": {"TXT": ["v=DMARC1; p=none"]},
}


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
    assert f'data-check-live="{LIVE}?view=fix"' in body
    assert f'<noscript><meta http-equiv="refresh" content="0;url={WHOLE}"></noscript>' in body
    table = browser.open("/domains?check=Good.Example.").body.decode()
    assert zone.asked == []
    assert f'data-check-live="{LIVE}?view=row"' in table
    assert table.count(": checking</span>") == len(FactorName)


def test_each_factor_is_sent_when_it_is_determined() -> None:
    """Factors are sent as they are determined; the row, or the tab, follows at the end."""
    zone = zone_with({}, silent=["good.example.dbl.spamhaus.org"])
    browser = visit_tools(zone)
    stream = browser.stream(f"{LIVE}?view=row")
    browser.house.pass_time(0.1)
    first = {one["name"] for one in stream.named("factor")}
    assert {"SPF", "DKIM", "DMARC", "MX-Records", "STARTTLS", "Domain-Age"} <= first
    assert "Blacklists" not in first
    assert stream.named("done") == []
    for _ in range(3):
        browser.house.pass_time(5)
    assert "Blacklists" in {one["name"] for one in stream.named("factor")}
    (done,) = stream.named("done")
    assert done["html"].lstrip().startswith("<tr")
    assert "Grade </span>A+" in done["html"]
    assert 'aria-checked="false"' in done["html"]
    assert stream.has_ended
    (done,) = browser.stream(f"{LIVE}?view=fix").named("done")
    assert 'aria-label="Score 100 of 100, grade A+"' in done["html"]
    assert browser.open(f"{LIVE}?view=all").status == 400


def test_a_row_without_a_check_says_when_to_try_again() -> None:
    """Beyond the limit the row shows no pending marks, and when the next check is possible."""
    browser = visit_tools(zone_with({}), limits=LimitsOptions(requests_per_minute=1))
    (_,) = browser.stream(f"{LIVE}?view=row").named("done")
    (failed,) = browser.stream("/domains/poor.example/live?view=row").named("problem")
    assert "try again in" in failed["problem"]
    assert failed["problem"] in unescape(failed["html"])
    assert ": checking" not in failed["html"]


def test_a_checked_row_without_scripts() -> None:
    """Without scripts the row is loaded with its result; the switch watches the domain."""
    browser = visit_tools(zone_with({}))
    assert "Grade A+" in browser.read("/domains?check=good.example&whole=true")
    assert "Nothing to fix" in browser.words
    answer = browser.submit(f"{CHECK}/watch", on="true", next="/domains")
    assert answer.headers["location"] == "/p/me/domains?done=watch-on"
    assert 'aria-checked="true" aria-label="Watch good.example"' in (
        browser.open("/domains").body.decode()
    )
    browser.submit(f"{CHECK}/watch", on="false", next="/domains")
    assert 'aria-checked="false" aria-label="Watch good.example"' in (
        browser.open("/domains").body.decode()
    )


def test_a_checked_domain_stays_in_the_table() -> None:
    """A domain that was checked and is not watched is listed with its result for a day."""
    browser = visit_tools(zone_with(POOR))
    browser.open("/domains/poor.example?whole=true")
    browser.open("/domains?check=8.8.4.1&whole=true")
    browser.open("/domains")
    page = browser.words
    assert page.index("8.8.4.1") < page.index("poor.example")
    assert "SPF: warning" in page
    browser.house.pass_time(23 * 3600)
    assert "poor.example" in browser.read("/domains")
    browser.house.pass_time(2 * 3600)
    browser.open("/domains")
    assert "poor.example" not in browser.words


def test_an_address_in_the_table() -> None:
    """An IP address is checked on the blocklists in its row; its page begins with them."""
    listed = {"1.4.8.8.zen.spamhaus.org": {"A": ["127.0.0.2"], "TXT": ["spam"]}}
    browser = visit_tools(zone_with(listed))
    assert "1 problem" in browser.read("/domains?check=8.8.4.1&whole=true")
    (done,) = browser.stream("/domains/8.8.4.1/live?view=row").named("done")
    assert "1 problem" in done["html"]
    assert (
        browser.open("/domains/8.8.4.1").headers["location"] == "/p/me/domains/8.8.4.1/blocklists"
    )


def test_the_worst_domain_is_first() -> None:
    """The table lists the domains with the lowest score first, each with its gravest problem."""
    browser = visit_tools(zone_with(POOR))
    for name in ("good.example", "poor.example", "new.example"):
        browser.submit(f"/domains/{name}/watch", on="true")
    for name in ("good.example", "poor.example"):
        browser.submit(f"/domains/{name}/run")
    browser.open("/domains")
    page = browser.words
    assert page.index("poor.example") < page.index("good.example") < page.index("new.example")
    assert "1 domain needs attention" in page
    assert "SPF: warning" in page
    assert "DMARC" in page[page.index("poor.example") : page.index("good.example")]


def test_a_page_out_of_range() -> None:
    """A page number out of range leads to the last page."""
    browser = visit_tools(zone_with({}))
    assert browser.open("/domains?page=7").headers["location"] == "/p/me/domains?page=1"


@rows(
    ("/domain", "/p/me/domains"),
    ("/domain?domain=Good.Example&ips=8.8.8.8", "/p/me/domains/good.example?ips=8.8.8.8"),
    ("/blocklists", "/p/me/domains"),
    ("/blocklists?query=8.8.4.1", "/p/me/domains/8.8.4.1/blocklists"),
    ("/watches", "/p/me/domains"),
    ("/watches?target=good.example", "/p/me/domains/good.example/history"),
    ("/reports?domain=good.example&days=7", "/p/me/domains/good.example/reports?days=7"),
    ("/domains/GOOD.example/checks", "/p/me/domains/good.example/checks"),
)
def test_old_addresses(old: str, new: str) -> None:
    """Former addresses, and other spellings, lead to the present pages."""
    answer = visit_tools(zone_with({})).open(old)
    assert (answer.status, answer.headers["location"]) == (303, new)


def test_pages_are_small() -> None:
    """A full table and the tabs of a bad domain are below 80 kB before compression."""
    browser = visit_tools(zone_with(POOR))
    account = run(browser.house.assembly.accounts.keep.find("ann"))
    keep = browser.house.assembly.watches.keep
    for number in range(PER_PAGE + 1):
        name = "poor.example" if number == 0 else f"x{number}.poor.example"
        made = run(keep.create(account.id, name, WatchSettings()))
        run(keep.run(account.id, made.watch.id))
    body = browser.open("/domains").body
    assert body.count(b"<tr") == PER_PAGE + 1
    assert b"Page 1 of 2" in body
    assert len(body) < MAX_PAGE
    for tab in ("", "/checks", "/blocklists", "/reports", "/history"):
        assert len(browser.open(f"/domains/poor.example{tab}?whole=true").body) < MAX_PAGE


def test_a_good_domain() -> None:
    """A good domain has all points, and no record to publish."""
    browser = visit_tools(zone_with({}))
    body = browser.open(WHOLE).body.decode()
    assert 'aria-label="Score 100 of 100, grade A+"' in body
    assert "All factors have full points. Nothing to fix." in browser.words
    assert "Verified: the fix" not in browser.words
    assert "20 of 20" in browser.read(RESULTS)
    assert "On none of the 32 lists that answered." in browser.words
    assert "10mx1.good.example8.8.4.10, 2001:4860::10" in browser.words


def test_what_to_publish_can_be_copied() -> None:
    """Each record to publish can be copied, and its verified gain is shown."""
    browser = visit_tools(zone_with(POOR), inbox=InboxOptions(domain="in.example.net"))
    answer = browser.open("/domains/poor.example?whole=true")
    found = copied(answer.body)
    assert {"_dmarc.poor.example", "TXT"} <= found
    (value,) = {one for one in found if one.startswith("v=DMARC1; p=none")}
    assert value.startswith("v=DMARC1; p=none; rua=mailto:dmarc-")
    assert "poor.example._report._dmarc.in.example.net TXT v=DMARC1;" in browser.words
    assert "Verified: the fix changes the score from 68 → 71" in browser.words
    assert "9 of 20" in browser.read("/domains/poor.example/checks?whole=true")


def test_another_selector_of_the_logo() -> None:
    """The page reads the BIMI record of the selector that was entered, and rejects a bad one."""
    record = {"shop._bimi.poor.example": {"TXT": ["v=BIMI1; l=; a=;"]}}
    browser = visit_tools(zone_with({**POOR, **record}))
    browser.open("/domains/poor.example/checks?whole=true")
    assert "shop._bimi" not in browser.words
    browser.open("/domains/poor.example/checks?whole=true&logo=shop")
    assert "shop._bimi.poor.example" in browser.words
    assert browser.open("/domains/poor.example/checks?whole=true&logo=a b").status == 400
    page = browser.open("/domains?check=poor.example&logo=shop").body.decode()
    assert 'name="logo" value="shop"' in page
    assert "logo=shop" in page.partition("data-check-live=")[2][:200]


def test_the_gain_above_the_issues_is_their_sum() -> None:
    """The total gain is the sum of the gains in the rows."""
    browser = visit_tools(zone_with(POOR))
    answer = browser.open("/domains/poor.example?whole=true")
    gains = re.findall(r'class="points plus">\+(\d+)<', answer.body.decode())
    assert len(gains) > 2
    total = sum(map(int, gains))
    assert f"{total} points to gain. With everything fixed: 68 → {68 + total}" in browser.words
    assert f"68 + {total} = {68 + total} of 100" in browser.words
    assert gains == sorted(gains, key=int, reverse=True)
    meanings = re.findall(r'class="meaning">([^<]+)<', answer.body.decode())
    assert len(meanings) == len(set(meanings))


def test_all_results() -> None:
    """The page shows the SPF tree with its lookups, the keys, and mechanisms without points."""
    browser = visit_tools(zone_with(POOR))
    browser.open("/domains/poor.example/checks?whole=true")
    for text in (
        "a.poor.example by include:a.poor.example",
        "v=spf1 ip4:192.0.2.0/24 -all",
        "1 of 10 DNS lookups, 0 of 2 void lookups.",
        "MTA-STS: mandatory encryption absent",
        "DNSSEC: signed DNS answers could not be determined",
        "Tried selectors (",
    ):
        assert text in browser.words


def test_what_could_not_be_determined() -> None:
    """A name server that does not answer makes a factor unknown, neither missing nor failed."""
    failing = {"_dmarc.good.example": DnsStatus.TIMEOUT}
    browser = visit_tools(zone_with({}, failing=failing))
    body = browser.open(RESULTS).body.decode()
    dmarc = body[body.index("<h3>DMARC</h3>") : body.index("<h3>MX</h3>")]
    assert '<span class="badge unknown">unknown</span>' in dmarc
    for level in ("good", "warn", "bad"):
        assert f'"badge {level}"' not in dmarc
    assert "Could not be determined and counts half: DMARC." in browser.words
    assert "DMARC: policy for forged mail could not be determined" in browser.words
    assert "Everything that could be checked passes." in browser.words


def test_too_few_results_for_a_grade() -> None:
    """Without DNS the score is missing."""
    failing: dict[str | tuple[str, str], DnsStatus] = dict.fromkeys(GOOD, DnsStatus.SERVFAIL)
    browser = visit_tools(MemoryZone(GOOD, failing=failing))
    body = browser.open(WHOLE).body.decode()
    assert 'aria-label="No score"' in body
    assert "Too many results could not be determined for a grade" in browser.words
    assert 'class="letter' not in body


@rows(
    ("/domains?check=a..b", "Domain"),
    ("/domains?check=localhost", "localhost"),
    ("/p/me/domains?check=10.0.0.1", "is private: blocklists know public addresses"),
    (f"/domains?check={MARKUP.replace('&', '%26')}", "Domain"),
    (f"{CHECK}?selectors=a._domainkey.x", "is the name of a DNS record"),
    (f"{CHECK}?ips=10.0.0.1", "is private: blocklists know public addresses"),
    (
        f"{CHECK}?ips=8.8.8.1,8.8.8.2,8.8.8.3,8.8.8.4,8.8.8.5",
        "4 sending addresses are allowed",
    ),
)
def test_what_can_not_be_checked(path: str, problem: str) -> None:
    """Invalid input is explained, and the form of the table keeps what was entered."""
    zone = zone_with({})
    browser = visit_tools(zone)
    answer = browser.open(path)
    assert answer.status == 400
    assert problem in answer.body.decode()
    assert "<script>alert" not in answer.body.decode()
    assert zone.asked == []


@rows(
    "http://good.example/x?y=1",
    "https://ann:secret@Good.Example:8443/x",
    "good.example/x",
    "ann@good.example",
    "Ann <ann@good.example>",
    "mailto:ann@good.example?subject=x",
)
def test_a_url_or_a_mail_address_names_its_domain(typed: str) -> None:
    """A URL or a mail address is checked by its domain, and the page says so."""
    browser = visit_tools(zone_with({}))
    browser.open(f"/domains?{urlencode({'check': typed})}&whole=true")
    assert f"{typed}: the domain good.example is checked." in browser.words
    assert "Grade A+" in browser.words


def test_score_and_sections_are_of_the_same_records() -> None:
    """A cached score is computed again if DNS has changed, so that score and records agree."""
    zone = zone_with({})
    browser = visit_tools(zone)
    browser.open(WHOLE)
    zone.publish("good.example", "TXT")
    browser.house.pass_time(400)  # cached answers expire
    browser.open(RESULTS)
    assert "Cached result of" not in browser.words
    assert "No record found." in browser.words
    assert "0 of 15" in browser.words


def test_the_mail_route() -> None:
    """Mail hosts are listed in the order in which senders try them, with their results."""
    hosts = {
        "good.example": {**GOOD["good.example"], "MX": ["10 mx1.good.example.", "20 no.example."]}
    }
    browser = visit_tools(zone_with(hosts))
    body = browser.open(RESULTS).body.decode()
    drawn = body[body.index('id="way-title"') : body.index('id="spf-title"')]
    assert drawn.index("mx1.good.example") < drawn.index("no.example")
    assert 'class="good"' in drawn
    assert '<li class="bad">' in drawn
    assert "has no address" in drawn


def test_a_result_is_cached() -> None:
    """A cached result is shown at once and says so, with a link that checks again."""
    browser = visit_tools(zone_with({}))
    browser.open(WHOLE)
    body = browser.open(CHECK).body.decode()
    assert "Cached result of" in body
    assert f'href="{CHECK}?refresh=true"' in body
    assert "refresh=true" in browser.open(f"{CHECK}?refresh=true").body.decode()
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
    for path in (WHOLE, RESULTS, "/domains?check=good.example&whole=true"):
        answer = browser.open(path)
        assert answer.status == 200
        assert "<script>alert" not in answer.body.decode()
        assert "<script>alert(1)" in browser.words


def test_checks_are_limited() -> None:
    """An account has as many checks as a key has requests; the page alone is free."""
    limits = LimitsOptions(requests_per_minute=2)
    browser = visit_tools(zone_with({}), limits=limits)
    for _ in range(5):
        assert browser.open(CHECK).status == 200
    for _ in range(2):
        assert browser.open(WHOLE).status == 200
    (problem,) = browser.stream(f"{LIVE}?view=row").named("problem")
    assert "limit of 2 checks per minute on the pages" in problem["problem"]
    refused = browser.open(WHOLE)
    assert (refused.status, refused.headers["retry-after"]) == (429, "60")
    assert "limit of 2 checks per minute on the pages" in browser.words
    assert "Try again in 60 seconds" in browser.words
    other = Browser(browser.house, "192.0.2.77")
    other.sign_up("bob")
    assert other.open(WHOLE).status == 200


def test_the_usage_of_checks() -> None:
    """The checks of this minute and day are shown with both limits, separately from API keys."""
    browser = visit_tools(zone_with({}), limits=LimitsOptions(requests_per_day=2_000))
    assert "0 of 2,000 checks today" in browser.read("/keys")
    browser.submit("/keys", name="CI")
    for _ in range(3):
        browser.open(WHOLE)
    for _ in range(2):
        body = browser.open("/keys").body.decode()
        assert "3 of 2,000 checks today" in browser.words
        assert "3 of 60 checks this minute" in browser.words
        assert "0 of 2,000 today" in browser.words
    assert '<progress max="60" value="3" aria-label="Checks this minute">' in body
    assert '<progress max="60" value="0" aria-label="Requests this minute">' in body
    other = Browser(browser.house, "192.0.2.77")
    other.sign_up("bob")
    assert "0 of 2,000 checks today" in other.read("/keys")
    browser.house.pass_time(60)
    assert "3 of 2,000 checks today" in browser.read("/keys")
    assert "0 of 60 checks this minute" in browser.words


def test_each_topic_says_why_it_matters_and_where_to_read_on() -> None:
    """Each factor and mechanism explains why it matters, with links."""
    browser = visit_tools(zone_with({}))
    body = browser.open(RESULTS).body.decode()
    for name in (*MECHANISMS, *(one.value for one in FactorName)):
        topic = topic_of(name)
        assert str(escape(topic.why)) in body
        assert all(f'href="{escape(link.url)}"' in body for link in topic.links)
    assert "Blacklist" not in browser.words

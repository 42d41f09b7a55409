"""Shared reports, and the preflight of records that are not published yet."""

from urllib.parse import urlencode, urlsplit

import pytest

from mailcheck.checks.press_unsubscribe import PressAnswer
from mailcheck.core.identifiers import DeliverabilityTestId
from mailcheck.core.instants import Instant
from mailcheck.operations.deliverability.preflight import MAX_RECORDS
from tests.fakes.mail_signer import RSA
from tests.house import Answer, result_of
from tests.operations.scored_mails import MAIL, received
from tests.table import rows
from tests.web.dashboard.browser import Browser
from tests.web.dashboard.inbox_visit import fetch
from tests.web.dashboard.tools_visit import MARKUP, visit_scored
from tests.web.raw_http import RawHttp
from tests.web.scored_house import ScoredHouse

DMARC = ("_dmarc.sender.example", "TXT", "v=DMARC1; p=reject; rua=mailto:d@sender.example")


@pytest.fixture
def visited() -> tuple[ScoredHouse, Browser]:
    """Open the pages over the zone of a sender without DMARC."""
    scored, browser = visit_scored()
    scored.zone.publish("_dmarc.sender.example", "TXT")
    return scored, browser


@pytest.fixture
def scored(visited: tuple[ScoredHouse, Browser]) -> ScoredHouse:
    """Return the house."""
    return visited[0]


@pytest.fixture
def browser(visited: tuple[ScoredHouse, Browser]) -> Browser:
    """Return the browser of the signed-in account."""
    return visited[1]


@pytest.fixture
def stranger(scored: ScoredHouse) -> Browser:
    """Return a browser without an account."""
    return Browser(scored.house, "192.0.2.99")


@pytest.fixture
def test_id(scored: ScoredHouse, browser: Browser) -> str:
    """Create a test with a mail and a report."""
    made = browser.submit("/tests").headers["location"].removeprefix("/p/me/tests/")
    scored.send(made)
    return made


def share_path(browser: Browser, test_id: str) -> str:
    """Return the path of a report's share link."""
    browser.open(f"/tests/{test_id}")
    return urlsplit(browser.find(r'id="share-link" href="([^"]+)"')).path


def preflight(browser: Browser, test_id: str, *records: tuple[str, str, str]) -> Answer:
    """Submit the preflight form with these records."""
    browser.open(f"/tests/{test_id}/preflight")
    fields = [("form-token", browser.page.form_token)]
    for record in records:
        fields += zip(("name", "type", "value"), record, strict=True)
    path = f"/tests/{test_id}/preflight"
    return browser.send("POST", path, urlencode(fields).encode())


def test_anybody_with_the_link_sees_the_report(
    browser: Browser, stranger: Browser, test_id: str
) -> None:
    """The shared page shows the report, without the actions of its owner."""
    answer = stranger.open(share_path(browser, test_id))
    for text in ("The minutes of Monday", "What to fix", "Google", "shared with you"):
        assert text in stranger.words
    body = answer.body.decode()
    assert 'aria-label="Score 9.0 of 10"' in body
    for text in ("<form", "Check again", "/raw", "/preflight", "share-link"):
        assert text not in body
    assert '<meta name="robots" content="noindex, nofollow">' in body
    assert answer.headers["vary"] == "Accept, Accept-Encoding"


def test_a_shared_report_has_the_checks_of_its_mail(
    browser: Browser, stranger: Browser, scored: ScoredHouse, test_id: str
) -> None:
    """A shared report shows the checks of its mail, but visitors cannot have links checked."""
    path = share_path(browser, test_id)
    assert f'data-part="{path}/checks"' in stranger.open(path).body.decode()
    answer = stranger.open(f"{path}/checks")
    for text in ("HTML compatibility", "Accessibility", "Links"):
        assert text in stranger.words
    assert answer.headers["x-robots-tag"] == "noindex, nofollow"
    assert "<form" not in answer.body.decode()
    browser.submit(f"/tests/{test_id}/share")
    assert stranger.open(f"{path}/checks").status == 404


def test_programs_get_json(browser: Browser, scored: ScoredHouse, test_id: str) -> None:
    """A client that does not accept HTML gets the test as REST renders it."""
    answer = RawHttp(scored.house).ask(share_path(browser, test_id), "Accept: application/json")
    assert (answer.json["testId"], answer.json["score"]) == (test_id, 9.0)
    assert answer.headers["x-robots-tag"] == "noindex, nofollow"


def test_a_revoked_link_is_rejected(browser: Browser, stranger: Browser, test_id: str) -> None:
    """After renewal the old link is 404 and the new one shows the report."""
    old = share_path(browser, test_id)
    answer = browser.submit(f"/tests/{test_id}/share")
    assert answer.headers["location"] == f"/p/me/tests/{test_id}?done=report-share-renewed"
    new = share_path(browser, test_id)
    assert new != old
    assert stranger.open(old).status == 404
    assert "link is not valid" in stranger.words
    assert stranger.open(new).status == 200


@rows("cut", "longer", "other")
def test_a_wrong_link(browser: Browser, stranger: Browser, test_id: str, change: str) -> None:
    """Only the complete link opens a report."""
    path = share_path(browser, test_id)
    last = "b" if path[-1] == "a" else "a"
    wrong = {"cut": path[:-1], "longer": f"{path}a", "other": path[:-1] + last}
    assert stranger.open(wrong[change]).status == 404
    assert "link is not valid" in stranger.words


def test_a_shared_test_without_a_report(
    browser: Browser, stranger: Browser, scored: ScoredHouse
) -> None:
    """Before there is a report, the page shows only the state of the test."""
    made = browser.submit("/tests").headers["location"].removeprefix("/p/me/tests/")
    tested = result_of(
        scored.house.assembly.tests.store.find_any(DeliverabilityTestId(made), Instant(0))
    ).test
    assert stranger.open(f"/share/{made}{tested.share_token}").status == 200
    assert "No mail has arrived for this test yet." in stranger.words
    assert "share-link" not in browser.open(f"/tests/{made}").body.decode()


def test_the_form_contains_the_suggested_records(browser: Browser, test_id: str) -> None:
    """The form contains the records that the report suggests, and empty rows."""
    body = browser.open(f"/tests/{test_id}/preflight").body.decode()
    assert 'value="_dmarc.sender.example"' in body
    assert 'value="v=DMARC1; p=none"' in body
    assert body.count("<fieldset") == 3


def test_proposed_records_are_scored(browser: Browser, test_id: str) -> None:
    """Both scores are shown side by side, and the real score does not change."""
    assert preflight(browser, test_id, DMARC, ("", "TXT", " ")).status == 200
    assert "9.0 of 10 Now" in browser.words
    assert "10.0 of 10 With these records preflight" in browser.words
    assert "These records add 1 point." in browser.words
    assert 'aria-label="Score 9.0 of 10"' in browser.open(f"/tests/{test_id}").body.decode()


def test_records_that_cost_points(browser: Browser, test_id: str) -> None:
    """Lost points are shown, and long values such as DKIM keys fit into the form."""
    wrong_key = ("s1._domainkey.sender.example", "txt", RSA.key_record[:-20] + "A" * 700)
    records = (wrong_key, ("sender.example", "TXT", "v=spf1 -all"))
    assert preflight(browser, test_id, *records).status == 200
    assert "These records cost" in browser.words
    assert "of 10 Now" in browser.words


@rows(
    (("_dmarc.sender.example", "TXT", ""), "record 1.value is missing"),
    (("_dmarc.sender.example", "SOA", "x"), "must be one of TXT"),
    (("sender.example", "A", MARKUP), "record 1.value"),
    ((MARKUP, "A", "192.0.2.1"), "record 1.name"),
)
def test_records_that_can_not_be_read(
    browser: Browser, test_id: str, record: tuple[str, str, str], problem: str
) -> None:
    """An invalid record is explained, and the form keeps what was filled in."""
    assert preflight(browser, test_id, record).status == 400
    assert problem in browser.words.replace("Record", "record")
    assert "9.0 of 10" not in browser.words


def test_too_many_records(browser: Browser, test_id: str) -> None:
    """The number of records in one preflight is limited."""
    many = [(f"a{number}.example", "A", "192.0.2.1") for number in range(MAX_RECORDS + 1)]
    assert preflight(browser, test_id, *many).status == 400
    assert "send at most 50" in browser.words


def test_no_records(browser: Browser, test_id: str) -> None:
    """An empty form is answered with what to enter."""
    assert preflight(browser, test_id).status == 400
    assert "send the records that you plan to publish" in browser.words


def test_no_mail_yet(browser: Browser) -> None:
    """A test without a mail has no preflight."""
    made = browser.submit("/tests").headers["location"]
    assert browser.open(f"{made}/preflight").status == 400
    assert "No mail has arrived for this test" in browser.words


def test_a_report_of_a_hostile_mail_is_text(
    scored: ScoredHouse, browser: Browser, stranger: Browser, test_id: str
) -> None:
    """On the shared page and in the preflight, markup is escaped."""
    made = browser.submit("/tests").headers["location"].removeprefix("/p/me/tests/")
    raw = MAIL.replace(b"The minutes of Monday", MARKUP.encode())
    scored.send(made, received(raw, helo_name=MARKUP))
    shared = stranger.open(share_path(browser, made)).body.decode()
    judged = preflight(browser, made, DMARC).body.decode()
    for text in (shared, judged):
        assert "<script>alert" not in text
    assert "<script>alert(1)" in stranger.words


def test_the_owner_presses_unsubscribe(scored: ScoredHouse, browser: Browser) -> None:
    """A report presses on request; checking the mail again and shared pages never do."""
    test_id = browser.submit("/tests").headers["location"].removeprefix("/p/me/tests/")
    url = "https://sender.example/leave?id=1"
    offer = f"List-Unsubscribe: <{url}>\r\nList-Unsubscribe-Post: List-Unsubscribe=One-Click\r\n"
    scored.send(test_id, received(offer.encode() + MAIL))
    hosts = scored.house.hosts
    hosts.pressed[url] = PressAnswer(url, 403, page="CSRF token missing")
    action, here = f"/p/me/tests/{test_id}/checks/unsubscribe", f"/tests/{test_id}"
    assert f'action="{action}"' in browser.open(here).body.decode()
    assert ("POST", url) not in hosts.looked_at
    assert "lack of a CSRF token" in browser.submit(action).body.decode()
    assert hosts.looked_at.count(("POST", url)) == 1
    assert browser.submit(f"{here}/recheck").status == 303
    assert f'action="{action}"' in browser.open(here).body.decode()
    shared = share_path(browser, test_id)
    for path in (shared, f"{shared}/checks", f"{here}/report.html"):
        assert b"checks/unsubscribe" not in fetch(browser, path).body
    assert browser.submit(f"{shared}/checks/unsubscribe").status in (404, 405)
    assert hosts.looked_at.count(("POST", url)) == 1

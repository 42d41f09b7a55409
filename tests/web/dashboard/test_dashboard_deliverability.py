"""The pages of deliverability tests, from the test address to the report and its actions."""

import html
import json
import re
from typing import Any

import pytest

from mailcheck.config.options import LimitsOptions
from mailcheck.core.accounts import Account
from mailcheck.core.messages import NULL_REVERSE_PATH
from mailcheck.operations.deliverability.check_progress import PARTS
from mailcheck.operations.deliverability.run_test_checks import RENEWAL
from mailcheck.web.dashboard.deliverability.report_view import (
    VERDICTS,
    ReceiverColumn,
    RepliesOfReceiver,
    summarize_report,
)
from tests.fakes.analyst import Analyst
from tests.house import run
from tests.operations.scored_mails import MAIL, received, zone_with
from tests.table import rows
from tests.web.dashboard.browser import Browser
from tests.web.dashboard.inbox_visit import fetch, receive
from tests.web.dashboard.tools_visit import MARKUP, visit_scored
from tests.web.scored_house import ScoredHouse

UNSIGNED = received(MAIL)
HOUR = 3600


@pytest.fixture
def visited() -> tuple[ScoredHouse, Browser]:
    """Open the pages over the zone of a sender without issues."""
    return visit_scored()


@pytest.fixture
def scored(visited: tuple[ScoredHouse, Browser]) -> ScoredHouse:
    """Return the house."""
    return visited[0]


@pytest.fixture
def browser(visited: tuple[ScoredHouse, Browser]) -> Browser:
    """Return the browser of the signed-in account."""
    return visited[1]


def ann(scored: ScoredHouse) -> Account:
    """Return the account of the browser."""
    accounts: list[Account] = run(scored.house.assembly.accounts.keep.accounts())
    return next(account for account in accounts if account.name == "ann")


def over_rest(scored: ScoredHouse, test_id: str) -> Any:
    """Read a test of the account over REST."""
    key = scored.house.issue_key(ann(scored))
    return scored.house.get(f"/test/{test_id}", key=key).json


def make(browser: Browser) -> str:
    """Create a test by its button and return its id."""
    answer = browser.submit("/tests")
    assert answer.status == 303
    return answer.headers["location"].removeprefix("/p/me/tests/")


@pytest.fixture
def test_id(browser: Browser) -> str:
    """Create a test and return its id."""
    return make(browser)


def test_the_address(test_id: str, scored: ScoredHouse, browser: Browser) -> None:
    """The page shows the test address, its expiry, and a command that sends to it."""
    body = browser.open(f"/tests/{test_id}").body.decode()
    address = scored.address(test_id)
    assert re.findall('id="address">(.*?)</span>\\s*<button', body, re.DOTALL) == [
        "".join(f'<span class="part">{one}</span>' for one in re.split("(?=@)", address))
    ]
    assert "2026-11-21 13:00 UTC" in browser.words
    assert (
        f"swaks --server 127.0.0.1:2525 --from you@example.com \\ --to {address}" in browser.words
    )
    assert f'data-live="/p/me/tests/{test_id}/live"' in body
    assert f'<meta http-equiv="refresh" content="5;url=/p/me/tests/{test_id}">' in body


def test_a_perfect_mail(test_id: str, scored: ScoredHouse, browser: Browser) -> None:
    """A mail without issues has ten points and no deduction."""
    scored.send(test_id)
    body = browser.open(f"/tests/{test_id}").body.decode()
    assert 'aria-label="Score 10.0 of 10"' in body
    assert "This mail should arrive" in browser.words
    assert "No issue takes points off." in browser.words
    assert 'data-live="' not in body
    assert "http-equiv" not in body


@rows(
    ([], "No check takes points off. Nothing to fix."),
    (["note"], "No check takes points off. Nothing to fix."),
    (["note", "warning"], "1 issue without a deduction"),
    (["warning", "error"], "2 issues without a deduction"),
)
def test_a_report_without_deductions(severities: list[str], said: str) -> None:
    """A report without deductions still names the issues among its findings."""
    found = {"score": 10.0, "deductions": [], "findings": [{"severity": s} for s in severities]}
    assert said in summarize_report(found, "good", ()).next


@rows(
    ("every sender", "does not meet all rules of Google and Yahoo for every sender"),
    ("bulk senders", "does not meet all rules of Google and Yahoo for bulk mail"),
)
def test_the_verdict_agrees_with_the_rules(audience: str, title: str) -> None:
    """A good score is no promise while rules of a receiver are not met; the title names it."""
    found = {"score": 9.0, "deductions": [], "findings": []}
    columns = [
        ReceiverColumn("Google", audience, "", 1),
        ReceiverColumn("Yahoo", audience, "", 2),
        ReceiverColumn("Microsoft", "bulk senders", "", 0),
    ]
    verdict = summarize_report(found, "good", columns)
    assert (verdict.title, verdict.level) == (f"This mail should arrive, but {title}", "warn")
    assert summarize_report(found, "good", columns[2:]).level == "good"
    assert summarize_report(found, "bad", columns).title == VERDICTS["bad"]


def replies_of(**actions: tuple[str, str]) -> list[RepliesOfReceiver]:
    """Return replies of receivers to a small and to a bulk sender."""
    return [
        RepliesOfReceiver(name, {"action": small}, {"action": bulk})
        for name, (small, bulk) in actions.items()
    ]


@rows(
    ({"Gmail": ("accept", "accept")}, "good", "This mail should arrive", "good"),
    (
        {"Gmail": ("accept", "reject"), "Yahoo": ("accept", "defer")},
        "good",
        "This mail should arrive, but Gmail rejects it from a bulk sender",
        "warn",
    ),
    (
        {"Gmail": ("reject", "reject"), "Yahoo": ("accept", "spam"), "Other": ("accept", "spam")},
        "warn",
        f"{VERDICTS['warn']}. Yahoo and Other put it in the spam folder from a bulk sender",
        "warn",
    ),
    ({"Gmail": ("accept", "reject")}, "unknown", VERDICTS["unknown"], "unknown"),
)
def test_the_verdict_names_what_bulk_senders_get(
    actions: dict[str, tuple[str, str]], level: str, title: str, shown: str
) -> None:
    """The title names the receivers that treat the mail of a bulk sender otherwise."""
    found = {"score": 9.0, "deductions": [], "findings": []}
    verdict = summarize_report(found, level, (), replies_of(**actions))
    assert (verdict.title, verdict.level) == (title, shown)


def test_deductions_add_up_to_the_score(scored: ScoredHouse, browser: Browser) -> None:
    """Every deduction is shown with its fix, and the deductions add up to the score."""
    scored.zone.publish("_dmarc.sender.example", "TXT")
    test_id = make(browser)
    scored.send(test_id, UNSIGNED)
    browser.open(f"/tests/{test_id}")
    found = over_rest(scored, test_id)
    for one in found["deductions"]:
        assert f"-{one['points']}" in browser.words
        assert " ".join(one["meaning"].split()) in browser.words
        assert " ".join(one["fix"].split()) in browser.words
    lost = sum(one["points"] for one in found["deductions"])
    assert f"10.0 - {lost:.1f} = {found['score']}" in browser.words
    assert "v=DMARC1; p=none" in browser.words


def test_the_whole_report(test_id: str, scored: ScoredHouse, browser: Browser) -> None:
    """The report shows checks, host, transport, headers, content, links and receiver rules."""
    scored.send(test_id, received(transcript=("C: EHLO mx.sender.example", f"S: 250 {MARKUP}")))
    browser.open(f"/tests/{test_id}")
    for text in (
        "SPF pass",
        "DKIM pass",
        "v=spf1 mx -all",
        "Signature 1pass",
        "44 lists answered",
        "TLSv1.3, TLS_AES_256_GCM_SHA384",
        "C: EHLO mx.sender.example",
        "https://sender.example/minutes",
        "Google, every sender",
        "Yahoo and AOL",
        "Microsoft",
        "SPF or DKIM is set up and passes.",
        "The mail has no List-Unsubscribe field.",
        "Ann Example <ann@sender.example>",
    ):
        assert text in browser.words, text
    body = browser.open(f"/tests/{test_id}").body.decode()
    assert "<script>alert" not in body


def test_what_could_not_be_determined(scored: ScoredHouse, browser: Browser) -> None:
    """A name server that does not answer costs no points and is shown as unknown."""
    scored.zone.silent.add("_dmarc.sender.example")
    test_id = make(browser)
    scored.send(test_id)
    scored.house.pass_time(11)
    body = browser.open(f"/tests/{test_id}").body.decode()
    assert 'aria-label="Score 10.0 of 10"' in body
    check = body[body.index('id="check-dmarc"') : body.index('id="check-blacklist"')]
    assert '<span class="badge unknown">unknown</span>' in check
    assert "Could not be determined, so no points were deducted for it: DMARC." in browser.words


def test_deductions_over_ten_points() -> None:
    """A score is never below 0, and the page says that more points were taken off."""
    zone = zone_with(
        {
            "sender.example": {"TXT": ["v=spf1 -all"]},
            "10.4.8.8.zen.spamhaus.org": {"A": ["127.0.0.2"]},
            "10.4.8.8.b.barracudacentral.org": {"A": ["127.0.0.2"]},
            "10.4.8.8.bl.spamcop.net": {"A": ["127.0.0.2"]},
        },
        without=["10.4.8.8.in-addr.arpa"],
    )
    scored, browser = visit_scored(zone=zone)
    test_id = make(browser)
    scored.send(test_id, UNSIGNED)
    body = browser.open(f"/tests/{test_id}").body.decode()
    assert 'aria-label="Score 0.0 of 10"' in body
    assert "points were taken off 10.0. The lowest score is 0." in browser.words
    assert "Request removal from Spamhaus ZEN" in browser.words


def test_reverse_dns_is_shown_apart_from_spf() -> None:
    """The page shows reverse DNS apart from SPF, although the JSON has it in ``checks.spf``."""
    scored, browser = visit_scored(zone=zone_with(without=["10.4.8.8.in-addr.arpa"]))
    test_id = make(browser)
    scored.send(test_id)
    body = browser.open(f"/tests/{test_id}").body.decode()
    heads = dict(re.findall(r'id="check-(spf|rdns)">\s*<summary>(.*?)</summary>', body, re.DOTALL))
    assert "badge good" in heads["spf"]
    assert "minus" not in heads["spf"]
    assert "<h3>Reverse DNS</h3>" in heads["rdns"]
    # The price is in the list of issues alone, and so is the advice.
    assert "-1.0" not in heads["rdns"]
    (issue,) = re.findall(r'id="(issue-\d)"[^>]*>\s*<summary><span[^>]*>-1.0</span> <h3>Rev', body)
    assert f'<a href="#{issue}">' in body
    fix = re.findall(r"Publish a PTR|PTR record for", body)
    assert len(fix) <= 1


def test_the_progress_is_streamed() -> None:
    """The stream reports when the mail and when the report has arrived, and ends."""
    analyst = Analyst()
    scored, browser = visit_scored(analyse=analyst)
    test_id = make(browser)
    stream = browser.stream(f"/tests/{test_id}/live?seen=pending")
    scored.house.pass_time(21)
    assert stream.events == []
    scored.send(test_id)
    assert stream.named("moved") == [{"state": "processing", "final": False}]
    assert "Mail received, checking" in browser.read(f"/tests/{test_id}")
    analyst.report(run(scored.house.assembly.scoring.analyse(analyst.mails[0])))
    assert stream.named("moved")[1:] == [{"state": "completed", "final": True}]
    assert stream.has_ended
    assert scored.house.assembly.tests.feeds.count() == 0


def test_the_progress_of_checks_is_streamed(scored: ScoredHouse, browser: Browser) -> None:
    """While checks run, the page shows which have ended; the slowest one is the last."""
    scored.content_filter.holds = True
    test_id = make(browser)
    stream = browser.stream(f"/tests/{test_id}/live?seen=pending")
    scored.send(test_id)
    told = [one["ended"] for one in stream.named("checks")]
    assert told == sorted(told, key=len)
    assert set(told[-1]) == set(PARTS) - {"filter", "fixes"}
    body = browser.open(f"/tests/{test_id}").body.decode()
    assert body.count('<span class="badge good">done</span>') == len(PARTS) - 2
    assert "running Content filter" in browser.words
    late = browser.stream(f"/tests/{test_id}/live?seen=processing")
    assert late.named("checks") == [{"ended": told[-1]}]
    scored.content_filter.answer()
    assert set(late.named("checks")[-1]["ended"]) == set(PARTS)
    assert late.named("moved") == [{"state": "completed", "final": True}]
    browser.submit(f"/tests/{test_id}/recheck")
    body = browser.open(f"/tests/{test_id}").body.decode()
    assert "running Content filter" in browser.words, "a recheck starts again"
    scored.content_filter.answer()


def test_a_page_that_is_left_leaves_no_wait(
    test_id: str, scored: ScoredHouse, browser: Browser
) -> None:
    """Leaving the page cancels its wait."""
    stream = browser.stream(f"/tests/{test_id}/live?seen=pending")
    assert scored.house.assembly.tests.feeds.count() == 1
    stream.connection.hang_up()
    assert scored.house.assembly.tests.feeds.count() == 0


def test_an_address_that_expires(test_id: str, scored: ScoredHouse, browser: Browser) -> None:
    """After an hour without mail the open page shows that the address has expired."""
    stream = browser.stream(f"/tests/{test_id}/live?seen=pending")
    for _ in range(HOUR // 20):
        scored.house.pass_time(20)
        if stream.has_ended:  # browsers reconnect after some minutes
            stream = browser.stream(f"/tests/{test_id}/live?seen=pending")
    assert stream.named("moved") == [{"state": "expired", "final": True}]
    assert "No mail arrived" in browser.read(f"/tests/{test_id}")


@rows("", "?seen=", "?seen=nonsense")
def test_an_invalid_stream(browser: Browser, test_id: str, query: str) -> None:
    """The parameter ``seen`` must be a state."""
    stream = browser.stream(f"/tests/{test_id}/live{query}")
    assert b" 400 " in stream.connection.received()


def test_an_analysis_that_fails(logged_failures: list[Any]) -> None:
    """A failed analysis is reported as an error of the service and can be retried."""
    analyst = Analyst()
    scored, browser = visit_scored(analyse=analyst)
    test_id = make(browser)
    scored.send(test_id)
    for _ in range(3):
        analyst.fail(RuntimeError("broken"))
        scored.house.pass_time(RENEWAL)
        run(scored.house.assembly.tests.runner.renew())
    assert len(logged_failures) == 3
    assert "could not be analysed" in browser.read(f"/tests/{test_id}")
    assert "an error of this service, not of your mail" in browser.words
    browser.submit(f"/tests/{test_id}/recheck")
    assert len(analyst.pending) == 1
    analyst.pending.clear()


def test_a_report_has_a_summary(scored: ScoredHouse, browser: Browser) -> None:
    """A report has a summary, and each issue shows the verified effect of its fix."""
    scored.zone.publish("_dmarc.sender.example", "TXT")
    test_id = make(browser)
    scored.send(test_id)
    body = browser.open(f"/tests/{test_id}").body.decode()
    assert "This mail should arrive" in browser.words
    assert "1 issue takes points off. The first fix was verified: it raises the score to 10.0." in (
        browser.words
    )
    assert "Verified: the fix changes the score from 9.0 → 10.0" in browser.words
    assert body.index("verdict-title") < body.index("issues-title") < body.index("checks-title")


def test_a_mail_from_a_private_address(test_id: str, scored: ScoredHouse, browser: Browser) -> None:
    """A mail from a private address has a grey score, on its page and in the list."""
    scored.send(test_id, received(client_ip="127.0.0.1"))
    body = browser.open(f"/tests/{test_id}").body.decode()
    assert "Only the content was checked" in browser.words
    assert '<svg class="gauge unknown"' in body
    assert "gauge good" not in body
    listed = browser.open("/tests").body.decode()
    assert ", content only</span>" in listed
    assert '<span class="badge unknown">' in listed


def test_the_rules_of_receivers_are_one_table(scored: ScoredHouse, browser: Browser) -> None:
    """Each rule has one row with a result for each receiver, and broken rules come first."""
    scored.zone.publish("_dmarc.sender.example", "TXT")
    test_id = make(browser)
    scored.send(test_id)
    body = browser.open(f"/tests/{test_id}").body.decode()
    found = over_rest(scored, test_id)["report"]["checklists"]
    for text in {rule["text"] for checklist in found for rule in checklist["rules"]}:
        assert len(re.findall(f"(?:>|: ){re.escape(html.escape(text))}<", body)) == 1, text
    broken = body[body.index('aria-label="Rules that are not met"') : body.index("other-rules")]
    assert broken.count('class="badge bad">not met<') == 3
    assert broken.count("The From domain has a DMARC record") == 1


def test_the_replies_of_receivers(scored: ScoredHouse, browser: Browser) -> None:
    """Each receiver has its reply with the reason and its dated source."""
    scored.zone.publish("sender.example", "TXT", "v=spf1 -all")
    test_id = make(browser)
    scored.send(test_id, UNSIGNED)
    body = browser.open(f"/tests/{test_id}").body.decode()
    section = body[body.index('id="replies"') :]
    for one in over_rest(scored, test_id)["report"]["replies"]:
        assert f"<strong>{one['name']}</strong>, {one['audience']}" in section
    assert "550 5.7.26 Unauthenticated email from sender.example is not accepted" in section
    assert '<span class="badge bad">rejected</span> <strong>Gmail</strong>, every sender' in section
    assert 'href="https://support.google.com/a/answer/3726730"' in section


def test_the_mail_beside_its_report(test_id: str, scored: ScoredHouse, browser: Browser) -> None:
    """The mail is shown as in the inbox: its text, or its HTML in a sandboxed frame."""
    scored.send(test_id, UNSIGNED)
    assert "here is what we said on Monday" in browser.read(f"/tests/{test_id}")
    test_id = make(browser)
    page = MAIL.replace(b"text/plain", b"text/html") + b"<script>alert(1)</script><b>bold</b>"
    scored.send(test_id, received(page))
    body = browser.open(f"/tests/{test_id}").body.decode()
    assert f'src="/p/me/tests/{test_id}/frame"' in body
    frame = fetch(browser, f"/tests/{test_id}/frame")
    assert b"<b>bold</b>" in frame.body
    assert b"<script" not in frame.body
    assert frame.headers["content-security-policy"].startswith("sandbox ")


def test_a_report_is_downloaded(test_id: str, scored: ScoredHouse, browser: Browser) -> None:
    """A report can be downloaded as one HTML file with its mail, and as JSON."""
    assert fetch(browser, f"/tests/{test_id}/report.html").status == 400
    page = MAIL.replace(b"text/plain", b"text/html") + b"<b>bold</b>"
    scored.send(test_id, received(page))
    file = fetch(browser, f"/tests/{test_id}/report.html")
    assert file.headers["content-disposition"].startswith("attachment;")
    text = file.body.decode()
    assert "srcdoc=" in text
    assert "&lt;b&gt;bold&lt;/b&gt;" in text
    assert not re.findall(
        r'(?:src|action)="|<(?:script|link|form|button[^>]*type="submit")\b', text
    )
    assert "default-src 'none'" in text
    taken = fetch(browser, f"/tests/{test_id}/report.json")
    assert taken.headers["content-disposition"].startswith("attachment;")
    assert json.loads(taken.body) == over_rest(scored, test_id)


def test_a_test_is_deleted(scored: ScoredHouse, browser: Browser) -> None:
    """A test can be deleted in any state, with its pages and its share link."""
    pending, done = make(browser), make(browser)
    scored.send(done)
    browser.open(f"/tests/{done}")
    for test_id in (pending, done):
        answer = browser.submit(f"/tests/{test_id}/delete")
        assert answer.headers["location"] == "/p/me/tests?done=test-deleted"
        assert browser.open(f"/tests/{test_id}").status == 404
    assert "The test has been deleted" in browser.read("/tests?done=test-deleted")
    assert "No tests yet" in browser.words


def test_the_raw_mail(test_id: str, scored: ScoredHouse, browser: Browser) -> None:
    """The raw mail is downloaded byte for byte."""
    scored.send(test_id, UNSIGNED)
    answer = fetch(browser, f"/tests/{test_id}/raw")
    assert answer.body == MAIL
    assert answer.headers["content-disposition"].startswith("attachment;")


def test_markup_in_a_mail_is_escaped(scored: ScoredHouse, browser: Browser) -> None:
    """Markup in subject, addresses, HELO, links and headers is escaped."""
    raw = (
        f"From: {MARKUP} <ann@sender.example>\r\nSubject: {MARKUP}\r\nMessage-ID: <{MARKUP}@x>\r\n"
        f"List-Unsubscribe: <https://sender.example/{MARKUP}>\r\nDate: {MARKUP}\r\n"
        "Content-Type: text/html\r\n\r\n"
        '<a href="javascript:alert(1)">a</a><a href="https://evil.example/x">https://bank.example</a>'
    ).encode()
    test_id = make(browser)
    mail = received(raw, helo_name=MARKUP, envelope_sender=NULL_REVERSE_PATH)
    scored.send(test_id, mail)
    body = browser.open(f"/tests/{test_id}").body.decode()
    assert "of 10" in browser.words
    assert "<script>alert" not in body
    assert "<script>alert(1)" in browser.words
    assert "https://evil.example/x" in browser.words
    assert 'href="https://evil' not in body
    assert 'href="javascript' not in body
    assert "<> (null sender)" in browser.words
    assert "<script>alert" not in browser.open("/tests").body.decode()


def test_the_history(scored: ScoredHouse, browser: Browser) -> None:
    """The list shows the tests, newest first, with score or state, on pages."""
    ids = []
    for _ in range(27):
        scored.house.pass_time(1)
        ids.append(make(browser))
    scored.send(ids[-1], UNSIGNED)
    text = browser.open("/tests").body.decode()
    places = [text.index(f'href="/p/me/tests/{one}"') for one in ids[2:]]
    assert places == sorted(places, reverse=True)
    assert "The minutes of Monday" in browser.words
    assert "waiting for mail" in browser.words
    assert "1 to 25 of 27" in browser.words
    assert "26 to 27 of 27" in browser.read("/tests?page=2")
    assert "26 to 27 of 27" in browser.read("/tests?page=9")


def test_tests_of_other_accounts(test_id: str, scored: ScoredHouse, browser: Browser) -> None:
    """Other accounts get 404 at every address of a test."""
    scored.send(test_id)
    other = Browser(scored.house, "192.0.2.77")
    other.sign_up("bob")
    for path in ("", "/raw", "/preflight", "/frame", "/report.html", "/report.json"):
        assert other.open(f"/tests/{test_id}{path}").status == 404
    other.open("/tests")
    assert test_id not in other.page.text
    for path in ("/recheck", "/share", "/preflight", "/delete"):
        answer = other.submit(
            f"/tests/{test_id}{path}", name="a.example", type="A", value="1.2.3.4"
        )
        assert answer.status == 404
    stream = other.stream(f"/tests/{test_id}/live?seen=pending")
    assert "no such test" in stream.named("problem")[0]["problem"]


def test_a_message_is_scored(scored: ScoredHouse, browser: Browser) -> None:
    """The button on the page of a message leads to its report."""
    message_id = receive(scored.house, ann(scored), MAIL)
    body = browser.open(f"/inbox/messages/{message_id}").body.decode()
    assert f'action="/p/me/inbox/messages/{message_id}/test"' in body
    answer = browser.submit(f"/inbox/messages/{message_id}/test")
    scored.house.pass_time(1)
    browser.follow(answer)
    assert "The minutes of Monday" in browser.words
    assert "What to fix" in browser.words


def test_over_the_limit() -> None:
    """Tests and rechecks count as checks; viewing them is free."""
    scored, browser = visit_scored(limits=LimitsOptions(requests_per_minute=3))
    test_id = make(browser)
    scored.send(test_id)
    browser.submit(f"/tests/{test_id}/recheck")
    scored.house.pass_time(1)
    make(browser)
    browser.open(f"/tests/{test_id}")
    for path in (f"/tests/{test_id}/recheck", "/tests"):
        answer = browser.submit(path)
        assert (answer.status, answer.headers["retry-after"]) == (429, "59")
        assert browser.open(f"/tests/{test_id}").status == 200


def test_the_tests_of_a_domain(scored: ScoredHouse, browser: Browser) -> None:
    """A report has a plot of the tests of its domain, with links to their reports."""
    scored.zone.publish("_dmarc.sender.example", "TXT")
    first = make(browser)
    scored.send(first)
    assert 'class="plot"' not in browser.open(f"/tests/{first}").body.decode()
    scored.zone.publish(
        "_dmarc.sender.example", "TXT", "v=DMARC1; p=reject; rua=mailto:a@sender.example"
    )
    scored.house.pass_time(400)  # cached answers expire
    second = make(browser)
    scored.send(second)
    body = browser.open(f"/tests/{second}").body.decode()
    plot = body[body.index('class="plot"') : body.index("</svg>", body.index('class="plot"'))]
    assert re.findall(r'href="/p/me/tests/(\w+)" aria-label="(\S+) of 10: ', plot) == [
        (first, "9.0"),
        (second, "10.0"),
    ]
    assert "Tests of sender.example" in browser.words
    assert f'href="/p/me/tests/{second}/changes/{first}"' in body


def test_two_reports_are_compared(scored: ScoredHouse, browser: Browser) -> None:
    """The comparison shows fixed, new and unchanged issues, in either order of the tests."""
    scored.zone.publish("_dmarc.sender.example", "TXT")
    first = make(browser)
    scored.send(first)
    scored.zone.publish(
        "_dmarc.sender.example", "TXT", "v=DMARC1; p=reject; rua=mailto:a@sender.example"
    )
    scored.house.pass_time(400)  # cached answers expire
    second = make(browser)
    scored.send(second, UNSIGNED)
    for path in (f"{first}/changes/{second}", f"{second}/changes/{first}"):
        body = browser.open(f"/tests/{path}").body.decode()
        assert body.index("Before: 9.0 of 10") < body.index("After: ")
        assert "1 fixed DMARC" in browser.words
        assert "1 new DKIM" in browser.words
        assert "still there" not in browser.words
        replies = browser.words.partition("Replies of receivers")[2]
        change = "Gmail, 5,000 or more mails a day: rejected 550 5.7.40 → rejected 550 5.7.30"
        assert change in replies
        assert "Gmail, every sender" not in replies
    pending = make(browser)
    assert browser.open(f"/tests/{first}/changes/{pending}").status == 400
    other = Browser(scored.house, "192.0.2.77")
    other.sign_up("bob")
    assert other.open(f"/tests/{first}/changes/{second}").status == 404

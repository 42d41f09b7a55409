"""Deliverability tests over REST (docs/reference/contract.md, "Deliverability tests")."""

from typing import Any
from urllib.parse import urlsplit

from twisted.logger import LogEvent

from mailcheck.checks.deliverability.content_filter import (
    FilterProblem,
    FilterRule,
    FilterVerdict,
    unavailable,
)
from mailcheck.config.options import RspamdOptions
from tests.house import config_in_memory, run
from tests.operations.scored_mails import MAIL, received
from tests.table import rows
from tests.web.scored_house import ScoredHouse


def test_an_address_is_generated(scored: ScoredHouse) -> None:
    """A test address is valid for an hour, and checkUrl is the path of its test."""
    made = scored.post("/test/generate").json
    assert made["email"] == scored.address(made["testId"])
    assert made["expiresAt"] == "2026-11-21T13:00:00.000Z"
    assert scored.house.get(made["checkUrl"]).json == {
        "testId": made["testId"],
        "status": "pending",
        "createdAt": "2026-11-21T12:00:00.000Z",
        "expiresAt": made["expiresAt"],
        "checkUrl": made["checkUrl"],
        "shareUrl": scored.get(made["testId"])["shareUrl"],
        "address": made["email"],
    }


def test_a_perfect_mail_gets_ten_points(scored: ScoredHouse) -> None:
    """The arrival of a perfect mail completes its test, with score, email and all five checks."""
    test_id = scored.generate()
    scored.house.pass_time(7)
    scored.send(test_id)
    found = scored.get(test_id)
    assert (found["status"], found["score"], found["deductions"]) == ("completed", 10.0, [])
    assert found["receivedAt"] == "2026-11-21T12:00:07.000Z"
    assert found["email"] == {
        "from": "ann@sender.example",
        "subject": "The minutes of Monday",
        "bounceAddress": "ann@sender.example",
    }
    assert {check["status"] for check in found["checks"].values()} == {"pass"}
    assert "address" not in found


def test_tests_are_listed(scored: ScoredHouse) -> None:
    """The list contains all tests, newest first, with score and email if known."""
    made = []
    for _ in range(3):
        made.append(scored.generate())
        scored.house.pass_time(1)
    scored.send(made[1])
    page = scored.house.get("/test?limit=2").json
    assert [one["testId"] for one in page["tests"]] == [made[2], made[1]]
    assert (page["total"], page["nextPage"]) == (3, 2)
    assert page["tests"][1]["score"] == 10.0
    assert page["tests"][1]["email"]["subject"] == "The minutes of Monday"
    assert "score" not in page["tests"][0]
    rest = scored.house.get("/test?limit=2&page=2").json
    assert [one["testId"] for one in rest["tests"]] == [made[0]]
    assert rest["nextPage"] is None
    assert scored.house.get("/test?page=9").json["tests"] == []


RECORDS = {"records": [{"name": "a.example", "type": "TXT", "value": "x"}]}


@rows("/recheck", "/raw", "/preflight")
def test_a_test_without_a_mail(scored: ScoredHouse, route: str) -> None:
    """Operations that need the mail are 400 without one, both pending and expired."""
    test_id = scored.generate()
    method = "GET" if route == "/raw" else "POST"
    options: dict[str, Any] = {"json": RECORDS} if route == "/preflight" else {}
    for _ in range(2):
        answer = scored.house.ask(method, f"/test/{test_id}{route}", **options).answer()
        assert answer.status == 400
        assert "no mail has arrived" in answer.json["error"]
        scored.house.pass_time(3600)


def test_a_wait_ends_with_the_report(scored: ScoredHouse) -> None:
    """A waiting request is answered as soon as the test is completed."""
    test_id = scored.generate()
    pending = scored.house.ask("GET", f"/test/{test_id}/wait")
    scored.content_filter.holds = True
    scored.send(test_id)
    assert not pending.is_answered
    assert scored.get(test_id)["status"] == "processing"
    assert "receivedAt" in scored.get(test_id)
    scored.content_filter.answer()
    answer = pending.answer()
    assert (answer.status, answer.json["score"]) == (200, 10.0)
    assert answer.json == scored.get(test_id)


def test_a_wait_that_times_out(scored: ScoredHouse) -> None:
    """A wait that times out is 408, with the reason and the status of the test."""
    test_id = scored.generate()
    pending = scored.house.ask("GET", f"/test/{test_id}/wait?timeout=5")
    scored.house.pass_time(4.9)
    assert not pending.is_answered
    scored.house.pass_time(0.2)
    answer = pending.answer()
    assert (answer.status, answer.json["status"]) == (408, "pending")
    assert scored.address(test_id) in answer.json["error"]
    scored.content_filter.holds = True
    scored.send(test_id)
    again = scored.house.ask("GET", f"/test/{test_id}/wait?timeout=1")
    scored.house.pass_time(1)
    assert again.answer().status == 408
    scored.content_filter.answer()


def test_a_stopping_daemon_cuts_waits_short(scored: ScoredHouse) -> None:
    """A wait that is interrupted by a shutdown is 503, not 408."""
    pending = scored.house.ask("GET", f"/test/{scored.generate()}/wait")
    scored.house.assembly.tests.feeds.close()
    assert pending.answer().status == 503


def test_the_raw_mail(scored: ScoredHouse) -> None:
    """The exact bytes are returned as text, in Base64, or as a download."""
    test_id, _ = scored.scored(received(raw_message=MAIL))
    path = f"/test/{test_id}/raw"
    assert scored.house.get(path).json == {
        "id": test_id,
        "raw": MAIL.decode(),
        "encoding": "utf-8",
    }
    saved = scored.house.get(path, headers={"Accept": "message/rfc822"})
    assert saved.body == MAIL
    assert f"{test_id}.eml" in saved.headers["content-disposition"]
    other, _ = scored.scored(received(raw_message=b"Subject: \xff\r\n\r\n"))
    assert scored.house.get(f"/test/{other}/raw").json["encoding"] == "base64"


def test_a_test_is_deleted(scored: ScoredHouse) -> None:
    """Test, report, mail and share link are deleted, and a wait for the test ends."""
    test_id, found = scored.scored()
    waited_for = scored.generate()
    waiting = scored.house.ask("GET", f"/test/{waited_for}/wait?timeout=20")
    for one in (test_id, waited_for):
        answer = scored.house.ask("DELETE", f"/test/{one}").answer()
        assert (answer.status, answer.json) == (200, {"success": True, "testId": one})
    assert waiting.answer().status == 404
    for path in ("", "/raw"):
        assert scored.house.get(f"/test/{test_id}{path}").status == 404
    assert scored.house.ask("DELETE", f"/test/{test_id}").answer().status == 404
    assert scored.house.get("/test").json["total"] == 0
    assert scored.house.open(urlsplit(found["shareUrl"]).path).answer().status == 404


def test_a_recheck(scored: ScoredHouse) -> None:
    """A recheck evaluates the same mail with current DNS. Until then there is no score."""
    scored.zone.publish("_dmarc.sender.example", "TXT")
    test_id, before = scored.scored()
    assert [one["id"] for one in before["deductions"]] == ["dmarc.no-record"]
    scored.zone.publish("_dmarc.sender.example", "TXT", "v=DMARC1; p=reject")
    scored.content_filter.holds = True
    started = scored.post(f"/test/{test_id}/recheck").json
    assert (started["success"], started["testId"]) == (True, test_id)
    assert scored.get(test_id)["status"] == "processing"
    again = scored.post(f"/test/{test_id}/recheck").json
    assert again["success"] is True
    assert "no second run was started" in again["message"]
    scored.content_filter.answer()
    assert len(scored.content_filter.judged) == 2
    assert scored.get(test_id)["score"] == 10.0


def test_a_report_with_rspamd() -> None:
    """The report has the result of rspamd under its name, also if there is no verdict."""
    config = config_in_memory(rspamd=RspamdOptions(url="http://127.0.0.1:11333"))
    scored = ScoredHouse(config=config)
    rspamd = scored.house.rspamd
    assert rspamd is not None
    rule = FilterRule("SHOUTS", 3.0, "Shouts")
    rspamd.outcome = FilterVerdict(3.0, 6.0, False, (rule,), "rspamd")
    _, found = scored.scored()
    shown = found["report"]["rspamd"]
    assert (found["score"], shown["inScore"], shown["spam"]) == (10.0, False, False)
    assert (shown["score"], shown["threshold"], shown["engine"]) == (3.0, 6.0, "rspamd")
    assert [one["name"] for one in shown["rules"]] == ["SHOUTS"]
    scored.content_filter.outcome = unavailable(FilterProblem.OFF)
    _, found = scored.scored()
    assert found["report"]["rspamd"]["inScore"] is True
    assert [(one["id"], one["points"]) for one in found["deductions"]] == [("rspamd.points", 2.0)]
    rspamd.outcome = unavailable(FilterProblem.TIMEOUT, "rspamd")
    _, found = scored.scored()
    shown = found["report"]["rspamd"]
    assert (found["score"], shown["problem"], shown["spam"]) == (10.0, "timeout", None)
    assert "rspamd did not finish in time" in shown["detail"]


def test_an_analysis_that_fails(scored: ScoredHouse, logged_failures: list[LogEvent]) -> None:
    """After three failed attempts the status is error. A recheck repairs the test."""
    good, scored.content_filter.outcome = scored.content_filter.outcome, None  # type: ignore[assignment]
    test_id = scored.generate()
    scored.send(test_id)
    for _ in range(5):
        scored.house.pass_time(5)
        run_round(scored)
    found = scored.get(test_id)
    assert (found["status"], "score" in found) == ("error", False)
    assert "the analysis failed" in found["failure"]
    assert scored.house.get("/test").json["tests"][0]["status"] == "error"
    assert len(logged_failures) == 3
    scored.content_filter.outcome = good
    assert scored.post(f"/test/{test_id}/recheck").json["success"] is True
    assert scored.get(test_id)["score"] == 10.0


def run_round(scored: ScoredHouse) -> None:
    """Run the periodic task of the daemon, which runs every ten seconds."""
    run(scored.house.assembly.tests.runner.renew())


def test_a_report_is_shared(scored: ScoredHouse) -> None:
    """ShareUrl shows the test without a key. A new link replaces the old one."""
    test_id, found = scored.scored()
    old = urlsplit(found["shareUrl"]).path
    answer = scored.house.open(old).answer()
    assert answer.json == found
    assert answer.headers["x-robots-tag"] == "noindex, nofollow"
    renewed = scored.post(f"/test/{test_id}/share").json
    new = urlsplit(renewed["shareUrl"]).path
    assert new != old
    assert scored.house.open(old).answer().status == 404
    assert scored.house.open(new).answer().json["shareUrl"] == renewed["shareUrl"]
    for forged in (new[:-1], new + "a", new[:-26] + "a" * 26, new + "/"):
        assert scored.house.open(forged).answer().status == 404


def test_a_message_of_the_inbox_is_scored(scored: ScoredHouse) -> None:
    """A stored message can be scored. The test remains after the message is deleted."""
    scored.deliver(scored.house.address("a"))
    message = scored.house.get("/inbox/messages").json["messages"][0]
    scored.content_filter.holds = True
    made = scored.post(f"/inbox/messages/{message['id']}/test").json
    assert (made["status"], made["receivedAt"]) == ("processing", message["receivedAt"])
    scored.house.ask("DELETE", f"/inbox/messages/{message['id']}").answer()
    scored.content_filter.answer()
    found = scored.house.get(made["checkUrl"]).json
    assert (found["status"], found["score"]) == ("completed", 10.0)
    assert found["email"]["subject"] == "The minutes of Monday"

"""wait_for_message: progress, timeouts and cancellation."""

from typing import Any

from tests.house import House, mail
from tests.table import rows
from tests.web.mcp.agent import (
    BOTH_MODES,
    EVENTS,
    JSON,
    STATELESS,
    Agent,
    failure_of,
    judge_output,
)


def outcome_of(agent: Agent, reply: Any) -> Any:
    """Return the structured content of a completed wait, checked by its schema."""
    result = reply.result
    judge_output(agent.tools()["wait_for_message"], result)
    return result["structuredContent"]


def parked(house: House) -> int:
    """Return the number of waits in the daemon."""
    return house.assembly.mail.feeds.count()


@BOTH_MODES
def test_mail_ends_a_wait(agent: Agent, house: House) -> None:
    """A waiting call returns the mail when it arrives, with code and link, as plain JSON."""
    reply = agent.call("wait_for_message", {"tag": "a"})
    house.pass_time(3)
    assert not reply.is_over
    house.receive(house.address("b"))
    assert not reply.is_over
    house.receive(house.address("a"))
    outcome = outcome_of(agent, reply)
    assert outcome["message"]["codes"] == ["482913"]
    assert outcome["message"]["bestLink"] == "https://example.com/confirm?t=7f3a"
    assert outcome["message"]["from"] == "Shop <shop@example.com>"
    assert outcome["message"]["hidesText"] is False
    assert outcome["cursor"] == "c2"
    assert reply.headers["content-type"] == JSON


def test_a_timeout_is_not_an_error(agent: Agent, house: House) -> None:
    """A timeout is a result, with arrived and rejected mail and how to continue."""
    reply = agent.call("wait_for_message", {"tag": "reset", "timeout": 5})
    house.receive(house.address("resets"), raw=mail(subject="Not this"))
    house.pass_time(5)
    outcome = outcome_of(agent, reply)
    assert outcome["timedOut"] is True
    assert outcome["message"] is None
    assert outcome["waited"] == 5.0
    (seen,) = outcome["seen"]
    assert seen["subject"] == "Not this"
    assert "its tag is 'resets'" in seen["reasons"][0]
    again = agent.call("wait_for_message", {"tag": "a", "after": outcome["cursor"]})
    house.receive(house.address("a"), raw=mail(subject="At last"))
    assert outcome_of(agent, again)["message"]["subject"] == "At last"


def test_several_mails_are_waited_for(agent: Agent, house: House) -> None:
    """With count, all mails are returned together. Fewer are a timeout with their number."""
    reply = agent.call("wait_for_message", {"tagPrefix": "run-", "count": 2, "timeout": 9})
    house.receive(house.address("run-a"), raw=mail(subject="One"))
    house.receive(house.address("other"))
    house.receive(house.address("run-b"), raw=mail(subject="Two"))
    result = reply.result
    outcome = outcome_of(agent, reply)
    assert [one["subject"] for one in outcome["messages"]] == ["One", "Two"]
    assert (outcome["message"], outcome["cursor"], outcome["timedOut"]) == (None, "c3", False)
    text = result["content"][0]["text"]
    assert text.startswith("All 2 mails arrived, oldest first. Next: after=c3")
    assert "c3 shop@example.com: Two [482913]" in text
    reply = agent.call("wait_for_message", {"count": 2, "after": "c2", "timeout": 1})
    house.pass_time(1)
    outcome = outcome_of(agent, reply)
    assert outcome["timedOut"] is True
    assert outcome["hint"].startswith("1 of 2 matching messages")
    assert outcome["cursor"] == "c2"


def test_none_is_expected(agent: Agent, house: House) -> None:
    """With none, an arriving or rejected mail is a result, not a failure."""
    quiet = agent.call("wait_for_message", {"tag": "a", "none": True})
    house.pass_time(5)
    outcome = outcome_of(agent, quiet)
    assert (outcome["none"], outcome["timedOut"], outcome["waited"]) == (True, False, 5.0)
    arrival = agent.call("wait_for_message", {"tag": "a", "none": True, "timeout": 9})
    house.receive(house.address("a"), raw=mail(subject="Unwanted"))
    outcome = outcome_of(agent, arrival)
    assert (outcome["none"], outcome["message"]["subject"]) == (False, "Unwanted")
    assert "none was expected" in arrival.result["content"][0]["text"]
    refused = agent.call("wait_for_message", {"tag": "a", "none": True, "after": "c1"})
    house.refuse("a")
    outcome = outcome_of(agent, refused)
    assert (outcome["none"], outcome["message"]) == (False, None)
    assert outcome["rejected"][0]["reason"] == "too large"
    assert "rejected" in outcome["hint"]
    assert "count" in agent.fail("wait_for_message", none=True, count=2)


def test_a_match_before_the_request_is_named(agent: Agent, house: House) -> None:
    """Mail from just before a wait without a cursor does not match, but the hint refers to it."""
    house.receive(house.address("a"), raw=mail(subject="Early"))
    house.pass_time(4)
    reply = agent.call("wait_for_message", {"tag": "a", "timeout": 1})
    house.pass_time(1)
    result = reply.result
    assert "arrived 4.0 s before this request" in result["structuredContent"]["hint"]
    text = result["content"][0]["text"]
    assert "repeat with after=c0" in text
    assert "Next" not in text
    assert agent.use("wait_for_message", after="c0")["message"]["subject"] == "Early"


def test_every_wait_is_answered_before_clients_give_up(agent: Agent, house: House) -> None:
    """A wait of 60 s answers within 55 s, with its duration, and can be continued."""
    reply = agent.call("wait_for_message", {"timeout": 60})
    house.pass_time(53)
    assert not reply.is_over
    house.pass_time(2)
    outcome = outcome_of(agent, reply)
    assert outcome["timedOut"] is True
    assert 50 < outcome["waited"] <= 55
    assert outcome["cursor"]


@BOTH_MODES
def test_progress_comes_every_ten_seconds_at_least(agent: Agent, house: House) -> None:
    """With a progress token, progress is sent as events, with increasing numbers."""
    reply = agent.call("wait_for_message", {"timeout": 60}, progress_token="mine")
    silent, heard = 0, 0
    for _ in range(55):
        house.pass_time(1)
        silent = 0 if len(reply.messages) > heard else silent + 1
        heard = len(reply.messages)
        assert silent < 10
    assert reply.is_stream
    assert reply.headers["x-accel-buffering"] == "no"
    assert "no-transform" in reply.headers["cache-control"]
    steps = [progress["progress"] for progress in reply.progress]
    assert steps == sorted(set(steps))
    assert len(steps) >= 10
    assert {progress["progressToken"] for progress in reply.progress} == {"mine"}
    assert {progress["total"] for progress in reply.progress} == {54.0}
    assert outcome_of(agent, reply)["timedOut"] is True


@rows(0, 7, "", "mine")
def test_the_token_comes_back_as_it_was(agent: Agent, house: House, token: object) -> None:
    """A token is a string or an integer, and is repeated exactly."""
    reply = agent.call("wait_for_message", {"timeout": 2}, progress_token=token)
    house.pass_time(1)
    assert reply.progress[0]["progressToken"] == token
    house.pass_time(2)
    assert reply.is_over


@rows(True, 1.5, ["x"], {})
def test_an_invalid_token_is_ignored(agent: Agent, house: House, token: object) -> None:
    """A token of another type is ignored."""
    reply = agent.call("wait_for_message", {"timeout": 2}, progress_token=token)
    house.pass_time(2)
    assert not reply.is_stream
    assert outcome_of(agent, reply)["timedOut"] is True


@BOTH_MODES
def test_mail_ends_a_stream_with_the_answer(agent: Agent, house: House) -> None:
    """The last event is the answer, and no progress follows it."""
    reply = agent.call("wait_for_message", {}, progress_token=1)
    for _ in range(2):
        house.pass_time(5)
    house.receive(house.address())
    assert outcome_of(agent, reply)["message"]["codes"] == ["482913"]
    assert [("result" in message) for message in reply.messages] == [False, False, True]
    house.pass_time(60)
    assert len(reply.messages) == 3


def test_a_fast_answer_is_plain_json(agent: Agent, house: House) -> None:
    """A call that is answered at once returns plain JSON, even with a progress token."""
    house.receive(house.address())
    reply = agent.call("wait_for_message", {"after": "c0"}, progress_token=1)
    assert reply.headers["content-type"] == JSON
    assert outcome_of(agent, reply)["timedOut"] is False


def test_comments_keep_a_quiet_connection_open(agent: Agent, house: House) -> None:
    """A call that takes 15 s becomes a stream, with a comment every 15 s."""
    reply = agent.call("wait_for_message", {"timeout": 50})
    house.pass_time(14)
    assert not reply.is_answered
    house.pass_time(1)
    assert reply.is_stream
    for _ in range(2):
        house.pass_time(15)
    assert bytes(reply.body).count(b": ping\r\n\r\n") == 3
    house.receive(house.address())
    assert outcome_of(agent, reply)["message"]["codes"] == ["482913"]


def test_a_client_without_events_gets_json(agent: Agent, house: House) -> None:
    """A client that does not accept events gets plain JSON, however long it takes."""
    reply = agent.request(
        "tools/call",
        {"name": "wait_for_message", "arguments": {}, "_meta": {"progressToken": 1}},
        {"Accept": JSON},
    )
    house.pass_time(29)
    assert not reply.is_answered
    house.pass_time(1)
    assert reply.headers["content-type"] == JSON
    assert outcome_of(agent, reply)["timedOut"] is True


@BOTH_MODES
@rows((0, None), (0, 1), (20, None), (20, 1))
def test_a_disconnect_leaves_no_waiter(
    agent: Agent, house: House, seconds: float, token: object
) -> None:
    """A disconnect ends the wait, before or during a stream, and leaves no timer."""
    reply = agent.call("wait_for_message", {"timeout": 60}, progress_token=token)
    house.pass_time(seconds)
    assert parked(house) == 1
    reply.hang_up()
    assert parked(house) == 0
    assert house.clock.getDelayedCalls() == []
    house.receive(house.address())
    house.pass_time(60)
    assert b'"result"' not in reply.body


@rows(({}, 202), ({"progress_token": 1}, 200))
def test_a_notification_cancels_a_call(house: House, more: dict[str, Any], status: int) -> None:
    """notifications/cancelled in the same session ends a call or its stream, without an answer."""
    agent = Agent(house)
    session = {"Mcp-Session-Id": "one"}
    reply = agent.call("wait_for_message", {"timeout": 60}, session, request_id=7, **more)
    house.pass_time(6)
    other = agent.call("wait_for_message", {}, {"Mcp-Session-Id": "two"}, request_id=7)
    assert parked(house) == 2
    noted = agent.post(cancellation(7), session)
    assert (noted.status, bytes(noted.body)) == (202, b"")
    assert parked(house) == 1
    assert (reply.is_over, reply.status) == (True, status)
    assert all("method" in message for message in reply.messages)
    assert not other.is_over
    house.receive(house.address())
    assert outcome_of(agent, other)["timedOut"] is False


def test_an_id_that_is_used_again_means_the_newer_call(house: House) -> None:
    """If two calls have the same id, a cancellation after the older one affects the newer one."""
    agent = Agent(house)
    session = {"Mcp-Session-Id": "one"}
    older = agent.call("wait_for_message", {"tag": "a"}, session, request_id=7)
    newer = agent.call("wait_for_message", {"tag": "b"}, session, request_id=7)
    house.receive(house.address("a"))
    assert outcome_of(agent, older)["timedOut"] is False
    agent.post(cancellation(7), session)
    assert newer.is_over
    assert parked(house) == 0


def cancellation(request_id: object) -> dict[str, Any]:
    """Create the notification that cancels a request."""
    return {
        "jsonrpc": "2.0",
        "method": "notifications/cancelled",
        "params": {"requestId": request_id, "reason": "the user said so"},
    }


@rows(
    (8, {"Mcp-Session-Id": "one"}),
    ("7", {"Mcp-Session-Id": "one"}),
    (None, {"Mcp-Session-Id": "one"}),
    ([7], {"Mcp-Session-Id": "one"}),
    (7, {"Mcp-Session-Id": "two"}),
    (7, {}),
    (7, {"Mcp-Session-Id": "one", "MCP-Protocol-Version": STATELESS}),
)
def test_other_calls_are_not_cancelled(
    house: House, request_id: object, headers: dict[str, str | None]
) -> None:
    """Another id, another or no session, or a stateless client cancels no call."""
    agent = Agent(house)
    reply = agent.call("wait_for_message", {}, {"Mcp-Session-Id": "one"}, request_id=7)
    assert agent.post(cancellation(request_id), headers).status == 202
    assert parked(house) == 1
    house.receive(house.address())
    assert outcome_of(agent, reply)["timedOut"] is False


def test_calls_of_other_accounts_are_not_cancelled(house: House) -> None:
    """A session id of another account does not cancel a call."""
    agent = Agent(house)
    session = {"Mcp-Session-Id": "one"}
    reply = agent.call("wait_for_message", {}, session, request_id=7)
    stranger = Agent(house, house.issue_key(house.add_account("stranger")))
    stranger.post(cancellation(7), session)
    assert parked(house) == 1
    agent.post(cancellation(7), session)
    assert reply.is_over
    assert parked(house) == 0


@BOTH_MODES
def test_a_restart_returns_the_cursor(agent: Agent, house: House) -> None:
    """An interrupted wait fails with the cursor to continue from, in or before a stream."""
    house.receive(house.address("other"))
    early = agent.call("wait_for_message", {"tag": "a"})
    late = agent.call("wait_for_message", {"tag": "a"}, progress_token=1)
    house.pass_time(1)
    house.assembly.mail.feeds.close()
    for reply in (early, late):
        assert "the wait was interrupted" in failure_of(reply)
        assert "pass after=c1" in failure_of(reply)
    assert late.headers["content-type"] == EVENTS

"""The tools for deliverability tests."""

import pytest

from tests.web.mcp.agent import STATELESS, Agent, failure_of, judge_output
from tests.web.scored_house import ScoredHouse


@pytest.fixture
def agent(scored: ScoredHouse) -> Agent:
    """A stateless agent."""
    return Agent(scored.house, version=STATELESS)


def test_from_address_to_report(agent: Agent, scored: ScoredHouse) -> None:
    """A wait for the address of generate_test returns the report with the numbers of REST."""
    made = agent.use("generate_test")
    assert made == {
        "testId": made["testId"],
        "address": scored.address(made["testId"]),
        "expiresAt": "2026-11-21T13:00:00.000Z",
    }
    reply = agent.call("wait_for_test", {"testId": made["testId"]})
    scored.house.pass_time(3)
    assert not reply.is_over
    scored.send(made["testId"])
    result = reply.result
    judge_output(agent.tools()["wait_for_test"], result)
    found = result["structuredContent"]
    same = scored.get(made["testId"])
    assert (found["timedOut"], found["status"], found["score"]) == (False, "completed", 10.0)
    assert not {"hint", "checks", "deductions"} & set(found)
    assert found["shareUrl"] == same["shareUrl"]
    told = f"test {made['testId']} is completed: score 10.0 of 10, 5 of 5 checks pass"
    assert found["summary"] == told
    assert result["content"][0]["text"].startswith(told)


def test_deductions_come_with_fixes(agent: Agent, scored: ScoredHouse) -> None:
    """Deductions contain the fix and the record to publish."""
    scored.zone.publish("_dmarc.sender.example", "TXT")
    test_id, same = scored.scored()
    found = agent.use("wait_for_test", testId=test_id)
    assert found["deductions"] == same["deductions"]
    (deduction,) = found["deductions"]
    assert deduction["record"]["name"] == "_dmarc.sender.example"
    text = agent.call("wait_for_test", {"testId": test_id}).result["content"][0]["text"]
    assert '"id":"dmarc.no-record"' in text
    (check,) = found["checks"]
    assert (check["name"], check["result"]) == ("dmarc", same["checks"]["dmarc"]["result"])
    replies = same["report"]["replies"]
    assert len(found["replies"]) < len(replies)
    named = [name for one in found["replies"] for name in one.partition(": ")[0].split(", ")]
    assert sorted(named) == sorted(one["receiver"] for one in replies)
    assert any(
        one.startswith("gmail, ") and "accept 250 2.0.0 OK" in one for one in found["replies"]
    )
    assert "reject 550 5.7.40 Your message was blocked" in text


def test_a_timeout_is_not_an_error(agent: Agent, scored: ScoredHouse) -> None:
    """A timeout contains what the test waits for, and the same call continues."""
    test_id = agent.use("generate_test")["testId"]
    reply = agent.call("wait_for_test", {"testId": test_id, "timeout": 5})
    scored.house.pass_time(5)
    found = reply.result["structuredContent"]
    judge_output(agent.tools()["wait_for_test"], reply.result)
    assert (found["timedOut"], found["status"], found["score"]) == (True, "pending", None)
    assert scored.address(test_id) in found["hint"]
    scored.house.pass_time(3600)
    found = agent.use("wait_for_test", testId=test_id)
    assert (found["timedOut"], found["status"]) == (False, "expired")
    assert "generate_test" in found["hint"]


def test_tests_of_others_are_not_found(scored: ScoredHouse) -> None:
    """A test of another account is not found, and an invalid argument is explained."""
    test_id, _ = scored.scored()
    stranger = Agent(scored.house, scored.stranger())
    assert stranger.fail("wait_for_test", testId=test_id) == stranger.fail(
        "wait_for_test", testId="none"
    )
    assert "testId is missing" in failure_of(stranger.call("wait_for_test", {}))
    assert "1 to 60" in failure_of(
        stranger.call("wait_for_test", {"testId": test_id, "timeout": 99})
    )

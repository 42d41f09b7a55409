"""Long waits as tasks (SEP-2663), which any daemon can answer."""

import json
from typing import Any

import pytest
from twisted.internet.defer import Deferred

from mailcheck.assembly.doors.agents import build_tools
from mailcheck.operations.domains.watches.collect_facts import NullCache
from mailcheck.web.mcp.dispatch import Dispatcher, ReceivedRequest
from mailcheck.web.mcp.json_rpc import Request
from mailcheck.web.mcp.protocol_modes import Extension, ProtocolMode
from mailcheck.web.mcp.tasks import KEPT, POLL_SECONDS, Tasks
from mailcheck.web.mcp.transport import NoProgress
from tests.house import House, mail, result_of, run
from tests.table import rows
from tests.web.mcp.agent import HANDSHAKE, STATELESS, TASKS, Agent, Reply, judge_output
from tests.web.mcp.test_mcp_limits import left

TASK_FIELDS = {
    "taskId",
    "status",
    "createdAt",
    "lastUpdatedAt",
    "ttlMs",
    "pollIntervalMs",
}


@pytest.fixture
def agent(house: House) -> Agent:
    """A client that supports tasks."""
    return Agent(house, version=STATELESS, extensions=TASKS)


def begin(agent: Agent, **arguments: Any) -> str:
    """Begin a long wait, and return the id of its task."""
    reply = agent.call("wait_for_message", {"timeout": 600, **arguments})
    agent.house.pass_time(0)
    result = reply.result
    assert result["resultType"] == "task"
    assert set(result) - {"resultType", "_meta"} == TASK_FIELDS
    assert result["status"] == "working"
    return str(result["taskId"])


def poll(agent: Agent, task_id: str, seconds: float = POLL_SECONDS) -> Any:
    """Poll a task, and wait for the answer."""
    reply = agent.request("tasks/get", {"taskId": task_id})
    agent.house.pass_time(0)
    if not reply.is_over:
        agent.house.pass_time(seconds)
    result = reply.result
    assert result["resultType"] == "complete"
    ends = {"result"} if result["status"] == "completed" else set()
    assert set(result) - {"resultType", "_meta", "statusMessage"} == TASK_FIELDS | ends
    return result


def outcome_of(agent: Agent, state: Any) -> Any:
    """Return the structured content of a completed wait, checked by its schema."""
    assert state["status"] == "completed"
    assert state["result"]["isError"] is False
    judge_output(agent.tools()["wait_for_message"], state["result"] | {"_meta": state["_meta"]})
    return state["result"]["structuredContent"]


def waiting(house: House) -> int:
    """Return the number of parked waits."""
    return house.assembly.mail.feeds.count()


def test_one_call_waits_for_ten_minutes(agent: Agent, house: House) -> None:
    """A mail that comes after nine minutes ends the task of one call at once."""
    task_id = begin(agent, tag="a")
    for _ in range(9):
        house.pass_time(54)
        assert poll(agent, task_id)["status"] == "working"
    reply = agent.request("tasks/get", {"taskId": task_id})
    assert not reply.is_over
    house.receive(house.address("b"))
    assert not reply.is_over
    house.receive(house.address("a"), raw=mail(subject="At last"))
    outcome = outcome_of(agent, reply.result)
    assert outcome["message"]["subject"] == "At last"
    assert waiting(house) == 0


def test_a_mail_between_two_polls_is_found(agent: Agent, house: House) -> None:
    """Nothing runs between polls, and the next one finds what has come since the call."""
    task_id = begin(agent, tag="a")
    assert waiting(house) == 0
    house.receive(house.address("a"))
    house.pass_time(30)
    first = poll(agent, task_id)
    assert outcome_of(agent, first)["message"]["codes"] == ["482913"]
    again = poll(agent, task_id)
    assert outcome_of(agent, again)["message"]["id"] == outcome_of(agent, first)["message"]["id"]
    assert again["lastUpdatedAt"] == first["lastUpdatedAt"]


def test_a_mail_that_is_there_needs_no_task(agent: Agent, house: House) -> None:
    """A long wait whose mail has arrived already is answered like any other call."""
    house.receive(house.address("a"))
    reply = agent.call("wait_for_message", {"timeout": 600, "after": "c0"})
    assert reply.result["resultType"] == "complete"
    assert reply.result["structuredContent"]["message"]["codes"] == ["482913"]


def test_the_end_of_the_time_is_a_result(agent: Agent, house: House) -> None:
    """After its time, a task is completed with what a timed-out wait says, for the whole time."""
    house.receive(house.address("old"))
    task_id = begin(agent, tag="reset", timeout=300)
    house.pass_time(100)
    house.receive(house.address("resets"), raw=mail(subject="Not this"))
    house.pass_time(198)
    state = poll(agent, task_id)
    outcome = outcome_of(agent, state)
    assert (outcome["timedOut"], outcome["message"]) == (True, None)
    assert outcome["hint"].startswith("no matching message arrived within 300 s")
    assert outcome["seen"][0]["subject"] == "Not this"
    assert outcome["seen"][0]["reasons"] == ["its tag is 'resets', not 'reset'"]
    house.receive(house.address("reset"))
    assert poll(agent, task_id)["status"] == "completed"


def test_none_is_expected_for_minutes(agent: Agent, house: House) -> None:
    """A task for none is completed at its end, or by a mail within its time."""
    quiet, noisy = (begin(agent, tag=tag, none=True, timeout=120) for tag in "ab")
    house.pass_time(60)
    assert poll(agent, quiet)["status"] == "working"
    house.receive(house.address("b"), raw=mail(subject="Unwanted"))
    found = outcome_of(agent, poll(agent, noisy))
    assert (found["none"], found["message"]["subject"]) == (False, "Unwanted")
    house.pass_time(60)
    house.receive(house.address("a"), raw=mail(subject="Too late"))
    assert outcome_of(agent, poll(agent, quiet))["none"] is True


def test_several_mails_are_one_task(agent: Agent, house: House) -> None:
    """A task with count ends when all mails are there."""
    task_id = begin(agent, tagPrefix="run-", count=2)
    house.receive(house.address("run-a"))
    assert poll(agent, task_id)["status"] == "working"
    house.receive(house.address("run-b"))
    assert len(outcome_of(agent, poll(agent, task_id))["messages"]) == 2


def test_polls_do_not_count(house: House) -> None:
    """A task costs one request of the key, however often it is polled or cancelled."""
    key = house.issue_key(house.account, per_minute=2, per_day=9)
    agent = Agent(house, key, STATELESS, TASKS)
    task_id = begin(agent)
    for method in ["tasks/get"] * 5 + ["tasks/update", "tasks/cancel"]:
        reply = agent.request(method, {"taskId": task_id})
        house.pass_time(POLL_SECONDS)
        assert left(reply)[1] == 8


@rows(HANDSHAKE, STATELESS)
def test_plain_calls_wait_a_minute_at_most(house: House, version: str) -> None:
    """Without the extension, timeout is at most 60, and nothing of tasks is offered."""
    agent = Agent(house, version=version)
    assert "from 1 to 60" in agent.fail("wait_for_message", timeout=61)
    for name in ("wait_for_message", "wait_for_test"):
        assert agent.tools()[name]["inputSchema"]["properties"]["timeout"]["maximum"] == 60
    for method in ("tasks/get", "tasks/update", "tasks/cancel"):
        reply = agent.request(method, {"taskId": "x"})
        if version == HANDSHAKE:
            assert reply.error["code"] == -32601
        else:
            assert (reply.status, reply.error["code"]) == (400, -32021)
            required: Any = {"extensions": {"io.modelcontextprotocol/tasks": {}}}
            assert reply.error["data"] == {"requiredCapabilities": required}


def test_clients_of_tasks_learn_the_limit(agent: Agent, house: House) -> None:
    """With the extension, timeout may be 600 s, and up to 60 s the call is an ordinary one."""
    for name in ("wait_for_message", "wait_for_test"):
        assert agent.tools()[name]["inputSchema"]["properties"]["timeout"]["maximum"] == 600
    capabilities = agent.request("server/discover").result["capabilities"]
    assert capabilities["extensions"] == {"io.modelcontextprotocol/tasks": {}}
    assert "from 1 to 600" in agent.fail("wait_for_message", timeout=601)
    reply = agent.call("wait_for_message", {"timeout": 60})
    house.pass_time(55)
    assert reply.result["resultType"] == "complete"
    assert "cursor" in agent.fail("wait_for_message", timeout=600, after="c9")


def test_a_cancelled_task_stays_cancelled(agent: Agent, house: House) -> None:
    """After tasks/cancel, a mail does not complete the task; nor does a cancel undo a result."""
    task_id, other = begin(agent, tag="a"), begin(agent, tag="b")
    cancelled = agent.request("tasks/cancel", {"taskId": task_id}).result
    assert set(cancelled) == {"resultType", "_meta"}
    house.receive(house.address("a"))
    house.receive(house.address("b"))
    assert poll(agent, task_id)["status"] == "cancelled"
    assert poll(agent, other)["status"] == "completed"
    agent.request("tasks/cancel", {"taskId": other})
    assert poll(agent, other)["status"] == "completed"


def test_a_task_ends_with_its_lifetime(agent: Agent, house: House) -> None:
    """After ttlMs a task is unknown. An unknown task is an error of the parameters."""
    task_id = begin(agent, timeout=100)
    house.pass_time(100 + KEPT / 1000)
    for unknown in (task_id, "x", None, 7, ["x"]):
        params = {} if unknown is None else {"taskId": unknown}
        for method in ("tasks/get", "tasks/update", "tasks/cancel"):
            reply = agent.request(method, params, {"Mcp-Name": str(unknown)})
            assert reply.error["code"] in (-32602, -32020)


@rows("another key", "another account")
def test_a_task_belongs_to_its_key(house: House, who: str) -> None:
    """Another key cannot see or cancel a task, of the same account or another one."""
    agent = Agent(house, version=STATELESS, extensions=TASKS)
    task_id = begin(agent)
    account = house.account if who == "another key" else house.add_account("other")
    stranger = Agent(house, house.issue_key(account), STATELESS, TASKS)
    for method in ("tasks/get", "tasks/update", "tasks/cancel"):
        assert stranger.request(method, {"taskId": task_id}).error["code"] == -32602
    assert poll(agent, task_id)["status"] == "working"


def test_a_task_survives_a_restart(agent: Agent, house: House) -> None:
    """A poll of a daemon that stops says that the task goes on, and names the reason."""
    task_id = begin(agent)
    reply = agent.request("tasks/get", {"taskId": task_id})
    house.assembly.mail.feeds.close()
    state = reply.result
    assert state["status"] == "working"
    assert "restarting" in state["statusMessage"]


def test_a_result_that_cannot_be_read_now(agent: Agent, house: House) -> None:
    """A poll of a completed task whose result cannot be read is 503, not a state without it."""
    task_id = begin(agent, tag="a")
    house.receive(house.address("a"))
    assert poll(agent, task_id)["status"] == "completed"
    house.assembly.mail.feeds.close()
    assert agent.request("tasks/get", {"taskId": task_id}).status == 503


def test_without_shared_state_a_call_waits(house: House) -> None:
    """While daemons share no state, a long wait is an ordinary call, answered within 55 seconds."""
    runtime = house.assembly.runtime
    chance = runtime.clocks
    tasks = Tasks(NullCache(), runtime.now, chance.random_bytes)
    dispatcher = Dispatcher(build_tools(house.assembly), tasks, chance.random_bytes, "")
    call = {"name": "wait_for_message", "arguments": {"timeout": 600}}
    received = ReceivedRequest(
        Request(1, "tools/call", call),
        ProtocolMode.STATELESS,
        frozenset({Extension.TASKS}),
        (),
        caller=run(house.assembly.accounts.authenticator.identify(house.key)),
        received_at=runtime.now(),
        urls=runtime.urls,
        channel=NoProgress(),
    )
    answer = Deferred.fromCoroutine(dispatcher.respond(received))
    house.pass_time(0)
    assert not answer.called
    house.pass_time(54)
    result = json.loads(result_of(answer))
    assert (result["resultType"], result["structuredContent"]["timedOut"]) == ("complete", True)


def test_a_report_is_waited_for_as_a_task(agent: Agent, house: House) -> None:
    """A long wait for a test is a task until the address expires."""
    test_id = agent.use("generate_test")["testId"]
    reply = agent.call("wait_for_test", {"testId": test_id, "timeout": 600})
    house.pass_time(0)
    task_id = reply.result["taskId"]
    assert poll(agent, task_id)["status"] == "working"
    run(house.assembly.tests.operations.manage.delete(house.account.id, test_id))
    state = poll(agent, task_id)
    assert (state["status"], state["result"]["isError"]) == ("completed", True)


def test_a_revoked_key_ends_a_poll(agent: Agent, house: House) -> None:
    """A parked poll is answered with 401 as soon as its key is revoked."""
    task_id = begin(agent)
    reply: Reply = agent.request("tasks/get", {"taskId": task_id})
    (key,) = run(house.assembly.accounts.keep.list_keys(house.account))
    run(house.assembly.accounts.keep.revoke_key(key.id))
    run(house.assembly.accounts.ended_access.check())
    assert reply.status == 401


def test_long_arguments_are_refused(agent: Agent) -> None:
    """The arguments of a task are stored, so their length is limited."""
    headers = [f"x-{number}: {'y' * 300}" for number in range(8)]
    assert "at most 2000 characters" in agent.fail("wait_for_message", timeout=600, header=headers)


def test_both_extensions_are_declared_together(house: House) -> None:
    """A client may use Apps and tasks at once."""
    extensions = {**TASKS, Extension.UI: {"mimeTypes": ["text/html;profile=mcp-app"]}}
    tool = Agent(house, version=STATELESS, extensions=extensions).tools()["wait_for_message"]
    assert tool["_meta"]["ui"]["resourceUri"]
    assert tool["inputSchema"]["properties"]["timeout"]["maximum"] == 600

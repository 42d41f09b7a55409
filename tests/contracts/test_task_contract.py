"""The contract of `Tasks`, wherever the state of daemons is stored."""

import pytest
from pytest_twisted import ensureDeferred

from mailcheck.core.accounts import Caller, RequestLimits
from mailcheck.core.cursors import Position
from mailcheck.core.identifiers import AccountId, KeyId
from mailcheck.core.instants import Instant
from mailcheck.web.mcp.json_rpc import RpcError
from mailcheck.web.mcp.tasks import Task, Tasks, TaskStatus
from tests.contracts.conftest import PersistentState

NOW = Instant(1_700_000_000_000)
CALLER = Caller(AccountId("account"), KeyId("key"), RequestLimits(60, 1_000))


def daemon(state: PersistentState) -> Tasks:
    """The tasks as a daemon sees them."""
    return Tasks(state.memory, lambda: NOW, lambda length: b"7" * length)


@ensureDeferred
async def test_any_daemon_finds_a_task(persistent_state: PersistentState) -> None:
    """A daemon finds a task that another has stored, unchanged, and sees its end."""
    here, there = daemon(persistent_state), daemon(persistent_state)
    task = Task(
        here.new_id(),
        CALLER.account_id,
        CALLER.key_id,
        "wait_for_message",
        arguments='{"subject": "Grüße"}',
        position=Position(7),
        created_at=NOW,
        seconds=600.0,
        updated_at=NOW,
    )
    assert await here.keep(task)
    assert await there.find(CALLER, task.id) == task
    ended = await there.end(task, TaskStatus.CANCELLED)
    assert ended.status is TaskStatus.CANCELLED
    assert await here.end(task, TaskStatus.COMPLETED) == ended
    assert await here.find(CALLER, task.id) == ended
    with pytest.raises(RpcError):
        await there.find(CALLER, "another")

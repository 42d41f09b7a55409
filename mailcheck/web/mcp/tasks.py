"""Tasks (SEP-2663): calls of tools that wait for minutes. Clients poll their state.

A task is a call and its start. It does not run between two polls: each poll reads what has arrived
since the start. So any daemon can answer it, and a restart ends no task. A poll waits for a moment:
a mail is answered at once, and clients that poll too often are slowed down.
"""

from enum import StrEnum

from msgspec import Struct
from msgspec.structs import replace

from mailcheck.api.shapes import JsonObject, JsonValue
from mailcheck.core.accounts import Caller
from mailcheck.core.cursors import Position
from mailcheck.core.identifiers import AccountId, KeyId, RandomBytes
from mailcheck.core.instants import MINUTE, SECOND, Instant, format_instant
from mailcheck.operations.cached_values import CachedValues
from mailcheck.ports.clocks import Now
from mailcheck.ports.cluster import Memory
from mailcheck.web.mcp.json_rpc import INVALID_PARAMS, RpcError

POLL_INTERVAL = 1_000
"""Milliseconds that a client should pause between two polls."""

POLL_SECONDS = 5.0
"""Maximum number of seconds that a poll waits."""

KEPT = 10 * MINUTE
"""Milliseconds for which the result of a task is available after its time is over."""

MAX_ARGUMENTS = 2_000
"""Maximum number of characters of the arguments of a task, as JSON."""

ID_BYTES = 16


class TaskStatus(StrEnum):
    """The status of a task. The last two are final."""

    WORKING = "working"
    COMPLETED = "completed"
    CANCELLED = "cancelled"


class Task(Struct, frozen=True):
    """A call that goes on: its caller, tool, arguments and start.

    ``id`` cannot be guessed. ``position`` is the newest position of the inbox at the start, and
    ``seconds`` the duration.
    """

    id: str
    account_id: AccountId
    key_id: KeyId
    tool: str
    arguments: str
    position: Position | None
    created_at: Instant
    seconds: float
    updated_at: Instant
    status: TaskStatus = TaskStatus.WORKING

    @property
    def lifetime(self) -> int:
        """Milliseconds from the start for which the task is stored."""
        return int(self.seconds * SECOND) + KEPT


class Tasks:
    """Stores tasks in the state that all daemons share. Only the key of a task can find it."""

    def __init__(self, memory: Memory, now: Now, random_bytes: RandomBytes) -> None:
        self._values: CachedValues[Task] = CachedValues(memory, "task", Task)
        self._now = now
        self._random_bytes = random_bytes

    def new_id(self) -> str:
        """Return the id of a new task."""
        return self._random_bytes(ID_BYTES).hex()

    async def keep(self, task: Task) -> bool:
        """Store a task until the end of its lifetime. Return whether all daemons can find it."""
        left = task.created_at + task.lifetime - self._now()
        return left > 0 and await self._values.put(task.id, task, left)

    async def find(self, caller: Caller, task_id: object) -> Task:
        """Return a task of a caller.

        :raises RpcError: the key has no such task, or it has expired.
        """
        task = await self._values.get(task_id) if isinstance(task_id, str) else None
        if task is None or (task.account_id, task.key_id) != (caller.account_id, caller.key_id):
            raise RpcError(
                INVALID_PARAMS,
                "Task not found: it has expired or never existed. Call the tool again, with the "
                "cursor that you waited from",
            )
        return task

    async def end(self, task: Task, status: TaskStatus) -> Task:
        """Store that a task has ended, and return it. The first end is final."""
        current = await self._values.get(task.id) or task
        if current.status is not TaskStatus.WORKING:
            return current
        ended = replace(task, status=status, updated_at=self._now())
        await self.keep(ended)
        return ended


def render_task(task: Task, message: str = "") -> dict[str, JsonValue]:
    """Render a task without its result."""
    said: JsonObject = {"statusMessage": message} if message else {}
    return {
        "taskId": task.id,
        "status": task.status.value,
        **said,
        "createdAt": format_instant(task.created_at),
        "lastUpdatedAt": format_instant(task.updated_at),
        "ttlMs": task.lifetime,
        "pollIntervalMs": POLL_INTERVAL,
    }

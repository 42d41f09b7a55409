"""Whether the daemon can work: a write of its own to the store, and an answer of each child."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IReactorTime
from twisted.python.failure import Failure

from mailcheck.core.conditions import Conditions
from mailcheck.core.errors import ExpectedFailure
from mailcheck.ops.watch import DISK

INTERVAL = 5.0
"""Seconds between writes; one that has no answer by then is a store that does not take it."""

LONGEST_SILENCE = 10.0
"""Seconds that a child may be at one thing: the slowest that a mail was made to be read is as
long. One that does not come back at all is replaced later."""

STORE = "store"


class Child(Protocol):
    """A child process."""

    name: str

    @property
    def silence(self) -> float:
        """Say for how many seconds an answer has been due; zero where none is."""

    def ping(self) -> None:
        """Ask for an answer, where none is due."""


class Store(Protocol):
    """What is written to."""

    def beat(self) -> Deferred[None]:
        """See that it takes a write, and is read."""

    def freeable(self) -> Deferred[dict[str, int]]:
        """Say what would make how many bytes of room on its disk."""


class State(NamedTuple):
    """Whether the daemon can work, and all that is not well, by what it is.

    ``frees`` is, on a disk with too little room, what would make how many bytes of it.
    """

    is_ready: bool
    problems: Mapping[str, str]
    frees: Mapping[str, int]


class Heartbeat:
    """Looks every `INTERVAL` seconds; whoever asks for the state causes nothing."""

    def __init__(
        self,
        conditions: Conditions,
        store: Store,
        children: Sequence[Child],
        clock: IReactorTime,
    ) -> None:
        self._conditions = conditions
        self._store = store
        self._children = children
        self._clock = clock
        self._began: float | None = None
        self._frees: Mapping[str, int] = {}

    @property
    def state(self) -> State:
        """Tell how it is; a daemon that has only just started can work."""
        problems = {what: why for what, why in self._conditions.problems.items() if why}
        needed = {STORE, *map(_subject, self._children)}
        frees = self._frees if DISK in problems else {}
        return State(not needed & problems.keys(), problems, frees)

    async def look(self) -> None:
        """Begin a write where none is under way, and ask the children; waits for neither."""
        if self._began is None:
            self._began = self._clock.seconds()
            Deferred.fromCoroutine(self._beat()).addCallbacks(self._note, self._fail)
        else:
            waited = self._clock.seconds() - self._began
            self._conditions.set(STORE, f"it has not taken a write for {waited:.0f} s")
        for child in self._children:
            is_silent = child.silence >= LONGEST_SILENCE
            problem = f"no answer for {child.silence:.0f} s" if is_silent else ""
            self._conditions.set(_subject(child), problem)
            child.ping()

    async def _beat(self) -> str:
        await self._store.beat()
        if self._conditions.problems.get(DISK):
            self._frees = await self._store.freeable()
        return ""

    def _fail(self, failure: Failure) -> None:
        failure.trap(ExpectedFailure)
        self._note(failure.getErrorMessage())

    def _note(self, problem: str) -> None:
        self._began = None
        self._conditions.set(STORE, problem)


def _subject(child: Child) -> str:
    return f"{child.name} process"

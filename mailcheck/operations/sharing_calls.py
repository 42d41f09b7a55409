"""Callers who ask for the same at the same time share one answer."""

from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from twisted.internet.defer import CancelledError, Deferred, ensureDeferred
from twisted.logger import Logger
from twisted.python.failure import Failure

from mailcheck.core.errors import ExpectedFailure

Key = TypeVar("Key")
Result = TypeVar("Result")


@dataclass(slots=True)
class _Call(Generic[Result]):
    """A call under way, and all who wait for it."""

    waiting: list[Deferred[Result]] = field(default_factory=list)
    work: Deferred[Result] | None = None


class SharedCalls(Generic[Key, Result]):
    """Merges calls with the same key while one is under way.

    A caller that is cancelled leaves the others alone. A fault of ours that nobody
    waits for any more is logged.

    :param ends_unwanted: a call that nobody waits for any more is cancelled; else
        it goes on.
    """

    _log = Logger()

    def __init__(
        self,
        function: Callable[[Key], Coroutine[Any, Any, Result] | Deferred[Result]],
        *,
        ends_unwanted: bool = False,
    ) -> None:
        self._function = function
        self._ends_unwanted = ends_unwanted
        self._under_way: dict[Key, _Call[Result]] = {}

    def __len__(self) -> int:
        return len(self._under_way)

    def __contains__(self, key: Key) -> bool:
        return key in self._under_way

    def call(self, key: Key) -> Deferred[Result]:
        """Call the function, or join the call that is under way."""
        call = self._under_way.get(key)
        if call is not None:
            return self._join(call)
        work = self._function(key)  # a function that is no coroutine may raise
        call = self._under_way[key] = _Call()
        mine = self._join(call)
        call.work = ensureDeferred(work)
        call.work.addBoth(self._answer, key, call)
        return mine

    def stop(self) -> None:
        """Cancel all that is under way."""
        for call in list(self._under_way.values()):
            if call.work is not None:
                call.work.cancel()

    def _join(self, call: _Call[Result]) -> Deferred[Result]:
        def leave(joined: Deferred[Result]) -> None:
            call.waiting.remove(joined)
            if self._ends_unwanted and not call.waiting and call.work is not None:
                call.work.cancel()

        joined: Deferred[Result] = Deferred(leave)
        call.waiting.append(joined)
        return joined

    def _answer(self, result: Result | Failure, key: Key, call: _Call[Result]) -> None:
        del self._under_way[key]
        if not call.waiting and isinstance(result, Failure):
            if not result.check(CancelledError, ExpectedFailure):
                self._log.failure("What nobody waited for any more failed", result)
            return
        while call.waiting:
            call.waiting.pop(0).callback(result)

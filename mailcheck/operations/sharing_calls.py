"""Callers who ask for the same at the same time share one answer."""

from collections.abc import Callable, Coroutine
from typing import Any, Generic, TypeVar

from twisted.internet.defer import Deferred
from twisted.python.failure import Failure

Key = TypeVar("Key")
Result = TypeVar("Result")


class SharedCalls(Generic[Key, Result]):
    """Merges calls with the same key while one is under way.

    A caller that is cancelled leaves the others, and the call, alone.
    """

    def __init__(self, function: Callable[[Key], Coroutine[Any, Any, Result]]) -> None:
        self._function = function
        self._waiting: dict[Key, list[Deferred[Result]]] = {}

    def call(self, key: Key) -> Deferred[Result]:
        """Call the function, or join the call that is under way."""
        waiting = self._waiting.get(key)
        if waiting is not None:
            return self._join(waiting)
        waiting = self._waiting[key] = []
        mine = self._join(waiting)
        Deferred.fromCoroutine(self._function(key)).addBoth(self._answer, key)
        return mine

    def _join(self, waiting: list[Deferred[Result]]) -> Deferred[Result]:
        joined: Deferred[Result] = Deferred(waiting.remove)
        waiting.append(joined)
        return joined

    def _answer(self, result: Result | Failure, key: Key) -> None:
        for joined in tuple(self._waiting.pop(key)):
            if joined.called:
                continue  # cancelled by a caller that was answered before it
            if isinstance(result, Failure):
                joined.errback(result)
            else:
                joined.callback(result)

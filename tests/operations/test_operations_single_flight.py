"""Concurrent callers with the same key share one result."""

import pytest
from twisted.internet.defer import CancelledError, Deferred
from twisted.logger import LogEvent
from twisted.python.failure import Failure

from mailcheck.core.errors import MessageNotFound
from mailcheck.operations.concurrency import SingleFlight
from tests.house import result_of
from tests.table import rows


class Calls:
    """A function whose calls the test answers."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.answers: list[Deferred[int]] = []
        self.shared: SingleFlight[str, int] = SingleFlight(self.call)

    async def call(self, key: str) -> int:
        """Record a call, and wait for its result."""
        self.asked.append(key)
        answer: Deferred[int] = Deferred()
        self.answers.append(answer)
        return await answer


@pytest.fixture
def calls() -> Calls:
    """Return calls that have not begun."""
    return Calls()


def test_one_call_for_all(calls: Calls) -> None:
    """Concurrent callers with the same key share a result. Other keys have their own."""
    asked = [calls.shared.call(key) for key in ("a", "a", "b", "a")]
    assert calls.asked == ["a", "b"]
    calls.answers[0].callback(1)
    calls.answers[1].callback(2)
    assert [result_of(one) for one in asked] == [1, 1, 2, 1]


def test_the_next_one_calls_again(calls: Calls) -> None:
    """A result is shared but not cached: a later caller starts a new call."""
    first = calls.shared.call("a")
    calls.answers[0].callback(1)
    second = calls.shared.call("a")
    calls.answers[1].callback(2)
    assert (result_of(first), result_of(second)) == (1, 2)


def test_a_failure_is_shared(calls: Calls) -> None:
    """If the call fails, all callers that share it fail. The next caller tries again."""
    asked = [calls.shared.call("a") for _ in range(3)]
    calls.answers[0].errback(ZeroDivisionError("no"))
    for one in asked:
        with pytest.raises(ZeroDivisionError):
            result_of(one)
    again = calls.shared.call("a")
    calls.answers[1].callback(1)
    assert result_of(again) == 1


@rows(0, 1, 2)
def test_one_who_leaves(leaving: int) -> None:
    """Cancelling any caller, even the first, affects neither the call nor the others."""
    calls = Calls()
    asked = [calls.shared.call("a") for _ in range(3)]
    failures: list[Failure] = []
    asked[leaving].addErrback(failures.append)
    asked.pop(leaving).cancel()
    assert [failure.type for failure in failures] == [CancelledError]
    calls.answers[0].callback(1)
    assert [result_of(one) for one in asked] == [1, 1]


def test_all_leave(calls: Calls, logged_failures: list[LogEvent]) -> None:
    """A call without callers continues, and its unexpected failure is logged."""
    for _ in range(2):
        asked = calls.shared.call("a")
        asked.addErrback(lambda _: None)
        asked.cancel()
    assert calls.asked == ["a"]
    calls.answers[0].errback(ZeroDivisionError("unheard"))
    assert [event["log_failure"].type for event in logged_failures] == [ZeroDivisionError]


@pytest.mark.parametrize("failure", [MessageNotFound(), CancelledError()])
def test_an_expected_failure_is_not_logged(
    calls: Calls, failure: Exception, logged_failures: list[LogEvent]
) -> None:
    """An expected failure is not logged when no caller waits."""
    asked = calls.shared.call("a")
    asked.addErrback(lambda _: None)
    asked.cancel()
    calls.answers[0].errback(failure)
    assert not logged_failures


def test_a_call_without_callers_is_cancelled(calls: Calls) -> None:
    """If calls may be cancelled, the call is cancelled when its last caller leaves."""
    shared = SingleFlight(calls.call, cancels_unwanted=True)
    asked = [shared.call("a") for _ in range(2)]
    for one in asked:
        one.addErrback(lambda _: None)
    asked[0].cancel()
    assert "a" in shared
    asked[1].cancel()
    assert len(shared) == 0
    shared.call("a")
    assert calls.asked == ["a", "a"]


def test_a_stop(calls: Calls) -> None:
    """Stopping cancels all calls and their callers."""
    asked = [calls.shared.call(key) for key in ("a", "b", "a")]
    calls.shared.stop()
    for one in asked:
        with pytest.raises(CancelledError):
            result_of(one)
    assert len(calls.shared) == 0


def test_one_who_is_cancelled_by_another(calls: Calls) -> None:
    """A callback of one caller may cancel another one."""
    first, second = calls.shared.call("a"), calls.shared.call("a")
    failures: list[Failure] = []
    second.addErrback(failures.append)
    first.addCallback(lambda _: second.cancel())
    calls.answers[0].callback(1)
    assert [failure.type for failure in failures] == [CancelledError]


def test_one_who_asks_again_from_within(calls: Calls) -> None:
    """A caller that calls again from its callback gets a new call."""
    again: list[Deferred[int]] = []
    calls.shared.call("a").addCallback(lambda _: again.append(calls.shared.call("a")))
    calls.answers[0].callback(1)
    calls.answers[1].callback(2)
    assert result_of(again[0]) == 2


def test_a_synchronous_result() -> None:
    """A function that returns a result at once is supported."""

    async def double(number: int) -> int:
        return 2 * number

    shared = SingleFlight(double)
    assert [result_of(shared.call(number)) for number in (1, 2, 1)] == [2, 4, 2]

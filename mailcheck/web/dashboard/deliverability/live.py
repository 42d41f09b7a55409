"""How a test moves on, while its page is open: server-sent events."""

from twisted.web.server import Request

from mailcheck.core.deliverability_tests import State
from mailcheck.core.errors import ExpectedFailure, InvalidParameter
from mailcheck.operations.deliverability.wait_for_test import WaitForTest
from mailcheck.operations.ports import Now
from mailcheck.web.dashboard.inbox.live import (
    KEEP_ALIVE,
    LONGEST_STREAM,
    RETRY,
    RETRY_LATER,
    live_caller,
)
from mailcheck.web.dashboard.visits import Page, Stream, Visit
from mailcheck.wire.json_values import dump_json


class DeliverabilityLivePages:
    """Streams of a test's states, each one a parked wait after the other."""

    def __init__(self, wait: WaitForTest, now: Now) -> None:
        self._wait = wait
        self._now = now

    def pages(self) -> list[Page]:
        """List the one page."""
        return [Page("GET", "/tests/<test_id>/live", self.stream)]

    async def stream(self, visit: Visit) -> Stream:
        """GET /tests/{id}/live?seen=<state that the page shows>: ends with a final state."""
        seen = _seen(visit)

        async def run(request: Request) -> None:
            await self._run(visit, request, seen)

        return Stream("text/event-stream; charset=utf-8", run)

    async def _run(self, visit: Visit, request: Request, seen: State) -> None:
        request.write(b"retry: %d\n\n" % RETRY)
        ends_at = self._now() + LONGEST_STREAM
        caller, test_id = live_caller(visit.account), visit.path["test_id"]
        try:
            while self._now() < ends_at:
                found = await self._wait.wait(caller, test_id, KEEP_ALIVE, seen)
                state = found.test.state
                if state is seen and not state.is_final:
                    request.write(b": nothing new\n\n")
                    continue
                seen = state
                request.write(_event("moved", {"state": state.value, "final": state.is_final}))
                if state.is_final:
                    return
        except ExpectedFailure as failure:
            request.write(b"retry: %d\n" % RETRY_LATER)
            request.write(_event("problem", {"problem": str(failure)}))


def _seen(visit: Visit) -> State:
    text = visit.query.required("seen")
    try:
        return State(text)
    except ValueError:
        words = ", ".join(state.value for state in State)
        raise InvalidParameter("seen", f"seen is one of {words}") from None


def _event(name: str, data: dict[str, str | bool]) -> bytes:
    # JSON has no line breaks outside of its escapes: it can't end the event early.
    return b"event: %s\ndata: %s\n\n" % (name.encode("ascii"), dump_json(data))

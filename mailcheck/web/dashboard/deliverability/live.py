"""Event streams with the progress of a deliverability test, for its open page."""

from msgspec import Struct
from twisted.internet.interfaces import IReactorTime
from twisted.web.server import Request

from mailcheck.core.deliverability_tests import State
from mailcheck.core.errors import ExpectedFailure, InvalidParameter
from mailcheck.core.identifiers import DeliveryId
from mailcheck.operations.deliverability.check_progress import CheckProgress
from mailcheck.operations.deliverability.wait_for_test import WaitForTest
from mailcheck.web.dashboard.live import (
    KEEP_ALIVE,
    LONGEST_STREAM,
    live_caller,
    write_problem,
)
from mailcheck.web.dashboard.visits import Page, Visit
from mailcheck.web.site import costs
from mailcheck.web.site.event_streams import (
    EVENT_STREAM,
    RETRY,
    RETRY_LATER,
    Stream,
    write_event,
)


class DeliverabilityLivePages(Struct, frozen=True):
    """Streams of the states of a test. Each waits for one state change after another."""

    _wait: WaitForTest
    _progress: CheckProgress
    _clock: IReactorTime

    def pages(self) -> list[Page]:
        """List the page."""
        return [Page("GET", "/tests/<test_id>/live", self.stream, costs.FREE)]

    async def stream(self, visit: Visit) -> Stream:
        """GET /tests/{id}/live?seen=<state on the page>. The stream ends with a final state."""
        text = visit.query.required("seen")
        try:
            seen = State(text)
        except ValueError:
            words = ", ".join(state.value for state in State)
            raise InvalidParameter(
                "seen", f"`seen` must be one of {words}; got {text[:20]!r}"
            ) from None
        return Stream(EVENT_STREAM, lambda request: self._run(visit, request, seen))

    async def _run(self, visit: Visit, request: Request, seen: State) -> None:
        request.write(b"retry: %d\n\n" % RETRY)
        ends_at = self._clock.seconds() + LONGEST_STREAM
        caller, test_id = live_caller(visit), visit.path["test_id"]
        delivery_id: DeliveryId | None = None

        def report_progress() -> None:
            ended = sorted(self._progress.ended(delivery_id))
            request.write(write_event("checks", {"ended": ended}))

        try:
            while self._clock.seconds() < ends_at:
                timeout = KEEP_ALIVE
                if seen is State.PROCESSING and delivery_id is None:
                    timeout = 0.0  # returns at once, with the id of the mail
                with self._progress.watched(delivery_id, report_progress):
                    found = await self._wait.wait(caller, test_id, timeout, seen)
                if delivery_id is None and found.test.delivery_id is not None:
                    delivery_id = found.test.delivery_id
                    report_progress()
                state = found.test.state
                if state is seen and not state.is_final:
                    request.write(write_event())
                    continue
                seen = state
                request.write(write_event("moved", {"state": state.value, "final": state.is_final}))
                if state.is_final:
                    return
        except ExpectedFailure as failure:
            request.write(b"retry: %d\n" % RETRY_LATER)
            request.write(write_problem(failure))

"""Greylisting on request uses state that all daemons share."""

from typing import Any

import pytest
from pytest_twisted import ensureDeferred

from mailcheck.cluster.local import LocalRateCounters
from mailcheck.core.errors import FaultMet
from mailcheck.core.identifiers import AccountId
from mailcheck.core.instants import Instant
from mailcheck.core.messages import Recipient
from mailcheck.operations.inbox.receive_mail import RequestedFaults
from tests.contracts.conftest import PersistentState

RECIPIENT = Recipient("dev-a+fault.greylist-30@inbox.example", AccountId("a"), "fault.greylist-30")


@ensureDeferred
async def test_greylisting_across_daemons(persistent_state: PersistentState) -> None:
    """The first attempt at one daemon counts for the second one at another daemon."""
    now = [Instant(1_795_000_000_000)]

    def daemon() -> RequestedFaults:
        return RequestedFaults(
            persistent_state.memory, LocalRateCounters(), lambda: now[0], is_on=True
        )

    here, there = daemon(), daemon()
    fault: Any = here.at_recipient(RECIPIENT.tag)
    with pytest.raises(FaultMet, match="try again in 30 s"):
        await here.meet(RECIPIENT, fault, "s@example.com")
    now[0] = Instant(now[0] + 10_000)
    with pytest.raises(FaultMet, match="try again in 20 s"):
        await there.meet(RECIPIENT, fault, "s@example.com")
    now[0] = Instant(now[0] + 20_000)
    for one in (there, here):
        assert await one.meet(RECIPIENT, fault, "s@example.com") == RECIPIENT

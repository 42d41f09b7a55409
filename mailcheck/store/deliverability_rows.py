"""Rows of deliverability tests: into values, and from one state into the next."""

from collections.abc import Mapping

from mailcheck.core.deliverability_tests import (
    DeliverabilityTest,
    State,
    Trigger,
    next_state,
)
from mailcheck.core.identifiers import AccountId, DeliverabilityTestId, DeliveryId
from mailcheck.core.instants import Instant
from mailcheck.store.engine import Row, Transaction, Value

DELIVERABILITY_COLUMNS = """
    deliverability_test.id, deliverability_test.account_id, deliverability_test.state,
    deliverability_test.created_at, deliverability_test.expires_at,
    deliverability_test.share_token, deliverability_test.received_at,
    deliverability_test.delivery_id, deliverability_test.attempts
"""
DELIVERABILITY_WIDTH = 9


def deliverability_test_of(row: Row, now: Instant) -> DeliverabilityTest:
    """Make a test of a row that begins with `DELIVERABILITY_COLUMNS`, as it stands now."""
    state = State(row[2])
    if state is State.PENDING and row[4] <= now:
        state = next_state(state, Trigger.ADDRESS_EXPIRED)
    return DeliverabilityTest(
        id=DeliverabilityTestId(row[0]),
        account_id=AccountId(row[1]),
        state=state,
        created_at=Instant(row[3]),
        expires_at=Instant(row[4]),
        share_token=row[5],
        received_at=None if row[6] is None else Instant(row[6]),
        delivery_id=None if row[7] is None else DeliveryId(row[7]),
        attempts=row[8],
    )


def move(
    transaction: Transaction,
    test_id: DeliverabilityTestId,
    state: State,
    trigger: Trigger,
    changes: Mapping[str, Value],
    holder: str | None = None,
) -> bool:
    """Move a test by a trigger, and change further columns with it: the only way there is.

    False, and nothing is changed, when the test is not in this state (any
    more), or, where a holder is given, not the holder's.

    :raises IllegalTransition: there is no such move.
    """
    columns: dict[str, Value] = {"state": next_state(state, trigger).value, **changes}
    settings = ", ".join(f"{column} = ?" for column in columns)
    condition, values = "id = ? AND state = ?", [*columns.values(), test_id, state.value]
    if holder is not None:
        condition, values = f"{condition} AND lease_holder = ?", [*values, holder]
    moved = transaction.execute(
        f"UPDATE deliverability_test SET {settings} WHERE {condition}", values
    )
    return moved == 1

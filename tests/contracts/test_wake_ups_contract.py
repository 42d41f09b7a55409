"""What every `WakeUps` and every `DeliverabilityWakeUps` promises."""

from collections.abc import Callable

import pytest

from mailcheck.cluster.local import LocalDeliverabilityWakeUps, LocalWakeUps
from mailcheck.core.identifiers import AccountId, DeliverabilityTestId
from mailcheck.operations.deliverability.ports import DeliverabilityWakeUps
from mailcheck.operations.ports import WakeUps

IMPLEMENTATIONS: dict[str, Callable[[], WakeUps]] = {"in this process": LocalWakeUps}

OF_TESTS: dict[str, Callable[[], DeliverabilityWakeUps]] = {
    "in this process": LocalDeliverabilityWakeUps
}

ANN, BOB = AccountId("ann"), AccountId("bob")


@pytest.fixture(params=list(IMPLEMENTATIONS))
def wake_ups(request: pytest.FixtureRequest) -> WakeUps:
    """Give each implementation."""
    return IMPLEMENTATIONS[request.param]()


def test_everyone_hears(wake_ups: WakeUps) -> None:
    """Whoever listens hears of every inbox that got mail from then on."""
    heard: list[tuple[str, AccountId]] = []
    wake_ups.publish(ANN)
    wake_ups.listen(lambda account: heard.append(("one", account)))
    wake_ups.publish(ANN)
    wake_ups.listen(lambda account: heard.append(("two", account)))
    wake_ups.publish(BOB)
    assert heard == [("one", ANN), ("one", BOB), ("two", BOB)]


def test_nobody_listens(wake_ups: WakeUps) -> None:
    """A hint that nobody listens to is lost without harm."""
    wake_ups.publish(ANN)


@pytest.mark.parametrize("implementation", list(OF_TESTS))
def test_everyone_hears_of_tests(implementation: str) -> None:
    """Whoever listens hears of every test that has moved from then on."""
    wake_ups = OF_TESTS[implementation]()
    one, two = DeliverabilityTestId("one"), DeliverabilityTestId("two")
    heard: list[tuple[str, DeliverabilityTestId]] = []
    wake_ups.publish(one)
    wake_ups.listen(lambda test_id: heard.append(("a", test_id)))
    wake_ups.publish(one)
    wake_ups.listen(lambda test_id: heard.append(("b", test_id)))
    wake_ups.publish(two)
    assert heard == [("a", one), ("a", two), ("b", two)]

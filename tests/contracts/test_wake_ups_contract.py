"""What every `WakeUps` promises."""

from collections.abc import Callable

import pytest

from mailcheck.cluster.local import LocalWakeUps
from mailcheck.core.identifiers import AccountId
from mailcheck.operations.ports import WakeUps

IMPLEMENTATIONS: dict[str, Callable[[], WakeUps]] = {"in this process": LocalWakeUps}

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

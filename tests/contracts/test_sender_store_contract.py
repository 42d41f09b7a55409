"""The contract of `SenderStore` on every engine."""

import pytest
from twisted.internet.defer import gatherResults

from mailcheck.core.domains.receiver_reports import SenderDecision
from mailcheck.core.errors import TooManyDecisions
from mailcheck.core.identifiers import AccountId
from mailcheck.store.domains import sender_store
from tests.contracts.conftest import Stores
from tests.engines.deliveries import NOON, noted

ANN, BOB = AccountId("ann"), AccountId("bob")
MINE, NOT_MINE = SenderDecision.MINE, SenderDecision.NOT_MINE


async def test_a_decision_is_of_an_account_and_a_domain(stores: Stores) -> None:
    """A later decision replaces an earlier one, and others are not affected."""
    senders = stores.senders
    await senders.decide(ANN, "example.org", "sendgrid", NOT_MINE, NOON)
    await senders.decide(ANN, "example.org", "sendgrid", MINE, NOON)
    await senders.decide(ANN, "example.org", "192.0.2.1", NOT_MINE, NOON)
    await senders.decide(ANN, "example.net", "sendgrid", NOT_MINE, NOON)
    both = {"sendgrid": MINE, "192.0.2.1": NOT_MINE}
    assert await senders.decisions(ANN, "example.org") == both
    assert await senders.decisions(BOB, "example.org") == {}
    await senders.forget(ANN, "example.org", "sendgrid")
    assert await senders.decisions(ANN, "example.org") == {"192.0.2.1": NOT_MINE}
    await stores.removal.delete(ANN, noted())
    assert await senders.decisions(ANN, "example.org") == {}


async def test_the_number_of_decisions_is_limited(
    stores: Stores, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At the maximum, a decision can be changed and taken back, but none can be added."""
    monkeypatch.setattr(sender_store, "MAX_DECISIONS", 10)
    senders = stores.senders
    named = [f"s{number}.example" for number in range(10)]
    await gatherResults([senders.decide(ANN, "example.org", one, NOT_MINE, NOON) for one in named])
    with pytest.raises(TooManyDecisions, match="at most 10 senders"):
        await senders.decide(ANN, "example.net", "sendgrid", MINE, NOON)
    await senders.decide(ANN, "example.org", "s0.example", MINE, NOON)
    await senders.decide(BOB, "example.org", "sendgrid", MINE, NOON)
    await senders.forget(ANN, "example.org", "s1.example")
    await senders.decide(ANN, "example.net", "sendgrid", MINE, NOON)

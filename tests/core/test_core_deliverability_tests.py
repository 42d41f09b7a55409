"""Deliverability tests: their states, transitions and addresses."""

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mailcheck.core.deliverability_tests import (
    IllegalTransition,
    State,
    Trigger,
    local_part_of,
    next_state,
    parse_local_part,
)
from mailcheck.core.identifiers import (
    DeliverabilityTestId,
    format_test_share_token,
    is_test_id,
    parse_test_share_token,
)
from tests.table import rows

MOVES = {
    ("pending", Trigger.MAIL_STORED): "processing",
    ("pending", Trigger.ADDRESS_EXPIRED): "expired",
    ("processing", Trigger.CHECKS_DONE): "completed",
    ("processing", Trigger.ANALYSIS_FAILED): "error",
    ("completed", Trigger.RECHECK): "processing",
    ("error", Trigger.RECHECK): "processing",
}

TEST_IDS = st.text(alphabet="abcdefghijklmnopqrstuvwxyz234567", min_size=13, max_size=13)


@rows(*list(product(State, Trigger)))
def test_every_move(state: State, trigger: Trigger) -> None:
    """The state machine has exactly the expected transitions."""
    expected = MOVES.get((state.value, trigger))
    if expected is None:
        with pytest.raises(IllegalTransition, match=f"{state.value} .* {trigger.value}"):
            next_state(state, trigger)
    else:
        assert next_state(state, trigger).value == expected


def test_final_states() -> None:
    """The states completed, expired and error are final."""
    finals = {state.value for state in State if state.is_final}
    assert finals == {"completed", "expired", "error"}


@given(TEST_IDS, st.data())
def test_an_address_in_any_case(test_id: str, data: st.DataObject) -> None:
    """The id in the local part of a test address is found in any case."""
    local_part = local_part_of(DeliverabilityTestId(test_id))
    cases = data.draw(st.lists(st.booleans(), min_size=18, max_size=18))
    written = "".join(
        letter.upper() if is_upper else letter
        for letter, is_upper in zip(local_part, cases, strict=True)
    )
    assert parse_local_part(written) == test_id


@given(st.text(max_size=30))
def test_any_local_part(text: str) -> None:
    """Only the exact form of a test's local part is recognised."""
    test_id = parse_local_part(text)
    assert test_id is None or local_part_of(test_id) == text.lower()


@rows(
    "",
    "test-",
    "test-a",
    "abcdefghijklm",
    "dev-abcdefghijklm",
    "test-abcdefghijklm+x",
    "test-abcdefghijklmn",
    "test-abcdefghijkl1",
    "test-abcdefghijklm\n",
    "test-\u017fbcdefghijklm",
    "test-\u0430bcdefghijklm",
    "test-\u212abcdefghijklm",
)
def test_invalid_addresses(local_part: str) -> None:
    """Tags, other lengths, other prefixes and look-alike letters are not addresses of tests."""
    assert parse_local_part(local_part) is None


@given(TEST_IDS, TEST_IDS)
def test_share_tokens(test_id: str, secret: str) -> None:
    """A share token contains its test and its secret."""
    token = format_test_share_token(DeliverabilityTestId(test_id), secret)
    assert parse_test_share_token(token) == (test_id, secret)


@given(st.text(max_size=60))
def test_any_share_token(token: str) -> None:
    """Any text is parsed as a token with a valid id, or rejected."""
    try:
        test_id, _ = parse_test_share_token(token)
    except ValueError:
        return
    assert is_test_id(test_id)

"""Arguments of tool calls: what the schema promises is what is taken."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from mailcheck.api.mcp.arguments import read_arguments
from mailcheck.core.errors import InvalidParameter
from mailcheck.web.mcp.inbox_tools import (
    LIST_INPUT,
    MESSAGE_INPUT,
    NEW_ADDRESS_INPUT,
    WAIT_INPUT,
)

SCHEMAS = [NEW_ADDRESS_INPUT, WAIT_INPUT, LIST_INPUT, MESSAGE_INPUT]

NAMES = ["tag", "after", "since", "from", "subject", "to", "q", "timeout", "limit", "page", "id"]
ANY_JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"])),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(), inner, max_size=2),
    max_leaves=4,
)
TYPE_KEYWORDS = ("type", "required", "additionalProperties")


@given(st.sampled_from(SCHEMAS), st.dictionaries(st.sampled_from(NAMES), ANY_JSON, max_size=3))
def test_the_schema_and_the_reader_agree(schema: Any, arguments: dict[str, Any]) -> None:
    """Types, names and what is required are judged as the published schema judges them."""
    given = {name: value for name, value in arguments.items() if value is not None}
    is_valid = all(
        problem.validator not in TYPE_KEYWORDS
        for problem in Draft202012Validator(schema).iter_errors(given)
    )
    # A name that is not known is refused even when it has no value.
    is_valid = is_valid and set(arguments) <= set(schema["properties"])
    try:
        read_arguments(arguments, schema)
    except InvalidParameter:
        assert not is_valid
    else:
        assert is_valid


@pytest.mark.parametrize("schema", SCHEMAS)
def test_limits_of_the_schema_are_those_of_the_reader(schema: Any) -> None:
    """The bounds that the schema names are taken, what lies beyond them is not."""
    readers: dict[str, Any] = {
        "timeout": lambda query: query.seconds("timeout", 1, 60, 30),
        "limit": lambda query: query.whole_number("limit", 1, 100, 20),
        "count": lambda query: query.whole_number("count", 1, 100, 1),
        "page": lambda query: query.whole_number("page", 1, 1_000_000, 1),
    }
    for name, bounds in schema["properties"].items():
        if "minimum" not in bounds:
            continue
        read = readers[name]
        assert read(read_arguments({name: bounds["minimum"]}, schema)) == bounds["minimum"]
        assert read(read_arguments({name: bounds["maximum"]}, schema)) == bounds["maximum"]
        if "default" in bounds:
            assert read(read_arguments({}, schema)) == bounds["default"]
        for beyond in (bounds["minimum"] - 1, bounds["maximum"] + 1):
            with pytest.raises(InvalidParameter):
                read(read_arguments({name: beyond}, schema))


@pytest.mark.parametrize("text", ["a\0", "\ud800", "x\udfffy"])
def test_text_that_no_store_can_hold_is_refused(text: str) -> None:
    """NUL and halves of surrogate pairs, which JSON can write, are no text."""
    with pytest.raises(InvalidParameter, match="characters that no text has"):
        read_arguments({"id": text}, MESSAGE_INPUT)


@pytest.mark.parametrize("number", [float("inf"), 1e308, 10**300, -(10**300)])
def test_numbers_without_measure_are_refused(number: float) -> None:
    """A number beyond all bounds is out of range, not a crash."""
    with pytest.raises(InvalidParameter):
        read_arguments({"timeout": number}, WAIT_INPUT).seconds("timeout", 1, 60, 30)
    with pytest.raises(InvalidParameter):
        read_arguments({"limit": number}, LIST_INPUT).whole_number("limit", 1, 100, 20)

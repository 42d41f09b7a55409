"""Keys of counters, locks and cached values are unique."""

import string

from hypothesis import example, given
from hypothesis import strategies as st

from mailcheck.core.memory.keys import MAX_PART, key_of, keys_below

TRICKY = st.text(st.sampled_from(":%#*\n 23A5~ab"), max_size=6)
LONG = st.text(st.sampled_from(string.printable), min_size=MAX_PART - 2, max_size=MAX_PART + 2)
PARTS = st.lists(TRICKY | LONG | st.text(max_size=8) | st.just("\udc80\0"), min_size=1, max_size=4)


@given(PARTS, PARTS)
@example(["a", "b"], ["a:b"])
@example(["a", ""], ["a"])
@example(["%3A"], [":"])
@example(["x" * 101], [key_of("x" * 101)])
def test_no_other_parts_have_the_same_key(one: list[str], other: list[str]) -> None:
    """Different lists of parts give different keys."""
    assert (key_of(*one) == key_of(*other)) is (one == other)


@given(PARTS, TRICKY, TRICKY)
def test_moving_text_between_parts_changes_the_key(
    parts: list[str], first: str, second: str
) -> None:
    """Splitting or joining parts changes the key."""
    keys = {key_of(*parts, first + second), key_of(*parts, first, second)}
    assert len(keys) == 2


@given(PARTS)
def test_keys_are_short_and_printable(parts: list[str]) -> None:
    """A key is short printable ASCII without `*`, which would match other keys."""
    key = key_of(*parts)
    assert len(key) <= len(parts) * (3 * MAX_PART + 1)
    assert key.isascii()
    assert key.isprintable()
    assert "*" not in key


def test_patterns() -> None:
    """The pattern of a key matches only keys that begin with the same parts."""
    assert key_of("mailcheck", "0", "count", "a b") == "mailcheck:0:count:a b"
    assert keys_below("mailcheck", "0") == "mailcheck:0:*"

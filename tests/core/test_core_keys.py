"""Keys of counters, locks and what is kept: no two things have the same one."""

import string

from hypothesis import example, given
from hypothesis import strategies as st

from mailcheck.core.keys import MAX_PART, key_of, keys_below

TRICKY = st.text(st.sampled_from(":%#*\n 23A5~ab"), max_size=6)
LONG = st.text(st.sampled_from(string.printable), min_size=MAX_PART - 2, max_size=MAX_PART + 2)
PARTS = st.lists(TRICKY | LONG | st.text(max_size=8) | st.just("\udc80\0"), min_size=1, max_size=4)


@given(PARTS, PARTS)
@example(["a", "b"], ["a:b"])
@example(["a", ""], ["a"])
@example(["%3A"], [":"])
@example(["x" * 101], [key_of("x" * 101)])
def test_no_other_parts_have_the_same_key(one: list[str], other: list[str]) -> None:
    """Two lists of parts have the same key only where they are the same list."""
    assert (key_of(*one) == key_of(*other)) is (one == other)


@given(PARTS, TRICKY, TRICKY)
def test_what_moves_between_parts_changes_the_key(
    parts: list[str], first: str, second: str
) -> None:
    """A part that is cut in two, or joined with its neighbour, makes another key."""
    keys = {key_of(*parts, first + second), key_of(*parts, first, second)}
    assert len(keys) == 2


@given(PARTS)
def test_keys_are_short_and_printable(parts: list[str]) -> None:
    """A key has a bounded length, printable ASCII, and no `*` that would match other keys."""
    key = key_of(*parts)
    assert len(key) <= len(parts) * (3 * MAX_PART + 1)
    assert key.isascii()
    assert key.isprintable()
    assert "*" not in key


def test_patterns() -> None:
    """The pattern of a key matches what has more parts, and begins with no other key."""
    assert key_of("mailcheck", "0", "count", "a b") == "mailcheck:0:count:a b"
    assert keys_below("mailcheck", "0") == "mailcheck:0:*"

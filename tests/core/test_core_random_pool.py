"""Buffered random bytes: every byte is used once."""

from hypothesis import given
from hypothesis import strategies as st

from mailcheck.core.identifiers import DRAW, RandomPool


class NumberedSource:
    """A source whose bytes encode their position, in 2 bytes each."""

    def __init__(self) -> None:
        self.place = 0
        self.draws = 0

    def __call__(self, length: int) -> bytes:
        """Return the next bytes."""
        assert self.place % 2 == length % 2 == 0
        start = self.place // 2
        self.place += length
        self.draws += 1
        return b"".join(number.to_bytes(2, "big") for number in range(start, self.place // 2))


@given(st.lists(st.integers(0, 2_500).map(lambda half: 2 * half), max_size=20))
def test_no_byte_is_handed_out_twice(lengths: list[int]) -> None:
    """Any request gets its full length, from unused positions."""
    pool = RandomPool(NumberedSource())
    given_out = [pool(length) for length in lengths]
    assert [len(data) for data in given_out] == lengths
    places = [data[at : at + 2] for data in given_out for at in range(0, len(data), 2)]
    assert len(set(places)) == len(places)


def test_the_source_is_asked_seldom() -> None:
    """Many small identifiers need one read."""
    source = NumberedSource()
    pool = RandomPool(source)
    for _ in range(DRAW // 16):
        pool(16)
    assert source.draws == 1

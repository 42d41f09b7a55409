"""Identifiers: randomness and form, and parsing of share tokens."""

import re
import uuid
from collections import Counter
from collections.abc import Callable, Mapping
from itertools import islice

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mailcheck.core.identifiers import (
    MessageId,
    RandomBytes,
    digest_secret,
    format_share_token,
    is_secret,
    new_api_key,
    new_password,
    new_session_secret,
    new_share_token,
    new_short_id,
    new_time_ordered_id,
    parse_share_token,
)
from mailcheck.core.instants import Instant
from tests.table import rows

MOMENTS = st.integers(0, 2**48 - 1).map(Instant)


MADE: Mapping[str, tuple[Callable[[RandomBytes], str], str, int]] = {
    "a short id": (new_short_id, "[a-z2-7]{13}", 65),
    "a share token": (new_share_token, "[a-z2-7]{26}", 130),
    "an API key": (new_api_key, "mck_[a-z2-7]{32}", 160),
    "a session's secret": (new_session_secret, "[a-z2-7]{32}", 160),
    "a password": (new_password, "(?:[a-z2-7]{4}-){3}[a-z2-7]{4}", 80),
}


@rows(*MADE.values())
def test_secrets_are_as_random_as_promised(
    make: Callable[[RandomBytes], str], form: str, bits: int
) -> None:
    """Each letter is one of 32, uniformly distributed and independent of the others."""
    letters = [make(bytes([byte]).__mul__) for byte in range(256)]
    assert all(re.fullmatch(form, one) for one in letters)
    assert set(Counter(letters).values()) == {8}
    alone = make(lambda length: bytes(range(length)))
    drawn = [place for place, seen in enumerate(zip(*letters, strict=True)) if len(set(seen)) > 1]
    assert 5 * len(drawn) == bits
    assert [alone[place] for place in drawn] == list(
        islice("abcdefghijklmnopqrstuvwxyz234567", len(drawn))
    )


@given(MOMENTS, st.binary(min_size=10, max_size=10))
def test_time_ordered_ids_are_uuids(now: int, data: bytes) -> None:
    """A time-ordered id is a UUID version 7 with the time (RFC 9562, section 5.7)."""
    made = uuid.UUID(new_time_ordered_id(Instant(now), lambda length: data[:length]))
    assert (made.version, made.variant) == (7, uuid.RFC_4122)
    assert made.int >> 80 == now


@given(MOMENTS, MOMENTS)
def test_time_ordered_ids_sort_by_time(one: int, other: int) -> None:
    """Ids of different milliseconds sort by time."""
    if one != other:
        earlier = new_time_ordered_id(Instant(min(one, other)), lambda length: b"\xff" * length)
        later = new_time_ordered_id(Instant(max(one, other)), lambda length: b"\x00" * length)
        assert earlier < later


@given(st.text())
def test_digests(secret: str) -> None:
    """Any secret has a digest of 32 bytes, different for different secrets."""
    assert len(digest_secret(secret)) == 32
    assert digest_secret(secret) != digest_secret(secret + "x")


def test_digest_of_what_is_no_text() -> None:
    """A secret that is not valid UTF-8 has a digest too."""
    assert len(digest_secret("mck_\udcff")) == 32


@given(st.uuids(), st.text(alphabet="abcdefghijklmnopqrstuvwxyz234567", max_size=40))
def test_a_token_comes_apart_again(message: uuid.UUID, secret: str) -> None:
    """A token contains its message and its secret."""
    token = format_share_token(MessageId(str(message)), secret)
    assert parse_share_token(token) == (str(message), secret)


@rows("", "a", "a" * 25, "1" * 52, "ß" * 26, "é" * 26, "a b" * 20, "=" * 26, "../" * 10)
def test_invalid_tokens(token: str) -> None:
    """A text of another form is rejected."""
    with pytest.raises(ValueError, match="share token"):
        parse_share_token(token)


@given(st.text(max_size=80))
def test_any_text(token: str) -> None:
    """Any text is parsed as a token with a UUID, or rejected."""
    try:
        message_id, _ = parse_share_token(token)
    except ValueError:
        return
    assert str(uuid.UUID(message_id)) == message_id


@given(st.text(), st.text())
def test_secrets(given_secret: str, kept: str) -> None:
    """A secret is equal only to itself."""
    assert is_secret(kept, kept)
    assert is_secret(given_secret, kept) == (given_secret == kept)


def test_a_secret_that_is_no_text() -> None:
    """A text that cannot be encoded is not equal to any secret."""
    assert not is_secret("\ud800", "kept")

"""Identifiers: as random as promised, of the promised form; share tokens are taken apart again."""

import base64
import os
import re
import uuid

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mailcheck.core.identifiers import (
    MessageId,
    digest_secret,
    format_share_token,
    is_secret,
    new_api_key,
    new_share_token,
    new_short_id,
    new_time_ordered_id,
    parse_share_token,
)
from mailcheck.core.instants import Instant

MOMENTS = st.integers(0, 2**48 - 1).map(Instant)


@given(st.binary(min_size=9, max_size=9))
def test_short_ids(data: bytes) -> None:
    """A short id has 13 characters of a-z2-7, each of the 65 random bits counting."""
    short_id = new_short_id(lambda length: data[:length])
    assert re.fullmatch("[a-z2-7]{13}", short_id)
    flipped = bytes([data[0] ^ 0x80]) + data[1:]
    assert new_short_id(lambda length: flipped[:length]) != short_id
    last = data[:8] + bytes([data[8] ^ 0x80])
    assert new_short_id(lambda length: last[:length]) != short_id


@given(st.binary(min_size=16, max_size=16) | st.binary(min_size=20, max_size=20))
def test_secrets_are_base32(data: bytes) -> None:
    """Tokens and keys are base32 (RFC 4648 6) of their bits, in lower case, without padding."""
    expected = base64.b32encode(data).decode("ascii").lower().rstrip("=")
    assert new_share_token(lambda length: data) == expected
    assert new_api_key(lambda length: data) == f"mck_{expected}"


@given(MOMENTS, st.binary(min_size=10, max_size=10))
def test_time_ordered_ids_are_uuids(now: int, data: bytes) -> None:
    """A time-ordered id is a UUID of version 7 that carries the moment (RFC 9562 5.7)."""
    made = uuid.UUID(new_time_ordered_id(Instant(now), lambda length: data[:length]))
    assert (made.version, made.variant) == (7, uuid.RFC_4122)
    assert made.int >> 80 == now


@given(MOMENTS, MOMENTS)
def test_time_ordered_ids_sort_by_time(one: int, other: int) -> None:
    """Of two ids of different milliseconds, the earlier one sorts first."""
    if one != other:
        earlier = new_time_ordered_id(Instant(min(one, other)), lambda length: b"\xff" * length)
        later = new_time_ordered_id(Instant(max(one, other)), lambda length: b"\x00" * length)
        assert earlier < later


def test_api_keys() -> None:
    """An API key has a recognisable prefix and 160 random bits."""
    asked: list[int] = []

    def random_bytes(length: int) -> bytes:
        asked.append(length)
        return os.urandom(length)

    keys = {new_api_key(random_bytes) for _ in range(100)}
    assert len(keys) == 100
    assert all(re.fullmatch("mck_[a-z2-7]{32}", key) for key in keys)
    assert set(asked) == {20}


def test_share_tokens() -> None:
    """A share token is 128 random bits, written in full."""
    values = iter(range(256))
    tokens = {new_share_token(lambda length: bytes([next(values)] * length)) for _ in range(256)}
    assert len(tokens) == 256
    assert {len(token) for token in tokens} == {26}


@given(st.text())
def test_digests(secret: str) -> None:
    """A secret of any characters has a digest of 32 bytes, and another secret has another."""
    assert len(digest_secret(secret)) == 32
    assert digest_secret(secret) != digest_secret(secret + "x")


def test_digest_of_what_is_no_text() -> None:
    """A secret with bytes that are no UTF-8 has a digest too: it is unknown, not a crash."""
    assert len(digest_secret("mck_\udcff")) == 32


@given(st.uuids(), st.text(alphabet="abcdefghijklmnopqrstuvwxyz234567", max_size=40))
def test_a_token_comes_apart_again(message: uuid.UUID, secret: str) -> None:
    """A token gives back the message and the secret that it was made of."""
    token = format_share_token(MessageId(str(message)), secret)
    assert parse_share_token(token) == (str(message), secret)


@pytest.mark.parametrize(
    "token", ["", "a", "a" * 25, "1" * 52, "ß" * 26, "é" * 26, "a b" * 20, "=" * 26, "../" * 10]
)
def test_what_is_no_token(token: str) -> None:
    """A text of another form is refused."""
    with pytest.raises(ValueError, match="share token"):
        parse_share_token(token)


@given(st.text(max_size=80))
def test_any_text(token: str) -> None:
    """Any text is a token or is refused; the message in it is then a UUID."""
    try:
        message_id, _ = parse_share_token(token)
    except ValueError:
        return
    assert str(uuid.UUID(message_id)) == message_id


@given(st.text(), st.text())
def test_secrets(given_secret: str, kept: str) -> None:
    """A secret is only itself."""
    assert is_secret(kept, kept)
    assert is_secret(given_secret, kept) == (given_secret == kept)


def test_a_secret_that_is_no_text() -> None:
    """What can't be encoded is no secret of ours."""
    assert not is_secret("\ud800", "kept")

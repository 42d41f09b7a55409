"""Share tokens: taken apart again, and nothing else is."""

import uuid

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mailcheck.core.identifiers import MessageId, format_share_token, is_secret, parse_share_token


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

"""A house with an SMTP door, and a client that it has greeted."""

import pytest

from tests.smtp.talk import House, Talk


@pytest.fixture
def house() -> House:
    """Return a house with the usual settings."""
    return House()


@pytest.fixture
def talk(house: House) -> Talk:
    """Return a connection that has sent EHLO."""
    return house.greeted()

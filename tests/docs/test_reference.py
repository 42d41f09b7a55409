"""Generated pages of the documentation: they match the code."""

import re

import pytest

from mailcheck.checks.weights import MAX_LISTINGS, MAX_QUALITY
from mailcheck.core.cursors import parse_cursor
from scripts.write_reference import (
    FOLDER,
    PRICES,
    write_pages,
    write_prices,
    write_snippets_into_pages,
)


@pytest.fixture(scope="module")
def pages() -> dict[str, str]:
    """The pages as the code generates them now."""
    return write_pages()


BY_HAND = {"contract.md", "oauth.md", "scim.md", "glossary.md", "mail-programs.md"}
"""Pages of the folder that are not generated."""


def test_the_pages_are_those_of_the_code(pages: dict[str, str]) -> None:
    """Each generated page equals the output of `make reference`, and no other page exists."""
    files = [path for path in FOLDER.iterdir() if path.name not in BY_HAND]
    written = {path.name: path.read_text("utf-8") for path in files}
    old = sorted(name for name in {**written, **pages} if written.get(name) != pages.get(name))
    assert not old, f"{', '.join(old)}: run `make reference`"


def test_pages_have_the_snippets_of_connect() -> None:
    """The snippets in the documentation equal those of the page "Connect", except for the key."""
    pages = write_snippets_into_pages()
    assert {page.name for page in pages} >= {
        "connect-your-software.md",
        "wait-for-mail.md",
        "connect-an-agent.md",
    }
    old = [page.name for page, text in pages.items() if page.read_text("utf-8") != text]
    assert not old, f"{', '.join(old)}: run `make reference`"


def test_published_points_are_those_of_the_code() -> None:
    """The page about scores contains all points, tiers and caps of the code."""
    text = PRICES.read_text("utf-8")
    assert text == write_prices(), "run `make reference`"
    for most in (MAX_LISTINGS, MAX_QUALITY):
        assert f"{most / 10:.1f} at most for all together" in text


def test_the_uid_of_a_cursor_is_the_position_that_mail_programs_see() -> None:
    """The page about mail programs converts a cursor to a UID as the daemon does."""
    text = " ".join((FOLDER / "mail-programs.md").read_text("utf-8").split())
    found = re.search(r"`(c[0-9a-f]+)` is UID (\d+)", text)
    assert found is not None
    assert parse_cursor(found[1]) == int(found[2])
    assert found[1] != f"c{found[2]}"

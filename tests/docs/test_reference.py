"""The pages of docs/reference/: they say what the code says."""

import pytest

from mailcheck.checks.weights import MAX_LISTINGS, MAX_QUALITY
from tests.docs.reference import (
    FOLDER,
    PRICES,
    write_pages,
    write_prices,
    write_snippets_into_pages,
)


@pytest.fixture(scope="module")
def pages() -> dict[str, str]:
    """The pages as the code would write them now."""
    return write_pages()


BY_HAND = {"contract.md", "glossary.md"}
"""Pages of the folder that are not generated."""


def test_the_pages_are_those_of_the_code(pages: dict[str, str]) -> None:
    """Every generated page is what `make reference` writes, and there is no other page."""
    files = [path for path in FOLDER.iterdir() if path.name not in BY_HAND]
    written = {path.name: path.read_text("utf-8") for path in files}
    old = sorted(name for name in {**written, **pages} if written.get(name) != pages.get(name))
    assert not old, f"{', '.join(old)}: write them anew with `make reference`"


def test_pages_have_the_snippets_of_connect() -> None:
    """What a page shows of the snippets is what "Connect" has to copy, but for the key."""
    pages = write_snippets_into_pages()
    assert {page.name for page in pages} >= {
        "connect-your-software.md",
        "wait-for-mail.md",
        "connect-an-agent.md",
    }
    old = [page.name for page, text in pages.items() if page.read_text("utf-8") != text]
    assert not old, f"{', '.join(old)}: write them anew with `make reference`"


def test_the_published_prices_are_those_that_are_charged() -> None:
    """Every price, tier and cap of a mail's score stands on the page about it."""
    text = PRICES.read_text("utf-8")
    assert text == write_prices(), "write it anew with `make reference`"
    for most in (MAX_LISTINGS, MAX_QUALITY):
        assert f"{most / 10:.1f} at most for all together" in text

"""The pages of docs/reference/: they say what the code says."""

import re

import pytest

from mailcheck.checks.weights import COSTS, MEASURED
from tests.checks.test_finding_ids import SOURCES
from tests.docs.findings import ID, read_findings
from tests.docs.reference import FOLDER, write_pages, write_snippets_into_pages


@pytest.fixture(scope="module")
def pages() -> dict[str, str]:
    """The pages as the code would write them now."""
    return write_pages()


def test_the_pages_are_those_of_the_code(pages: dict[str, str]) -> None:
    """Every page is what `make reference` would write, and there is no other."""
    written = {path.name: path.read_text("utf-8") for path in FOLDER.iterdir()}
    old = sorted(name for name in {**written, **pages} if written.get(name) != pages.get(name))
    assert not old, f"{', '.join(old)}: write them anew with `make reference`"


def test_pages_have_the_snippets_of_connect() -> None:
    """What a page shows of the snippets is what "Connect" has to copy, but for the key."""
    pages = write_snippets_into_pages()
    assert {page.name for page in pages} >= {"testing.md", "mcp.md"}
    old = [page.name for page, text in pages.items() if page.read_text("utf-8") != text]
    assert not old, f"{', '.join(old)}: write them anew with `make reference`"


def test_no_finding_is_missing() -> None:
    """Every id that stands in the source of the checks is among them, and all that cost points."""
    areas = {one.partition(".")[0] for one in read_findings()}
    words = {
        word
        for path, _ in SOURCES.items()
        for word in re.findall(rf'"({ID.pattern})"', path.read_text("utf-8"))
        if word.partition(".")[0] in areas
    }
    assert words - read_findings().keys() - NO_FINDINGS == set()
    assert {*COSTS, *MEASURED} <= read_findings().keys()


NO_FINDINGS: frozenset[str] = frozenset()
"""What looks like the id of a finding and is none."""


def test_a_finding_has_its_words() -> None:
    """What a check writes into its finding is read as it stands, its pieces by their names."""
    found = read_findings()["spf.absent"]
    assert found.severities == {"error"}
    assert found.meanings[0].startswith("{domain} does not say which servers may send its mail")
    assert found.modules == {"mailcheck/checks/spf/evaluate.py"}
    assert read_findings()["starttls.missing"].meanings == [
        "{host} does not offer encryption (STARTTLS): mail to it can be read on its way."
    ]

"""Tag lists of DKIM, DMARC, MTA-STS and TLS-RPT records."""

from hypothesis import given
from hypothesis import strategies as st

from mailcheck.checks.tags.tag_lists import has_version, parse_tag_list
from tests.linear import assert_linear
from tests.table import rows


@rows(
    ("", {}),
    ("v=DMARC1", {"v": "DMARC1"}),
    ("v=DMARC1; p=none;", {"v": "DMARC1", "p": "none"}),
    (" v = DKIM1 ;\tp = MIIB IjAN ; ", {"v": "DKIM1", "p": "MIIB IjAN"}),
    ("p=", {"p": ""}),
    ("p=a=b==", {"p": "a=b=="}),
    (";;a=1;;", {"a": "1"}),
)
def test_a_tag_list_is_names_with_values(text: str, tags: dict[str, str]) -> None:
    """Whitespace around names and values is ignored, and so is an additional semicolon."""
    parsed = parse_tag_list(text)
    assert (dict(parsed.tags), parsed.problems) == (tags, ())


@rows(("a=1; b=2;", True), ("a=1;; b=2", False), (";a=1", False), ("a=1; ;", False), ("", True))
def test_an_empty_tag_is_a_violation(text: str, is_list: bool) -> None:
    """According to RFC 6376 3.2, only the last semicolon may have no tag after it."""
    assert (not parse_tag_list(text).violations) is is_list


@rows("a=1; b", "a=1; =2", "a=1; b c=2", "a=1; 1a=2", "a=1; a=2")
def test_malformed_tags_are_problems_and_the_rest_is_read(text: str) -> None:
    """A malformed tag does not hide the others; the first value of a repeated tag counts."""
    parsed = parse_tag_list(text)
    assert parsed.tags == {"a": "1"}
    assert len(parsed.problems) == 1


@rows(
    ("v=DMARC1", True),
    ("v=DMARC1;p=none", True),
    ("v = DMARC1 ; p=none", True),
    (" v=DMARC1; p=none", False),
    ("\tv=DMARC1; p=none", False),
    ("\u00a0v=DMARC1; p=none", False),
    ("v=dmarc1; p=none", False),
    ("v=DMARC12", False),
    ("v=DMARC1 p=none", False),
    ("p=none; v=DMARC1", False),
    ("V=DMARC1", False),
)
def test_the_version_comes_first_and_exactly(text: str, expected: bool) -> None:
    """The version tag decides whether a record is of this kind."""
    assert has_version(text, "DMARC1") is expected


@given(st.text(max_size=200))
def test_any_text_can_be_read(text: str) -> None:
    """Any text is accepted, and values never contain a separator."""
    parsed = parse_tag_list(text)
    assert all(";" not in value for value in parsed.tags.values())


def test_a_huge_record_is_read_in_linear_time() -> None:
    """Semicolons and spaces are parsed in linear time, with few problems listed."""
    for piece in ("; x", " ", "=", ";"):
        assert_linear(parse_tag_list, piece, "")
    assert len(parse_tag_list("; x" * 350_000).problems) <= 10
    assert parse_tag_list(" " * 1_000_000 + "a=1").tags == {"a": "1"}

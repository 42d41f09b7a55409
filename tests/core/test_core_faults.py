"""Tags that request faults are exactly those of the table."""

import re
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from mailcheck.core.faults import FAULTS, PREFIX, Meeting, find_fault
from tests.table import rows

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "simulate-failures.md"

TAGS = [one.tag.replace("-N", "-7") for one in FAULTS]


@rows(*TAGS)
def test_each_tag_of_the_table_is_a_fault(tag: str) -> None:
    """Every tag of the table requests its fault, in any case."""
    fault = find_fault(tag)
    assert fault is not None
    assert find_fault(tag.upper()) == fault
    assert fault.tag == tag
    refuses = fault.meeting in (
        Meeting.REFUSED_RECIPIENT,
        Meeting.GREYLISTED,
        Meeting.REFUSED_MAIL,
    )
    assert (fault.reply[0] >= 400) == refuses


def test_a_code_in_a_tag_is_the_code_of_the_reply() -> None:
    """A tag such as ``fault.data-554`` requests the reply code in its name."""
    named = {tag: int(tag[-3:]) for tag in TAGS if re.search(r"-\d{3}$", tag)}
    assert len(named) == 4
    for tag, code in named.items():
        fault = find_fault(tag)
        assert fault is not None
        assert fault.reply[0] == code


@rows(("fault.greylist", 600), ("fault.slow", 60))
def test_numbers_within_their_range(name: str, longest: int) -> None:
    """The number in a tag must be an integer from 1 to its maximum, in canonical form."""
    for seconds in (1, longest):
        fault = find_fault(f"{name}-{seconds}")
        assert fault is not None
        assert fault.seconds == seconds
    for wrong in (0, longest + 1, "01", "+1", "1.5", "", "\u0661", "1 "):
        assert find_fault(f"{name}-{wrong}") is None, wrong


@rows(
    "",
    "signup",
    "fault",
    "fault.",
    "fault.rcpt",
    "fault.rcpt-452",
    "fault.rcpt-451x",
    "xfault.rcpt-451",
    "fault.drop",
    "fault.drop-data-5",
    "fault.data-5",
    "fault.quota-3",
    "fault.rcpt-451\n",
)
def test_others_are_ordinary_tags(tag: str) -> None:
    """Tags that only resemble those of the table are ordinary tags."""
    assert find_fault(tag) is None


@given(st.text(max_size=20))
def test_nothing_else_is_one(ending: str) -> None:
    """Any tag that begins with ``fault.`` is in the table or is an ordinary tag."""
    fault = find_fault(PREFIX + ending)
    rows = {one.tag for one in FAULTS}
    assert fault is None or re.sub(r"(slow|greylist)-\d+$", r"\1-N", fault.tag) in rows


def test_the_page_has_the_table() -> None:
    """The documentation has the same table."""
    rows = re.findall(r"^\| `([^`]+)` \| (.+?) \| (.+?) \|$", PAGE.read_text(), re.MULTILINE)
    assert rows == [(one.tag, one.does, one.good_sender) for one in FAULTS]

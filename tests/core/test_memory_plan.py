"""The limits of memory of a daemon, derived from the memory that it may use."""

from hypothesis import given
from hypothesis import strategies as st

from mailcheck.config.options import SmtpOptions
from mailcheck.core.memory.client_limits import AMPLE, BASE, MEBIBYTE, OF_OCTET, MemoryPlan
from tests.table import rows

LIMITS = (
    "incoming",
    "appended",
    "bodies",
    "bodies_of_client",
    "responses",
    "responses_of_client",
    "requests",
    "large_mails",
)

SIZES = st.integers(128 * MEBIBYTE, 2**50)


@given(SIZES, SIZES)
def test_more_memory_never_lowers_a_limit(one: int, other: int) -> None:
    """Every limit is positive, and grows with the memory."""
    smaller, larger = (MemoryPlan(size) for size in sorted((one, other)))
    for name in LIMITS:
        assert 0 < getattr(smaller, name) <= getattr(larger, name) <= getattr(AMPLE, name)
    assert smaller.filtered_mails(5) <= larger.filtered_mails(5) <= 5


@given(SIZES)
def test_incoming_mail_fits(size: int) -> None:
    """The mails in transfer, with all their copies, fit beside the daemon where it has room."""
    plan = MemoryPlan(size)
    if size > 2 * BASE:
        assert BASE + plan.incoming * OF_OCTET <= size


@rows((256, 4, 0), (512, 14, 1), (768, 25, 2), (65_536, 512, 2))
def test_documented_sizes(mebibytes: int, largest: int, filtered: int) -> None:
    """The page that tunes a daemon names these sizes of mails, and numbers of filtered mails."""
    plan = MemoryPlan(mebibytes * MEBIBYTE)
    assert plan.incoming // MEBIBYTE == largest
    assert plan.filtered_mails(2) == filtered


def test_the_default_needs_less_than_a_gibibyte() -> None:
    """A mail of the default maximum size is received with 768 MiB."""
    assert MemoryPlan(768 * MEBIBYTE).incoming >= SmtpOptions().max_message_size

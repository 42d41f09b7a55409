"""Filters: which messages match, and why others do not."""

from msgspec.structs import replace

from mailcheck.core.accounts import InboxState, Quota
from mailcheck.core.conditions import WITH_TEXT, Term
from mailcheck.core.content import HeaderSummary
from mailcheck.core.cursors import Position
from mailcheck.core.filters import MessageFilter
from mailcheck.core.identifiers import AccountId
from mailcheck.core.instants import Instant
from tests.engines.deliveries import delivery, recipient
from tests.table import rows

MESSAGE = delivery(recipient("abc", "SignUp"), received_at=Instant(10_000)).message(
    0, Position(7), HeaderSummary("shop@example.com", "Der Große Shop", "Willkommen STRASSE")
)


@rows(
    MessageFilter(),
    MessageFilter(tag="signup"),
    MessageFilter(recipient="DEV-ABC+signup@mailcheck.EXAMPLE"),
    MessageFilter(author="SHOP@example"),
    MessageFilter(author="der grosse shop"),
    MessageFilter(author="Shop <shop"),
    MessageFilter(subject="straße"),
    MessageFilter(since=Instant(10_000)),
    MessageFilter(after=Position(6)),
    MessageFilter(up_to=Position(7)),
    MessageFilter(search=(Term(WITH_TEXT, "gone"),)),
)
def test_matches(wanted: MessageFilter) -> None:
    """Tag and recipient must be equal; author and subject must contain the text."""
    assert wanted.mismatches(MESSAGE) == []
    assert wanted.matches(MESSAGE)


@rows(
    (MessageFilter(tag="sign"), "its tag is 'SignUp', not 'sign'"),
    (MessageFilter(tag=""), "its tag is 'SignUp', not ''"),
    (MessageFilter(recipient="dev-abc@mailcheck.example"), "it was sent to"),
    (MessageFilter(author="bank"), "its author is"),
    (MessageFilter(subject="reset"), "its subject is"),
    (MessageFilter(since=Instant(12_500)), "it arrived 2.5 s before since"),
    (MessageFilter(after=Position(7)), "it had arrived before the cursor"),
    (MessageFilter(up_to=Position(6)), "it has arrived since"),
)
def test_mismatches(wanted: MessageFilter, reason: str) -> None:
    """A message that does not match gets exactly the reason that applies."""
    (found,) = wanted.mismatches(MESSAGE)
    assert found.startswith(reason)
    assert not wanted.matches(MESSAGE)


def test_all_reasons_are_named() -> None:
    """All reasons are reported at once."""
    wanted = MessageFilter(
        tag="other",
        recipient="x",
        author="xyz",
        subject="xyz",
        since=Instant(10_001),
        after=Position(8),
    )
    assert len(wanted.mismatches(MESSAGE)) == 6


def test_untagged() -> None:
    """The empty tag matches mail without a tag."""
    untagged = replace(MESSAGE, tag="")
    assert MessageFilter(tag="").matches(untagged)
    assert not MessageFilter(tag="signup").matches(untagged)


@rows((0, 0, True), (1, 99, True), (2, 0, False), (0, 100, False), (3, 200, False))
def test_room_of_an_inbox(messages: int, size: int, has_room: bool) -> None:
    """An inbox accepts a message while neither quota is reached."""
    state = InboxState(AccountId("a"), "dev-a", Position(3), messages, size, Quota(2, 100))
    assert state.has_room is has_room

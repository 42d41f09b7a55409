"""Patterns of recipients, and what an attempt signs."""

from mailcheck.core.inbound import (
    OLD_TIME_STAMP,
    InboundDeliveryId,
    InboundFault,
    InboundMoment,
    matches_recipient,
)
from mailcheck.core.instants import Instant
from tests.table import rows


@rows(
    ("support@*", "support@app.test", True),
    ("Support@*", "SUPPORT@app.test", True),
    ("support@*", "nosupport@app.test", False),
    ("*+ticket-*@*", "in+ticket-9@app.test", True),
    ("*+ticket-*@*", "in+tickets@app.test", False),
    ("in@app.test", "in@app.test", True),
    ("in@app.test", "in@app.test.evil", False),
    ("*", "anyone@app.test", True),
    ("ab*ba", "aba", False),
    ("ab*ba", "abba", True),
    ("a**b", "ab", True),
    ("*a*b*", "b@a", False),
    ("in?@app.test", "in1@app.test", False),
)
def test_a_star_stands_for_any_characters(pattern: str, recipient: str, expected: bool) -> None:
    """A recipient matches if the text between the stars occurs in order, without overlap."""
    assert matches_recipient(pattern, recipient) is expected


def test_only_an_old_time_stamp_is_old() -> None:
    """The fault of an old time stamp changes what is signed, and not when it is sent."""
    now = Instant(10 * OLD_TIME_STAMP)
    moment = InboundMoment(InboundDeliveryId("d"), now, fault=InboundFault.OLD_TIME_STAMP)
    assert moment.signed_at == now - OLD_TIME_STAMP
    assert InboundMoment(InboundDeliveryId("d"), now).signed_at == now

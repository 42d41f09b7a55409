"""Delivery status notifications: what pages show of bounces."""

from mailcheck.checks.content.bounces import (
    MAX_RECIPIENTS,
    FailedRecipient,
    ReturnedMail,
    find_parts,
    read_bounce,
)
from mailcheck.core.instants import Instant
from tests.linear import assert_linear
from tests.table import rows

REPORT = b"Reporting-MTA: dns; mx.example.net\nArrival-Date: Sun, 29 Nov 2026 09:59:58 +0000\n"

RECIPIENT = b"""
Final-Recipient: rfc822; nobody@shop.example
Action: failed
Status: 5.1.1
Remote-MTA: dns; mail.shop.example
Diagnostic-Code: smtp; 550 5.1.1 <nobody@shop.example>: Recipient address
    rejected: unknown user
"""

RETURNED = b"""Subject: =?utf-8?q?Your_order?= 4711
Date: Sun, 29 Nov 2026 09:59:57 +0000
Message-ID: <4711@example.com>

Thank you.
"""


def test_a_bounce_is_read() -> None:
    """A bounce says who did not get which mail, why, and which server said so."""
    found = read_bounce(REPORT + RECIPIENT, RETURNED)
    assert found is not None
    assert (found.title, found.reporter) == ("Not delivered", "mx.example.net")
    assert found.recipients == (
        FailedRecipient(
            "nobody@shop.example",
            "Not delivered",
            "5.1.1",
            "The mailbox does not exist.",
            "550 5.1.1 <nobody@shop.example>: Recipient address rejected: unknown user",
            "mail.shop.example",
        ),
    )
    assert found.mail == ReturnedMail(
        "Your order 4711", Instant(1_795_946_397_000), "<4711@example.com>"
    )


@rows(
    (b"delayed", "4.4.1", "Delayed", "The receiving server does not answer."),
    (b"Failed (permanently)", "5.7.26", "Not delivered", "Neither SPF nor DKIM passes."),
    (b"delivered", "2.0.0", "Delivered", ""),
    (b"odd", "5.2.99", "Not delivered", "There is a problem with the mailbox."),
    (b"failed", "none", "Not delivered", ""),
)
def test_actions_and_codes_have_words(action: bytes, code: str, title: str, meaning: str) -> None:
    """Known actions and codes have their words; unknown details have those of their subject."""
    status = RECIPIENT.replace(b"failed", action).replace(b"5.1.1", code.encode())
    found = read_bounce(REPORT + status)
    assert found is not None
    assert found.mail is None
    assert (found.title, found.recipients[0].meaning) == (title, meaning)


def test_several_recipients() -> None:
    """All recipients are listed, up to a limit, and different actions have a common title."""
    delayed = RECIPIENT.replace(b"failed", b"delayed")
    found = read_bounce(REPORT + RECIPIENT + delayed)
    assert found is not None
    assert found.title == "Delivery report"
    assert [one.title for one in found.recipients] == ["Not delivered", "Delayed"]
    many = read_bounce(REPORT + RECIPIENT * (MAX_RECIPIENTS + 5))
    assert many is not None
    assert len(many.recipients) == MAX_RECIPIENTS


def test_the_parts_are_found() -> None:
    """A mail with a status part is a bounce, with or without the returned mail."""
    status = "message/delivery-status"
    assert find_parts(["image/png", status, "message/rfc822"]) == (1, 2)
    assert find_parts([status]) == (0, None)
    assert find_parts(["message/rfc822"]) is None


@rows(b"", b"Reporting-MTA: dns; a.example\n\n", b"\xff\n\n\xff: x\n")
def test_a_part_without_recipient(status: bytes) -> None:
    """A status part that names no recipient is no bounce."""
    assert read_bounce(status, RETURNED) is None


@rows(b"\n", b"\n ", b"a: b\n\n", b" \t\r", RECIPIENT)
def test_hostile_parts_take_linear_time(piece: bytes) -> None:
    """A part takes time in proportion to its size."""
    assert_linear(read_bounce, piece, REPORT)

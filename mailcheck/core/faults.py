"""Simulated failures that mail to certain tags triggers, to test the programs that send it."""

import re
from collections.abc import Mapping, Sequence
from enum import Enum

from msgspec import Struct

from mailcheck.core.addresses import fold_tag

PREFIX = "fault."

RECEIVER_PREFIX = "receiver."
"""Prefix of tags that request the reply of a receiver. The receiver's id follows."""

LONGEST_GREYLISTING = 600
"""Maximum seconds of greylisting. Mail servers retry after half an hour (RFC 5321 4.5.4.1); a
sender under test retries at once."""

LONGEST_DELAY = 60
"""Maximum seconds of delay. A sender waits ten minutes for the reply to its mail (RFC 5321
4.5.3.2.6)."""


class Meeting(Enum):
    """When a fault occurs in the SMTP conversation, and its effect."""

    REFUSED_RECIPIENT = "the reply to RCPT refuses"
    GREYLISTED = "the reply to RCPT refuses for a while"
    REFUSED_MAIL = "the reply to the message refuses"
    DELAYED = "the reply to the message comes late"
    DROPPED = "the connection ends in place of it, the mail is not stored"
    DROPPED_AFTER = "the connection ends in place of it, the mail is stored"
    ANSWERED_AS = "the mail is stored, and gets the reply that a receiver gives to it"

    @property
    def is_at_recipient(self) -> bool:
        """Whether it occurs at RCPT; other faults affect the whole mail."""
        return self in (Meeting.REFUSED_RECIPIENT, Meeting.GREYLISTED)


class Fault(Struct, frozen=True):
    """The fault of one tag.

    ``reply`` is a code of RFC 5321 4.2 with the enhanced code of RFC 3463, if there is a reply.
    ``seconds`` is the duration of a fault that has one.
    """

    tag: str
    meeting: Meeting
    reply: tuple[int, str] = (0, "")
    seconds: int = 0


class FaultOffered(Struct, frozen=True):
    """A row of the published table. In ``tag`` an N stands for a number."""

    tag: str
    does: str
    good_sender: str


LARGEST_EVERY = 1_000
"""Maximum number of mails of a key of which one can be made to fail."""

MAIL_REFUSED = (451, "4.3.0")
"""The reply to a mail that is rejected because of the setting of an API key or by a fault."""

_FIXED: Mapping[str, Fault] = {
    fault.tag: fault
    for fault in (
        Fault("fault.rcpt-451", Meeting.REFUSED_RECIPIENT, (451, "4.3.0")),
        Fault("fault.rcpt-550", Meeting.REFUSED_RECIPIENT, (550, "5.1.1")),
        Fault("fault.quota", Meeting.REFUSED_RECIPIENT, (452, "4.2.2")),
        Fault("fault.data-451", Meeting.REFUSED_MAIL, MAIL_REFUSED),
        Fault("fault.data-554", Meeting.REFUSED_MAIL, (554, "5.7.1")),
        Fault("fault.drop-data", Meeting.DROPPED),
        Fault("fault.drop-after", Meeting.DROPPED_AFTER),
    )
}

_TIMED: Mapping[str, tuple[Meeting, tuple[int, str], int]] = {
    "fault.greylist": (Meeting.GREYLISTED, (451, "4.7.1"), LONGEST_GREYLISTING),
    "fault.slow": (Meeting.DELAYED, (0, ""), LONGEST_DELAY),
}

_WITH_SECONDS = re.compile(r"(fault\.[a-z]+)-([1-9][0-9]{0,2})", re.ASCII)

FAULTS: Sequence[FaultOffered] = (
    FaultOffered(
        "fault.rcpt-451",
        "RCPT gets 451",
        "keeps the mail and tries this recipient again later; the others get theirs now",
    ),
    FaultOffered(
        "fault.rcpt-550",
        "RCPT gets 550",
        "never tries this address again, and reports the error to the user",
    ),
    FaultOffered(
        "fault.quota",
        "RCPT gets 452, as of a full mailbox",
        "tries again for hours, then notifies the sender that the mailbox is full",
    ),
    FaultOffered(
        f"{PREFIX}greylist-N",
        "RCPT gets 451 until N seconds, 1 to 600, after the first try of that sender and recipient",
        "tries again later from the same sender, and gets through",
    ),
    FaultOffered(
        "fault.data-451",
        "the message gets 451; the mail is not stored for any recipient",
        "keeps the mail and tries all recipients again later",
    ),
    FaultOffered(
        "fault.data-554",
        "the message gets 554; the mail is not stored for any recipient",
        "does not try again, and notifies the sender",
    ),
    FaultOffered(
        f"{PREFIX}slow-N",
        "the mail is stored, and its 250 comes N seconds, 1 to 60, later",
        "waits for the reply without blocking the user, and sends once",
    ),
    FaultOffered(
        "fault.drop-data",
        "the connection ends in place of the reply; the mail is not stored",
        "tries again: without a 250 the mail has not arrived",
    ),
    FaultOffered(
        "fault.drop-after",
        "the mail is stored, and the connection ends in place of the reply",
        "tries again with the same Message-ID, so that the recipient can recognise the duplicate",
    ),
)
"""All tags with faults. Any other tag that begins with ``fault.`` is an ordinary tag."""


def asks_for_fault(tag: str) -> bool:
    """Return whether a tag has the prefix of tags with faults."""
    return fold_tag(tag).startswith(PREFIX)


def named_receiver(tag: str) -> str:
    """Return what follows the prefix of tags that name a receiver, or an empty string."""
    folded = fold_tag(tag)
    return folded.removeprefix(RECEIVER_PREFIX) if folded.startswith(RECEIVER_PREFIX) else ""


def find_fault(tag: str) -> Fault | None:
    """Return the fault of a tag, compared case-insensitively, or `None` for any other tag."""
    folded = fold_tag(tag)
    if not folded.startswith(PREFIX):
        return None
    timed = _WITH_SECONDS.fullmatch(folded)
    if timed is None or timed[1] not in _TIMED:
        return _FIXED.get(folded)
    meeting, reply, longest = _TIMED[timed[1]]
    seconds = int(timed[2])
    return Fault(folded, meeting, reply, seconds) if seconds <= longest else None

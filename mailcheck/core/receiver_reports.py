"""Reports that receivers send to an account: the addresses they go to, and how they are kept."""

import hashlib
import re
from collections.abc import Awaitable, Callable
from enum import Enum
from typing import NewType

from msgspec import Struct

from mailcheck.core.addresses import INBOX_PREFIX
from mailcheck.core.identifiers import AccountId
from mailcheck.core.instants import DAY, Instant

LARGEST_REPORT_PAGE = 200
"""Maximum and default number of rows on a page of report results, and of each list beside it."""

ReportId = NewType("ReportId", str)


class ReportKind(Enum):
    """What a report is about; the values are those of the API, and begin the addresses."""

    DMARC = "dmarc"
    TLS = "tls"


class ReportState(Enum):
    """Where a report stands; the values are those of the API."""

    WAITING = "waiting"
    """It has come, and nobody has read it yet."""
    COUNTED = "counted"
    """It is believed, and what it says is counted."""
    REPEATED = "repeated"
    """The same report was counted before."""
    APART = "apart"
    """It can be read, but is not believed: nothing of it is counted."""
    REFUSED = "refused"
    """It is no report."""


REPORTS_KEPT = 400 * DAY
"""How long reports, and what they say, are kept: a year can be compared with the one before."""

RAW_KEPT = 7 * DAY
"""How long the mail is kept that brought a report which was not counted."""

MAX_WAITING, MAX_WAITING_BYTES = 200, 256 * 1024 * 1024
"""Reports of an account that wait to be read at a time, and what they hold together."""

MAX_RAW, MAX_RAW_SIZE = 500, 1024 * 1024
"""Such mails of an account that are kept at a time, and octets of each: larger ones are not."""

_ADDRESS = re.compile(r"(dmarc|tls)-([a-z2-7]{13})", re.ASCII)


def parse_report_address(local_part: str) -> tuple[ReportKind, str] | None:
    """Read a local part: the kind of report, and the mailbox name of the inbox it belongs to.

    Nothing for any other local part; a subaddress makes it another address.
    """
    found = _ADDRESS.fullmatch(local_part.lower()) if local_part.isascii() else None
    return None if found is None else (ReportKind(found[1]), INBOX_PREFIX + found[2])


def report_local_part(kind: ReportKind, mailbox_name: str) -> str:
    """Give the local part to which reports of an inbox's account go."""
    return f"{kind.value}-{report_token(mailbox_name)}"


def report_token(mailbox_name: str) -> str:
    """Give what stands for the account in the addresses of its reports."""
    return mailbox_name.removeprefix(INBOX_PREFIX)


class ReportPlaces(Struct, frozen=True):
    """Where the reports of an account go: two mail addresses and a URL; empty where nowhere."""

    dmarc: str
    tls: str
    tls_url: str


NOWHERE = ReportPlaces("", "", "")


Offer = Callable[[AccountId], Awaitable[ReportPlaces]]
"""Gives where advice for an account has reports sent."""


class ReceiverReport(Struct, frozen=True):
    """A report as it is kept.

    ``reason`` says why it is not counted, or what is to be known of one that is. ``reporter`` is
    the domain that vouches for the mail, ``organisation`` what the report says of itself;
    ``problems`` are the rows that were left out. What was not read is empty.
    """

    id: ReportId
    account_id: AccountId
    kind: ReportKind
    state: ReportState
    received_at: Instant
    reason: str = ""
    domain: str = ""
    reporter: str = ""
    organisation: str = ""
    report_id: str = ""
    begins_at: Instant | None = None
    ends_at: Instant | None = None
    policy: str = ""
    messages: int = 0
    failing: int = 0
    problems: tuple[str, ...] = ()


def day_of(begins_at: Instant) -> Instant:
    """Return the day (UTC) that a report counts for: the one in which it begins."""
    return Instant(begins_at - begins_at % DAY)


class ReportSelection(Struct, frozen=True):
    """Reports of an account that meet all conditions that are set.

    ``day`` is when the day begins (UTC) that a report is about, or came on if it names none.
    """

    report_id: ReportId | None = None
    reporter: str | None = None
    day: Instant | None = None


def row_digest(reporter: str, report_id: str, result: str, reason: str = "") -> str:
    """Return the digest that identifies a counted row of a report among all rows.

    :param reason: that of the report. A posted report has one, an authenticated report has none:
        so their rows differ, whatever the posted one claims.
    """
    text = "\0".join((reporter, report_id, result, *((reason,) if reason else ())))
    return hashlib.sha256(text.encode()).hexdigest()[:32]

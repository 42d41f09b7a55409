"""Reports that receivers send to an account: addresses and stored values.

DMARC and TLS reports summarize a day. Failure reports (RFC 9991) and complaints (RFC 5965) are
about one mail.
"""

import hashlib
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping
from enum import Enum
from typing import NewType

from msgspec import Struct
from msgspec.structs import replace

from mailcheck.core.addresses import INBOX_PREFIX
from mailcheck.core.identifiers import AccountId
from mailcheck.core.instants import DAY, Instant

LARGEST_REPORT_PAGE = 200
"""Maximum and default number of rows on a page of report results, and of each list beside it."""

ReportId = NewType("ReportId", str)


class ReportKind(Enum):
    """Type of a report. The values are part of the API."""

    DMARC = "dmarc"
    TLS = "tls"
    FAILURE = "failure"
    """A mail that failed DMARC (RFC 9991)."""
    COMPLAINT = "complaint"
    """A mail about which its recipient or a filter complained (RFC 5965)."""

    @property
    def is_feedback(self) -> bool:
        """Whether the report is about one mail."""
        return self in FEEDBACK


FEEDBACK = (ReportKind.FAILURE, ReportKind.COMPLAINT)
"""The kinds of reports about one mail."""


class FeedbackType(Enum):
    """What a report about one mail says (RFC 5965 7.3, RFC 6591 3.1). The API shows the values."""

    ABUSE = "abuse"
    FRAUD = "fraud"
    OPT_OUT = "opt-out"
    NOT_SPAM = "not-spam"
    AUTH_FAILURE = "auth-failure"
    VIRUS = "virus"
    OTHER = "other"

    @property
    def kind(self) -> ReportKind:
        """The kind of the report."""
        return ReportKind.FAILURE if self is FeedbackType.AUTH_FAILURE else ReportKind.COMPLAINT

    @property
    def is_complaint(self) -> bool:
        """Whether it counts as a complaint. A mail that is reported as not spam does not."""
        return self not in (FeedbackType.AUTH_FAILURE, FeedbackType.NOT_SPAM)


class ReportState(Enum):
    """State of a report. The values are part of the API."""

    WAITING = "waiting"
    """Received, and not processed yet."""
    COUNTED = "counted"
    """Authenticated, and its contents are counted."""
    REPEATED = "repeated"
    """A duplicate of a report that was counted before."""
    APART = "apart"
    """Readable but not authenticated, so its contents are not counted."""
    REFUSED = "refused"
    """Not a valid report."""


class ReportWay(Enum):
    """How a report came, the most believable way first. The values are part of the API."""

    RECEIVED = "received"
    """It was sent to an address of this server, and judged when it arrived."""
    FETCHED = "fetched"
    """It was read from a mailbox of the account, to which anyone can send mail."""
    UPLOADED = "uploaded"
    """A member of the project imported the file."""


class SenderDecision(Enum):
    """Decision of a person about a sender in DMARC reports. The values are part of the API."""

    MINE = "mine"
    """It sends for the owner, so its mail must pass."""
    NOT_MINE = "not-mine"
    """Its mail may be stopped."""


MIN_DAYS = 14
"""Minimum number of days with reports for a safe policy: two weeks include each weekday twice."""

OTHER_SENDERS = "others"
"""Key for a decision about several unknown senders of a domain together."""

UNDECIDED = "undecided"
"""Name of the missing decision in requests."""

MAX_DECISIONS = 1_000
"""Maximum number of decisions of an account, about all of its domains."""

REPORTS_KEPT = 400 * DAY
"""Retention of reports and their contents. It allows to compare a year with the year before."""

MAX_IMPORT = 64 * 1024 * 1024
"""Maximum number of octets that one request may import."""

MAX_AHEAD = 2 * DAY
"""How far in the future a report may end, since clocks of reporters differ."""

SUMS_KEPT = 7_300 * DAY
"""Retention of the sums of each day, which replace the rows after `REPORTS_KEPT`, and of the list
of imported reports."""

RAW_KEPT = 7 * DAY
"""Retention of the mail of a report that was not counted."""

MAX_WAITING, MAX_WAITING_BYTES = 200, 256 * 1024 * 1024
"""Maximum number and total bytes of an account's reports that wait to be processed."""

MAX_RAW, MAX_RAW_SIZE = 500, 1024 * 1024
"""Maximum number of stored mails with reports that were not counted, for each account, and the
maximum bytes of each. Larger mails are not stored."""

MAX_LETTERS = 20
"""Maximum number of stored letters of an account. They are deleted after `RAW_KEPT`."""

_PREFIXES: Mapping[str, ReportKind] = {
    "dmarc": ReportKind.DMARC,
    "tls": ReportKind.TLS,
    "ruf": ReportKind.FAILURE,
    "fbl": ReportKind.COMPLAINT,
}
"""Beginnings of the local parts of report addresses."""

_ADDRESS = re.compile(rf"({'|'.join(_PREFIXES)})-([a-z2-7]{{13}})", re.ASCII)


def parse_report_address(local_part: str) -> tuple[ReportKind, str] | None:
    """Return the kind of report and the mailbox name of the inbox in a local part.

    Return `None` for any other local part. A local part with a subaddress is another address.
    """
    found = _ADDRESS.fullmatch(local_part.lower()) if local_part.isascii() else None
    return None if found is None else (_PREFIXES[found[1]], INBOX_PREFIX + found[2])


def report_local_part(kind: ReportKind, mailbox_name: str) -> str:
    """Return the local part for reports to the account of an inbox."""
    prefix = next(prefix for prefix, own in _PREFIXES.items() if own is kind)
    return f"{prefix}-{report_token(mailbox_name)}"


def report_token(mailbox_name: str) -> str:
    """Return the token for the account in its report addresses."""
    return mailbox_name.removeprefix(INBOX_PREFIX)


class ReportPlaces(Struct, frozen=True):
    """Destinations for the reports of an account: mail addresses and a URL. Empty if none."""

    dmarc: str
    tls: str
    tls_url: str
    failures: str = ""
    complaints: str = ""


class Coverage(Struct, frozen=True):
    """The days of the counted reports: how many have reports, and the first and the last."""

    days: int = 0
    first_day: Instant | None = None
    last_day: Instant | None = None


NOWHERE = ReportPlaces("", "", "")


Offer = Callable[[AccountId], Awaitable[ReportPlaces]]
"""Returns the destinations of reports that advice for an account recommends."""


class ReportedMail(Struct, frozen=True, omit_defaults=True):
    """Personal data of a reported mail. It is only stored if the operator chose so."""

    sender: str = ""
    recipients: tuple[str, ...] = ()
    author: str = ""
    subject: str = ""
    text: str = ""


class Feedback(Struct, frozen=True, omit_defaults=True):
    """The content of a report about one mail. Texts that the report does not contain are empty.

    ``source`` is the address that sent the mail. ``signing_domain`` and ``selector`` are those of
    its DKIM signature. ``campaign`` is the value of ``campaign_field``, which is ``Feedback-ID``,
    ``List-Id`` or ``DKIM``. ``failure``, ``alignment`` and ``delivery`` are values of RFC 6591
    and RFC 9991. ``results`` are results of authentication, like ``dkim=fail``. ``program`` wrote
    the report.
    """

    type: FeedbackType
    source: str = ""
    author_domain: str = ""
    envelope_domain: str = ""
    signing_domain: str = ""
    selector: str = ""
    campaign: str = ""
    campaign_field: str = ""
    failure: str = ""
    alignment: str = ""
    delivery: str = ""
    results: tuple[str, ...] = ()
    incidents: int = 1
    arrived_at: Instant | None = None
    program: str = ""
    mail: ReportedMail | None = None

    @property
    def counted(self) -> "Feedback":
        """The part that reports of equal mails have in common."""
        return replace(self, results=(), incidents=1, arrived_at=None, program="", mail=None)


class Letter(Struct, frozen=True, omit_defaults=True):
    """A mail to the address for complaints that is not a report: its author, subject and text.

    Receivers send such mail so that the owner confirms the address.
    """

    author: str = ""
    subject: str = ""
    text: str = ""
    links: tuple[str, ...] = ()


class ReceiverReport(Struct, frozen=True):
    """A stored report.

    ``reason`` says why it is not counted, or has a remark about a counted one. ``reporter`` is
    the authenticated domain of the mail, ``organisation`` the name in the report.
    ``problems`` are the rows that were left out. Fields that could not be read are empty.
    ``feedback`` is the content of a report about one mail, and ``letter`` the one of a mail that
    is not a report. ``row_count`` is the number of rows that an imported report added. The moment
    in ``received_at`` of an imported report is the end of its period.
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
    feedback: Feedback | None = None
    letter: Letter | None = None
    way: ReportWay = ReportWay.RECEIVED
    row_count: int = 0

    @property
    def period(self) -> tuple[int, int]:
        """The begin and the end of a report; zeros for a report about one mail.

        Some reporters use one id for several days, so the period is part of the identity.
        """
        if self.kind.is_feedback:
            return 0, 0
        return self.begins_at or 0, self.ends_at or 0


class SumOfDay(Struct, frozen=True):
    """The messages about a domain on a day whose rows are no longer kept."""

    day: Instant
    amount: int
    failing: int


class MailOfWays(Struct, frozen=True):
    """The messages in the reports about a domain by how the reports came.

    ``is_proven``: the DNS of the domain has requested reports to the account.
    """

    messages: Mapping[ReportWay, int]
    is_proven: bool

    @property
    def imported(self) -> int:
        """The messages in imported reports."""
        return sum(self.messages.values()) - self.messages.get(ReportWay.RECEIVED, 0)


def day_of(begins_at: Instant) -> Instant:
    """Return the day (UTC) of a report: the day on which its period begins."""
    return Instant(begins_at - begins_at % DAY)


class ReportSelection(Struct, frozen=True):
    """Conditions for reports of an account. All that are set must be met.

    ``day`` is the beginning (UTC) of the day that the report is about, or of the day on which it
    was received if it has no period.
    """

    report_id: ReportId | None = None
    reporter: str | None = None
    day: Instant | None = None


def row_digest(report: ReceiverReport, result: str) -> str:
    """Return the digest that identifies a counted row of a report among all rows.

    Posted reports have a reason, authenticated reports have none, so their rows always differ.
    """
    begin, end = report.period
    identity = (report.reporter, report.report_id, report.organisation, f"{begin}-{end}")
    return _digest((*identity, result, report.reason))


def former_row_digest(report: ReceiverReport, result: str) -> str:
    """Return the digest of a row that was counted before the period was part of the identity."""
    return _digest((report.reporter, report.report_id, result, *filter(None, (report.reason,))))


def _digest(texts: Iterable[str]) -> str:
    return hashlib.sha256("\0".join(texts).encode()).hexdigest()[:32]

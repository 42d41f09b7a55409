"""The verdict of a content filter, or the reason why there is none.

`mailcheck.checks.deliverability.rspamd` parses the answers of rspamd.

SpamAssassin answers ``REPORT`` with a table of rules:

 pts rule name              description
---- ---------------------- --------------------------------------------------
 2.7 MISSING_DATE           Missing Date: header
 0.2 NORMAL_HTTP_TO_IP      URI: URI host has a public dotted-decimal IPv4
                            address
1000 GTUBE                  BODY: Generic Test for Unsolicited Bulk Email

The text above the table quotes the mail, indented. So only a line of dashes without indentation
begins the table, and an empty line ends it. The lines after a description may quote the mail,
too. A table whose points do not add up to the total is therefore rejected.
"""

import re
from collections.abc import Iterator
from enum import Enum, StrEnum
from itertools import takewhile
from math import fsum

from msgspec import Struct

SPAMASSASSIN = "SpamAssassin"
RSPAMD = "rspamd"


class FilterRule(Struct, frozen=True):
    """A rule that matched.

    ``points`` are in tenths, or whole from 10 on, as SpamAssassin prints them; positive points
    are against the mail. ``not_counted`` is a sentence that says why the points are only shown,
    usually because another check covers the same problem; empty for a rule that counts.
    """

    name: str
    points: float
    description: str
    not_counted: str = ""

    @property
    def counts(self) -> bool:
        """Whether the points of the rule are charged; no problem is charged twice."""
        return not self.not_counted


class FilterVerdict(Struct, frozen=True):
    """The filter's verdict about a mail.

    ``points``, ``threshold`` and ``is_spam`` are the filter's own, over all rules.
    ``counted_points`` are the points that the score uses. ``rules`` are in the filter's order.
    ``engine`` names the program and, if known, its version. ``left_out`` is the number of octets
    of attachments that were not sent to the filter.
    """

    points: float
    threshold: float
    is_spam: bool
    rules: tuple[FilterRule, ...]
    engine: str = SPAMASSASSIN
    left_out: int = 0

    @property
    def counted_points(self) -> float:
        """Sum of the points of the rules that count, in tenths; may be negative."""
        return round(fsum(rule.points for rule in self.rules if rule.counts), 1)


class FilterProblem(Enum):
    """Reason for a missing verdict; none of these is a statement about the mail."""

    OFF = "off"
    NOT_INSTALLED = "not-installed"
    NO_MEMORY = "no-memory"
    """The daemon may use too little memory for a private instance."""
    UNREACHABLE = "unreachable"
    """It does not accept a connection, or the private instance did not start."""
    TIMEOUT = "timeout"
    BUSY = "busy"
    """Too many mails are waiting for it."""
    TOO_LARGE = "too-large"
    """The mail is too large for the filter, even without its attachments."""
    BROKEN_ANSWER = "broken-answer"
    """It sent an invalid answer, closed the connection early, or failed."""
    SKIPPED = "skipped"
    """Its settings exempt the mail from the rules."""


ABSENT = (FilterProblem.OFF, FilterProblem.NOT_INSTALLED, FilterProblem.NO_MEMORY)
"""Reasons for which this server has no filter."""


class FilterUnavailable(Struct, frozen=True):
    """No verdict: the check is undetermined and costs nothing.

    ``reason`` and ``fix`` are sentences for the report.
    """

    problem: FilterProblem
    reason: str
    fix: str

    @property
    def is_absent(self) -> bool:
        """Whether this server does not have the filter, as opposed to a failure."""
        return self.problem in ABSENT


FilterOutcome = FilterVerdict | FilterUnavailable


_TEXTS = {
    FilterProblem.OFF: (
        "The content filter is turned off on this server.",
        'The operator can turn it on: [spamassassin] spamd = "auto".',
    ),
    FilterProblem.NOT_INSTALLED: (
        "SpamAssassin is not installed on this server, so the content was not checked.",
        (
            'The operator can install it, on Debian and Ubuntu with "apt install spamassassin'
            ' spamd". A restart is not needed.'
        ),
    ),
    FilterProblem.NO_MEMORY: (
        "The memory of this server has no room for SpamAssassin, so the content was not checked.",
        "The operator can give the daemon more memory, or name a running spamd.",
    ),
    FilterProblem.UNREACHABLE: (
        "{engine} could not be reached, so the content was not checked.",
        "Check the test again in a minute. If it still fails, ask the operator to check the log.",
    ),
    FilterProblem.TIMEOUT: (
        "{engine} did not finish in time, so the content was not checked.",
        "Check the test again in a minute. Very long lines in the text slow {engine} down.",
    ),
    FilterProblem.BUSY: (
        "Too many mails are waiting for {engine}, so the content was not checked.",
        "Check the test again in a minute.",
    ),
    FilterProblem.TOO_LARGE: (
        "The mail is too large for {engine}, even without its attachments.",
        "Send less than 256 KiB of text and HTML: many receivers' filters skip longer mails, too.",
    ),
    FilterProblem.BROKEN_ANSWER: (
        "{engine} returned an invalid answer, so the content was not checked.",
        "Check the test again in a minute. If it still fails, ask the operator to check the log.",
    ),
    FilterProblem.SKIPPED: (
        "The settings of {engine} exempt the mail from its rules, so the content was not checked.",
        "Ask the operator to check the settings of {engine} for mail from this sender.",
    ),
}


def unavailable(problem: FilterProblem, engine: str = SPAMASSASSIN) -> FilterUnavailable:
    """Return the result without a verdict of ``engine``, with the sentences for the report."""
    reason, fix = (text.format(engine=engine) for text in _TEXTS[problem])
    return FilterUnavailable(problem, reason, fix)


def counted_outcome(spamassassin: FilterOutcome, rspamd: FilterOutcome | None) -> FilterOutcome:
    """Return the outcome that the score uses: rspamd's if this server has no SpamAssassin.

    A SpamAssassin that fails is not replaced, so that a score does not depend on the moment.

    :param rspamd: `None` if this server has no rspamd.
    """
    is_absent = isinstance(spamassassin, FilterUnavailable) and spamassassin.is_absent
    return rspamd if is_absent and rspamd is not None else spamassassin


# Rules that are shown but not counted, each with the reason. No problem is charged twice, and a
# problem that another check covers costs that check's published deduction. The names are those
# of SpamAssassin 4.0's rule files; a new rule counts until it is added here.


class NotCounted(StrEnum):
    """Why the points of a rule are shown but not counted."""

    SPF = "The SPF check covers this."
    DKIM = "The DKIM check covers this."
    AUTHENTICATION = "The SPF and DKIM checks cover this."
    DMARC = "The DMARC check covers this."
    LISTS = "The blocklist check covers this."
    SENDER = "The check of the sender domain covers this."
    HOST = "The checks of reverse DNS and HELO cover this."
    HEADERS = "The checks of the header cover this."
    CONTENT = "The checks of MIME and HTML cover this."
    UNSUBSCRIBE = "The check of List-Unsubscribe covers this."
    ARC = "ARC is shown for information only."
    REFUSED = "A list refused to answer the filter. This is unrelated to the mail."
    ROUTE = "The route to this server is unrelated to the content."
    HISTORY = "It depends on earlier mail, but the same mail must get the same score."


_TABLE: tuple[tuple[str, str], ...] = (
    (r"(T_)?SPF_.*", NotCounted.SPF),
    # "To equals From", or a well-known HELO, together with an SPF failure. Only the failure is a
    # problem. A misspaced From has a separate rule.
    (
        r"TO_EQ_FM_(DOM_)?SPF_FAIL|PDS_HELO_SPF_FAIL|FROM_MISSP_SPF_FAIL|FORGED_SPF_HELO",
        NotCounted.SPF,
    ),
    (r"(T_)?DKIM_.*|NML_ADSP_.*", NotCounted.DKIM),
    (r"(T_)?DMARC_.*|KAM_DMARC_.*", NotCounted.DMARC),
    # A missing From. Or an envelope sender in another domain, as all mail providers use one.
    (r"MISSING_FROM|HEADER_FROM_DIFFERENT_DOMAINS|FREEMAIL_FORGED_FROMDOMAIN", NotCounted.DMARC),
    # "Neither SPF nor DKIM passes", which is also true if neither is looked up.
    (r"FROM_BANK_NOAUTH|FROM_GOV_SPOOF|FROM_PAYPAL_SPOOF", NotCounted.AUTHENTICATION),
    (r"SPOOFED_FREEMAIL(_NO_RDNS)?", NotCounted.AUTHENTICATION),
    # Before the list rules: rules that report only that a list refused to answer.
    (r"\w+_(ND)?BLOCKED", NotCounted.REFUSED),
    (r"RCVD_IN_.*|URIBL_.*|SURBL_.*|DKIMWL_.*|DKIMDOMAIN_IN_.*", NotCounted.LISTS),
    (r"RDNS_.*|NO_RDNS_.*|PDS_HP_HELO_NORDNS|KHOP_HELO_FCRDNS", NotCounted.HOST),
    (
        r"(T_)?HELO_.*|CK_HELO_.*|FSL_HELO_.*|RCVD_NUMERIC_HELO|RCVD_HELO_IP_MISMATCH",
        NotCounted.HOST,
    ),
    (r"RCVD_FAKE_HELO_DOTCOM|NSL_RCVD_HELO_USER|FSL_NEW_HELO_USER", NotCounted.HOST),
    # The host's names again, combined with a harmless property, or one with its own rule.
    (r"DYN_RDNS_(AND|SHORT)_\w+|SHORT_HELO_AND_INLINE_IMAGE|FROM_MISSP_DYNIP", NotCounted.HOST),
    (r"MISSING_DATE|MISSING_MID", NotCounted.HEADERS),
    # In the last two, "To equals From" and missing brackets are no problem.
    (
        r"MIME_HTML_ONLY(_MULTI)?|TO_EQ_FM_HTML_ONLY|TO_NO_BRKTS_(HTML_ONLY|NORDNS_HTML)",
        NotCounted.CONTENT,
    ),
    (r"KHOP_UNSUB_EMAIL|FSL_BULK_SIG", NotCounted.UNSUBSCRIBE),
    (r"ARC_.*", NotCounted.ARC),
    (r"ALL_TRUSTED|NO_RELAYS|NO_RECEIVED|UNPARSEABLE_RELAY", NotCounted.ROUTE),
    # Mail from a test network or over IPv6 is not better or worse because of that.
    (r"RCVD_ILLEGAL_IP|TVD_RCVD_IP4?", NotCounted.ROUTE),
    (r"AWL|TXREP", NotCounted.HISTORY),
)
"""Full rule names, as regular expressions; the first match counts."""

_RULES = tuple((re.compile(names, re.ASCII), reason) for names, reason in _TABLE)


def why_not_counted(name: str) -> str:
    """Return why a rule's points are not charged; empty if they are."""
    return next((reason for names, reason in _RULES if names.fullmatch(name)), "")


MAX_RULES = 500
"""Maximum number of rules of one mail; the worst spam matches about 60."""

MAX_DESCRIPTION = 500
"""Maximum number of characters of a description; SpamAssassin's own are below 150."""

OUT_OF_TIME = "TIME_LIMIT_EXCEEDED"
"""The rule that matches if SpamAssassin stops early; the total is then too low."""

_NUMBER = r"-?\d{1,7}(?:\.\d{1,3})?"
_SPAM = re.compile(rf"(True|False|Yes|No) ; ({_NUMBER}) / ({_NUMBER})", re.ASCII)
_DASHES = re.compile(r"-{3,8} -{5,60} -{5,}[ \t]*")
_RULE = re.compile(rf" {{0,4}}({_NUMBER}) ([A-Za-z_]\w{{0,127}})(?: +(.*))?", re.ASCII)
_UNSHOWN = re.compile(r"[\x00-\x1f\x7f-\x9f]+")


class ReportUnreadable(Exception):
    """The answer is not in SpamAssassin's format; the message says where it differs."""


def read_verdict(spam: str, report: str) -> FilterVerdict:
    """Parse the value of the ``Spam:`` line and the report below it.

    :raises ReportUnreadable: they are not SpamAssassin's, or contradict each other.
    """
    judged = _SPAM.fullmatch(spam)
    if judged is None:
        raise ReportUnreadable("there are no points and threshold")
    points = float(judged[2])
    rules = tuple(_read_rules(report))
    # Each line is rounded separately: to tenths, and from 10 points on to whole points.
    rounding = fsum(0.5 if abs(rule.points) >= 9.95 else 0.05 for rule in rules) + 0.15
    if abs(fsum(rule.points for rule in rules) - points) > rounding:
        raise ReportUnreadable("the points of the rules do not add up to the total")
    return FilterVerdict(points, float(judged[3]), judged[1] in ("True", "Yes"), rules)


def _read_rules(report: str) -> Iterator[FilterRule]:
    lines = iter(report.replace("\r\n", "\n").split("\n"))
    if not any(_DASHES.fullmatch(line) for line in lines):
        raise ReportUnreadable("the table of rules is missing")
    name, points, texts = "", 0.0, list[str]()
    count = 0
    for line in takewhile(str.strip, lines):
        found = _RULE.fullmatch(line)
        if found is None:
            texts.append(line)
            continue
        if name:
            yield _rule(name, points, texts)
        count += 1
        if count > MAX_RULES or (texts and not name):
            raise ReportUnreadable("the table does not begin with a rule, or has too many rules")
        name, points, texts = found[2], float(found[1]), [found[3] or ""]
    if name:
        yield _rule(name, points, texts)
    elif texts:
        raise ReportUnreadable("the table has no rules")


def _rule(name: str, points: float, texts: list[str]) -> FilterRule:
    # A rule with a few thousandths of a point is rounded to -0.0.
    return FilterRule(name, points + 0.0, shown_text(" ".join(texts)), why_not_counted(name))


def shown_text(text: str) -> str:
    """Return a description without control characters and extra spaces, and not too long."""
    return " ".join(_UNSHOWN.sub(" ", text).split())[:MAX_DESCRIPTION]

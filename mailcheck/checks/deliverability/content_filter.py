"""What the content filter, SpamAssassin, made of a mail; or why it said nothing.

It reports a table of rules, in the answer to ``REPORT``:

 pts rule name              description
---- ---------------------- --------------------------------------------------
 2.7 MISSING_DATE           Missing Date: header
 0.2 NORMAL_HTTP_TO_IP      URI: URI host has a public dotted-decimal IPv4
                            address
1000 GTUBE                  BODY: Generic Test for Unsolicited Bulk Email

The text above the table quotes the mail, indented, so that only a line of
dashes at the very left begins the table; an empty line ends it. What follows a
description may quote the mail, too: a table whose points don't make up the sum
is not believed.
"""

import re
from collections.abc import Iterator
from enum import Enum
from itertools import takewhile
from math import fsum

from msgspec import Struct


class FilterRule(Struct, frozen=True):
    """One rule that hit.

    ``points`` are SpamAssassin's own in tenths, or whole from 10 on; above 0
    they are against the mail. ``not_counted`` is a sentence that says why they
    are shown only, mostly that a check of ours judges the same thing; empty
    for a rule that counts.
    """

    name: str
    points: float
    description: str
    not_counted: str = ""

    @property
    def counts(self) -> bool:
        """Tell whether its points are charged: nothing is charged twice."""
        return not self.not_counted


class FilterVerdict(Struct, frozen=True):
    """The filter's judgement of one mail.

    ``points``, ``threshold`` and ``is_spam`` are as the filter gave them, over
    all rules; ``counted_points`` is what a score is made of. ``rules`` are in
    the filter's order. ``engine`` names the program and, where it is known, its version.
    ``left_out`` is the number of octets of attachments that it was not shown.
    """

    points: float
    threshold: float
    is_spam: bool
    rules: tuple[FilterRule, ...]
    engine: str = "SpamAssassin"
    left_out: int = 0

    @property
    def counted_points(self) -> float:
        """Add up the rules that count, to tenths; may be below 0."""
        return round(fsum(rule.points for rule in self.rules if rule.counts), 1)


class FilterProblem(Enum):
    """Why there is no verdict; none of these says anything about the mail."""

    OFF = "off"
    NOT_INSTALLED = "not-installed"
    UNREACHABLE = "unreachable"
    """It takes no connection, or the private one did not start."""
    TIMEOUT = "timeout"
    BUSY = "busy"
    """Too many mails wait for it."""
    TOO_LARGE = "too-large"
    """What is left of the mail without its attachments is more than the filter is given."""
    BROKEN_ANSWER = "broken-answer"
    """It answered something else than SpamAssassin, broke off, or failed."""


class FilterUnavailable(Struct, frozen=True):
    """No verdict: the check is undetermined and costs nothing.

    ``reason`` and ``fix`` are sentences for the report.
    """

    problem: FilterProblem
    reason: str
    fix: str


FilterOutcome = FilterVerdict | FilterUnavailable


_TEXTS = {
    FilterProblem.OFF: (
        "The content filter is switched off here.",
        'The operator can switch it on: [spamassassin] spamd = "auto".',
    ),
    FilterProblem.NOT_INSTALLED: (
        "SpamAssassin is not installed here, so the content was not judged.",
        (
            'The operator can install it, on Debian and Ubuntu with "apt install spamassassin'
            ' spamd"; it is then used without a restart.'
        ),
    ),
    FilterProblem.UNREACHABLE: (
        "SpamAssassin could not be reached, so the content was not judged.",
        "Check the test again in a minute; if it stays, the operator finds the cause in the log.",
    ),
    FilterProblem.TIMEOUT: (
        "SpamAssassin did not finish in time, so the content was not judged.",
        "Check the test again in a minute; very long lines in the text slow SpamAssassin down.",
    ),
    FilterProblem.BUSY: (
        "Too many mails are waiting for SpamAssassin, so the content was not judged.",
        "Check the test again in a minute.",
    ),
    FilterProblem.TOO_LARGE: (
        "Even without its attachments the mail is too large for SpamAssassin.",
        "Send less than 256 KiB of text and HTML: many receivers' filters skip longer mails, too.",
    ),
    FilterProblem.BROKEN_ANSWER: (
        "SpamAssassin gave no answer that could be understood, so the content was not judged.",
        "Check the test again in a minute; if it stays, the operator finds the cause in the log.",
    ),
}


def unavailable(problem: FilterProblem) -> FilterUnavailable:
    """Say that there is no verdict, with the sentences for the report."""
    return FilterUnavailable(problem, *_TEXTS[problem])


# The rules that are shown and not counted, each with the reason: nothing is charged twice
# (docs/reference/contract.md), and what a check of ours judges costs its own published deduction.
# The names are those of SpamAssassin 4.0's rule files; a rule that is new there counts until
# it is named here.

_SPF = "The SPF check judges this."
_DKIM = "The DKIM check judges this."
_BOTH = "The SPF and DKIM checks judge this."
_DMARC = "The DMARC check judges this."
_LISTS = "The blocklist check judges this."
_HOST = "The checks of reverse DNS and HELO judge this."
_HEADERS = "The checks of the header judge this."
_CONTENT = "The checks of MIME and HTML judge this."
_UNSUBSCRIBE = "The check of List-Unsubscribe judges this."
_ARC = "ARC is shown as information."
_REFUSED = "A list refused to answer the filter, which says nothing about the mail."
_WAY = "The way to this server says nothing about the content."
_HISTORY = "It depends on earlier mail, and the same mail is to get the same score."

_TABLE: tuple[tuple[str, str], ...] = (
    (r"(T_)?SPF_.*", _SPF),
    # To equals From, or a well-known HELO, and SPF fails: only the failure is a fault. That
    # From is misspaced has a rule of its own.
    (r"TO_EQ_FM_(DOM_)?SPF_FAIL|PDS_HELO_SPF_FAIL|FROM_MISSP_SPF_FAIL|FORGED_SPF_HELO", _SPF),
    (r"(T_)?DKIM_.*|NML_ADSP_.*", _DKIM),
    (r"(T_)?DMARC_.*|KAM_DMARC_.*", _DMARC),
    # A From that is missing; an envelope sender of another domain, as every provider uses one.
    (r"MISSING_FROM|HEADER_FROM_DIFFERENT_DOMAINS|FREEMAIL_FORGED_FROMDOMAIN", _DMARC),
    # "Neither SPF nor DKIM passes", which is also true where both are not looked up.
    (r"FROM_BANK_NOAUTH|FROM_GOV_SPOOF|FROM_PAYPAL_SPOOF|SPOOFED_FREEMAIL(_NO_RDNS)?", _BOTH),
    # Before the lists: those that charge nobody for what they would not say.
    (r"\w+_(ND)?BLOCKED", _REFUSED),
    (r"RCVD_IN_.*|URIBL_.*|SURBL_.*|DKIMWL_.*|DKIMDOMAIN_IN_.*", _LISTS),
    (r"RDNS_.*|NO_RDNS_.*|PDS_HP_HELO_NORDNS|KHOP_HELO_FCRDNS", _HOST),
    (r"(T_)?HELO_.*|CK_HELO_.*|FSL_HELO_.*|RCVD_NUMERIC_HELO|RCVD_HELO_IP_MISMATCH", _HOST),
    (r"RCVD_FAKE_HELO_DOTCOM|NSL_RCVD_HELO_USER|FSL_NEW_HELO_USER", _HOST),
    # The host's names again, with something beside them that is no fault or has its own rule.
    (r"DYN_RDNS_(AND|SHORT)_\w+|SHORT_HELO_AND_INLINE_IMAGE|FROM_MISSP_DYNIP", _HOST),
    (r"MISSING_DATE|MISSING_MID", _HEADERS),
    # Of the other two, that To equals From or lacks brackets is no fault.
    (r"MIME_HTML_ONLY(_MULTI)?|TO_EQ_FM_HTML_ONLY|TO_NO_BRKTS_(HTML_ONLY|NORDNS_HTML)", _CONTENT),
    (r"KHOP_UNSUB_EMAIL|FSL_BULK_SIG", _UNSUBSCRIBE),
    (r"ARC_.*", _ARC),
    (r"ALL_TRUSTED|NO_RELAYS|NO_RECEIVED|UNPARSEABLE_RELAY", _WAY),
    # A mail from a test network or by way of IPv6 is no better or worse for it.
    (r"RCVD_ILLEGAL_IP|TVD_RCVD_IP4?", _WAY),
    (r"AWL|TXREP", _HISTORY),
)
"""Whole names, as regular expressions; the first that fits counts."""

_RULES = tuple((re.compile(names, re.ASCII), reason) for names, reason in _TABLE)


def why_not_counted(name: str) -> str:
    """Say why a rule's points are not charged; empty: they are."""
    return next((reason for names, reason in _RULES if names.fullmatch(name)), "")


MAX_RULES = 500
"""Rules of one mail; the worst spam hits about 60."""

MAX_DESCRIPTION = 500
"""Characters of a description with its continuation lines; SpamAssassin's own stay below 150."""

OUT_OF_TIME = "TIME_LIMIT_EXCEEDED"
"""The rule that hits when SpamAssassin stops in the middle: its sum is then too low."""

_NUMBER = r"-?\d{1,7}(?:\.\d{1,3})?"
_SPAM = re.compile(rf"(True|False|Yes|No) ; ({_NUMBER}) / ({_NUMBER})", re.ASCII)
_DASHES = re.compile(r"-{3,8} -{5,60} -{5,}[ \t]*")
_RULE = re.compile(rf" {{0,4}}({_NUMBER}) ([A-Za-z_]\w{{0,127}})(?: +(.*))?", re.ASCII)
_UNSHOWN = re.compile(r"[\x00-\x1f\x7f-\x9f]+")


class ReportUnreadable(Exception):
    """The answer is not what SpamAssassin writes; the message says where it differs."""


def read_verdict(spam: str, report: str) -> FilterVerdict:
    """Read the value of the ``Spam:`` line and the report below it.

    :raises ReportUnreadable: they are not SpamAssassin's, or contradict each other.
    """
    judged = _SPAM.fullmatch(spam)
    if judged is None:
        raise ReportUnreadable("no points and threshold")
    points = float(judged[2])
    rules = tuple(_read_rules(report))
    # Each line is rounded by itself: to tenths, from 10 points on to whole ones.
    rounding = fsum(0.5 if abs(rule.points) >= 9.95 else 0.05 for rule in rules) + 0.15
    if abs(fsum(rule.points for rule in rules) - points) > rounding:
        raise ReportUnreadable("the points of the rules don't make up the sum")
    return FilterVerdict(points, float(judged[3]), judged[1] in ("True", "Yes"), rules)


def _read_rules(report: str) -> Iterator[FilterRule]:
    lines = iter(report.replace("\r\n", "\n").split("\n"))
    if not any(_DASHES.fullmatch(line) for line in lines):
        raise ReportUnreadable("no table of rules")
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
            raise ReportUnreadable("no rule at the top, or too many")
        name, points, texts = found[2], float(found[1]), [found[3] or ""]
    if name:
        yield _rule(name, points, texts)
    elif texts:
        raise ReportUnreadable("no rules in the table")


def _rule(name: str, points: float, texts: list[str]) -> FilterRule:
    words = _UNSHOWN.sub(" ", " ".join(texts)).split()
    # -0.0 is what a rule of a few thousandths is rounded to.
    return FilterRule(name, points + 0.0, " ".join(words)[:MAX_DESCRIPTION], why_not_counted(name))

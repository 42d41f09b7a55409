"""Reading what SpamAssassin reports: the table of rules in the answer to ``REPORT``.

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
from itertools import takewhile
from math import fsum

from mailcheck.checks.deliverability.content_filter import FilterRule, FilterVerdict
from mailcheck.checks.deliverability.uncounted_rules import why_not_counted

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

"""The verdict of rspamd, from its answer to ``/checkv2``.

The answer is a JSON object (https://rspamd.com/doc/architecture/protocol.html): the score, the
action, and the symbols of the rules that matched, each with its points. ``required_score`` is the
threshold of rejection. Version 3.4 does not send the threshold from which mail is marked as spam.
"""

import re

import msgspec
from msgspec import Struct, field

from mailcheck.checks.deliverability.content_filter import (
    MAX_RULES,
    RSPAMD,
    FilterRule,
    FilterVerdict,
    NotCounted,
    ReportUnreadable,
    shown_text,
)

SPAM_ACTIONS = ("add header", "rewrite subject", "reject", "quarantine", "discard")
"""Actions that treat a mail as spam. Greylisting and a soft reject only postpone a mail."""

MAX_POINTS = 1_000_000.0


_SYMBOL = re.compile(r"[A-Za-z0-9_.:-]{1,128}", re.ASCII)


class Skipped(Exception):
    """The settings of rspamd exempt the mail from its rules."""


class _Symbol(Struct):
    score: float = 0.0
    description: str = ""


class _Answer(Struct):
    score: float
    action: str
    is_skipped: bool = False
    symbols: dict[str, _Symbol] = field(default_factory=dict)
    messages: dict[str, str] = field(default_factory=dict)
    thresholds: dict[str, float | None] = field(default_factory=dict)


_decoder = msgspec.json.Decoder(_Answer)


def read_rspamd_verdict(answer: bytes, threshold: float) -> FilterVerdict:
    """Parse the answer of rspamd.

    :param threshold: points from which mail is marked as spam, if the answer does not say it.
    :raises ReportUnreadable: the answer is not one of rspamd.
    :raises Skipped: the settings of rspamd exempt the mail.
    """
    try:
        found = _decoder.decode(answer)
    except (msgspec.DecodeError, RecursionError) as problem:
        raise ReportUnreadable(str(problem)) from None
    points = [found.score, *(symbol.score for symbol in found.symbols.values())]
    if len(found.symbols) > MAX_RULES or any(abs(point) > MAX_POINTS for point in points):
        raise ReportUnreadable("the answer has too many symbols or points")
    if not all(_SYMBOL.fullmatch(name) for name in found.symbols):
        raise ReportUnreadable("the name of a symbol is invalid")
    is_spam = found.action in SPAM_ACTIONS
    made = (_rule(*item) for item in found.symbols.items())
    rules = tuple(sorted(made, key=lambda rule: (-abs(rule.points), rule.name)))
    if found.is_skipped:
        if not is_spam:
            raise Skipped
        # Patterns such as GTUBE decide before the rules, and their symbols have no points.
        text = shown_text(found.messages.get("smtp_message", ""))
        name = rules[0].name if rules else "PRE_RESULT"
        rules = (FilterRule(name, round(found.score, 2), text),)
    marks = found.thresholds.get("add header") or 0.0
    if not 0 < marks < MAX_POINTS:
        marks = threshold
    return FilterVerdict(round(found.score, 2) + 0.0, marks, is_spam, rules, RSPAMD)


def _rule(name: str, symbol: _Symbol) -> FilterRule:
    points = round(symbol.score, 2) + 0.0  # -0.0 becomes 0.0
    return FilterRule(name, points, shown_text(symbol.description), why_symbol_not_counted(name))


_TABLE: tuple[tuple[str, str], ...] = (
    # Composites with names that differ from those of their parts.
    (
        r"AUTH_NA(_OR_FAIL)?|BOUNCE_NO_AUTH|(WHITE|BLACK)LIST_(SPF|DKIM|SPF_DKIM)",
        NotCounted.AUTHENTICATION,
    ),
    (r"R_SPF_.*|SPF_.*|VIOLATED_DIRECT_SPF", NotCounted.SPF),
    (r"R_DKIM_.*|DKIM_.*", NotCounted.DKIM),
    (r"DMARC_.*|(WHITE|BLACK)LIST_DMARC", NotCounted.DMARC),
    (r"MISSING_FROM|FORGED_SENDER.*|FROM_NEQ_ENVFROM", NotCounted.DMARC),
    (r"ARC_.*", NotCounted.ARC),
    (
        r"(RBL|RWL|RECEIVED|DNSWL|DWL|SURBL|URIBL|DBL|SEM|MSBL|MAILSPIKE|SPAMHAUS)_.*",
        NotCounted.LISTS,
    ),
    (r"RCVD_IN_.*|RCVD_\w*(DNSWL|PBL)\w*|BLOCKLISTDE.*|DNSWL|DWL|DBL|MAILSPIKE", NotCounted.LISTS),
    (r"\w+_SURBL(_MULTI)?|RSPAMD_(URI|EMAIL)BL", NotCounted.LISTS),
    (r"RDNS_.*|HFILTER_(HELO|HOSTNAME)_.*", NotCounted.HOST),
    (r"MX_.*|HFILTER_FROM(HOST_.*|_BOUNCE)", NotCounted.SENDER),
    (r"MISSING_DATE|MISSING_MID", NotCounted.HEADERS),
    (r"MIME_HTML_ONLY|MIME_MA_MISSING_TEXT", NotCounted.CONTENT),
    (r"RCVD_.*|ONCE_RECEIVED(_STRICT)?|DIRECT_TO_MX|FORGED_RECIPIENTS.*", NotCounted.ROUTE),
    (
        r"BAYES_.*|NEURAL_.*|\w+_REP|\w+_REPUTATION|RATELIMIT.*|GREYLIST.*|REPLY|KNOWN_.*",
        NotCounted.HISTORY,
    ),
)
"""Full names of symbols, as regular expressions; the first match counts."""

_NOT_COUNTED = tuple((re.compile(names, re.ASCII), reason) for names, reason in _TABLE)


def why_symbol_not_counted(name: str) -> str:
    """Return why the points of a symbol are not charged; empty if they are."""
    return next((reason for names, reason in _NOT_COUNTED if names.fullmatch(name)), "")

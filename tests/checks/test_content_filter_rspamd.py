"""The answers of rspamd, and its rules that count."""

import contextlib
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mailcheck.checks.deliverability.content_filter import (
    MAX_DESCRIPTION,
    MAX_RULES,
    FilterRule,
    NotCounted,
    ReportUnreadable,
)
from mailcheck.checks.deliverability.rspamd import (
    Skipped,
    read_rspamd_verdict,
    why_symbol_not_counted,
)
from tests.table import rows

THRESHOLD = 6.0

# Answers of rspamd 3.4, shortened.
SCORED = {
    "is_skipped": False,
    "score": 10.4,
    "required_score": 15.0,
    "action": "add header",
    "symbols": {
        "MISSING_FROM": {
            "name": "MISSING_FROM",
            "score": 2.0,
            "metric_score": 2.0,
            "description": "Missing From: header",
        },
        "MISSING_SUBJECT": {
            "name": "MISSING_SUBJECT",
            "score": 0.5,
            "metric_score": 2.0,
            "description": "Subject header is missing",
        },
        "MIME_TRACE": {"name": "MIME_TRACE", "score": 0.0, "options": ["0:+"]},
        "MIME_GOOD": {"name": "MIME_GOOD", "score": -0.1, "description": "Known content-type"},
    },
    "messages": {},
    "message-id": "undef",
    "milter": {"remove_headers": {"X-Spam": 0}},
}
GTUBE: dict[str, Any] = {
    "is_skipped": True,
    "score": 15.0,
    "required_score": 15.0,
    "action": "reject",
    "symbols": {"GTUBE": {"name": "GTUBE", "score": 0.0, "metric_score": 0.0}},
    "messages": {"smtp_message": "Gtube pattern"},
}


def read(answer: object) -> Any:
    """Parse an answer."""
    return read_rspamd_verdict(json.dumps(answer).encode(), THRESHOLD)


def test_a_scored_mail() -> None:
    """Rules have the points that they gave, those with most points first."""
    verdict = read(SCORED)
    assert (verdict.points, verdict.threshold, verdict.is_spam) == (10.4, 6.0, True)
    assert verdict.rules == (
        FilterRule("MISSING_FROM", 2.0, "Missing From: header", NotCounted.DMARC),
        FilterRule("MISSING_SUBJECT", 0.5, "Subject header is missing"),
        FilterRule("MIME_GOOD", -0.1, "Known content-type"),
        FilterRule("MIME_TRACE", 0.0, ""),
    )
    assert verdict.counted_points == 0.4


def test_a_mail_that_is_decided_before_the_rules() -> None:
    """GTUBE counts with the points of the answer, since its rule has none."""
    verdict = read(GTUBE)
    assert verdict.is_spam
    assert verdict.rules == (FilterRule("GTUBE", 15.0, "Gtube pattern"),)
    assert verdict.counted_points == 15.0


def test_a_mail_that_is_not_judged() -> None:
    """A mail that the settings of rspamd exempt has no verdict, and is not clean."""
    with pytest.raises(Skipped):
        read({**GTUBE, "action": "no action", "symbols": {}, "score": 0.0})


@rows(
    ("no action", False),
    ("greylist", False),
    ("soft reject", False),
    ("add header", True),
    ("rewrite subject", True),
    ("reject", True),
)
def test_actions(action: str, *, is_spam: bool) -> None:
    """The action decides whether the mail is spam."""
    assert read({**SCORED, "action": action}).is_spam is is_spam


@rows(({"add header": 7.5, "reject": 15.0}, 7.5), ({"add header": None}, 6.0), ({"reject": 9}, 6.0))
def test_thresholds(thresholds: object, used: float) -> None:
    """A threshold in the answer is used instead of the configured one."""
    assert read({**SCORED, "thresholds": thresholds}).threshold == used


@rows(
    b"",
    b"pong\r\n",
    b"[]",
    b"{}",
    b'{"error": "no task"}',
    b'{"score": 1.0}',
    b'{"score": 1e400, "action": "reject"}',
    b'{"score": NaN, "action": "reject"}',
    b'{"score": "1", "action": "reject"}',
    json.dumps({**SCORED, "symbols": {"A B": {"score": 1.0}}}).encode(),
    json.dumps({**SCORED, "symbols": {"A": {"score": 1e7}}}).encode(),
    json.dumps({**SCORED, "symbols": {f"A{n}": {} for n in range(MAX_RULES + 1)}}).encode(),
    b"[" * 100_000,
)
def test_an_invalid_answer(answer: bytes) -> None:
    """An answer that is not rspamd's is rejected."""
    with pytest.raises(ReportUnreadable):
        read_rspamd_verdict(answer, THRESHOLD)


@given(st.binary(max_size=200))
def test_any_answer(answer: bytes) -> None:
    """Any octets are a verdict or an unreadable answer."""
    with contextlib.suppress(ReportUnreadable, Skipped):
        read_rspamd_verdict(answer, THRESHOLD)


def test_a_description_is_text() -> None:
    """A description has no control characters and a limited length."""
    symbol = {"score": 1.0, "description": "a\x1b[31m\r\nb" + "c" * 10_000}
    (rule,) = read({**SCORED, "symbols": {"A": symbol}}).rules
    assert rule.description.startswith("a [31m b")
    assert len(rule.description) == MAX_DESCRIPTION


@rows(
    ("R_SPF_FAIL", NotCounted.SPF),
    ("R_DKIM_REJECT", NotCounted.DKIM),
    ("DKIM_TRACE", NotCounted.DKIM),
    ("DMARC_POLICY_REJECT", NotCounted.DMARC),
    ("ARC_INVALID", NotCounted.ARC),
    ("RBL_SPAMHAUS_SBL", NotCounted.LISTS),
    ("RECEIVED_SPAMHAUS_XBL", NotCounted.LISTS),
    ("RCVD_IN_DNSWL_HI", NotCounted.LISTS),
    ("RCVD_UNAUTH_PBL", NotCounted.LISTS),
    ("PH_SURBL_MULTI", NotCounted.LISTS),
    ("ABUSE_SURBL", NotCounted.LISTS),
    ("URIBL_BLACK", NotCounted.LISTS),
    ("DBL_SPAM", NotCounted.LISTS),
    ("HFILTER_HELO_5", NotCounted.HOST),
    ("HFILTER_FROMHOST_NORES_A_OR_MX", NotCounted.SENDER),
    ("RDNS_NONE", NotCounted.HOST),
    ("MISSING_MID", NotCounted.HEADERS),
    ("MIME_HTML_ONLY", NotCounted.CONTENT),
    ("RCVD_COUNT_ONE", NotCounted.ROUTE),
    ("BAYES_SPAM", NotCounted.HISTORY),
    ("NEURAL_HAM_LONG", NotCounted.HISTORY),
    ("WHITELIST_SPF_DKIM", NotCounted.AUTHENTICATION),
)
def test_symbols_that_other_checks_cover(symbol: str, reason: str) -> None:
    """Symbols that repeat a check of mailcheck do not count."""
    assert why_symbol_not_counted(symbol) == reason


@rows(
    "GTUBE",
    "SUBJ_ALL_CAPS",
    "FUZZY_DENIED",
    "PHISHING",
    "HFILTER_URL_ONLY",
    "MIME_BAD_EXTENSION",
    "FORGED_MUA_OUTLOOK",
    "FREEMAIL_REPLYTO_NEQ_FROM_DOM",
    "R_MISSING_CHARSET",
    "ZERO_FONT",
)
def test_symbols_about_the_content(symbol: str) -> None:
    """Other symbols count."""
    assert not why_symbol_not_counted(symbol)

"""The ranges of parameters: the routes refuse what lies outside, the descriptions say so."""

SHORTEST_WAIT, LONGEST_WAIT, DEFAULT_WAIT = 1.0, 60.0, 30.0
"""Seconds (SPEC.md section 8)."""

LONGEST_STREAM = 86_400.0
"""Seconds after which a stream may be asked to end; it goes on for ever where it is not."""

DEFAULT_SILENCE = 5.0
"""Seconds in which no message is to come; every test that expects none takes them in full."""

MOST_WAITED_FOR = 100
"""Messages of one wait: a page of a list."""

LARGEST_PAGE, DEFAULT_PAGE = 100, 50
"""Entries of a list at a time."""

LAST_PAGE = 1_000_000

MOST_REPORT_DAYS, DEFAULT_REPORT_DAYS = 400, 30
"""Days that an overview of reports is about."""

MAX_SELECTORS = 10
"""DKIM selectors a caller may name; each is a question."""

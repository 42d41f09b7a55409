"""The ranges of parameters: the routes refuse what lies outside, the descriptions say so."""

SHORTEST_WAIT, LONGEST_WAIT, DEFAULT_WAIT = 1.0, 60.0, 30.0
"""Seconds (SPEC.md section 8)."""

LARGEST_PAGE, DEFAULT_PAGE = 100, 50
"""Entries of a list at a time."""

LAST_PAGE = 1_000_000

MAX_SELECTORS = 10
"""DKIM selectors a caller may name; each is a question."""

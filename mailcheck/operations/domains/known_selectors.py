"""DKIM selectors learned from mail that came in: better than any guess.

A selector can't be found out from DNS, but every signed mail names one.
"""

from collections.abc import Callable

from mailcheck.checks.tag_lists import parse_tag_list
from mailcheck.core.domain_names import parse_domain, parse_selector
from mailcheck.core.errors import InvalidParameter
from mailcheck.operations.recent import RecentlyUsed

MAX_DOMAINS = 10_000
MAX_SELECTORS = 8  # of a domain; the newest, as keys are changed
MAX_SIGNATURES = 20  # of a mail that are read
MAX_SIGNATURE = 4_096  # characters of a signature that are read

KnownSelectors = Callable[[str], tuple[str, ...]]
"""Gives the selectors that are known of a domain, the newest first."""


class LearnedSelectors:
    """Remembers which selectors domains sign with, as long as the process lives.

    Anybody can send a mail that claims a selector of any domain: it is asked
    for like a guess, and counts only when a key is found there.
    """

    def __init__(self) -> None:
        self._learned: RecentlyUsed[str, RecentlyUsed[str, None]] = RecentlyUsed(MAX_DOMAINS)

    def of(self, domain: str) -> tuple[str, ...]:
        """Give the selectors of a domain, the newest first."""
        return tuple(self._learned.get(domain) or ())

    def learn(self, header_list: tuple[tuple[str, str], ...]) -> None:
        """Read the signatures in the header of a mail."""
        signatures = [value for name, value in header_list if name.lower() == "dkim-signature"]
        for signature in signatures[:MAX_SIGNATURES]:
            tags = parse_tag_list(signature[:MAX_SIGNATURE])
            try:
                domain = parse_domain(tags.get("d") or "", allow_special_use=True)
                selector = parse_selector(tags.get("s") or "")
            except InvalidParameter:
                continue
            self._note(domain, selector)

    def _note(self, domain: str, selector: str) -> None:
        selectors = self._learned.get(domain)
        if selectors is None:
            selectors = RecentlyUsed(MAX_SELECTORS)
            self._learned.put(domain, selectors)
        selectors.put(selector, None)

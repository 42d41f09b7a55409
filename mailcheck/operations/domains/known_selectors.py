"""DKIM selectors learned from received mail.

DNS cannot list the selectors of a domain, but every signed mail names one.
"""

from collections.abc import Awaitable, Callable, Sequence

from mailcheck.checks.dkim.evaluate import choose_selectors
from mailcheck.checks.hosts.mx import MxVerdict
from mailcheck.checks.spf.tree import SpfVerdict
from mailcheck.checks.tags.tag_lists import parse_tag_list
from mailcheck.core.domains.domain_names import parse_domain, parse_selector
from mailcheck.core.errors import InvalidParameter, StoreUnavailable
from mailcheck.core.instants import HOUR
from mailcheck.core.memory.recent import LruCache, Recent
from mailcheck.ports.clocks import Now
from mailcheck.ports.cluster import KNOWN_DOMAINS, KNOWN_SELECTORS, SelectorStore

MAX_SIGNATURES = 20
"""Maximum number of signatures that are read of a mail."""

MAX_SIGNATURE = 4_096
"""Maximum number of characters that are read of a signature."""

NOTED = HOUR
"""Milliseconds for which a selector is not recorded again, however many mails name it."""

SAVE_INTERVAL = 5.0
"""Seconds between two saves of the learned selectors."""

KnownSelectors = Callable[[str], Awaitable[tuple[str, ...]]]
"""Returns the known selectors of a domain, newest first."""


def selectors_to_try(known: Sequence[str], mx: MxVerdict, spf: SpfVerdict) -> tuple[str, ...]:
    """Return the selectors to look up. Mail hosts and SPF record hint at providers."""
    return choose_selectors(known, (*(host.exchange for host in mx.hosts), *spf.hosts))


class LearnedSelectors:
    """Learns the selectors of domains from the mails of all daemons.

    A forged mail can claim any selector. Selectors are therefore only candidates to look up, and
    count only if their key exists.
    """

    def __init__(self, store: SelectorStore, now: Now) -> None:
        self._store = store
        self._now = now
        self._noted: Recent[tuple[str, str], bool] = Recent(2 * KNOWN_DOMAINS, NOTED)
        self._unsaved: LruCache[tuple[str, str], None] = LruCache(KNOWN_DOMAINS)

    async def of(self, domain: str) -> tuple[str, ...]:
        """Return the selectors of a domain, newest first."""
        unsaved = [selector for name, selector in self._unsaved if name == domain]
        try:
            known = await self._store.selectors_of(domain)
        except StoreUnavailable:
            known = ()
        return tuple(dict.fromkeys((*unsaved, *known)))[:KNOWN_SELECTORS]

    def learn(self, header_list: tuple[tuple[str, str], ...]) -> None:
        """Learn selectors from the signatures in a mail's header."""
        signatures = [value for name, value in header_list if name.lower() == "dkim-signature"]
        for signature in signatures[:MAX_SIGNATURES]:
            tags = parse_tag_list(signature[:MAX_SIGNATURE])
            try:
                domain = parse_domain(tags.get("d") or "", allow_special_use=True)
                selector = parse_selector(tags.get("s") or "")
            except InvalidParameter:
                continue
            pair, now = (domain, selector), self._now()
            if not self._noted.get(pair, now):
                self._noted.put(pair, True, now)
                self._unsaved.put(pair, None)

    async def save(self) -> None:
        """Save the learned selectors. Called every `SAVE_INTERVAL` seconds."""
        pairs = tuple(self._unsaved)[::-1]
        if pairs and await self._store.note_selectors(pairs):
            for pair in pairs:
                self._unsaved.drop(pair)

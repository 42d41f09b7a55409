"""Domain names as they stand in mail (addresses, HELO, signatures), and who registered them."""

from functools import cache, lru_cache

import idna
from publicsuffixlist import PublicSuffixList

from mailcheck.core.domain_names import MAX_INPUT, MAX_LABEL, MAX_NAME, is_special_use

NEVER_DELEGATED = frozenset(("corp", "home", "intranet", "lan", "localdomain"))
"""Ends of names that private networks use and that the public DNS does not have."""


def is_local_name(name: str) -> bool:
    """Tell whether nothing can be published at a name: a single word, or one of a private network.

    ``.test`` is for zones that people try things with, so it is not local.
    """
    end = name.rpartition(".")[2]
    return "." not in name or end in NEVER_DELEGATED or (is_special_use(name) and end != "test")


@lru_cache(maxsize=1024)
def read_mail_domain(text: str) -> str | None:
    """Give the domain in lower-case A-labels (RFC 8616 3) without the last dot.

    Nothing when DNS can hold nothing at the name: an address literal, an empty
    or overlong label (RFC 7208 4.3), a blank, what IDNA does not allow.
    """
    if len(text) > MAX_INPUT:
        return None
    domain = text if text.isascii() else _to_a_labels(text)
    domain = domain.lower().removesuffix(".")
    labels = domain.split(".")
    if len(domain) > MAX_NAME or not all(0 < len(label) <= MAX_LABEL for label in labels):
        return None
    if domain.startswith("[") or " " in domain or not domain.isprintable():
        return None
    # Four numbers are an address that lacks its brackets; no domain ends in a number.
    return None if labels[-1].isdigit() else domain


def _to_a_labels(text: str) -> str:
    """Give the A-labels, or nothing that is a name."""
    try:
        return idna.encode(text, uts46=True).decode("ascii")
    except (idna.IDNAError, UnicodeError):
        return ""


def registrable_domain(host: str) -> str:
    """Give the domain that somebody registered: one label below a suffix; a suffix is its own.

    For comparing hosts, for asking blocklists, and for what receivers of RFC 7489 see. DMARC
    itself asks DNS (RFC 9989 4.10).
    """
    return _suffixes().privatesuffix(host) or host


@cache
def _suffixes() -> PublicSuffixList:
    return PublicSuffixList()

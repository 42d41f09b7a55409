"""Domain names in mail (addresses, HELO, signatures), and their registrable domains."""

from functools import cache, lru_cache

import idna
from publicsuffixlist import PublicSuffixList

from mailcheck.core.domains.domain_names import MAX_INPUT, MAX_LABEL, MAX_NAME, is_special_use

NEVER_DELEGATED = frozenset(("corp", "home", "intranet", "lan", "localdomain"))
"""Top-level names that private networks use and that the public DNS does not have."""


def is_local_name(name: str) -> bool:
    """Return whether a name is a single label or belongs to a private network.

    No record can be published at such a name. ``.test`` is reserved for experiments with zones,
    so it does not count as local.
    """
    end = name.rpartition(".")[2]
    return "." not in name or end in NEVER_DELEGATED or (is_special_use(name) and end != "test")


@lru_cache(maxsize=1024)
def read_mail_domain(text: str) -> str | None:
    """Return the domain in lower-case A-labels (RFC 8616 3) without the final dot.

    Return `None` if DNS cannot have records at the name: an address literal, an empty or overlong
    label (RFC 7208 4.3), a space, or a name that IDNA does not allow.
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
    # Four numbers are an address without its brackets; no domain ends in a number.
    return None if labels[-1].isdigit() else domain


def _to_a_labels(text: str) -> str:
    """Return the A-labels, or an empty string for a name that IDNA does not allow."""
    try:
        return idna.encode(text, uts46=True).decode("ascii")
    except (idna.IDNAError, UnicodeError):
        return ""


def registrable_domain(host: str) -> str:
    """Return the registrable domain: one label below a public suffix; a suffix itself unchanged.

    Used to compare hosts, to query blocklists, and for receivers that follow RFC 7489. DMARC
    itself uses DNS (RFC 9989 4.10).
    """
    return _suffixes().privatesuffix(host) or host


def is_public_suffix(domain: str) -> bool:
    """Return whether others register names directly below a domain."""
    return _suffixes().is_public(domain)


@cache
def _suffixes() -> PublicSuffixList:
    return PublicSuffixList()

"""Names that are judged by what is known of them: shorteners, free mailboxes, risky endings."""

import tomllib
from collections.abc import Iterable
from functools import cache
from importlib.resources import files
from typing import Any


@cache
def _table() -> dict[str, Any]:
    text = files(__package__).joinpath("known_hosts.toml").read_text("utf-8")
    return tomllib.loads(text)


@cache
def names_of(key: str) -> frozenset[str]:
    """Give one list of the table."""
    return frozenset(_table()[key])


def is_among(host: str, key: str) -> bool:
    """Tell whether a host, or one that it lies below, is on a list."""
    return any(parent in names_of(key) for parent in _parents(host))


def _parents(host: str) -> Iterable[str]:
    labels = host.split(".")
    return (".".join(labels[start:]) for start in range(len(labels)))


def is_freemail(domain: str) -> bool:
    """Tell whether anybody can have a mailbox there for free."""
    return domain in names_of("freemail")


def is_gmail(domain: str) -> bool:
    """Tell whether it is a domain of Google's mailboxes."""
    return domain in names_of("gmail")


def owner_of(host: str) -> str:
    """Guess the domain that somebody registered: the last two labels, or three below ``co.uk``.

    Good enough to compare two hosts; the right answer needs DNS (RFC 9989) or a list.
    """
    labels = host.split(".")
    has_shared_end = (
        len(labels) > 2 and len(labels[-1]) == 2 and labels[-2] in names_of("shared_second_labels")
    )
    return ".".join(labels[-3:] if has_shared_end else labels[-2:])

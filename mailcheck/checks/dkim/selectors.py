"""Guessing selectors: the table of `selectors.toml`, ordered by what is known of the domain."""

import tomllib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from mailcheck.core.domain_names import is_within

MAX_GUESSES = 45
"""Selectors tried for one domain: a sixth of the questions that a request may ask."""


@dataclass(frozen=True, slots=True)
class Provider:
    """One that signs mail; ``hosts`` in MX or SPF tell that a domain uses it."""

    name: str
    selectors: tuple[str, ...]
    hosts: tuple[str, ...]
    is_always_tried: bool


@cache
def load_providers() -> tuple[Provider, ...]:
    """Read the table that ships with the package."""
    text = files("mailcheck.checks.dkim").joinpath("selectors.toml").read_text("utf-8")
    return tuple(
        Provider(
            name=entry["name"],
            selectors=tuple(entry["selectors"]),
            hosts=tuple(entry["hosts"]),
            is_always_tried=entry["guess"] == "always",
        )
        for entry in tomllib.loads(text)["provider"]
    )


def choose_selectors(known: Sequence[str], hosts: Iterable[str]) -> tuple[str, ...]:
    """Give the selectors to try: known ones, those of hinted providers, then the usual ones.

    :param known: from the caller or from signatures that were seen; never left out.
    :param hosts: exchanges and SPF includes of the domain.
    """
    seen = tuple(hosts)
    providers = load_providers()
    hinted = [p for p in providers if any(is_within(h, ours) for h in seen for ours in p.hosts)]
    usual = [p for p in providers if p.is_always_tried]
    guesses = [selector for provider in (*hinted, *usual) for selector in provider.selectors]
    room = max(0, MAX_GUESSES - len(known))
    fresh = [guess for guess in dict.fromkeys(guesses) if guess not in known]
    return (*dict.fromkeys(known), *fresh[:room])

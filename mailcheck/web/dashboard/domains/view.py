"""Settings of a domain check, and the labels of its results."""

import re
from collections.abc import Mapping, Sequence
from types import MappingProxyType

from msgspec import Struct

from mailcheck.api.requests.parsing import Query
from mailcheck.checks.bimi.record import DEFAULT_SELECTOR
from mailcheck.checks.scoring.awards import FAIR_FROM, GOOD_FROM
from mailcheck.core.domains.domain_names import (
    MAX_ADDRESSES,
    MAX_SELECTORS,
    parse_host_address,
    parse_selector,
)
from mailcheck.core.errors import InvalidParameter
from mailcheck.core.network_addresses import IpAddress
from mailcheck.operations.domains.compute_reputation import ReputationQuery

SEPARATORS = re.compile(r"[\s,;]+")

MECHANISMS = ("mx", "spf", "dkim", "dmarc", "mtaSts", "tlsRpt", "dane", "dnssec", "caa", "bimi")
"""Sections of all results, in the order of the page."""

ALERT_LEVELS = MappingProxyType(
    {"error": "bad", "warning": "warn", "undetermined": "unknown", "note": "good"}
)
"""Severity of an alert -> level."""

HOST_PROBLEMS = MappingProxyType(
    {
        "dead": "has no address",
        "not-public": "has private addresses only",
        "partly-public": "has private addresses too",
        "address-literal": "is an IP address, not a name",
        "alias": "is an alias (CNAME)",
        "undetermined": "could not be looked up",
    }
)

SPF_PROBLEMS = MappingProxyType(
    {
        "absent": "no SPF record",
        "several": "more than one SPF record",
        "syntax": "the record has a syntax error",
        "loop": "the record includes itself",
        "undetermined": "could not be determined",
        "macro": "depends on the mail",
        "not-followed": "not evaluated: too many records",
    }
)


class NameRules(Struct, frozen=True):
    """Which names and addresses may be checked."""

    allow_special_use: bool
    allow_private: bool


class GivenSettings(Struct, frozen=True):
    """The DKIM selectors and sending addresses in a query or a form, as they were entered."""

    selectors: tuple[str, ...]
    addresses: tuple[str, ...]

    def query_for(self, domain: str, rules: NameRules) -> ReputationQuery:
        """Return the query of a check.

        :raises InvalidParameter: a selector or an address is not valid.
        """
        addresses: list[IpAddress] = [
            parse_host_address(text, name="the address", allow_private=rules.allow_private)
            for text in self.addresses
        ]
        return ReputationQuery(
            domain,
            tuple(dict.fromkeys(map(parse_selector, self.selectors))),
            tuple(dict.fromkeys(addresses)),
        )


def read_settings_query(query: Query) -> GivenSettings:
    """Return the selectors and addresses in the parameters ``selectors`` and ``ips``.

    :raises InvalidParameter: there are too many.
    """
    return GivenSettings(
        _split(query.text("selectors") or "", MAX_SELECTORS, "selectors"),
        _split(query.text("ips") or "", MAX_ADDRESSES, "sending addresses"),
    )


LOGO = "logo"
"""Parameter with the selector of the BIMI record."""


def read_logo_selector(query: Query) -> str:
    """Return the selector of the BIMI record in the parameter `LOGO`, or the default one.

    :raises InvalidParameter: it is not valid.
    """
    text = (query.text(LOGO) or "").strip()
    return parse_selector(text, name="the logo selector") if text else DEFAULT_SELECTOR


def _split(text: str, at_most: int, what: str) -> tuple[str, ...]:
    parts = tuple(part for part in SEPARATORS.split(text) if part)
    if len(parts) > at_most:
        raise InvalidParameter(what, f"at most {at_most} {what} are allowed; got {len(parts)}")
    return parts


def score_level(score: float, best: float) -> str:
    """Return the level of a score: good, warn or bad."""
    of_100 = 100 * score / best
    return "good" if of_100 >= GOOD_FROM else "warn" if of_100 >= FAIR_FROM else "bad"


WORDS: Mapping[str, Mapping[str, str] | Sequence[str]] = MappingProxyType(
    {"mechanisms": MECHANISMS, "hosts": HOST_PROBLEMS, "spf": SPF_PROBLEMS}
)

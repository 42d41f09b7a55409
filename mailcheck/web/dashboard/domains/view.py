"""The form of the domain check, and the labels of its results."""

import re
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any
from urllib.parse import urlencode

from msgspec import Struct

from mailcheck.api.requests.parsing import Query
from mailcheck.checks.scoring.awards import FAIR_FROM, GOOD_FROM
from mailcheck.core.domain_names import (
    MAX_ADDRESSES,
    MAX_SELECTORS,
    domain_meant,
    parse_domain,
    parse_host_address,
    parse_selector,
)
from mailcheck.core.errors import InvalidParameter
from mailcheck.core.network_addresses import IpAddress
from mailcheck.operations.domains.compute_reputation import ReputationQuery

SEPARATORS = re.compile(r"[\s,;]+")

MECHANISMS = ("mx", "spf", "dkim", "dmarc", "mtaSts", "tlsRpt", "dane", "dnssec")
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


class DomainForm(Struct, frozen=True):
    """The submitted form. ``typed`` may also be a URL or a mail address."""

    typed: str
    selectors: str
    addresses: str

    @property
    def domain(self) -> str:
        """The domain in the typed text, not validated yet."""
        return domain_meant(self.typed)

    @property
    def is_other(self) -> bool:
        """Whether the typed text is not the domain itself."""
        return self.domain != self.typed

    def query(self, **more: str) -> str:
        """Return the query string of this check."""
        fields = {"domain": self.domain, "selectors": self.selectors, "ips": self.addresses, **more}
        return "?" + urlencode({name: value for name, value in fields.items() if value})

    def read(self, rules: NameRules) -> ReputationQuery:
        """Validate the form.

        :raises InvalidParameter: a field is not valid; the message says what to enter instead.
        """
        domain = parse_domain(self.domain, allow_special_use=rules.allow_special_use)
        selectors = _split(self.selectors, MAX_SELECTORS, "selectors")
        texts = _split(self.addresses, MAX_ADDRESSES, "sending addresses")
        addresses: list[IpAddress] = [
            parse_host_address(text, name="the address", allow_private=rules.allow_private)
            for text in texts
        ]
        return ReputationQuery(
            domain,
            tuple(dict.fromkeys(map(parse_selector, selectors))),
            tuple(dict.fromkeys(addresses)),
        )


def read_domain_form(query: Query) -> DomainForm:
    """Return the form in a query string.

    :raises InvalidParameter: a field is repeated or too long.
    """
    return DomainForm(
        *((query.text(name) or "").strip() for name in ("domain", "selectors", "ips"))
    )


def _split(text: str, at_most: int, what: str) -> list[str]:
    parts = [part for part in SEPARATORS.split(text) if part]
    if len(parts) > at_most:
        raise InvalidParameter(what, f"at most {at_most} {what} are allowed; got {len(parts)}")
    return parts


def score_level(score: float, best: float) -> str:
    """Return the level of a score: good, warn or bad."""
    of_100 = 100 * score / best
    return "good" if of_100 >= GOOD_FROM else "warn" if of_100 >= FAIR_FROM else "bad"


def order_fixes(factors: Sequence[Any]) -> list[Any]:
    """Return the factors that lack points, first those with a record and the largest gain.

    Records that require other records come last.
    """
    lacking = [one for one in factors if one["gain"] and one["determined"]]
    return sorted(lacking, key=_order_of_fixing)


def displayed_gain(factor: Any) -> int:
    """Return the points that a factor displays: the verified gain of its record, or all."""
    proven: int = (factor["fix"] or {}).get("gain", 0)
    return proven if proven > 0 else int(factor["gain"])


def count_issues(report: Any) -> int:
    """Count the errors and warnings of all results, whether they cost points or not."""
    return sum(
        one["severity"] in ("error", "warning")
        for key in MECHANISMS
        for one in report[key]["findings"]
    )


def _order_of_fixing(factor: Any) -> tuple[bool, bool, int]:
    fix = factor["fix"] or {}
    return "record" not in fix, bool(fix.get("beside")), -factor["gain"]


WORDS: Mapping[str, Mapping[str, str] | Sequence[str]] = MappingProxyType(
    {"mechanisms": MECHANISMS, "hosts": HOST_PROBLEMS, "spf": SPF_PROBLEMS}
)

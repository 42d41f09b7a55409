"""What the page of a domain check is asked for, and the words it has for what was found."""

import re
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any
from urllib.parse import urlencode

from msgspec import Struct

from mailcheck.api.requests.parsing import Query
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
"""Topics of everything that is known, in the order of the page."""

HOST_PROBLEMS = MappingProxyType(
    {
        "dead": "has no address",
        "not-public": "has private addresses only",
        "partly-public": "has private addresses too",
        "address-literal": "is an address, not a name",
        "alias": "is an alias (CNAME)",
        "undetermined": "could not be looked up",
    }
)

SPF_PROBLEMS = MappingProxyType(
    {
        "absent": "there is no SPF record",
        "several": "there is more than one SPF record",
        "syntax": "the record can't be read",
        "loop": "the record includes itself",
        "undetermined": "could not be determined",
        "macro": "depends on the mail",
        "not-followed": "not looked at: too many records",
    }
)


class NameRules(Struct, frozen=True):
    """Which names and addresses may be asked about."""

    allow_special_use: bool
    allow_private: bool


class DomainForm(Struct, frozen=True):
    """The form as it was filled in; ``typed`` may be a URL or a mail address of the domain."""

    typed: str
    selectors: str
    addresses: str

    @property
    def domain(self) -> str:
        """Give the domain that is meant, not read yet."""
        return domain_meant(self.typed)

    @property
    def is_other(self) -> bool:
        """Tell whether something else than the domain was typed."""
        return self.domain != self.typed

    def query(self, **more: str) -> str:
        """Write the query string of this very check."""
        fields = {"domain": self.domain, "selectors": self.selectors, "ips": self.addresses, **more}
        return "?" + urlencode({name: value for name, value in fields.items() if value})

    def read(self, rules: NameRules) -> ReputationQuery:
        """Read what is asked.

        :raises InvalidParameter: names the field, and says what to send instead.
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
    """Take the form out of a query string.

    :raises InvalidParameter: a field is given twice or is too long.
    """
    return DomainForm(
        *((query.text(name) or "").strip() for name in ("domain", "selectors", "ips"))
    )


def _split(text: str, at_most: int, what: str) -> list[str]:
    parts = [part for part in SEPARATORS.split(text) if part]
    if len(parts) > at_most:
        raise InvalidParameter(what, f"there are {len(parts)} {what}; {at_most} are allowed")
    return parts


def score_level(score: float, best: float) -> str:
    """Say how a score is to be read: good, warn or bad."""
    share = score / best
    return "good" if share >= 0.8 else "warn" if share >= 0.6 else "bad"


def order_fixes(factors: Sequence[Any]) -> list[Any]:
    """List the factors that lack points, those first that can be fixed alone and bring most."""
    lacking = [one for one in factors if one["gain"] and one["determined"]]
    return sorted(lacking, key=_order_of_fixing)


def displayed_gain(factor: Any) -> int:
    """Return the points in the row of a factor: the gain of its proven record, or all."""
    proven: int = (factor["fix"] or {}).get("gain", 0)
    return proven if proven > 0 else int(factor["gain"])


def count_issues(report: Any) -> int:
    """Count what is not as it should be in everything that is known, whether it costs or not."""
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
